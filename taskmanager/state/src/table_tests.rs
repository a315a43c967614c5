use std::collections::{BTreeMap, BTreeSet};

use flott_core::key_group::range_of;
use proptest::prelude::*;

use super::testing::{Bed, Part, kind, restore};
use super::*;
use crate::snapshot::{Checkpointed, Freeze, SectionKind, SnapshotMode, SnapshotReader, SnapshotWriter};

type Table = KeyedTable<u16, i64, u32>;
type Content = BTreeMap<(u16, i64), u32>;

fn table() -> Table {
    KeyedTable::new("t", range_of(1, 0, 8), 8)
}

fn content(table: &Table) -> Content {
    let mut content = Content::new();
    let visit = |key: &u16, namespace: &i64, value: &u32| {
        assert_eq!(content.insert((*key, *namespace), *value), None, "shown twice");
        Ok(())
    };
    table.visit(visit).unwrap();
    content
}

fn freeze(mode: SnapshotMode) -> Freeze {
    Freeze { checkpoint: 1, mode, is_rewindable: false }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, i64, u32),
    Remove(u16, i64),
    TakeByHash(u16, i64),
    TakeAll,
    Get(u16, i64),
    Put(u16, i64, u32),
    Maintain(usize),
    Freeze(SnapshotMode),
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0_u16..40;
    let namespace = 0_i64..3;
    prop_oneof![
        8 => (key.clone(), namespace.clone(), any::<u32>()).prop_map(|(k, n, v)| Step::Insert(k, n, v)),
        3 => (key.clone(), namespace.clone()).prop_map(|(k, n)| Step::Remove(k, n)),
        1 => (key.clone(), namespace.clone()).prop_map(|(k, n)| Step::TakeByHash(k, n)),
        1 => Just(Step::TakeAll),
        3 => (key.clone(), namespace.clone()).prop_map(|(k, n)| Step::Get(k, n)),
        2 => (key, namespace, any::<u32>()).prop_map(|(k, n, v)| Step::Put(k, n, v)),
        4 => (1_usize..20).prop_map(Step::Maintain),
        2 => mode().prop_map(Step::Freeze),
        4 => (1_usize..6).prop_map(Step::Drain),
    ]
}

fn mode() -> impl Strategy<Value = SnapshotMode> {
    prop_oneof![Just(SnapshotMode::Full), Just(SnapshotMode::Incremental), Just(SnapshotMode::Detached)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whatever happens between a freeze and its last drain, the snapshot holds the state at the
    /// freeze, and a base with all its changes, or its files, restore it. A base has each entry once. A detached
    /// snapshot is whole, and no part of that.
    #[test]
    fn a_snapshot_is_the_state_at_its_freeze(kind in kind(), steps in prop::collection::vec(step(), 1..400)) {
        let bed = Bed::new(kind);
        let mut table: Table = bed.table(range_of(1, 0, 8), 8);
        let mut model: Content = BTreeMap::new();
        let mut files: Vec<Part> = Vec::new();
        type Pending = Option<(SnapshotMode, SnapshotWriter, Content)>;
        let mut pending: Pending = None;
        let finish = |table: &mut Table, pending: &mut Pending, files: &mut Vec<Part>| {
            if let Some((mode, mut writer, expected)) = pending.take() {
                while !table.drain(3, &mut writer).unwrap() {}
                let part = Part::of(writer);
                if mode != SnapshotMode::Incremental || part.runs.is_some() {
                    assert_eq!(part.entries(), expected.len() as u64);
                }
                let mut restored: Vec<Table> = bed.tables(1, 8);
                if mode == SnapshotMode::Detached {
                    restore(&[part], &mut restored, &BTreeSet::new());
                } else {
                    files.push(part);
                    restore(files, &mut restored, &BTreeSet::new());
                }
                assert_eq!(content(&restored[0]), expected);
            }
        };
        for step in steps {
            match step {
                Step::Insert(key, namespace, value) => {
                    let before = table.insert(stable_hash(&key), &key, namespace, value);
                    prop_assert_eq!(before, model.insert((key, namespace), value));
                }
                Step::Remove(key, namespace) => {
                    let before = table.remove(stable_hash(&key), &key, &namespace);
                    prop_assert_eq!(before, model.remove(&(key, namespace)));
                }
                Step::TakeByHash(key, namespace) => {
                    let before = table.take_by_hash(stable_hash(&key), &namespace);
                    prop_assert_eq!(before.map(|(_, value)| value), model.remove(&(key, namespace)));
                }
                Step::TakeAll => {
                    let mut taken = Content::new();
                    table.take_all(|key, namespace, value| {
                        assert_eq!(taken.insert((key, namespace), value), None, "taken twice");
                        Ok(())
                    }).unwrap();
                    prop_assert_eq!(taken, std::mem::take(&mut model));
                }
                Step::Get(key, namespace) => {
                    let expected = model.get(&(key, namespace));
                    let found: Vec<u32> =
                        table.find_by_hash(stable_hash(&key), &namespace).map(|(_, value)| *value).collect();
                    prop_assert_eq!(found.first(), expected);
                    prop_assert!(found.len() <= 1);
                    prop_assert_eq!(table.get(stable_hash(&key), &key, &namespace), expected);
                }
                Step::Put(key, namespace, value) => {
                    table.put(stable_hash(&key), &key, namespace, value);
                    model.insert((key, namespace), value);
                }
                Step::Maintain(calls) => {
                    for _ in 0..calls {
                        table.maintain().unwrap();
                    }
                    prop_assert_eq!(content(&table), model.clone());
                }
                Step::Freeze(mode) => {
                    finish(&mut table, &mut pending, &mut files);
                    table.freeze(freeze(mode));
                    pending = Some((mode, SnapshotWriter::default(), model.clone()));
                }
                Step::Drain(entries) => {
                    if let Some((_, writer, _)) = &mut pending
                        && table.drain(entries, writer).unwrap()
                    {
                        finish(&mut table, &mut pending, &mut files);
                    }
                }
            }
            prop_assert!(table.len() >= model.len());
        }
        finish(&mut table, &mut pending, &mut files);
        prop_assert_eq!(content(&table), model);
    }

    /// Of a table of which detached snapshots are taken, all others have the same bytes as without them, and it goes back
    /// to the same checkpoints.
    #[test]
    fn a_detached_snapshot_leaves_no_trace(steps in prop::collection::vec(step(), 1..400), back in 0..2_u64) {
        let (mut table, mut plain) = (table(), table());
        let (mut writers, mut detached) = (None, None);
        let mut checkpoint = 0;
        for step in steps {
            match step {
                Step::Insert(key, namespace, value) | Step::Put(key, namespace, value) => {
                    for table in [&mut table, &mut plain] {
                        table.insert(stable_hash(&key), &key, namespace, value);
                    }
                }
                Step::Remove(key, namespace) | Step::TakeByHash(key, namespace) => {
                    for table in [&mut table, &mut plain] {
                        table.remove(stable_hash(&key), &key, &namespace);
                    }
                }
                Step::TakeAll => {
                    for table in [&mut table, &mut plain] {
                        table.take_all(|_, _, _| Ok(())).unwrap();
                    }
                }
                Step::Freeze(SnapshotMode::Detached) => {
                    drain_both(&mut table, &mut plain, &mut writers, usize::MAX);
                    drain_detached(&mut table, &mut detached, usize::MAX);
                    table.freeze(freeze(SnapshotMode::Detached));
                    detached = Some((SnapshotWriter::default(), table.len()));
                }
                Step::Freeze(mode) => {
                    drain_both(&mut table, &mut plain, &mut writers, usize::MAX);
                    drain_detached(&mut table, &mut detached, usize::MAX);
                    checkpoint += 1;
                    for table in [&mut table, &mut plain] {
                        table.freeze(Freeze { checkpoint, mode, is_rewindable: true });
                    }
                    writers = Some((SnapshotWriter::default(), SnapshotWriter::default()));
                }
                Step::Drain(entries_max) => {
                    drain_both(&mut table, &mut plain, &mut writers, entries_max);
                    drain_detached(&mut table, &mut detached, entries_max);
                }
                Step::Get(..) | Step::Maintain(_) => {}
            }
        }
        prop_assert_eq!(content(&table), content(&plain));
        let mut gone_back = [&mut table, &mut plain].map(|table| {
            let released = table.release(checkpoint.saturating_sub(back));
            let groups: Vec<KeyGroup> = released.iter().map(|(group, _)| *group).collect();
            let mut adopter: Table = KeyedTable::new("t", range_of(1, 0, 8), 8);
            released.into_iter().for_each(|(group, entries)| adopter.adopt(group, entries).unwrap());
            (groups, content(&adopter))
        });
        let [with, without] = &mut gone_back;
        prop_assert_eq!(with, without);
    }
}

/// Drains the snapshot that both tables have under way, which is the same.
fn drain_both(
    table: &mut Table,
    plain: &mut Table,
    writers: &mut Option<(SnapshotWriter, SnapshotWriter)>,
    entries_max: usize,
) {
    let Some((writer, plain_writer)) = writers else { return };
    let is_done = table.drain(entries_max, writer).unwrap();
    assert_eq!(is_done, plain.drain(entries_max, plain_writer).unwrap());
    if is_done && let Some((writer, plain_writer)) = writers.take() {
        assert_eq!(writer.into_bytes(), plain_writer.into_bytes());
    }
}

fn drain_detached(table: &mut Table, detached: &mut Option<(SnapshotWriter, usize)>, entries_max: usize) {
    let Some((writer, _)) = detached else { return };
    if table.drain(entries_max, writer).unwrap()
        && let Some((writer, entries)) = detached.take()
    {
        assert_eq!(Part::of(writer).entries(), entries as u64);
    }
}

#[test]
fn an_incremental_snapshot_grows_with_the_change_only() {
    let mut table: KeyedTable<u64, (), u64> = KeyedTable::new("t", range_of(1, 0, 128), 128);
    let set = |table: &mut KeyedTable<u64, (), u64>, key: u64, value| {
        table.insert(stable_hash(&key), &key, (), value);
    };
    (0..10_000).for_each(|key| set(&mut table, key, 0));
    let snapshot = |table: &mut KeyedTable<u64, (), u64>| {
        table.freeze(freeze(SnapshotMode::Incremental));
        let mut writer = SnapshotWriter::default();
        while !table.drain(1000, &mut writer).unwrap() {}
        writer.into_bytes().len()
    };
    let full = snapshot(&mut table);
    (0..100).for_each(|key| set(&mut table, key, 1));
    let change = snapshot(&mut table);
    assert!(change < full / 20, "{change} bytes of {full}");
    assert_eq!(snapshot(&mut table), 8);

    // What changed before a savepoint and after it, or both, is in the next checkpoint, once.
    (0..60).for_each(|key| set(&mut table, key, 2));
    table.freeze(freeze(SnapshotMode::Detached));
    (40..100).for_each(|key| set(&mut table, key, 2));
    let mut writer = SnapshotWriter::default();
    while !table.drain(1000, &mut writer).unwrap() {}
    assert_eq!(writer.into_bytes().len(), full);
    assert_eq!(snapshot(&mut table), change);
}

#[test]
fn epochs_that_begin_anew_know_what_changed_before_a_savepoint() {
    for spent in 0..5 {
        let mut table: KeyedTable<u64, (), u64> = KeyedTable::new("t", range_of(1, 0, 8), 8);
        let set = |table: &mut KeyedTable<u64, (), u64>, keys: std::ops::Range<u64>| {
            keys.for_each(|key| _ = table.insert(stable_hash(&key), &key, (), 1));
        };
        let entries = |table: &mut KeyedTable<u64, (), u64>, mode| {
            table.freeze(freeze(mode));
            let mut writer = SnapshotWriter::default();
            while !table.drain(10, &mut writer).unwrap() {}
            Part::of(writer).entries()
        };
        set(&mut table, 0..100);
        // The numbers are used up at one of the freezes that follow.
        table.end_epoch();
        table.epoch = CLEAN - 1 - spent;
        assert_eq!(entries(&mut table, SnapshotMode::Full), 100);
        set(&mut table, 0..10);
        assert_eq!(entries(&mut table, SnapshotMode::Detached), 100);
        set(&mut table, 5..20);
        assert_eq!(entries(&mut table, SnapshotMode::Detached), 100);
        set(&mut table, 15..25);
        assert_eq!(entries(&mut table, SnapshotMode::Incremental), 25);
        set(&mut table, 0..3);
        assert_eq!(entries(&mut table, SnapshotMode::Incremental), 3);
    }
}

/// A key group of any size takes no longer than its share, and what happens to its entries meanwhile, also
/// that the table grows and moves them, changes nothing of what is written.
#[test]
fn a_large_key_group_is_written_in_steps() {
    let mut table: KeyedTable<u64, (), u64> = KeyedTable::new("t", range_of(1, 0, 1), 1);
    let set = |table: &mut KeyedTable<u64, (), u64>, key: u64, value| {
        table.insert(stable_hash(&key), &key, (), value);
    };
    (0..10_000).for_each(|key| set(&mut table, key, 0));
    table.freeze(freeze(SnapshotMode::Full));
    let mut writer = SnapshotWriter::default();
    let mut steps: u64 = 1;
    while !table.drain(100, &mut writer).unwrap() {
        (0..40).for_each(|i| set(&mut table, steps * 97 % 10_000 + i, steps));
        (0..200).for_each(|i| set(&mut table, steps * 10_000 + i, steps));
        table.remove(stable_hash(&steps), &steps, &());
        steps += 1;
    }
    // An entry that was written because it changed, or that moved behind the place that was reached, saves a step.
    assert!((20..=101).contains(&steps), "{steps} steps");
    let part = Part::of(writer);
    assert_eq!(part.entries(), 10_000);
    let file = part.bytes;
    let mut reader = SnapshotReader::new(&file).unwrap();
    let section = reader.next_section().unwrap().unwrap();
    assert_eq!(section.kind, SectionKind::Base);
    let mut restored: KeyedTable<u64, (), u64> = KeyedTable::new("t", range_of(1, 0, 1), 1);
    restored.restore(&section).unwrap();
    assert_eq!(restored.len(), 10_000);
    assert!(restored.iter().all(|(key, (), value)| *key < 10_000 && *value == 0));
}

#[test]
fn memory_of_removed_keys_is_given_back() {
    let mut table: KeyedTable<u64, (), u64> = KeyedTable::new("t", range_of(1, 0, 128), 128);
    for key in 0..100_000_u64 {
        table.insert(stable_hash(&key), &key, (), key);
    }
    let full = table.bytes();
    for key in 0..100_000_u64 {
        table.remove(stable_hash(&key), &key, &());
    }
    assert!(table.bytes() < full / 20, "{} bytes of {full}", table.bytes());
}

#[test]
fn a_state_file_of_another_version_is_refused_by_its_number() {
    let error = SnapshotReader::new(b"FLOTTST2").unwrap_err().message;
    assert!(error.starts_with("it has format version 2, this build reads versions up to 1"), "{error}");
    let error = SnapshotReader::new(b"PAR1PAR1").unwrap_err().message;
    assert_eq!(error, "it is no state file: its first bytes are not FLOTTST1");
}

#[test]
fn damaged_sections_are_errors() {
    let mut table = table();
    table.insert(stable_hash(&1_u16), &1, 5, 9);
    table.freeze(freeze(SnapshotMode::Full));
    let mut writer = SnapshotWriter::default();
    while !table.drain(100, &mut writer).unwrap() {}
    let file = writer.into_bytes();
    for length in 0..file.len() {
        let mut restored = self::table();
        let outcome = SnapshotReader::new(&file[..length]).and_then(|mut reader| {
            while let Some(section) = reader.next_section()? {
                restored.restore(&section)?;
            }
            Ok(())
        });
        assert!(outcome.is_err() || restored.is_empty() || content(&restored).len() == 1);
    }
}
