//! Regular expressions, and SIMILAR TO.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::{Match, Regex};

use crate::define::{Call, Function, Takes, Types, convert, is, user_error};
use crate::types::array_of;

use Takes::{Int, Text};

thread_local! {
    /// What this thread compiled; `None` is no expression.
    static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
}

/// More than a query's constants; a column of expressions starts over.
const MOST_COMPILED: usize = 256;

fn with_regex<T>(pattern: &str, of: impl FnOnce(&Regex) -> T) -> Option<T> {
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(pattern) {
            if compiled.len() >= MOST_COMPILED {
                compiled.clear();
            }
            compiled.insert(pattern.to_owned(), Regex::new(&of_java(pattern)).ok());
        }
        compiled.get(pattern)?.as_ref().map(of)
    })
}

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    const BOTH: &[Takes] = &[Text, Text];
    let functions = vec![
        Function::new("regexp", BOTH, is::boolean, |call| {
            let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
            call.make_bools(|row| {
                let (text, pattern) = (texts.get(row)?, patterns.get(row)?);
                Some(!pattern.is_empty() && with_regex(pattern, |regex| regex.is_match(text)).unwrap_or(false))
            })
        })
        .strict(),
        Function::new("regexp_extract", &[Text, Text, Int], is::text, |call| {
            let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
            let groups = if call.has(2) { Some(call.ints(2)?) } else { None };
            call.make_texts(|row| {
                let group = groups.as_ref().map_or(Some(0), |groups| groups.get(row))?;
                let (text, group) = (texts.get(row)?, usize::try_from(group).ok()?);
                with_regex(patterns.get(row)?, |regex| Some(regex.captures(text)?.get(group)?.as_str()))?
            })
        })
        .least(2),
        Function::new("flink_regexp_replace", &[Text, Text, Text], is::text, |call| {
            let (texts, patterns, news) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
            call.make_texts(|row| {
                let (text, new) = (texts.get(row)?, news.get(row)?);
                with_regex(patterns.get(row)?, |regex| {
                    let (mut made, mut end) = (String::with_capacity(text.len()), 0);
                    for found in matches(regex, text) {
                        made.extend([&text[end..found.start()], new]);
                        end = found.end();
                    }
                    made + &text[end..]
                })
            })
        }),
        Function::new("flink_regexp_count", BOTH, is::int, |call| {
            let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
            call.make::<Int32Type>(|row| {
                let text = texts.get(row)?;
                with_regex(patterns.get(row)?, |regex| matches(regex, text).count() as i32)
            })
        }),
        Function::new("regexp_substr", BOTH, is::text, |call| {
            let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
            call.make_texts(|row| {
                let text = texts.get(row)?;
                with_regex(patterns.get(row)?, |regex| regex.find(text).map(|found| found.as_str()))?
            })
        }),
        Function::new("flink_regexp_instr", BOTH, is::int, |call| {
            let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
            call.make::<Int32Type>(|row| {
                let text = texts.get(row)?;
                let place =
                    |regex: &Regex| regex.find(text).map_or(0, |at| text[..at.start()].chars().count() as i32 + 1);
                with_regex(patterns.get(row)?, place)
            })
        }),
        Function::new("regexp_extract_all", &[Text, Text, Int], texts_of, extract_all).least(2),
        Function::new("similar_to", &[Text, Text, Text], is::boolean, |call| {
            let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
            let escapes = if call.has(2) { Some(call.texts(2)?) } else { None };
            let one = |row: usize| {
                let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row)) else { return Ok(None) };
                let escape =
                    escapes.as_ref().and_then(|escapes| escapes.get(row)).and_then(|escape| escape.chars().next());
                match with_regex(&of_similar(pattern, escape), |regex| regex.is_match(text)) {
                    None => Err(user_error(format!("'{pattern}' is no pattern of SIMILAR TO"))),
                    found => Ok(found),
                }
            };
            let found = (0..call.rows).map(one).collect::<Result<Vec<_>>>()?;
            call.make_bools(|row| found[row])
        })
        .least(2),
    ];
    functions.into_iter().map(Function::make).collect()
}

fn texts_of(_: &Types<'_>) -> Option<DataType> {
    Some(array_of(Field::new("element", DataType::Utf8, true)))
}

fn extract_all(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
    let groups = if call.has(2) { Some(call.ints(2)?) } else { None };
    let mut made = ListBuilder::new(StringBuilder::new());
    for row in 0..call.rows {
        let found = (|| {
            let group = groups.as_ref().map_or(Some(1), |groups| groups.get(row))?;
            let (text, group) = (texts.get(row)?, usize::try_from(group).ok()?);
            let all = |regex: &Regex| {
                let one = |at: Match<'_>| {
                    let found = regex.captures_at(text, at.start())?;
                    found.get(group).map(|found| found.as_str().to_owned())
                };
                (group < regex.captures_len()).then(|| matches(regex, text).map(one).collect::<Vec<_>>())
            };
            with_regex(patterns.get(row)?, all)?
        })();
        let is_there = found.is_some();
        found.into_iter().flatten().for_each(|part| made.values().append_option(part));
        made.append(is_there);
    }
    convert(&(Arc::new(made.finish()) as ArrayRef), call.returns)
}

/// All matches as Java's `Matcher.find` gives them: an empty one may be directly behind another one, and at the end.
fn matches<'r, 't>(regex: &'r Regex, text: &'t str) -> impl Iterator<Item = Match<'t>> + use<'r, 't> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let found = regex.find_at(text, from?)?;
        from = match found.is_empty() {
            true => text[found.end()..].chars().next().map(|next| found.end() + next.len_utf8()),
            false => Some(found.end()),
        };
        Some(found)
    })
}

/// Java's pattern as one of this library: in Java `\w` and its kin mean ASCII only, unless the pattern begins with `(?U)`.
fn of_java(pattern: &str) -> String {
    let flags = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map_or("", |(flags, _)| flags);
    if flags.contains('U') && flags.bytes().all(|flag| flag.is_ascii_alphabetic()) {
        // Here that flag is another one.
        let others = flags.replace('U', "u");
        return pattern.replacen(flags, &others, 1);
    }
    let mut made = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once('\\') {
        made.push_str(before);
        let (length, class) = ascii_class(behind);
        match class {
            Some(class) => made.push_str(class),
            None => made.extend(["\\", &behind[..length]]),
        }
        rest = &behind[length..];
    }
    made + rest
}

/// How much of a text belongs to the escape that it continues, and the class of ASCII characters that it is, if it is one.
fn ascii_class(behind: &str) -> (usize, Option<&'static str>) {
    let one = behind.chars().next().map_or(0, char::len_utf8);
    let class = match &behind[..one] {
        "d" => "[0-9]",
        "D" => "[^0-9]",
        "w" => "[0-9A-Za-z_]",
        "W" => "[^0-9A-Za-z_]",
        "s" => "[\\t\\n\\x0B\\f\\r\\x20]",
        "S" => "[^\\t\\n\\x0B\\f\\r\\x20]",
        "p" | "P" => return posix_class(behind).map_or((one, None), |(length, class)| (length, Some(class))),
        _ => return (one, None),
    };
    (one, Some(class))
}

/// `\p{Lower}`, and what is not one of these with `\P`.
fn posix_class(behind: &str) -> Option<(usize, &'static str)> {
    const CLASSES: [(&str, &str, &str); 13] = [
        ("Lower", "[[:lower:]]", "[[:^lower:]]"),
        ("Upper", "[[:upper:]]", "[[:^upper:]]"),
        ("ASCII", "[[:ascii:]]", "[[:^ascii:]]"),
        ("Alpha", "[[:alpha:]]", "[[:^alpha:]]"),
        ("Digit", "[[:digit:]]", "[[:^digit:]]"),
        ("Alnum", "[[:alnum:]]", "[[:^alnum:]]"),
        ("Punct", "[[:punct:]]", "[[:^punct:]]"),
        ("Graph", "[[:graph:]]", "[[:^graph:]]"),
        ("Print", "[[:print:]]", "[[:^print:]]"),
        ("Blank", "[[:blank:]]", "[[:^blank:]]"),
        ("Cntrl", "[[:cntrl:]]", "[[:^cntrl:]]"),
        ("XDigit", "[[:xdigit:]]", "[[:^xdigit:]]"),
        ("Space", "[[:space:]]", "[[:^space:]]"),
    ];
    let name = behind[1..].strip_prefix('{')?.split_once('}')?.0;
    let (_, class, other) = CLASSES.iter().find(|(known, ..)| *known == name)?;
    Some((name.len() + 3, if behind.starts_with('p') { class } else { other }))
}

/// SQL's regular expression as an ordinary one: `%` and `_` are any text and any character, `.`, `^` and `$` are themselves.
fn of_similar(pattern: &str, escape: Option<char>) -> String {
    let mut made = String::from("(?s)^(?:");
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            _ if Some(c) == escape => made.extend(chars.next().map(|c| regex::escape(&c.to_string()))),
            '%' => made.push_str(".*"),
            '_' => made.push('.'),
            '.' | '^' | '$' | '\\' => made.extend(['\\', c]),
            '[' => {
                // Any of these characters, with classes such as `[:ALPHA:]`.
                made.push('[');
                made.extend(chars.next_if_eq(&'^'));
                let mut is_class = false;
                while let Some(c) = chars.next() {
                    match c {
                        ']' if !is_class => {
                            made.push(']');
                            break;
                        }
                        '[' if chars.peek() == Some(&':') => is_class = true,
                        '[' | '&' | '~' | '\\' | '^' => made.push('\\'),
                        ']' => is_class = false,
                        _ => {}
                    }
                    if is_class || c == ']' { made.extend(c.to_lowercase()) } else { made.push(c) }
                }
            }
            _ => made.push(c),
        }
    }
    made + ")$"
}
