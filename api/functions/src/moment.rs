//! Points in time: dates, times of day and timestamps as one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{DataType, Date32Type, Int64Type, Time32MillisecondType};
use chrono::{DateTime, NaiveDateTime};
use datafusion::common::Result;

use crate::cast::{day_and_millis, units};
use crate::define::user_error;
use crate::types::precision_of;

/// An array of dates, times or timestamps.
pub(crate) struct Moments {
    array: PrimitiveArray<Int64Type>,
    /// How many units a second has; 0 if the unit is the day.
    per_second: i64,
}

impl Moments {
    pub(crate) fn new(from: &ArrayRef) -> Result<Self> {
        let per_second = match from.data_type() {
            DataType::Date32 => 0,
            DataType::Timestamp(unit, _) => 10i64.pow(u32::from(precision_of(*unit))),
            _ => 1000,
        };
        let array = match from.data_type() {
            DataType::Date32 | DataType::Time32(_) => {
                arrow_cast(&arrow_cast(from, &DataType::Int32)?, &DataType::Int64)?
            }
            _ => arrow_cast(from, &DataType::Int64)?,
        };
        Ok(Self { array: array.as_primitive::<Int64Type>().clone(), per_second })
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<NaiveDateTime> {
        if self.array.is_null(row) {
            return None;
        }
        let value = self.array.value(row);
        let found = match self.per_second {
            0 => DateTime::from_timestamp(value.checked_mul(86_400)?, 0)?,
            per_second => {
                let nanos = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
                DateTime::from_timestamp(value.div_euclid(per_second), nanos as u32)?
            }
        };
        Some(found.naive_utc())
    }
}

/// Points in time as values of a type.
pub(crate) fn from_nanos(
    rows: usize,
    to: &DataType,
    mut of: impl FnMut(usize) -> Option<NaiveDateTime>,
) -> Result<ArrayRef> {
    Ok(match to {
        DataType::Date32 => {
            Arc::new((0..rows).map(|row| Some(day_and_millis(of(row)?).0)).collect::<PrimitiveArray<Date32Type>>())
        }
        DataType::Time32(_) => {
            let made = (0..rows).map(|row| Some(day_and_millis(of(row)?).1));
            Arc::new(made.collect::<PrimitiveArray<Time32MillisecondType>>())
        }
        DataType::Timestamp(unit, _) => {
            let per_second = 10i64.pow(u32::from(precision_of(*unit)));
            let made = (0..rows).map(|row| units(of(row)?, per_second)).collect::<PrimitiveArray<Int64Type>>();
            arrow_cast(&(Arc::new(made) as ArrayRef), to)?
        }
        other => return Err(user_error(format!("{other} is no date or time"))),
    })
}
