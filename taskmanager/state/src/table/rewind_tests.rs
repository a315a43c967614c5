//! Going back to a checkpoint and on from there, against a model that forgets nothing.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use flott_core::ErrorKind;
use flott_core::ids::CheckpointId;
use flott_core::key_group::{owner_of, range_of};
use proptest::prelude::*;
use proptest::sample::Index;

use super::testing::{Bed, Kind, Part, kind, restore};
use super::*;
use crate::columns::{read_table, write_table};
use crate::snapshot::{Checkpointed, Freeze, SnapshotMode, SnapshotReader, SnapshotWriter};

const GROUPS: u32 = 8;

type Table = KeyedTable<u16, i64, u32>;
type Content = BTreeMap<(u16, i64), u32>;

fn tables(parallelism: u32) -> Vec<Table> {
    Bed::new(Kind::Memory).tables(parallelism, GROUPS)
}

fn group(key: u16) -> KeyGroup {
    group_of(stable_hash(&key), GROUPS)
}

fn content(tables: &[Table]) -> Content {
    let mut content = Content::new();
    for table in tables {
        let visit = |key: &u16, namespace: &i64, value: &u32| {
            assert_eq!(content.insert((*key, *namespace), *value), None, "shown twice");
            Ok(())
        };
        table.visit(visit).unwrap();
    }
    content
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, i64, u32),
    Change(u16, i64),
    Remove(u16, i64),
    TakeByHash(u16, i64),
    TakeAll,
    Maintain(usize),
    Freeze(SnapshotMode, bool),
    Drain(usize),
    Confirm(Index),
    Abort(Index),
    GiveUp(KeyGroup),
    Rewind { to: Index, parallelism: u32, is_rewindable: bool },
}

fn step() -> impl Strategy<Value = Step> {
    // So few that the same entry often comes, changes and goes several times between two checkpoints.
    let key = 0_u16..24;
    let namespace = 0_i64..2;
    let mode = prop_oneof![
        1 => Just(SnapshotMode::Full),
        2 => Just(SnapshotMode::Incremental),
        1 => Just(SnapshotMode::Detached),
    ];
    prop_oneof![
        8 => (key.clone(), namespace.clone(), any::<u32>()).prop_map(|(k, n, v)| Step::Insert(k, n, v)),
        6 => (key.clone(), namespace.clone()).prop_map(|(k, n)| Step::Change(k, n)),
        6 => (key.clone(), namespace.clone()).prop_map(|(k, n)| Step::Remove(k, n)),
        1 => (key, namespace).prop_map(|(k, n)| Step::TakeByHash(k, n)),
        1 => Just(Step::TakeAll),
        3 => (1_usize..20).prop_map(Step::Maintain),
        4 => (mode, prop::bool::weighted(0.9)).prop_map(|(mode, is_rewindable)| Step::Freeze(mode, is_rewindable)),
        5 => (1_usize..6).prop_map(Step::Drain),
        1 => any::<Index>().prop_map(Step::Confirm),
        1 => any::<Index>().prop_map(Step::Abort),
        1 => (0..GROUPS as KeyGroup).prop_map(Step::GiveUp),
        2 => (any::<Index>(), 1..=GROUPS, prop::bool::weighted(0.9))
            .prop_map(|(to, parallelism, is_rewindable)| Step::Rewind { to, parallelism, is_rewindable }),
    ]
}

/// A checkpoint, how the state was at it, and how many of the files restore it.
#[derive(Clone)]
struct Saved {
    checkpoint: CheckpointId,
    content: Content,
    files: usize,
}

/// The subtasks of an operator through its generations.
struct Job {
    bed: Bed,
    tables: Vec<Table>,
    content: Content,
    files: Vec<Part>,
    last: CheckpointId,
    /// The snapshot under way, and whether it is a checkpoint: nobody starts from a detached one.
    pending: Option<(Vec<SnapshotWriter>, Saved, bool)>,
    /// The checkpoints that a generation may start from.
    saved: Vec<Saved>,
    /// The checkpoints to which each key group can be taken back in memory.
    known: Vec<BTreeSet<CheckpointId>>,
}

impl Job {
    fn new(kind: Kind) -> Self {
        let bed = Bed::new(kind);
        Self {
            tables: bed.tables(2, GROUPS),
            bed,
            content: Content::new(),
            files: Vec::new(),
            last: 0,
            pending: None,
            saved: Vec::new(),
            known: vec![BTreeSet::new(); GROUPS as usize],
        }
    }

    fn table(&mut self, key: u16) -> &mut Table {
        let owner = owner_of(group(key), self.tables.len() as u32, GROUPS);
        &mut self.tables[owner as usize]
    }

    fn freeze(&mut self, mode: SnapshotMode, is_rewindable: bool) {
        while !self.drain(3) {}
        self.last += 1;
        let freeze = Freeze { checkpoint: self.last, mode, is_rewindable };
        self.tables.iter_mut().for_each(|table| table.freeze(freeze));
        let is_checkpoint = mode != SnapshotMode::Detached;
        for known in self.known.iter_mut().filter(|_| is_checkpoint) {
            if is_rewindable {
                known.insert(self.last);
            } else {
                known.clear();
            }
        }
        self.forget_cold();
        let writers = self.tables.iter().map(|_| SnapshotWriter::default()).collect();
        let saved = Saved { checkpoint: self.last, content: self.content.clone(), files: 0 };
        self.pending = Some((writers, saved, is_checkpoint));
    }

    /// Tables that have gone to disk are not taken back in memory.
    fn forget_cold(&mut self) {
        for table in self.tables.iter().filter(|table| table.cold.is_some()) {
            let groups = table.range.start as usize..table.range.end as usize;
            self.known[groups].iter_mut().for_each(BTreeSet::clear);
        }
    }

    /// Whether there is nothing left to drain.
    fn drain(&mut self, entries_max: usize) -> bool {
        let Some((writers, ..)) = &mut self.pending else { return true };
        let mut is_done = true;
        for (table, writer) in self.tables.iter_mut().zip(writers) {
            is_done &= table.drain(entries_max, writer).unwrap();
        }
        if is_done && let Some((writers, saved, is_checkpoint)) = self.pending.take() {
            let parts: Vec<Part> = writers.into_iter().map(Part::of).collect();
            let mut restored: Vec<Table> = self.bed.tables(1, GROUPS);
            if is_checkpoint {
                self.files.extend(parts);
                restore(&self.files, &mut restored, &BTreeSet::new());
            } else {
                restore(&parts, &mut restored, &BTreeSet::new());
            }
            assert_eq!(content(&restored), saved.content);
            if is_checkpoint {
                self.saved.push(Saved { files: self.files.len(), ..saved });
            }
        }
        is_done
    }

    fn confirm(&mut self, which: Index) {
        if !self.saved.is_empty() {
            let confirmed = which.get(&self.saved).checkpoint;
            self.tables.iter_mut().for_each(|table| table.confirm(confirmed));
            self.saved.retain(|saved| saved.checkpoint >= confirmed);
            self.known.iter_mut().for_each(|known| known.retain(|checkpoint| *checkpoint >= confirmed));
        }
    }

    /// A new generation starts: from memory what is known there, the rest from files.
    fn rewind(&mut self, to: Index, parallelism: u32, is_rewindable: bool) {
        if self.saved.is_empty() {
            return;
        }
        let saved = to.get(&self.saved).clone();
        self.pending = None;
        let mut released = BTreeMap::new();
        for table in &mut self.tables {
            released.extend(table.release(saved.checkpoint));
            assert!(table.is_empty());
        }
        let adopted: BTreeSet<KeyGroup> = released.keys().copied().collect();
        let is_known = |group: &KeyGroup| self.known[usize::from(*group)].contains(&saved.checkpoint);
        let known: BTreeSet<KeyGroup> = (0..GROUPS as KeyGroup).filter(is_known).collect();
        assert_eq!(adopted, known);

        // A table that was released is as good as a new one.
        if parallelism as usize != self.tables.len() {
            self.tables = self.bed.tables(parallelism, GROUPS);
        }
        for (group, entries) in released {
            let owner = self.tables.iter_mut().find(|table| table.owns(group)).unwrap();
            owner.adopt(group, entries).unwrap();
        }
        let mut expected = saved.content.clone();
        expected.retain(|(key, _), _| adopted.contains(&group(*key)));
        assert_eq!(content(&self.tables), expected);

        self.files.truncate(saved.files);
        restore(&self.files, &mut self.tables, &adopted);
        assert_eq!(content(&self.tables), saved.content);

        self.known.iter_mut().for_each(BTreeSet::clear);
        if is_rewindable {
            self.tables.iter_mut().for_each(|table| table.rewindable_from(saved.checkpoint));
            self.known.iter_mut().for_each(|known| _ = known.insert(saved.checkpoint));
            self.forget_cold();
        }
        self.content = saved.content.clone();
        self.saved = vec![saved];
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(key, namespace, value) => {
                let before = self.table(key).insert(stable_hash(&key), &key, namespace, value);
                assert_eq!(before, self.content.insert((key, namespace), value));
            }
            Step::Change(key, namespace) => {
                let value = self.table(key).get_mut(stable_hash(&key), &key, &namespace).map(|value| {
                    *value = value.wrapping_add(1);
                    *value
                });
                let model = self.content.get_mut(&(key, namespace)).map(|value| {
                    *value = value.wrapping_add(1);
                    *value
                });
                assert_eq!(value, model);
            }
            Step::Remove(key, namespace) => {
                let before = self.table(key).remove(stable_hash(&key), &key, &namespace);
                assert_eq!(before, self.content.remove(&(key, namespace)));
            }
            Step::TakeByHash(key, namespace) => {
                let before = self.table(key).take_by_hash(stable_hash(&key), &namespace);
                assert_eq!(before.map(|(_, value)| value), self.content.remove(&(key, namespace)));
            }
            Step::TakeAll => {
                for table in &mut self.tables {
                    table.take_all(|_, _, _| Ok(())).unwrap();
                }
                self.content.clear();
            }
            Step::Maintain(calls) => {
                for _ in 0..calls {
                    self.tables.iter_mut().for_each(|table| _ = table.maintain().unwrap());
                }
                self.forget_cold();
            }
            Step::Freeze(mode, is_rewindable) => self.freeze(mode, is_rewindable),
            Step::Drain(entries_max) => _ = self.drain(entries_max),
            Step::Confirm(which) => self.confirm(which),
            Step::Abort(which) => {
                if !self.saved.is_empty() {
                    self.saved.remove(which.index(self.saved.len()));
                }
            }
            Step::GiveUp(group) => {
                let table = self.tables.iter_mut().find(|table| table.owns(group)).unwrap();
                let index = u32::from(group) - table.range.start;
                table.changes[index as usize].undo.give_up();
                self.known[usize::from(group)].clear();
            }
            Step::Rewind { to, parallelism, is_rewindable } => self.rewind(to, parallelism, is_rewindable),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Every key group that is released is as it was at the checkpoint; it is released exactly if its log goes
    /// back that far; and what comes after it, another checkpoint or another way back, knows no difference.
    #[test]
    fn what_is_released_is_the_state_at_the_checkpoint(
        kind in kind(),
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut job = Job::new(kind);
        for step in steps {
            job.step(step);
        }
        assert_eq!(content(&job.tables), job.content);
        while !job.drain(3) {}
    }
}

type Big = KeyedTable<u32, (), u32>;

const KEYS: u32 = 20_000;

/// Two key groups of about 10000 entries each, at checkpoint 1.
fn big() -> Big {
    let mut table = Big::new("big", range_of(1, 0, 2), 2);
    set(&mut table, 0..KEYS, 1);
    freeze(&mut table, 1);
    table
}

fn set(table: &mut Big, keys: impl IntoIterator<Item = u32>, value: u32) {
    for key in keys {
        table.insert(stable_hash(&key), &key, (), value);
    }
}

fn freeze(table: &mut Big, checkpoint: CheckpointId) {
    table.freeze(Freeze { checkpoint, mode: SnapshotMode::Incremental, is_rewindable: true });
    assert!(table.drain(usize::MAX, &mut SnapshotWriter::default()).unwrap());
}

/// The key groups that can be taken back, after a look at what is in them.
fn release(table: &mut Big, checkpoint: CheckpointId, value: impl Fn(u32) -> u32) -> Vec<KeyGroup> {
    let mut adopter = Big::new("big", range_of(1, 0, 2), 2);
    let mut groups = Vec::new();
    for (group, entries) in table.release(checkpoint) {
        adopter.adopt(group, entries).unwrap();
        groups.push(group);
    }
    let expected: BTreeMap<u32, u32> =
        (0..KEYS).filter(|key| groups.contains(&group_of(stable_hash(key), 2))).map(|key| (key, value(key))).collect();
    let actual: BTreeMap<u32, u32> = adopter.iter().map(|(key, (), value)| (*key, *value)).collect();
    assert!(actual == expected, "{} entries, {} expected", actual.len(), expected.len());
    groups
}

#[test]
fn a_group_of_which_too_much_changed_is_left_out_until_the_next_freeze() {
    let changed = |key: &u32| group_of(stable_hash(key), 2) == 0 || *key < 2000;
    let mut table = big();
    set(&mut table, (0..KEYS).filter(changed), 2);
    assert_eq!(release(&mut table, 1, |_| 1), [1]);

    let mut table = big();
    set(&mut table, (0..KEYS).filter(changed), 2);
    assert_eq!(table.changes[0].undo.bytes(), 0);
    freeze(&mut table, 2);
    set(&mut table, 0..100, 3);
    assert_eq!(release(&mut table, 2, |key| if changed(&key) { 2 } else { 1 }), [0, 1]);
}

#[test]
fn when_a_log_is_full_its_oldest_checkpoint_is_forgotten_first() {
    let changed_twice = || {
        let mut table = big();
        set(&mut table, 0..KEYS * 2 / 5, 2);
        freeze(&mut table, 2);
        set(&mut table, 0..KEYS / 4, 3);
        table
    };
    assert!(release(&mut changed_twice(), 1, |_| 1).is_empty());
    assert_eq!(release(&mut changed_twice(), 2, |key| if key < KEYS * 2 / 5 { 2 } else { 1 }), [0, 1]);
}

#[test]
fn all_that_was_removed_comes_back() {
    let mut table = big();
    table.take_all(|_, (), _| Ok(())).unwrap();
    assert!(table.is_empty());
    assert_eq!(release(&mut table, 1, |_| 1), [0, 1]);
}

#[test]
fn what_comes_and_goes_between_two_checkpoints_takes_no_memory() {
    let mut table = big();
    for key in KEYS..5 * KEYS {
        set(&mut table, [key], 2);
        table.remove(stable_hash(&key), &key, &());
    }
    assert!(table.changes.iter().all(|changes| changes.undo.bytes() == 0));
    assert_eq!(release(&mut table, 1, |_| 1), [0, 1]);
}

#[test]
fn checkpoints_that_fail_for_hours_do_not_fill_the_memory() {
    let mut table = Big::new("big", range_of(1, 0, 2), 2);
    for checkpoint in 1..=10_000 {
        set(&mut table, [1, 2, 3], checkpoint as u32);
        freeze(&mut table, checkpoint);
    }
    assert!(table.bytes() < 100_000, "{} bytes", table.bytes());
    assert!(table.release(1).is_empty());
    assert!(table.is_empty());
}

#[test]
fn entries_of_other_types_are_refused() {
    let mut table = big();
    let (group, entries) = table.release(1).remove(0);
    let mut other: KeyedTable<u32, (), String> = KeyedTable::new("names", range_of(1, 0, 2), 2);
    let error = other.adopt(group, entries).unwrap_err();
    assert_eq!(error.kind, ErrorKind::System);
    assert!(error.message.contains("'names'"), "{error}");
}

/// A savepoint of `table` as the batches of its Parquet file.
fn rows(table: &mut Table) -> Vec<arrow::array::RecordBatch> {
    table.freeze(Freeze { checkpoint: 1, mode: SnapshotMode::Full, is_rewindable: false });
    let mut writer = SnapshotWriter::default();
    while !table.drain(100, &mut writer).unwrap() {}
    let file = writer.into_bytes();
    let mut reader = SnapshotReader::new(&file).unwrap();
    let mut sections = Vec::new();
    while let Some(section) = reader.next_section().unwrap() {
        sections.push((section.group, section.entries, section.body));
    }
    let (count, parquet) = write_table(&*table.columns(), sections.into_iter()).unwrap();
    assert_eq!(count, table.rows());
    read_table(Bytes::from(parquet)).unwrap().map(|rows| rows.unwrap()).collect()
}

#[test]
fn rows_of_a_savepoint_are_restored_by_key_group() {
    let mut old = tables(1);
    for key in 0..1000_u16 {
        old[0].insert(stable_hash(&key), &key, i64::from(key % 3), u32::from(key));
    }
    let batches = rows(&mut old[0]);
    let schema = old[0].columns().schema().to_owned();
    let mut new = tables(3);
    for batch in &batches {
        new.iter_mut().for_each(|table| table.restore_rows(&schema, batch, &|group| group != 5).unwrap());
    }
    let mut expected = content(&old);
    expected.retain(|(key, _), _| group(*key) != 5);
    assert_eq!(content(&new), expected);

    // What was restored is in no state file, so the next snapshot has all of it.
    new[0].freeze(Freeze { checkpoint: 2, mode: SnapshotMode::Incremental, is_rewindable: true });
    let mut writer = SnapshotWriter::default();
    while !new[0].drain(100, &mut writer).unwrap() {}
    let mut again = tables(3);
    restore(&[Part::of(writer)], &mut again, &BTreeSet::new());
    assert_eq!(content(&again[..1]), content(&new[..1]));
}

#[test]
fn rows_in_a_wrong_key_group_are_refused() {
    let mut old = tables(1);
    for key in 0..100_u16 {
        old[0].insert(stable_hash(&key), &key, 0, 1);
    }
    let batches = rows(&mut old[0]);
    let schema = old[0].columns().schema().to_owned();
    let mut other: Table = KeyedTable::new("t", range_of(1, 0, 2 * GROUPS), 2 * GROUPS);
    let error = batches.iter().try_for_each(|batch| other.restore_rows(&schema, batch, &|_| true)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(error.message.contains("state 't'"), "{error}");
}
