//! The values of a function at 0, 1, 2, …

use std::marker::PhantomData;
use std::sync::Arc;

use flott_connector_spi::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader};
use flott_core::{Batch, Data, Error, Result};
use serde::{Deserialize, Serialize};

use crate::pace::{Due, Pace};
use crate::strides::{Stride, Strides, deal};

/// The values of a function of an index. The indices are dealt out to all readers in *strides*: every n-th index.
/// Each reader goes through its indices in order, so that time grows in all of them alike if it grows with the index.
///
/// The function is called again with the same indices after a failure: if it is to be exact, it must give the same
/// values.
pub struct GeneratorSource<T, F> {
    function: Arc<F>,
    count: Option<u64>,
    rows_per_second: Option<f64>,
    row: PhantomData<fn() -> T>,
}

impl<T: Data, F: Fn(u64) -> T + Send + Sync + 'static> GeneratorSource<T, F> {
    /// The values of `function` without an end.
    pub fn new(function: F) -> Self {
        Self { function: Arc::new(function), count: None, rows_per_second: None, row: PhantomData }
    }

    /// Ends after `count` values.
    #[must_use]
    pub fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// How many values come in a second from all readers together. The default is as many as can.
    #[must_use]
    pub fn rows_per_second(mut self, rows: f64) -> Self {
        self.rows_per_second = Some(rows);
        self
    }
}

/// Strides of a generator, for one reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorSplit {
    strides: Vec<Stride>,
}

impl<T: Data, F: Fn(u64) -> T + Send + Sync + 'static> Source for GeneratorSource<T, F> {
    type Item = T;
    type Split = GeneratorSplit;

    fn boundedness(&self) -> Boundedness {
        if self.count.is_some() { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    /// One split a reader, since readers of an unbounded source never ask for a second one. A snapshot has one split
    /// a stride.
    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<GeneratorSplit>> {
        if let Some(rate) = self.rows_per_second
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(Error::input(format!(
                "a generator cannot make {rate} rows per second: give a positive number"
            )));
        }
        Ok(deal(cx.parallelism, 1).into_iter().map(|strides| GeneratorSplit { strides }).collect())
    }

    fn reader(&self, _cx: ReaderContext) -> Result<Box<dyn SplitReader<T, GeneratorSplit>>> {
        Ok(Box::new(GeneratorReader {
            function: self.function.clone(),
            rows_per_second: self.rows_per_second,
            strides: Strides::new(self.count.unwrap_or(u64::MAX), 1),
            pace: None,
            row: PhantomData,
        }))
    }
}

struct GeneratorReader<T, F> {
    function: Arc<F>,
    rows_per_second: Option<f64>,
    strides: Strides,
    /// Begun with the first record.
    pace: Option<Pace>,
    row: PhantomData<fn() -> T>,
}

impl<T, F> GeneratorReader<T, F> {
    /// Its part of the rate, by its part of the strides.
    fn new_pace(&self, now_ms: i64) -> Option<Pace> {
        let rate = self.rows_per_second?;
        Some(Pace::new(rate * self.strides.share(), now_ms))
    }
}

impl<T: Data, F: Fn(u64) -> T + Send + Sync + 'static> SplitReader<T, GeneratorSplit> for GeneratorReader<T, F> {
    fn add_split(&mut self, split: GeneratorSplit) -> Result<()> {
        self.pace = None;
        split.strides.into_iter().try_for_each(|stride| self.strides.add(stride))
    }

    fn poll(&mut self, batch: &mut Batch<T>, rows_max: usize) -> Result<ReadStatus> {
        if self.strides.is_empty() {
            return Ok(ReadStatus::NeedsSplit);
        }
        let mut rows = rows_max as u64;
        if self.rows_per_second.is_some() {
            let now_ms = flott_env::now_ms();
            if self.pace.is_none() {
                self.pace = self.new_pace(now_ms);
            }
            match self.pace.as_mut().map(|pace| pace.due(now_ms)) {
                Some(Due::At(at)) => return Ok(ReadStatus::PendingUntil(at)),
                Some(Due::Rows(due)) => rows = rows.min(due),
                None => {}
            }
        }
        self.strides.take(rows, |index| batch.rows.push((self.function)(index)));
        if let Some(pace) = &mut self.pace {
            pace.advance(batch.len() as u64);
        }
        Ok(ReadStatus::Progress)
    }

    fn snapshot(&mut self) -> Result<Vec<GeneratorSplit>> {
        Ok(self.strides.iter().map(|stride| GeneratorSplit { strides: vec![stride] }).collect())
    }

    /// Its strides are read as one.
    fn active_splits(&self) -> Vec<u32> {
        if self.strides.is_empty() { Vec::new() } else { vec![0] }
    }
}

#[cfg(test)]
mod tests {
    use flott_connector_spi::Waker;
    use flott_connector_spi::conformance::{Execution, check_source};

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
    }

    #[test]
    fn a_generator_survives_restarts_and_rescaling() {
        let runtime = runtime();
        for count in [0, 1, 15, 40] {
            let source = GeneratorSource::new(|index| index * 10).count(count);
            let expected: Vec<u64> = (0..count).map(|index| index * 10).collect();
            check_source(&source, runtime.handle(), &expected);
        }
    }

    #[test]
    fn a_limited_rate_changes_no_record() {
        let runtime = runtime();
        let source = GeneratorSource::new(|index| index).count(30).rows_per_second(3000.0);
        let mut execution = Execution::start(&source, runtime.handle(), 1).unwrap();
        let start = flott_env::monotonic();
        let mut rows = Vec::new();
        while let Some(batch) = execution.next_batch().unwrap() {
            rows.extend(batch.rows);
        }
        assert!((flott_env::monotonic() - start).as_millis() >= 7);
        assert_eq!(rows, (0..30).collect::<Vec<u64>>());

        let source = GeneratorSource::new(|index| index).rows_per_second(0.0);
        assert!(Execution::start(&source, runtime.handle(), 1).is_err());
    }

    #[test]
    fn every_index_belongs_to_one_reader_and_comes_in_order() {
        let runtime = runtime();
        for parallelism in [1, 3, 16, 20] {
            let source = GeneratorSource::new(|index| index);
            let io = runtime.handle().clone();
            let splits = source.discover(&DiscoverContext { io: io.clone(), parallelism }).unwrap();
            assert_eq!(splits.len(), parallelism as usize);
            let mut all = Vec::new();
            for split in splits {
                let cx = ReaderContext { io: io.clone(), waker: Waker::noop(), subtask: 0, parallelism };
                let mut reader = source.reader(cx).unwrap();
                reader.add_split(split).unwrap();
                let mut batch = Batch::default();
                assert_eq!(reader.poll(&mut batch, 100).unwrap(), ReadStatus::Progress);
                assert!(batch.rows.is_sorted());
                all.extend(batch.rows);
            }
            all.sort();
            assert!(all.iter().copied().eq(0..100 * u64::from(parallelism)));
        }
    }
}
