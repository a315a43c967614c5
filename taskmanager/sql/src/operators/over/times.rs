//! The times of rows, as their sort keys have them: which rows are near each other.

use arrow::datatypes::{DataType, TimeUnit};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};

use crate::row::RowBytes;
use crate::spec::{OverFrame, OverSpec};

/// Reads sort keys of one column of timestamps.
#[derive(Clone, Copy, Debug)]
pub struct SortTimes {
    unit: TimeUnit,
    is_descending: bool,
}

impl SortTimes {
    /// For a window whose frame is a time, if it is one.
    ///
    /// # Errors
    /// It is ordered by something else.
    pub fn of(spec: &OverSpec, types: &[DataType]) -> Result<Option<Self>> {
        if !matches!(spec.frame, OverFrame::Range(Some(_))) {
            return Ok(None);
        }
        let order = match &spec.order[..] {
            [only] => Some((only, &types[only.column])),
            _ => None,
        };
        match order {
            Some((sort, DataType::Timestamp(unit, _))) => {
                Ok(Some(Self { unit: *unit, is_descending: sort.is_descending }))
            }
            _ => Err(Error::input("OVER (… RANGE BETWEEN … PRECEDING …) is ordered by one column of timestamps")),
        }
    }

    /// The time in milliseconds, turned if the greatest comes first: it grows in the order. What is finer is cut off. Rows
    /// without a time are near each other alone.
    pub fn millis(self, sort: &[u8]) -> Timestamp {
        let Some(place) = place_of(sort) else {
            return if sort.first() == Some(&0) { Timestamp::MIN } else { Timestamp::MAX };
        };
        let value = ((if self.is_descending { !place } else { place }) ^ SIGN) as i64;
        let millis = match self.unit {
            TimeUnit::Second => value.saturating_mul(1000),
            TimeUnit::Millisecond => value,
            TimeUnit::Microsecond => value.div_euclid(1000),
            TimeUnit::Nanosecond => value.div_euclid(1_000_000),
        };
        if self.is_descending { millis.saturating_neg() } else { millis }
    }

    /// The sort key of rows that come so much later in the order, or earlier, and not less than that.
    pub fn moved(self, sort: &RowBytes, millis: i64) -> RowBytes {
        let Some(place) = place_of(sort.as_slice()) else { return sort.clone() };
        let by = match self.unit {
            TimeUnit::Second => millis.saturating_add(millis.signum() * 999) / 1000,
            TimeUnit::Millisecond => millis,
            TimeUnit::Microsecond => millis.saturating_mul(1000),
            TimeUnit::Nanosecond => millis.saturating_mul(1_000_000),
        };
        let mut moved = [1; 9];
        moved[1..].copy_from_slice(&place.saturating_add_signed(by).to_be_bytes());
        RowBytes::new(&moved)
    }
}

/// The bit of a sort key that says whether a number is negative.
const SIGN: u64 = 1 << 63;

/// The place of a time in the order; none of NULL.
fn place_of(sort: &[u8]) -> Option<u64> {
    match sort {
        [1, place @ ..] => place.try_into().ok().map(u64::from_be_bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, TimestampMicrosecondArray, TimestampSecondArray};

    use super::*;
    use crate::row::EncodedRows;
    use crate::sort_key::{SortColumn, SortKeyEncoder};

    fn sorts(column: ArrayRef, is_descending: bool, nulls_first: bool) -> Vec<RowBytes> {
        let order = [SortColumn { column: 0, is_descending, nulls_first }];
        let encoder = SortKeyEncoder::new(&order, std::slice::from_ref(column.data_type())).unwrap();
        let (rows, mut sorts) = (column.len(), EncodedRows::default());
        encoder.encode(&[column], rows, &mut sorts).unwrap();
        sorts.iter().map(RowBytes::new).collect()
    }

    #[test]
    fn times_grow_in_the_order() {
        let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), Some(1999), None]));
        let times = SortTimes { unit: TimeUnit::Microsecond, is_descending: false };
        let millis = |sorts: &[RowBytes], times: SortTimes| -> Vec<i64> {
            sorts.iter().map(|sort| times.millis(sort.as_slice())).collect()
        };
        assert_eq!(millis(&sorts(Arc::clone(&column), false, true), times), [-1, 1, i64::MIN]);
        let times = SortTimes { is_descending: true, ..times };
        assert_eq!(millis(&sorts(column, true, false), times), [1, -1, i64::MAX]);
    }

    #[test]
    fn sort_keys_move_by_no_less_than_a_time() {
        let column: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(10), Some(12), None]));
        for is_descending in [false, true] {
            let times = SortTimes { unit: TimeUnit::Second, is_descending };
            let sorts = sorts(Arc::clone(&column), is_descending, false);
            let (early, late) = if is_descending { (1, 0) } else { (0, 1) };
            assert_eq!(times.moved(&sorts[early], 1001), sorts[late]);
            assert_eq!(times.moved(&sorts[late], -2000), sorts[early]);
            assert_eq!(times.moved(&sorts[2], 5), sorts[2]);
        }
    }
}
