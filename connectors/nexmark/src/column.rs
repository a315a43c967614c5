//! Columns of one kind of event, among rows of all kinds: the others are null.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;
use flott_core::{Error, Result};

use crate::course::{Event, EventKind};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// `BIGINT`
    Number,
    /// `TIMESTAMP(3)` or `TIMESTAMP_LTZ(3)`
    Time,
    /// `VARCHAR`
    Text,
}

/// The rows that a column is made for.
pub(crate) struct Rows<'a> {
    /// All rows.
    events: &'a [Event],
    /// Which of them are of the kind that has the column.
    rows: Vec<usize>,
    /// The same, as what is not null.
    pub(crate) nulls: Option<NullBuffer>,
}

impl<'a> Rows<'a> {
    /// The rows of a kind, among others.
    pub(crate) fn of(events: &'a [Event], kind: EventKind) -> Self {
        let is_of_kind = BooleanBuffer::collect_bool(events.len(), |row| events[row].kind == kind);
        let rows = is_of_kind.set_indices().collect();
        Self { events, rows, nulls: Some(NullBuffer::new(is_of_kind)) }
    }

    /// How many rows there are, with the others.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// A number a row.
    pub(crate) fn numbers(&self, number: impl Fn(&Event) -> i64) -> ArrayRef {
        Arc::new(Int64Array::new(self.values(number), self.nulls.clone()))
    }

    /// A time a row, of this type.
    pub(crate) fn times(&self, data_type: &DataType, time_ms: impl Fn(&Event) -> i64) -> ArrayRef {
        let array = TimestampMillisecondArray::new(self.values(time_ms), self.nulls.clone());
        match data_type {
            DataType::Timestamp(_, zone) => Arc::new(array.with_timezone_opt(zone.clone())),
            _ => Arc::new(array),
        }
    }

    fn values(&self, value: impl Fn(&Event) -> i64) -> ScalarBuffer<i64> {
        let mut values = vec![0; self.len()];
        for &row in &self.rows {
            values[row] = value(&self.events[row]);
        }
        values.into()
    }

    /// A text a row, which `push` appends.
    pub(crate) fn texts(&self, bytes_each: usize, mut push: impl FnMut(&mut Vec<u8>, &Event)) -> Result<ArrayRef> {
        let mut bytes = Vec::with_capacity(self.rows.len() * bytes_each);
        // Where each row begins; the others are as long as nothing.
        let mut starts = Vec::with_capacity(self.len() + 1);
        for &row in &self.rows {
            starts.resize(row + 1, bytes.len() as i32);
            push(&mut bytes, &self.events[row]);
        }
        starts.resize(self.len() + 1, bytes.len() as i32);
        if i32::try_from(bytes.len()).is_err() {
            return Err(Error::system("the texts of a batch of events are over 2 GiB"));
        }
        let starts = OffsetBuffer::new(ScalarBuffer::from(starts));
        let array = StringArray::try_new(starts, Buffer::from_vec(bytes), self.nulls.clone());
        Ok(Arc::new(array.map_err(|error| Error::system(format!("making texts of events: {error}")))?))
    }
}
