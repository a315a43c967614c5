//! The world outside the program: clock, randomness and the spawning of tasks.
//!
//! This is the only place that touches them; `clippy.toml` refuses them everywhere else. What decides
//! something takes the time and the random numbers that it needs as arguments, so that a simulator
//! can run it again from a seed.
//!
//! ```
//! let start = flott_env::monotonic();
//! assert!(flott_env::monotonic() >= start);
//! assert_ne!(flott_env::random_id(), flott_env::random_id());
//! ```

#![allow(clippy::disallowed_methods, reason = "this crate is what the refused functions are replaced by")]

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The wall clock, in milliseconds since 1970-01-01T00:00:00Z. It can jump, in both directions: take it for
/// what users read and for event time, never to measure how long something took.
pub fn now_ms() -> i64 {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration()),
    }
}

/// The time since this function was first called in the process. It never goes back.
pub fn monotonic() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// 16 random bytes from the operating system.
///
/// # Panics
/// The operating system has no randomness to give. Without it ids would collide and the fencing that
/// builds on them would fail, so the process must not go on.
pub fn random_id() -> [u8; 16] {
    random_bytes()
}

/// A random number from the operating system.
///
/// # Panics
/// As [`random_id`].
pub fn random_u64() -> u64 {
    u64::from_le_bytes(random_bytes())
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the operating system gives no random bytes: {error}");
    }
    bytes
}

/// Runs `future` on the runtime of the caller.
///
/// # Panics
/// The caller is not inside a tokio runtime.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// Runs `future` on the runtime of `handle`.
pub fn spawn_on<F>(handle: &Handle, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    handle.spawn(future)
}

/// Runs `f`, which may block, on a thread that the runtime of `handle` keeps for that.
pub fn spawn_blocking_on<F, R>(handle: &Handle, f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    handle.spawn_blocking(f)
}

/// Waits for `duration`, on the runtime of the caller.
pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// What `future` gives, on the runtime of the caller; `None` if it takes longer than `duration`. Then it is dropped.
pub async fn within<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(duration, future).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_go_forward() {
        assert!(now_ms() > 1_700_000_000_000);
        let first = monotonic();
        std::thread::sleep(Duration::from_millis(2));
        assert!(monotonic() - first >= Duration::from_millis(2));
    }

    #[tokio::test]
    async fn tasks_run_where_they_are_told_to() {
        let handle = Handle::current();
        assert_eq!(spawn(async { 1 }).await.unwrap(), 1);
        assert_eq!(spawn_on(&handle, async { 2 }).await.unwrap(), 2);
        assert_eq!(spawn_blocking_on(&handle, || 3).await.unwrap(), 3);
        sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test]
    async fn what_takes_too_long_is_given_up() {
        assert_eq!(within(Duration::from_secs(60), async { 1 }).await, Some(1));
        assert_eq!(within(Duration::from_millis(1), std::future::pending::<()>()).await, None);
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random_id(), random_id());
        assert_ne!(random_u64(), random_u64());
    }
}
