//! Which windows a record belongs to.

use std::time::Duration;

use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_state::TimeWindow;

/// Windows that are the same for all keys: every `slide` milliseconds one of `size` begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedWindows {
    size_ms: i64,
    slide_ms: i64,
    offset_ms: i64,
}

impl AlignedWindows {
    /// Windows of `size` that begin every `slide`, shifted by `offset`. A tumbling window slides by its size.
    pub fn new(size: Duration, slide: Duration, offset: Duration) -> Result<Self> {
        let ms = |name: &str, duration: Duration| {
            i64::try_from(duration.as_millis())
                .map_err(|_| Error::input(format!("the window's {name} of {duration:?} is too long")))
        };
        let (size_ms, slide_ms, offset_ms) = (ms("size", size)?, ms("slide", slide)?, ms("offset", offset)?);
        if size_ms == 0 || slide_ms == 0 {
            return Err(Error::input("a window's size and slide must be at least one millisecond"));
        }
        if offset_ms >= slide_ms {
            return Err(Error::input(format!(
                "the window's offset of {offset_ms} ms must be below its slide of {slide_ms} ms"
            )));
        }
        Ok(Self { size_ms, slide_ms, offset_ms })
    }

    /// The windows that `timestamp` is in, the latest first.
    pub fn windows(self, timestamp: Timestamp) -> impl Iterator<Item = TimeWindow> {
        let last = self.last_start(timestamp);
        let Self { size_ms, slide_ms, .. } = self;
        // With a slide above the size there are gaps, and a record may be in no window.
        (0..)
            .map(move |n| last.saturating_sub(slide_ms.saturating_mul(n)))
            .take_while(move |start| start.saturating_add(size_ms) > timestamp)
            .map(move |start| TimeWindow { start, end: start.saturating_add(size_ms) })
    }

    /// The window whose last millisecond is `max_timestamp`.
    pub fn ending_at(self, max_timestamp: Timestamp) -> TimeWindow {
        let end = max_timestamp.saturating_add(1);
        TimeWindow { start: end.saturating_sub(self.size_ms), end }
    }

    /// The start of the latest window that begins at or before `timestamp`.
    fn last_start(self, timestamp: Timestamp) -> Timestamp {
        let since = timestamp.saturating_sub(self.offset_ms).rem_euclid(self.slide_ms);
        timestamp.saturating_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(size: u64, slide: u64, offset: u64, timestamp: Timestamp) -> Vec<(i64, i64)> {
        let ms = Duration::from_millis;
        let assigner = AlignedWindows::new(ms(size), ms(slide), ms(offset)).unwrap();
        assigner.windows(timestamp).map(|window| (window.start, window.end)).collect()
    }

    #[test]
    fn tumbling_windows_hold_each_time_once() {
        assert_eq!(windows(5, 5, 0, 4), [(0, 5)]);
        assert_eq!(windows(5, 5, 0, 5), [(5, 10)]);
        assert_eq!(windows(5, 5, 0, -1), [(-5, 0)]);
        assert_eq!(windows(5, 5, 2, 1), [(-3, 2)]);
    }

    #[test]
    fn sliding_windows_overlap() {
        assert_eq!(windows(10, 5, 0, 7), [(5, 15), (0, 10)]);
        assert_eq!(windows(3, 5, 0, 4), []);
    }

    #[test]
    fn impossible_windows_are_refused() {
        let ms = Duration::from_millis;
        assert!(AlignedWindows::new(ms(0), ms(1), ms(0)).is_err());
        assert!(AlignedWindows::new(ms(5), ms(5), ms(5)).is_err());
        assert!(AlignedWindows::new(Duration::MAX, ms(5), ms(0)).is_err());
    }
}
