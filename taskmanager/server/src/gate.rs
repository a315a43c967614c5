//! The input of a subtask: all its channels as one stream, with watermarks merged and barriers aligned.

use std::time::Duration;

use flott_core::time::Timestamp;
use flott_network::{Barrier, Element, Payload, Receiver};

use crate::alignment::{Aligner, Alignment};
use crate::watermarks::{Progress, Watermarks};

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
    /// All channels delivered this barrier, the last one this long after the first.
    Barrier(Barrier, Duration),
    /// All channels ended.
    EndOfInput,
}

/// The channels of a subtask.
pub struct InputGate {
    channels: Vec<Receiver>,
    aligner: Aligner,
    watermarks: Watermarks,
    ended: Vec<bool>,
    next: usize,
    aligning_since: Option<Duration>,
}

impl InputGate {
    /// The input from these channels.
    pub fn new(channels: Vec<Receiver>) -> Self {
        let count = channels.len();
        Self {
            aligner: Aligner::new(count),
            watermarks: Watermarks::new(count),
            ended: vec![false; count],
            channels,
            next: 0,
            aligning_since: None,
        }
    }

    /// The current watermark.
    pub fn watermark(&self) -> Timestamp {
        self.watermarks.current()
    }

    /// The next thing to act on, if there is one. Channels take turns.
    pub fn poll(&mut self) -> Option<Input> {
        let mut without = 0;
        while without < self.channels.len() {
            let channel = self.next;
            let popped = if self.aligner.is_blocked(channel) { None } else { self.channels[channel].pop() };
            let Some(element) = popped else {
                self.next = (self.next + 1) % self.channels.len();
                without += 1;
                continue;
            };
            without = 0;
            if let Some(input) = self.take(channel, element) {
                self.next = (self.next + 1) % self.channels.len();
                return Some(input);
            }
        }
        None
    }

    fn take(&mut self, channel: usize, element: Element) -> Option<Input> {
        let progress = match element {
            Element::Batch(payload) => return Some(Input::Batch(payload)),
            Element::Barrier(barrier) => return self.align(channel, barrier),
            Element::Watermark(watermark) => self.watermarks.on_watermark(channel, watermark),
            Element::Idle => self.watermarks.on_idle(channel),
            Element::Active => self.watermarks.on_active(channel),
            Element::EndOfInput => {
                self.ended[channel] = true;
                let progress = self.watermarks.on_end(channel);
                if self.ended.iter().all(|ended| *ended) {
                    return Some(Input::EndOfInput);
                }
                progress
            }
        };
        match progress {
            Progress::None => None,
            Progress::Watermark(watermark) => Some(Input::Watermark(watermark)),
            Progress::Idle => Some(Input::Idle),
            Progress::Active => Some(Input::Active),
        }
    }

    fn align(&mut self, channel: usize, barrier: Barrier) -> Option<Input> {
        match self.aligner.on_barrier(channel, barrier.checkpoint) {
            Alignment::Begun => {
                self.aligning_since = Some(flott_env::monotonic());
                None
            }
            Alignment::Waiting | Alignment::Stale => None,
            Alignment::Complete => {
                let since = self.aligning_since.take();
                let waited = since.map_or(Duration::ZERO, |since| flott_env::monotonic().saturating_sub(since));
                Some(Input::Barrier(barrier, waited))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flott_control::CheckpointKind;
    use flott_network::{Sender, Signal, local_channel};

    use super::*;

    fn gate(channels: usize) -> (Vec<Sender>, InputGate) {
        let pairs = (0..channels).map(|_| local_channel(1 << 20, Signal::new(), Signal::new()));
        let (senders, receivers): (Vec<_>, Vec<_>) = pairs.unzip();
        (senders, InputGate::new(receivers))
    }

    fn rows(value: u32) -> Element {
        Element::Batch(Payload::Local { batch: Box::new(value), rows: 1, bytes: 4 })
    }

    fn barrier(checkpoint: u64) -> Element {
        Element::Barrier(Barrier { checkpoint, triggered_ms: 0, kind: CheckpointKind::Checkpoint })
    }

    fn drain(gate: &mut InputGate) -> Vec<String> {
        std::iter::from_fn(|| gate.poll())
            .map(|input| match input {
                Input::Batch(Payload::Local { batch, .. }) => format!("row {}", batch.downcast::<u32>().unwrap()),
                Input::Batch(Payload::Encoded { .. }) => "encoded".into(),
                Input::Watermark(watermark) => format!("watermark {watermark}"),
                Input::Idle => "idle".into(),
                Input::Active => "active".into(),
                Input::Barrier(barrier, _) => format!("barrier {}", barrier.checkpoint),
                Input::EndOfInput => "end".into(),
            })
            .collect()
    }

    #[test]
    fn rows_behind_a_barrier_wait_for_the_other_channels() {
        let (senders, mut gate) = gate(2);
        for element in [rows(1), barrier(1), rows(2)] {
            senders[0].send(element).unwrap();
        }
        senders[1].send(rows(3)).unwrap();
        let mut before = drain(&mut gate);
        before.sort();
        assert_eq!(before, ["row 1", "row 3"]);
        senders[1].send(barrier(1)).unwrap();
        assert_eq!(drain(&mut gate), ["barrier 1", "row 2"]);
    }

    #[test]
    fn barriers_still_align_after_the_end_of_a_channel() {
        let (senders, mut gate) = gate(2);
        senders[0].send(Element::Watermark(5)).unwrap();
        senders[1].send(Element::EndOfInput).unwrap();
        assert_eq!(drain(&mut gate), ["watermark 5"]);
        senders[0].send(barrier(1)).unwrap();
        senders[1].send(barrier(1)).unwrap();
        assert_eq!(drain(&mut gate), ["barrier 1"]);
        senders[0].send(Element::EndOfInput).unwrap();
        assert_eq!(drain(&mut gate), ["end"]);
        senders[0].send(barrier(2)).unwrap();
        senders[1].send(barrier(2)).unwrap();
        assert_eq!(drain(&mut gate), ["barrier 2"]);
    }
}
