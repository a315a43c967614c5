//! A crash between every two steps, and every record visible exactly once.

use flott_core::ids::{CheckpointId, Generation, JobId};
use flott_core::{Batch, Data, Result};

use crate::{IoHandle, Sink, SinkContext, SinkWriter};

/// How many rows a writer is given at once.
const ROWS_PER_WRITE: usize = 2;

/// How often the writers write between two checkpoints.
const WRITES_PER_CHECKPOINT: usize = 2;

/// Writes `rows` to sinks of `new_sink`, each at a place of its own, and lets the process die after any of its
/// steps; then a next generation goes on from the last completed checkpoint, with more or fewer writers. `visible`
/// lists what a reader of the place sees, `show` what it should see of a row. At no time may it see a row of a
/// checkpoint that is not complete, and in the end it must see every row once.
pub fn check_sink<T: Data, S: Sink<T>>(
    io: &IoHandle,
    rows: &[T],
    new_sink: impl Fn() -> S,
    visible: impl Fn(&S) -> Vec<String>,
    show: impl Fn(&T) -> String,
) {
    let shown = |rows: &[T]| sorted(rows.iter().map(&show).collect());
    for parallelism_after in [1, 2, 3] {
        let mut steps = 0;
        loop {
            let sink = new_sink();
            let mut completed = Checkpoint::default();
            let first = Execution { sink: &sink, io, rows, generation: 1, parallelism: 2 };
            let context = format!("a crash after {steps} steps, then {parallelism_after} writers");
            let is_finished = first.run(&mut completed, steps).unwrap_or_else(|e| panic!("{context}: {e}"));
            let mut durable = shown(&rows[..completed.rows]);
            for row in visible(&sink) {
                let index = durable.iter().position(|other| *other == row);
                durable.remove(index.unwrap_or_else(|| panic!("{context}: '{row}' is visible too early or twice")));
            }
            if !is_finished {
                let second = Execution { generation: 2, parallelism: parallelism_after, ..first };
                second.run(&mut completed, usize::MAX).unwrap_or_else(|e| panic!("{context}: {e}"));
            }
            assert_eq!(sorted(visible(&sink)), shown(rows), "{context}");
            if is_finished {
                break;
            }
            steps += 1;
        }
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// The last completed checkpoint.
#[derive(Default)]
struct Checkpoint {
    id: CheckpointId,
    /// How many rows were written before it.
    rows: usize,
    committables: Vec<Vec<u8>>,
    states: Vec<Vec<u8>>,
}

struct Execution<'a, T, S> {
    sink: &'a S,
    io: &'a IoHandle,
    rows: &'a [T],
    generation: Generation,
    parallelism: usize,
}

impl<T: Data, S: Sink<T>> Execution<'_, T, S> {
    /// Goes on from `completed` for so many steps. Returns whether it came to the end.
    fn run(&self, completed: &mut Checkpoint, mut steps: usize) -> Result<bool> {
        let mut writers: Vec<Box<dyn SinkWriter<T>>> = Vec::new();
        for (subtask, restored) in self.share(&completed.states).into_iter().enumerate() {
            let cx = SinkContext {
                io: self.io.clone(),
                job: JobId([7; 16]),
                generation: self.generation,
                subtask: subtask as u32,
                parallelism: self.parallelism as u32,
                outlet: Default::default(),
            };
            writers.push(self.sink.writer(cx, restored)?);
        }
        // Whether the commits arrived is not known: they are sent again.
        for (writer, committables) in writers.iter_mut().zip(self.share(&completed.committables)) {
            writer.commit(completed.id, committables)?;
        }

        // A dead process drops nothing.
        let mut dies = move |writers: &mut Vec<Box<dyn SinkWriter<T>>>| {
            let is_dead = steps == 0;
            steps = steps.saturating_sub(1);
            if is_dead {
                writers.drain(..).for_each(std::mem::forget);
            }
            is_dead
        };
        let mut written = completed.rows;
        loop {
            let rows_per_checkpoint = ROWS_PER_WRITE * WRITES_PER_CHECKPOINT * self.parallelism;
            let end = (written + rows_per_checkpoint).min(self.rows.len());
            let is_last = end == self.rows.len();
            for (index, rows) in self.rows[written..end].chunks(ROWS_PER_WRITE).enumerate() {
                if dies(&mut writers) {
                    return Ok(false);
                }
                let mut batch = Batch::from_rows(rows.to_vec());
                writers[index % self.parallelism].write(&mut batch)?;
                assert!(batch.is_empty(), "a writer left rows in its batch");
            }
            written = end;

            let mut prepared = Vec::new();
            let mut states = Vec::new();
            for index in 0..self.parallelism {
                if dies(&mut writers) {
                    return Ok(false);
                }
                prepared.push(writers[index].prepare(is_last)?);
                states.extend(writers[index].snapshot()?);
            }
            if dies(&mut writers) {
                return Ok(false);
            }
            *completed = Checkpoint { id: completed.id + 1, rows: written, committables: prepared.concat(), states };
            for (index, committables) in prepared.into_iter().enumerate() {
                if dies(&mut writers) {
                    return Ok(false);
                }
                writers[index].commit(completed.id, committables)?;
            }
            if is_last {
                return Ok(true);
            }
        }
    }

    /// The elements that each writer gets.
    fn share(&self, elements: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let mut shares = vec![Vec::new(); self.parallelism];
        for (index, element) in elements.iter().enumerate() {
            shares[index % self.parallelism].push(element.clone());
        }
        shares
    }
}
