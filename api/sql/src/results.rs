//! The rows of a SELECT, on their way from the job to whoever asked.
//!
//! In this process they go through a channel. From a cluster they are fetched: `handover` is what both ends of that agree on,
//! `offer` the end of the job, `fetch` the end of the client.

pub(crate) mod fetch;
mod handover;
pub(crate) mod offer;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flott_chunk::Chunk;
use flott_connector_spi::{Committable, Sink, SinkContext, SinkWriter};
use flott_core::ids::CheckpointId;
use flott_core::{Batch, Error, Result, codec};
use parking_lot::Mutex;

/// How many chunks may wait for whoever looks at them; then the job waits.
const CHUNKS_MAX: usize = 64;

/// How many commits are remembered. What a restore commits again are those of the last checkpoints, which are far fewer.
const COMMITTED_MAX: usize = 100_000;

/// The end of a SELECT's rows that the job has.
///
/// Without checkpoints rows are seen as they come. With checkpoints they are seen when a checkpoint has them, so that none is
/// seen twice, whatever fails.
#[derive(Clone)]
pub struct ResultSink {
    shared: Arc<Shared>,
}

struct Shared {
    sender: SyncSender<Chunk>,
    is_exactly_once: bool,
    /// The latest of what has been seen: a restore may commit it again.
    committed: Mutex<BTreeSet<(CheckpointId, u32)>>,
}

/// Where the rows of a SELECT go.
#[derive(Clone)]
pub enum Results {
    /// To a channel of this process.
    Here(ResultSink),
    /// To the client that asks the JobManager at this `host:port` for them.
    Offered(String),
}

/// A sink for the rows of a SELECT, and where they come out.
pub fn results(is_exactly_once: bool) -> (ResultSink, Receiver<Chunk>) {
    let (sender, receiver) = channel();
    (ResultSink { shared: Arc::new(Shared { sender, is_exactly_once, committed: Mutex::default() }) }, receiver)
}

/// A channel to whoever looks at the rows.
pub(crate) fn channel() -> (SyncSender<Chunk>, Receiver<Chunk>) {
    sync_channel(CHUNKS_MAX)
}

impl Sink<Chunk> for ResultSink {
    fn writer(&self, cx: SinkContext, _: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<Chunk>>> {
        Ok(Box::new(ResultWriter { shared: Arc::clone(&self.shared), subtask: cx.subtask, waiting: Vec::new() }))
    }
}

struct ResultWriter {
    shared: Arc<Shared>,
    subtask: u32,
    waiting: Vec<Chunk>,
}

impl Shared {
    /// Whether the rows of a subtask at a checkpoint have not been seen yet; from here on they have.
    fn is_new(&self, checkpoint: CheckpointId, subtask: u32) -> bool {
        let mut committed = self.committed.lock();
        let is_new = committed.insert((checkpoint, subtask));
        if committed.len() > COMMITTED_MAX {
            committed.pop_first();
        }
        is_new
    }

    fn send(&self, chunk: Chunk) -> Result<()> {
        self.sender.send(chunk).map_err(|_| Error::user_code("nobody looks at the result any more"))
    }
}

impl SinkWriter<Chunk> for ResultWriter {
    fn write(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        if self.shared.is_exactly_once {
            self.waiting.append(&mut batch.rows);
            return Ok(());
        }
        batch.rows.drain(..).try_for_each(|chunk| self.shared.send(chunk))
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
            if !self.shared.is_new(checkpoint, subtask) {
                continue;
            }
            chunks.into_iter().try_for_each(|chunk| self.shared.send(chunk))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use flott_core::ids::JobId;

    use super::*;

    fn chunk(n: i64) -> Chunk {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
        Chunk::inserts(RecordBatch::try_from_iter([("n", column)]).unwrap())
    }

    fn writer(sink: &ResultSink) -> Box<dyn SinkWriter<Chunk>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let io = runtime.handle().clone();
        let job = JobId([0; 16]);
        let cx = SinkContext { io, job, generation: 1, subtask: 0, parallelism: 1, outlet: Default::default() };
        sink.writer(cx, Vec::new()).unwrap()
    }

    #[test]
    fn with_checkpoints_rows_are_seen_once() {
        let (sink, receiver) = results(true);
        let mut writer = writer(&sink);
        writer.write(&mut Batch::from_rows(vec![chunk(1), chunk(2)])).unwrap();
        assert!(receiver.try_recv().is_err());
        let prepared = writer.prepare(false).unwrap();
        writer.commit(7, prepared.clone()).unwrap();
        writer.commit(7, prepared).unwrap();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [chunk(1), chunk(2)]);
    }

    #[test]
    fn what_is_remembered_of_commits_is_bounded() {
        let (sink, _receiver) = results(true);
        for checkpoint in 0..COMMITTED_MAX as CheckpointId + 10 {
            assert!(sink.shared.is_new(checkpoint, 0));
        }
        assert_eq!(sink.shared.committed.lock().len(), COMMITTED_MAX);
        assert!(!sink.shared.is_new(COMMITTED_MAX as CheckpointId, 0));
    }

    #[test]
    fn without_checkpoints_rows_are_seen_at_once() {
        let (sink, receiver) = results(false);
        let mut writer = writer(&sink);
        writer.write(&mut Batch::from_rows(vec![chunk(1)])).unwrap();
        assert_eq!(receiver.try_recv().unwrap(), chunk(1));
        drop(receiver);
        assert!(writer.write(&mut Batch::from_rows(vec![chunk(2)])).is_err());
    }
}
