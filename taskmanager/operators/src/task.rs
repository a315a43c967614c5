//! A chain as the executor sees it: by its head, without its types.

use std::sync::Arc;

use flott_connector_spi::ReadStatus;
use flott_core::{Batch, Data, Error, Result};
use flott_network::Payload;
use flott_telemetry::TaskCounters;

use crate::exchange::decode_batch;
use crate::push::{Control, Push};

/// The head of a chain that receives from other subtasks.
pub trait Task: Send {
    /// Processes a batch from a channel.
    fn process(&mut self, payload: Payload) -> Result<()>;

    /// Passes `control` through the chain.
    fn control(&mut self, control: &mut Control<'_>) -> Result<()>;
}

/// The head of a chain that begins with a source.
pub trait SourceTask: Send {
    /// Lists the splits of the source, encoded, in the order in which to read them.
    fn discover(&mut self) -> Result<Vec<Vec<u8>>>;

    /// Gives it an encoded split.
    fn add_split(&mut self, split: &[u8]) -> Result<()>;

    /// Reads one batch and sends it through the chain.
    fn poll(&mut self) -> Result<ReadStatus>;

    /// Passes `control` through the chain.
    fn control(&mut self, control: &mut Control<'_>) -> Result<()>;
}

/// Receives batches of `T` and pushes them into a chain.
pub struct InputHead<T> {
    chain: Box<dyn Push<T>>,
    counters: Arc<TaskCounters>,
    buffer: Batch<T>,
}

impl<T: Data> InputHead<T> {
    /// The head in front of `chain`.
    pub fn new(chain: Box<dyn Push<T>>, counters: Arc<TaskCounters>) -> Self {
        Self { chain, counters, buffer: Batch::default() }
    }
}

impl<T: Data> Task for InputHead<T> {
    fn process(&mut self, payload: Payload) -> Result<()> {
        match payload {
            Payload::Local { batch, rows, bytes } => {
                let mut batch = batch
                    .downcast::<Batch<T>>()
                    .map_err(|_| Error::system("a channel delivered records of another type"))?;
                self.counters.records_in.add(u64::from(rows));
                self.counters.bytes_in.add(bytes);
                self.chain.push(&mut batch)
            }
            Payload::Encoded { data, rows } => {
                self.counters.records_in.add(u64::from(rows));
                self.counters.bytes_in.add(data.len() as u64);
                decode_batch(&data, rows, &mut self.buffer)?;
                self.chain.push(&mut self.buffer)
            }
        }
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        self.chain.control(control)
    }
}
