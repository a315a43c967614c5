//! Functions of JSON. Paths without a mode are strict, as in Flink: what is not there is an error, which gives NULL.

mod document;
mod number;
mod path;
mod values;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StructArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::define::{Call, Function, Takes, Texts, is, user_error};
use crate::text;
use document::{Json, unquote};
use path::{Path, Wrong};
use values::{Source, object, raw_type};

use Takes::{Any, Text};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        // A third and fourth argument stand for an empty result and an error; a fifth one says for which of them the query
        // fails instead: EMPTY, ERROR, BOTH or NONE. A sixth one is what the text is then cast to: a value that is no such thing is an
        // error.
        Function::new("json_value", &[Text, Text, Text, Text, Text, Text], is::text, json_value).least(2),
        // A third argument is the wrapper: WITHOUT, CONDITIONAL or UNCONDITIONAL. A fourth and fifth one say what stands for
        // an empty result and an error: NULL, EMPTY ARRAY, EMPTY OBJECT or ERROR.
        Function::new("json_query", &[Text, Text, Text, Text, Text], is::text, json_query).least(2),
        // A third argument is what stands for an error: TRUE, FALSE, UNKNOWN or ERROR.
        Function::new("json_exists", &[Text, Text, Text], is::boolean, json_exists).least(2),
        // A second argument is VALUE, OBJECT, ARRAY or SCALAR.
        Function::new("is_json", &[Text, Text], is::boolean, |call| {
            let texts = call.texts(0)?;
            let kinds = optional(call, 1)?;
            call.make_bools(|row| {
                let value = texts.get(row).and_then(Json::parse);
                Some(value.is_some_and(|value| match get(&kinds, row) {
                    Some("OBJECT") => matches!(value, Json::Object(_)),
                    Some("ARRAY") => matches!(value, Json::Array(_)),
                    Some("SCALAR") => value.is_scalar(),
                    _ => true,
                }))
            })
        })
        .least(1)
        .never_null(),
        Function::new("json_string", &[Any], is::text, |call| {
            let of = Source::new(&call.array(0)?, call.zone)?;
            call.make_texts(|row| (!of.is_null(row)).then(|| made(|out| of.write(row, out))))
        })
        .strict(),
        // Its text is JSON, for JSON_OBJECT and JSON_ARRAY to take in as it is.
        Function::new("json", &[Text], |_| Some(raw_type()), json).strict(),
        // Keys and values in turn; the first argument says whether NULL is written or the key is left out.
        Function::new("json_object", &[Takes::Bool, Any], is::text, json_object).least(1).variadic().never_null(),
        Function::new("json_array", &[Takes::Bool, Any], is::text, json_array).least(1).variadic().never_null(),
        Function::new("json_quote", &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| texts.get(row).map(quote_ascii))
        })
        .strict(),
        Function::new("json_unquote", &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| {
                let text = texts.get(row)?;
                Some(unquote(text).map_or_else(|| text.to_owned(), |text| text.into_owned()))
            })
        })
        .strict(),
    ];
    functions.into_iter().map(Function::make).collect()
}

fn made(of: impl FnOnce(&mut String)) -> String {
    let mut made = String::new();
    of(&mut made);
    made
}

fn optional(call: &Call<'_>, at: usize) -> Result<Option<Texts>> {
    if call.has(at) { call.texts(at).map(Some) } else { Ok(None) }
}

fn get(of: &Option<Texts>, row: usize) -> Option<&str> {
    of.as_ref().and_then(|of| of.get(row))
}

/// The paths of a call, each taken apart once.
struct Paths {
    texts: Texts,
    known: RefCell<HashMap<String, std::result::Result<Path, Wrong>>>,
}

/// What a path leads to.
enum Found<'a> {
    /// A value; NULL is none.
    Value(Json<'a>),
    Empty,
    Error,
}

impl Paths {
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self { texts: call.texts(1)?, known: RefCell::default() })
    }

    /// `None` if the path is NULL. Also says whether the path is lax.
    fn find<'a>(&self, row: usize, document: &'a str) -> Result<Option<(Found<'a>, bool)>> {
        let Some(text) = self.texts.get(row) else { return Ok(None) };
        let mut known = self.known.borrow_mut();
        if !known.contains_key(text) {
            known.insert(text.to_owned(), Path::new(text));
        }
        let path = match &known[text] {
            Ok(path) => path,
            Err(Wrong::NoPath) => return Ok(Some((Found::Error, false))),
            Err(Wrong::Unsupported(what)) => {
                return Err(user_error(format!(
                    "the path '{text}' has {what}, which is not supported in paths of JSON"
                )));
            }
        };
        let found = match Json::parse(document) {
            None => Found::Error,
            Some(value) => match path.find(value) {
                Some(Json::Null) => Found::Empty,
                Some(value) => Found::Value(value),
                None if path.is_lax => Found::Empty,
                None => Found::Error,
            },
        };
        Ok(Some((found, path.is_lax)))
    }
}

fn json_value(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, paths) = (call.texts(0)?, Paths::new(call)?);
    let (on_empty, on_error, fails) = (optional(call, 2)?, optional(call, 3)?, optional(call, 4)?);
    let returned = optional(call, 5)?;
    call.try_texts(|row| {
        let Some(text) = texts.get(row) else { return Ok(None) };
        let instead = |of: &Option<Texts>, what: &str| match get(&fails, row) {
            Some(fails) if fails == what || fails == "BOTH" => Err(failed("JSON_VALUE", what, text)),
            _ => Ok(get(of, row).map(str::to_owned)),
        };
        match paths.find(row, text)? {
            None => Ok(None),
            Some((Found::Value(value), is_lax)) => match value {
                value if value.is_scalar() && !get(&returned, row).is_none_or(|of| is_a(&value, of)) => {
                    instead(&on_error, "ERROR")
                }
                Json::Text(text) => Ok(Some(text.into_owned())),
                value if value.is_scalar() => Ok(Some(made(|out| value.write(out)))),
                _ if is_lax => instead(&on_empty, "EMPTY"),
                _ => instead(&on_error, "ERROR"),
            },
            Some((Found::Empty, true)) => instead(&on_empty, "EMPTY"),
            // A strict path to a NULL leads to no scalar.
            Some((Found::Empty | Found::Error, _)) => instead(&on_error, "ERROR"),
        }
    })
}

/// Whether a scalar is what `RETURNING` says: a number is no BOOLEAN, nor is `true` a number. A text is what it can be read as.
fn is_a(value: &Json<'_>, of: &str) -> bool {
    let is_read = |text: &str| match of {
        "BOOLEAN" => text::read_bool(text).is_some(),
        "INT" => text::read_int(text).is_some_and(|value| i32::try_from(value).is_ok()),
        "DOUBLE" => text::read_double(text).is_some(),
        _ => true,
    };
    match (value, of) {
        (Json::Bool(_), "INT" | "DOUBLE") | (Json::Number(_), "BOOLEAN") => false,
        (Json::Text(text), _) => is_read(text),
        (Json::Number(_), _) => is_read(&made(|out| value.write(out))),
        _ => true,
    }
}

fn failed(function: &str, what: &str, document: &str) -> datafusion::common::DataFusionError {
    let shown: String = document.chars().take(80).collect();
    let why = if what == "EMPTY" { "nothing is at the path" } else { "the path does not lead to such a value" };
    user_error(format!("{function} has ERROR ON {what}, and {why} in '{shown}'"))
}

fn json_query(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, paths) = (call.texts(0)?, Paths::new(call)?);
    let (wrappers, on_empty, on_error) = (optional(call, 2)?, optional(call, 3)?, optional(call, 4)?);
    call.try_texts(|row| {
        let Some(text) = texts.get(row) else { return Ok(None) };
        let instead = |of: &Option<Texts>, what: &str| match get(of, row) {
            Some("EMPTY ARRAY") => Ok(Some("[]".to_owned())),
            Some("EMPTY OBJECT") => Ok(Some("{}".to_owned())),
            Some("ERROR") => Err(failed("JSON_QUERY", what, text)),
            _ => Ok(None),
        };
        let (value, is_lax) = match paths.find(row, text)? {
            None => return Ok(None),
            Some((Found::Value(value), is_lax)) => (value, is_lax),
            Some((Found::Empty, _)) => return instead(&on_empty, "EMPTY"),
            Some((Found::Error, _)) => return instead(&on_error, "ERROR"),
        };
        let is_wrapped = match get(&wrappers, row) {
            Some("UNCONDITIONAL") => true,
            Some("CONDITIONAL") => !matches!(value, Json::Array(_)),
            _ => false,
        };
        match value {
            value if is_wrapped => Ok(Some(made(|out| Json::Array(vec![value]).write(out)))),
            value if !value.is_scalar() => Ok(Some(made(|out| value.write(out)))),
            _ if is_lax => instead(&on_empty, "EMPTY"),
            _ => instead(&on_error, "ERROR"),
        }
    })
}

fn json_exists(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, paths, on_error) = (call.texts(0)?, Paths::new(call)?, optional(call, 2)?);
    let one = |row: usize| {
        let Some(text) = texts.get(row) else { return Ok(None) };
        Ok(match paths.find(row, text)? {
            None => None,
            Some((Found::Value(_), _)) => Some(true),
            Some((Found::Empty, _)) => Some(false),
            Some((Found::Error, _)) => match get(&on_error, row) {
                Some("TRUE") => Some(true),
                Some("UNKNOWN") => None,
                Some("ERROR") => return Err(failed("JSON_EXISTS", "ERROR", text)),
                _ => Some(false),
            },
        })
    };
    let found = (0..call.rows).map(one).collect::<Result<Vec<_>>>()?;
    call.make_bools(|row| found[row])
}

fn json(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let made = call.try_texts(|row| match texts.get(row) {
        None => Ok(None),
        Some(text) => match Json::parse(text) {
            Some(value) => Ok(Some(made(|out| value.write(out)))),
            None => Err(user_error(format!("JSON('{}') is no JSON", text.chars().take(80).collect::<String>()))),
        },
    })?;
    let DataType::Struct(fields) = raw_type() else { return call.nulls() };
    let nulls = made.nulls().cloned();
    Ok(Arc::new(StructArray::try_new(fields, vec![made], nulls)?))
}

/// As Flink has it: only ASCII, and `/` with a `\` before it.
fn quote_ascii(text: &str) -> String {
    let mut made = String::with_capacity(text.len() + 2);
    made.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' | '/' => made.extend(['\\', c]),
            '\u{8}' => made.push_str("\\b"),
            '\u{c}' => made.push_str("\\f"),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            ' '..='~' => made.push(c),
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| made.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    made.push('"');
    made
}

fn sources(call: &Call<'_>) -> Result<Vec<Source>> {
    (1..call.columns.len()).map(|at| Source::new(&call.array(at)?, call.zone)).collect()
}

fn json_object(call: &Call<'_>) -> Result<ArrayRef> {
    if call.columns.len().is_multiple_of(2) {
        return Err(user_error("JSON_OBJECT needs a value for each key"));
    }
    let with_nulls = call.bools(0)?;
    let sources = sources(call)?;
    let keys = (1..call.columns.len()).step_by(2).map(|at| crate::strings::shown(call, at));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let mut text = String::new();
    call.try_texts(|row| {
        let mut entries = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(sources.iter().skip(1).step_by(2)) {
            let key = key.get(row).ok_or_else(|| user_error("a key of JSON_OBJECT is NULL"))?;
            if !value.is_null(row) || with_nulls.get(row) != Some(false) {
                entries.push((key, value, row));
            }
        }
        text.clear();
        object(entries, &mut text);
        Ok(Some(text.clone()))
    })
}

fn json_array(call: &Call<'_>) -> Result<ArrayRef> {
    let with_nulls = call.bools(0)?;
    let sources = sources(call)?;
    call.make_texts(|row| {
        let all = sources.iter().filter(|source| !source.is_null(row) || with_nulls.get(row) == Some(true));
        Some(made(|out| {
            out.push('[');
            for (at, source) in all.enumerate() {
                if at > 0 {
                    out.push(',');
                }
                source.write(row, out);
            }
            out.push(']');
        }))
    })
}
