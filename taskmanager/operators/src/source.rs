//! The beginning of a stream: a reader and its splits.

use std::sync::Arc;

use flott_checkpoint::Redistribution;
use flott_connector_spi::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader};
use flott_core::codec;
use flott_core::ids::OperatorId;
use flott_core::{Batch, Result, ResultExt};

use crate::context::TaskContext;
use crate::push::{Control, Output};
use crate::task::SourceTask;

const SPLITS: &str = "splits";

/// Drives a source's reader as the head of a chain.
pub struct SourceHead<S: Source> {
    id: OperatorId,
    name: String,
    source: Arc<S>,
    cx: TaskContext,
    reader: Box<dyn SplitReader<S::Item, S::Split>>,
    out: Output<S::Item>,
    buffer: Batch<S::Item>,
    /// Malformed records that have been counted.
    skipped: u64,
}

impl<S: Source> SourceHead<S> {
    /// Reads `source` and sends to `out`.
    pub fn new(id: OperatorId, name: &str, source: Arc<S>, cx: &TaskContext, out: Output<S::Item>) -> Result<Self> {
        if source.boundedness() == Boundedness::Bounded {
            cx.splits.set_bounded();
        }
        let reader = source.reader(ReaderContext {
            io: cx.io.clone(),
            waker: cx.waker.clone(),
            subtask: cx.subtask.index,
            parallelism: cx.parallelism,
        })?;
        Ok(Self {
            id,
            name: name.to_owned(),
            source,
            cx: cx.clone(),
            reader,
            out,
            buffer: Batch::default(),
            skipped: 0,
        })
    }
}

impl<S: Source> SourceTask for SourceHead<S> {
    fn discover(&mut self) -> Result<Vec<Vec<u8>>> {
        let cx = DiscoverContext { io: self.cx.io.clone(), parallelism: self.cx.parallelism };
        let splits = self.source.discover(&cx).with_context(|| format!("source '{}'", self.name))?;
        splits.iter().map(codec::encode).collect()
    }

    fn add_split(&mut self, split: &[u8]) -> Result<()> {
        self.reader.add_split(codec::decode(split)?)
    }

    fn poll(&mut self) -> Result<ReadStatus> {
        let status = self.reader.poll(&mut self.buffer, Batch::<S::Item>::ROWS_MAX);
        let status = status.with_context(|| format!("source '{}'", self.name))?;
        self.cx.splits.set(&self.reader.active_splits());
        self.cx.counters.records_in.add(self.buffer.len() as u64);
        let skipped = self.reader.skipped();
        self.cx.counters.malformed_records_skipped.add(skipped - self.skipped);
        self.skipped = skipped;
        self.out.push(&mut self.buffer)?;
        Ok(status)
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        match control {
            Control::Open(restored) => {
                let splits: Vec<Vec<u8>> = restored.take_state(self.id, SPLITS)?;
                splits.iter().try_for_each(|split| self.add_split(split))?;
            }
            Control::Barrier(_, snapshot) => {
                let splits = self.reader.snapshot()?;
                let splits: Vec<Vec<u8>> = splits.iter().map(codec::encode).collect::<Result<_>>()?;
                snapshot.add_state(self.id, SPLITS, Redistribution::Split, &splits)?;
            }
            _ => {}
        }
        self.out.control(control)
    }
}
