//! How fast records may come.

use flott_core::time::Timestamp;

/// A reader that fell behind makes up for so much.
const ARREARS_MS_MAX: Timestamp = 1000;

/// Spreads records evenly over time. Time comes from outside.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    rows_per_ms: f64,
    start_ms: Timestamp,
    /// Records since `start_ms`.
    rows: u64,
}

/// What may happen now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// So many records, at least one.
    Rows(u64),
    /// Nothing before this time.
    At(Timestamp),
}

impl Pace {
    /// A pace of `rows_per_second`, which is positive. The first record comes at once.
    pub(crate) fn new(rows_per_second: f64, now_ms: Timestamp) -> Self {
        Self { rows_per_ms: rows_per_second / 1000.0, start_ms: now_ms, rows: 0 }
    }

    /// What may happen at `now_ms`.
    pub(crate) fn due(&mut self, now_ms: Timestamp) -> Due {
        let due_ms = self.at(self.rows);
        if now_ms < self.start_ms || now_ms - due_ms > ARREARS_MS_MAX {
            // The clock was set back, or nobody asked for long.
            self.start_ms = now_ms;
            self.rows = 0;
            return Due::Rows(1);
        }
        let allowed = ((now_ms - self.start_ms) as f64 * self.rows_per_ms) as u64 + 1;
        match allowed.saturating_sub(self.rows) {
            0 => Due::At(due_ms.max(now_ms + 1)),
            rows => Due::Rows(rows),
        }
    }

    /// So many records came.
    pub(crate) fn advance(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// When record `index` since the start is due.
    fn at(&self, index: u64) -> Timestamp {
        self.start_ms.saturating_add((index as f64 / self.rows_per_ms).ceil() as Timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of each of the first milliseconds.
    fn counts(pace: &mut Pace, ms: std::ops::Range<Timestamp>) -> Vec<u64> {
        ms.map(|now| match pace.due(now) {
            Due::Rows(rows) => {
                pace.advance(rows);
                rows
            }
            Due::At(_) => 0,
        })
        .collect()
    }

    #[test]
    fn records_are_spread_evenly() {
        assert_eq!(counts(&mut Pace::new(1500.0, 0), 0..5), [1, 1, 2, 1, 2]);
        assert_eq!(counts(&mut Pace::new(500.0, 0), 0..5), [1, 0, 1, 0, 1]);
        let total: u64 = counts(&mut Pace::new(123_456.0, 0), 0..1000).iter().sum();
        assert!((123_330..=123_457).contains(&total), "{total}");
    }

    #[test]
    fn slow_paces_say_when_to_come_back() {
        let mut pace = Pace::new(0.5, 100);
        assert_eq!(pace.due(100), Due::Rows(1));
        pace.advance(1);
        assert_eq!(pace.due(100), Due::At(2100));
        assert_eq!(pace.due(2099), Due::At(2100));
        assert_eq!(pace.due(2100), Due::Rows(1));
    }

    #[test]
    fn a_pause_is_made_up_for_in_part() {
        let mut pace = Pace::new(1000.0, 0);
        pace.advance(1);
        assert_eq!(pace.due(900), Due::Rows(900));
        assert_eq!(pace.due(5000), Due::Rows(1), "too long ago");
        pace.advance(1);
        assert_eq!(pace.due(5001), Due::Rows(1));
        assert_eq!(pace.due(10), Due::Rows(1), "the clock was set back");
    }
}
