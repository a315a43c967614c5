//! A channel between two slots of one process.

use std::sync::atomic::{AtomicBool, Ordering};

use flott_core::{Error, Result};

use crate::element::{Barrier, Element};
use crate::queue::{Popped, Queue};
use crate::signal::Signal;

/// The queue that sender and receiver share.
#[derive(Debug)]
pub(crate) struct LocalChannel {
    queue: Queue,
    capacity_bytes: u64,
    /// Whether the producer found no room and was not told of any since.
    blocked: AtomicBool,
    producer: Signal,
}

impl LocalChannel {
    pub(crate) fn new(capacity_bytes: u64, producer: Signal, consumer: Signal) -> Self {
        Self {
            queue: Queue::new(consumer),
            capacity_bytes: capacity_bytes.max(1),
            blocked: AtomicBool::new(false),
            producer,
        }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn send(&self, element: Element) -> Result<()> {
        self.queue.push(element)
    }

    /// Whether there is room. If not, the producer's signal follows when half of it is free: waking
    /// it for every batch would cost more than the batch.
    pub(crate) fn is_writable(&self) -> bool {
        if self.has_room() {
            return true;
        }
        // The consumer may have popped the last element before it could see the flag: look again.
        self.blocked.store(true, Ordering::SeqCst);
        self.has_room()
    }

    fn has_room(&self) -> bool {
        self.queue.queued_bytes() < self.capacity_bytes
    }

    pub(crate) fn pop(&self) -> Option<Element> {
        self.queue.pop().map(|popped| self.release(popped))
    }

    /// See [`Queue::take_barrier`].
    pub(crate) fn take_barrier(&self, is_due: impl FnOnce(&Barrier) -> bool) -> Option<Element> {
        self.queue.take_barrier(is_due).map(|popped| self.release(popped))
    }

    fn release(&self, popped: Popped) -> Element {
        if popped.queued_bytes <= self.capacity_bytes / 2
            && self.blocked.load(Ordering::SeqCst)
            && self.blocked.swap(false, Ordering::SeqCst)
        {
            self.producer.notify();
        }
        popped.element
    }

    /// The receiver is gone: the producer learns it from its next element.
    pub(crate) fn receiver_dropped(&self) {
        self.queue.discard(Error::system("the receiving subtask is gone"));
        self.producer.notify();
    }
}
