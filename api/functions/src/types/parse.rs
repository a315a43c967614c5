//! Types from text.

use super::{Kind, MAX_LENGTH, MAX_PRECISION, SqlType};

/// What types are written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lexeme {
    /// A word without quotes.
    Word(String),
    /// A name in backticks.
    Quoted(String),
    /// A number.
    Number(String),
    /// A text in quotes.
    Text(String),
    /// Anything else.
    Sign(char),
}

impl Lexeme {
    fn show(&self) -> String {
        match self {
            Self::Word(text) | Self::Number(text) => format!("'{text}'"),
            Self::Quoted(text) => format!("'`{text}`'"),
            Self::Text(text) => format!("the text '{text}'"),
            Self::Sign(sign) => format!("'{sign}'"),
        }
    }
}

/// Cuts a text.
///
/// # Errors
/// A quote does not end.
pub fn lex(text: &str) -> Result<Vec<Lexeme>, String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(&first) = rest.peek() {
        let mut word = String::new();
        if first == '`' || first == '\'' {
            rest.next();
            loop {
                match rest.next() {
                    Some(c) if c == first && rest.peek() == Some(&first) => {
                        rest.next();
                        word.push(c);
                    }
                    Some(c) if c == first => break,
                    Some(c) => word.push(c),
                    None => return Err(format!("the quote {first} does not end")),
                }
            }
            found.push(if first == '`' { Lexeme::Quoted(word) } else { Lexeme::Text(word) });
        } else if first.is_alphanumeric() || first == '_' {
            while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_' || *c == '$') {
                word.push(c);
            }
            found.push(if first.is_ascii_digit() { Lexeme::Number(word) } else { Lexeme::Word(word) });
        } else {
            rest.next();
            if !first.is_whitespace() {
                found.push(Lexeme::Sign(first));
            }
        }
    }
    Ok(found)
}

/// Reads a type: `DECIMAL(10, 2) NOT NULL`.
///
/// # Errors
/// It is none, or none that there is.
pub fn parse(text: &str) -> Result<SqlType, String> {
    let lexemes = lex(text)?;
    let (found, used) = parse_lexemes(&lexemes)?;
    match lexemes.get(used) {
        Some(next) => Err(format!("{} does not belong to the type", next.show())),
        None => Ok(found),
    }
}

/// Reads the type that `lexemes` begin with, and says how many of them it has.
///
/// # Errors
/// See [`parse`].
pub fn parse_lexemes(lexemes: &[Lexeme]) -> Result<(SqlType, usize), String> {
    let mut parser = Parser { lexemes, at: 0, depth: 0 };
    let found = parser.data_type()?;
    Ok((found, parser.at))
}

struct Parser<'a> {
    lexemes: &'a [Lexeme],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.lexemes.get(self.at + ahead), Some(Lexeme::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(ahead, word)| self.is_word(ahead, word));
        self.at += if found { words.len() } else { 0 };
        found
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = self.lexemes.get(self.at) == Some(&Lexeme::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn expected<T>(&self, what: &str) -> Result<T, String> {
        let found = self.lexemes.get(self.at).map_or_else(|| "the end".to_owned(), Lexeme::show);
        Err(format!("expected {what}, found {found}"))
    }

    fn expect(&mut self, sign: char, context: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { self.expected(&format!("'{sign}' in {context}")) }
    }

    fn number(&mut self) -> Result<u32, String> {
        match self.lexemes.get(self.at) {
            Some(Lexeme::Number(digits)) => {
                self.at += 1;
                digits.parse().map_err(|_| format!("{digits} is too large for a length or precision"))
            }
            _ => self.expected("a number"),
        }
    }

    fn in_parentheses(&mut self) -> Result<Option<u32>, String> {
        if !self.sign('(') {
            return Ok(None);
        }
        let number = self.number()?;
        self.expect(')', "a type")?;
        Ok(Some(number))
    }

    fn length(&mut self, default: u32) -> Result<u32, String> {
        match self.in_parentheses()?.unwrap_or(default) {
            0 => Err("the length 0 must be at least 1".to_owned()),
            length if length > MAX_LENGTH => Err(format!("the length {length} must be at most {MAX_LENGTH}")),
            length => Ok(length),
        }
    }

    fn precision(&mut self, default: u32) -> Result<u8, String> {
        match self.in_parentheses()?.unwrap_or(default) {
            precision @ 0..=9 => Ok(precision as u8),
            precision => Err(format!("the precision {precision} must be from 0 to 9")),
        }
    }

    fn data_type(&mut self) -> Result<SqlType, String> {
        // Types are read by recursion: what is nested deeper than any real one would overflow the stack.
        self.depth += 1;
        if self.depth > 64 {
            return Err("the type is nested too deeply".to_owned());
        }
        let mut found = self.kind()?.nullable();
        loop {
            if self.words(&["NOT", "NULL"]) {
                found.is_nullable = false;
            } else if self.is_word(0, "NULL") && !self.is_word(1, "ON") {
                self.at += 1;
            } else if self.words(&["ARRAY"]) {
                found = Kind::Array(Box::new(found)).nullable();
            } else if self.words(&["MULTISET"]) {
                found = Kind::Multiset(Box::new(found)).nullable();
            } else {
                self.depth -= 1;
                return Ok(found);
            }
        }
    }

    fn kind(&mut self) -> Result<Kind, String> {
        let Some(Lexeme::Word(word)) = self.lexemes.get(self.at) else { return self.expected("a type") };
        self.at += 1;
        let upper = word.to_uppercase();
        Ok(match upper.as_str() {
            "BOOLEAN" => Kind::Boolean,
            "TINYINT" => Kind::TinyInt,
            "SMALLINT" => Kind::SmallInt,
            "INT" | "INTEGER" => Kind::Int,
            "BIGINT" => Kind::BigInt,
            "FLOAT" => Kind::Float,
            "DOUBLE" => {
                self.words(&["PRECISION"]);
                Kind::Double
            }
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal()?,
            "CHAR" | "CHARACTER" if self.words(&["VARYING"]) => Kind::Varchar(self.length(1)?),
            "CHAR" | "CHARACTER" => Kind::Char(self.length(1)?),
            "VARCHAR" => Kind::Varchar(self.length(1)?),
            "STRING" => Kind::string(),
            "BINARY" if self.words(&["VARYING"]) => Kind::Varbinary(self.length(1)?),
            "BINARY" => Kind::Binary(self.length(1)?),
            "VARBINARY" => Kind::Varbinary(self.length(1)?),
            "BYTES" => Kind::Varbinary(MAX_LENGTH),
            "DATE" => Kind::Date,
            "TIME" => {
                let precision = self.precision(0)?;
                self.words(&["WITHOUT", "TIME", "ZONE"]);
                Kind::Time(precision)
            }
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" => Kind::TimestampLtz(self.precision(6)?),
            "INTERVAL" => self.interval()?,
            "ARRAY" => Kind::Array(self.element("an ARRAY type")?),
            "MULTISET" => Kind::Multiset(self.element("a MULTISET type")?),
            "MAP" => {
                self.expect('<', "a MAP type")?;
                let key = self.data_type()?;
                self.expect(',', "a MAP type")?;
                let value = self.data_type()?;
                self.expect('>', "a MAP type")?;
                Kind::Map(Box::new(key), Box::new(value))
            }
            "ROW" => self.row()?,
            "NULL" => Kind::Null,
            "RAW" | "VARIANT" | "BITMAP" | "DESCRIPTOR" => return Err(format!("the type {upper} is not supported")),
            _ => return Err(unknown(word)),
        })
    }

    fn element(&mut self, context: &str) -> Result<Box<SqlType>, String> {
        self.expect('<', context)?;
        let element = self.data_type()?;
        self.expect('>', context)?;
        Ok(Box::new(element))
    }

    fn decimal(&mut self) -> Result<Kind, String> {
        let (mut precision, mut scale) = (10, 0);
        if self.sign('(') {
            precision = self.number()?;
            scale = if self.sign(',') { self.number()? } else { 0 };
            self.expect(')', "a type")?;
        }
        if !(1..=u32::from(MAX_PRECISION)).contains(&precision) {
            return Err(format!("DECIMAL({precision}, {scale}): the precision must be from 1 to {MAX_PRECISION}"));
        }
        if scale > precision {
            return Err(format!("DECIMAL({precision}, {scale}): the scale must be from 0 to the precision"));
        }
        Ok(Kind::Decimal(precision as u8, scale as u8))
    }

    fn timestamp(&mut self) -> Result<Kind, String> {
        let precision = self.precision(6)?;
        if self.words(&["WITH", "LOCAL", "TIME", "ZONE"]) {
            return Ok(Kind::TimestampLtz(precision));
        }
        if self.words(&["WITH", "TIME", "ZONE"]) {
            return Err("the type TIMESTAMP WITH TIME ZONE is not supported: use TIMESTAMP_LTZ".to_owned());
        }
        self.words(&["WITHOUT", "TIME", "ZONE"]);
        Ok(Kind::Timestamp(precision))
    }

    fn interval(&mut self) -> Result<Kind, String> {
        const UNITS: [&str; 6] = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
        let unit = |parser: &mut Self| {
            let found = UNITS.iter().position(|unit| parser.words(&[unit]));
            let Some(found) = found else { return parser.expected("a unit of an interval") };
            if parser.sign('(') {
                parser.number()?;
                if parser.sign(',') {
                    parser.number()?;
                }
                parser.expect(')', "an INTERVAL type")?;
            }
            Ok(found)
        };
        let first = unit(self)?;
        let last = if self.words(&["TO"]) { unit(self)? } else { first };
        match (first, last) {
            (0 | 1, 0 | 1) if first <= last => Ok(Kind::YearMonth),
            (2.., 2..) if first <= last => Ok(Kind::DaySecond),
            _ => Err(format!("there is no INTERVAL {} TO {}", UNITS[first], UNITS[last])),
        }
    }

    fn row(&mut self) -> Result<Kind, String> {
        let end = match (self.sign('<'), self.sign('(')) {
            (true, _) => '>',
            (_, true) => ')',
            _ => return self.expected("'<' in a ROW type"),
        };
        let mut fields = Vec::new();
        while !self.sign(end) {
            if !fields.is_empty() && !self.sign(',') {
                return self.expected(&format!("',' or '{end}' in a ROW type"));
            }
            let name = match self.lexemes.get(self.at) {
                Some(Lexeme::Word(name) | Lexeme::Quoted(name)) => name.clone(),
                _ => return self.expected("the name of a ROW's field"),
            };
            self.at += 1;
            let of = self.data_type()?;
            if self.words(&["COMMENT"]) {
                match self.lexemes.get(self.at) {
                    Some(Lexeme::Text(_)) => self.at += 1,
                    _ => return self.expected("a comment's text"),
                }
            } else if let Some(Lexeme::Text(_)) = self.lexemes.get(self.at) {
                // Flink's own way of printing comments.
                self.at += 1;
            }
            fields.push((name, of));
        }
        Ok(Kind::Row(fields))
    }
}

const NAMES: [&str; 24] = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "NUMERIC",
    "CHAR",
    "VARCHAR",
    "STRING",
    "BINARY",
    "VARBINARY",
    "BYTES",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "ARRAY",
    "MAP",
    "MULTISET",
    "ROW",
];

fn unknown(word: &str) -> String {
    let upper = word.to_uppercase();
    let near = NAMES.iter().map(|name| (strsim::damerau_levenshtein(name, &upper), name)).min();
    match near {
        Some((distance, name)) if distance <= upper.len().div_ceil(3) => {
            format!("there is no type '{word}'; did you mean '{name}'?")
        }
        _ => format!("there is no type '{word}'"),
    }
}
