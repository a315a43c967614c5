//! The window of time that a piece of state belongs to.

use flott_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::table::Namespace;

/// The time from `start` to just before `end`, in milliseconds since 1970.
///
/// ```
/// use flott_state::TimeWindow;
/// assert_eq!(TimeWindow { start: 0, end: 60_000 }.max_timestamp(), 59_999);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TimeWindow {
    /// The first millisecond of the window.
    pub start: Timestamp,
    /// The first millisecond after it.
    pub end: Timestamp,
}

impl TimeWindow {
    /// The last millisecond of the window: its result has this timestamp, and is due when the watermark reaches it.
    pub fn max_timestamp(self) -> Timestamp {
        self.end - 1
    }

    /// Whether the windows overlap or touch; session windows that do are one session, as in Flink.
    pub fn intersects(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The smallest window that covers both.
    #[must_use]
    pub fn cover(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Namespace for TimeWindow {
    fn mix(&self, hash: u64) -> u64 {
        self.start.mix(hash) ^ (self.end.mix(hash)).rotate_left(32)
    }
}
