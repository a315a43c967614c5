use std::collections::BTreeMap;

use flott_core::key_group::range_of;
use proptest::prelude::*;

use super::*;
use crate::snapshot::{Checkpointed, Freeze, SectionKind, SnapshotMode, SnapshotReader, SnapshotWriter};

type Table = KeyedTable<u16, i64, u32>;
type Content = BTreeMap<(u16, i64), u32>;

fn table() -> Table {
    KeyedTable::new("t", range_of(1, 0, 8), 8)
}

fn content(table: &Table) -> Content {
    table.iter().map(|(key, namespace, value)| ((*key, *namespace), *value)).collect()
}

fn freeze(mode: SnapshotMode) -> Freeze {
    Freeze { checkpoint: 1, mode, is_rewindable: false }
}

fn restore(files: &[Vec<u8>]) -> Table {
    let mut restored = table();
    for file in files {
        let mut reader = SnapshotReader::new(file).unwrap();
        while let Some(section) = reader.next_section().unwrap() {
            restored.restore(&section).unwrap();
        }
    }
    restored
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, i64, u32),
    Remove(u16, i64),
    TakeByHash(u16, i64),
    TakeAll,
    Freeze(SnapshotMode),
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0_u16..40;
    let namespace = 0_i64..3;
    prop_oneof![
        8 => (key.clone(), namespace.clone(), any::<u32>()).prop_map(|(k, n, v)| Step::Insert(k, n, v)),
        3 => (key.clone(), namespace.clone()).prop_map(|(k, n)| Step::Remove(k, n)),
        1 => (key, namespace).prop_map(|(k, n)| Step::TakeByHash(k, n)),
        1 => Just(Step::TakeAll),
        2 => prop_oneof![Just(SnapshotMode::Full), Just(SnapshotMode::Incremental)].prop_map(Step::Freeze),
        4 => (1_usize..6).prop_map(Step::Drain),
    ]
}

/// How many entries the sections of a file have.
fn entries(file: &[u8]) -> u64 {
    let mut reader = SnapshotReader::new(file).unwrap();
    let mut entries = 0;
    while let Some(section) = reader.next_section().unwrap() {
        entries += section.entries;
    }
    entries
}

proptest! {
    /// Whatever happens between a freeze and its last drain, the snapshot holds the state at the
    /// freeze, and a base with all its changes restores it. A base has each entry once.
    #[test]
    fn a_snapshot_is_the_state_at_its_freeze(steps in prop::collection::vec(step(), 1..400)) {
        let mut table = table();
        let mut model: Content = BTreeMap::new();
        let mut files: Vec<Vec<u8>> = Vec::new();
        type Pending = Option<(SnapshotMode, SnapshotWriter, Content)>;
        let mut pending: Pending = None;
        let finish = |table: &mut Table, pending: &mut Pending, files: &mut Vec<Vec<u8>>| {
            if let Some((mode, mut writer, expected)) = pending.take() {
                while !table.drain(3, &mut writer).unwrap() {}
                let file = writer.into_bytes();
                if mode == SnapshotMode::Full {
                    assert_eq!(entries(&file), expected.len() as u64);
                }
                files.push(file);
                assert_eq!(content(&restore(files)), expected);
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
                        taken.insert((key, namespace), value);
                        Ok(())
                    }).unwrap();
                    prop_assert_eq!(taken, std::mem::take(&mut model));
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
        }
        finish(&mut table, &mut pending, &mut files);
        prop_assert_eq!(content(&table), model);
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
    let file = writer.into_bytes();
    assert_eq!(entries(&file), 10_000);
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
