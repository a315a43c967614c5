//! The queue at the receiving end of a channel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use flott_core::{Error, Result};
use parking_lot::Mutex;

use crate::element::Element;
use crate::signal::Signal;

/// Elements in order, counted in bytes. It refuses nothing for lack of room: keeping to the bound
/// is the sender's part.
#[derive(Debug)]
pub(crate) struct Queue {
    elements: Mutex<Elements>,
    /// The cost of all elements, so that nobody has to lock to see that there are none.
    queued_bytes: AtomicU64,
    consumer: Signal,
}

#[derive(Debug, Default)]
struct Elements {
    queue: VecDeque<Element>,
    closed: Option<Error>,
}

/// An element that left the queue.
pub(crate) struct Popped {
    pub(crate) element: Element,
    /// What it had cost.
    pub(crate) cost_bytes: u64,
    /// What is still there.
    pub(crate) queued_bytes: u64,
}

impl Queue {
    pub(crate) fn new(consumer: Signal) -> Self {
        Self { elements: Mutex::default(), queued_bytes: AtomicU64::new(0), consumer }
    }

    /// Adds an element, or says why the queue was closed.
    pub(crate) fn push(&self, element: Element) -> Result<()> {
        let cost = element.cost_bytes();
        {
            let mut elements = self.elements.lock();
            if let Some(error) = &elements.closed {
                return Err(error.clone());
            }
            elements.queue.push_back(element);
            self.queued_bytes.fetch_add(cost, Ordering::SeqCst);
        }
        self.consumer.notify();
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<Popped> {
        if self.queued_bytes() == 0 {
            return None;
        }
        let mut elements = self.elements.lock();
        let element = elements.queue.pop_front()?;
        let cost_bytes = element.cost_bytes();
        let before = self.queued_bytes.fetch_sub(cost_bytes, Ordering::SeqCst);
        Some(Popped { element, cost_bytes, queued_bytes: before - cost_bytes })
    }

    /// What all queued elements cost; 0 if and only if there are none.
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.queued_bytes.load(Ordering::SeqCst)
    }

    /// Refuses what comes from here on, with this reason. What is queued stays.
    pub(crate) fn close(&self, error: Error) {
        self.elements.lock().closed.get_or_insert(error);
        self.consumer.notify();
    }

    /// Closes the queue and throws away what is in it.
    pub(crate) fn discard(&self, error: Error) {
        let discarded = {
            let mut elements = self.elements.lock();
            elements.closed.get_or_insert(error);
            self.queued_bytes.store(0, Ordering::SeqCst);
            std::mem::take(&mut elements.queue)
        };
        // Batches run their own code when they are dropped: not under the lock.
        drop(discarded);
    }

    /// Why the queue was closed, if it was.
    pub(crate) fn error(&self) -> Option<Error> {
        self.elements.lock().closed.clone()
    }
}
