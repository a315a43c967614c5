//! Columns that say of which file a row is: `METADATA FROM 'file.name'`.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, ScalarValue};
use flott_core::{Error, Result};
use flott_filesystem::FilePath;
use flott_formats::FileInfo;
use flott_sql_functions::types::name_of;
use flott_sql_runtime::spec::SourceSpec;

use crate::catalog::suggestion;

/// What there is to know of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// Where it is in its file system or bucket.
    Path,
    /// What stands behind the last '/' of that.
    Name,
    Size,
    ModificationTime,
}

const KEYS: [(&str, Key); 4] = [
    ("file.path", Key::Path),
    ("file.name", Key::Name),
    ("file.size", Key::Size),
    ("file.modification-time", Key::ModificationTime),
];

impl Key {
    /// The type of its column, and whether a column has it.
    fn check(self, of: &DataType) -> (&'static str, bool) {
        match self {
            Self::Path | Self::Name => ("STRING", *of == DataType::Utf8),
            Self::Size => ("BIGINT", *of == DataType::Int64),
            Self::ModificationTime => ("TIMESTAMP_LTZ(3)", matches!(of, DataType::Timestamp(_, Some(_)))),
        }
    }
}

/// The columns of a table that are metadata.
pub(super) struct Metadata {
    /// With their positions among the table's columns.
    columns: Vec<(usize, Key, FieldRef)>,
    /// Whether more than the names of files must be known for those that are read.
    pub(super) needs_info: bool,
}

impl Metadata {
    /// The columns of this table.
    ///
    /// # Errors
    /// Nothing of that name is known of files, or it has another type.
    pub(super) fn new(spec: &SourceSpec) -> Result<Self> {
        let mut columns = Vec::new();
        for (at, name) in &spec.metadata {
            let field = &spec.table_schema.fields()[*at];
            let refuse = |reason: String| {
                Err(Error::input(format!(
                    "table '{}': the column '{}' is the metadata '{name}', {reason}",
                    spec.table,
                    field.name()
                )))
            };
            let Some((_, key)) = KEYS.iter().find(|(known, _)| known == name) else {
                let names = KEYS.map(|(known, _)| known);
                return refuse(format!("but files have {} alone{}", names.join(", "), suggestion(name, names)));
            };
            let (wanted, fits) = key.check(field.data_type());
            if !fits {
                return refuse(format!("which is {wanted}, not {}", name_of(field.data_type())));
            }
            columns.push((*at, *key, FieldRef::clone(field)));
        }
        let is_asked = |(at, key, _): &(usize, Key, FieldRef)| {
            matches!(key, Key::Size | Key::ModificationTime) && spec.projection.contains(at)
        };
        let needs_info = columns.iter().any(is_asked);
        Ok(Self { columns, needs_info })
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Which of them a column of the table is.
    pub(super) fn position(&self, column: usize) -> Option<usize> {
        self.columns.iter().position(|(at, ..)| *at == column)
    }

    /// Their values for rows of a file.
    pub(super) fn values(&self, file: &FilePath, info: FileInfo) -> Result<Vec<ScalarValue>> {
        let path = match file {
            FilePath::Local(path) => path.clone(),
            FilePath::Object { key, .. } => format!("/{key}"),
        };
        let value = |(_, key, field): &(usize, Key, FieldRef)| {
            let value = match key {
                Key::Path => ScalarValue::Utf8(Some(path.clone())),
                Key::Name => ScalarValue::Utf8(path.rsplit('/').next().map(str::to_owned)),
                Key::Size => ScalarValue::Int64(i64::try_from(info.bytes).ok()),
                Key::ModificationTime => ScalarValue::TimestampMillisecond(Some(info.modified_ms), Some("UTC".into())),
            };
            let failed =
                |error: DataFusionError| Error::system(format!("{file}: the column '{}': {error}", field.name()));
            value.cast_to(field.data_type()).map_err(failed)
        };
        self.columns.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema, TimeUnit};

    use super::*;

    fn instant(unit: TimeUnit) -> DataType {
        DataType::Timestamp(unit, Some("UTC".into()))
    }

    /// A table with an INT and these columns, all of which are read.
    fn metadata(columns: &[(&str, DataType)]) -> Result<Metadata> {
        let mut fields = vec![Field::new("v", DataType::Int32, true)];
        fields.extend(columns.iter().map(|(key, of)| Field::new(key.replace('.', "_"), of.clone(), false)));
        Metadata::new(&SourceSpec {
            table: "t".to_owned(),
            options: BTreeMap::new(),
            projection: (0..fields.len()).collect(),
            table_schema: Arc::new(Schema::new(fields)),
            metadata: columns.iter().enumerate().map(|(at, (key, _))| (at + 1, (*key).to_owned())).collect(),
            partition_keys: Vec::new(),
            limit: None,
            filters: Vec::new(),
            is_batch: false,
        })
    }

    #[test]
    fn values_are_of_the_file() {
        let all = metadata(&[
            ("file.modification-time", instant(TimeUnit::Nanosecond)),
            ("file.size", DataType::Int64),
            ("file.name", DataType::Utf8),
            ("file.path", DataType::Utf8),
        ]);
        let all = all.unwrap();
        assert!(all.needs_info && all.position(0).is_none() && all.position(3) == Some(2));
        let info = FileInfo { bytes: 5, modified_ms: -1 };
        let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
        let expected = |path: &str| {
            let time = ScalarValue::TimestampNanosecond(Some(-1_000_000), Some("UTC".into()));
            vec![time, ScalarValue::Int64(Some(5)), text("b.csv"), text(path)]
        };
        for (name, path) in [("/a/b.csv", "/a/b.csv"), ("s3://bucket/a/b.csv", "/a/b.csv")] {
            assert_eq!(all.values(&FilePath::parse(name).unwrap(), info).unwrap(), expected(path), "{name}");
        }
        assert!(!metadata(&[("file.path", DataType::Utf8)]).unwrap().needs_info);
    }

    #[test]
    fn what_files_do_not_have_is_refused() {
        let message = |key: &str, of: DataType| metadata(&[(key, of)]).err().unwrap().to_string();
        let unknown = message("file.nam", DataType::Utf8);
        assert!(unknown.contains("'file_nam' is the metadata 'file.nam', but files have file.path, "), "{unknown}");
        assert!(unknown.ends_with("did you mean 'file.name'?"), "{unknown}");
        assert!(message("file.size", DataType::Int32).contains("which is BIGINT, not INT"));
        let local = DataType::Timestamp(TimeUnit::Millisecond, None);
        assert!(message("file.modification-time", local).contains("which is TIMESTAMP_LTZ(3), not TIMESTAMP(3)"));
    }
}
