//! Local time: windows of what is an instant (TIMESTAMP_LTZ) are those of clocks in the session's zone.
//!
//! Windows are made in local time, in which a day has 24 hours, always. When clocks go back, an hour is twice, and windows of
//! that hour have the rows of both; when they go forward, windows of the hour that is left out have none. What ties windows
//! to instants is here: what clocks show at the times of rows, and how much of local time is over at a watermark.
//!
//! Where there is no zone, time is what it is.

use arrow::array::{Array, PrimitiveArray};
use arrow::datatypes::Int64Type;
use flott_chunk::zone::{Zone, zone_of};
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_core::{Error, Result};

/// Clocks seldom change their offset within so long.
const SPAN_MS: i64 = 900_000;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalTime {
    zone: Option<Zone>,
}

impl LocalTime {
    /// That of a zone, if there is one.
    ///
    /// # Errors
    /// There is no zone of this name.
    pub fn new(zone: Option<&str>) -> Result<Self> {
        let Some(name) = zone else { return Ok(Self::default()) };
        match zone_of(name) {
            Some(zone) => Ok(Self { zone: Some(zone).filter(|zone| !zone.is_utc()) }),
            None => Err(Error::input(format!(
                "there is no time zone '{name}': SET 'table.local-time-zone' to one such as 'Europe/Berlin' or '+08:00'"
            ))),
        }
    }

    /// Whether time is what it is.
    pub fn is_utc(self) -> bool {
        self.zone.is_none()
    }

    /// What clocks show at an instant.
    pub fn of(self, instant: Timestamp) -> Timestamp {
        self.zone.map_or(instant, |zone| zone.local_ms(instant))
    }

    /// What clocks show at these instants.
    pub fn of_all(self, instants: PrimitiveArray<Int64Type>) -> PrimitiveArray<Int64Type> {
        let Some(zone) = self.zone else { return instants };
        // Times of a chunk are near each other: the offset is looked up for each stretch, not for each row.
        let (mut span, mut offset) = (None, 0);
        let shown = instants.values().iter().map(|&instant| {
            let start = instant.div_euclid(SPAN_MS).saturating_mul(SPAN_MS);
            if span != Some(start) {
                offset = zone.local_ms(start) - start;
                let last = start.saturating_add(SPAN_MS - 1);
                if zone.local_ms(last) - last != offset {
                    span = None;
                    return zone.local_ms(instant);
                }
                span = Some(start);
            }
            instant.saturating_add(offset)
        });
        PrimitiveArray::new(shown.collect::<Vec<i64>>().into(), instants.nulls().cloned())
    }

    /// The instant at which clocks show a time; the first if they show it twice.
    pub fn instant(self, local: Timestamp) -> Timestamp {
        self.zone.map_or(local, |zone| zone.utc_ms(local))
    }

    /// The last local time that is over at a watermark: clocks show later times only from then on.
    pub fn passed(self, watermark: Timestamp) -> Timestamp {
        let Some(zone) = self.zone.filter(|_| watermark != WATERMARK_MIN && watermark != WATERMARK_MAX) else {
            return watermark;
        };
        let next = watermark.saturating_add(1);
        let shown = zone.local_ms(next);
        let again = zone.utc_late_ms(shown);
        if again <= next {
            return shown - 1;
        }
        // Clocks are about to go back: what they show from then on is earlier, and not over.
        shown.min(zone.local_ms(change(zone, next, again))) - 1
    }

    /// The first instant at which a local time is [over](Self::passed).
    pub fn due(self, local: Timestamp) -> Timestamp {
        let Some(zone) = self.zone.filter(|_| local != WATERMARK_MIN && local != WATERMARK_MAX) else { return local };
        let last = zone.utc_late_ms(local);
        let skipped = zone.local_ms(last) - local;
        if skipped == 0 { last } else { change(zone, last - skipped, last) - 1 }
    }
}

/// The first instant after `before` that has the offset of `after`.
fn change(zone: Zone, before: Timestamp, after: Timestamp) -> Timestamp {
    let offset = |at: Timestamp| zone.local_ms(at) - at;
    let wanted = offset(after);
    let (mut low, mut high) = (before, after);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset(middle) == wanted { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    /// 2021-03-14T00:00Z and 2021-11-07T00:00Z: the days on which clocks change in California.
    const SPRING: i64 = 1_615_680_000_000;
    const AUTUMN: i64 = 1_636_243_200_000;

    fn pacific() -> LocalTime {
        LocalTime::new(Some("America/Los_Angeles")).unwrap()
    }

    #[test]
    fn an_hour_that_is_twice_is_over_after_the_second_time() {
        let time = pacific();
        // At 09:00Z clocks go from 02:00 back to 01:00.
        assert_eq!(time.passed(AUTUMN + 8 * HOUR - 1), AUTUMN + HOUR - 1);
        assert_eq!(time.passed(AUTUMN + 9 * HOUR - 1), AUTUMN + HOUR - 1);
        assert_eq!(time.passed(AUTUMN + 9 * HOUR + 30 * MINUTE - 1), AUTUMN + HOUR + 30 * MINUTE - 1);
        assert_eq!(time.due(AUTUMN + 2 * HOUR - 1), AUTUMN + 10 * HOUR - 1);
        assert_eq!(time.instant(AUTUMN + 2 * HOUR - 1), AUTUMN + 9 * HOUR - 1);
    }

    #[test]
    fn an_hour_that_is_left_out_is_over_before_it() {
        let time = pacific();
        // At 10:00Z clocks go from 02:00 to 03:00.
        assert_eq!(time.passed(SPRING + 10 * HOUR - 1), SPRING + 3 * HOUR - 1);
        assert_eq!(time.due(SPRING + 3 * HOUR - 1), SPRING + 10 * HOUR - 1);
        assert_eq!(time.due(SPRING + 2 * HOUR + 5), SPRING + 10 * HOUR - 1);
        // As in Flink: as long after the gap as the clock says.
        assert_eq!(time.instant(SPRING + 3 * HOUR - 1), SPRING + 11 * HOUR - 1);
    }

    #[test]
    fn without_a_zone_time_is_what_it_is() {
        for time in [LocalTime::default(), LocalTime::new(Some("UTC")).unwrap()] {
            assert_eq!((time.of(5), time.passed(5), time.due(5), time.instant(5)), (5, 5, 5, 5));
        }
        assert!(LocalTime::new(Some("Mars/Olympus")).unwrap_err().to_string().contains("'Mars/Olympus'"));
        let time = pacific();
        assert_eq!((time.passed(WATERMARK_MIN), time.passed(WATERMARK_MAX)), (WATERMARK_MIN, WATERMARK_MAX));
    }

    proptest! {
        #[test]
        fn what_is_over_is_never_shown_again(
            zone in prop::sample::select(vec![
                "America/Los_Angeles", "Australia/Lord_Howe", "Europe/Berlin", "America/St_Johns", "+05:30",
            ]),
            day in prop::sample::select(vec![SPRING, AUTUMN, 1_617_408_000_000, 1_616_889_600_000, 1_635_638_400_000]),
            minutes in 0..1440_i64,
            ms in -1..2_i64,
        ) {
            let time = LocalTime::new(Some(zone)).unwrap();
            let at = day + minutes * MINUTE + ms;
            let passed = time.passed(at);
            // The earliest time that clocks show in the next four hours.
            let later = std::iter::once(at + 1).chain((1..240).map(|minute| (at + 1).div_euclid(MINUTE) * MINUTE + minute * MINUTE));
            prop_assert_eq!(passed, later.map(|at| time.of(at)).min().unwrap() - 1);
            let due = time.due(passed);
            prop_assert!(due <= at && time.passed(due) >= passed && time.passed(due - 1) < passed);
            let all = PrimitiveArray::from(vec![at, at + 1, day, at]);
            let expected: Vec<i64> = all.values().iter().map(|at| time.of(*at)).collect();
            prop_assert_eq!(time.of_all(all).values().to_vec(), expected);
        }
    }
}
