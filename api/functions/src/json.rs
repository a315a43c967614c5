//! Functions of JSON. Texts without a mode are strict, as in Flink: what is not there is an error, which gives NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use serde_json::{Map, Number, Value};

use crate::cast::Cast;
use crate::define::{Call, Function, Takes, is, user_error};
use crate::types::coerce::is_integer;

use Takes::{Any, Text};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        // A third and fourth argument stand for an empty result and an error.
        Function::new("json_value", &[Text, Text, Text, Text], is::text, json_value).least(2),
        // A third argument is WITHOUT, CONDITIONAL or UNCONDITIONAL: the wrapper.
        Function::new("json_query", &[Text, Text, Text], is::text, json_query).least(2),
        Function::new("json_exists", &[Text, Text], is::boolean, |call| {
            let (texts, paths) = (call.texts(0)?, call.texts(1)?);
            call.make_bools(|row| {
                let (text, path) = (texts.get(row)?, Path::new(paths.get(row)?)?);
                Some(
                    serde_json::from_str(text)
                        .is_ok_and(|value: Value| path.find(&value).is_some_and(|found| !found.is_null())),
                )
            })
        }),
        // A second argument is VALUE, OBJECT, ARRAY or SCALAR.
        Function::new("is_json", &[Text, Text], is::boolean, |call| {
            let texts = call.texts(0)?;
            let kinds = if call.has(1) { Some(call.texts(1)?) } else { None };
            call.make_bools(|row| {
                let value = serde_json::from_str::<Value>(texts.get(row)?);
                Some(value.is_ok_and(|value| match kinds.as_ref().and_then(|kinds| kinds.get(row)) {
                    Some("OBJECT") => value.is_object(),
                    Some("ARRAY") => value.is_array(),
                    Some("SCALAR") => !value.is_object() && !value.is_array(),
                    _ => true,
                }))
            })
        })
        .least(1)
        .strict(),
        Function::new("json_string", &[Any], is::text, |call| {
            let of = call.array(0)?;
            let cast = Cast { zone: call.zone, is_try: true };
            call.try_texts(|row| match of.is_valid(row) {
                true => Ok(Some(value_of(&of, row, cast)?.to_string())),
                false => Ok(None),
            })
        })
        .strict(),
        // Keys and values in turn; the first argument says whether NULL is written or the key is left out.
        Function::new("json_object", &[Takes::Bool, Any], is::text, json_object).least(1).variadic().never_null(),
        Function::new("json_array", &[Takes::Bool, Any], is::text, json_array).least(1).variadic().never_null(),
        Function::new("json_quote", &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| texts.get(row).map(|text| Value::from(text).to_string()))
        })
        .strict(),
        Function::new("json_unquote", &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| {
                let text = texts.get(row)?;
                Some(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned()))
            })
        })
        .strict(),
    ];
    functions.into_iter().map(Function::make).collect()
}

enum Step {
    Key(String),
    Index(usize),
    All,
}

/// `$.a[1].b`, with a mode before it.
struct Path {
    is_lax: bool,
    steps: Vec<Step>,
}

impl Path {
    fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let (is_lax, text) = match text.split_once(' ') {
            Some(("lax", rest)) => (true, rest.trim()),
            Some(("strict", rest)) => (false, rest.trim()),
            _ => (false, text),
        };
        let mut rest = text.strip_prefix('$')?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                steps.push(if &after[..end] == "*" { Step::All } else { Step::Key(after[..end].to_owned()) });
                rest = &after[end..];
            } else {
                let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
                steps.push(match inner.trim() {
                    "*" => Step::All,
                    quoted if quoted.starts_with(['\'', '"']) => Step::Key(quoted.trim_matches(['\'', '"']).to_owned()),
                    index => Step::Index(index.parse().ok()?),
                });
                rest = after;
            }
        }
        Some(Self { is_lax, steps })
    }

    fn find(&self, value: &Value) -> Option<Value> {
        find(value, &self.steps)
    }
}

fn find(value: &Value, steps: &[Step]) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    match step {
        Step::Key(key) => find(value.get(key)?, rest),
        Step::Index(index) => find(value.get(index)?, rest),
        Step::All => {
            let all: Vec<_> = match value {
                Value::Array(all) => all.iter().filter_map(|one| find(one, rest)).collect(),
                Value::Object(all) => all.values().filter_map(|one| find(one, rest)).collect(),
                _ => return None,
            };
            Some(Value::Array(all))
        }
    }
}

fn json_value(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, paths) = (call.texts(0)?, call.texts(1)?);
    let or = |at: usize| if call.has(at) { call.texts(at).map(Some) } else { Ok(None) };
    let (on_empty, on_error) = (or(2)?, or(3)?);
    call.make_texts(|row| {
        let text = texts.get(row)?;
        let instead = |of: &Option<crate::define::Texts>| of.as_ref().and_then(|of| of.get(row)).map(str::to_owned);
        let (Some(path), Ok(value)) = (Path::new(paths.get(row)?), serde_json::from_str::<Value>(text)) else {
            return instead(&on_error);
        };
        match path.find(&value) {
            Some(Value::String(text)) => Some(text),
            Some(Value::Object(_) | Value::Array(_)) => instead(&on_error),
            Some(Value::Null) => instead(&on_empty),
            Some(other) => Some(other.to_string()),
            None if path.is_lax => instead(&on_empty),
            None => instead(&on_error),
        }
    })
}

fn json_query(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, paths) = (call.texts(0)?, call.texts(1)?);
    let wrappers = if call.has(2) { Some(call.texts(2)?) } else { None };
    call.make_texts(|row| {
        let value: Value = serde_json::from_str(texts.get(row)?).ok()?;
        let found = Path::new(paths.get(row)?)?.find(&value)?;
        let is_made_of_parts = found.is_object() || found.is_array();
        match wrappers.as_ref().and_then(|wrappers| wrappers.get(row)) {
            Some("UNCONDITIONAL") => Some(Value::Array(vec![found]).to_string()),
            Some("CONDITIONAL") if !is_made_of_parts => Some(Value::Array(vec![found]).to_string()),
            _ => is_made_of_parts.then(|| found.to_string()),
        }
    })
}

/// A value as JSON.
fn value_of(of: &ArrayRef, row: usize, cast: Cast) -> Result<Value> {
    if of.is_null(row) {
        return Ok(Value::Null);
    }
    let one = of.slice(row, 1);
    let all =
        |elements: &ArrayRef| (0..elements.len()).map(|at| value_of(elements, at, cast)).collect::<Result<Vec<_>>>();
    Ok(match of.data_type() {
        DataType::Boolean => Value::Bool(of.as_boolean().value(row)),
        DataType::List(_) => Value::Array(all(&of.as_list::<i32>().value(row))?),
        DataType::Map(..) => {
            let entries = of.as_map().value(row);
            let keys = cast.show(entries.column(0))?;
            let keys = keys.as_string::<i32>().iter().map(|key| key.unwrap_or_default().to_owned());
            Value::Object(keys.zip(all(entries.column(1))?).collect::<Map<_, _>>())
        }
        DataType::Struct(fields) => {
            let columns = of.as_struct().columns();
            let named =
                |(field, column): (&Arc<Field>, &ArrayRef)| Ok((field.name().clone(), value_of(column, row, cast)?));
            Value::Object(fields.iter().zip(columns).map(named).collect::<Result<Map<_, _>>>()?)
        }
        of => {
            let shown = cast.show(&one)?;
            let shown = shown.as_string::<i32>().value(0);
            match of {
                DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => {
                    shown.parse().ok().and_then(Number::from_f64).map_or_else(|| Value::from(shown), Value::Number)
                }
                DataType::Timestamp(..) => Value::from(shown.replacen(' ', "T", 1)),
                _ if is_integer(of) => shown.parse::<i64>().map_or(Value::Null, Value::from),
                _ => Value::from(shown),
            }
        }
    })
}

fn json_object(call: &Call<'_>) -> Result<ArrayRef> {
    if call.columns.len().is_multiple_of(2) {
        return Err(user_error("JSON_OBJECT needs a value for each key"));
    }
    let cast = Cast { zone: call.zone, is_try: true };
    let with_nulls = call.bools(0)?;
    let columns = (1..call.columns.len()).map(|at| call.array(at)).collect::<Result<Vec<_>>>()?;
    call.try_texts(|row| {
        let mut made = Map::new();
        for pair in columns.chunks(2) {
            let key = cast.show(&pair[0].slice(row, 1))?;
            let value = value_of(&pair[1], row, cast)?;
            if !value.is_null() || with_nulls.get(row) != Some(false) {
                made.insert(key.as_string::<i32>().value(0).to_owned(), value);
            }
        }
        Ok(Some(Value::Object(made).to_string()))
    })
}

fn json_array(call: &Call<'_>) -> Result<ArrayRef> {
    let cast = Cast { zone: call.zone, is_try: true };
    let with_nulls = call.bools(0)?;
    let columns = (1..call.columns.len()).map(|at| call.array(at)).collect::<Result<Vec<_>>>()?;
    call.try_texts(|row| {
        let mut made = columns.iter().map(|column| value_of(column, row, cast)).collect::<Result<Vec<_>>>()?;
        if with_nulls.get(row) != Some(true) {
            made.retain(|value| !value.is_null());
        }
        Ok(Some(Value::Array(made).to_string()))
    })
}
