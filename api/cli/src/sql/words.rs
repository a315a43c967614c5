//! What Tab makes of the beginning of a word: keywords, names, functions, keys of settings and options.

use std::collections::BTreeSet;

use flott_sql::catalog::Relation;
use flott_sql::session::{Session, setting_keys};
use flott_sql_functions::builtins::{Is, builtins};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// Words that statements are made of.
const KEYWORDS: &[&str] = &[
    "ALTER",
    "AND",
    "ARRAY",
    "AS",
    "ASC",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "BYTES",
    "CASE",
    "CAST",
    "CATALOG",
    "CATALOGS",
    "COMMENT",
    "CREATE",
    "CROSS JOIN",
    "CUMULATE",
    "CURRENT",
    "DATABASE",
    "DATABASES",
    "DATE",
    "DECIMAL",
    "DESC",
    "DESCRIBE",
    "DESCRIPTOR",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXECUTE STATEMENT SET",
    "EXISTS",
    "EXPLAIN",
    "FILTER",
    "FLOAT",
    "FOR SYSTEM_TIME AS OF",
    "FROM",
    "FULL OUTER JOIN",
    "FUNCTION",
    "FUNCTIONS",
    "GROUP BY",
    "GROUPING SETS",
    "HAVING",
    "HOP",
    "IN",
    "INNER JOIN",
    "INSERT INTO",
    "INT",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "MAP",
    "METADATA",
    "NOT",
    "NOT ENFORCED",
    "NULL",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "PARTITIONED BY",
    "PRIMARY KEY",
    "RESET",
    "RIGHT JOIN",
    "ROLLUP",
    "ROW",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW",
    "SMALLINT",
    "STRING",
    "TABLE",
    "TABLES",
    "TEMPORARY",
    "THEN",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TINYINT",
    "TRY_CAST",
    "TUMBLE",
    "UNION ALL",
    "UNNEST",
    "USE",
    "VALUES",
    "VIEW",
    "VIEWS",
    "WATERMARK FOR",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Words to the client, which only begin a statement.
const VERBS: &[&str] = &["CLEAR", "EXIT", "HELP", "QUIT"];

/// Options of tables, and what they can be.
const TABLE_OPTIONS: &[(&str, &[&str])] = &[
    ("connector", &["blackhole", "datagen", "filesystem", "nexmark", "print"]),
    ("format", &["csv", "debezium-json", "canal-json", "json", "maxwell-json", "raw"]),
    ("number-of-rows", &[]),
    ("path", &[]),
    ("rows-per-second", &[]),
    ("scan.parallelism", &[]),
    ("scan.watermark.idle-timeout", &[]),
    ("sink.parallelism", &[]),
];

/// What settings can be, of those that are one of few.
const SETTING_VALUES: &[(&str, &[&str])] = &[
    ("execution.runtime-mode", &["batch", "streaming"]),
    ("execution.state-recovery.claim-mode", &["claim", "no_claim"]),
    ("execution.state-recovery.ignore-unclaimed-state", &["false", "true"]),
    ("sql-client.execution.result-mode", &["changelog", "json", "table", "tableau"]),
    ("table.dml-sync", &["false", "true"]),
    ("table.optimizer.agg-phase-strategy", &["AUTO", "ONE_PHASE", "TWO_PHASE"]),
];

/// Words behind which a table is named.
const BEFORE_TABLES: &[&str] = &["FROM", "JOIN", "INTO", "TABLE", "VIEW", "DESCRIBE", "DESC"];

/// The names of a session.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Tables and views.
    relations: Vec<String>,
    columns: Vec<String>,
    functions: Vec<String>,
}

impl Names {
    /// Those that can be used without saying where they are.
    pub(super) fn of(session: &Session) -> Self {
        let catalog = session.catalog();
        let (current, database) = catalog.current();
        let mut names = Self::default();
        for (name, relation) in catalog.relations(current, database).unwrap_or_default() {
            names.relations.push(quoted(name));
            if let Relation::Table(table) = relation {
                names.columns.extend(table.columns.iter().map(|column| quoted(&column.name)));
            }
        }
        names.columns.sort();
        names.columns.dedup();
        names.functions.extend(catalog.function_names().map(str::to_owned));
        let is_called = |is: Is| matches!(is, Is::Scalar | Is::Aggregate | Is::Table);
        names.functions.extend(builtins().filter(|one| is_called(one.is)).map(|one| one.name.to_owned()));
        names
    }
}

/// A name as it can be written: between backticks if it has other characters than letters, digits and underscores.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(is_of_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What the line editor asks while someone types.
#[derive(Debug, Default)]
pub(super) struct Assistant {
    names: Names,
    /// The lines of the statement above the one that is being typed.
    before: String,
}

impl Assistant {
    /// A line is about to be typed, below others of the same statement.
    pub(super) fn begin(&mut self, names: Names, before: &str) {
        self.names = names;
        before.clone_into(&mut self.before);
    }

    /// Where the word before the cursor begins, and what it may become.
    fn candidates(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let text = format!("{}{}", self.before, &line[..cursor]);
        match open_text(&text) {
            Some(at) => {
                let word = &text[at..];
                (cursor - word.len().min(cursor), keys(&text[..at - 1], word))
            }
            None => {
                let word = &text[start_of_word(&text)..];
                (cursor - word.len().min(cursor), self.words(&text[..text.len() - word.len()], word))
            }
        }
    }

    /// What may stand behind `before` and begins like `word`.
    fn words(&self, before: &str, word: &str) -> Vec<String> {
        let last = before.trim_end();
        let previous = last[start_of_word(last)..].to_uppercase();
        if before.ends_with('.') {
            return matching(&self.names.columns, word);
        }
        if BEFORE_TABLES.contains(&previous.as_str()) {
            let mut found = matching(&self.names.relations, word);
            // `FROM TABLE(…)`, `DESCRIBE` of what is asked for first, `CREATE TABLE IF NOT EXISTS`.
            if found.is_empty() && !word.is_empty() {
                found = matching_keywords(KEYWORDS, word);
            }
            return found;
        }
        if word.is_empty() {
            return Vec::new();
        }
        let mut found = matching(&self.names.columns, word);
        found.extend(matching(&self.names.relations, word));
        if last.is_empty() || last.ends_with(';') {
            found.extend(matching_keywords(VERBS, word));
        }
        found.extend(matching_keywords(KEYWORDS, word));
        found.extend(matching_keywords(&self.names.functions, word));
        let mut seen = BTreeSet::new();
        found.retain(|one| seen.insert(one.clone()));
        found
    }
}

/// Where the text that is open at the end begins, behind its quote.
fn open_text(text: &str) -> Option<usize> {
    let mut open = None;
    let (mut in_name, mut in_comment) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '\n' => in_comment = false,
            _ if in_comment => {}
            '-' if open.is_none() && !in_name && text[at..].starts_with("--") => in_comment = true,
            '\'' if !in_name => open = if open.is_some() { None } else { Some(at + 1) },
            '`' if open.is_none() => in_name = !in_name,
            _ => {}
        }
    }
    open
}

fn start_of_word(text: &str) -> usize {
    text.char_indices().rev().take_while(|(_, c)| is_of_name(*c)).last().map_or(text.len(), |(at, _)| at)
}

/// Keys and values in quotes, of SET, RESET and WITH.
fn keys(before: &str, word: &str) -> Vec<String> {
    let statement = before.rsplit(';').next().unwrap_or_default().trim_start();
    let is_setting = ["SET", "RESET"].iter().any(|verb| {
        statement.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb))
            && statement[verb.len()..].starts_with(char::is_whitespace)
    });
    let all = if is_setting { SETTING_VALUES } else { TABLE_OPTIONS };
    // Behind `'key' =` stands its value.
    if let Some(key) = before.trim_end().strip_suffix('=').and_then(|rest| rest.trim_end().strip_suffix('\'')) {
        let key = key.rsplit('\'').next().unwrap_or_default();
        let values = all.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, values)| *values);
        return matching(values, word);
    }
    if !is_setting {
        let names: Vec<&str> = TABLE_OPTIONS.iter().map(|(name, _)| *name).collect();
        return matching(&names, word);
    }
    let mut names: Vec<&str> = setting_keys().collect();
    names.sort_unstable();
    matching(&names, word)
}

/// Names are as they were written, but are found in any case.
fn matching<T: AsRef<str>>(all: &[T], word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let starts = |name: &&T| name.as_ref().trim_start_matches('`').to_lowercase().starts_with(&word);
    all.iter().filter(starts).map(|name| name.as_ref().to_owned()).collect()
}

/// Keywords and functions are written as the word that was begun: in lower case, or as they are.
fn matching_keywords<T: AsRef<str>>(all: &[T], word: &str) -> Vec<String> {
    let is_lower = !word.chars().any(char::is_uppercase);
    let found = matching(all, word).into_iter();
    found.map(|name| if is_lower { name.to_lowercase() } else { name }).collect()
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.candidates(line, cursor);
        Ok((start, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Validator for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use flott_sql::parse::parse_script;

    use super::*;

    fn assistant(before: &str) -> Assistant {
        let mut session = Session::default();
        let script = "CREATE TABLE orders (id BIGINT, `größe` INT, `the price` DOUBLE) WITH ('connector' = 'datagen');
                      CREATE VIEW open_orders AS SELECT id FROM orders";
        for statement in parse_script(script).unwrap() {
            session.execute(&statement).unwrap();
        }
        let mut assistant = Assistant::default();
        assistant.begin(Names::of(&session), before);
        assistant
    }

    #[track_caller]
    fn check(line: &str, start: usize, expected: &[&str]) {
        let expected: Vec<String> = expected.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(assistant("").candidates(line, line.len()), (start, expected));
    }

    #[test]
    fn tables_come_behind_from_and_columns_behind_a_point() {
        check("SELECT * FROM o", 14, &["open_orders", "orders"]);
        check("SELECT * FROM ", 14, &["open_orders", "orders"]);
        check("select * from tab", 14, &["table", "tables"]);
        check("SELECT orders.GR", 14, &["größe"]);
        check("SELECT the", 7, &["`the price`", "then"]);
        check("SELECT ", 7, &[]);
    }

    #[test]
    fn keywords_are_written_as_the_word_was_begun() {
        check("SELE", 0, &["SELECT"]);
        check("sele", 0, &["select"]);
        check("qui", 0, &["quit"]);
        check("SELECT QUI", 7, &[]);
        check("SELECT split_i", 7, &["split_index"]);
        check("SELECT * FROM orders ORD", 21, &["orders", "ORDER BY"]);
    }

    #[test]
    fn keys_and_values_stand_in_quotes() {
        check("SET 'sql-client.execution.res", 5, &["sql-client.execution.result-mode"]);
        check("SET 'sql-client.execution.result-mode' = 't", 42, &["table", "tableau"]);
        check("reset 'execution.runtime", 7, &["execution.runtime-mode"]);
        check("CREATE TABLE t (a INT) WITH ('conn", 30, &["connector"]);
        check("CREATE TABLE t (a INT) WITH ('connector'='d", 42, &["datagen"]);
        check("SELECT 'it''s', ord", 16, &["orders", "order by"]);
    }

    #[test]
    fn the_lines_above_count() {
        let assistant = assistant("SELECT *\nFROM\n");
        assert_eq!(assistant.candidates("or", 2), (0, vec!["orders".to_owned()]));
        let assistant = self::assistant("SET -- it's\n");
        assert_eq!(assistant.candidates("'table.dml", 10), (1, vec!["table.dml-sync".to_owned()]));
    }
}
