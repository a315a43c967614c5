//! Time zones: what clocks show there, and when.

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;

/// A time zone.
#[derive(Clone, Copy, Debug)]
pub enum Zone {
    /// One with rules.
    Named(Tz),
    /// Seconds east of UTC.
    Offset(i32),
}

/// `Europe/Berlin`, `UTC`, `GMT+08:00`, `+8`.
pub fn zone_of(name: &str) -> Option<Zone> {
    if let Ok(found) = name.parse::<Tz>() {
        return Some(Zone::Named(found));
    }
    let rest = ["UTC", "GMT", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if rest.is_empty() || rest == "Z" {
        return Some(Zone::Offset(0));
    }
    let (sign, rest) = match rest.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?);
    (hours <= 18 && minutes < 60).then_some(Zone::Offset(sign * (hours * 3600 + minutes * 60)))
}

impl Zone {
    /// Whether it is UTC, always.
    pub fn is_utc(self) -> bool {
        matches!(self, Self::Offset(0) | Self::Named(Tz::UTC | Tz::Etc__UTC | Tz::GMT | Tz::Etc__GMT | Tz::Zulu))
    }

    /// What a clock there shows.
    pub fn to_local(self, at: NaiveDateTime) -> NaiveDateTime {
        let seconds = match self {
            Self::Offset(seconds) => seconds,
            Self::Named(zone) => zone.offset_from_utc_datetime(&at).fix().local_minus_utc(),
        };
        at.checked_add_signed(TimeDelta::seconds(seconds.into())).unwrap_or(at)
    }

    /// When a clock there shows it; the first time if twice, and if never, as long after the gap as the clock says.
    pub fn to_utc(self, at: NaiveDateTime) -> NaiveDateTime {
        self.resolve(at, false)
    }

    /// The same; the last time if twice.
    pub fn to_utc_late(self, at: NaiveDateTime) -> NaiveDateTime {
        self.resolve(at, true)
    }

    /// [`to_local`](Self::to_local) of milliseconds since 1970.
    pub fn local_ms(self, at: i64) -> i64 {
        of_millis(at, |at| self.to_local(at))
    }

    /// [`to_utc`](Self::to_utc) of milliseconds since 1970.
    pub fn utc_ms(self, at: i64) -> i64 {
        of_millis(at, |at| self.to_utc(at))
    }

    /// [`to_utc_late`](Self::to_utc_late) of milliseconds since 1970.
    pub fn utc_late_ms(self, at: i64) -> i64 {
        of_millis(at, |at| self.to_utc_late(at))
    }

    fn resolve(self, at: NaiveDateTime, is_late: bool) -> NaiveDateTime {
        let seconds = match self {
            Self::Offset(seconds) => seconds,
            Self::Named(zone) => match zone.offset_from_local_datetime(&at) {
                chrono::LocalResult::Single(offset) => offset.fix().local_minus_utc(),
                chrono::LocalResult::Ambiguous(first, second) => {
                    let (first, second) = (first.fix().local_minus_utc(), second.fix().local_minus_utc());
                    if is_late { first.min(second) } else { first.max(second) }
                }
                // In a gap the offset before it holds.
                chrono::LocalResult::None => {
                    let before = at.checked_sub_signed(TimeDelta::hours(3)).unwrap_or(at);
                    zone.offset_from_local_datetime(&before)
                        .earliest()
                        .map_or(0, |offset| offset.fix().local_minus_utc())
                }
            },
        };
        at.checked_sub_signed(TimeDelta::seconds(seconds.into())).unwrap_or(at)
    }
}

/// Times that no calendar has stay as they are.
fn of_millis(at: i64, convert: impl Fn(NaiveDateTime) -> NaiveDateTime) -> i64 {
    DateTime::from_timestamp_millis(at).map_or(at, |at| convert(at.naive_utc()).and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_an_hour_twice_or_not_at_all() {
        let zone = zone_of("America/Los_Angeles").unwrap();
        let at =
            |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap().and_utc().timestamp_millis();
        // There is no 02:30, and 01:30 twice.
        assert_eq!(zone.utc_ms(at("2021-03-14 02:30")), at("2021-03-14 10:30"));
        assert_eq!(zone.local_ms(at("2021-03-14 10:30")), at("2021-03-14 03:30"));
        assert_eq!(zone.utc_ms(at("2021-11-07 01:30")), at("2021-11-07 08:30"));
        assert_eq!(zone.utc_late_ms(at("2021-11-07 01:30")), at("2021-11-07 09:30"));
        assert_eq!(zone.local_ms(i64::MAX), i64::MAX);
    }

    #[test]
    fn zones_have_names_or_offsets() {
        assert!(matches!(zone_of("GMT+08:00"), Some(Zone::Offset(28_800))));
        assert!(matches!(zone_of("-3:30"), Some(Zone::Offset(-12_600))));
        assert!(zone_of("Europe/Berlin").is_some() && zone_of("Mars/Olympus").is_none());
        assert!(["UTC", "Etc/UTC", "GMT", "Z"].iter().all(|name| zone_of(name).unwrap().is_utc()));
    }
}
