//! The rows that a job has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flott_chunk::Chunk;
use flott_chunk::display::write_changelog;
use flott_connector_spi::{Committable, Sink, SinkContext, SinkWriter};
use flott_core::ids::CheckpointId;
use flott_core::{Batch, Error, Result, codec};

/// What a SELECT has put out, as far as checkpoints have it. Clones see the same.
#[derive(Clone, Default)]
pub struct Results(Arc<Mutex<Committed>>);

#[derive(Default)]
struct Committed {
    /// Commits may be repeated.
    done: BTreeSet<(CheckpointId, u32)>,
    chunks: Vec<Chunk>,
}

impl Results {
    fn lock(&self) -> MutexGuard<'_, Committed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All changes as they are shown, in the order in which they were committed.
    pub fn changelog(&self) -> Vec<String> {
        let committed = self.lock();
        let rows = committed.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(move |row| (chunk, row)));
        rows.map(|(chunk, row)| {
            let mut line = String::new();
            write_changelog(chunk, row, &mut line);
            line
        })
        .collect()
    }

    /// The rows that are left when all changes are applied, sorted, each as often as it is there.
    ///
    /// # Errors
    /// A row is taken back that is not there.
    pub fn table(&self) -> Result<Vec<String>> {
        let changelog = self.changelog();
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for line in &changelog {
            let (kind, row) = line.split_once('\t').unwrap_or((line, ""));
            *counts.entry(row).or_default() += if kind.starts_with('+') { 1 } else { -1 };
        }
        let mut rows = Vec::new();
        for (row, count) in counts {
            let count = usize::try_from(count)
                .map_err(|_| Error::system(format!("a row is taken back that is not there: {row}")))?;
            rows.extend(std::iter::repeat_n(row.to_owned(), count));
        }
        Ok(rows)
    }
}

impl Sink<Chunk> for Results {
    fn writer(&self, cx: SinkContext, _: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<Chunk>>> {
        Ok(Box::new(Writer { results: self.clone(), subtask: cx.subtask, waiting: Vec::new() }))
    }
}

struct Writer {
    results: Results,
    subtask: u32,
    waiting: Vec<Chunk>,
}

impl SinkWriter<Chunk> for Writer {
    fn write(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        self.waiting.append(&mut batch.rows);
        Ok(())
    }

    fn prepare(&mut self, _: bool) -> Result<Vec<Committable>> {
        if self.waiting.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![codec::encode(&(self.subtask, std::mem::take(&mut self.waiting)))?])
    }

    fn commit(&mut self, checkpoint: CheckpointId, committables: Vec<Committable>) -> Result<()> {
        for committable in committables {
            let (subtask, chunks): (u32, Vec<Chunk>) = codec::decode(&committable)?;
            let mut committed = self.results.lock();
            if committed.done.insert((checkpoint, subtask)) {
                committed.chunks.extend(chunks);
            }
        }
        Ok(())
    }
}
