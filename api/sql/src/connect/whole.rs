//! Tables that are read as a whole, to look rows up in them.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use flott_chunk::Chunk;
use flott_connector_spi::{DiscoverContext, IoHandle, ReadStatus, ReaderContext, Source, Waker};
use flott_core::{Batch, Error, Result};
use flott_sql_runtime::operators::lookup_join::whole::WholeTable;
use flott_sql_runtime::spec::{LookupJoinSpec, SourceSpec};
use flott_tables::options::Options;

/// How a reader that waits is asked again, should nobody wake it.
const PATIENCE: Duration = Duration::from_millis(100);

/// When a table is read again, in milliseconds after it was read. Reads all of Flink's options of look-ups.
///
/// # Errors
/// They ask for a cache that a table that is read as a whole cannot have.
pub(super) fn reload_ms(options: &Options) -> Result<Option<u64>> {
    if let Some(cache) = options.get("lookup.cache")
        && !cache.eq_ignore_ascii_case("full")
    {
        return Err(options.wrong(
            "lookup.cache",
            cache,
            "FULL: files have no index, so they are kept in memory as a whole",
        ));
    }
    let strategy = "lookup.full-cache.reload-strategy";
    if let Some(text) = options.get(strategy)
        && !text.eq_ignore_ascii_case("periodic")
    {
        return Err(options.wrong(strategy, text, "PERIODIC, the only strategy that there is yet"));
    }
    let mode = "lookup.full-cache.periodic-reload.schedule-mode";
    if let Some(text) = options.get(mode)
        && !text.eq_ignore_ascii_case("fixed_delay")
    {
        return Err(options.wrong(mode, text, "FIXED_DELAY, the only mode that there is yet"));
    }
    let interval = options.duration("lookup.full-cache.periodic-reload.interval")?;
    Ok(interval.map(|interval| u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1)))
}

/// The columns that must be read for a look-up: those that come out, and behind them those of the key alone. Then which of
/// them are the key.
pub(super) fn reading(spec: &LookupJoinSpec) -> (SourceSpec, Vec<usize>) {
    let mut table = SourceSpec { limit: None, filters: Vec::new(), ..spec.table.clone() };
    let mut place = |column: &usize| match table.projection.iter().position(|read| read == column) {
        Some(place) => place,
        None => {
            table.projection.push(*column);
            table.projection.len() - 1
        }
    };
    let keys = spec.right_keys.iter().map(&mut place).collect();
    (table, keys)
}

/// A table that is read from `source` whenever it is wanted.
pub(super) fn table<S: Source<Item = Chunk>>(
    spec: &LookupJoinSpec,
    schema: SchemaRef,
    keys: Vec<usize>,
    source: S,
    reload_ms: Option<u64>,
    io: &IoHandle,
) -> WholeTable {
    let io = io.clone();
    let load = move || read_all(&source, &io);
    let (name, width) = (spec.table.table.clone(), spec.table.projection.len());
    WholeTable { name, load: Arc::new(load), schema, width, keys, reload_ms }
}

/// All rows of a source that ends, in the order of its splits.
fn read_all<S: Source<Item = Chunk>>(source: &S, io: &IoHandle) -> Result<Vec<RecordBatch>> {
    let (sender, woken) = sync_channel(1);
    let waker = Waker::new(move || {
        // A full channel has said it already.
        let _ = sender.try_send(());
    });
    let mut reader = source.reader(ReaderContext { io: io.clone(), waker, subtask: 0, parallelism: 1 })?;
    for split in source.discover(&DiscoverContext { io: io.clone(), parallelism: 1 })? {
        reader.add_split(split)?;
    }
    let (mut rows, mut batch) = (Vec::new(), Batch::default());
    loop {
        batch.clear();
        let status = reader.poll(&mut batch, Batch::<Chunk>::ROWS_MAX)?;
        rows.extend(batch.rows.drain(..).map(|chunk| chunk.batch));
        match status {
            ReadStatus::Progress => {}
            ReadStatus::NeedsSplit => return Ok(rows),
            ReadStatus::Pending | ReadStatus::PendingUntil(_) => {
                if let Err(RecvTimeoutError::Disconnected) = woken.recv_timeout(PATIENCE) {
                    return Err(Error::system("a table's reader has gone away"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use flott_sql_runtime::expr::Functions;

    use super::*;
    use crate::connect::filesystem;

    fn spec(path: &str, options: &[(&str, &str)]) -> LookupJoinSpec {
        let fields = [("id", DataType::Int64), ("unread", DataType::Int64), ("name", DataType::Utf8)];
        let fields: Vec<Field> = fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect();
        let all = [("connector", "filesystem"), ("path", path), ("format", "csv")];
        let table = SourceSpec {
            table: "names".to_owned(),
            options: all.iter().chain(options).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            table_schema: Arc::new(Schema::new(fields)),
            metadata: BTreeMap::new(),
            partition_keys: Vec::new(),
            projection: vec![2],
            limit: None,
            filters: Vec::new(),
            is_batch: false,
        };
        LookupJoinSpec {
            table,
            left_keys: vec![0],
            right_keys: vec![0],
            is_left_outer: false,
            condition: None,
            is_insert_only: true,
            timeout_ms: 1000,
            requests_max: 1,
        }
    }

    #[test]
    fn files_are_read_with_the_columns_that_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "1,10,one\n2,20,two\n").unwrap();
        std::fs::write(folder.path().join("b.csv"), "3,30,three\n").unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let interval = ("lookup.full-cache.periodic-reload.interval", "5 s");
        let spec = spec(folder.path().to_str().unwrap(), &[("lookup.cache", "FULL"), interval]);
        let table = filesystem::lookup(&spec, &Functions::new([]), runtime.handle()).unwrap();
        assert_eq!((table.width, &table.keys[..], table.reload_ms), (1, &[1][..], Some(5000)));
        let rows = arrow::compute::concat_batches(&table.schema, &(table.load)().unwrap()).unwrap();
        assert_eq!(*rows.column(0), Arc::new(StringArray::from(vec!["one", "two", "three"])) as _);
        assert_eq!(*rows.column(1), Arc::new(Int64Array::from(vec![1, 2, 3])) as _);
        // Read again, it has what is there now.
        std::fs::write(folder.path().join("c.csv"), "4,40,four\n").unwrap();
        let rows: usize = (table.load)().unwrap().iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 4);
    }

    #[test]
    fn caches_that_files_cannot_have_are_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let cases = [
            ("lookup.cache", "PARTIAL", "FULL"),
            ("lookup.full-cache.reload-strategy", "TIMED", "PERIODIC"),
            ("lookup.full-cache.periodic-reload.schedule-mode", "FIXED_RATE", "FIXED_DELAY"),
        ];
        for (option, value, instead) in cases {
            let error =
                filesystem::lookup(&spec("/nowhere", &[(option, value)]), &Functions::new([]), runtime.handle())
                    .err()
                    .unwrap();
            let error = error.to_string();
            assert!(error.contains(option) && error.contains(value) && error.contains(instead), "{error}");
        }
    }
}
