//! The schema that Flink derives of a table.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use flott_core::{Error, Result};
use serde_json::{Value, json};

use super::AvroOptions;

/// What Flink calls the record of a row.
const NAMESPACE: &str = "org.apache.flink.avro.generated";
const RECORD: &str = "record";

/// The schema of files of a table as JSON, and the columns that are written, in the types that it has.
///
/// # Errors
/// Which column has no form in Avro.
pub fn avro_schema(table: &str, schema: &Schema, options: &AvroOptions) -> Result<(String, SchemaRef)> {
    let mut fields = Vec::new();
    let mut columns: Vec<FieldRef> = Vec::new();
    for field in schema.fields() {
        let refuse = |reason: String| Error::input(format!("table '{table}': the column '{}' {reason}", field.name()));
        let (of, column) = field_of(field, RECORD, options).map_err(refuse)?;
        fields.push(of);
        columns.push(Arc::new(column));
    }
    let record = json!({ "type": "record", "name": RECORD, "namespace": NAMESPACE, "fields": fields });
    Ok((record.to_string(), Arc::new(Schema::new(columns))))
}

/// A field of a record, and the column for it.
fn field_of(field: &Field, record: &str, options: &AvroOptions) -> Result<(Value, Field), String> {
    let name = field.name();
    let is_first = |character: char| character.is_ascii_alphabetic() || character == '_';
    if !name.starts_with(is_first) || !name.chars().all(|c| is_first(c) || c.is_ascii_digit()) {
        return Err(format!("has the name '{name}', and names in Avro have letters, digits and underscores only"));
    }
    let (of, column) = typed(field, &format!("{record}_{name}"), options)?;
    let of = match field.is_nullable() {
        true => json!({ "name": name, "type": of, "default": null }),
        false => json!({ "name": name, "type": of }),
    };
    Ok((of, column))
}

/// The type of what a field holds, and the field for it; `record` is how a record in it is called.
fn typed(field: &Field, record: &str, options: &AvroOptions) -> Result<(Value, Field), String> {
    let (of, data_type) = type_of(field.data_type(), record, options)?;
    let of = if field.is_nullable() { json!(["null", of]) } else { of };
    Ok((of, Field::new(field.name(), data_type, field.is_nullable())))
}

fn type_of(data_type: &DataType, record: &str, options: &AvroOptions) -> Result<(Value, DataType), String> {
    let plain = |name: &str| (json!(name), data_type.clone());
    let logical = |of: &str, name: &str| (json!({ "type": of, "logicalType": name }), data_type.clone());
    Ok(match data_type {
        DataType::Boolean => plain("boolean"),
        DataType::Int8 | DataType::Int16 | DataType::Int32 => (json!("int"), DataType::Int32),
        DataType::Int64 => plain("long"),
        DataType::Float32 => plain("float"),
        DataType::Float64 => plain("double"),
        DataType::Utf8 => plain("string"),
        DataType::Binary => plain("bytes"),
        DataType::Date32 => logical("int", "date"),
        DataType::Time32(TimeUnit::Millisecond) => logical("int", "time-millis"),
        DataType::Decimal128(precision, scale) => (
            json!({ "type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale }),
            data_type.clone(),
        ),
        DataType::Timestamp(unit, zone) => timestamp(*unit, zone.is_some(), options)?,
        DataType::List(element) => {
            let (items, element) = typed(element, record, options)?;
            (json!({ "type": "array", "items": items }), DataType::List(Arc::new(element)))
        }
        DataType::Map(entries, is_sorted) => {
            let DataType::Struct(fields) = entries.data_type() else { return Err(no_form(data_type)) };
            let [key, value] = &fields[..] else { return Err(no_form(data_type)) };
            if key.data_type() != &DataType::Utf8 {
                return Err("is a map or multiset whose keys are no texts, and Avro has no other maps".to_owned());
            }
            let (values, value) = typed(value, record, options)?;
            let fields: Fields = vec![Arc::clone(key), Arc::new(value)].into();
            let entries = Field::new(entries.name(), DataType::Struct(fields), false);
            (json!({ "type": "map", "values": values }), DataType::Map(Arc::new(entries), *is_sorted))
        }
        DataType::Struct(fields) => {
            let mut of_record = Vec::new();
            let mut columns = Vec::new();
            for field in fields {
                let (of, column) = field_of(field, record, options)?;
                of_record.push(of);
                columns.push(column);
            }
            let of = json!({ "type": "record", "name": record, "namespace": NAMESPACE, "fields": of_record });
            (of, DataType::Struct(columns.into()))
        }
        other => return Err(no_form(other)),
    })
}

fn no_form(data_type: &DataType) -> String {
    format!("has the type {data_type}, which Avro has no form for")
}

fn timestamp(unit: TimeUnit, is_instant: bool, options: &AvroOptions) -> Result<(Value, DataType), String> {
    let option = "'avro.timestamp_mapping.legacy' = 'false'";
    let (digits, unit) = match unit {
        TimeUnit::Second | TimeUnit::Millisecond => ("millis", TimeUnit::Millisecond),
        TimeUnit::Microsecond if options.is_legacy => {
            return Err(format!("is a TIMESTAMP of more than 3 digits, which needs {option}"));
        }
        TimeUnit::Microsecond => ("micros", TimeUnit::Microsecond),
        TimeUnit::Nanosecond => {
            return Err("is a TIMESTAMP of more than 6 digits, which Avro has no form for".to_owned());
        }
    };
    if is_instant && options.is_legacy {
        return Err(format!("is a TIMESTAMP_LTZ, which needs {option}"));
    }
    // Of old, digits without a zone stand for those of UTC.
    let is_utc = is_instant || options.is_legacy;
    let name = if is_utc { format!("timestamp-{digits}") } else { format!("local-timestamp-{digits}") };
    let zone = is_utc.then(|| "+00:00".into());
    Ok((json!({ "type": "long", "logicalType": name }), DataType::Timestamp(unit, zone)))
}
