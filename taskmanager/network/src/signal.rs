//! How a slot's thread is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

const QUIET: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// Wakes the one thread that waits on it. Clones are the same signal.
///
/// A notification that comes while the thread is busy is kept for its next wait; several of them
/// count as one.
#[derive(Clone, Debug, Default)]
pub struct Signal(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: AtomicU8,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Signal {
    /// A signal that has not been notified.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the thread, or keeps its next wait from parking it. One atomic operation while the
    /// thread is not parked.
    pub fn notify(&self) {
        if self.0.state.swap(NOTIFIED, Ordering::SeqCst) == PARKED {
            // The waiter holds the lock from before it says PARKED until it waits: having had the
            // lock means that it can be woken.
            drop(self.0.lock.lock());
            self.0.woken.notify_one();
        }
    }

    /// Waits until the signal is notified, or `timeout` is over; returns whether it was notified.
    /// Returns at once if that happened since the last wait. Only one thread may wait.
    pub fn wait_until(&self, timeout: Option<Duration>) -> bool {
        let inner = &*self.0;
        if inner.state.swap(QUIET, Ordering::SeqCst) == NOTIFIED {
            return true;
        }
        if timeout == Some(Duration::ZERO) {
            return false;
        }
        let mut guard = inner.lock.lock();
        if inner.state.compare_exchange(QUIET, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            match timeout {
                Some(timeout) => {
                    inner.woken.wait_for(&mut guard, timeout);
                }
                None => {
                    while inner.state.load(Ordering::SeqCst) == PARKED {
                        inner.woken.wait(&mut guard);
                    }
                }
            }
        }
        inner.state.swap(QUIET, Ordering::SeqCst) == NOTIFIED
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_notification_is_kept_for_the_next_wait_and_only_for_that() {
        let signal = Signal::new();
        signal.notify();
        signal.notify();
        assert!(signal.wait_until(None));
        assert!(!signal.wait_until(Some(Duration::ZERO)));
        assert!(!signal.wait_until(Some(Duration::from_millis(1))));
    }

    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: u64 = 20_000;
        let (ping, pong) = (Signal::new(), Signal::new());
        let count = Arc::new(AtomicU64::new(0));
        let thread = {
            let (ping, pong, count) = (ping.clone(), pong.clone(), count.clone());
            std::thread::spawn(move || {
                for round in 1..=ROUNDS {
                    while count.load(Ordering::SeqCst) < round {
                        ping.wait_until(None);
                    }
                    pong.notify();
                }
            })
        };
        for _ in 0..ROUNDS {
            count.fetch_add(1, Ordering::SeqCst);
            ping.notify();
            assert!(pong.wait_until(Some(Duration::from_secs(20))), "a wake-up was lost");
        }
        thread.join().unwrap();
    }
}
