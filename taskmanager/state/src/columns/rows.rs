//! From entries in the codec's form to rows, and from rows to entries.

use std::any::type_name;
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt16Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use flott_core::codec;
use flott_core::key_group::KeyGroup;
use flott_core::{Data, Error, Result, ResultExt};
use serde::de::{self, DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_arrow::deserializer::DeserializerItem;

use super::layout::{Form, Layout, Plan};
use super::raw::boolean;
use super::shape::Shape;
use super::writer::{Writer, take};
use super::{Compatibility, StateColumns, evolution};

/// The types of entries, without a value of them.
type Types<K, N, V> = PhantomData<fn() -> (K, N, V)>;

/// How many rows a batch has, at most: enough to pay for itself, and few enough to stay in the cache.
pub(super) const ROWS_MAX: usize = 8192;

/// How many rows of each conversion are read back.
const ROWS_VERIFIED: usize = 64;

/// The columns of a state with keys `K`, namespaces `N` and values `V`.
pub(super) struct TypedColumns<K, N, V> {
    plan: Arc<Plan>,
    /// Whether columns are made by their shapes where that can be; tests compare it with the other way.
    by_shape: bool,
    types: Types<K, N, V>,
}

impl<K: Data, N: Data, V: Data> StateColumns for TypedColumns<K, N, V> {
    fn schema(&self) -> &str {
        &self.plan.text
    }

    fn compare(&self, schema: &str) -> Compatibility {
        match Layout::parse(schema) {
            Ok(old) => evolution::compare(&old, &self.plan.layout),
            Err(error) => Compatibility::Refused(error.message),
        }
    }

    fn compare_entries(&self, schema: &str) -> Compatibility {
        match Layout::parse(schema) {
            Ok(old) => evolution::compare_entries(&old, &self.plan.layout),
            Err(error) => Compatibility::Refused(error.message),
        }
    }

    fn to_rows(&self, group: KeyGroup, entries: u64, body: &[u8]) -> Result<RecordBatch> {
        let mut rows = RecordBatch::new_empty(self.arrow_schema());
        self.convert(group, entries, body, usize::MAX, &mut |batch| {
            rows = batch;
            Ok(())
        })?;
        Ok(rows)
    }

    fn batches(
        &self,
        group: KeyGroup,
        entries: u64,
        body: &[u8],
        visit: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.convert(group, entries, body, ROWS_MAX, visit)
    }

    fn arrow_schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

impl<K: Data, N: Data, V: Data> TypedColumns<K, N, V> {
    pub(super) fn new() -> Self {
        Self { plan: Plan::of::<K, N, V>(), by_shape: true, types: PhantomData }
    }

    /// The same, with all columns made of values by serde.
    #[cfg(test)]
    pub(super) fn by_type() -> Self {
        Self { by_shape: false, ..Self::new() }
    }

    fn convert(
        &self,
        group: KeyGroup,
        entries: u64,
        body: &[u8],
        rows_max: usize,
        visit: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        // An entry has at least the byte that says what it is, so a number that is not true cannot make much memory.
        let mut left = usize::try_from(entries).ok().filter(|&entries| entries <= body.len()).ok_or_else(|| {
            Error::system(format!("key group {group} is said to have {entries} entries, in {} bytes", body.len()))
        })?;
        let mut writers = self.writers()?;
        let mut rest = body;
        while left > 0 {
            let start = rest;
            let count = left.min(rows_max);
            for _ in 0..count {
                if boolean(&mut rest, "what an entry begins with").map_err(|misfit| misfit.into_error("reading"))? {
                    return Err(Error::system("a removal is among the entries of a whole key group"));
                }
                let [key, namespace, value] = &mut writers;
                key.push::<K>(&mut rest)?;
                namespace.push::<N>(&mut rest)?;
                value.push::<V>(&mut rest)?;
            }
            let mut arrays = Vec::with_capacity(writers.len());
            for writer in &mut writers {
                arrays.extend(writer.finish()?);
            }
            if start.len() == body.len() {
                self.verify(start, &arrays)?;
            }
            visit(self.batch(group, count, arrays)?)?;
            left -= count;
        }
        match rest.len() {
            0 => Ok(()),
            bytes => Err(Error::system(format!("key group {group} has {bytes} bytes behind its last entry"))),
        }
    }

    fn writers(&self) -> Result<[Writer; 3]> {
        let Plan { layout, fields, is_by_shape, .. } = &*self.plan;
        let [key, namespace, value] = layout.columns().map(|(name, column)| (column, field_named(fields, name)));
        Ok([
            Writer::new(key.0, key.1, self.by_shape && is_by_shape[0])?,
            Writer::new(namespace.0, namespace.1, self.by_shape && is_by_shape[1])?,
            Writer::new(value.0, value.1, self.by_shape && is_by_shape[2])?,
        ])
    }

    fn batch(&self, group: KeyGroup, rows: usize, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
        let groups: ArrayRef = Arc::new(UInt16Array::from_value(group, rows));
        let columns = [vec![groups], arrays].concat();
        RecordBatch::try_new(self.arrow_schema(), columns).map_err(|error| failed("making rows", error))
    }

    /// Reads the first rows back and compares them with the entries that they were made of.
    fn verify(&self, mut entries: &[u8], arrays: &[ArrayRef]) -> Result<()> {
        let rows = serde_arrow::Deserializer::from_arrow(&self.plan.fields, arrays)
            .map_err(|error| failed("reading rows back", error))?;
        let forms = self.plan.layout.forms();
        let [(_, key_column), (_, namespace_column), (_, value_column)] = self.plan.layout.columns();
        for row in rows.iter().take(ROWS_VERIFIED) {
            let (key, namespace, value) =
                read_row::<K, N, V>(row, forms).map_err(|error| failed("reading rows back", error))?;
            take::<bool>(&mut entries)?;
            verify("key", &mut entries, &key, &key_column.shape)?;
            verify("namespace", &mut entries, &namespace, &namespace_column.shape)?;
            verify("value", &mut entries, &value, &value_column.shape)?;
        }
        Ok(())
    }
}

fn field_named<'a>(fields: &'a [FieldRef], name: &str) -> Option<&'a FieldRef> {
    fields.iter().find(|field| field.name() == name)
}

/// That `again`, which came out of a column, is the value that is next in `entries`.
fn verify<T: Data>(column: &str, entries: &mut &[u8], again: &T, shape: &Shape) -> Result<()> {
    let written = take::<T>(entries)?.1;
    let mut again = codec::encode(again)?;
    if again == written {
        return Ok(());
    }
    if shape.has_elements() {
        // A map may have its entries in another order each time, so only what they are made of is the same.
        let mut written = written.to_vec();
        written.sort_unstable();
        again.sort_unstable();
        if again == written {
            return Ok(());
        }
    }
    Err(Error::system(format!(
        "column '{column}' does not give back what was put into it, so nothing was written: {} has a Serialize and a Deserialize that do not match; derive them, or keep the value as a String",
        type_name::<T>()
    )))
}

/// The entries in rows that were written under `schema`, the text of their writer's [`StateColumns::schema`], as values of
/// the types that they have now.
///
/// # Errors
/// The types cannot read such rows, or the rows are not as `schema` says.
pub fn read_rows<K: Data, N: Data, V: Data>(schema: &str, rows: &RecordBatch) -> Result<Vec<(K, N, V)>> {
    let plan = Plan::of::<K, N, V>();
    let parsed;
    let old = if schema == plan.text {
        &plan.layout
    } else {
        parsed = Layout::parse(schema)?;
        if let Compatibility::Refused(reason) = evolution::compare(&parsed, &plan.layout) {
            return Err(Error::input(reason));
        }
        &parsed
    };
    let (fields, arrays) = columns(old, &plan.layout, rows)?;
    let items = serde_arrow::Deserializer::from_arrow(&fields, &arrays)
        .map_err(|error| Error::input(format!("the columns of the table cannot be read: {}", reason(error))))?;
    let mut entries = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let entry = read_row(item, old.forms()).map_err(|error| {
            Error::input(format!("row {index} of the table does not fit the types of the program: {}", reason(error)))
        })?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The columns that a layout has, as they are to be read.
fn columns(old: &Layout, new: &Layout, rows: &RecordBatch) -> Result<(Vec<FieldRef>, Vec<ArrayRef>)> {
    let (mut fields, mut arrays): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for ((name, old), (_, new)) in old.columns().into_iter().zip(new.columns()) {
        let Some(field) = old.field(name) else { continue };
        let array = rows
            .column_by_name(name)
            .ok_or_else(|| Error::input(format!("the table has no column '{name}', which its schema has")))?;
        if !is_stored_as(field.data_type(), array.data_type()) {
            return Err(Error::input(format!(
                "column '{name}' of the table has the type {}, and its schema says {}",
                array.data_type(),
                field.data_type()
            )));
        }
        let mut array = Arc::clone(array);
        if old.form == Form::Arrow {
            let read_as = evolution::read_as(&old.shape, &new.shape);
            if read_as != old.shape
                && let Some(field) = read_as.field(name)
            {
                array = cast(&array, field.data_type())
                    .map_err(failure)
                    .with_context(|| format!("widening column '{name}'"))?;
            }
        }
        fields.push(Arc::new(Field::new(name, array.data_type().clone(), field.is_nullable())));
        arrays.push(array);
    }
    Ok((fields, arrays))
}

/// Whether a table has a column of the type `expected` as `actual`. How far offsets reach, and what the parts of lists
/// are called, is the table's own business.
fn is_stored_as(expected: &DataType, actual: &DataType) -> bool {
    match (expected, actual) {
        (DataType::LargeUtf8, DataType::Utf8) | (DataType::LargeBinary, DataType::Binary) => true,
        (DataType::LargeList(expected), DataType::LargeList(actual) | DataType::List(actual))
        | (DataType::Map(expected, _), DataType::Map(actual, _)) => {
            is_stored_as(expected.data_type(), actual.data_type())
        }
        (DataType::Struct(expected), DataType::Struct(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| {
                    expected.name() == actual.name() && is_stored_as(expected.data_type(), actual.data_type())
                })
        }
        _ => expected == actual,
    }
}

fn read_row<K: Data, N: Data, V: Data>(
    item: DeserializerItem<'_, '_>,
    forms: [Form; 3],
) -> Result<(K, N, V), serde_arrow::Error> {
    item.deserialize_tuple(forms.len(), RowVisitor { forms, types: PhantomData })
}

/// Reads a row, of which the columns that are absent are no part.
struct RowVisitor<K, N, V> {
    forms: [Form; 3],
    types: Types<K, N, V>,
}

impl<'de, K: Data, N: Data, V: Data> Visitor<'de> for RowVisitor<K, N, V> {
    type Value = (K, N, V);

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a row of a state's table")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<Self::Value, A::Error> {
        let [key, namespace, value] = self.forms;
        Ok((next_cell(&mut row, key)?, next_cell(&mut row, namespace)?, next_cell(&mut row, value)?))
    }
}

#[inline]
fn next_cell<'de, T: Data, A: SeqAccess<'de>>(row: &mut A, form: Form) -> Result<T, A::Error> {
    match form {
        // A unit, which has no bytes.
        Form::Absent => codec::decode(&[]).map_err(de::Error::custom),
        _ => row
            .next_element_seed(CellSeed { form, value: PhantomData })?
            .ok_or_else(|| de::Error::custom("a column is missing")),
    }
}

struct CellSeed<T> {
    form: Form,
    value: PhantomData<fn() -> T>,
}

impl<'de, T: Data> DeserializeSeed<'de> for CellSeed<T> {
    type Value = T;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        match self.form {
            Form::Binary => codec::decode(<&[u8]>::deserialize(deserializer)?).map_err(de::Error::custom),
            Form::Arrow | Form::Absent => T::deserialize(deserializer),
        }
    }
}

/// An error of a library, without what it puts in front of each.
fn reason(error: impl Display) -> String {
    let mut text = error.to_string();
    for front in ["Error: ", "deserialization failed: ", "serialization failed: "] {
        if text.starts_with(front) {
            text.drain(..front.len());
        }
    }
    text
}

fn failure(error: impl Display) -> Error {
    Error::system(reason(error))
}

pub(super) fn failed(what: impl Display, error: impl Display) -> Error {
    failure(error).context(what)
}
