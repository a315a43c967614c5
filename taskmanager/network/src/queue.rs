//! The queue at the receiving end of a channel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flott_core::ids::CheckpointId;
use flott_core::{Error, Result};
use parking_lot::Mutex;

use crate::element::{Barrier, ELEMENT_OVERHEAD_BYTES, Element};
use crate::signal::Signal;

/// Elements in order, counted in bytes. It refuses nothing for lack of room: keeping to the bound
/// is the sender's part.
#[derive(Debug)]
pub(crate) struct Queue {
    elements: Mutex<Elements>,
    /// The cost of all elements, so that nobody has to lock to see that there are none.
    queued_bytes: AtomicU64,
    /// How many barriers there are, so that nobody has to lock to see that there are none.
    barriers: AtomicU32,
    consumer: Signal,
}

#[derive(Debug, Default)]
struct Elements {
    /// The barrier in front of the queue, and how many elements of the queue it has overtaken.
    overtaking: Option<(Barrier, u32)>,
    queue: VecDeque<Element>,
    closed: Option<Error>,
}

/// An element that left the queue.
pub(crate) struct Popped {
    pub(crate) element: Element,
    /// The credit that it had taken.
    pub(crate) credit_bytes: u64,
    /// What is still there.
    pub(crate) queued_bytes: u64,
}

impl Queue {
    pub(crate) fn new(consumer: Signal) -> Self {
        Self { elements: Mutex::default(), queued_bytes: AtomicU64::new(0), barriers: AtomicU32::new(0), consumer }
    }

    /// Adds an element, or says why the queue was closed.
    pub(crate) fn push(&self, element: Element) -> Result<()> {
        let cost = element.cost_bytes();
        {
            let mut elements = self.elements.lock();
            if let Some(error) = &elements.closed {
                return Err(error.clone());
            }
            match element {
                Element::UnalignedBarrier { barrier, overtaken } => {
                    let queued = elements.queue.len() as u32;
                    self.put_in_front(&mut elements, barrier, overtaken.saturating_add(queued));
                }
                element => {
                    if matches!(element, Element::Barrier(_)) {
                        self.barriers.fetch_add(1, Ordering::SeqCst);
                    }
                    elements.queue.push_back(element);
                    self.queued_bytes.fetch_add(cost, Ordering::SeqCst);
                }
            }
        }
        self.consumer.notify();
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<Popped> {
        if self.queued_bytes() == 0 {
            return None;
        }
        let mut elements = self.elements.lock();
        let element = match elements.overtaking.take() {
            Some((barrier, overtaken)) => Element::UnalignedBarrier { barrier, overtaken },
            None => elements.queue.pop_front()?,
        };
        let credit_bytes = element.credit_bytes();
        Some(self.popped(element, credit_bytes))
    }

    /// Takes out the barrier in front, or else the newest one from its place among the elements if `is_due`; in both
    /// cases as one that has overtaken.
    pub(crate) fn take_barrier(&self, is_due: impl FnOnce(&Barrier) -> bool) -> Option<Popped> {
        if !self.has_barrier() {
            return None;
        }
        let mut elements = self.elements.lock();
        let (taken, credit_bytes) = match elements.overtaking.take() {
            Some(taken) => (taken, 0),
            None => (elements.remove_barrier(is_due)?, ELEMENT_OVERHEAD_BYTES),
        };
        let (barrier, overtaken) = taken;
        Some(self.popped(Element::UnalignedBarrier { barrier, overtaken }, credit_bytes))
    }

    /// Moves the barrier of `checkpoint` from its place to the front, if it is the newest one here.
    pub(crate) fn overtake(&self, checkpoint: CheckpointId) {
        if !self.has_barrier() {
            return;
        }
        {
            let mut elements = self.elements.lock();
            let Some((barrier, overtaken)) = elements.remove_barrier(|barrier| barrier.checkpoint == checkpoint) else {
                return;
            };
            self.count_out(ELEMENT_OVERHEAD_BYTES, true);
            self.put_in_front(&mut elements, barrier, overtaken);
        }
        self.consumer.notify();
    }

    /// Shows the element at this position of the queue, if there is one. A barrier in front has no position.
    pub(crate) fn peek<R>(&self, position: usize, look: impl FnOnce(&Element) -> R) -> Option<R> {
        self.elements.lock().queue.get(position).map(look)
    }

    /// What all queued elements cost; 0 if and only if there are none.
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.queued_bytes.load(Ordering::SeqCst)
    }

    /// Whether there is a barrier, wherever it stands.
    pub(crate) fn has_barrier(&self) -> bool {
        self.barriers.load(Ordering::SeqCst) > 0
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
            elements.overtaking = None;
            self.queued_bytes.store(0, Ordering::SeqCst);
            self.barriers.store(0, Ordering::SeqCst);
            std::mem::take(&mut elements.queue)
        };
        // Batches run their own code when they are dropped: not under the lock.
        drop(discarded);
    }

    /// Why the queue was closed, if it was.
    pub(crate) fn error(&self) -> Option<Error> {
        self.elements.lock().closed.clone()
    }

    /// A barrier of an earlier checkpoint that still stands in front makes way: that checkpoint was given up. Barriers of two
    /// that were not are never on their way together.
    fn put_in_front(&self, elements: &mut Elements, barrier: Barrier, overtaken: u32) {
        match &elements.overtaking {
            Some((other, _)) if other.checkpoint >= barrier.checkpoint => return,
            Some(_) => {}
            None => {
                self.barriers.fetch_add(1, Ordering::SeqCst);
                self.queued_bytes.fetch_add(ELEMENT_OVERHEAD_BYTES, Ordering::SeqCst);
            }
        }
        elements.overtaking = Some((barrier, overtaken));
    }

    fn popped(&self, element: Element, credit_bytes: u64) -> Popped {
        let is_barrier = matches!(element, Element::Barrier(_) | Element::UnalignedBarrier { .. });
        let queued_bytes = self.count_out(element.cost_bytes(), is_barrier);
        Popped { element, credit_bytes, queued_bytes }
    }

    /// Returns the cost of what is left.
    fn count_out(&self, cost_bytes: u64, is_barrier: bool) -> u64 {
        if is_barrier {
            self.barriers.fetch_sub(1, Ordering::SeqCst);
        }
        self.queued_bytes.fetch_sub(cost_bytes, Ordering::SeqCst) - cost_bytes
    }
}

impl Elements {
    /// Takes the newest barrier from its place, if `is_wanted`, and says how many elements stood before it.
    fn remove_barrier(&mut self, is_wanted: impl FnOnce(&Barrier) -> bool) -> Option<(Barrier, u32)> {
        let position = self.queue.iter().rposition(|element| matches!(element, Element::Barrier(_)))?;
        match self.queue.get(position) {
            Some(Element::Barrier(barrier)) if is_wanted(barrier) => {}
            _ => return None,
        }
        match self.queue.remove(position) {
            Some(Element::Barrier(barrier)) => Some((barrier, position as u32)),
            _ => None,
        }
    }
}
