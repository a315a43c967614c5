//! How a synchronous connector reaches asynchronous I/O.

use std::sync::Arc;

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
