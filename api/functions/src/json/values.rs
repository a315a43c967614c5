//! Values of SQL as JSON.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::common::Result;

use super::document::quote;
use super::number;
use crate::cast::Cast;
use crate::define::Zone;
use crate::types::coerce::is_integer;

/// The field of a row that holds JSON instead of a text: what JSON(…) gives, and JSON_OBJECT and JSON_ARRAY take in as it is.
const RAW: &str = "\u{0}json";

/// The type of JSON that is to be taken in as it is.
pub(super) fn raw_type() -> DataType {
    DataType::Struct(Fields::from(vec![Field::new(RAW, DataType::Utf8, true)]))
}

/// The values of a column, ready to be written.
pub(super) enum Source {
    Null,
    Bool(BooleanArray),
    Number(StringArray),
    Text(StringArray),
    Raw(StringArray),
    List(ListArray, Box<Source>),
    /// Keys as texts.
    Map(MapArray, StringArray, Box<Source>),
    /// In the order of their names.
    Row(StructArray, Vec<(String, Source)>),
}

impl Source {
    pub(super) fn new(of: &ArrayRef, zone: Zone) -> Result<Self> {
        let cast = Cast { zone, is_try: true };
        let shown = |of: &ArrayRef| -> Result<StringArray> { Ok(cast.show(of)?.as_string::<i32>().clone()) };
        Ok(match of.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool(of.as_boolean().clone()),
            DataType::List(_) => {
                let list = of.as_list::<i32>();
                Self::List(list.clone(), Box::new(Self::new(list.values(), zone)?))
            }
            DataType::Map(..) => {
                let map = of.as_map();
                Self::Map(map.clone(), shown(map.keys())?, Box::new(Self::new(map.values(), zone)?))
            }
            DataType::Struct(fields) => {
                let row = of.as_struct();
                if *of.data_type() == raw_type() {
                    return Ok(Self::Raw(row.column(0).as_string::<i32>().clone()));
                }
                let named =
                    |(field, column): (&Arc<Field>, &ArrayRef)| Ok((field.name().clone(), Self::new(column, zone)?));
                let mut columns = fields.iter().zip(row.columns()).map(named).collect::<Result<Vec<_>>>()?;
                columns.sort_by(|(left, _), (right, _)| left.cmp(right));
                Self::Row(row.clone(), columns)
            }
            DataType::Binary => {
                let encoded = of.as_binary::<i32>().iter().map(|value| value.map(|value| STANDARD.encode(value)));
                Self::Text(encoded.collect())
            }
            DataType::Timestamp(_, local) => {
                // A point in time is written for the world, not for the session.
                let texts = Cast { zone: Zone::Offset(0), is_try: true }.show(of)?;
                let end = if local.is_some() { "Z" } else { "" };
                let iso = |text: &str| {
                    let text = text.replacen(' ', "T", 1);
                    let text = match text.split_once('.') {
                        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
                        _ => text,
                    };
                    text + end
                };
                Self::Text(texts.as_string::<i32>().iter().map(|text| text.map(iso)).collect())
            }
            DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => Self::Number(shown(of)?),
            other if is_integer(other) => Self::Number(shown(of)?),
            _ => Self::Text(shown(of)?),
        })
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(values) => values.is_null(row),
            Self::Number(values) | Self::Text(values) | Self::Raw(values) => values.is_null(row),
            Self::List(values, _) => values.is_null(row),
            Self::Map(values, ..) => values.is_null(row),
            Self::Row(values, _) => values.is_null(row),
        }
    }

    pub(super) fn write(&self, row: usize, out: &mut String) {
        if self.is_null(row) {
            return out.push_str("null");
        }
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(values) => out.push_str(if values.value(row) { "true" } else { "false" }),
            // JSON has no such numbers: they are texts.
            Self::Number(values) if values.value(row).contains(['N', 'I']) => quote(values.value(row), out),
            Self::Number(values) => number::write(values.value(row), out),
            Self::Text(values) => quote(values.value(row), out),
            Self::Raw(values) => out.push_str(values.value(row)),
            Self::List(list, elements) => {
                out.push('[');
                let (start, end) = (list.value_offsets()[row] as usize, list.value_offsets()[row + 1] as usize);
                for at in start..end {
                    if at > start {
                        out.push(',');
                    }
                    elements.write(at, out);
                }
                out.push(']');
            }
            Self::Map(map, keys, values) => {
                let (start, end) = (map.value_offsets()[row] as usize, map.value_offsets()[row + 1] as usize);
                object((start..end).map(|at| (keys.value(at), values.as_ref(), at)).collect(), out);
            }
            Self::Row(_, columns) => {
                object(columns.iter().map(|(name, column)| (name.as_str(), column, row)).collect(), out);
            }
        }
    }
}

/// In the order of the keys; of equal ones the last counts.
pub(super) fn object(mut entries: Vec<(&str, &Source, usize)>, out: &mut String) {
    entries.sort_by_key(|(left, ..)| *left);
    out.push('{');
    let mut is_first = true;
    for (at, (key, value, row)) in entries.iter().enumerate() {
        if entries.get(at + 1).is_some_and(|(next, ..)| next == key) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        quote(key, out);
        out.push(':');
        value.write(*row, out);
    }
    out.push('}');
}
