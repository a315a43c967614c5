//! A table that is asked for keys, such as one of a database: `lookup.cache` = `NONE` or `PARTIAL`.
//!
//! The keys of a chunk are asked for together, each once. Several chunks are under way at a time: see `under_way`. Where rows
//! are updated or deleted each chunk is waited for, so that a row never moves to another subtask apart from the changes that
//! follow it.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow::compute::{concat, take};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use flott_chunk::{Chunk, batch_of};
use flott_connector_spi::{Found, IoHandle, LookUp, Waker};
use flott_core::time::Timestamp;
use flott_core::{Error, ErrorKind, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot};
use hashbrown::HashTable;

use super::cache::{Cache, CacheOptions, KeyRows};
use super::pairing::Pairing;
use super::{LookupCondition, check_keys};
use crate::operator::{Emit, TableOperator};
use crate::operators::under_way::{Bounds, Request, UnderWay};
use crate::program::types_of;
use crate::row::{EncodedRows, KeyEncoder, RowDecoder, RowEncoder};
use crate::spec::LookupJoinSpec;

/// How many rows may be under way before one waits for the first of them.
const ROWS_MAX: usize = 8 * Chunk::ROWS_MAX;

/// How long to wait before keys are asked for again. Each time is twice as long as the one before, up to 64 of it.
const PAUSE: Duration = Duration::from_millis(100);

/// A table that is asked for keys.
pub struct AskedTable {
    /// The table's name, for messages.
    pub name: String,
    /// What is asked.
    pub table: Arc<dyn LookUp>,
    /// The columns of its keys, which the left ones must equal.
    pub keys: SchemaRef,
    /// The columns that it gives, which come behind the left ones.
    pub schema: SchemaRef,
    /// How often the same is asked again after the world has failed.
    pub retries_max: u32,
    /// What is kept of the answers; `None` for nothing.
    pub cache: Option<CacheOptions>,
}

/// How long, and how much, is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For how long a table may be asked for the same keys, with all retries.
    pub timeout: Duration,
    /// How many requests may be under way.
    pub requests_max: usize,
    /// Whether left rows are only inserted. If not, rows do not wait beside others.
    pub is_insert_only: bool,
}

impl From<&LookupJoinSpec> for Patience {
    fn from(spec: &LookupJoinSpec) -> Self {
        Self {
            timeout: Duration::from_millis(spec.timeout_ms),
            requests_max: spec.requests_max as usize,
            is_insert_only: spec.is_insert_only,
        }
    }
}

impl AskedTable {
    /// Asks until there is an answer.
    async fn find(&self, keys: RecordBatch) -> Result<Found> {
        let mut tries: u32 = 0;
        loop {
            let error = match self.table.look_up(keys.clone()).await {
                Ok(found) => return self.checked(found, keys.num_rows()),
                Err(error) => error,
            };
            tries += 1;
            if error.kind != ErrorKind::System || tries > self.retries_max {
                return Err(if tries == 1 { error } else { error.context(format!("tried {tries} times")) });
            }
            tracing::warn!(table = self.name, keys = keys.num_rows(), %error, "looking rows up failed: trying again");
            flott_env::sleep(PAUSE.saturating_mul(1_u32 << (tries - 1).min(6))).await;
        }
    }

    /// An answer, if it is one to the question.
    fn checked(&self, found: Found, keys: usize) -> Result<Found> {
        let wrong = |what: String| Err(Error::user_code(format!("its connector gives {what}")));
        let (rows, given, wanted) = (found.rows.num_rows(), types_of(&found.rows.schema()), types_of(&self.schema));
        if found.keys.len() != rows {
            return wrong(format!("{rows} rows, and the keys of {}", found.keys.len()));
        }
        if let Some(key) = found.keys.iter().find(|key| **key as usize >= keys) {
            return wrong(format!("a row of the key at {key}, and was asked for {keys}"));
        }
        if given != wanted {
            return wrong(format!("columns of the types {given:?}, and was asked for {wanted:?}"));
        }
        Ok(found)
    }
}

/// See the module's documentation.
pub struct AskedLookupJoin {
    table: Arc<AskedTable>,
    left_keys: Vec<usize>,
    keys: KeyEncoder,
    patience: Patience,
    under_way: UnderWay<Question, Found>,
    answering: Answering,
}

/// What a chunk wants to know.
#[derive(Default)]
struct Question {
    /// The number of each row's key; none if a part of it is NULL, which equals nothing.
    keys: Vec<Option<u32>>,
    /// The rows of each key that were known when the chunk came. The others are asked for, in their order.
    known: Vec<Option<Arc<KeyRows>>>,
    /// The keys that are asked for, if the answer is to be kept.
    asked: EncodedRows,
}

impl AskedLookupJoin {
    /// A join of rows of `left` with those of `table`.
    ///
    /// # Errors
    /// The types of the keys differ or cannot be compared, or those of its columns cannot be kept.
    pub fn new(
        left: &SchemaRef,
        on: &LookupCondition<'_>,
        table: AskedTable,
        patience: Patience,
        io: IoHandle,
        waker: Waker,
    ) -> Result<Self> {
        check_keys(&table.name, left, on.left_keys, table.keys.fields().iter().map(AsRef::as_ref))?;
        let kept = table.cache.clone().map(|options| Kept::new(options, &table.schema)).transpose()?;
        Ok(Self {
            left_keys: on.left_keys.to_vec(),
            keys: KeyEncoder::new(on.left_keys, &types_of(left))?,
            patience,
            under_way: UnderWay::new(io, waker),
            answering: Answering {
                pairing: Pairing::new(left, table.schema.fields().iter(), on)?,
                schema: Arc::clone(&table.schema),
                kept,
                now: 0,
            },
            table: Arc::new(table),
        })
    }

    /// Asks for the keys of a chunk.
    fn start(&mut self, chunk: Chunk, split: u32) -> Result<()> {
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), None)?;
        let mut question = Question::default();
        let mut numbers: HashTable<(u64, u32)> = HashTable::new();
        // A row with each key.
        let mut rows: Vec<usize> = Vec::new();
        let mut asked: Vec<u32> = Vec::new();
        for row in 0..chunk.len() {
            if self.left_keys.iter().any(|column| chunk.column(*column).is_null(row)) {
                question.keys.push(None);
                continue;
            }
            let (hash, key) = (keys.hashes[row], keys.rows.get(row));
            let is_same = |other: &(u64, u32)| other.0 == hash && keys.rows.get(rows[other.1 as usize]) == key;
            if let Some((_, number)) = numbers.find(hash, is_same) {
                question.keys.push(Some(*number));
                continue;
            }
            let number = rows.len() as u32;
            rows.push(row);
            numbers.insert_unique(hash, (hash, number), |other| other.0);
            question.keys.push(Some(number));
            let known = self.answering.known(key);
            if known.is_none() {
                asked.push(row as u32);
                if self.answering.kept.is_some() {
                    question.asked.push(key);
                }
            }
            question.known.push(known);
        }
        let request = (!asked.is_empty()).then(|| self.request(&chunk, asked)).transpose()?;
        self.under_way.push(chunk, split, question, request.into_iter().collect());
        Ok(())
    }

    /// The request for the keys of these rows.
    fn request(&self, chunk: &Chunk, rows: Vec<u32>) -> Result<Request<Found>> {
        let rows = UInt32Array::from(rows);
        let columns = self.left_keys.iter().map(|column| take(chunk.column(*column), &rows, None));
        let columns = columns.collect::<std::result::Result<_, _>>().map_err(failed)?;
        let keys = batch_of(&self.table.keys, columns, rows.len())?;
        let (table, timeout) = (Arc::clone(&self.table), self.patience.timeout);
        let noun = if rows.len() == 1 { "key" } else { "keys" };
        let name = format!("looking up {} {noun} in table '{}'", rows.len(), table.name);
        let later = async move {
            flott_env::within(timeout, table.find(keys)).await.unwrap_or_else(|| {
                Err(Error::system(format!(
                    "there is no answer within {timeout:?}: SET 'table.exec.async-lookup.timeout' to more, or look what the table is doing"
                )))
            })
        };
        Ok(Request { name, later: Box::pin(later) })
    }

    fn start_restored(&mut self) -> Result<()> {
        for (split, chunk) in self.under_way.take_restored() {
            self.start(chunk, split)?;
        }
        Ok(())
    }

    /// How much may be under way.
    fn bounds(&self) -> Bounds {
        match self.patience.is_insert_only {
            true => Bounds { rows: ROWS_MAX, requests: self.patience.requests_max },
            false => Bounds::NONE,
        }
    }

    fn release(&mut self, most: Bounds, out: &mut Emit<'_>) -> Result<()> {
        let answering = &mut self.answering;
        self.under_way.release(most, out, |chunk, question, mut answers, out| {
            answering.send(&chunk, &question, answers.pop().as_ref(), out)
        })
    }
}

impl TableOperator for AskedLookupJoin {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.start(chunk, out.split())?;
        self.release(self.bounds(), out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.under_way.open(cx)
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.release(self.bounds(), out)?;
        self.under_way.hold(watermark);
        Ok(())
    }

    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        self.under_way.outgoing(watermark)
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        self.answering.now = self.answering.now.max(now);
        self.start_restored()?;
        self.release(self.bounds(), out)?;
        Ok(self.under_way.next_time(now))
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.release(Bounds::NONE, out)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.under_way.snapshot(snapshot)
    }
}

/// What becomes of answers.
struct Answering {
    pairing: Pairing,
    /// The columns that the table gives.
    schema: SchemaRef,
    kept: Option<Kept>,
    now: Timestamp,
}

/// What is kept of them.
struct Kept {
    cache: Cache,
    encoder: RowEncoder,
    decoder: RowDecoder,
    encoded: EncodedRows,
}

impl Kept {
    fn new(options: CacheOptions, schema: &SchemaRef) -> Result<Self> {
        let types = types_of(schema);
        let (encoder, decoder) = (RowEncoder::new(&types)?, RowDecoder::new(&types)?);
        Ok(Self { cache: Cache::new(options), encoder, decoder, encoded: EncodedRows::default() })
    }
}

impl Answering {
    /// The rows of a key, if they are kept.
    fn known(&mut self, key: &[u8]) -> Option<Arc<KeyRows>> {
        self.kept.as_mut()?.cache.get(key, self.now)
    }

    /// Sends the rows of a chunk with those that were found.
    fn send(&mut self, chunk: &Chunk, question: &Question, found: Option<&Found>, out: &mut Emit<'_>) -> Result<()> {
        let asked = question.known.iter().filter(|known| known.is_none()).count();
        let of_asked = Groups::of(found.map_or(&[][..], |found| &found.keys[..]), asked);
        if let Some(found) = found {
            self.keep(question, found, &of_asked)?;
        }
        // What was found stands first, and what was known behind it.
        let mut next = found.map_or(0, |found| found.rows.num_rows() as u32);
        let mut groups = Groups::default();
        let mut answered = 0;
        for known in &question.known {
            match known {
                Some(rows) => {
                    groups.push(next..next + rows.count);
                    next += rows.count;
                }
                None => {
                    groups.push(of_asked.get(answered).iter().copied());
                    answered += 1;
                }
            }
        }
        let columns = self.columns(question, found)?;
        for (row, key) in question.keys.iter().enumerate() {
            let found = key.map_or(&[][..], |key| groups.get(key as usize));
            self.pairing.add(row, found.iter().copied());
            if self.pairing.is_full() {
                self.pairing.flush(chunk, &columns, out)?;
            }
        }
        self.pairing.flush(chunk, &columns, out)
    }

    /// Keeps what was found.
    fn keep(&mut self, question: &Question, found: &Found, of_asked: &Groups) -> Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        kept.encoder.encode(found.rows.columns(), found.rows.num_rows(), &mut kept.encoded)?;
        for (number, key) in question.asked.iter().enumerate() {
            let mut rows = KeyRows::default();
            of_asked.get(number).iter().for_each(|row| rows.push(kept.encoded.get(*row as usize)));
            kept.cache.put(key, rows, self.now);
        }
        Ok(())
    }

    /// The table's columns: of the rows that were found, then of those that were known.
    fn columns(&self, question: &Question, found: Option<&Found>) -> Result<Vec<ArrayRef>> {
        let none = || self.schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect();
        let columns: Vec<ArrayRef> = found.map_or_else(none, |found| found.rows.columns().to_vec());
        let known = question.known.iter().flatten().filter(|rows| rows.count > 0);
        let Some(kept) = self.kept.as_ref().filter(|_| known.clone().next().is_some()) else { return Ok(columns) };
        let known = kept.decoder.decode(known.flat_map(|rows| rows.rows.iter()))?;
        let both = columns.iter().zip(&known).map(|(found, known)| concat(&[found.as_ref(), known.as_ref()]));
        both.collect::<std::result::Result<_, _>>().map_err(failed)
    }
}

fn failed(error: ArrowError) -> Error {
    Error::system(format!("looking rows up: {error}"))
}

/// Rows by the number of their key.
#[derive(Default)]
struct Groups {
    rows: Vec<u32>,
    /// Where those of each key end.
    ends: Vec<usize>,
}

impl Groups {
    /// The rows whose keys have these numbers, of which there are so many. Those of one key stay in their order.
    fn of(keys: &[u32], count: usize) -> Self {
        let mut ends = vec![0; count];
        keys.iter().for_each(|key| ends[*key as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let (mut rows, mut places) = (vec![0; keys.len()], ends.clone());
        for (row, key) in keys.iter().enumerate().rev() {
            let place = &mut places[*key as usize];
            *place -= 1;
            rows[*place] = row as u32;
        }
        Self { rows, ends }
    }

    /// The rows of the next key.
    fn push(&mut self, rows: impl Iterator<Item = u32>) {
        self.rows.extend(rows);
        self.ends.push(self.rows.len());
    }

    fn get(&self, key: usize) -> &[u32] {
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        &self.rows[start..self.ends[key]]
    }
}

#[cfg(test)]
mod tests;
