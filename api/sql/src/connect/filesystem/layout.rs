//! Which columns of a table are in its files, which in the names of their folders (`dt=2024-01-01/hr=10/part-…`), and which
//! are known of the files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{CastOptions, cast_with_options, take_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use flott_chunk::display::write_value;
use flott_chunk::{Chunk, batch_of};
use flott_core::{Error, Result};
use flott_filesystem::FilePath;
use flott_sql_runtime::spec::SourceSpec;
use flott_tables::options::Options;
use flott_tables::scalar;

use super::metadata::Metadata;

/// What stands in a folder's name for null and for the empty text.
const DEFAULT_NAME: (&str, &str) = ("partition.default-name", "__DEFAULT_PARTITION__");

/// The partition columns of a table.
pub(in crate::connect) struct Layout {
    table: String,
    /// In the order of the folders, with their positions among the table's columns.
    keys: Vec<(usize, FieldRef)>,
    default_name: String,
}

impl Layout {
    /// The partition columns of a table with these columns; `None` if it has none.
    ///
    /// # Errors
    /// A table cannot be partitioned so.
    pub(in crate::connect) fn new(
        options: &Options,
        schema: &Schema,
        partition_keys: &[String],
    ) -> Result<Option<Self>> {
        let default_name = options.get(DEFAULT_NAME.0).unwrap_or(DEFAULT_NAME.1);
        if partition_keys.is_empty() {
            return Ok(None);
        }
        let table = options.table();
        let refuse = |reason: String| Err(Error::input(format!("table '{table}' is PARTITIONED BY {reason}")));
        if default_name.is_empty() || default_name.contains('/') {
            return Err(options.wrong(DEFAULT_NAME.0, default_name, "the name of a folder"));
        }
        let mut keys = Vec::new();
        for name in partition_keys {
            let Ok(at) = schema.index_of(name) else {
                return refuse(format!("'{name}', which is none of its columns that can be read and written"));
            };
            if name.starts_with(['.', '_']) {
                return refuse(format!("'{name}': readers pass over folders whose names begin with '.' or '_'"));
            }
            let field = Arc::clone(&schema.fields()[at]);
            if !has_name(field.data_type()) {
                return refuse(format!(
                    "'{name}', whose type {} has no form as the name of a folder",
                    field.data_type()
                ));
            }
            keys.push((at, field));
        }
        if keys.len() == schema.fields().len() {
            return refuse("all of its columns, so that nothing is left for its files".to_owned());
        }
        Ok(Some(Self { table: table.to_owned(), keys, default_name: default_name.to_owned() }))
    }

    /// Whether a column of the table, by its position, is in the names of folders.
    pub(super) fn is_key(&self, column: usize) -> bool {
        self.keys.iter().any(|(at, _)| *at == column)
    }

    /// The columns that are in files.
    pub(super) fn file_schema(&self, schema: &Schema) -> SchemaRef {
        let fields = schema.fields().iter().enumerate();
        let fields = fields.filter(|(at, _)| !self.is_key(*at)).map(|(_, field)| Arc::clone(field));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The texts of the partition columns in the path of a file; `None` stands for null.
    fn texts(&self, file: &FilePath) -> Result<Vec<Option<String>>> {
        let path = file.to_string();
        let folders: Vec<&str> = path.split('/').rev().skip(1).collect();
        let text_of = |(_, field): &(usize, FieldRef)| {
            let of = |folder: &&str| {
                let (name, value) = folder.split_once('=')?;
                (unescaped(name) == *field.name()).then(|| unescaped(value))
            };
            match folders.iter().find_map(of) {
                Some(text) => Ok(Some(text).filter(|text| *text != self.default_name)),
                None => Err(Error::input(format!(
                    "{file} lies in no folder '{}=…': files of table '{}' do, since that is a column it is PARTITIONED BY",
                    field.name(),
                    self.table
                ))),
            }
        };
        self.keys.iter().map(text_of).collect()
    }

    /// The values of the partition columns in the path of a file.
    pub(super) fn values(&self, file: &FilePath) -> Result<Vec<ScalarValue>> {
        let texts = self.texts(file)?;
        let value_of = |((_, field), text): (&(usize, FieldRef), Option<String>)| {
            let of = field.data_type();
            let Some(text) = text else {
                return ScalarValue::try_from(of).map_err(|error| Error::system(error.to_string()));
            };
            parsed(&text, of).ok_or_else(|| {
                Error::input(format!(
                    "{file}: '{text}' is no value of the column '{}' of table '{}', whose type is {of}",
                    field.name(),
                    self.table
                ))
            })
        };
        self.keys.iter().zip(texts).map(value_of).collect()
    }

    /// The rows of a chunk by the folder that they go into, without the partition columns.
    pub(super) fn split(&self, chunk: &Chunk) -> Result<Vec<(String, Chunk)>> {
        let keys: Vec<ArrayRef> = self.keys.iter().map(|(at, _)| Arc::clone(chunk.column(*at))).collect();
        let failed = |error: arrow::error::ArrowError| Error::system(format!("partitioning rows: {error}"));
        let fields = keys.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let rows = RowConverter::new(fields).and_then(|converter| converter.convert_columns(&keys)).map_err(failed)?;
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        let mut parts: Vec<Vec<u32>> = Vec::new();
        let mut last: Option<(&[u8], usize)> = None;
        for (at, row) in rows.iter().enumerate() {
            let key = row.data();
            let place = match last {
                // Most rows go where the one before them went.
                Some((before, place)) if before == key => place,
                _ => *places.entry(key).or_insert_with(|| {
                    parts.push(Vec::new());
                    parts.len() - 1
                }),
            };
            last = Some((key, place));
            parts[place].push(at as u32);
        }
        let in_files: Vec<usize> = (0..chunk.batch.num_columns()).filter(|at| !self.is_key(*at)).collect();
        let batch = chunk.batch.project(&in_files).map_err(failed)?;
        let is_one = parts.len() == 1;
        let part_of = |rows: Vec<u32>| -> Result<(String, Chunk)> {
            let folder = self.folder(&keys, rows.first().map_or(0, |row| *row as usize));
            let part = match is_one {
                true => chunk.with_batch(batch.clone()),
                false => {
                    let kinds = rows.iter().map(|row| chunk.kind(*row as usize)).collect();
                    Chunk::new(take_record_batch(&batch, &UInt32Array::from(rows)).map_err(failed)?, kinds)
                }
            };
            Ok((folder, part))
        };
        parts.into_iter().map(part_of).collect()
    }

    /// The folder of a row.
    fn folder(&self, keys: &[ArrayRef], row: usize) -> String {
        let mut folder = String::new();
        let mut text = String::new();
        for ((_, field), column) in self.keys.iter().zip(keys) {
            if !folder.is_empty() {
                folder.push('/');
            }
            text.clear();
            if column.is_valid(row) {
                write_value(column, row, &mut text);
            }
            escape(field.name(), &mut folder);
            folder.push('=');
            escape(if text.is_empty() { &self.default_name } else { &text }, &mut folder);
        }
        folder
    }

    /// That a pattern of times names none but partition columns.
    pub(super) fn check_pattern(&self, pattern: &str) -> Result<()> {
        let mut names: Vec<String> = self.keys.iter().map(|(_, key)| format!("${}", key.name())).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let left = names.iter().fold(pattern.to_owned(), |text, name| text.replace(name, ""));
        match left.find('$') {
            None => Ok(()),
            Some(at) => {
                let name: String = left[at + 1..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                Err(Error::input(format!(
                    "table '{}': the pattern '{pattern}' has '${name}', which is no column that it is PARTITIONED BY",
                    self.table
                )))
            }
        }
    }

    /// The text that says when a partition is: a pattern with its values in it, or the first value.
    pub(super) fn time_text(&self, folder: &str, pattern: Option<&str>) -> String {
        let values = folder.split('/').map(|name| unescaped(name.split_once('=').map_or(name, |(_, value)| value)));
        let mut values: Vec<(String, String)> =
            self.keys.iter().map(|(_, key)| format!("${}", key.name())).zip(values).collect();
        let Some(pattern) = pattern else { return values.first().map(|(_, value)| value.clone()).unwrap_or_default() };
        // Of names that begin alike the longest is meant.
        values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        values.iter().fold(pattern.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// Where the columns are that are read.
#[derive(Clone)]
pub(super) struct Reading {
    /// Those that are in files.
    pub(super) in_files: SchemaRef,
    /// All of them.
    out: SchemaRef,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
enum Place {
    /// In a column of the file.
    File(usize),
    /// In a folder's name.
    Key(usize),
    /// Metadata, whose values stand behind those of all folders' names.
    Known(usize),
}

impl Reading {
    /// Which columns that are read are where.
    pub(super) fn new(spec: &SourceSpec, layout: Option<&Layout>, metadata: &Metadata) -> Self {
        let keys = layout.map_or(&[][..], |layout| &layout.keys[..]);
        let (mut in_files, mut out, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for column in &spec.projection {
            let field = &spec.table_schema.fields()[*column];
            let key = keys.iter().position(|(at, _)| at == column).map(Place::Key);
            let known = || metadata.position(*column).map(|at| Place::Known(keys.len() + at));
            places.push(key.or_else(known).unwrap_or_else(|| {
                in_files.push(Arc::clone(field));
                Place::File(in_files.len() - 1)
            }));
            out.push(Arc::clone(field));
        }
        Self { in_files: Arc::new(Schema::new(in_files)), out: Arc::new(Schema::new(out)), places }
    }

    /// Rows of a file with the values of what is not in it. A file may have columns behind those that are wanted.
    pub(super) fn complete(&self, chunk: &Chunk, values: &[ScalarValue]) -> Result<Chunk> {
        let column = |place: &Place| match place {
            Place::File(at) => Ok(Arc::clone(chunk.column(*at))),
            Place::Key(at) | Place::Known(at) => values[*at].to_array_of_size(chunk.len()),
        };
        let columns = self.places.iter().map(column).collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|error| Error::system(format!("a column that is not in files: {error}")))?;
        Ok(chunk.with_batch(batch_of(&self.out, columns, chunk.len())?))
    }

    /// A row that has the values of folders, and null elsewhere, for conditions over folders alone.
    pub(super) fn row(&self, keys: &[ScalarValue]) -> Result<RecordBatch> {
        let failed = |error: datafusion::error::DataFusionError| Error::system(format!("a partition column: {error}"));
        let mut columns = Vec::new();
        let mut fields = Vec::new();
        for (place, field) in self.places.iter().zip(self.out.fields()) {
            columns.push(match place {
                Place::File(_) | Place::Known(_) => arrow::array::new_null_array(field.data_type(), 1),
                Place::Key(key) => keys[*key].to_array_of_size(1).map_err(failed)?,
            });
            fields.push(Field::new(field.name(), field.data_type().clone(), true));
        }
        batch_of(&Arc::new(Schema::new(fields)), columns, 1)
    }

    /// Whether a column that is read, by its position among them, is in folders' names.
    pub(super) fn is_key(&self, column: usize) -> bool {
        matches!(self.places.get(column), Some(Place::Key(_)))
    }
}

/// Whether values of a type can be names of folders.
fn has_name(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_floating()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Utf8
                | DataType::Date32
                | DataType::Time32(_)
                | DataType::Timestamp(..)
                | DataType::Decimal128(..)
        )
}

/// A value from its text.
fn parsed(text: &str, of: &DataType) -> Option<ScalarValue> {
    match of {
        DataType::Timestamp(unit, zone) => {
            // Flink writes instants as the digits of the session's time zone.
            let digits = if zone.is_some() { text.strip_suffix('Z').unwrap_or(text) } else { text };
            let separator = if digits.contains('T') { 'T' } else { ' ' };
            let nanos = scalar::timestamp(digits, separator)?;
            let in_unit = |nanos_a_unit: i128| i64::try_from(nanos.div_euclid(nanos_a_unit)).ok();
            Some(match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(Some(in_unit(1_000_000_000)?), zone.clone()),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(Some(in_unit(1_000_000)?), zone.clone()),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(Some(in_unit(1000)?), zone.clone()),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(in_unit(1)?), zone.clone()),
            })
        }
        DataType::Time32(_) => {
            let nanos = scalar::time(text)?;
            Some(ScalarValue::Time32Millisecond(i32::try_from(nanos / 1_000_000).ok()))
        }
        DataType::Date32 => scalar::date(text).map(|days| ScalarValue::Date32(Some(days))),
        DataType::Decimal128(precision, scale) => {
            let value = scalar::decimal(text, *precision, *scale)??;
            Some(ScalarValue::Decimal128(Some(value), *precision, *scale))
        }
        _ => {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let value = cast_with_options(&texts, of, &options).ok()?;
            ScalarValue::try_from_array(&value, 0).ok()
        }
    }
}

/// Whether a character of a name is written as its number, as in Hive.
fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f || b"\"#%'*/:=?\\{}[]^".contains(&byte)
}

fn escape(name: &str, out: &mut String) {
    for character in name.chars() {
        match u8::try_from(character) {
            Ok(byte) if is_escaped(byte) => {
                // Writing to a string cannot fail.
                let _ = std::fmt::Write::write_fmt(out, format_args!("%{byte:02X}"));
            }
            _ => out.push(character),
        }
    }
}

/// A name as it was before it was escaped. What is no escape stands for itself.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Int32Array, Int64Array, TimestampMillisecondArray};
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("v", DataType::Int32, true),
            Field::new("s", DataType::Utf8, true),
            Field::new("b", DataType::Boolean, true),
        ])
    }

    fn layout(schema: &Schema, keys: &[&str]) -> Result<Option<Layout>> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        Layout::new(&Options::new("t", [] as [(&str, &str); 0]), schema, &keys)
    }

    #[test]
    fn rows_go_where_flink_puts_them() {
        let texts = ["a", "", "x/y:z=1%2 \"q\" #?*{}[]^\\", "..", "ä \n", "a"];
        let texts: ArrayRef = Arc::new(texts.iter().map(|text| Some(*text)).chain([None]).collect::<StringArray>());
        let bools = [Some(true), Some(false), Some(true), Some(true), None, Some(true), Some(true)];
        let batch = RecordBatch::try_new(
            Arc::new(schema()),
            vec![Arc::new(Int32Array::from_iter_values(1..8)), texts, Arc::new(BooleanArray::from(bools.to_vec()))],
        );
        let layout = layout(&schema(), &["s", "b"]).unwrap().unwrap();
        let parts = layout.split(&Chunk::inserts(batch.unwrap())).unwrap();
        let names: Vec<&str> = parts.iter().map(|(folder, _)| folder.as_str()).collect();
        // What Flink 2.3 makes of these values.
        assert_eq!(
            names,
            [
                "s=a/b=true",
                "s=__DEFAULT_PARTITION__/b=false",
                "s=x%2Fy%3Az%3D1%252 %22q%22 %23%3F%2A%7B%7D%5B%5D%5E%5C/b=true",
                "s=../b=true",
                "s=ä %0A/b=__DEFAULT_PARTITION__",
                "s=__DEFAULT_PARTITION__/b=true",
            ]
        );
        assert_eq!((parts[0].1.len(), parts[0].1.batch.num_columns()), (2, 1));
    }

    #[test]
    fn values_come_back_from_paths() {
        let schema = Schema::new(vec![
            Field::new("v", DataType::Int32, true),
            Field::new("t", DataType::Timestamp(TimeUnit::Millisecond, None), true),
            Field::new("d", DataType::Decimal128(5, 2), true),
            Field::new("n", DataType::Int64, true),
            Field::new("f", DataType::Float32, true),
        ]);
        let layout = layout(&schema, &["t", "d", "n", "f"]).unwrap().unwrap();
        let of = |path: &str| layout.values(&FilePath::parse(path).unwrap());
        let found = of("/data/n=1/t=2024-01-02T10%3A00/d=1.50/n=-7/f=1.0E8/more/part").unwrap();
        let time = ScalarValue::try_from_array(
            &(Arc::new(TimestampMillisecondArray::from(vec![1_704_189_600_000])) as ArrayRef),
            0,
        );
        let number = ScalarValue::try_from_array(&(Arc::new(Int64Array::from(vec![-7])) as ArrayRef), 0);
        assert_eq!(found[0], time.unwrap());
        assert_eq!((&found[1], &found[2]), (&ScalarValue::Decimal128(Some(150), 5, 2), &number.unwrap()));
        assert_eq!(found[3], ScalarValue::Float32(Some(1e8)));
        let nulls = of("/data/t=__DEFAULT_PARTITION__/d=1.50/n=__DEFAULT_PARTITION__/f=1/part").unwrap();
        assert!(nulls[0].is_null() && nulls[2].is_null() && !nulls[1].is_null());
        let error = of("/data/t=__DEFAULT_PARTITION__/d=1.50/n=seven/f=1/part").unwrap_err().to_string();
        assert!(error.contains("'seven' is no value of the column 'n'"), "{error}");
        let error = of("/data/stray").unwrap_err().to_string();
        assert!(error.contains("/data/stray lies in no folder 't=…'"), "{error}");
    }

    #[test]
    fn tables_that_cannot_be_partitioned_so_are_refused() {
        let message = |schema: &Schema, keys: &[&str]| layout(schema, keys).err().unwrap().to_string();
        assert!(layout(&schema(), &[]).unwrap().is_none());
        assert!(message(&schema(), &["x"]).contains("'x', which is none of its columns"));
        assert!(message(&schema(), &["v", "s", "b"]).contains("all of its columns"));
        let of = |name: &str, of: DataType| {
            Schema::new(vec![Field::new(name, of, true), Field::new("v", DataType::Int8, true)])
        };
        assert!(message(&of("_k", DataType::Int32), &["_k"]).contains("begin with '.' or '_'"));
        assert!(message(&of("k", DataType::Binary), &["k"]).contains("has no form"));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in "\\PC{1,20}|[\\x00-\\x7f]{1,20}") {
            let mut escaped = String::new();
            escape(&text, &mut escaped);
            prop_assert_eq!(unescaped(&escaped), text);
            prop_assert!(!escaped.contains(['/', '=', '\0', '\n']));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,10}|%[0-9a-fA-F%]{0,6}") {
            let _ = unescaped(&text);
        }
    }
}
