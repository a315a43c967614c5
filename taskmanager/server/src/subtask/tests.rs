use std::sync::{Arc, Mutex};

use flott_checkpoint::assign::ChannelSource;
use flott_checkpoint::manifest::ChannelInput;
use flott_connector_spi::Waker;
use flott_core::Batch;
use flott_core::config::Configuration;
use flott_core::hash::stable_hash;
use flott_core::ids::{JobId, OperatorId, SubtaskId};
use flott_core::key_group::{KeyGroupRange, group_of, owner_of};
use flott_graph::Partitioning;
use flott_network::{Element, Payload, Receiver, Signal, local_channel};
use flott_operators::Push;
use flott_operators::exchange::{ChannelWriter, HashRows};
use flott_operators::snapshot::ChannelContents;
use flott_operators::task::{InputHead, PayloadCodec};
use flott_state::cold::{ColdOptions, ColdStore};
use flott_state::{Checkpointed, KeyedTable, SnapshotContent, SnapshotReader, StateBackend};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::gate::{InputChannel, Records};

const GROUPS: u32 = 128;

/// So small that one batch fills it.
const CHANNEL_BYTES: u64 = 100;

/// A chain that keeps what it gets, in order.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<u32>>>);

impl Push<u32> for Collected {
    fn push(&mut self, batch: &mut Batch<u32>) -> Result<()> {
        self.0.lock().unwrap().append(&mut batch.rows);
        batch.clear();
        Ok(())
    }

    fn control(&mut self, _: &mut Control<'_>) -> Result<()> {
        Ok(())
    }
}

impl Collected {
    fn rows(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }
}

/// One subtask that deals rows out by key to others, which keep them.
struct Job {
    _io: Runtime,
    input: Sender,
    upstream: Subtask,
    downstream: Vec<(Subtask, Collected)>,
}

impl Job {
    fn new(parallelism: u32) -> Self {
        let io = Builder::new_current_thread().build().unwrap();
        let hash: HashRows<u32> =
            Arc::new(|rows: &[u32], hashes: &mut Vec<u64>| hashes.extend(rows.iter().map(stable_hash)));
        let (input, receiver) = local_channel(1 << 20, Signal::new(), Signal::new());
        let pairs = (0..parallelism).map(|_| local_channel(CHANNEL_BYTES, Signal::new(), Signal::new()));
        let (senders, receivers): (Vec<Sender>, Vec<Receiver>) =
            pairs.map(|(sender, receiver)| (sender.with_overtaking(), receiver)).unzip();
        let writer = ChannelWriter::new(Partitioning::Hash, Some(hash), GROUPS, 0, senders.clone(), Arc::default());
        let upstream = subtask(&io, (0, 0, 1), receiver, false, Box::new(writer), senders);
        let downstream = (0..).zip(receivers).map(|(index, receiver)| {
            let collected = Collected::default();
            let chain = Box::new(collected.clone());
            (subtask(&io, (1, index, parallelism), receiver, true, chain, Vec::new()), collected)
        });
        let downstream = downstream.collect();
        Self { _io: io, input, upstream, downstream }
    }

    fn send(&self, rows: std::ops::Range<u32>) {
        let count = rows.len() as u32;
        let batch = Box::new(Batch::from_rows(rows.collect::<Vec<u32>>()));
        self.input.send(Element::Batch(Payload::Local { batch, rows: count, bytes: 0 })).unwrap();
    }

    fn send_barrier(&self, checkpoint: CheckpointId) {
        let barrier = Barrier { checkpoint, triggered_ms: flott_env::now_ms(), kind: CheckpointKind::Checkpoint };
        self.input.send(Element::UnalignedBarrier { barrier, overtaken: 0 }).unwrap();
    }

    /// Lets everybody work until there is nothing to do.
    fn run(&mut self) {
        loop {
            let now = flott_env::now_ms();
            let mut has_moved = false;
            for (subtask, _) in &mut self.downstream {
                has_moved |= subtask.step(now).unwrap() == Step::Progress;
            }
            has_moved |= self.upstream.step(now).unwrap() == Step::Progress;
            has_moved |= self.upstream.flush().unwrap();
            if !has_moved {
                return;
            }
        }
    }

    fn rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = self.downstream.iter().flat_map(|(_, collected)| collected.rows()).collect();
        rows.sort_unstable();
        rows
    }
}

pub(crate) fn subtask(
    io: &Runtime,
    (vertex, index, parallelism): (u32, u32, u32),
    receiver: Receiver,
    is_keyed: bool,
    chain: Box<dyn Push<u32>>,
    outputs: Vec<Sender>,
) -> Subtask {
    let mut config = Configuration::default();
    config.set("execution.checkpointing.unaligned", "true").unwrap();
    let cx = TaskContext {
        job: JobId([1; 16]),
        generation: 1,
        subtask: SubtaskId { vertex, index },
        name: format!("vertex-{vertex}"),
        parallelism,
        max_parallelism: GROUPS,
        config: config.clone(),
        counters: Arc::default(),
        io: io.handle().clone(),
        waker: Waker::new(|| {}),
        woken: Arc::default(),
        outlet: Default::default(),
        splits: Arc::default(),
        state: StateBackend::default(),
    };
    let head = Head::Input(Box::new(InputHead::new(chain, Arc::clone(&cx.counters))));
    let inputs = vec![ChannelInput { sender: OperatorId([9; 16]), is_keyed, channels: 1 }];
    let records = Records { operator: OperatorId([vertex as u8; 16]), inputs, codec: PayloadCodec::of::<u32>() };
    let channels = vec![InputChannel { receiver, is_keyed, is_ordered: false }];
    let gate = InputGate::new(channels, Some(records), Overtaking::of(&config).unwrap());
    Subtask::new(cx, head, gate, outputs, None).unwrap()
}

/// What a subtask has reported as in flight to it at a checkpoint.
fn in_flight(subtask: &mut Subtask, checkpoint: CheckpointId) -> Option<SavedChannels> {
    let mut snapshots = subtask.take_reports().filter_map(|report| match report {
        Report::Snapshot(snapshot) => Some(snapshot),
        Report::Status(_) | Report::RequestSplit => None,
    });
    let snapshot = snapshots.next().expect("a snapshot");
    assert_eq!(snapshot.checkpoint, checkpoint);
    snapshot.channels
}

fn restored<'a>(saved: impl IntoIterator<Item = &'a SavedChannels>, is_whole: bool) -> RestoredState {
    let contents = saved.into_iter().map(|saved| {
        let file = FileHandle { path: String::new(), bytes: 0, sha256: String::new() };
        let source = ChannelSource { file, schema: saved.schema.clone(), is_whole, has_others: is_whole };
        ChannelContents { source, bytes: saved.bytes.clone().into() }
    });
    let mut restored = RestoredState::new(Vec::new(), Vec::new());
    restored.channels = contents.collect();
    restored
}

#[test]
fn a_backpressured_job_snapshots_at_once_and_is_restored_at_another_parallelism() {
    let mut job = Job::new(2);
    job.send(0..100);
    let now = flott_env::now_ms();
    job.upstream.step(now).unwrap();
    job.upstream.flush().unwrap();
    assert_eq!(job.upstream.step(now).unwrap(), Step::BackPressured);

    // There is room for nothing, and yet the barrier gets through.
    job.send(100..200);
    job.send_barrier(1);
    job.send(200..250);
    for _ in 0..3 {
        job.upstream.step(now).unwrap();
    }
    let upstream = in_flight(&mut job.upstream, 1).expect("a batch that waited");
    assert_eq!(upstream.rows, 100);
    let mut downstream = Vec::new();
    for (subtask, collected) in &mut job.downstream {
        // The first step may process what it has just saved: the snapshot was taken before that.
        subtask.step(now).unwrap();
        subtask.step(now).unwrap();
        downstream.push(in_flight(subtask, 1).expect("a batch that waited"));
        assert!(collected.rows().iter().all(|row| *row < 100));
    }
    assert_eq!(downstream.iter().map(|saved| saved.rows).sum::<u64>(), 100);

    // The job itself goes on as if nothing had been.
    job.run();
    assert_eq!(job.rows(), (0..250).collect::<Vec<_>>());

    // Nothing had been processed at the barrier, so everything comes from what was in flight.
    let mut job = Job::new(3);
    job.upstream.open(restored([&upstream], true)).unwrap();
    for (subtask, _) in &mut job.downstream {
        subtask.open(restored(&downstream, false)).unwrap();
    }
    job.run();
    assert_eq!(job.rows(), (0..200).collect::<Vec<_>>());
    for (index, (_, collected)) in (0..).zip(&job.downstream) {
        let is_owned = |row: &u32| owner_of(group_of(stable_hash(row), GROUPS), 3, GROUPS) == index;
        assert!(collected.rows().iter().all(is_owned));
    }
}

#[test]
fn an_unaligned_snapshot_that_is_given_up_is_not_reported() {
    let mut job = Job::new(1);
    job.send(0..100);
    let now = flott_env::now_ms();
    job.upstream.step(now).unwrap();
    job.upstream.flush().unwrap();
    // More is in flight than one step saves, and the next barrier comes before the rest is saved.
    for start in [100, 1100, 2100] {
        job.send(start..start + 1000);
    }
    job.send_barrier(1);
    assert_eq!(job.upstream.step(now).unwrap(), Step::Progress);
    job.send_barrier(2);
    job.run();
    let checkpoints = |subtask: &mut Subtask| -> Vec<CheckpointId> {
        let checkpoint = |report: Report| match report {
            Report::Snapshot(snapshot) => Some(snapshot.checkpoint),
            Report::Status(_) | Report::RequestSplit => None,
        };
        subtask.take_reports().filter_map(checkpoint).collect()
    };
    assert_eq!(checkpoints(&mut job.upstream), [2]);
    assert_eq!(checkpoints(&mut job.downstream[0].0).last(), Some(&2));
    assert_eq!(job.rows(), (0..3100).collect::<Vec<_>>());
}

/// A chain with keyed state: how often each number came.
struct Counts(KeyedTable<u32, (), u64>);

const COUNTS: OperatorId = OperatorId([7; 16]);

impl Push<u32> for Counts {
    fn push(&mut self, batch: &mut Batch<u32>) -> Result<()> {
        for row in batch.rows.drain(..) {
            *self.0.get_or_insert_with(stable_hash(&row), &row, (), || 0) += 1;
        }
        batch.clear();
        Ok(())
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        match control {
            Control::Barrier(_, snapshot) => snapshot.freeze(COUNTS, &mut self.0),
            Control::Drain(snapshot) => snapshot.drain(COUNTS, &mut self.0)?,
            Control::Commit(checkpoint) => self.0.confirm(*checkpoint),
            _ => {}
        }
        Ok(())
    }
}

/// A subtask with keyed state, which gets rows and barriers.
struct Counting {
    _io: Runtime,
    input: Sender,
    subtask: Subtask,
}

impl Counting {
    fn new() -> Self {
        let io = Builder::new_current_thread().build().unwrap();
        let (input, receiver) = local_channel(1 << 20, Signal::new(), Signal::new());
        let range = KeyGroupRange { start: 0, end: GROUPS };
        let chain = Box::new(Counts(KeyedTable::new("counts", range, GROUPS)));
        let subtask = subtask(&io, (0, 0, 1), receiver, true, chain, Vec::new());
        Self { _io: io, input, subtask }
    }

    fn count(&mut self, rows: std::ops::Range<u32>) {
        let count = rows.len() as u32;
        let batch = Box::new(Batch::from_rows(rows.collect::<Vec<u32>>()));
        self.input.send(Element::Batch(Payload::Local { batch, rows: count, bytes: 0 })).unwrap();
        while self.subtask.step(flott_env::now_ms()).unwrap() == Step::Progress {}
    }

    /// Which files the snapshot builds on, and how many entries its own has.
    fn snapshot(&mut self, checkpoint: CheckpointId, kind: CheckpointKind) -> (Vec<String>, u64) {
        self.input.send(Element::Barrier(Barrier { checkpoint, triggered_ms: flott_env::now_ms(), kind })).unwrap();
        let snapshot = loop {
            assert_eq!(self.subtask.step(flott_env::now_ms()).unwrap(), Step::Progress);
            let snapshot = self.subtask.take_reports().find_map(|report| match report {
                Report::Snapshot(snapshot) => Some(snapshot),
                Report::Status(_) | Report::RequestSplit => None,
            });
            if let Some(snapshot) = snapshot {
                break snapshot;
            }
        };
        assert_eq!(snapshot.checkpoint, checkpoint);
        let Ok((SnapshotContent::Memory(bytes), _)) = snapshot.content else { panic!("no place to overflow to") };
        let mut reader = SnapshotReader::new(&bytes).unwrap();
        let mut entries = 0;
        while let Some(section) = reader.next_section().unwrap() {
            entries += section.entries;
        }
        (snapshot.chain.into_iter().map(|file| file.path).collect(), entries)
    }

    /// A base, and changes that are small beside it.
    fn uploaded(&mut self, checkpoint: CheckpointId, files: &[&str]) {
        let file = |(index, path): (usize, &&str)| {
            let bytes = if index == 0 { 1 << 20 } else { 1 << 10 };
            FileHandle { path: (*path).to_owned(), bytes, sha256: String::new() }
        };
        self.subtask.uploaded(checkpoint, files.iter().enumerate().map(file).collect(), Vec::new());
    }
}

#[test]
fn savepoints_leave_the_chain_of_checkpoints_alone() {
    let savepoint = |stop| CheckpointKind::Savepoint { dir: "s3://s/1".to_owned(), stop, drain: false };
    let none: Vec<String> = Vec::new();
    let mut bed = Counting::new();
    bed.count(0..1000);
    assert_eq!(bed.snapshot(1, CheckpointKind::Checkpoint), (none.clone(), 1000));
    bed.uploaded(1, &["1"]);
    bed.subtask.completed(1, false, false).unwrap();

    // While a savepoint is made durable, the next checkpoint has what changed before it and after it.
    bed.count(0..10);
    assert_eq!(bed.snapshot(2, savepoint(false)), (none.clone(), 1000));
    bed.count(5..20);
    assert_eq!(bed.snapshot(3, CheckpointKind::Checkpoint), (vec!["1".to_owned()], 20));
    bed.uploaded(3, &["1", "3"]);
    bed.uploaded(2, &[]);
    bed.subtask.completed(3, false, false).unwrap();

    // One that is aborted changes nothing either.
    bed.count(0..7);
    assert_eq!(bed.snapshot(4, savepoint(false)).1, 1000);
    bed.subtask.aborted(4);
    let chain = vec!["1".to_owned(), "3".to_owned()];
    assert_eq!(bed.snapshot(5, CheckpointKind::Checkpoint), (chain.clone(), 7));
    bed.uploaded(5, &["1", "3", "5"]);
    bed.subtask.aborted(5);
    // But what an aborted checkpoint took is in no other one.
    bed.count(0..3);
    assert_eq!(bed.snapshot(6, savepoint(false)).1, 1000);
    assert_eq!(bed.snapshot(7, CheckpointKind::Checkpoint), (none.clone(), 1000));
    bed.uploaded(7, &["7"]);
    bed.subtask.completed(7, false, false).unwrap();
    assert_eq!(bed.snapshot(8, CheckpointKind::Checkpoint), (vec!["7".to_owned()], 0));
    assert_eq!(bed.snapshot(9, savepoint(true)), (none, 1000));
}

/// The chain of one subtask of a job whose state does not grow.
struct Folding {
    chain: Chain,
    index: u32,
    base_bytes: u64,
    change_bytes: u64,
}

impl Folding {
    fn new(index: u32, base_bytes: u64, change_bytes: u64) -> Self {
        let chain = Chain { files: Vec::new(), last: 0, pending: None, needs_base: true, is_incremental: true };
        Self { chain, index, base_bytes, change_bytes }
    }

    /// Takes a checkpoint, which becomes complete. Returns what it writes, and whether that is a base.
    fn checkpoint(&mut self, checkpoint: CheckpointId) -> (u64, bool) {
        let is_base = !self.chain.can_grow();
        let bytes = if is_base { self.base_bytes } else { self.change_bytes };
        let mut files = if is_base { Vec::new() } else { self.chain.files.clone() };
        let path = format!("s3://c/job/g1/chk-{checkpoint}/1-{}.state", self.index);
        files.push(FileHandle { path, bytes, sha256: String::new() });
        (self.chain.last, self.chain.pending, self.chain.needs_base) = (checkpoint, Some((checkpoint, files)), true);
        self.chain.completed(checkpoint);
        (bytes, is_base)
    }
}

#[test]
fn bases_are_written_when_changes_have_outgrown_them_and_not_all_at_once() {
    const SUBTASKS: u32 = 16;
    const CHECKPOINTS: CheckpointId = 5000;
    let mut subtasks: Vec<Folding> = (0..SUBTASKS).map(|index| Folding::new(index, 100_000, 1000)).collect();
    let (mut written, mut most, mut lengths) = (0, 0, Vec::new());
    for checkpoint in 1..=CHECKPOINTS {
        let mut bases = 0;
        for folding in &mut subtasks {
            let files = folding.chain.files.len();
            let (bytes, is_base) = folding.checkpoint(checkpoint);
            written += bytes;
            bases += u32::from(is_base);
            lengths.extend((is_base && checkpoint > 1).then_some(files));
        }
        assert_eq!(bases == SUBTASKS, checkpoint == 1, "all at once in checkpoint {checkpoint}");
        most = if checkpoint == 1 { 0 } else { most.max(bases) };
    }
    assert!(most <= SUBTASKS / 2, "{most} bases in one checkpoint");
    let changed = u64::from(SUBTASKS) * CHECKPOINTS * 1000;
    let percent = written * 100 / changed;
    assert!((180..220).contains(&percent), "{percent} % of what has changed was written");
    // A base and the changes of half to one and a half of it.
    assert!(lengths.iter().all(|files| (50..=153).contains(files)), "{lengths:?}");
}

#[test]
fn small_changes_do_not_make_chains_without_end_and_large_ones_none() {
    let longest = |change_bytes: u64| {
        let mut folding = Folding::new(0, 1 << 30, change_bytes);
        (1..=1000).map(|checkpoint| (folding.checkpoint(checkpoint), folding.chain.files.len()).1).max()
    };
    let few = longest(1).unwrap_or_default() as u64;
    assert!((CHANGES_PER_BASE / 2..=CHANGES_PER_BASE * 3 / 2 + 2).contains(&few), "{few} files");
    assert!(longest(1 << 30) <= Some(3));
    assert!(!Folding::new(0, 1, 1).chain.is_long(), "there is nothing to fold");
}

#[test]
fn the_limit_of_a_base_does_not_change_when_it_is_restored() {
    let mut folding = Folding::new(3, 100_000, 1000);
    while !folding.chain.is_long() {
        folding.checkpoint(folding.chain.last + 1);
    }
    let files = folding.chain.files.clone();
    let chain =
        |files: &[FileHandle]| Chain { files: files.to_vec(), needs_base: false, ..Folding::new(3, 1, 1).chain };
    assert!(!chain(&files).can_grow() && chain(&files[..files.len() - 1]).can_grow());
}

#[test]
fn a_checkpoint_shares_files_of_complete_checkpoints_only() {
    let disk = tempfile::tempdir().unwrap();
    let mut store = ColdStore::open(&disk.path().join("state"), ColdOptions::default()).unwrap();
    let mut add_run = || {
        let mut run = store.new_run(1).unwrap();
        run.push(0, 1, b"key", Some(b"value")).unwrap();
        store.add_run(run).unwrap();
        let range = KeyGroupRange { start: 0, end: 1 };
        vec![StateRuns { operator: OperatorId([1; 16]), name: "s".to_owned(), range, pinned: store.pin() }]
    };
    let file = |path: &str| FileHandle { path: path.to_owned(), bytes: 1, sha256: String::new() };
    let run = |id: u64, path: &str| ((OperatorId([1; 16]), "s".to_owned(), id), file(path));
    let mut shared = SharedRuns::default();
    let taken = |shared: &mut SharedRuns, checkpoint, states: &[StateRuns]| -> Vec<String> {
        shared.taken(checkpoint, states).into_values().map(|file| file.path).collect()
    };

    assert!(taken(&mut shared, 1, &add_run()).is_empty());
    shared.pending = Some((1, vec![run(0, "chk-1/0")]));
    shared.completed(1);
    // The second fails, the third has its run too, and writes it again.
    let second = add_run();
    assert_eq!(taken(&mut shared, 2, &second), ["chk-1/0"]);
    assert_eq!(taken(&mut shared, 3, &second), ["chk-1/0"]);
    // Its completion comes after the fourth was taken without its file, which may go with it then.
    shared.pending = Some((3, vec![run(0, "chk-1/0"), run(1, "chk-3/1")]));
    assert_eq!(taken(&mut shared, 4, &second), ["chk-1/0"]);
    shared.completed(3);
    assert_eq!(taken(&mut shared, 5, &second), ["chk-1/0"]);
    shared.pending = Some((5, vec![run(0, "chk-1/0"), run(1, "chk-5/1")]));
    shared.completed(5);
    let third = add_run();
    assert_eq!(taken(&mut shared, 6, &third), ["chk-1/0", "chk-5/1"]);
    // What a checkpoint does without is not shared again.
    assert!(taken(&mut shared, 7, &[]).is_empty());
    assert!(taken(&mut shared, 8, &third).is_empty());
}

#[test]
fn a_sink_that_hands_rows_out_holds_its_subtask_up_without_stopping_it() {
    let mut job = Job::new(1);
    let now = flott_env::now_ms();
    job.downstream[0].0.cx.outlet.set(true, true);
    job.send(0..10);
    job.upstream.step(now).unwrap();
    job.upstream.flush().unwrap();
    let (subtask, collected) = &mut job.downstream[0];
    assert_eq!(subtask.step(now).unwrap(), Step::BackPressured);
    assert!(collected.rows().is_empty(), "it is full");

    // There is room, and something is still to be taken: it goes on, but does not finish.
    subtask.cx.outlet.set(true, false);
    assert_eq!(subtask.step(now).unwrap(), Step::Progress);
    assert_eq!(collected.rows().len(), 10);
    subtask.completed(1, false, true).unwrap();
    assert!(!subtask.is_finished());
    assert_eq!(subtask.step(now).unwrap(), Step::BackPressured);

    subtask.cx.outlet.set(false, false);
    assert_eq!(subtask.step(now).unwrap(), Step::Progress);
    assert!(subtask.is_finished());
    assert!(subtask.take_reports().any(|report| matches!(report, Report::Status(TaskStatus::Finished))));
}
