//! Generators that make many rows at a time.

use std::sync::Arc;

use flott_connector_spi::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader};
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Error, Result};
use serde::{Deserialize, Serialize};

use crate::pace::{Due, Pace};
use crate::strides::{Stride, Strides, deal};

/// How many rows an item has, unless the generator is slower than that.
const ROWS_EACH: u64 = 4096;

/// Makes rows of their indices. It is asked for the same indices again after a failure, and must give the same rows.
pub trait MakeRows: Send + Sync + 'static {
    /// Many rows.
    type Item: Data;

    /// The rows of these indices. `start_ms` is when the source was started first, in milliseconds since 1970.
    fn make(&self, start_ms: Timestamp, indices: &[u64]) -> Result<Self::Item>;
}

/// The rows of 0, 1, 2, … many at a time. The indices are dealt out to all readers in blocks, and each reader goes through
/// its own in order: so time grows in all of them alike if it grows with the index.
pub struct RowsSource<M> {
    rows: Arc<M>,
    count: Option<u64>,
    rows_per_second: Option<f64>,
    start_ms: Option<Timestamp>,
    block: u64,
    rows_each: u64,
}

impl<M: MakeRows> RowsSource<M> {
    /// The rows without an end, as fast as can be.
    pub fn new(rows: M) -> Self {
        Self {
            rows: Arc::new(rows),
            count: None,
            rows_per_second: None,
            start_ms: None,
            block: 1,
            rows_each: ROWS_EACH,
        }
    }

    /// Ends after `count` rows, if there is one.
    #[must_use]
    pub fn count(mut self, count: Option<u64>) -> Self {
        self.count = count;
        self
    }

    /// How many rows come in a second from all readers together.
    #[must_use]
    pub fn rows_per_second(mut self, rows: Option<f64>) -> Self {
        self.rows_per_second = rows;
        self
    }

    /// What is given to [`MakeRows::make`]; otherwise the time of the first start.
    #[must_use]
    pub fn start_ms(mut self, start_ms: Option<Timestamp>) -> Self {
        self.start_ms = start_ms;
        self
    }

    /// How many rows that follow each other come from one reader. The default is 1.
    #[must_use]
    pub fn block(mut self, rows: u64) -> Self {
        self.block = rows.max(1);
        self
    }

    /// How many rows an item has at most.
    #[must_use]
    pub fn rows_each(mut self, rows: u64) -> Self {
        self.rows_each = rows.max(1);
        self
    }
}

/// Strides of a generator, for one reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsSplit {
    start_ms: Timestamp,
    strides: Vec<Stride>,
}

impl<M: MakeRows> Source for RowsSource<M> {
    type Item = M::Item;
    type Split = RowsSplit;

    fn boundedness(&self) -> Boundedness {
        if self.count.is_some() { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    /// One split a reader, since readers of an unbounded source never ask for a second one. A snapshot has one split
    /// a stride.
    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<RowsSplit>> {
        if let Some(rate) = self.rows_per_second
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(Error::input(format!(
                "a generator cannot make {rate} rows per second: give a positive number"
            )));
        }
        let start_ms = self.start_ms.unwrap_or_else(flott_env::now_ms);
        let split = |strides| RowsSplit { start_ms, strides };
        Ok(deal(cx.parallelism, self.block).into_iter().map(split).collect())
    }

    fn reader(&self, _cx: ReaderContext) -> Result<Box<dyn SplitReader<M::Item, RowsSplit>>> {
        Ok(Box::new(RowsReader {
            rows: Arc::clone(&self.rows),
            rows_per_second: self.rows_per_second,
            rows_each: self.rows_each,
            start_ms: 0,
            strides: Strides::new(self.count.unwrap_or(u64::MAX), self.block),
            indices: Vec::new(),
            pace: None,
        }))
    }
}

struct RowsReader<M> {
    rows: Arc<M>,
    rows_per_second: Option<f64>,
    rows_each: u64,
    /// The same in all splits.
    start_ms: Timestamp,
    strides: Strides,
    indices: Vec<u64>,
    /// Begun with the first row.
    pace: Option<Pace>,
}

impl<M: MakeRows> SplitReader<M::Item, RowsSplit> for RowsReader<M> {
    fn add_split(&mut self, split: RowsSplit) -> Result<()> {
        self.start_ms = split.start_ms;
        self.pace = None;
        split.strides.into_iter().try_for_each(|stride| self.strides.add(stride))
    }

    fn poll(&mut self, batch: &mut Batch<M::Item>, rows_max: usize) -> Result<ReadStatus> {
        if self.strides.is_empty() {
            return Ok(ReadStatus::NeedsSplit);
        }
        if rows_max == 0 {
            return Ok(ReadStatus::Progress);
        }
        let mut rows = self.rows_each;
        if let Some(rate) = self.rows_per_second {
            let now_ms = flott_env::now_ms();
            // Its part of the rate, by its part of the strides.
            let pace = self.pace.get_or_insert_with(|| Pace::new(rate * self.strides.share(), now_ms));
            match pace.due(now_ms) {
                Due::At(at) => return Ok(ReadStatus::PendingUntil(at)),
                Due::Rows(due) => rows = rows.min(due),
            }
        }
        self.indices.clear();
        self.strides.take(rows, |index| self.indices.push(index));
        batch.rows.push(self.rows.make(self.start_ms, &self.indices)?);
        if let Some(pace) = &mut self.pace {
            pace.advance(self.indices.len() as u64);
        }
        Ok(ReadStatus::Progress)
    }

    fn snapshot(&mut self) -> Result<Vec<RowsSplit>> {
        let split = |stride| RowsSplit { start_ms: self.start_ms, strides: vec![stride] };
        Ok(self.strides.iter().map(split).collect())
    }

    /// Its strides are read as one.
    fn active_splits(&self) -> Vec<u32> {
        if self.strides.is_empty() { Vec::new() } else { vec![0] }
    }
}

#[cfg(test)]
mod tests {
    use flott_connector_spi::conformance::{Execution, check_source};

    use super::*;

    struct Numbers;

    impl MakeRows for Numbers {
        type Item = (i64, Vec<u64>);

        fn make(&self, start_ms: Timestamp, indices: &[u64]) -> Result<Self::Item> {
            Ok((start_ms, indices.to_vec()))
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
    }

    #[test]
    fn a_generator_of_many_rows_survives_restarts_and_rescaling() {
        let runtime = runtime();
        for (count, block) in [(0, 1), (1, 1), (15, 1), (40, 7)] {
            let source = RowsSource::new(Numbers).count(Some(count)).block(block).rows_each(1).start_ms(Some(9));
            let expected: Vec<_> = (0..count).map(|index| (9, vec![index])).collect();
            check_source(&source, runtime.handle(), &expected);
        }
    }

    #[test]
    fn items_are_full_and_in_order() {
        let runtime = runtime();
        let source = RowsSource::new(Numbers).count(Some(10_000)).block(50).start_ms(Some(0));
        let mut execution = Execution::start(&source, runtime.handle(), 1).unwrap();
        let mut lengths = Vec::new();
        let mut all = Vec::new();
        while let Some(batch) = execution.next_batch().unwrap() {
            for (_, rows) in batch.rows {
                lengths.push(rows.len());
                all.extend(rows);
            }
        }
        assert_eq!(lengths, [4096, 4096, 1808]);
        assert!(all.into_iter().eq(0..10_000));
    }

    #[test]
    fn the_first_start_is_kept_when_it_starts_again() {
        let runtime = runtime();
        let source = RowsSource::new(Numbers).count(Some(32)).rows_each(1);
        let mut execution = Execution::start(&source, runtime.handle(), 1).unwrap();
        let first = execution.next_batch().unwrap().unwrap().rows[0].0;
        let before = flott_env::now_ms();
        while flott_env::now_ms() == before {
            std::thread::yield_now();
        }
        let mut execution = execution.restart(2).unwrap();
        while let Some(batch) = execution.next_batch().unwrap() {
            assert_eq!(batch.rows[0].0, first);
        }
    }

    #[test]
    fn a_rate_limits_rows_and_not_items() {
        let runtime = runtime();
        let source = RowsSource::new(Numbers).count(Some(30)).rows_per_second(Some(3000.0));
        let mut execution = Execution::start(&source, runtime.handle(), 1).unwrap();
        let start = flott_env::monotonic();
        let mut rows = Vec::new();
        while let Some(batch) = execution.next_batch().unwrap() {
            rows.extend(batch.rows.into_iter().flat_map(|(_, rows)| rows));
        }
        assert!((flott_env::monotonic() - start).as_millis() >= 7);
        assert!(rows.into_iter().eq(0..30));
        let source = RowsSource::new(Numbers).rows_per_second(Some(-1.0));
        assert!(Execution::start(&source, runtime.handle(), 1).is_err());
    }
}
