//! The two ends of a channel, wherever the other one is.

use std::sync::Arc;

use flott_core::ids::CheckpointId;
use flott_core::{Error, Result};

use crate::element::{Barrier, Element};
use crate::inbound::InboundChannel;
use crate::local::LocalChannel;
use crate::outbound::OutboundChannel;
use crate::queue::Queue;
use crate::signal::Signal;

/// A channel inside this process.
///
/// It has room while fewer than `capacity_bytes` are queued. `producer` is notified when there is
/// room again after there was none, `consumer` when an element arrives.
pub fn local_channel(capacity_bytes: u64, producer: Signal, consumer: Signal) -> (Sender, Receiver) {
    let channel = Arc::new(LocalChannel::new(capacity_bytes, producer, consumer));
    let end = SendingEnd::Local(channel.clone());
    (Sender { end, allows_overtaking: false }, Receiver(ReceivingEnd::Local(channel)))
}

/// The sending end of a channel.
#[derive(Clone, Debug)]
pub struct Sender {
    end: SendingEnd,
    allows_overtaking: bool,
}

#[derive(Clone, Debug)]
enum SendingEnd {
    Local(Arc<LocalChannel>),
    Remote(Arc<OutboundChannel>),
}

impl Sender {
    pub(crate) fn remote(channel: Arc<OutboundChannel>) -> Self {
        Self { end: SendingEnd::Remote(channel), allows_overtaking: false }
    }

    /// Lets barriers go in front of what waits in the channel. What they overtake becomes part of a checkpoint, so it
    /// has to be sent in a form that can be dealt out to other subtasks later.
    #[must_use]
    pub fn with_overtaking(self) -> Self {
        Self { allows_overtaking: true, ..self }
    }

    /// Whether barriers may go in front of what waits in the channel.
    pub fn allows_overtaking(&self) -> bool {
        self.allows_overtaking
    }

    /// Whether the receiver is in this process, and batches are to be sent as
    /// [`Payload::Local`](crate::Payload::Local); otherwise they must be encoded.
    pub fn is_local(&self) -> bool {
        matches!(self.end, SendingEnd::Local(_))
    }

    /// Whether there is room for another element. When there is none, the producer's signal is
    /// notified once there is. True for a closed channel: sending then says why.
    pub fn is_writable(&self) -> bool {
        match &self.end {
            SendingEnd::Local(channel) => channel.is_writable(),
            SendingEnd::Remote(channel) => channel.is_writable(),
        }
    }

    /// Queues an element after all that were sent before, whether there is room or not, and never
    /// blocks. A caller that respects [`Sender::is_writable`] between its steps overshoots by what
    /// one step emits.
    ///
    /// Fails if the channel is closed: its connection broke, the data plane was shut down, or the
    /// receiver in this process is gone. Fails if a batch cannot cross to another process: it is
    /// not encoded, or larger than a frame may be.
    ///
    /// An [`Element::UnalignedBarrier`] is put before everything that waits, here and at the receiver.
    pub fn send(&self, element: Element) -> Result<()> {
        match &self.end {
            SendingEnd::Local(channel) => channel.send(element),
            SendingEnd::Remote(channel) => channel.send(element),
        }
    }

    /// The barrier of `checkpoint` is late: if it still waits on this side, and may be moved, it goes in front of what
    /// was sent before it. One that is on its way already is left to the receiver.
    pub fn overtake(&self, checkpoint: CheckpointId) -> Result<()> {
        match &self.end {
            _ if !self.allows_overtaking => Ok(()),
            SendingEnd::Local(channel) => {
                channel.queue().overtake(checkpoint);
                Ok(())
            }
            SendingEnd::Remote(channel) => channel.overtake(checkpoint),
        }
    }
}

/// The receiving end of a channel. Dropping it discards what is queued and what still comes.
#[derive(Debug)]
pub struct Receiver(ReceivingEnd);

#[derive(Debug)]
enum ReceivingEnd {
    Local(Arc<LocalChannel>),
    Remote(Arc<InboundChannel>),
}

impl Receiver {
    pub(crate) fn remote(channel: Arc<InboundChannel>) -> Self {
        Self(ReceivingEnd::Remote(channel))
    }

    /// The next element, if there is one. Its room is the sender's again.
    pub fn pop(&self) -> Option<Element> {
        match &self.0 {
            ReceivingEnd::Local(channel) => channel.pop(),
            ReceivingEnd::Remote(channel) => channel.pop(),
        }
    }

    /// Whether a barrier waits, wherever it stands among the elements.
    pub fn has_barrier(&self) -> bool {
        self.queue().has_barrier()
    }

    /// Takes the barrier that has overtaken the others, or else the newest one from its place among them if `is_due`:
    /// then it has overtaken them here. Returns it with the number of next elements that came before it in the stream.
    pub fn take_barrier(&self, is_due: impl FnOnce(&Barrier) -> bool) -> Option<(Barrier, u32)> {
        let element = match &self.0 {
            ReceivingEnd::Local(channel) => channel.take_barrier(is_due),
            ReceivingEnd::Remote(channel) => channel.take_barrier(is_due),
        };
        match element? {
            Element::UnalignedBarrier { barrier, overtaken } => Some((barrier, overtaken)),
            _ => None,
        }
    }

    /// Shows the element that [`Receiver::pop`] would return after `position` others, if it is there already.
    /// The sender waits while `look` looks. A barrier that has overtaken the others is not counted, nor shown.
    pub fn peek<R>(&self, position: usize, look: impl FnOnce(&Element) -> R) -> Option<R> {
        self.queue().peek(position, look)
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queued_bytes() == 0
    }

    /// How many bytes are queued: payloads, and a small constant for every element.
    pub fn queued_bytes(&self) -> u64 {
        self.queue().queued_bytes()
    }

    /// Why nothing will arrive any more: the connection broke or the data plane was shut down.
    /// What was queued before can still be popped. `None` after an ordinary end of input.
    pub fn error(&self) -> Option<Error> {
        self.queue().error()
    }

    fn queue(&self) -> &Queue {
        match &self.0 {
            ReceivingEnd::Local(channel) => channel.queue(),
            ReceivingEnd::Remote(channel) => channel.queue(),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        match &self.0 {
            ReceivingEnd::Local(channel) => channel.receiver_dropped(),
            ReceivingEnd::Remote(channel) => channel.receiver_dropped(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flott_control::CheckpointKind;

    use super::*;
    use crate::element::{ELEMENT_OVERHEAD_BYTES, Payload};

    fn batch(value: u64, bytes: u64) -> Element {
        Element::Batch(Payload::Local { batch: Box::new(value), rows: 1, bytes })
    }

    fn value(element: Option<Element>) -> Option<u64> {
        match element {
            Some(Element::Batch(Payload::Local { batch, .. })) => batch.downcast::<u64>().ok().map(|value| *value),
            _ => None,
        }
    }

    #[test]
    fn elements_keep_their_order_and_count_in_bytes() {
        let (sender, receiver) = local_channel(1000, Signal::new(), Signal::new());
        assert!(sender.is_local());
        sender.send(batch(1, 100)).unwrap();
        sender.send(Element::Watermark(7)).unwrap();
        sender.send(batch(2, 200)).unwrap();
        assert_eq!(receiver.queued_bytes(), 300 + 3 * ELEMENT_OVERHEAD_BYTES);
        assert_eq!(value(receiver.pop()), Some(1));
        assert!(matches!(receiver.pop(), Some(Element::Watermark(7))));
        assert_eq!(value(receiver.pop()), Some(2));
        assert!(receiver.is_empty());
        assert!(receiver.pop().is_none());
        assert!(receiver.error().is_none());
    }

    #[test]
    fn a_full_channel_takes_what_is_sent_and_tells_when_half_is_free() {
        let (producer, consumer) = (Signal::new(), Signal::new());
        let (sender, receiver) = local_channel(1000, producer.clone(), consumer.clone());
        for value in 0..10 {
            sender.send(batch(value, 100)).unwrap();
        }
        assert!(consumer.wait_until(Some(Duration::ZERO)));
        assert!(!sender.is_writable());
        sender.send(Element::EndOfInput).unwrap();
        while receiver.queued_bytes() > 500 {
            assert!(!producer.wait_until(Some(Duration::ZERO)));
            receiver.pop().unwrap();
        }
        assert!(producer.wait_until(Some(Duration::ZERO)));
        assert!(sender.is_writable());
    }

    #[test]
    fn a_batch_larger_than_the_channel_passes() {
        let producer = Signal::new();
        let (sender, receiver) = local_channel(10, producer.clone(), Signal::new());
        assert!(sender.is_writable());
        sender.send(batch(1, 1_000_000)).unwrap();
        assert!(!sender.is_writable());
        assert_eq!(value(receiver.pop()), Some(1));
        assert!(producer.wait_until(Some(Duration::ZERO)));
        assert!(sender.is_writable());
    }

    #[test]
    fn a_gone_receiver_wakes_the_producer_with_an_error() {
        let producer = Signal::new();
        let (sender, receiver) = local_channel(10, producer.clone(), Signal::new());
        sender.send(batch(1, 100)).unwrap();
        assert!(!sender.is_writable());
        drop(receiver);
        assert!(producer.wait_until(Some(Duration::ZERO)));
        assert!(sender.is_writable());
        let error = sender.send(Element::Active).unwrap_err();
        assert_eq!(error.to_string(), "the receiving subtask is gone");
    }

    fn barrier(checkpoint: u64) -> Barrier {
        Barrier { checkpoint, triggered_ms: 0, kind: CheckpointKind::Checkpoint }
    }

    fn unaligned(checkpoint: u64) -> Element {
        Element::UnalignedBarrier { barrier: barrier(checkpoint), overtaken: 0 }
    }

    /// The checkpoint of a barrier that has overtaken, and how many elements.
    fn overtaken(element: Option<Element>) -> Option<(u64, u32)> {
        match element {
            Some(Element::UnalignedBarrier { barrier, overtaken }) => Some((barrier.checkpoint, overtaken)),
            _ => None,
        }
    }

    #[test]
    fn a_barrier_overtakes_what_waits_and_says_how_much() {
        let (sender, receiver) = local_channel(1000, Signal::new(), Signal::new());
        sender.send(batch(1, 100)).unwrap();
        sender.send(Element::Watermark(3)).unwrap();
        let before = receiver.queued_bytes();
        sender.send(unaligned(1)).unwrap();
        sender.send(batch(2, 100)).unwrap();
        assert!(receiver.has_barrier());
        assert_eq!(receiver.peek(1, |element| matches!(element, Element::Watermark(3))), Some(true));
        assert_eq!(receiver.peek(3, |_| ()), None);
        assert_eq!(overtaken(receiver.pop()), Some((1, 2)));
        assert!(!receiver.has_barrier());
        assert_eq!(receiver.queued_bytes(), before + 100 + ELEMENT_OVERHEAD_BYTES);
        assert_eq!(value(receiver.pop()), Some(1));
        assert!(matches!(receiver.pop(), Some(Element::Watermark(3))));
        assert_eq!(value(receiver.pop()), Some(2));
        assert_eq!(receiver.queued_bytes(), 0);
    }

    #[test]
    fn a_barrier_alone_is_seen_and_wakes_the_consumer() {
        let consumer = Signal::new();
        let (sender, receiver) = local_channel(1000, Signal::new(), consumer.clone());
        sender.send(unaligned(1)).unwrap();
        assert!(consumer.wait_until(Some(Duration::ZERO)));
        assert!(!receiver.is_empty());
        assert_eq!(overtaken(receiver.pop()), Some((1, 0)));
        assert!(receiver.is_empty());
    }

    #[test]
    fn a_later_barrier_takes_the_place_of_an_earlier_one() {
        let (sender, receiver) = local_channel(1000, Signal::new(), Signal::new());
        sender.send(batch(1, 1)).unwrap();
        sender.send(unaligned(1)).unwrap();
        sender.send(batch(2, 1)).unwrap();
        sender.send(unaligned(2)).unwrap();
        sender.send(unaligned(1)).unwrap();
        assert_eq!(overtaken(receiver.pop()), Some((2, 2)));
        assert!(!receiver.has_barrier());
        assert_eq!((value(receiver.pop()), value(receiver.pop())), (Some(1), Some(2)));
        assert!(receiver.is_empty());
    }

    #[test]
    fn a_barrier_that_is_late_is_taken_from_its_place() {
        let (sender, receiver) = local_channel(1000, Signal::new(), Signal::new());
        for element in [batch(1, 1), Element::Barrier(barrier(4)), batch(2, 1)] {
            sender.send(element).unwrap();
        }
        assert!(receiver.has_barrier());
        assert_eq!(receiver.take_barrier(|_| false), None);
        assert_eq!(receiver.take_barrier(|barrier| barrier.checkpoint == 4), Some((barrier(4), 1)));
        assert!(!receiver.has_barrier());
        assert_eq!((value(receiver.pop()), value(receiver.pop())), (Some(1), Some(2)));
        assert_eq!(receiver.queued_bytes(), 0);
    }

    #[test]
    fn the_sender_moves_a_late_barrier_where_that_is_allowed() {
        for is_allowed in [true, false] {
            let (sender, receiver) = local_channel(1000, Signal::new(), Signal::new());
            let sender = if is_allowed { sender.with_overtaking() } else { sender };
            for element in [batch(1, 1), Element::Barrier(barrier(4)), batch(2, 1)] {
                sender.send(element).unwrap();
            }
            let bytes = receiver.queued_bytes();
            sender.overtake(3).unwrap();
            assert_eq!(receiver.peek(1, |element| matches!(element, Element::Barrier(_))), Some(true));
            sender.overtake(4).unwrap();
            assert_eq!(receiver.queued_bytes(), bytes);
            let first = receiver.pop();
            assert_eq!(overtaken(first), is_allowed.then_some((4, 1)));
        }
    }

    #[test]
    fn two_threads_pass_everything_through_a_small_channel() {
        const BATCHES: u64 = 20_000;
        let (producer, consumer) = (Signal::new(), Signal::new());
        let (sender, receiver) = local_channel(500, producer.clone(), consumer.clone());
        let thread = std::thread::spawn(move || {
            for value in 0..BATCHES {
                while !sender.is_writable() {
                    assert!(producer.wait_until(Some(Duration::from_secs(20))), "the producer was not woken");
                }
                sender.send(batch(value, value % 300)).unwrap();
            }
        });
        for expected in 0..BATCHES {
            let element = loop {
                match receiver.pop() {
                    Some(element) => break element,
                    None => assert!(consumer.wait_until(Some(Duration::from_secs(20))), "the consumer was not woken"),
                }
            };
            assert_eq!(value(Some(element)), Some(expected));
            assert!(receiver.queued_bytes() <= 500 + 300 + ELEMENT_OVERHEAD_BYTES);
        }
        thread.join().unwrap();
    }
}
