//! Columns of one kind of event, among rows of all kinds: the others are null.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
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
    pub(crate) events: &'a [Event],
    /// The kind that has the column.
    pub(crate) kind: EventKind,
    /// Which rows are of that kind.
    pub(crate) nulls: Option<NullBuffer>,
}

impl Rows<'_> {
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
        let value = |event: &Event| if event.kind == self.kind { value(event) } else { 0 };
        self.events.iter().map(value).collect()
    }

    /// A text a row, which `push` appends.
    pub(crate) fn texts(&self, bytes_each: usize, mut push: impl FnMut(&mut Vec<u8>, &Event)) -> Result<ArrayRef> {
        let mut bytes = Vec::with_capacity(self.events.len() * bytes_each);
        let mut ends = Vec::with_capacity(self.events.len() + 1);
        ends.push(0);
        for event in self.events {
            if event.kind == self.kind {
                push(&mut bytes, event);
            }
            ends.push(bytes.len() as i32);
        }
        if i32::try_from(bytes.len()).is_err() {
            return Err(Error::system("the texts of a batch of events are over 2 GiB"));
        }
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        let array = StringArray::try_new(ends, Buffer::from_vec(bytes), self.nulls.clone());
        Ok(Arc::new(array.map_err(|error| Error::system(format!("making texts of events: {error}")))?))
    }
}
