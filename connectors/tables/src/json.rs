//! `json`: an object a line, with the conversions of Flink's `JsonToRowDataConverters` and back.
//!
//! A document is not taken apart into values: the text of each field that is wanted goes straight into its column. So numbers
//! are as exact as their columns, and what is not wanted costs no more than finding its end.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Decimal128Array, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, SchemaRef, Time32MillisecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flott_chunk::display::write_value;
use flott_chunk::{Chunk, batch_of};
use flott_core::{Error, Result};
use flott_formats::Encoder;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::{SmallVec, smallvec};

use crate::column::{Column, RowColumn, columns_of};
use crate::lines::{LineDecoder, LineRows};
use crate::options::Options;
use crate::scalar;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How timestamps are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampFormat {
    /// `2024-01-01 12:34:56.789`
    #[default]
    Sql,
    /// `2024-01-01T12:34:56.789`
    Iso8601,
}

impl TimestampFormat {
    fn separator(self) -> char {
        match self {
            Self::Sql => ' ',
            Self::Iso8601 => 'T',
        }
    }
}

/// Flink's `json.*` options.
#[derive(Clone, Debug, Default)]
pub struct JsonOptions {
    /// Whether a field that is not there is an error, else null.
    pub fail_on_missing_field: bool,
    /// Whether what cannot be read is null, and a line that is no object is left out.
    pub ignore_parse_errors: bool,
    /// How timestamps are written.
    pub timestamps: TimestampFormat,
    /// Whether decimals are written without exponents.
    pub plain_decimals: bool,
    /// Whether fields that are null are not written.
    pub ignore_nulls: bool,
}

impl JsonOptions {
    /// Reads `json.*`.
    pub fn read(options: &Options) -> Result<Self> {
        let (missing, malformed) = ("json.fail-on-missing-field", "json.ignore-parse-errors");
        let read = Self { fail_on_missing_field: options.flag(missing, false)?, ..Self::read_common(options, "json")? };
        if read.fail_on_missing_field && read.ignore_parse_errors {
            return Err(Error::input(format!(
                "table '{}': {missing} and {malformed} cannot both be true",
                options.table()
            )));
        }
        Ok(read)
    }

    /// Reads those of `prefix.*` that all formats in JSON have, such as `debezium-json.ignore-parse-errors`.
    pub(crate) fn read_common(options: &Options, prefix: &str) -> Result<Self> {
        let key = |name: &str| format!("{prefix}.{name}");
        let null_key = key("map-null-key.mode");
        if let Some(mode) = options.get(&null_key)
            && !mode.eq_ignore_ascii_case("fail")
        {
            return Err(options.wrong(&null_key, mode, "FAIL, the only mode that there is yet"));
        }
        Ok(Self {
            fail_on_missing_field: false,
            ignore_parse_errors: options.flag(&key("ignore-parse-errors"), false)?,
            timestamps: options
                .choice(
                    &key("timestamp-format.standard"),
                    &[("SQL", TimestampFormat::Sql), ("ISO-8601", TimestampFormat::Iso8601)],
                )?
                .unwrap_or_default(),
            plain_decimals: options.flag(&key("encode.decimal-as-plain-number"), false)?,
            ignore_nulls: options.flag(&key("encode.ignore-null-fields"), false)?,
        })
    }
}

/// Fills the columns of a table with the fields of objects.
#[derive(Debug)]
pub struct JsonRows {
    schema: SchemaRef,
    options: JsonOptions,
    columns: Vec<Column>,
    places: HashMap<String, usize>,
    rows: usize,
}

impl JsonRows {
    /// For columns of `schema`, by the names of fields.
    pub fn new(schema: &SchemaRef, options: JsonOptions) -> Result<Self> {
        let columns = columns_of(schema)?;
        let places = schema.fields().iter().enumerate().map(|(at, field)| (field.name().clone(), at)).collect();
        Ok(Self { schema: Arc::clone(schema), options, columns, places, rows: 0 })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Appends an object as a row.
    ///
    /// # Errors
    /// It is no object, and nothing is appended; or which field cannot be read, and why: then
    /// [`JsonRows::clear`] is all that may follow.
    pub fn push(&mut self, text: &[u8]) -> Result<(), String> {
        let fields = self.fields_of(text)?;
        self.push_fields(&fields)
    }

    /// The fields of an object, one for each column; nothing is appended.
    fn fields_of<'a>(&self, text: &'a [u8]) -> Result<Fields<'a>, String> {
        if let Ok(text) = std::str::from_utf8(text) {
            let mut fields: Fields<'a> = smallvec![None; self.columns.len()];
            if scan::plain(text, |name, before| self.place(name, before), &mut fields) {
                return Ok(fields);
            }
        }
        members(text, &|name| self.places.get(name).copied(), self.columns.len())
    }

    /// The column of a name, which is looked for first behind the one before.
    #[inline]
    fn place(&self, name: &str, before: Option<usize>) -> Option<usize> {
        /// Beyond so many it is not quicker to look at all names.
        const NAMES_MAX: usize = 16;
        let names = self.schema.fields();
        let next = before.map_or(0, |before| before + 1);
        if names.get(next).is_some_and(|field| field.name() == name) {
            return Some(next);
        }
        if names.len() > NAMES_MAX {
            return self.places.get(name).copied();
        }
        names.iter().position(|field| field.name() == name)
    }

    /// Appends fields as a row. It cannot fail where what is malformed is null.
    fn push_fields(&mut self, fields: &Fields<'_>) -> Result<(), String> {
        push_fields(&mut self.columns, fields, &|at| self.schema.field(at).name(), &self.options)?;
        self.rows += 1;
        Ok(())
    }

    /// Forgets all rows.
    pub fn clear(&mut self) -> Result<()> {
        self.columns = columns_of(&self.schema)?;
        self.rows = 0;
        Ok(())
    }

    /// The rows so far; there are none then.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(Column::finish).collect::<Result<_>>()?;
        batch_of(&self.schema, columns, std::mem::take(&mut self.rows))
    }
}

/// Appends a value as JSON has it.
pub(crate) fn write_scalar(array: &dyn Array, row: usize, plain_decimals: bool, out: &mut String) -> Result<()> {
    write_json(array, row, &JsonOptions { plain_decimals, ..JsonOptions::default() }, out)
}

/// serde_json counts lines in what it was given, which is one line.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]);
    match error.is_data() {
        true => what.to_owned(),
        false => format!("column {}: {what}", error.column()),
    }
}

/// The texts of the fields of an object that are wanted, each at the place of its column.
type Fields<'a> = SmallVec<[Option<&'a str>; 16]>;

/// Finds the fields of an object, all of which is read before any of them is looked at.
struct Object<'a> {
    places: &'a dyn Fn(&str) -> Option<usize>,
    columns: usize,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = Fields<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Fields<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields: Fields<'de> = smallvec![None; self.columns];
        while let Some(name) = map.next_key::<Key<'de>>()? {
            match (self.places)(&name.0) {
                // Of a name that comes twice the last counts, as in Jackson.
                Some(place) => fields[place] = Some(map.next_value::<&RawValue>()?.get()),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields)
    }
}

/// Those members of an object that have a place.
fn members<'a>(text: &'a [u8], places: &dyn Fn(&str) -> Option<usize>, columns: usize) -> Result<Fields<'a>, String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let fields = Object { places, columns }.deserialize(&mut json).and_then(|fields| json.end().map(|()| fields));
    fields.map_err(|error| reason(&error))
}

/// Appends the fields of an object, one to each column.
fn push_fields<'a>(
    columns: &mut [Column],
    fields: &Fields<'_>,
    name_of: &dyn Fn(usize) -> &'a String,
    options: &JsonOptions,
) -> Result<(), String> {
    for (at, (column, field)) in columns.iter_mut().zip(fields).enumerate() {
        match field {
            Some(value) => {
                push_or_null(column, value, options).map_err(|reason| format!("field '{}': {reason}", name_of(at)))?
            }
            None if options.fail_on_missing_field => return Err(format!("field '{}' is missing", name_of(at))),
            None => column.push_null(),
        }
    }
    Ok(())
}

/// A name, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The text of a scalar: of a string its content, of anything else its JSON.
fn scalar_text(raw: &str) -> Result<Cow<'_, str>, String> {
    if !raw.starts_with('"') {
        return Ok(Cow::Borrowed(raw));
    }
    let inner = &raw[1..raw.len() - 1];
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).map(Cow::Owned).map_err(|error| reason(&error))
}

fn shown(raw: &str) -> String {
    let short: String = raw.chars().take(60).collect();
    if short.len() < raw.len() { format!("{short}…") } else { short }
}

/// Appends a value by its JSON.
fn push_raw(column: &mut Column, raw: &str, options: &JsonOptions) -> Result<(), String> {
    if raw == "null" {
        column.push_null();
        return Ok(());
    }
    let wrong = |what: &str| format!("{} is not {what}", shown(raw));
    macro_rules! integer {
        ($values:expr, $type:ty, $what:literal) => {{
            let text = scalar_text(raw)?;
            let value = match text.trim().parse::<$type>() {
                Ok(value) => value,
                // As Jackson's intValue: a number with a fraction loses it.
                Err(_) if !raw.starts_with('"') => {
                    let value: f64 = text.parse().map_err(|_| wrong($what))?;
                    let value = value.trunc();
                    if value < <$type>::MIN as f64 || value > <$type>::MAX as f64 {
                        return Err(wrong($what));
                    }
                    value as $type
                }
                Err(_) => return Err(wrong($what)),
            };
            $values.append_value(value);
        }};
    }
    match column {
        Column::Boolean(values) => values.append_value(scalar_text(raw)?.trim().eq_ignore_ascii_case("true")),
        Column::Int8(values) => integer!(values, i8, "a TINYINT"),
        Column::Int16(values) => integer!(values, i16, "a SMALLINT"),
        Column::Int32(values) => integer!(values, i32, "an INT"),
        Column::Int64(values) => integer!(values, i64, "a BIGINT"),
        Column::Float32(values) => {
            values.append_value(scalar_text(raw)?.trim().parse().map_err(|_| wrong("a FLOAT"))?);
        }
        Column::Float64(values) => {
            values.append_value(scalar_text(raw)?.trim().parse().map_err(|_| wrong("a DOUBLE"))?);
        }
        Column::Decimal(values, precision, scale) => {
            let text = scalar_text(raw)?;
            values.append_option(scalar::decimal(text.trim(), *precision, *scale).ok_or_else(|| wrong("a DECIMAL"))?);
        }
        Column::Text(values) => values.append_value(compact(raw)?),
        Column::Bytes(values) => {
            let text = scalar_text(raw)?;
            values.append_value(STANDARD.decode(text.as_bytes()).map_err(|_| wrong("BYTES in base64"))?);
        }
        Column::Date(values) => {
            values.append_value(scalar::date(scalar_text(raw)?.trim()).ok_or_else(|| wrong("a DATE"))?);
        }
        Column::Time(values) => {
            let text = scalar_text(raw)?;
            let nanos = scalar::time(text.trim().trim_end_matches('Z')).ok_or_else(|| wrong("a TIME"))?;
            values.append_value((nanos / 1_000_000) as i32);
        }
        Column::Timestamp(values) => {
            let text = scalar_text(raw)?;
            let local = match values.is_instant() {
                true => text.strip_suffix('Z').ok_or_else(|| wrong("a TIMESTAMP_LTZ, which ends in Z"))?,
                false => &text,
            };
            let nanos = scalar::timestamp(local, options.timestamps.separator());
            if !nanos.is_some_and(|nanos| values.push(nanos)) {
                return Err(wrong(match options.timestamps {
                    TimestampFormat::Sql => "a TIMESTAMP such as '2024-01-01 12:34:56.789'",
                    TimestampFormat::Iso8601 => "a TIMESTAMP such as '2024-01-01T12:34:56.789'",
                }));
            }
        }
        Column::List(list) => {
            let mut elements: Vec<&RawValue> = Vec::new();
            collect(raw, &mut elements).map_err(|_| wrong("an ARRAY"))?;
            for element in elements {
                push_or_null(&mut list.elements, element.get(), options)?;
            }
            list.end();
        }
        Column::Map(map) => {
            let mut json = serde_json::Deserializer::from_str(raw);
            let mut entries = Vec::new();
            json.deserialize_map(Entries(&mut entries)).map_err(|_| wrong("a MAP"))?;
            for (key, value) in entries {
                let key = serde_json::to_string(&key.0).map_err(|error| reason(&error))?;
                push_raw(&mut map.keys, &key, options)?;
                push_or_null(&mut map.values, value.get(), options)?;
            }
            map.end();
        }
        Column::Row(row) => {
            if !raw.starts_with('{') {
                return Err(wrong("a ROW"));
            }
            let RowColumn { fields, columns, .. } = row;
            let place = |name: &str| fields.iter().position(|field| field.name() == name);
            let object = Object { places: &place, columns: columns.len() };
            let found = object.deserialize(&mut serde_json::Deserializer::from_str(raw));
            let found = found.map_err(|error| reason(&error))?;
            push_fields(columns, &found, &|at| fields[at].name(), options)?;
            row.end();
        }
    }
    Ok(())
}

fn push_or_null(column: &mut Column, raw: &str, options: &JsonOptions) -> Result<(), String> {
    match push_raw(column, raw, options) {
        Err(_) if options.ignore_parse_errors => {
            column.push_null();
            Ok(())
        }
        result => result,
    }
}

/// A value as text: strings as they are, objects and arrays without blanks.
fn compact(raw: &str) -> Result<Cow<'_, str>, String> {
    if !raw.starts_with(['{', '[']) {
        return scalar_text(raw);
    }
    let (mut out, mut in_string, mut is_escaped) = (String::with_capacity(raw.len()), false, false);
    for character in raw.chars() {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            in_string = character == '"';
        }
        out.push(character);
    }
    Ok(Cow::Owned(out))
}

/// The elements of an array.
fn collect<'a>(raw: &'a str, elements: &mut Vec<&'a RawValue>) -> Result<(), serde_json::Error> {
    struct Elements<'b, 'a>(&'b mut Vec<&'a RawValue>);
    impl<'a> Visitor<'a> for Elements<'_, 'a> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'a>>(self, mut sequence: A) -> Result<(), A::Error> {
            while let Some(element) = sequence.next_element()? {
                self.0.push(element);
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(raw).deserialize_seq(Elements(elements))
}

/// The entries of an object.
struct Entries<'b, 'a>(&'b mut Vec<(Key<'a>, &'a RawValue)>);

impl<'a> Visitor<'a> for Entries<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            self.0.push((key, map.next_value()?));
        }
        Ok(())
    }
}

/// Makes chunks of lines.
pub type JsonDecoder = LineDecoder<JsonRows>;

impl JsonDecoder {
    /// For the columns of `schema`.
    pub fn new(schema: &SchemaRef, options: JsonOptions) -> Result<Self> {
        Ok(Self::of(JsonRows::new(schema, options)?))
    }
}

/// The document of a line; none if it is blank.
fn document(line: &[u8]) -> Option<&[u8]> {
    let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    (!text.is_empty()).then_some(text)
}

impl LineRows for JsonRows {
    fn rows(&self) -> usize {
        self.len()
    }

    fn push_line(&mut self, line: &[u8]) -> Result<(), String> {
        document(line).map_or(Ok(()), |text| self.push(text))
    }

    fn skips_malformed(&self) -> bool {
        self.options.ignore_parse_errors
    }

    fn clear(&mut self) -> Result<()> {
        self.clear()
    }

    fn finish(&mut self) -> Result<Chunk> {
        self.finish().map(Chunk::inserts)
    }
}

/// Writes rows as lines.
pub struct JsonEncoder {
    options: JsonOptions,
    text: String,
}

impl JsonEncoder {
    /// With these options.
    pub fn new(options: JsonOptions) -> Self {
        Self { options, text: String::new() }
    }
}

impl Encoder<Chunk> for JsonEncoder {
    fn encode(&mut self, chunks: &[Chunk], _: bool, out: &mut Vec<u8>) -> Result<()> {
        for chunk in chunks {
            for row in 0..chunk.len() {
                self.text.clear();
                write_object(&chunk.batch, row, &self.options, &mut self.text)?;
                out.extend_from_slice(self.text.as_bytes());
                out.push(b'\n');
            }
        }
        Ok(())
    }
}

/// Appends a row as an object.
pub fn write_object(batch: &RecordBatch, row: usize, options: &JsonOptions, out: &mut String) -> Result<()> {
    let schema = batch.schema_ref();
    let fields =
        schema.fields().iter().map(|field| field.name().as_str()).zip(batch.columns().iter().map(AsRef::as_ref));
    write_fields(fields, row, options, out)
}

fn write_fields<'a>(
    fields: impl Iterator<Item = (&'a str, &'a dyn Array)>,
    row: usize,
    options: &JsonOptions,
    out: &mut String,
) -> Result<()> {
    out.push('{');
    let mut is_first = true;
    for (name, column) in fields {
        if options.ignore_nulls && column.is_null(row) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        write_string(name, out)?;
        out.push(':');
        write_json(column, row, options, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_string(text: &str, out: &mut String) -> Result<()> {
    out.push_str(&serde_json::to_string(text).map_err(|error| Error::system(format!("writing JSON: {error}")))?);
    Ok(())
}

fn write_json(array: &dyn Array, row: usize, options: &JsonOptions, out: &mut String) -> Result<()> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    macro_rules! number {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row)
        };
    }
    let clock = |nanos: i128, zone: &str, out: &mut String| {
        let day = nanos.div_euclid(86_400_000_000_000);
        let date = arrow::array::Date32Array::from(vec![day as i32]);
        let rest = nanos.rem_euclid(86_400_000_000_000);
        out.push('"');
        write_value(&date, 0, out);
        out.push(options.timestamps.separator());
        write_clock(rest, out);
        out.push_str(zone);
        out.push('"');
    };
    match array.data_type() {
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            write_value(array, row, out)
        }
        DataType::Float32 if number!(Float32Type).is_finite() => write_value(array, row, out),
        DataType::Float64 if number!(Float64Type).is_finite() => write_value(array, row, out),
        // As Jackson: JSON has no such numbers.
        DataType::Float32 | DataType::Float64 => {
            out.push('"');
            write_value(array, row, out);
            out.push('"');
        }
        DataType::Decimal128(_, scale) => {
            if options.plain_decimals {
                write_plain(number!(Decimal128Type), *scale, out);
            } else {
                write_short(number!(Decimal128Type), *scale, out);
            }
        }
        DataType::Utf8 => write_string(array.as_string::<i32>().value(row), out)?,
        DataType::Binary => {
            out.push('"');
            out.push_str(&STANDARD.encode(array.as_binary::<i32>().value(row)));
            out.push('"');
        }
        DataType::Date32 => {
            let date = arrow::array::Date32Array::from(vec![number!(Date32Type)]);
            out.push('"');
            write_value(&date, 0, out);
            out.push('"');
        }
        DataType::Time32(TimeUnit::Millisecond) => {
            out.push('"');
            write_clock(i128::from(number!(Time32MillisecondType)) * 1_000_000, out);
            out.push('"');
        }
        DataType::Timestamp(unit, zone) => {
            let nanos = match unit {
                TimeUnit::Second => i128::from(number!(TimestampSecondType)) * 1_000_000_000,
                TimeUnit::Millisecond => i128::from(number!(TimestampMillisecondType)) * 1_000_000,
                TimeUnit::Microsecond => i128::from(number!(TimestampMicrosecondType)) * 1000,
                TimeUnit::Nanosecond => i128::from(number!(TimestampNanosecondType)),
            };
            clock(nanos, if zone.is_some() { "Z" } else { "" }, out);
        }
        DataType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            out.push('[');
            for element in 0..elements.len() {
                if element > 0 {
                    out.push(',');
                }
                write_json(&elements, element, options, out)?;
            }
            out.push(']');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let keys = entries.column(0);
            out.push('{');
            for entry in 0..entries.len() {
                if entry > 0 {
                    out.push(',');
                }
                if keys.is_null(entry) {
                    return Err(Error::user_code("a MAP with a null as key cannot be written as JSON"));
                }
                let mut key = String::new();
                write_value(keys, entry, &mut key);
                write_string(&key, out)?;
                out.push(':');
                write_json(entries.column(1), entry, options, out)?;
            }
            out.push('}');
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(AsRef::as_ref);
            write_fields(fields.iter().map(|field| field.name().as_str()).zip(columns), row, options, out)?;
        }
        other => return Err(Error::input(format!("columns of the type {other} cannot be written as JSON"))),
    }
    Ok(())
}

/// `12:34:56`, and as many digits behind it as there are.
fn write_clock(nanos: i128, out: &mut String) {
    let (seconds, fraction) = ((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32);
    // Writing to a string cannot fail.
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let _ = write!(out, ".{}", format!("{fraction:09}").trim_end_matches('0'));
    }
}

/// A decimal without zeros at its end, as Jackson has it: `12.5` for 12.50, and `1E+2` for 100.
fn write_short(mut value: i128, mut scale: i8, out: &mut String) {
    while value != 0 && value % 10 == 0 {
        (value, scale) = (value / 10, scale - 1);
    }
    scale = if value == 0 { 0 } else { scale };
    let exponent = value.unsigned_abs().checked_ilog10().map_or(0, |digits| digits as i32) - i32::from(scale);
    if scale >= 0 && exponent >= -6 {
        write_plain(value, scale, out);
    } else {
        let one = Decimal128Array::from(vec![value]).with_data_type(DataType::Decimal128(38, scale));
        write_value(&one, 0, out);
    }
}

fn write_plain(value: i128, scale: i8, out: &mut String) {
    let scale = usize::from(scale.max(0).unsigned_abs());
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if fraction.is_empty() { "" } else { "." };
    let _ = write!(out, "{}{whole}{point}{fraction}", if value < 0 { "-" } else { "" });
}

mod changes;
mod scan;

pub use changes::{ChangeDecoder, ChangeEncoder, ChangeFormat, ChangeOptions, ChangeRows};

#[cfg(test)]
mod tests;
