//! What depends on the place of a row alone: ranks, LAG, LEAD, NTILE, and shares of all rows.

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

/// How many rows there are, where all are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Up to the last one of a row's time.
    pub with_peers: u64,
    /// Of a key.
    pub all: u64,
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
    /// `PERCENT_RANK`.
    PercentRank,
    /// `CUME_DIST`.
    CumeDist,
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
            AggregateFunction::PercentRank => Ok(Some(Self::PercentRank)),
            AggregateFunction::CumeDist => Ok(Some(Self::CumeDist)),
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

/// The share of the other rows that come before a row and its peers; 0 for a row alone.
pub fn percent_rank(place: Place, extent: Extent) -> f64 {
    if extent.all > 1 { (place.rank - 1) as f64 / (extent.all - 1) as f64 } else { 0.0 }
}

/// The share of all rows that come before a row, or with it.
pub fn cume_dist(extent: Extent) -> f64 {
    extent.with_peers as f64 / extent.all as f64
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
    fn shares_are_of_all_rows() {
        // The second and the third of four have the same time.
        let at = |row_number, rank, with_peers| {
            let extent = Extent { with_peers, all: 4 };
            (percent_rank(Place { row_number, rank, dense_rank: 0 }, extent), cume_dist(extent))
        };
        let third = 1.0 / 3.0;
        assert_eq!(
            [at(1, 1, 1), at(2, 2, 3), at(3, 2, 3), at(4, 4, 4)],
            [(0.0, 0.25), (third, 0.75), (third, 0.75), (1.0, 1.0)]
        );
        let alone = Extent { with_peers: 1, all: 1 };
        assert_eq!((percent_rank(Place::default().next(false), alone), cume_dist(alone)), (0.0, 1.0));
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
