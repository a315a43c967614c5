//! The two ends of a channel, wherever the other one is.

use std::sync::Arc;

use flott_core::{Error, Result};

use crate::element::Element;
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
    (Sender(SendingEnd::Local(channel.clone())), Receiver(ReceivingEnd::Local(channel)))
}

/// The sending end of a channel.
#[derive(Clone, Debug)]
pub struct Sender(SendingEnd);

#[derive(Clone, Debug)]
enum SendingEnd {
    Local(Arc<LocalChannel>),
    Remote(Arc<OutboundChannel>),
}

impl Sender {
    pub(crate) fn remote(channel: Arc<OutboundChannel>) -> Self {
        Self(SendingEnd::Remote(channel))
    }

    /// Whether the receiver is in this process, and batches are to be sent as
    /// [`Payload::Local`](crate::Payload::Local); otherwise they must be encoded.
    pub fn is_local(&self) -> bool {
        matches!(self.0, SendingEnd::Local(_))
    }

    /// Whether there is room for another element. When there is none, the producer's signal is
    /// notified once there is. True for a closed channel: sending then says why.
    pub fn is_writable(&self) -> bool {
        match &self.0 {
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
    pub fn send(&self, element: Element) -> Result<()> {
        match &self.0 {
            SendingEnd::Local(channel) => channel.send(element),
            SendingEnd::Remote(channel) => channel.send(element),
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
