//! Tables of which so many rows are enough: a LIMIT right above them.
//!
//! Each reader stops by itself, so there may be more rows than are wanted: the operator that counts exactly is behind them all. A
//! restart begins to count anew. What was read before it has been counted behind, so there may be more rows then, and never
//! fewer.

use flott_chunk::Chunk;
use flott_connector_spi::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader};
use flott_core::{Batch, Result};

/// See the module's documentation.
pub(super) struct Limited<S> {
    source: S,
    rows: u64,
}

impl<S> Limited<S> {
    /// So many rows of `source` for each reader.
    pub(super) fn new(source: S, rows: u64) -> Self {
        Self { source, rows }
    }
}

impl<S: Source<Item = Chunk>> Source for Limited<S> {
    type Item = Chunk;
    type Split = S::Split;

    /// Rows that are made without an end have one here.
    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<S::Split>> {
        self.source.discover(cx)
    }

    fn reader(&self, cx: ReaderContext) -> Result<Box<dyn SplitReader<Chunk, S::Split>>> {
        Ok(Box::new(LimitedReader { reader: Some(self.source.reader(cx)?), left: self.rows, skipped: 0 }))
    }
}

struct LimitedReader<S> {
    /// Gone when there are enough rows, and with it whatever it reads ahead.
    reader: Option<Box<dyn SplitReader<Chunk, S>>>,
    left: u64,
    skipped: u64,
}

impl<S> SplitReader<Chunk, S> for LimitedReader<S> {
    fn add_split(&mut self, split: S) -> Result<()> {
        match &mut self.reader {
            Some(reader) => reader.add_split(split),
            // Nobody misses its rows.
            None => Ok(()),
        }
    }

    fn poll(&mut self, batch: &mut Batch<Chunk>, rows_max: usize) -> Result<ReadStatus> {
        let Some(reader) = &mut self.reader else { return Ok(ReadStatus::NeedsSplit) };
        let status = reader.poll(batch, rows_max)?;
        self.skipped = reader.skipped();
        for chunk in &mut batch.rows {
            let rows = self.left.min(chunk.len() as u64);
            if rows < chunk.len() as u64 {
                *chunk = chunk.slice(0, rows as usize);
            }
            self.left -= rows;
        }
        batch.rows.retain(|chunk| !chunk.is_empty());
        if self.left > 0 {
            return Ok(status);
        }
        self.reader = None;
        Ok(ReadStatus::Progress)
    }

    fn snapshot(&mut self) -> Result<Vec<S>> {
        self.reader.as_mut().map_or_else(|| Ok(Vec::new()), |reader| reader.snapshot())
    }

    fn active_splits(&self) -> Vec<u32> {
        self.reader.as_ref().map_or_else(Vec::new, |reader| reader.active_splits())
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use flott_connector_spi::IoHandle;
    use flott_connector_spi::conformance::Execution;
    use flott_sql_runtime::spec::SourceSpec;

    use super::*;
    use crate::connect::{SourceVisitor, with_source};

    /// Counts the rows that are read.
    struct Count<'a> {
        io: &'a IoHandle,
        readers: usize,
        /// After how many batches others go on.
        restarts_after: Option<usize>,
    }

    impl SourceVisitor for Count<'_> {
        type Output = u64;

        fn visit<S: Source<Item = Chunk>>(self, source: S) -> Result<u64> {
            assert_eq!(source.boundedness(), Boundedness::Bounded);
            let mut execution = Execution::start(&source, self.io, self.readers)?;
            let mut rows = 0;
            for batches in 0_usize.. {
                if Some(batches) == self.restarts_after {
                    execution = execution.restart(self.readers)?;
                }
                let Some(batch) = execution.next_batch()? else { break };
                rows += batch.rows.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            }
            Ok(rows)
        }
    }

    fn spec(options: &[(&str, &str)], column: &str, data_type: DataType, limit: u64) -> SourceSpec {
        SourceSpec {
            table: "t".to_owned(),
            options: options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            table_schema: Arc::new(Schema::new(vec![Field::new(column, data_type, true)])),
            metadata: BTreeMap::new(),
            partition_keys: Vec::new(),
            projection: vec![0],
            limit: Some(limit),
            filters: Vec::new(),
            is_batch: false,
        }
    }

    /// The tables of all connectors that are read. Those of made rows have no end, that of files has 60 rows in two files.
    fn tables(path: &str, limit: u64) -> [SourceSpec; 3] {
        let files = [("connector", "filesystem"), ("path", path), ("format", "json")];
        [
            spec(&files, "n", DataType::Int64, limit),
            spec(&[("connector", "datagen")], "n", DataType::Int64, limit),
            spec(&[("connector", "nexmark")], "event_type", DataType::Int32, limit),
        ]
    }

    #[test]
    fn each_reader_stops_when_there_are_enough_rows() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a.json", "b.json"] {
            let lines: String = (0..30).map(|n| format!("{{\"n\": {n}}}\n")).collect();
            fs::write(folder.path().join(file), lines).unwrap();
        }
        let path = folder.path().to_str().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let io = runtime.handle();
        let read = |table: &SourceSpec, readers, restarts_after| {
            with_source(table, None, Count { io, readers, restarts_after }).unwrap()
        };
        for table in tables(path, 7) {
            assert_eq!(read(&table, 1, None), 7, "{:?}", table.options);
            let rows = read(&table, 3, None);
            assert!((7..=21).contains(&rows), "{rows} rows of {:?}", table.options);
            // Whoever goes on may read too much, and never too little.
            let rows = read(&table, 1, Some(1));
            assert!((7..=14).contains(&rows), "{rows} rows of {:?}", table.options);
        }
        for table in tables(path, 0) {
            assert_eq!(read(&table, 2, None), 0, "{:?}", table.options);
        }
        let [files, ..] = tables(path, 1000);
        assert_eq!(read(&files, 2, Some(1)), 60);
    }
}
