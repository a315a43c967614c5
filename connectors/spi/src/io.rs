//! How a synchronous connector reaches asynchronous I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a connector runs its I/O: the tokio runtime of the process. Slot threads are not part of
/// it, so `block_on` is allowed on them.
pub type IoHandle = tokio::runtime::Handle;

/// Tells the engine that a reader that was [`Pending`](crate::ReadStatus::Pending) can go on.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// A waker that calls `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// A waker for tests that poll in a loop.
    pub fn noop() -> Self {
        Self::new(|| {})
    }

    /// The reader can go on. May be called from any thread, and more often than needed.
    pub fn wake(&self) {
        (self.0)();
    }
}

/// What a sink has left that hands rows out to others, rather than writing them where there is room for all.
///
/// Its subtask takes no more input while it is full, and finishes only when nothing is left. So the sink never waits: the
/// subtask still hears what it is told, such as to stop. A chain has at most one such sink.
#[derive(Clone)]
pub struct Outlet(Arc<OutletState>);

struct OutletState {
    is_full: AtomicBool,
    has_rows: AtomicBool,
    waker: Waker,
}

impl Outlet {
    /// An outlet with nothing in it, whose subtask is woken by `waker` when there is room again.
    pub fn new(waker: Waker) -> Self {
        Self(Arc::new(OutletState { is_full: AtomicBool::new(false), has_rows: AtomicBool::new(false), waker }))
    }

    /// Says what there is now. May be called from any thread.
    pub fn set(&self, has_rows: bool, is_full: bool) {
        let was_full = self.0.is_full.swap(is_full, Ordering::AcqRel);
        let had_rows = self.0.has_rows.swap(has_rows, Ordering::AcqRel);
        if was_full && !is_full || had_rows && !has_rows {
            self.0.waker.wake();
        }
    }

    /// Whether it takes no more for now.
    pub fn is_full(&self) -> bool {
        self.0.is_full.load(Ordering::Acquire)
    }

    /// Whether somebody is still to take something.
    pub fn has_rows(&self) -> bool {
        self.0.has_rows.load(Ordering::Acquire)
    }
}

impl Default for Outlet {
    /// One that stays empty.
    fn default() -> Self {
        Self::new(Waker::noop())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn the_subtask_is_woken_when_it_can_go_on() {
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&woken);
        let outlet = Outlet::new(Waker::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        let steps = [
            (true, false, 0),
            (true, true, 0),
            (true, true, 0),
            (true, false, 1),
            (false, false, 2),
            (false, false, 2),
        ];
        for (has_rows, is_full, expected) in steps {
            outlet.set(has_rows, is_full);
            assert_eq!((outlet.has_rows(), outlet.is_full()), (has_rows, is_full));
            assert_eq!(woken.load(Ordering::Relaxed), expected);
        }
    }
}
