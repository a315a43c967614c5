//! A gigabyte of state on its way out and back: as a savepoint's table, beside the same columns written by hand, and in
//! the form of a checkpoint. All on one core and in memory, so that neither disk nor hash is measured.

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, StructArray, UInt16Array, UInt64Array};
use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use flott_core::hash::stable_hash;
use flott_core::key_group::{KeyGroup, group_of, range_of};
use flott_core::{Error, Result};
use flott_state::{Checkpointed, Freeze, KeyedTable, SnapshotMode, SnapshotReader, SnapshotWriter, columns};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};

use crate::checkpoint::ENTRIES_PER_STEP;
use crate::harness::{MAX_PARALLELISM, check_same, medians, scrambled, timed};
use crate::report::Figure;

/// What an entry is worth: key, three numbers, and a name. How they lie in memory or in a file does not count.
const ENTRY_BYTES: u64 = 4 * 8 + NAME_BYTES as u64;

/// The length of a name, which has no order that a compression could find.
const NAME_BYTES: usize = 32;

/// How many rows the peer writes at a time: as many as we do.
const ROWS_PER_BATCH: usize = 8192;

/// What is known of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Totals {
    count: u64,
    sum: i64,
    last: i64,
    name: String,
}

impl Totals {
    fn new(key: u64) -> Self {
        let number = scrambled(key);
        Self {
            count: 1 + number % 100,
            sum: (number >> 32) as i64,
            last: (number >> 24) as i64,
            name: format!("{number:016x}{:016x}", scrambled(number)),
        }
    }

    /// One more value.
    pub(crate) fn add(&mut self, value: i64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(value);
        self.last = value;
    }
}

type Table = KeyedTable<u64, (), Totals>;

/// How many keys there are: a gigabyte of entries, or a tenth of it.
pub(crate) fn keys(is_quick: bool) -> u64 {
    let bytes = if is_quick { 100_000_000 } else { 1_000_000_000 };
    bytes / ENTRY_BYTES
}

/// A table of all key groups without entries.
pub(crate) fn empty() -> Table {
    KeyedTable::new("totals", range_of(1, 0, MAX_PARALLELISM), MAX_PARALLELISM)
}

/// A table with so many keys.
pub(crate) fn filled(keys: u64) -> Table {
    let mut table = empty();
    for key in 0..keys {
        table.insert(stable_hash(&key), &key, (), Totals::new(key));
    }
    table
}

/// A number that differs as soon as one entry does.
pub(crate) fn checksum(table: &Table) -> u64 {
    table.iter().fold(0, |sum: u64, (key, (), totals)| {
        let Totals { count, sum: of_key, last, name } = totals;
        let name = name.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        sum.wrapping_add(scrambled(
            *key ^ scrambled(*count ^ scrambled(*of_key as u64 ^ scrambled(*last as u64 ^ name))),
        ))
    })
}

/// The table's file in a checkpoint, written as a subtask does, between batches.
pub(crate) fn snapshot(table: &mut Table, freeze: Freeze) -> Result<Vec<u8>> {
    table.freeze(freeze);
    let mut writer = SnapshotWriter::default();
    while !table.drain(ENTRIES_PER_STEP, &mut writer)? {}
    Ok(writer.into_bytes())
}

/// Fills `table` from its file in a checkpoint.
pub(crate) fn restore(file: &[u8], table: &mut Table) -> Result<()> {
    let mut reader = SnapshotReader::new(file)?;
    while let Some(section) = reader.next_section()? {
        table.restore(&section)?;
    }
    Ok(())
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (keys, rounds) = (keys(is_quick), if is_quick { 1 } else { 3 });
    let mut table = filled(keys);
    let expected = checksum(&table);
    let mut checkpoint = 0;
    let [write_s, by_hand_s, read_s, snapshot_s, restore_s] = medians(rounds, || {
        checkpoint += 1;
        let freeze = Freeze { checkpoint, mode: SnapshotMode::Full, is_rewindable: false };
        let (snapshot_s, file) = timed(|| snapshot(&mut table, freeze));
        let file = file?;
        let (table_s, parquet) = timed(|| to_parquet(&table, &file));
        let parquet = parquet?;
        let (by_hand_s, by_hand) = timed(|| by_hand(&table));
        check_alike(&parquet, &by_hand?)?;

        let mut from_rows = empty();
        let (read_s, read) = timed(|| from_parquet(parquet, &mut from_rows));
        read?;
        check_same("the state in the savepoint", checksum(&from_rows), expected)?;
        drop(from_rows);

        let mut from_file = empty();
        let (restore_s, restored) = timed(|| restore(&file, &mut from_file));
        restored?;
        check_same("the state in the checkpoint", checksum(&from_file), expected)?;
        Ok([snapshot_s + table_s, by_hand_s, read_s, snapshot_s, restore_s])
    })?;

    let rate = |seconds: f64| (keys * ENTRY_BYTES) as f64 / seconds / 1e6;
    Ok(vec![
        Figure::at_least("savepoint_write", "MB/s", rate(write_s), 300.0),
        Figure::more("savepoint_write_by_hand", "MB/s", rate(write_s), rate(by_hand_s))
            .beside("arrow and parquet by hand"),
        Figure::at_least("savepoint_read", "MB/s", rate(read_s), 300.0),
        Figure::alone("checkpoint_write_all", "MB/s", rate(snapshot_s)),
        Figure::alone("checkpoint_read_all", "MB/s", rate(restore_s)),
    ])
}

/// The table's file in a savepoint, made of what was frozen.
fn to_parquet(table: &Table, file: &[u8]) -> Result<Vec<u8>> {
    let mut reader = SnapshotReader::new(file)?;
    let mut sections: Vec<(KeyGroup, u64, &[u8])> = Vec::new();
    while let Some(section) = reader.next_section()? {
        sections.push((section.group, section.entries, section.body));
    }
    let (rows, parquet) = columns::write_table(&*table.columns(), sections.into_iter())?;
    check_same("the number of rows", rows, table.rows())?;
    Ok(parquet)
}

/// Fills `table` from its file in a savepoint.
fn from_parquet(parquet: Vec<u8>, table: &mut Table) -> Result<()> {
    let columns = table.columns();
    for rows in columns::read_table(Bytes::from(parquet))? {
        table.restore_rows(columns.schema(), &rows?, &|_| true)?;
    }
    Ok(())
}

/// The same columns, by somebody who knows them: straight from the values into arrays.
fn by_hand(table: &Table) -> Result<Vec<u8>> {
    let schema = table.columns().arrow_schema();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties())).map_err(failed)?;
    let entries: Vec<(&u64, &Totals)> = table.iter().map(|(key, (), totals)| (key, totals)).collect();
    for entries in entries.chunks(ROWS_PER_BATCH) {
        writer.write(&to_batch(&schema, entries)?).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// The settings of a savepoint's tables.
fn properties() -> WriterProperties {
    let field = |name: &str| ColumnPath::from(vec!["value".to_owned(), name.to_owned()]);
    let properties = WriterProperties::builder()
        .set_column_encoding(field("name"), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_compression(Compression::LZ4_RAW)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_dictionary_enabled(ColumnPath::from("key_group"), true)
        .set_column_statistics_enabled(ColumnPath::from("key_group"), EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(1 << 20))
        .set_max_row_group_bytes(Some(64 << 20));
    let numbers = [ColumnPath::from("key"), field("count"), field("sum"), field("last")];
    let delta = |properties: WriterPropertiesBuilder, number| {
        properties.set_column_encoding(number, Encoding::DELTA_BINARY_PACKED)
    };
    numbers.into_iter().fold(properties, delta).build()
}

/// Refuses a comparison with a peer that writes another kind of file.
fn check_alike(ours: &[u8], peer: &[u8]) -> Result<()> {
    let (ours, peer) = (ours.len(), peer.len());
    if ours.abs_diff(peer) * 50 < peer {
        return Ok(());
    }
    Err(Error::system(format!("the sides write files of different sizes: Flott {ours} bytes, its peer {peer}")))
}

fn to_batch(schema: &SchemaRef, entries: &[(&u64, &Totals)]) -> Result<RecordBatch> {
    let Some(DataType::Struct(fields)) = schema.fields().last().map(|value| value.data_type()) else {
        return Err(Error::system(format!("the table's last column is no struct: {schema}")));
    };
    let group = |(key, _): &(&u64, &Totals)| group_of(stable_hash(*key), MAX_PARALLELISM);
    let totals: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(entries.iter().map(|(_, totals)| totals.count))),
        Arc::new(Int64Array::from_iter_values(entries.iter().map(|(_, totals)| totals.sum))),
        Arc::new(Int64Array::from_iter_values(entries.iter().map(|(_, totals)| totals.last))),
        Arc::new(LargeStringArray::from_iter_values(entries.iter().map(|(_, totals)| &totals.name))),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt16Array::from_iter_values(entries.iter().map(group))),
        Arc::new(UInt64Array::from_iter_values(entries.iter().map(|(key, _)| **key))),
        Arc::new(StructArray::try_new(fields.clone(), totals, None).map_err(failed)?),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(failed)
}

fn failed(error: impl Display) -> Error {
    Error::system(error.to_string())
}
