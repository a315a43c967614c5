//! When a partition is complete: Flink's `sink.partition-commit.*`, and what INSERT OVERWRITE takes away.
//!
//! Writers tell the committer, one subtask behind all of them, which parts they begin. A barrier closes them. So when a
//! checkpoint is complete, the committer makes the parts that it knew at the barrier visible, whether their writers have done so or
//! not, and then says of the partitions whose time had come at the barrier that they are complete. All of that may be
//! done twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use flott_checkpoint::Redistribution;
use flott_chunk::Chunk;
use flott_connector_spi::SinkContext;
use flott_core::ids::CheckpointId;
use flott_core::time::{Timestamp, WATERMARK_MIN};
use flott_core::{Batch, Error, Result};
use flott_filesystem::{BegunPart, FileSink, Folders, PartLog};
use flott_network::Barrier;
use flott_operators::TaskContext;
use flott_operators::operator::{OpenContext, Operator, OperatorSnapshot};
use flott_operators::push::{Output, SideOutputs};
use flott_operators::sink::SinkOperator;
use flott_sql_functions::PartitionTime;
use flott_sql_runtime::spec::SinkSpec;
use flott_tables::options::Options;
use serde::{Deserialize, Serialize};

use super::layout::Layout;

const POLICY: &str = "sink.partition-commit.policy.kind";
const TRIGGER: &str = "sink.partition-commit.trigger";
const EXTRACTOR: &str = "partition.time-extractor.kind";
const PATTERN: &str = "partition.time-extractor.timestamp-pattern";

/// The column of what writers tell the committer.
fn part_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("part", DataType::Utf8, false)]))
}

/// What writers of a table tell the committer, if the table has one.
pub(in crate::connect) fn committed(spec: &SinkSpec) -> Option<SchemaRef> {
    let has_policy = spec.options.contains_key(POLICY) && !spec.partition_keys.is_empty();
    (has_policy || spec.is_overwrite).then(part_schema)
}

/// When partitions are complete, and what says so.
#[derive(Debug)]
pub(in crate::connect) struct CommitPolicy {
    /// The file that says so, if any.
    success_file: Option<String>,
    trigger: Trigger,
    delay_ms: i64,
    /// Whether partitions are complete at the end alone, and what other jobs wrote into them goes then.
    is_overwrite: bool,
    /// Whether the whole table is written anew.
    is_whole: bool,
}

enum Trigger {
    /// Some time after the first row.
    ProcessTime,
    /// Some time after that of the partition.
    PartitionTime { layout: Arc<Layout>, pattern: Option<String>, time: PartitionTime },
}

impl std::fmt::Debug for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::ProcessTime) { "process-time" } else { "partition-time" })
    }
}

impl CommitPolicy {
    /// Reads `sink.partition-commit.*` and `partition.time-extractor.*`.
    pub(super) fn read(options: &Options, spec: &SinkSpec, layout: Option<Arc<Layout>>) -> Result<Self> {
        let mut has_policy = false;
        for policy in options.get(POLICY).unwrap_or_default().split(',').map(str::trim).filter(|kind| !kind.is_empty())
        {
            match policy {
                "success-file" => has_policy = true,
                other => return Err(options.wrong(POLICY, other, "success-file, the only kind that there is")),
            }
        }
        let name = options.get("sink.partition-commit.success-file.name").unwrap_or("_SUCCESS");
        if name.is_empty() || name.contains('/') {
            return Err(options.wrong("sink.partition-commit.success-file.name", name, "the name of a file"));
        }
        let delay = options.duration("sink.partition-commit.delay")?.unwrap_or_default();
        let zone = options.get("sink.partition-commit.watermark-time-zone").unwrap_or("UTC");
        if let Some(kind) = options.get(EXTRACTOR)
            && kind != "default"
        {
            return Err(options.wrong(EXTRACTOR, kind, "default, the only kind that there is"));
        }
        let formatter = options.get("partition.time-extractor.timestamp-formatter");
        let pattern = options.get(PATTERN).map(str::to_owned);
        let time = PartitionTime::new(formatter, zone);
        let time = time.map_err(|error| error.context(format!("table '{}'", options.table())))?;
        let trigger = match (options.get(TRIGGER).unwrap_or("process-time"), layout) {
            ("process-time", _) | ("partition-time", None) => Trigger::ProcessTime,
            ("partition-time", Some(layout)) => {
                if let Some(pattern) = &pattern {
                    layout.check_pattern(pattern)?;
                }
                Trigger::PartitionTime { layout, pattern, time }
            }
            (other, _) => return Err(options.wrong(TRIGGER, other, "process-time or partition-time")),
        };
        let is_partitioned = !spec.partition_keys.is_empty();
        Ok(Self {
            success_file: (has_policy && is_partitioned).then(|| name.to_owned()),
            trigger,
            delay_ms: i64::try_from(delay.as_millis()).unwrap_or(i64::MAX),
            is_overwrite: spec.is_overwrite,
            is_whole: spec.is_overwrite && !is_partitioned,
        })
    }

    /// Whether the partition of a folder that was first seen at `since_ms` is complete.
    fn is_complete(&self, folder: &str, since_ms: Timestamp, watermark: Timestamp, now_ms: Timestamp) -> Result<bool> {
        match &self.trigger {
            Trigger::ProcessTime => Ok(now_ms >= since_ms.saturating_add(self.delay_ms)),
            Trigger::PartitionTime { layout, pattern, time } => {
                let text = layout.time_text(folder, pattern.as_deref());
                let at = time.read_ms(&text).ok_or_else(|| {
                    Error::user_code(format!(
                        "the partition '{folder}' has no time: '{text}' is none; see '{PATTERN}' and the option for its formatter"
                    ))
                })?;
                Ok(watermark > at.saturating_add(self.delay_ms))
            }
        }
    }
}

/// A writer that tells which parts it begins.
pub(in crate::connect) struct Announcing {
    sink: SinkOperator<Chunk, FileSink<Chunk>>,
    log: PartLog,
    nothing: Output<()>,
    told: Batch<Chunk>,
}

impl Announcing {
    pub(in crate::connect) fn new(sink: FileSink<Chunk>, cx: &TaskContext) -> Self {
        let log = PartLog::default();
        let sink = SinkOperator::new(sink.log_parts(log.clone()), cx);
        Self { sink, log, nothing: Output::new(Vec::new(), SideOutputs::default()), told: Batch::default() }
    }
}

impl Operator<Chunk, Chunk> for Announcing {
    fn process(&mut self, batch: &mut Batch<Chunk>, out: &mut Output<Chunk>) -> Result<()> {
        self.sink.process(batch, &mut self.nothing)?;
        let begun = self.log.take();
        if begun.is_empty() {
            return Ok(());
        }
        let texts = begun.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| Error::system(format!("encoding the name of a part: {error}")))?;
        let batch = RecordBatch::try_new(part_schema(), vec![Arc::new(StringArray::from(texts))]);
        let batch = batch.map_err(|error| Error::system(format!("the names of parts: {error}")))?;
        self.told.rows.push(Chunk::inserts(batch));
        out.push(&mut self.told)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.sink.open(cx)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Output<Chunk>) -> Result<Timestamp> {
        self.sink.on_time(now, &mut self.nothing)
    }

    fn on_end(&mut self, _: &mut Output<Chunk>) -> Result<()> {
        self.sink.on_end(&mut self.nothing)
    }

    fn on_flush(&mut self) -> Result<()> {
        self.sink.on_flush()
    }

    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.sink.snapshot(barrier, snapshot)
    }

    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        self.sink.commit(checkpoint)
    }
}

const PENDING: &str = "partitions";
const CLOSED: &str = "parts";

/// What a checkpoint closes and completes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Closed {
    checkpoint: CheckpointId,
    parts: Vec<BegunPart>,
    /// The partitions that are complete.
    complete: Vec<String>,
    /// Whether the job has ended with it.
    is_last: bool,
}

/// Completes partitions. One subtask.
pub(in crate::connect) struct Committer {
    policy: CommitPolicy,
    path: String,
    cx: SinkContext,
    folders: Option<Folders>,
    watermark: Timestamp,
    /// Parts that are begun since the last barrier.
    begun: Vec<BegunPart>,
    /// Partitions that are not complete, and when each was first seen.
    pending: BTreeMap<String, Timestamp>,
    closed: Vec<Closed>,
    has_ended: bool,
}

impl Committer {
    pub(in crate::connect) fn new(policy: CommitPolicy, path: String, cx: &TaskContext) -> Self {
        Self {
            policy,
            path,
            cx: cx.into(),
            folders: None,
            watermark: WATERMARK_MIN,
            begun: Vec::new(),
            pending: BTreeMap::new(),
            closed: Vec::new(),
            has_ended: false,
        }
    }

    /// Does what a checkpoint that is durable says.
    fn complete(&mut self, closed: &Closed) -> Result<()> {
        let folders = match &mut self.folders {
            Some(folders) => folders,
            folders => folders.insert(Folders::open(&self.path, &self.cx)?),
        };
        if self.policy.is_overwrite && closed.is_last {
            if self.policy.is_whole {
                folders.clear("")?;
            }
            closed.complete.iter().try_for_each(|folder| folders.clear(folder))?;
        }
        folders.publish(&closed.parts)?;
        if let Some(name) = &self.policy.success_file {
            closed.complete.iter().try_for_each(|folder| folders.touch(folder, name))?;
        }
        Ok(())
    }

    /// The partitions that are complete now; they are not pending any more.
    fn take_complete(&mut self) -> Result<Vec<String>> {
        let now_ms = flott_env::now_ms();
        let mut complete = Vec::new();
        for (folder, since_ms) in &self.pending {
            if self.has_ended
                || !self.policy.is_overwrite && self.policy.is_complete(folder, *since_ms, self.watermark, now_ms)?
            {
                complete.push(folder.clone());
            }
        }
        for folder in &complete {
            self.pending.remove(folder);
        }
        Ok(complete)
    }
}

impl Operator<Chunk, ()> for Committer {
    fn process(&mut self, batch: &mut Batch<Chunk>, _: &mut Output<()>) -> Result<()> {
        let now_ms = flott_env::now_ms();
        for chunk in batch.rows.drain(..) {
            for text in chunk.column(0).as_string::<i32>().iter().flatten() {
                let part: BegunPart = serde_json::from_str(text)
                    .map_err(|error| Error::system(format!("the name of a part cannot be read: {error}")))?;
                self.pending.entry(part.folder.clone()).or_insert(now_ms);
                self.begun.push(part);
            }
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let pending: Vec<(String, Timestamp)> = cx.restored.take_state(cx.operator, PENDING)?;
        self.pending = pending.into_iter().collect();
        let closed: Vec<Closed> = cx.restored.take_state(cx.operator, CLOSED)?;
        for closed in closed {
            match self.policy.is_overwrite && !closed.is_last {
                // Nothing is visible before the end.
                true => self.begun.extend(closed.parts),
                false => self.complete(&closed)?,
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, _: &mut Output<()>) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        Ok(())
    }

    fn on_end(&mut self, _: &mut Output<()>) -> Result<()> {
        self.has_ended = true;
        Ok(())
    }

    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        let complete = self.take_complete()?;
        let (checkpoint, is_last) = (barrier.checkpoint, self.has_ended);
        let closed = Closed { checkpoint, parts: std::mem::take(&mut self.begun), complete, is_last };
        if self.policy.is_overwrite && !is_last {
            self.begun.clone_from(&closed.parts);
            snapshot.add(CLOSED, Redistribution::Split, &[closed])?;
        } else {
            if !closed.parts.is_empty() || !closed.complete.is_empty() || is_last {
                self.closed.push(closed);
            }
            snapshot.add(CLOSED, Redistribution::Split, &self.closed)?;
        }
        let pending: Vec<(String, Timestamp)> =
            self.pending.iter().map(|(folder, since_ms)| (folder.clone(), *since_ms)).collect();
        snapshot.add(PENDING, Redistribution::Split, &pending)
    }

    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        // A commit for n commits everything up to n: notifications may be lost or come late.
        let due: Vec<Closed> = self.closed.extract_if(.., |closed| closed.checkpoint <= checkpoint).collect();
        due.iter().try_for_each(|closed| self.complete(closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(more: &[(&str, &str)]) -> Options {
        Options::new("t", more.iter().copied())
    }

    fn spec(keys: &[&str], is_overwrite: bool) -> SinkSpec {
        let field = |name: &str| Field::new(name, DataType::Utf8, true);
        SinkSpec {
            table: "t".to_owned(),
            options: BTreeMap::new(),
            table_schema: Arc::new(Schema::new(vec![field("v"), field("dt"), field("hr")])),
            metadata: BTreeMap::new(),
            partition_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            primary_key: Vec::new(),
            is_overwrite,
            is_batch: false,
        }
    }

    fn policy(more: &[(&str, &str)]) -> Result<CommitPolicy> {
        let (options, spec) = (options(more), spec(&["dt", "hr"], false));
        let layout = Layout::new(&options, &spec.table_schema, &spec.partition_keys)?;
        CommitPolicy::read(&options, &spec, layout.map(Arc::new))
    }

    #[test]
    fn partitions_are_complete_when_the_watermark_is_past_their_time() {
        let hour = 3_600_000;
        let policy = policy(&[
            (POLICY, "success-file"),
            (TRIGGER, "partition-time"),
            (PATTERN, "$dt $hr:00:00"),
            ("sink.partition-commit.delay", "1 h"),
            ("sink.partition-commit.watermark-time-zone", "Asia/Shanghai"),
        ]);
        let policy = policy.unwrap();
        let at = |watermark| policy.is_complete("dt=1970-01-01/hr=10", 0, watermark, 0).unwrap();
        assert_eq!((at(3 * hour), at(3 * hour + 1)), (false, true));
        let error = policy.is_complete("dt=__DEFAULT_PARTITION__/hr=10", 0, 0, 0).unwrap_err().to_string();
        assert!(error.contains("'__DEFAULT_PARTITION__ 10:00:00' is none"), "{error}");
    }

    #[test]
    fn without_a_trigger_the_clock_decides() {
        let policy = policy(&[(POLICY, "success-file"), ("sink.partition-commit.delay", "5 s")]).unwrap();
        let at = |now_ms| policy.is_complete("dt=x/hr=y", 1000, WATERMARK_MIN, now_ms).unwrap();
        assert_eq!((at(5999), at(6000)), (false, true));
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        for (key, value) in [
            (POLICY, "metastore"),
            (POLICY, "success-file,custom"),
            (TRIGGER, "watermark"),
            (EXTRACTOR, "custom"),
            ("sink.partition-commit.success-file.name", "a/b"),
        ] {
            let error = policy(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(&format!("option '{key}' is '")), "{error}");
        }
        let unknown = policy(&[(TRIGGER, "partition-time"), (PATTERN, "$day")]).unwrap_err().to_string();
        assert!(unknown.contains("'$day'"), "{unknown}");
        let zone = policy(&[("sink.partition-commit.watermark-time-zone", "Mars")]).unwrap_err().to_string();
        assert!(zone.contains("'Mars'"), "{zone}");
    }

    #[test]
    fn only_tables_that_need_one_have_a_committer() {
        let with = |keys: &[&str], is_overwrite, has_policy: bool| {
            let mut spec = spec(keys, is_overwrite);
            if has_policy {
                spec.options.insert(POLICY.to_owned(), "success-file".to_owned());
            }
            committed(&spec).is_some()
        };
        assert!(with(&["dt"], false, true) && with(&[], true, false) && with(&["dt"], true, false));
        assert!(!with(&["dt"], false, false) && !with(&[], false, true));
    }
}
