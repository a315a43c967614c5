//! Time in rows, and how far event time has come.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use flott_checkpoint::Redistribution;
use flott_core::time::{Timestamp, WATERMARK_MIN};
use flott_core::{Error, Result};
use flott_operators::operator::{OpenContext, OperatorSnapshot};
use flott_operators::timestamps::{WATERMARK_STATE, restored_watermark};

/// The times of a column of timestamps, in milliseconds; what is finer is cut off, downwards.
///
/// # Errors
/// The column has no timestamps.
pub fn millis(column: &ArrayRef) -> Result<PrimitiveArray<Int64Type>> {
    Ok(match column.data_type() {
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let column = column.as_primitive::<TimestampMillisecondType>();
            PrimitiveArray::new(column.values().clone(), column.nulls().cloned())
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.as_primitive::<TimestampSecondType>().unary(|value| value.saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().unary(|value| value.div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().unary(|value| value.div_euclid(1_000_000))
        }
        other => return Err(Error::system(format!("a column of the type {other} was planned as one of time"))),
    })
}

/// The same of a column in which every row must have a time. `name` is the column's, for the message.
///
/// # Errors
/// A time is missing.
pub fn event_times(column: &ArrayRef, name: &str) -> Result<PrimitiveArray<Int64Type>> {
    if column.null_count() > 0 {
        return Err(Error::input(format!(
            "the event time '{name}' of a row is NULL, so it has no place in time: filter such rows out before, or give them a time, as in COALESCE({name}, …)"
        )));
    }
    millis(column)
}

/// How far event time has come, for operators that judge rows by it. It is state: a restart judges the same rows late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventClock {
    /// The last watermark.
    pub now: Timestamp,
}

impl Default for EventClock {
    fn default() -> Self {
        Self { now: WATERMARK_MIN }
    }
}

impl EventClock {
    /// Takes a watermark in. It never goes back.
    pub fn advance(&mut self, watermark: Timestamp) {
        self.now = self.now.max(watermark);
    }

    /// Takes event time up where it was.
    pub fn restore(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.now = restored_watermark(cx)?;
        Ok(())
    }

    /// Adds it to a checkpoint.
    pub fn snapshot(&self, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        snapshot.add(WATERMARK_STATE, Redistribution::Union, &[self.now])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{TimestampMicrosecondArray, TimestampSecondArray};

    use super::*;

    #[test]
    fn times_of_every_unit_become_milliseconds() {
        let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), Some(1999), None]));
        assert_eq!(millis(&column).unwrap(), PrimitiveArray::from(vec![Some(-1), Some(1), None]));
        let column: ArrayRef = Arc::new(TimestampSecondArray::from(vec![3, i64::MAX]));
        assert_eq!(millis(&column).unwrap(), PrimitiveArray::from(vec![3000, i64::MAX]));
        let column: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(3), None]));
        let error = event_times(&column, "ts").unwrap_err().to_string();
        assert!(error.contains("'ts'") && error.contains("COALESCE"), "{error}");
    }
}
