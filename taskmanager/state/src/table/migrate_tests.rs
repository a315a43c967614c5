//! Tables that take what another version of the job left in a checkpoint.

use std::collections::BTreeMap;

use flott_core::key_group::range_of;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::testing::{Bed, Kind, Part, kind, restore};
use super::*;
use crate::snapshot::{Checkpointed, Freeze, LocalRun, SectionKind, SnapshotMode, SnapshotReader, SnapshotWriter};

const GROUPS: u32 = 8;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct First {
    count: u32,
    note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Second {
    #[serde(default)]
    last: Option<u8>,
    count: u64,
}

type Content = BTreeMap<(u16, i64), u64>;

fn content(table: &KeyedTable<u16, i64, Second>) -> Content {
    let mut content = Content::new();
    let visit = |key: &u16, time: &i64, value: &Second| {
        assert_eq!((value.last, content.insert((*key, *time), value.count)), (None, None));
        Ok(())
    };
    table.visit(visit).unwrap();
    content
}

fn snapshot<V: Data>(table: &mut KeyedTable<u16, i64, V>, mode: SnapshotMode) -> Part {
    table.freeze(Freeze { checkpoint: 1, mode, is_rewindable: false });
    let mut writer = SnapshotWriter::default();
    while !table.drain(7, &mut writer).unwrap() {}
    Part::of(writer)
}

/// Reads a chain of snapshots of the first version: what is in runs is all that counts of it.
fn migrate(parts: &[Part], schema: &str, table: &mut KeyedTable<u16, i64, Second>) {
    let newest = parts.iter().rev().find_map(|part| part.runs.as_ref());
    if let Some(runs) = newest {
        let files = runs.pinned.files().into_iter();
        let files: Vec<LocalRun> = files.map(|run| LocalRun { path: run.path, dropped: run.dropped }).collect();
        return table.restore_old_runs(schema, &files, &|group| runs.range.contains(group)).unwrap();
    }
    for part in parts {
        let mut reader = SnapshotReader::new(&part.bytes).unwrap();
        while let Some(section) = reader.next_section().unwrap() {
            if table.owns(section.group) {
                table.restore_old(schema, &section).unwrap();
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u16, i64, u32),
    Remove(u16, i64),
    Snapshot(SnapshotMode),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let mode = prop_oneof![1 => Just(SnapshotMode::Full), 4 => Just(SnapshotMode::Incremental)];
    let step = prop_oneof![
        6 => (0..60_u16, 0..2_i64, any::<u32>()).prop_map(|(key, time, count)| Step::Set(key, time, count)),
        3 => (0..60_u16, 0..2_i64).prop_map(|(key, time)| Step::Remove(key, time)),
        1 => mode.prop_map(Step::Snapshot),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bases_changes_and_runs_are_migrated(steps in steps(), from in kind(), to in kind()) {
        let (old_bed, new_bed) = (Bed::new(from), Bed::new(to));
        let mut old: KeyedTable<u16, i64, First> = old_bed.table(range_of(1, 0, GROUPS), GROUPS);
        let (mut expected, mut parts) = (Content::new(), Vec::new());
        for step in steps.into_iter().chain([Step::Snapshot(SnapshotMode::Incremental)]) {
            match step {
                Step::Set(key, time, count) => {
                    old.insert(stable_hash(&key), &key, time, First { count, note: format!("n{count}") });
                    expected.insert((key, time), count.into());
                }
                Step::Remove(key, time) => {
                    old.remove(stable_hash(&key), &key, &time);
                    expected.remove(&(key, time));
                }
                Step::Snapshot(mode) => {
                    let mode = if parts.is_empty() { SnapshotMode::Full } else { mode };
                    if mode == SnapshotMode::Full {
                        parts.clear();
                    }
                    parts.push(snapshot(&mut old, mode));
                    while old.maintain().unwrap() {}
                }
            }
        }
        let schema = old.columns().schema().to_owned();
        // At another parallelism, and then in a chain of its own.
        let mut tables: Vec<KeyedTable<u16, i64, Second>> = new_bed.tables(3, GROUPS);
        let mut again: Vec<KeyedTable<u16, i64, Second>> = new_bed.tables(3, GROUPS);
        let mut found = Content::new();
        for (table, again) in tables.iter_mut().zip(&mut again) {
            migrate(&parts, &schema, table);
            let part = snapshot(table, SnapshotMode::Incremental);
            let mut reader = SnapshotReader::new(&part.bytes).unwrap();
            while let Some(section) = reader.next_section().unwrap() {
                prop_assert_eq!(section.kind, SectionKind::Base);
            }
            let range = again.range;
            restore(&[part], std::slice::from_mut(again), &Default::default());
            prop_assert!(content(again).iter().all(|((key, _), _)| range.contains(group_of(stable_hash(key), GROUPS))));
            prop_assert_eq!(content(again), content(table));
            found.extend(content(table));
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_is_not_of_the_schema_is_an_error() {
    let bed = Bed::new(Kind::Memory);
    let mut old: KeyedTable<u16, i64, First> = bed.table(range_of(1, 0, GROUPS), GROUPS);
    old.insert(stable_hash(&7_u16), &7, 1, First { count: 1, note: "n".to_owned() });
    let part = snapshot(&mut old, SnapshotMode::Full);
    let schema = old.columns().schema().to_owned();
    let mut reader = SnapshotReader::new(&part.bytes).unwrap();
    let mut section = reader.next_section().unwrap().unwrap();
    while section.entries == 0 {
        section = reader.next_section().unwrap().unwrap();
    }
    let mut table: KeyedTable<u16, i64, Second> = bed.table(range_of(1, 0, GROUPS), GROUPS);
    let refused = |table: &mut KeyedTable<u16, i64, Second>, schema: &str, body: &[u8], reason: &str| {
        let section = crate::snapshot::Section { body, ..section };
        let error = table.restore_old(schema, &section).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused(&mut table, &schema, &section.body[..section.body.len() - 1], "bytes are left");
    refused(&mut table, &schema, &[section.body, &[0]].concat(), "has 1 bytes behind its last entry");
    refused(&mut table, "{", section.body, "the schema of the saved state is damaged");
    refused(&mut table, &schema.replace("UInt32", "UInt128"), section.body, "the schema of the saved state is damaged");
    refused(&mut table, &schema.replace("UInt32", "Float64"), section.body, "field 'value.count' was Float64");
    let mut homeless: KeyedTable<u16, i64, Second> = KeyedTable::new("t", range_of(1, 0, GROUPS), GROUPS);
    let error = homeless.restore_old_runs(&schema, &[], &|_| true).unwrap_err().to_string();
    assert!(error.contains("io.tmp.dirs"), "{error}");
}
