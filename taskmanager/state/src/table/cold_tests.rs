//! What only a table that is on disk too can do, or do wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flott_core::key_group::range_of;

use super::testing::{Bed, Kind, Part, restore};
use super::*;
use crate::columns::write_table_to;
use crate::snapshot::{Checkpointed, Freeze, SnapshotMode, SnapshotWriter, StateRuns};

const GROUPS: u32 = 16;

type Table = KeyedTable<u64, (), u64>;
type Content = BTreeMap<u64, u64>;

fn set(table: &mut Table, keys: impl IntoIterator<Item = u64>, value: u64) {
    for key in keys {
        table.insert(stable_hash(&key), &key, (), value);
    }
}

fn get(table: &mut Table, key: u64) -> Option<u64> {
    table.get(stable_hash(&key), &key, &()).copied()
}

fn remove(table: &mut Table, key: u64) -> Option<u64> {
    table.remove(stable_hash(&key), &key, &())
}

fn content(table: &Table) -> Content {
    let mut content = Content::new();
    let visit = |key: &u64, (): &(), value: &u64| {
        assert_eq!(content.insert(*key, *value), None, "shown twice");
        Ok(())
    };
    table.visit(visit).unwrap();
    content
}

fn maintain(table: &mut Table) {
    while table.maintain().unwrap() {}
}

fn in_memory(table: &Table) -> usize {
    table.tables.iter().map(HashTable::len).sum()
}

fn freeze(table: &mut Table) {
    table.freeze(Freeze { checkpoint: 1, mode: SnapshotMode::Incremental, is_rewindable: true });
}

fn drain(table: &mut Table) -> Result<Part> {
    let mut writer = SnapshotWriter::default();
    while !table.drain(1000, &mut writer)? {}
    let (content, mut runs) = writer.finish()?;
    assert!(content.is_empty());
    Ok(Part { bytes: b"FLOTTST1".to_vec(), runs: runs.pop() })
}

fn snapshot(table: &mut Table) -> StateRuns {
    freeze(table);
    drain(table).unwrap().runs.unwrap()
}

fn ids(runs: &StateRuns) -> Vec<u64> {
    runs.pinned.files().iter().map(|file| file.id).collect()
}

/// A table that has written all its entries to disk.
fn spilled(bed: &Bed, keys: u64) -> Table {
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    set(&mut table, 0..keys, 1);
    maintain(&mut table);
    assert!(table.cold.is_some());
    table
}

#[test]
fn a_table_ten_times_its_budget_keeps_to_it() {
    const LIMIT: u64 = 1 << 20;
    const KEYS: u64 = 100_000;
    let bed = Bed::with_limit(Kind::Spilling, LIMIT);
    let budget = bed.backend.budget().clone();
    let mut table: KeyedTable<u64, (), [u64; 16]> = bed.table(range_of(1, 0, GROUPS), GROUPS);
    let maintain = |table: &mut KeyedTable<u64, (), [u64; 16]>| {
        while table.maintain().unwrap() {}
        assert!(budget.used() <= LIMIT, "{} bytes", budget.used());
    };
    for first in (0..KEYS).step_by(1000) {
        for key in first..first + 1000 {
            table.insert(stable_hash(&key), &key, (), [first; 16]);
        }
        maintain(&mut table);
    }
    assert_eq!(budget.used(), table.bytes());
    let usage = table.usage();
    assert_eq!((usage.memory_bytes, usage.entries, usage.index_bytes), (table.bytes(), KEYS, 0));
    assert!(usage.disk_bytes > 10 * LIMIT, "{} bytes on disk", usage.disk_bytes);
    assert_eq!(table.len() as u64, KEYS);
    // Keys from all over come back, and go again.
    for key in (0..KEYS).step_by(7) {
        let expected = [key / 1000 * 1000; 16];
        assert_eq!(table.get(stable_hash(&key), &key, &()), Some(&expected));
        if key % 1000 == 0 {
            maintain(&mut table);
        }
    }
    drop(table);
    assert_eq!(budget.used(), 0);
    assert_eq!(fs::read_dir(bed.disk.path().join("state")).unwrap().count(), 0, "files are left behind");
}

#[test]
fn a_table_that_fits_stays_in_memory() {
    let bed = Bed::with_limit(Kind::Spilling, 1 << 20);
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    set(&mut table, 0..10_000, 1);
    maintain(&mut table);
    assert!(table.cold.is_none() && table.usage().disk_bytes == 0 && table.bytes() > 200_000);
    assert!(!bed.disk.path().join("state").exists());
}

#[test]
fn an_index_takes_memory_from_entries_but_not_all() {
    const LIMIT: u64 = 4 << 20;
    let bed = Bed::with_limit(Kind::Spilling, LIMIT);
    let budget = bed.backend.budget().clone();
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    set(&mut table, 0..50_000, 1);
    maintain(&mut table);
    assert!(table.cold.is_none() && table.usage().memory_bytes < LIMIT, "{:?}", table.usage());
    table.set_index_bytes(LIMIT / 2 + LIMIT / 4);
    maintain(&mut table);
    assert!(table.cold.is_some() && budget.used() <= LIMIT, "{:?}", table.usage());
    assert_eq!((table.usage().index_bytes, table.excess_of_indexes()), (LIMIT / 4 * 3, None));
    table.set_index_bytes(3 * LIMIT);
    maintain(&mut table);
    let usage = table.usage();
    let entries = usage.memory_bytes - usage.index_bytes;
    assert!(entries <= LIMIT / 8, "{usage:?}");
    assert!(entries > LIMIT / 64, "nothing is left at hand: {usage:?}");
    assert_eq!((table.excess_of_indexes(), table.excess_of_indexes()), (Some(3 * LIMIT), None));
    assert_eq!(table.len(), 50_000);
}

#[test]
fn a_small_table_is_left_alone_when_a_large_one_can_give_way() {
    let bed = Bed::with_limit(Kind::Spilling, 1 << 20);
    let [mut large, mut small]: [Table; 2] = [(); 2].map(|()| bed.table(range_of(1, 0, GROUPS), GROUPS));
    set(&mut small, 0..1000, 1);
    maintain(&mut small);
    set(&mut large, 0..100_000, 1);
    for _ in 0..1000 {
        large.maintain().unwrap();
        small.maintain().unwrap();
    }
    assert!(bed.backend.budget().used() <= 1 << 20);
    assert!(large.cold.is_some() && small.cold.is_none());
}

#[test]
fn a_checkpoint_has_new_files_only_for_what_changed() {
    let bed = Bed::with_limit(Kind::Disk, u64::MAX);
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    maintain(&mut table);
    set(&mut table, 0..10_000, 1);
    let first = snapshot(&mut table);
    set(&mut table, 0..100, 2);
    let second = snapshot(&mut table);
    assert_eq!((ids(&first), ids(&second)), (vec![0], vec![0, 1]));
    let files = second.pinned.files();
    assert!(files[1].length < files[0].length / 20, "{} of {} bytes", files[1].length, files[0].length);
    assert_eq!(ids(&snapshot(&mut table)), [0, 1], "nothing changed");
    assert_eq!(Part { bytes: b"FLOTTST1".to_vec(), runs: Some(second) }.entries(), 10_000);
}

#[test]
fn the_first_checkpoint_after_going_to_disk_has_everything() {
    let bed = Bed::with_limit(Kind::Spilling, 200_000);
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    set(&mut table, 0..4000, 1);
    freeze(&mut table);
    let mut writer = SnapshotWriter::default();
    while !table.drain(1000, &mut writer).unwrap() {}
    assert!(!writer.is_empty() && table.cold.is_none());
    set(&mut table, 4000..20_000, 2);
    remove(&mut table, 5);
    maintain(&mut table);
    assert!(table.cold.is_some());
    freeze(&mut table);
    let part = drain(&mut table).unwrap();
    assert_eq!(part.entries(), 19_999);
    assert_eq!(content(&table).len(), 19_999);
}

#[test]
fn removals_of_what_is_on_disk_are_restored_at_any_range() {
    let bed = Bed::new(Kind::Spilling);
    let mut table = spilled(&bed, 1000);
    let mut parts = Vec::new();
    let mut expected: Content = (0..1000).map(|key| (key, 1)).collect();
    for round in 0..4_u64 {
        for key in (round..1000).step_by(5) {
            assert_eq!(remove(&mut table, key), expected.remove(&key), "round {round}, key {key}");
        }
        for key in (round..1000).step_by(11) {
            set(&mut table, [key], round);
            expected.insert(key, round);
        }
        if round % 2 == 0 {
            maintain(&mut table);
        }
        freeze(&mut table);
        parts.push(drain(&mut table).unwrap());
        assert_eq!(content(&table), expected);
        for parallelism in [1, 3, GROUPS] {
            let mut restored: Vec<Table> = bed.tables(parallelism, GROUPS);
            restore(&parts, &mut restored, &BTreeSet::new());
            let found: Content = restored.iter().flat_map(content).collect();
            assert_eq!(found, expected);
            assert!(restored.iter().all(|table| in_memory(table) == 0), "nothing is read before it is needed");
        }
    }
    assert!(table.changes.iter().all(|changes| {
        let part = changes.cold.as_ref().unwrap();
        part.tombstones.is_empty() && part.frozen_tombstones.is_empty() && part.saved.is_empty()
    }));
}

#[test]
fn the_snapshot_under_way_keeps_younger_entries_from_the_disk() {
    let bed = Bed::new(Kind::Spilling);
    let mut table = spilled(&bed, 1000);
    set(&mut table, 0..1000, 2);
    freeze(&mut table);
    let mut writer = SnapshotWriter::default();
    assert!(!table.drain(100, &mut writer).unwrap());
    set(&mut table, 0..1000, 3);
    remove(&mut table, 7);
    for _ in 0..100 {
        table.maintain().unwrap();
    }
    assert_eq!(in_memory(&table), 999, "they are neither written nor dropped");
    while !table.drain(100, &mut writer).unwrap() {}
    maintain(&mut table);
    assert!(in_memory(&table) < 100, "{} entries are in memory", in_memory(&table));
    let expected: Content = (0..1000).filter(|key| *key != 7).map(|key| (key, 3)).collect();
    assert_eq!(content(&table), expected);
    let mut restored: Vec<Table> = bed.tables(1, GROUPS);
    restore(&[Part::of(writer)], &mut restored, &BTreeSet::new());
    let expected: Content = (0..1000).map(|key| (key, 2)).collect();
    assert_eq!(content(&restored[0]), expected);
}

#[test]
fn what_is_taken_during_a_snapshot_is_in_it() {
    let bed = Bed::new(Kind::Spilling);
    let mut table = spilled(&bed, 1000);
    set(&mut table, 0..100, 2);
    freeze(&mut table);
    let mut taken = Content::new();
    let take = |key, (), value| {
        assert_eq!(taken.insert(key, value), None, "taken twice");
        Ok(())
    };
    table.take_all(take).unwrap();
    let expected: Content = (0..1000).map(|key| (key, if key < 100 { 2 } else { 1 })).collect();
    assert_eq!(taken, expected);
    assert_eq!((get(&mut table, 5), content(&table).len()), (None, 0));
    set(&mut table, 3..5, 4);
    let mut restored: Vec<Table> = bed.tables(1, GROUPS);
    restore(&[drain(&mut table).unwrap()], &mut restored, &BTreeSet::new());
    assert_eq!(content(&restored[0]), expected);
    maintain(&mut table);
    assert_eq!(content(&table), Content::from([(3, 4), (4, 4)]));
    assert_eq!((get(&mut table, 5), remove(&mut table, 3), get(&mut table, 3)), (None, Some(4), None));
}

#[test]
fn a_snapshot_that_the_disk_refuses_is_lost_alone() {
    let bed = Bed::with_limit(Kind::Disk, u64::MAX);
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    maintain(&mut table);
    set(&mut table, 0..1000, 1);
    snapshot(&mut table);
    set(&mut table, 500..1500, 2);
    remove(&mut table, 1);
    freeze(&mut table);
    let store = bed.disk.path().join("state/0-t");
    let aside = bed.disk.path().join("aside");
    fs::rename(&store, &aside).unwrap();
    let mut writer = SnapshotWriter::default();
    assert!(table.drain(10, &mut writer).unwrap(), "the run cannot be made");
    let error = writer.finish().unwrap_err();
    assert!(error.message.contains("state 't'") && error.message.contains("0-t"), "{error}");
    fs::rename(&aside, &store).unwrap();

    set(&mut table, 700..710, 3);
    let mut expected: Content = (0..1500).map(|key| (key, if key < 500 { 1 } else { 2 })).collect();
    expected.extend((700..710).map(|key| (key, 3)));
    expected.remove(&1);
    assert_eq!(content(&table), expected);
    freeze(&mut table);
    let mut restored: Vec<Table> = bed.tables(1, GROUPS);
    restore(&[drain(&mut table).unwrap()], &mut restored, &BTreeSet::new());
    assert_eq!(content(&restored[0]), expected);
}

#[test]
fn a_disk_that_cannot_be_read_ends_the_task_with_an_error() {
    let bed = Bed::new(Kind::Spilling);
    let mut table = spilled(&bed, 1000);
    for file in table.cold.as_ref().unwrap().store.live_files() {
        fs::write(&file.path, "").unwrap();
    }
    let key = (0..1000).find(|key| {
        let group = group_of(stable_hash(key), GROUPS) as usize;
        table.tables[group].is_empty()
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| get(&mut table, key.unwrap())));
    let error = outcome.unwrap_err().downcast::<Error>().unwrap();
    assert!(error.message.contains("state 't'") && error.message.contains(".run"), "{error}");
    assert!(table.visit(|_, (), _| Ok(())).is_err());
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let bed = Bed::new(Kind::Spilling);
    fs::write(bed.disk.path().join("state"), "a file").unwrap();
    let mut table: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    set(&mut table, 0..1000, 1);
    let error = table.maintain().unwrap_err();
    assert!(error.message.contains("state 't'") && error.message.contains("state/0-t"), "{error}");

    let mut nowhere: Table = KeyedTable::new("t", range_of(1, 0, GROUPS), GROUPS);
    let error = nowhere.restore_runs(&[], &|_| true).unwrap_err();
    assert!(error.message.contains("io.tmp.dirs"), "{error}");
}

#[test]
fn a_savepoint_of_what_is_on_disk_is_a_table() {
    let bed = Bed::new(Kind::Spilling);
    let mut table = spilled(&bed, 1000);
    set(&mut table, 0..10, 2);
    remove(&mut table, 500);
    let expected = content(&table);
    let runs = snapshot(&mut table);
    let columns = table.columns();
    let (rows, parquet) = write_table_to(&*columns, Vec::new(), |visit| runs.sections(visit)).unwrap();
    assert_eq!(rows, 999);
    let mut restored: Table = bed.table(range_of(1, 0, GROUPS), GROUPS);
    for rows in crate::columns::read_table(bytes::Bytes::from(parquet)).unwrap() {
        restored.restore_rows(columns.schema(), &rows.unwrap(), &|_| true).unwrap();
        maintain(&mut restored);
    }
    assert!(restored.cold.is_some());
    assert_eq!(content(&restored), expected);
    assert_eq!(snapshot(&mut restored).pinned.files().iter().map(|file| file.entries).sum::<u64>(), 999);
}

#[test]
fn epochs_begin_anew_when_their_numbers_are_used_up() {
    let bed = Bed::new(Kind::Spilling);
    let mut table = spilled(&bed, 1000);
    table.end_spill().unwrap();
    set(&mut table, 0..500, 2);
    table.epoch = CLEAN - 2;
    set(&mut table, 250..750, 3);
    for round in 0..4 {
        set(&mut table, 100..200, 10 + round);
        freeze(&mut table);
        assert!(table.epoch < CLEAN);
        set(&mut table, 150..160, 20 + round);
        let mut restored: Vec<Table> = bed.tables(1, GROUPS);
        restore(&[drain(&mut table).unwrap()], &mut restored, &BTreeSet::new());
        let value = |key: u64| match key {
            100..200 => 10 + round,
            250..750 => 3,
            0..100 | 200..250 => 2,
            _ => 1,
        };
        let expected: Content = (0..1000).map(|key| (key, value(key))).collect();
        assert_eq!(content(&restored[0]), expected);
        maintain(&mut table);
    }
}
