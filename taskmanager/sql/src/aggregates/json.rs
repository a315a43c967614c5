//! Values as JSON, as Flink's aggregates put them out.

use std::collections::BTreeMap;
use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type};
use flott_chunk::display::write_value;
use flott_core::{Error, Result};

/// Whether values of a type have a form in JSON here; if not, why.
pub(super) fn check(data_type: &DataType) -> Result<(), String> {
    match data_type {
        DataType::Null | DataType::Utf8 | DataType::Boolean | DataType::Decimal128(..) => Ok(()),
        other if other.is_signed_integer() => Ok(()),
        DataType::Float32 | DataType::Float64 => Ok(()),
        other => Err(format!("values of the type {other} cannot be put into JSON yet: CAST them to STRING")),
    }
}

/// An array of the values of a column.
pub(super) fn array(columns: Vec<ArrayRef>) -> Result<String> {
    let column = columns.first().ok_or_else(|| Error::system("a JSON array has no values"))?;
    let mut out = String::from("[");
    for row in 0..column.len() {
        if row > 0 {
            out.push(',');
        }
        write_json(column, row, &mut out);
    }
    out.push(']');
    Ok(out)
}

/// An object of keys and values. Keys are sorted; of equal ones the last counts.
pub(super) fn object(columns: Vec<ArrayRef>, absent_on_null: bool) -> Result<String> {
    let [keys, values] = &columns[..] else { return Err(Error::system("a JSON object has no keys and values")) };
    let keys = keys.as_string_opt::<i32>().ok_or_else(|| Error::system("the keys of a JSON object are no texts"))?;
    let mut pairs: BTreeMap<&str, String> = BTreeMap::new();
    for row in 0..keys.len() {
        if absent_on_null && values.is_null(row) {
            continue;
        }
        let mut value = String::new();
        write_json(values, row, &mut value);
        pairs.insert(keys.value(row), value);
    }
    let mut out = String::from("{");
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(key, &mut out);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Ok(out)
}

fn write_json(array: &ArrayRef, row: usize, out: &mut String) {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        out.push_str("null");
        return;
    }
    let is_finite = match array.data_type() {
        DataType::Utf8 => return write_text(array.as_string::<i32>().value(row), out),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_finite(),
        DataType::Float64 => array.as_primitive::<arrow::datatypes::Float64Type>().value(row).is_finite(),
        _ => true,
    };
    let mut text = String::new();
    write_value(array, row, &mut text);
    match array.data_type() {
        _ if !is_finite => write_text(&text, out),
        // Flink writes a FLOAT as a decimal, whose exponent has a sign.
        DataType::Float32 => match text.split_once('E') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                let _ = write!(out, "{digits}E+{exponent}");
            }
            _ => out.push_str(&text),
        },
        _ => out.push_str(&text),
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if u32::from(control) < 0x20 => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
