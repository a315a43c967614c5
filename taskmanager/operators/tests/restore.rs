//! Operators that are snapshotted and restored between any two inputs give what they give without.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use flott_checkpoint::{FileHandle, KeyedState, OperatorState};
use flott_control::{CheckpointKind, StateMetrics};
use flott_core::config::Configuration;
use flott_core::ids::{JobId, OperatorId, SubtaskId};
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_network::Barrier;
use flott_operators::key::OwnedKey;
use flott_operators::process::{Collector, KeyedContext, KeyedProcess, KeyedProcessFunction, Timer};
use flott_operators::timestamps::{AssignTimestamps, WatermarkStrategy};
use flott_operators::window::aligned::AlignedWindowOperator;
use flott_operators::window::assigner::AlignedWindows;
use flott_operators::window::function::ProcessWindow;
use flott_operators::window::session::SessionWindowOperator;
use flott_operators::window::{WindowOptions, WindowTime};
use flott_operators::{
    Control, KeyExtractor, KeyedContents, Maintenance, Operator, OperatorNode, Output, Push, RestoredState,
    RunContents, SideOutputs, StateContents, TaskContext, TaskSnapshot,
};
use flott_state::{
    Freeze, KeyedStates, LocalRun, MemoryBudget, SectionKind, SnapshotContent, SnapshotMode, SnapshotReader,
    StateBackend, StateRuns, TimeWindow, ValueState,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

const OPERATOR: OperatorId = OperatorId([7; 16]);

/// What came out of an operator, in order: rows with their times, and watermarks.
type Log = Arc<Mutex<Vec<String>>>;

struct Recorder(Log);

impl<T: Data + std::fmt::Debug> Push<T> for Recorder {
    fn push(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let mut log = self.0.lock().unwrap();
        for (index, row) in batch.rows.iter().enumerate() {
            log.push(format!("{row:?} at {:?}", batch.timestamp(index)));
        }
        batch.clear();
        Ok(())
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        if let Control::Watermark(watermark) = control {
            self.0.lock().unwrap().push(format!("watermark {watermark}"));
        }
        Ok(())
    }
}

fn context(io: &tokio::runtime::Handle, state: StateBackend) -> TaskContext {
    TaskContext {
        job: JobId([1; 16]),
        generation: 1,
        subtask: SubtaskId { vertex: 0, index: 0 },
        name: "test".into(),
        parallelism: 1,
        max_parallelism: 16,
        config: Configuration::default(),
        counters: Arc::default(),
        io: io.clone(),
        waker: flott_connector_spi::Waker::noop(),
        woken: Arc::default(),
        outlet: Default::default(),
        splits: Arc::default(),
        state,
    }
}

type Make<In> = Box<dyn Fn(&StateBackend, Log) -> Box<dyn Push<In>>>;

/// Where state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    /// In memory.
    Memory,
    /// In memory, of which there is hardly any: all of it is on disk but for a moment.
    Spilling,
    /// The same, and on disk before anything happens.
    Disk,
}

const BACKENDS: [Backend; 3] = [Backend::Memory, Backend::Spilling, Backend::Disk];

/// An operator that can be replaced by one restored from its snapshots.
struct Bed<In> {
    make: Make<In>,
    state: StateBackend,
    disk: Option<TempDir>,
    log: Log,
    node: Box<dyn Push<In>>,
    files: Vec<Vec<u8>>,
    keyed_states: Vec<KeyedState>,
    runs: Vec<StateRuns>,
}

impl<In: Data> Bed<In> {
    fn new<Out, O>(make: impl Fn(&TaskContext) -> O + 'static) -> Self
    where
        Out: Data + std::fmt::Debug,
        O: Operator<In, Out> + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let make = Box::new(move |state: &StateBackend, log: Log| {
            let cx = context(runtime.handle(), state.clone());
            let out = Output::<Out>::new(vec![Box::new(Recorder(log))], SideOutputs::default());
            Box::new(OperatorNode::new(OPERATOR, "tested", make(&cx), out)) as Box<dyn Push<In>>
        });
        let (log, state) = (Log::default(), StateBackend::default());
        let mut node = make(&state, Arc::clone(&log));
        node.control(&mut Control::Open(&mut RestoredState::default())).unwrap();
        let (files, keyed_states, runs) = (Vec::new(), Vec::new(), Vec::new());
        Self { make, state, disk: None, log, node, files, keyed_states, runs }
    }

    /// The same with its state there.
    fn on(mut self, backend: Backend) -> Self {
        if backend == Backend::Memory {
            return self;
        }
        let disk = tempfile::tempdir().unwrap();
        let (budget, directory) = (MemoryBudget::new(500), Some(disk.path().to_owned()));
        self.state = StateBackend::new(budget, directory, backend == Backend::Disk);
        self.disk = Some(disk);
        self.node = (self.make)(&self.state, Arc::clone(&self.log));
        self.node.control(&mut Control::Open(&mut RestoredState::default())).unwrap();
        self
    }

    fn push(&mut self, rows: Vec<In>, timestamps: Vec<Timestamp>) {
        self.node.push(&mut Batch { rows, timestamps, ..Batch::default() }).unwrap();
        self.maintain();
    }

    fn watermark(&mut self, watermark: Timestamp) {
        self.node.control(&mut Control::Watermark(watermark)).unwrap();
        self.maintain();
    }

    fn maintain(&mut self) -> Vec<StateMetrics> {
        loop {
            let mut done = Maintenance::default();
            self.node.control(&mut Control::Maintain(&mut done)).unwrap();
            if !done.has_more {
                return done.states;
            }
        }
    }

    fn snapshot(&mut self, mode: SnapshotMode) -> Vec<OperatorState> {
        let mut snapshot = TaskSnapshot::new(Freeze { checkpoint: 1, mode, is_rewindable: true });
        let barrier = Barrier { checkpoint: 1, triggered_ms: 0, kind: CheckpointKind::Checkpoint };
        self.node.control(&mut Control::Barrier(&barrier, &mut snapshot)).unwrap();
        while snapshot.is_pending {
            snapshot.is_pending = false;
            snapshot.entries_max = 3;
            self.node.control(&mut Control::Drain(&mut snapshot)).unwrap();
        }
        if mode == SnapshotMode::Full {
            self.files.clear();
        }
        let (content, runs) = snapshot.writer.finish().unwrap();
        let SnapshotContent::Memory(bytes) = content else { panic!("no place to overflow to") };
        self.files.push(bytes);
        self.keyed_states = snapshot.keyed_states;
        self.runs = runs;
        snapshot.operator_states
    }

    /// The states as a checkpoint has them: those on disk by their runs.
    fn states(&self) -> Vec<StateContents> {
        let contents = |state: &KeyedState| {
            let runs = self.runs.iter().find(|runs| runs.operator == state.operator && runs.name == state.name);
            let runs = runs.map(|runs| {
                let file = FileHandle { path: String::new(), bytes: 0, sha256: String::new() };
                let files = runs.pinned.files().into_iter();
                let files = files.map(|run| (LocalRun { path: run.path, dropped: run.dropped }, file.clone()));
                RunContents { range: runs.range, runs: files.collect(), owners: vec![Arc::new(runs.pinned.clone())] }
            });
            StateContents { state: state.clone(), table: None, runs }
        };
        self.keyed_states.iter().map(contents).collect()
    }

    /// Goes on with a new operator that was restored from a snapshot of the old one.
    fn restart(&mut self, mode: SnapshotMode) {
        let operator_states = self.snapshot(mode);
        self.node = (self.make)(&self.state, Arc::clone(&self.log));
        let files = self.files.iter().cloned().map(Bytes::from).collect();
        let mut restored = RestoredState::new(vec![KeyedContents { files, states: self.states() }], operator_states);
        self.node.control(&mut Control::Open(&mut restored)).unwrap();
    }

    /// Ends the input; what came out in all.
    fn finish(mut self) -> Vec<String> {
        self.node.control(&mut Control::EndOfInput).unwrap();
        let log = self.log.lock().unwrap();
        log.clone()
    }
}

fn options(allowed_lateness_ms: i64) -> WindowOptions {
    WindowOptions { time: WindowTime::Event, allowed_lateness_ms, late_tag: None }
}

fn by_key() -> Arc<dyn KeyExtractor<(u8, i64), u8>> {
    Arc::new(OwnedKey(|row: &(u8, i64)| row.0))
}

type WindowRow = (u8, i64, i64, Vec<i64>);

type ListRows = fn(&u8, TimeWindow, &[(u8, i64)], &mut Vec<WindowRow>) -> Result<()>;

fn list() -> ProcessWindow<ListRows, WindowRow> {
    ProcessWindow::new(|key, window, rows, out| {
        out.push((*key, window.start, window.end, rows.iter().map(|row| row.1).collect()));
        Ok(())
    })
}

fn aligned(size_ms: u64, slide_ms: u64, lateness_ms: i64) -> Bed<(u8, i64)> {
    let windows =
        AlignedWindows::new(Duration::from_millis(size_ms), Duration::from_millis(slide_ms), Duration::ZERO).unwrap();
    Bed::new::<WindowRow, _>(move |cx| AlignedWindowOperator::new(list(), windows, options(lateness_ms), by_key(), cx))
}

fn sessions(gap_ms: u64, lateness_ms: i64) -> Bed<(u8, i64)> {
    Bed::new::<WindowRow, _>(move |cx| {
        SessionWindowOperator::new(list(), Duration::from_millis(gap_ms), options(lateness_ms), by_key(), cx).unwrap()
    })
}

#[test]
fn r22_progress_is_state() {
    // Seconds 1, 6 | 3, 12, 20 with a watermark behind each: 3 is late for [0, 5) on both sides of a restore.
    let mut outputs = Vec::new();
    for restarts in [false, true] {
        let mut bed = aligned(10_000, 5_000, 0);
        for second in [1, 6, 3, 12, 20] {
            if restarts && second == 3 {
                bed.restart(SnapshotMode::Full);
            }
            bed.push(vec![(0, second)], vec![second * 1000]);
            bed.watermark(second * 1000 - 1);
        }
        outputs.push(bed.finish().into_iter().filter(|line| !line.starts_with("watermark")).collect::<Vec<_>>());
    }
    assert_eq!(outputs[0], outputs[1]);
    let counts: Vec<usize> = outputs[0].iter().map(|line| line.matches(',').count() - 2).collect();
    assert_eq!(counts, [1, 3, 2, 1, 1, 1]);
}

#[test]
fn r23_a_window_is_woken_after_a_restore() {
    let mut bed = aligned(10, 10, 0);
    bed.push(vec![(1, 5), (2, 6)], vec![5, 6]);
    bed.restart(SnapshotMode::Full);
    bed.push(vec![(1, 15)], vec![15]);
    bed.watermark(12);
    let log = bed.log.lock().unwrap().clone();
    let mut fired: Vec<_> = log.into_iter().filter(|line| !line.starts_with("watermark")).collect();
    fired.sort();
    assert_eq!(fired, ["(1, 0, 10, [5]) at Some(9)", "(2, 0, 10, [6]) at Some(9)"]);
}

#[test]
fn r24_closed_sessions_are_nobodys() {
    let mut bed = sessions(10, 0);
    for block in 0..100_i64 {
        let rows: Vec<(u8, i64)> = (0..100).map(|key| (key, block)).collect();
        bed.push(rows, vec![block * 1000; 100]);
        bed.watermark(block * 1000 + 500);
    }
    bed.snapshot(SnapshotMode::Full);
    assert!(bed.files[0].len() < 1500, "{} bytes for no open session", bed.files[0].len());
}

#[test]
fn restored_watermarks_are_sent_before_anything_else() {
    let strategy = WatermarkStrategy::monotonous(|time: &i64| *time);
    let mut bed = Bed::new::<i64, _>(move |cx| AssignTimestamps::new(strategy.clone(), cx).unwrap());
    bed.push(vec![0, 1000, 999], vec![]);
    bed.restart(SnapshotMode::Full);
    bed.push(vec![5], vec![]);
    let log = bed.finish();
    assert_eq!(log[3..], ["watermark 999", "999 at Some(999)", "watermark 999", "5 at Some(5)"]);
}

#[derive(Clone, Default)]
struct CountDown {
    left: Option<ValueState<u32>>,
}

impl KeyedProcessFunction<u8, (u8, i64), String> for CountDown {
    fn open(&mut self, states: &mut KeyedStates<u8>) -> Result<()> {
        self.left = Some(states.value("left")?);
        Ok(())
    }

    fn process(&mut self, row: (u8, i64), cx: &mut KeyedContext<'_, u8>, _: &mut Collector<'_, String>) -> Result<()> {
        let left = self.left.as_ref().unwrap();
        *left.update(cx, || 0) += 2;
        cx.register_event_time_timer(row.1 + 10);
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut KeyedContext<'_, u8>, out: &mut Collector<'_, String>) -> Result<()> {
        let left = self.left.as_ref().unwrap();
        let count = left.update(cx, || 0);
        *count = count.saturating_sub(1);
        let count = *count;
        out.collect(format!("{} has {count} left at {timer:?}", cx.key()));
        if count > 0
            && let Timer::EventTime(time) = timer
        {
            cx.register_event_time_timer(time + 7);
        }
        Ok(())
    }
}

/// Makes an operator, with the names of its states and the place of the one that has times.
type MakeWithTimes = (fn() -> Bed<(u8, i64)>, &'static [&'static str], usize);

#[test]
fn what_each_state_takes_is_told_with_its_times() {
    let timers = || Bed::new::<String, _>(|cx| KeyedProcess::new(CountDown::default(), by_key(), cx));
    let makes: [MakeWithTimes; 3] = [
        (timers, &["left", "_timer_event_time", "_timer_processing_time"], 1),
        (|| aligned(10, 10, 5), &["windows"], 0),
        (|| sessions(10, 5), &["sessions"], 0),
    ];
    for ((make, names, with_times), backend) in makes.iter().flat_map(|make| BACKENDS.map(|backend| (make, backend))) {
        let mut bed = make().on(backend);
        bed.push((0..50).map(|key| (key, i64::from(key))).collect(), (0..50).collect());
        let states = bed.maintain();
        assert_eq!(states.iter().map(|state| state.name.as_str()).collect::<Vec<_>>(), *names);
        assert!(states.iter().all(|state| state.operator == OPERATOR));
        let StateMetrics { entries, memory_bytes, index_bytes, disk_bytes, .. } = states[*with_times];
        assert!(entries == 50 && (50 * 8..50 * 300).contains(&index_bytes), "{states:?}");
        assert!(memory_bytes >= index_bytes && (disk_bytes > 0) == (backend != Backend::Memory), "{states:?}");
        assert_eq!(bed.state.budget().used(), states.iter().map(|state| state.memory_bytes).sum::<u64>());
        // Timers register others until they have counted down.
        (0..10).for_each(|step| bed.watermark(step * 1000));
        let after = bed.maintain();
        assert!(after.iter().all(|state| state.index_bytes == 0), "{after:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Rows(Vec<(u8, i64)>),
    Watermark(i64),
    Restart(SnapshotMode),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rows = prop::collection::vec((0_u8..6, 0_i64..300), 1..8).prop_map(Step::Rows);
    let mode = prop_oneof![Just(SnapshotMode::Full), Just(SnapshotMode::Incremental)];
    let step = prop_oneof![4 => rows, 2 => (0_i64..300).prop_map(Step::Watermark), 1 => mode.prop_map(Step::Restart)];
    prop::collection::vec(step, 1..60)
}

/// What comes out without the restarts in `steps`, and with them over each backend. Keys that are due at the same time
/// may come in another order.
fn outputs(make: fn() -> Bed<(u8, i64)>, steps: &[Step]) -> (Vec<String>, [Vec<String>; 3]) {
    let output = |restarts: bool, backend: Backend| {
        let (mut bed, mut highest) = (make().on(backend), i64::MIN);
        let mut is_first = true;
        for step in steps {
            match step {
                Step::Rows(rows) => bed.push(rows.clone(), rows.iter().map(|row| row.1).collect()),
                Step::Watermark(watermark) => {
                    highest = highest.max(*watermark);
                    bed.watermark(highest);
                }
                // Changes need a base to build on.
                Step::Restart(mode) if restarts => {
                    bed.restart(if is_first { SnapshotMode::Full } else { *mode });
                    is_first = false;
                }
                Step::Restart(_) => {}
            }
        }
        let log = bed.finish();
        let mut blocks: Vec<Vec<String>> = log.split(|line| line.starts_with("watermark")).map(<[_]>::to_vec).collect();
        blocks.iter_mut().for_each(|block| block.sort());
        blocks.concat()
    };
    (output(false, Backend::Memory), BACKENDS.map(|backend| output(true, backend)))
}

fn check_restarts(make: fn() -> Bed<(u8, i64)>, steps: &[Step]) -> Result<(), TestCaseError> {
    let (without, with) = outputs(make, steps);
    for (backend, with) in BACKENDS.iter().zip(with) {
        prop_assert_eq!(&with, &without, "{:?}", backend);
    }
    Ok(())
}

proptest! {
    #[test]
    fn tumbling_windows_survive_restarts(steps in steps()) {
        check_restarts(|| aligned(20, 20, 0), &steps)?;
    }

    #[test]
    fn sliding_windows_with_lateness_survive_restarts(steps in steps()) {
        check_restarts(|| aligned(40, 10, 25), &steps)?;
    }

    #[test]
    fn sessions_survive_restarts(steps in steps()) {
        check_restarts(|| sessions(15, 0), &steps)?;
    }

    #[test]
    fn sessions_with_lateness_survive_restarts(steps in steps()) {
        check_restarts(|| sessions(15, 40), &steps)?;
    }

    #[test]
    fn timers_and_values_survive_restarts(steps in steps()) {
        check_restarts(|| Bed::new::<String, _>(|cx| KeyedProcess::new(CountDown::default(), by_key(), cx)), &steps)?;
    }
}

/// What the first version of a job keeps of an account.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Account1 {
    cents: i64,
    rows: u32,
    note: String,
}

/// What the second one keeps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Account2 {
    rows: u64,
    #[serde(alias = "cents")]
    balance: i64,
    largest: Option<i64>,
}

/// Adds amounts to accounts; zero closes one.
#[derive(Clone)]
struct Accounts<V> {
    account: Option<ValueState<V>>,
    add: fn(&mut V, i64) -> String,
    make: fn() -> V,
}

impl<V: Data> KeyedProcessFunction<u8, (u8, i64), String> for Accounts<V> {
    fn open(&mut self, states: &mut KeyedStates<u8>) -> Result<()> {
        self.account = Some(states.value("account")?);
        Ok(())
    }

    fn process(
        &mut self,
        row: (u8, i64),
        cx: &mut KeyedContext<'_, u8>,
        out: &mut Collector<'_, String>,
    ) -> Result<()> {
        let account = self.account.as_ref().unwrap();
        if row.1 == 0 {
            account.clear(cx);
        } else {
            out.collect(format!("{}: {}", row.0, (self.add)(account.update(cx, self.make), row.1)));
        }
        Ok(())
    }
}

fn first_version() -> Bed<(u8, i64)> {
    let function = Accounts {
        account: None,
        make: || Account1 { cents: 0, rows: 0, note: "new".to_owned() },
        add: |account, amount| {
            account.cents += amount;
            account.rows += 1;
            account.note += "!";
            format!("{} in {}", account.cents, account.rows)
        },
    };
    Bed::new::<String, _>(move |cx| KeyedProcess::new(function.clone(), by_key(), cx))
}

fn second_version() -> Bed<(u8, i64)> {
    let function = Accounts {
        account: None,
        make: Account2::default,
        add: |account, amount| {
            account.balance += amount;
            account.rows += 1;
            account.largest = account.largest.max(Some(amount));
            format!("{} in {}", account.balance, account.rows)
        },
    };
    Bed::new::<String, _>(move |cx| KeyedProcess::new(function.clone(), by_key(), cx))
}

#[test]
fn a_checkpoint_is_restored_by_the_next_version() {
    for (before, after) in BACKENDS.iter().flat_map(|before| BACKENDS.map(|after| (*before, after))) {
        let push = |bed: &mut Bed<(u8, i64)>, rows: Vec<(u8, i64)>| bed.push(rows, vec![]);
        let mut old = first_version().on(before);
        push(&mut old, (0..50).map(|key| (key, 100 + i64::from(key))).collect());
        old.snapshot(SnapshotMode::Full);
        // Changed, removed, new, and both removed and new.
        push(&mut old, vec![(1, 5), (2, 0), (60, 7), (3, 0), (3, 9)]);
        old.snapshot(SnapshotMode::Incremental);
        push(&mut old, vec![(4, 0), (60, 1)]);
        let operator_states = old.snapshot(SnapshotMode::Incremental);

        let mut new = second_version().on(after);
        new.node = (new.make)(&new.state, Arc::clone(&new.log));
        let files = old.files.iter().cloned().map(Bytes::from).collect();
        let mut restored = RestoredState::new(vec![KeyedContents { files, states: old.states() }], operator_states);
        let opened = new.node.control(&mut Control::Open(&mut restored));
        if before != Backend::Memory && after == Backend::Memory {
            // As without a migration: there is nowhere to put its files.
            assert!(opened.unwrap_err().to_string().contains("set 'io.tmp.dirs'"));
            continue;
        }
        opened.unwrap();
        assert!(restored.is_migrated && restored.adopted_runs.is_empty());
        push(&mut new, vec![(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (60, 1), (49, 1)]);

        // Its own checkpoints say nothing in the old form, not even changes.
        new.files.clear();
        new.restart(SnapshotMode::Incremental);
        for file in &new.files {
            let mut reader = SnapshotReader::new(file).unwrap();
            while let Some(section) = reader.next_section().unwrap() {
                assert_eq!(section.kind, SectionKind::Base);
            }
        }
        push(&mut new, vec![(1, 1)]);
        new.restart(SnapshotMode::Incremental);
        push(&mut new, vec![(5, 1), (1, 1)]);
        let expected = [
            "0: 101 in 2",
            "1: 107 in 3",
            "2: 1 in 1",
            "3: 10 in 2",
            "4: 1 in 1",
            "60: 9 in 3",
            "49: 150 in 2",
            "1: 108 in 4",
            "5: 106 in 2",
            "1: 109 in 5",
        ];
        let log: Vec<String> = new.finish().into_iter().filter(|line| !line.starts_with("watermark")).collect();
        assert_eq!(log, expected.map(|line| format!("\"{line}\" at None")), "{before:?} {after:?}");
    }
}

#[test]
fn a_checkpoint_of_what_cannot_be_read_is_refused() {
    let mut old = second_version();
    old.push(vec![(1, 5)], vec![]);
    let operator_states = old.snapshot(SnapshotMode::Full);
    let mut new = first_version();
    new.node = (new.make)(&new.state, Arc::clone(&new.log));
    let files = old.files.iter().cloned().map(Bytes::from).collect();
    let mut restored = RestoredState::new(vec![KeyedContents { files, states: old.states() }], operator_states);
    let error = new.node.control(&mut Control::Open(&mut restored)).unwrap_err().to_string();
    assert!(error.contains("restoring state 'account': field 'value.cents' is new and has no default"), "{error}");
}
