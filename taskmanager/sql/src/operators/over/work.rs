//! What is planned of rows, and how it is carried out.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, SchemaRef};
use flott_chunk::{Chunk, RowKind, batch_of};
use flott_core::{Error, Result};

use super::positions::{Extent, Place, Position, cume_dist, numbers, percent_rank, shifted, tile};
use crate::aggregates::update::Changes;
use crate::aggregates::{Aggregates, Arena};
use crate::operator::Emit;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, RowDecoder};
use crate::spec::OverSpec;

/// What happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It comes into the frame of its group.
    Enter,
    /// It leaves that.
    Leave,
    /// It is put out, with what its group results in.
    PutOut,
}

/// Where the result of an aggregate comes from.
#[derive(Debug)]
enum Slot {
    /// One of the aggregates over frames.
    Folded(usize),
    /// The place of the row.
    Placed(Position, DataType),
}

/// Rows and what happens to them, in order.
#[derive(Debug)]
pub struct Work {
    slots: Vec<Slot>,
    /// Those over frames.
    pub aggregates: Aggregates,
    decoder: RowDecoder,
    input: SchemaRef,
    output: SchemaRef,
    rows: EncodedRows,
    steps: Vec<(Step, u32, u32)>,
    places: Vec<Place>,
    /// For each row that is put out and each shift, the row whose value it has.
    shifts: Vec<Option<u32>>,
    /// For each row that is put out, how many rows there are, where that is known.
    extents: Vec<Extent>,
}

impl Work {
    /// For the aggregates of a plan. `retracts` says whether rows leave frames.
    pub fn new(spec: &OverSpec, retracts: bool, cx: &OperatorContext<'_>) -> Result<Self> {
        let (mut slots, mut folded) = (Vec::new(), Vec::new());
        for aggregate in &spec.aggregates {
            slots.push(match Position::of(aggregate)? {
                Some(position) => Slot::Placed(position, aggregate.result.clone()),
                None => {
                    folded.push(aggregate.clone());
                    Slot::Folded(folded.len() - 1)
                }
            });
        }
        Ok(Self {
            slots,
            aggregates: Aggregates::with(&folded, &cx.inputs[0], retracts, cx.functions)?,
            decoder: RowDecoder::new(&cx.types(0))?,
            input: SchemaRef::clone(&cx.inputs[0]),
            output: SchemaRef::clone(cx.output),
            rows: EncodedRows::default(),
            steps: Vec::new(),
            places: Vec::new(),
            shifts: Vec::new(),
            extents: Vec::new(),
        })
    }

    /// By how many rows LAG and LEAD look elsewhere, in order.
    pub fn shifts(&self) -> Vec<i64> {
        let shift = |slot: &Slot| match slot {
            Slot::Placed(Position::Shift { by, .. }, _) => Some(*by),
            _ => None,
        };
        self.slots.iter().filter_map(shift).collect()
    }

    /// Whether something depends on the places of rows.
    pub fn has_positions(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Placed(..)))
    }

    /// Whether something depends on how many rows come before.
    pub fn has_ranks(&self) -> bool {
        let is_rank =
            |slot: &Slot| matches!(slot, Slot::Placed(position, _) if !matches!(position, Position::Shift { .. }));
        self.slots.iter().any(is_rank)
    }

    /// Whether something depends on how many rows there are.
    pub fn needs_all_rows(&self) -> bool {
        use Position::{CumeDist, PercentRank, Tile};
        self.slots.iter().any(|slot| matches!(slot, Slot::Placed(Tile { .. } | PercentRank | CumeDist, _)))
    }

    /// How many steps are planned.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a row. Returns its number.
    pub fn row(&mut self, bytes: &[u8]) -> u32 {
        self.rows.push(bytes);
        self.rows.len() as u32 - 1
    }

    /// A row comes into the frame of a group.
    pub fn enter(&mut self, row: u32, group: u32) {
        self.steps.push((Step::Enter, row, group));
    }

    /// A row leaves the frame of a group.
    pub fn leave(&mut self, row: u32, group: u32) {
        self.steps.push((Step::Leave, row, group));
    }

    /// A row is put out. `shifted` are the rows that LAG and LEAD mean, in order.
    pub fn put_out(
        &mut self,
        row: u32,
        group: u32,
        place: Place,
        shifted: impl Iterator<Item = Option<u32>>,
        extent: Extent,
    ) {
        self.steps.push((Step::PutOut, row, group));
        self.places.push(place);
        self.shifts.extend(shifted);
        self.extents.push(extent);
    }

    /// Carries it out, and plans nothing afterwards. The arena has the groups.
    pub fn run(&mut self, arena: &mut Arena, out: &mut Emit<'_>) -> Result<()> {
        match self.results(arena)? {
            Some(results) => out.emit_large(results),
            None => Ok(()),
        }
    }

    /// The same for whoever puts out something else of it: the rows with what they result in, if anything was planned.
    pub fn results(&mut self, arena: &mut Arena) -> Result<Option<Chunk>> {
        if self.steps.is_empty() {
            self.clear();
            return Ok(None);
        }
        let rows = self.rows.len();
        let columns = self.decoder.decode(self.rows.iter())?;
        let mut groups = vec![0; rows];
        self.steps.iter().for_each(|(_, row, group)| groups[*row as usize] = *group);
        let (come, go) = (None, Some(vec![-1; rows]));
        let mut folded = Vec::new();
        let mut put_out: Vec<u32> = Vec::with_capacity(self.places.len());
        if self.aggregates.is_empty() {
            let rows = self.steps.iter().filter(|(step, ..)| *step == Step::PutOut).map(|(_, row, _)| *row);
            put_out.extend(rows);
        } else {
            let bound = self.aggregates.bind(&batch_of(&self.input, columns.clone(), rows)?)?;
            let mut results = self.aggregates.collector();
            let mut rest = &self.steps[..];
            while let [(step, row, group), ..] = rest {
                // Neighbours that come or go one after the other do so together.
                let run = rest.iter().zip(*row..).take_while(|((other, next, _), row)| other == step && next == row);
                let run = if *step == Step::PutOut { 1 } else { run.count() };
                if *step == Step::PutOut {
                    results.push(arena, *group as usize)?;
                    put_out.push(*row);
                } else {
                    let (row, signs) = (*row as usize, if *step == Step::Leave { go.as_deref() } else { come });
                    self.aggregates.update(arena, &bound, row..row + run, Changes { groups: &groups, signs })?;
                }
                rest = &rest[run..];
            }
            folded = results.finish()?;
        }
        let chunk = self.chunk(&columns, &put_out, &folded)?;
        self.clear();
        Ok(Some(chunk))
    }

    fn chunk(&self, columns: &[ArrayRef], put_out: &[u32], folded: &[ArrayRef]) -> Result<Chunk> {
        let indices = UInt32Array::from(put_out.to_vec());
        let failed = |error| Error::system(format!("putting rows out: {error}"));
        let mut result: Vec<ArrayRef> =
            columns.iter().map(|column| take(column, &indices, None).map_err(failed)).collect::<Result<_>>()?;
        let shifts = self.shifts().len();
        let mut shift = 0;
        for slot in &self.slots {
            let of_places = |value: fn(&Place) -> i64, wanted| numbers(self.places.iter().map(value).collect(), wanted);
            result.push(match slot {
                Slot::Folded(index) => ArrayRef::clone(&folded[*index]),
                Slot::Placed(Position::RowNumber, wanted) => of_places(|place| place.row_number, wanted)?,
                Slot::Placed(Position::Rank, wanted) => of_places(|place| place.rank, wanted)?,
                Slot::Placed(Position::DenseRank, wanted) => of_places(|place| place.dense_rank, wanted)?,
                Slot::Placed(Position::PercentRank, _) => {
                    let places = self.places.iter().zip(&self.extents);
                    let shares = places.map(|(place, extent)| percent_rank(*place, *extent));
                    Arc::new(Float64Array::from_iter_values(shares))
                }
                Slot::Placed(Position::CumeDist, _) => {
                    Arc::new(Float64Array::from_iter_values(self.extents.iter().copied().map(cume_dist)))
                }
                Slot::Placed(Position::Shift { column, default, .. }, wanted) => {
                    let places: Vec<Option<u32>> = self.shifts.iter().skip(shift).step_by(shifts).copied().collect();
                    shift += 1;
                    shifted(&columns[*column], default.map(|default| &columns[default]), &places, put_out, wanted)?
                }
                Slot::Placed(Position::Tile { buckets }, wanted) => {
                    let tiles = self.places.iter().zip(&self.extents);
                    let tiles =
                        tiles.map(|(place, extent)| tile(*buckets, place.row_number as u64 - 1, extent.all)).collect();
                    numbers(tiles, wanted)?
                }
            });
        }
        Chunk::of_columns(&self.output, result, put_out.len(), vec![RowKind::Insert; put_out.len()])
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.steps.clear();
        self.places.clear();
        self.shifts.clear();
        self.extents.clear();
    }
}
