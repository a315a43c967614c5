//! A state's entries as rows of a table, which is what a savepoint holds of it.
//!
//! A row has the columns `key_group`, `key`, `namespace` and `value`; the last two are left out where their type is
//! `()`. Each is one column, whatever its type:
//!
//! | Rust | Arrow |
//! |---|---|
//! | `bool`, integers up to 64 bits, floats | the same |
//! | `char` | `UInt32`, its code point |
//! | `String`, and what serde shows to people as text, such as addresses and UUIDs | `LargeUtf8` |
//! | `Vec<u8>`, bytes | `LargeBinary` |
//! | `Vec`, sets, arrays of more than four elements | `LargeList` |
//! | `BTreeMap`, `HashMap` | `Map` |
//! | structs; tuples, whose fields are named `0`, `1`, … | `Struct` |
//! | enums without data | `LargeUtf8`, the variant's name |
//! | `Option` | the same, nullable |
//! | everything else: enums with data, `Option<Option<_>>`, 128 bits, recursive types | `LargeBinary` |
//!
//! "Everything else" is meant for the whole column: if a part of the value has no Arrow form, the column holds the
//! value in the form of [`flott_core::codec`]. It is as safe, but nobody else can read it, and its type cannot change.
//!
//! **What is guaranteed.** Nothing is written that is known to read back as something else. [`columns_of`] puts values
//! of the type, with each variant of its enums, with and without its optional parts, through Arrow and back: what has not
//! the same bytes then (in the codec's form) gets a binary column. A type whose `Serialize` or `Deserialize` depends on the data
//! could still deceive that, so each conversion reads its first rows back and compares their bytes, except for the
//! order in maps and lists, since a `HashMap` has none.
//!
//! **How rows are made.** From the codec's bytes, as the column's shape says that they are, without a value of the user's type,
//! where samples of the type give the same arrays in this way as through serde. Where they do not, since the type shows
//! itself to people as something else than to programs, serde makes the column out of values.
//!
//! **Other versions of a type** read rows by the names of fields, with serde's own rules: fields may be removed,
//! added with `#[serde(default)]` or as an `Option`, renamed with `#[serde(alias = "…")]`, made optional, and
//! made wider where no value is lost. [`StateColumns::compare`] tells before anything is read.
//! Entries of a checkpoint, which are in the codec's form, are read in the same way: the shape in the old schema says what
//! their bytes are, and [`StateColumns::compare_entries`] whether it does.
//!
//! - `shape`: what a type looks like, and its Arrow form
//! - `trace`: how that is found out
//! - `layout`: the columns of a state, and the text that describes them
//! - `evolution`: what another version of a type makes of rows and entries
//! - `rows`: from entries to rows and back; `writer`: one column of them
//! - `arrays`: Arrow arrays from bytes of a shape; `raw`: what these bytes are made of
//! - `values`: values of another version of a type, from bytes of its shape
//! - `file`: rows in Parquet

use std::sync::Arc;

pub use arrow::array::RecordBatch;
use arrow::array::{Array, UInt16Array};
use arrow::datatypes::SchemaRef;
use flott_core::key_group::KeyGroup;
use flott_core::{Data, Error, Result};

mod arrays;
mod evolution;
mod file;
mod layout;
mod raw;
mod rows;
mod shape;
#[cfg(test)]
mod tests;
mod trace;
mod values;
mod writer;

pub use file::{SectionVisitor, read_table, write_table, write_table_to};
pub use rows::read_rows;
pub(crate) use values::OldValues;

/// The columns of one state.
pub trait StateColumns: Send + Sync {
    /// What manifests say about the columns, as JSON. Equal types have equal texts, but for what a build found out about them
    /// besides.
    fn schema(&self) -> &str;

    /// What reading rows that were written under `schema`, the text of another build, would do.
    fn compare(&self, schema: &str) -> Compatibility;

    /// What reading entries in the private form that were written under `schema` would do.
    fn compare_entries(&self, schema: &str) -> Compatibility;

    /// The entries of a base section as rows.
    fn to_rows(&self, group: KeyGroup, entries: u64, body: &[u8]) -> Result<RecordBatch>;

    /// Like [`Self::to_rows`], in batches that stay small however large the section is.
    fn batches(
        &self,
        group: KeyGroup,
        entries: u64,
        body: &[u8],
        visit: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()>;

    /// The Arrow schema of the rows.
    fn arrow_schema(&self) -> SchemaRef;
}

/// What another version of a program can do with saved rows or entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// The types are the same, and so are the bytes of entries in the private form.
    Same,
    /// They can be read; each text says what becomes of one field, or what cannot be checked.
    Migrated(Vec<String>),
    /// They cannot be read: which field, why, and the way out.
    Refused(String),
}

/// The columns of a state with these types.
///
/// ```
/// use flott_state::columns::{Compatibility, columns_of};
/// let narrow = columns_of::<String, (), u32>();
/// let wide = columns_of::<String, (), u64>();
/// let notes = vec!["field 'value' widened from UInt32 to UInt64".to_owned()];
/// assert_eq!(wide.compare(narrow.schema()), Compatibility::Migrated(notes));
/// assert!(matches!(narrow.compare(wide.schema()), Compatibility::Refused(_)));
/// ```
pub fn columns_of<K: Data, N: Data, V: Data>() -> Arc<dyn StateColumns> {
    Arc::new(rows::TypedColumns::<K, N, V>::new())
}

/// A text that is equal for types whose values look the same, to people and in the private form. It is the same in each build.
pub fn text_of_type<T: Data>() -> String {
    layout::Plan::of::<T, (), ()>().layout.text_of_types()
}

/// The key group of each row.
///
/// # Errors
/// The rows are not those of a state.
pub fn group_column(rows: &RecordBatch) -> Result<&UInt16Array> {
    rows.column_by_name(layout::KEY_GROUP)
        .and_then(|column| column.as_any().downcast_ref::<UInt16Array>())
        .filter(|column| column.null_count() == 0)
        .ok_or_else(|| Error::input("the table has no column 'key_group' of type UInt16: it is not that of a state"))
}
