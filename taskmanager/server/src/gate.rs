//! The input of a subtask: all its channels as one stream, with watermarks merged and barriers aligned.
//!
//! It also saves what is in flight when a snapshot is not aligned, see [`alignment`](crate::alignment), and hands out what
//! was restored of that before anything else.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::time::Duration;

use flott_checkpoint::manifest::ChannelInput;
use flott_core::ids::{CheckpointId, OperatorId};
use flott_core::key_group::{KeyGroupRange, group_of};
use flott_core::time::{Timestamp, WATERMARK_MAX};
use flott_core::{Error, Result, ResultExt};
use flott_network::{Barrier, Element, Payload, Receiver};
use flott_operators::snapshot::ChannelContents;
use flott_operators::task::PayloadCodec;

use crate::alignment::{Aligner, Alignment, Overtaking};
use crate::watermarks::{Progress, Watermarks};

mod in_flight;
#[cfg(test)]
mod tests;

use in_flight::{Content, InFlight, Writer};

/// What a subtask has to act on.
#[derive(Debug)]
pub enum Input {
    /// Rows.
    Batch(Payload),
    /// Event time has come this far.
    Watermark(Timestamp),
    /// All channels are idle.
    Idle,
    /// A channel is active again.
    Active,
    /// It is time to snapshot.
    Barrier {
        /// For this checkpoint.
        barrier: Barrier,
        /// How long the first channel has waited for the others.
        waited: Duration,
        /// Whether anything is in flight: the snapshot is complete when the gate has [saved](InputGate::save) it.
        is_unaligned: bool,
    },
    /// All channels ended.
    EndOfInput,
}

/// One channel that leads to a subtask.
pub struct InputChannel {
    /// Its end.
    pub receiver: Receiver,
    /// Whether its records are sent by key.
    pub is_keyed: bool,
    /// Whether barriers always keep their place in it.
    pub is_ordered: bool,
}

/// What the records of a subtask's channels are.
pub struct Records {
    /// The operator that receives them.
    pub operator: OperatorId,
    /// The edges that the channels belong to, in order.
    pub inputs: Vec<ChannelInput>,
    /// How to save them.
    pub codec: PayloadCodec,
}

/// What was in flight to a subtask, complete in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedChannels {
    /// The operator that receives it.
    pub operator: OperatorId,
    /// A text that tells whether records look the same.
    pub schema: String,
    /// The edges that the channels belong to, in order.
    pub inputs: Vec<ChannelInput>,
    /// How many records it has.
    pub rows: u64,
    /// The content of its file.
    pub bytes: Vec<u8>,
}

/// How far what is in flight has been saved.
#[derive(Debug, PartialEq, Eq)]
pub enum Saving {
    /// Some is missing, or has not even come.
    Pending,
    /// All of it has been; `None` if there was nothing.
    Complete(Option<SavedChannels>),
    /// A later checkpoint began before that.
    GivenUp,
}

/// The channels of a subtask.
pub struct InputGate {
    channels: Vec<InputChannel>,
    aligner: Aligner,
    overtaking: Overtaking,
    watermarks: Watermarks,
    ended: Vec<bool>,
    next: usize,
    /// The first barrier of the checkpoint that is being aligned, and when it came.
    aligning: Option<(Barrier, Duration)>,
    /// When a barrier that waits, here or in a queue, will have waited too long.
    next_due: Timestamp,
    records: Option<Records>,
    /// The text of the records' type, once it has been needed.
    schema: OnceCell<String>,
    saving: Option<(CheckpointId, Writer)>,
    restored: VecDeque<InFlight>,
    /// The watermarks among what was restored. They say nothing about the channels of today, which may carry what
    /// others carried then.
    restored_watermarks: Watermarks,
}

impl InputGate {
    /// The input from these channels. A source has none, and no `records`.
    pub fn new(channels: Vec<InputChannel>, records: Option<Records>, overtaking: Overtaking) -> Self {
        let count = channels.len();
        Self {
            aligner: Aligner::new(channels.iter().map(|channel| channel.is_ordered)),
            overtaking,
            watermarks: Watermarks::new(count),
            ended: vec![false; count],
            channels,
            next: 0,
            aligning: None,
            next_due: Timestamp::MAX,
            records,
            schema: OnceCell::new(),
            saving: None,
            restored: VecDeque::new(),
            restored_watermarks: Watermarks::new(count),
        }
    }

    /// The current watermark.
    pub fn watermark(&self) -> Timestamp {
        self.watermarks.current()
    }

    /// When [`InputGate::poll_barrier`] has something to do even if nothing comes.
    pub fn next_due(&self) -> Timestamp {
        self.next_due
    }

    /// The next thing to act on, if there is one. Channels take turns.
    pub fn poll(&mut self, now: Timestamp) -> Result<Option<Input>> {
        while let Some(in_flight) = self.restored.pop_front() {
            if let Some(input) = self.take_restored(in_flight) {
                return Ok(Some(input));
            }
        }
        let mut without = 0;
        while without < self.channels.len() {
            let channel = self.next;
            let popped = if self.aligner.is_blocked(channel) { None } else { self.channels[channel].receiver.pop() };
            let Some(element) = popped else {
                self.next = (self.next + 1) % self.channels.len();
                without += 1;
                continue;
            };
            without = 0;
            if self.aligner.is_watching() {
                self.watch(channel, &element)?;
            }
            if let Some(input) = self.take(channel, element, now)? {
                self.next = (self.next + 1) % self.channels.len();
                return Ok(Some(input));
            }
        }
        Ok(None)
    }

    /// Looks for barriers that need not wait for their turn: those that have overtaken what waits, and those that have
    /// waited too long. They are taken also while there is no room for output, which is what they are for.
    pub fn poll_barrier(&mut self, now: Timestamp) -> Result<Option<Input>> {
        self.next_due = Timestamp::MAX;
        if !self.overtaking.is_enabled() {
            return Ok(None);
        }
        if let Some((barrier, _)) = self.aligning.as_ref().filter(|_| self.aligner.is_aligning()) {
            let due = self.overtaking.due_ms(barrier);
            if due <= now {
                let (barrier, alignment) = (barrier.clone(), self.aligner.expire());
                if let Some(input) = self.act(alignment, barrier, now)? {
                    return Ok(Some(input));
                }
            } else {
                self.next_due = due;
            }
        }
        for channel in 0..self.channels.len() {
            let InputChannel { receiver, is_ordered, .. } = &self.channels[channel];
            if *is_ordered || !receiver.has_barrier() {
                continue;
            }
            let mut due = Timestamp::MAX;
            let taken = receiver.take_barrier(|barrier| {
                if self.aligner.awaits(channel, barrier.checkpoint) {
                    due = self.overtaking.due_ms(barrier);
                }
                // Where the snapshot does not wait any more, neither does the rest.
                due <= now || (due < Timestamp::MAX && self.aligner.is_due(barrier.checkpoint))
            });
            let Some((barrier, overtaken)) = taken else {
                self.next_due = self.next_due.min(due);
                continue;
            };
            if let Some(input) = self.align(channel, barrier, Some(overtaken), now)? {
                return Ok(Some(input));
            }
        }
        Ok(None)
    }

    fn take(&mut self, channel: usize, element: Element, now: Timestamp) -> Result<Option<Input>> {
        let progress = match element {
            Element::Batch(payload) => return Ok(Some(Input::Batch(payload))),
            Element::Barrier(barrier) => return self.align(channel, barrier, None, now),
            Element::UnalignedBarrier { barrier, overtaken } => {
                return self.align(channel, barrier, Some(overtaken), now);
            }
            Element::Watermark(watermark) => self.watermarks.on_watermark(channel, watermark),
            Element::Idle => self.watermarks.on_idle(channel),
            Element::Active => self.watermarks.on_active(channel),
            Element::EndOfInput => {
                self.ended[channel] = true;
                let progress = self.watermarks.on_end(channel);
                if self.ended.iter().all(|ended| *ended) {
                    return Ok(Some(Input::EndOfInput));
                }
                progress
            }
        };
        Ok(match progress {
            Progress::None => None,
            Progress::Watermark(watermark) => Some(Input::Watermark(watermark)),
            Progress::Idle => Some(Input::Idle),
            Progress::Active => Some(Input::Active),
        })
    }

    fn align(
        &mut self,
        channel: usize,
        barrier: Barrier,
        overtaken: Option<u32>,
        now: Timestamp,
    ) -> Result<Option<Input>> {
        let alignment = self.aligner.on_barrier(channel, barrier.checkpoint, overtaken);
        self.act(alignment, barrier, now)
    }

    fn act(&mut self, mut alignment: Alignment, barrier: Barrier, now: Timestamp) -> Result<Option<Input>> {
        if alignment == Alignment::Begun {
            self.saving = None;
            self.aligning = Some((barrier.clone(), flott_env::monotonic()));
        }
        if matches!(alignment, Alignment::Begun | Alignment::Waiting) && self.overtaking.due_ms(&barrier) <= now {
            alignment = self.aligner.expire();
        }
        let is_unaligned = match alignment {
            Alignment::Begun | Alignment::Waiting | Alignment::Stale => return Ok(None),
            // What was restored has been overtaken as well, if it is still there.
            Alignment::Complete => !self.restored.is_empty(),
            Alignment::Unaligned => true,
        };
        let begun = self.aligning.take().filter(|(begun, _)| begun.checkpoint == barrier.checkpoint);
        let waited = begun.map_or(Duration::ZERO, |(_, since)| flott_env::monotonic().saturating_sub(since));
        self.saving = is_unaligned.then(|| {
            let mut writer = Writer::new();
            self.restored.iter().for_each(|in_flight| writer.add_again(in_flight));
            (barrier.checkpoint, writer)
        });
        Ok(Some(Input::Barrier { barrier, waited, is_unaligned }))
    }

    /// Something was taken from the queue of a channel: it is saved if it was in flight.
    fn watch(&mut self, channel: usize, element: &Element) -> Result<()> {
        // This one is not of the queue, but in front of it.
        if matches!(element, Element::UnalignedBarrier { .. }) || !self.aligner.take(channel) {
            return Ok(());
        }
        match (&mut self.saving, &self.records) {
            (Some((_, writer)), Some(records)) => {
                writer.add(channel, self.channels[channel].is_keyed, element, &records.codec)
            }
            _ => Ok(()),
        }
    }

    /// Saves about this many rows of what is in flight; whether it got on with it.
    pub fn save(&mut self, rows_max: u64) -> Result<bool> {
        let (Some((_, writer)), Some(records)) = (&mut self.saving, &self.records) else { return Ok(false) };
        if !self.aligner.is_watching() {
            return Ok(false);
        }
        let rows_before = writer.rows();
        let mut has_saved = false;
        for (channel, input) in self.channels.iter().enumerate() {
            while let Some(position) = self.aligner.unsaved(channel) {
                if writer.rows() - rows_before >= rows_max {
                    return Ok(true);
                }
                let add = |element: &Element| writer.add(channel, input.is_keyed, element, &records.codec);
                // What a barrier has overtaken on its way from another worker follows it.
                let Some(added) = input.receiver.peek(position as usize, add) else { break };
                added?;
                self.aligner.saved(channel);
                has_saved = true;
            }
        }
        if self.aligner.is_saved() {
            self.aligner.finish();
            has_saved = true;
        }
        Ok(has_saved)
    }

    /// Hands out what was in flight at the snapshot of a checkpoint, once all of it has been saved.
    pub fn take_saved(&mut self, checkpoint: CheckpointId) -> Saving {
        let is_complete = !self.aligner.is_watching();
        match self.saving.as_ref().map(|(saving, _)| *saving == checkpoint) {
            None | Some(false) => return Saving::GivenUp,
            Some(true) if !is_complete => return Saving::Pending,
            Some(true) => {}
        }
        let saved = self.saving.take().filter(|(_, writer)| !writer.is_empty());
        let (Some((_, writer)), Some(records)) = (saved, &self.records) else { return Saving::Complete(None) };
        let schema = self.schema.get_or_init(|| (records.codec.schema)()).clone();
        let (operator, inputs, rows) = (records.operator, records.inputs.clone(), writer.rows());
        Saving::Complete(Some(SavedChannels { operator, schema, inputs, rows, bytes: writer.into_bytes() }))
    }

    /// Takes back what was in flight. Of old subtasks that were not what this one is, it takes the rows that are its own
    /// now, and no watermarks: they were those of other channels. Without them no row is late that was not late before;
    /// later watermarks come behind all restored rows.
    pub fn restore(&mut self, channels: &[ChannelContents], range: KeyGroupRange, max_parallelism: u32) -> Result<()> {
        let Some(records) = self.records.as_ref().filter(|_| !channels.is_empty()) else { return Ok(()) };
        let schema = self.schema.get_or_init(|| (records.codec.schema)());
        let is_mine = |hash: u64| range.contains(group_of(hash, max_parallelism));
        for ChannelContents { source, bytes } in channels {
            if source.schema != *schema {
                return Err(Error::input(
                    "the checkpoint has records on their way between subtasks whose type has changed: take a savepoint with the old job, and start the new one from that",
                ));
            }
            let channels_then = if source.is_whole { self.channels.len() } else { usize::MAX };
            for in_flight in in_flight::read(bytes, channels_then).with_context(|| source.file.path.clone())? {
                let content = match in_flight.content {
                    content if source.is_whole => {
                        self.restored.push_back(InFlight { channel: in_flight.channel, content });
                        continue;
                    }
                    Content::Rows { is_keyed: true, rows, data } => {
                        let (rows, data) = (records.codec.select)(&data, rows, &is_mine)?;
                        Content::Rows { is_keyed: true, rows, data: data.into() }
                    }
                    content @ Content::Rows { .. } if source.has_others => content,
                    Content::Rows { .. } | Content::Watermark(_) => continue,
                };
                if !matches!(content, Content::Rows { rows: 0, .. }) {
                    self.restored.push_back(InFlight { channel: None, content });
                }
            }
        }
        Ok(())
    }

    fn take_restored(&mut self, in_flight: InFlight) -> Option<Input> {
        match in_flight.content {
            Content::Rows { rows, data, .. } => Some(Input::Batch(Payload::Encoded { data, rows })),
            // The end of time is announced as the end, which follows.
            Content::Watermark(WATERMARK_MAX) => None,
            Content::Watermark(watermark) => match self.restored_watermarks.on_watermark(in_flight.channel?, watermark)
            {
                Progress::Watermark(watermark) => Some(Input::Watermark(watermark)),
                Progress::None | Progress::Idle | Progress::Active => None,
            },
        }
    }
}
