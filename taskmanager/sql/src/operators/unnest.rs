//! `Correlate` with UNNEST: each row once for each element of a collection.
//!
//! Elements are taken where they are: positions are collected first, then every column is gathered once. The collection
//! itself is gathered only if it is wanted beside its elements: that is a copy of all of them for each.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type, SchemaRef};
use flott_chunk::{Chunk, batch_of};
use flott_core::{Error, Result};

use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;

/// A chunk is put out when so many elements are in the collections beside its own.
const COPIED_MAX: usize = 1 << 20;

/// See the module's documentation.
pub struct Unnest {
    column: usize,
    passes_collection: bool,
    is_outer: bool,
    elements: Elements,
    /// The type of the ordinal, if it is wanted.
    ordinal: Option<DataType>,
    output: SchemaRef,
}

/// What the elements of the collection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    /// Of an array.
    Values,
    /// Of an array of rows: each field by itself. A row that is null is no element, as in Flink.
    Rows,
    /// Keys and values of a map.
    Entries,
    /// Of a multiset, each as often as it is there.
    Counted,
    /// Of a multiset of rows.
    CountedRows,
}

impl Unnest {
    /// Finds out from the types what the collection is: a multiset is a map to counts.
    ///
    /// # Errors
    /// The column has no collection, or the output's columns do not fit its elements.
    pub fn new(
        (column, passes_collection): (usize, bool),
        is_outer: bool,
        with_ordinality: bool,
        cx: &OperatorContext<'_>,
    ) -> Result<Self> {
        let collection = cx.inputs[0].field(column).data_type();
        let width = cx.inputs[0].fields().len() - usize::from(!passes_collection);
        let mut types: Vec<&DataType> = cx.output.fields().iter().skip(width).map(|field| field.data_type()).collect();
        let ordinal = if with_ordinality { types.pop().cloned() } else { None };
        let is_rows_of = |element: &DataType| match element {
            DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).eq(types.iter().copied()),
            _ => false,
        };
        let elements = match collection {
            DataType::List(element) if types == [element.data_type()] => Elements::Values,
            DataType::List(element) if is_rows_of(element.data_type()) => Elements::Rows,
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => {
                    let (key, value) = (pair[0].data_type(), pair[1].data_type());
                    match () {
                        () if types == [key, value] => Elements::Entries,
                        () if types == [key] && *value == DataType::Int32 => Elements::Counted,
                        () if is_rows_of(key) && *value == DataType::Int32 => Elements::CountedRows,
                        () => return Err(misfit(collection, &types)),
                    }
                }
                _ => return Err(misfit(collection, &types)),
            },
            _ => return Err(misfit(collection, &types)),
        };
        if !matches!(ordinal, None | Some(DataType::Int32 | DataType::Int64)) {
            return Err(Error::system(format!("the ordinality of UNNEST is planned with the type {ordinal:?}")));
        }
        Ok(Self { column, passes_collection, is_outer, elements, ordinal, output: SchemaRef::clone(cx.output) })
    }

    /// The columns that the elements of all rows are in, one after the other.
    fn values(&self, collection: &ArrayRef) -> Vec<ArrayRef> {
        let fields = |rows: &ArrayRef| rows.as_struct().columns().to_vec();
        match self.elements {
            Elements::Values => vec![Arc::clone(collection.as_list::<i32>().values())],
            Elements::Rows => fields(collection.as_list::<i32>().values()),
            Elements::Entries => {
                let map = collection.as_map();
                vec![Arc::clone(map.keys()), Arc::clone(map.values())]
            }
            Elements::Counted => vec![Arc::clone(collection.as_map().keys())],
            Elements::CountedRows => fields(collection.as_map().keys()),
        }
    }

    fn send(&self, chunk: &Chunk, values: &[ArrayRef], found: &mut Found, out: &mut Emit<'_>) -> Result<()> {
        if found.parents.is_empty() {
            return Ok(());
        }
        let rows = chunk.take(&found.parents)?;
        let elements = UInt32Array::from(std::mem::take(&mut found.elements));
        let mut columns = rows.batch.columns().to_vec();
        for column in values {
            columns.push(take(column, &elements, None).map_err(|error| Error::system(format!("UNNEST: {error}")))?);
        }
        let ordinals = std::mem::take(&mut found.ordinals);
        match self.ordinal {
            Some(DataType::Int32) => columns.push(Arc::new(Int32Array::from(ordinals))),
            Some(_) => {
                columns.push(Arc::new(Int64Array::from_iter(ordinals.iter().map(|ordinal| ordinal.map(i64::from)))));
            }
            None => {}
        }
        found.parents.clear();
        found.copied = 0;
        out.emit(rows.with_batch(batch_of(&self.output, columns, rows.len())?))
    }
}

/// Rows to be put out.
#[derive(Default)]
struct Found {
    /// Which row of the chunk each is of.
    parents: Vec<u32>,
    /// Which element it has.
    elements: Vec<Option<u32>>,
    ordinals: Vec<Option<i32>>,
    /// How many elements are copied with the collections beside them.
    copied: usize,
}

impl Found {
    fn add(&mut self, parent: usize, element: Option<usize>, ordinal: Option<i32>) {
        self.parents.push(parent as u32);
        self.elements.push(element.map(|element| element as u32));
        self.ordinals.push(ordinal);
    }
}

impl TableOperator for Unnest {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let collection = chunk.column(self.column);
        let values = self.values(collection);
        let (offsets, counts) = match collection.data_type() {
            DataType::List(_) => (collection.as_list::<i32>().value_offsets(), None),
            _ => {
                let map = collection.as_map();
                let counts = matches!(self.elements, Elements::Counted | Elements::CountedRows);
                (map.value_offsets(), counts.then(|| map.values().as_primitive::<Int32Type>()))
            }
        };
        // Null elements are elements, but rows that are null are none.
        let rows = match self.elements {
            Elements::Rows => collection.as_list::<i32>().values().nulls(),
            _ => None,
        };
        // What is put out beside the elements.
        let passed = match self.passes_collection {
            true => chunk.clone(),
            false => {
                let rest: Vec<usize> = (0..chunk.batch.num_columns()).filter(|column| *column != self.column).collect();
                let rest = chunk.batch.project(&rest);
                chunk.with_batch(rest.map_err(|error| Error::system(format!("UNNEST: {error}")))?)
            }
        };
        let mut found = Found::default();
        for parent in 0..chunk.len() {
            let (start, end) = match collection.is_null(parent) {
                true => (0, 0),
                false => (offsets[parent] as usize, offsets[parent + 1] as usize),
            };
            let mut ordinal = 0;
            let before = found.parents.len();
            let mut was_sent = false;
            for element in start..end {
                if rows.is_some_and(|rows| rows.is_null(element)) {
                    ordinal += 1;
                    continue;
                }
                for _ in 0..counts.map_or(1, |counts| counts.value(element)) {
                    ordinal += 1;
                    found.add(parent, Some(element), Some(ordinal));
                    found.copied += if self.passes_collection { end - start } else { 0 };
                    if found.parents.len() >= Chunk::ROWS_MAX || found.copied >= COPIED_MAX {
                        self.send(&passed, &values, &mut found, out)?;
                        was_sent = true;
                    }
                }
            }
            if self.is_outer && !was_sent && found.parents.len() == before {
                found.add(parent, None, None);
            }
        }
        self.send(&passed, &values, &mut found, out)
    }
}

fn misfit(collection: &DataType, types: &[&DataType]) -> Error {
    Error::system(format!("UNNEST of {collection} was planned with columns of the types {types:?}"))
}

#[cfg(test)]
mod tests;
