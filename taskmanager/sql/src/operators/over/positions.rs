//! What depends on the place of a row alone: ranks, LAG, LEAD, NTILE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, UInt32Array};
use arrow::compute::{cast, interleave, take};
use arrow::datatypes::DataType;
use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::spec::{AggregateFunction, AggregateSpec};

/// The place of a row among those of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// How many rows came before it, and it.
    pub row_number: i64,
    /// The number of the first row of its time.
    pub rank: i64,
    /// How many times came before its own, and that.
    pub dense_rank: i64,
}

impl Place {
    /// The place of the next row.
    pub fn next(self, is_peer: bool) -> Self {
        let row_number = self.row_number + 1;
        match is_peer {
            true => Self { row_number, ..self },
            false => Self { row_number, rank: row_number, dense_rank: self.dense_rank + 1 },
        }
    }
}

/// One such function.
#[derive(Debug)]
pub enum Position {
    /// `ROW_NUMBER`.
    RowNumber,
    /// `RANK`.
    Rank,
    /// `DENSE_RANK`.
    DenseRank,
    /// `LAG` or `LEAD`.
    Shift {
        /// How many rows later, or earlier if negative.
        by: i64,
        /// The column.
        column: usize,
        /// The column with what stands for a row that is not there.
        default: Option<usize>,
    },
    /// `NTILE`.
    Tile {
        /// How many buckets.
        buckets: u64,
    },
}

impl Position {
    /// That of an aggregate, if it is one.
    ///
    /// # Errors
    /// Its arguments are not those that it has.
    pub fn of(spec: &AggregateSpec) -> Result<Option<Self>> {
        let shift = |by: i64| match spec.arguments[..] {
            [column] => Ok(Some(Self::Shift { by, column, default: None })),
            [column, default] => Ok(Some(Self::Shift { by, column, default: Some(default) })),
            _ => Err(Error::input(format!(
                "{} cannot be computed: it has {} arguments",
                spec.text,
                spec.arguments.len()
            ))),
        };
        let number = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX);
        match spec.function {
            AggregateFunction::RowNumber => Ok(Some(Self::RowNumber)),
            AggregateFunction::Rank => Ok(Some(Self::Rank)),
            AggregateFunction::DenseRank => Ok(Some(Self::DenseRank)),
            AggregateFunction::Lag { offset } => shift(-number(offset)),
            AggregateFunction::Lead { offset } => shift(number(offset)),
            AggregateFunction::Ntile { buckets: 0 } => {
                Err(Error::input(format!("{} cannot be computed: NTILE needs at least one bucket", spec.text)))
            }
            AggregateFunction::Ntile { buckets } => Ok(Some(Self::Tile { buckets })),
            _ => Ok(None),
        }
    }
}

/// The bucket of a row, from 1: the first ones get the rows that are left over.
pub fn tile(buckets: u64, index: u64, rows: u64) -> i64 {
    let (size, larger) = (rows / buckets, rows % buckets);
    let in_larger = larger * (size + 1);
    let bucket = if index < in_larger { index / (size + 1) } else { larger + (index - in_larger) / size.max(1) };
    bucket as i64 + 1
}

/// Values of a column at other rows; `default` where there is no such row.
pub fn shifted(
    column: &ArrayRef,
    default: Option<&ArrayRef>,
    places: &[Option<u32>],
    rows: &[u32],
    result: &DataType,
) -> Result<ArrayRef> {
    let failed = |error| Error::system(format!("values of other rows: {error}"));
    let column =
        if column.data_type() == result { Arc::clone(column) } else { cast(column, result).map_err(failed)? };
    let Some(default) = default else {
        return take(&column, &UInt32Array::from(places.to_vec()), None).map_err(failed);
    };
    let default =
        if default.data_type() == result { Arc::clone(default) } else { cast(default, result).map_err(failed)? };
    let sources: [&dyn Array; 2] = [&column, &default];
    let indices: Vec<(usize, usize)> = (places.iter().zip(rows))
        .map(|(place, row)| place.map_or((1, *row as usize), |place| (0, place as usize)))
        .collect();
    interleave(&sources, &indices).map_err(failed)
}

/// Numbers as the type that is wanted.
pub fn numbers(numbers: Vec<i64>, result: &DataType) -> Result<ArrayRef> {
    let column: ArrayRef = Arc::new(Int64Array::from(numbers));
    if column.data_type() == result {
        return Ok(column);
    }
    cast(&column, result).map_err(|error| Error::system(format!("ranks: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_buckets_get_what_is_left_over() {
        let tiles = |buckets, rows| (0..rows).map(|row| tile(buckets, row, rows)).collect::<Vec<_>>();
        assert_eq!(tiles(3, 8), [1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(tiles(5, 3), [1, 2, 3]);
        assert_eq!(tiles(1, 3), [1, 1, 1]);
    }

    #[test]
    fn peers_have_one_rank() {
        let mut place = Place::default();
        let ranks: Vec<(i64, i64, i64)> = [false, true, false, false, true]
            .into_iter()
            .map(|is_peer| {
                place = place.next(is_peer);
                (place.row_number, place.rank, place.dense_rank)
            })
            .collect();
        assert_eq!(ranks, [(1, 1, 1), (2, 1, 1), (3, 3, 2), (4, 4, 3), (5, 4, 3)]);
    }
}
