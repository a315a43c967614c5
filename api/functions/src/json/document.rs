//! JSON as it is written: numbers keep their digits, objects are in the order of their keys, and of two values with one key the
//! later counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::number;

/// Deeper than this nothing is nested that somebody wrote.
const MOST_DEEP: usize = 1000;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(BTreeMap<Cow<'a, str>, Json<'a>>),
}

impl<'a> Json<'a> {
    /// A whole document; `None` if it is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut reader = Reader::new(text);
        let value = reader.value()?;
        reader.end().then_some(value)
    }

    /// Whether it is neither an object nor an array.
    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// As Flink writes it.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(digits) => number::write(digits, out),
            Self::Text(text) => quote(text, out),
            Self::Array(all) => {
                out.push('[');
                for (at, one) in all.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    one.write(out);
                }
                out.push(']');
            }
            Self::Object(all) => {
                out.push('{');
                for (at, (key, value)) in all.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    quote(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// A text in quotes.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[start..at]);
        match escape {
            "" => out.push_str(&format!("\\u{byte:04X}")),
            escape => out.push_str(escape),
        }
        start = at + 1;
    }
    out.push_str(&text[start..]);
    out.push('"');
}

/// What a text in quotes says; `None` if it is none.
pub(super) fn unquote(text: &str) -> Option<Cow<'_, str>> {
    let mut reader = Reader::new(text);
    let found = reader.text()?;
    (reader.at == text.len()).then_some(found)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> bool {
        self.skip_spaces();
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn end(&mut self) -> bool {
        self.skip_spaces();
        self.at == self.text.len()
    }

    fn value(&mut self) -> Option<Json<'a>> {
        self.skip_spaces();
        match self.peek()? {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'"' => Some(Json::Text(self.text()?)),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn nested(&mut self, of: impl FnOnce(&mut Self) -> Option<Json<'a>>) -> Option<Json<'a>> {
        if self.depth == MOST_DEEP {
            return None;
        }
        self.depth += 1;
        self.at += 1;
        let found = of(self);
        self.depth -= 1;
        found
    }

    fn object(&mut self) -> Option<Json<'a>> {
        let mut all = BTreeMap::new();
        if self.take(b'}') {
            return Some(Json::Object(all));
        }
        loop {
            self.skip_spaces();
            let key = self.text()?;
            if !self.take(b':') {
                return None;
            }
            all.insert(key, self.value()?);
            if self.take(b'}') {
                return Some(Json::Object(all));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn array(&mut self) -> Option<Json<'a>> {
        let mut all = Vec::new();
        if self.take(b']') {
            return Some(Json::Array(all));
        }
        loop {
            all.push(self.value()?);
            if self.take(b']') {
                return Some(Json::Array(all));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Option<Json<'a>> {
        let is_there = self.text[self.at..].starts_with(word);
        self.at += word.len();
        is_there.then_some(value)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let is_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (is_zero && whole > 1) {
            return None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return None;
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return None;
            }
        }
        Some(Json::Number(&self.text[start..self.at]))
    }

    fn text(&mut self) -> Option<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return None;
        }
        self.at += 1;
        let mut start = self.at;
        let mut made: Option<String> = None;
        loop {
            match self.peek()? {
                b'"' => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Some(match made {
                        Some(made) => Cow::Owned(made + rest),
                        None => Cow::Borrowed(rest),
                    });
                }
                b'\\' => {
                    let made = made.get_or_insert_default();
                    made.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let escape = self.peek()?;
                    self.at += 1;
                    made.push(match escape {
                        b'"' | b'\\' | b'/' => char::from(escape),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode()?,
                        _ => return None,
                    });
                    start = self.at;
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Half of a pair alone is no character: it is replaced.
    fn unicode(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if let 0xd800..0xdc00 = first
            && self.text[self.at..].starts_with("\\u")
        {
            let before = self.at;
            self.at += 2;
            let second = self.four_digits()?;
            if let 0xdc00..0xe000 = second {
                return char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            self.at = before;
        }
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn shown(text: &str) -> Option<String> {
        let mut made = String::new();
        Json::parse(text)?.write(&mut made);
        Some(made)
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn means_what_another_reader_says(value in any_json(), is_pretty: bool) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let made = shown(&text.expect("JSON")).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<Value>(&made).expect("JSON"), value);
        }

        #[test]
        fn is_json_where_another_reader_says_so(text in "[\\[\\]{}\",:0-9.eE+ \\\\untrfalse-]{0,12}") {
            // That reader refuses numbers that no DOUBLE holds, and halves of pairs.
            let found = serde_json::from_str::<Value>(&text);
            let is_other = found.as_ref().is_err_and(|e| e.to_string().contains("range") || text.contains("\\u"));
            prop_assert!(is_other || found.is_ok() == Json::parse(&text).is_some(), "{text}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        assert!(Json::parse(&("[".repeat(1000) + &"]".repeat(1000))).is_some());
        assert!(Json::parse(&("[".repeat(100_000) + &"]".repeat(100_000))).is_none());
    }

    #[test]
    fn escapes() {
        assert_eq!(unquote(r#""a\u00e4\ud83d\ude00\ud83d\n""#).as_deref(), Some("aä😀\u{fffd}\n"));
        assert_eq!(unquote(r#""a\q""#), None);
        assert_eq!(unquote(r#""a"b""#), None);
        assert_eq!(shown("\"\\u0001\u{7f}ä\"").as_deref(), Some("\"\\u0001\u{7f}ä\""));
    }
}
