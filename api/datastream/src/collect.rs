//! `collect`: records back in the program that runs the job.

use std::sync::Arc;

use flott_connector_spi::{Committable, Sink, SinkContext, SinkWriter};
use flott_core::ids::CheckpointId;
use flott_core::{Batch, Data, Result, codec};
use parking_lot::Mutex;

/// Records that a job sent here.
#[derive(Debug)]
pub struct Collected<T> {
    shared: Arc<Mutex<State<T>>>,
}

#[derive(Debug)]
struct State<T> {
    rows: Vec<T>,
    /// What was committed: a commit may be repeated.
    committed: Vec<(CheckpointId, u32)>,
}

impl<T> Clone for Collected<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self { shared: Arc::new(Mutex::new(State { rows: Vec::new(), committed: Vec::new() })) }
    }
}

impl<T> Collected<T> {
    /// Takes the records that have come so far. Records of one subtask are in order.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.shared.lock().rows)
    }
}

pub(crate) struct CollectSink<T> {
    collected: Collected<T>,
}

impl<T> CollectSink<T> {
    pub(crate) fn new(collected: Collected<T>) -> Self {
        Self { collected }
    }
}

impl<T: Data> Sink<T> for CollectSink<T> {
    fn writer(&self, cx: SinkContext, _: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<T>>> {
        Ok(Box::new(CollectWriter { subtask: cx.subtask, rows: Vec::new(), collected: self.collected.clone() }))
    }
}

struct CollectWriter<T> {
    subtask: u32,
    rows: Vec<T>,
    collected: Collected<T>,
}

impl<T: Data> SinkWriter<T> for CollectWriter<T> {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        self.rows.append(&mut batch.rows);
        Ok(())
    }

    fn prepare(&mut self, _: bool) -> Result<Vec<Committable>> {
        if self.rows.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![codec::encode(&(self.subtask, std::mem::take(&mut self.rows)))?])
    }

    fn commit(&mut self, checkpoint: CheckpointId, committables: Vec<Committable>) -> Result<()> {
        let mut state = self.collected.shared.lock();
        for committable in committables {
            let (subtask, rows): (u32, Vec<T>) = codec::decode(&committable)?;
            if !state.committed.contains(&(checkpoint, subtask)) {
                state.committed.push((checkpoint, subtask));
                state.rows.extend(rows);
            }
        }
        Ok(())
    }
}
