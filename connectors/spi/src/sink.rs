//! Where records go.

use flott_core::ids::{CheckpointId, Generation, JobId};
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};

use crate::io::{IoHandle, Outlet};

/// What a writer may use.
#[derive(Clone)]
pub struct SinkContext {
    /// Where I/O runs.
    pub io: IoHandle,
    /// The job, for names that no other job uses.
    pub job: JobId,
    /// The execution that this writer was made in, for names that no earlier one used. Writers of other subtasks may
    /// go on when this one is made again: files of theirs with an earlier generation are not garbage.
    pub generation: Generation,
    /// Which of the writers this is.
    pub subtask: u32,
    /// How many writers there are.
    pub parallelism: u32,
    /// Where a writer that hands rows out says what it has left.
    pub outlet: Outlet,
}

/// Something durable that is not visible yet, encoded by the writer that made it.
pub type Committable = Vec<u8>;

/// A description of where records go; every subtask makes a writer of it.
pub trait Sink<T: Data>: Send + Sync + 'static {
    /// Makes one writer. `restored` is its share of the elements that [`SinkWriter::snapshot`] returned.
    fn writer(&self, cx: SinkContext, restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<T>>>;
}

impl<T: Data, S: Sink<T>> Sink<T> for std::sync::Arc<S> {
    fn writer(&self, cx: SinkContext, restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<T>>> {
        (**self).writer(cx, restored)
    }
}

/// Writes records. All methods are called on one slot's thread.
pub trait SinkWriter<T>: Send {
    /// Takes all rows of `batch` and leaves it empty.
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()>;

    /// Hands buffered rows on, so that they are seen soon; called when the input pauses.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Makes everything written so far that is to be committed with the coming checkpoint durable,
    /// without making it visible. At the end of input, `is_last` closes everything.
    fn prepare(&mut self, is_last: bool) -> Result<Vec<Committable>> {
        let _ = is_last;
        Ok(Vec::new())
    }

    /// The writer's own position (such as open files) after `prepare`; given back at a restore, split over the
    /// new writers.
    fn snapshot(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// Makes these visible. Repeatable: some or all may have been committed before a crash.
    fn commit(&mut self, checkpoint: CheckpointId, committables: Vec<Committable>) -> Result<()> {
        let _ = (checkpoint, committables);
        Ok(())
    }

    /// The wall-clock time by which `on_time` should be called, if any.
    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    /// The wall clock passed the deadline, for time-based rolling.
    fn on_time(&mut self, now_ms: Timestamp) -> Result<()> {
        let _ = now_ms;
        Ok(())
    }
}
