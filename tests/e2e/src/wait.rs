//! Waiting, never without a limit.

use std::thread;
use std::time::Duration;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until `look` finds something; what it says instead is shown if it does not within `limit`.
///
/// # Panics
/// The time is over.
#[track_caller]
pub fn until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = flott_env::monotonic();
    loop {
        match look() {
            Ok(found) => return found,
            Err(instead) => {
                let waited = flott_env::monotonic().saturating_sub(began);
                assert!(waited < limit, "waited {limit:?} in vain for {what}; at last: {instead}");
            }
        }
        thread::sleep(PAUSE);
    }
}
