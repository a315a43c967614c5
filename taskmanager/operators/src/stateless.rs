//! Operators that look at one record at a time.

use std::cell::Cell;
use std::rc::Rc;
use std::vec;

use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};

use crate::operator::Operator;
use crate::push::Output;

/// `map`: one record for each.
pub struct Map<F, Out> {
    function: F,
    buffer: Batch<Out>,
}

impl<F, Out> Map<F, Out> {
    /// Applies `function` to each record.
    pub fn new(function: F) -> Self {
        Self { function, buffer: Batch::default() }
    }
}

impl<In: Data, Out: Data, F: FnMut(In) -> Out + Send> Operator<In, Out> for Map<F, Out> {
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Output<Out>) -> Result<()> {
        self.buffer.rows.extend(batch.rows.drain(..).map(&mut self.function));
        std::mem::swap(&mut self.buffer.timestamps, &mut batch.timestamps);
        self.buffer.split = batch.split;
        out.push(&mut self.buffer)
    }
}

/// `filter`: the records for which the function says yes.
pub struct Filter<F> {
    function: F,
}

impl<F> Filter<F> {
    /// Keeps the records for which `function` returns true.
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

impl<T: Data, F: FnMut(&T) -> bool + Send> Operator<T, T> for Filter<F> {
    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<T>) -> Result<()> {
        if batch.timestamps.is_empty() {
            batch.rows.retain(&mut self.function);
        } else {
            let timestamps = &mut batch.timestamps;
            let (mut read, mut kept) = (0, 0);
            let function = &mut self.function;
            batch.rows.retain(|row| {
                let keep = function(row);
                timestamps[kept] = timestamps[read];
                kept += usize::from(keep);
                read += 1;
                keep
            });
            timestamps.truncate(kept);
        }
        out.push(batch)
    }
}

/// `flat_map`: any number of records for each.
pub struct FlatMap<F, Out> {
    function: F,
    buffer: Batch<Out>,
}

impl<F, Out> FlatMap<F, Out> {
    /// Applies `function` to each record and its output buffer.
    pub fn new(function: F) -> Self {
        Self { function, buffer: Batch::default() }
    }
}

impl<In: Data, Out: Data, F: FnMut(In, &mut Vec<Out>) + Send> Operator<In, Out> for FlatMap<F, Out> {
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Output<Out>) -> Result<()> {
        let split = batch.split;
        let mut timestamps = batch.timestamps.drain(..);
        for row in batch.rows.drain(..) {
            (self.function)(row, &mut self.buffer.rows);
            if let Some(timestamp) = timestamps.next() {
                self.buffer.timestamps.resize(self.buffer.rows.len(), timestamp);
            }
            if self.buffer.len() >= Batch::<Out>::ROWS_MAX {
                self.buffer.split = split;
                out.push(&mut self.buffer)?;
            }
        }
        self.buffer.split = split;
        out.push(&mut self.buffer)
    }
}

/// `iter`: std's iterators over a whole batch, fused into one loop by the compiler.
pub struct Iter<F, Out> {
    function: F,
    buffer: Batch<Out>,
}

/// The records of a batch, for [`Iter`].
pub struct Records<T> {
    rows: vec::IntoIter<T>,
    /// How many were taken, in a stream with timestamps: that of a result is that of the record taken last.
    taken: Option<Rc<Cell<usize>>>,
}

impl<T> Iterator for Records<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let next = self.rows.next();
        if let Some(taken) = &self.taken {
            taken.set(taken.get() + usize::from(next.is_some()));
        }
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }

    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, mut f: F) -> B {
        let Some(taken) = self.taken else { return self.rows.fold(init, f) };
        self.rows.fold(init, |folded, row| {
            taken.set(taken.get() + 1);
            f(folded, row)
        })
    }
}

impl<F, Out> Iter<F, Out> {
    /// Applies `function` to the records of each batch.
    pub fn new(function: F) -> Self {
        Self { function, buffer: Batch::default() }
    }
}

impl<In, Out, I, F> Operator<In, Out> for Iter<F, Out>
where
    In: Data,
    Out: Data,
    I: Iterator<Item = Out>,
    F: FnMut(Records<In>) -> I + Send,
{
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Output<Out>) -> Result<()> {
        let rows = std::mem::take(&mut batch.rows).into_iter();
        if batch.timestamps.is_empty() {
            let results = (self.function)(Records { rows, taken: None });
            self.buffer.rows.reserve(results.size_hint().1.unwrap_or(0));
            // By a fold, which adaptors pass through as one loop.
            results.for_each(|result| self.buffer.rows.push(result));
        } else {
            let taken = Rc::new(Cell::new(0));
            let results = (self.function)(Records { rows, taken: Some(Rc::clone(&taken)) });
            results.for_each(|result| {
                let timestamp: Timestamp = batch.timestamps[taken.get().saturating_sub(1)];
                self.buffer.rows.push(result);
                self.buffer.timestamps.push(timestamp);
            });
        }
        self.buffer.split = batch.split;
        out.push(&mut self.buffer)
    }
}

/// Passes records on as they are: the place of a `rebalance` or `union` that needs an operator.
pub struct Identity;

impl<T: Data> Operator<T, T> for Identity {
    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<T>) -> Result<()> {
        out.push(batch)
    }
}
