//! One value from its text, as Flink's formats read it.

/// A decimal number with `scale` digits behind the point, as an integer of such units: rounded half up, and `None` beyond
/// `precision` digits. The outer `None`: it is no number.
///
/// Exact: it never becomes a float on the way.
pub fn decimal(text: &str, precision: u8, scale: i8) -> Option<Option<i128>> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (is_negative, mantissa) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The digits up to here are those of the result; the next one rounds.
    let kept = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let limit = 10_i128.checked_pow(u32::from(precision))?;
    let mut value = 0_i128;
    for index in 0..kept.max(0) {
        let digit = usize::try_from(index).ok().and_then(|index| digits().nth(index)).unwrap_or(b'0');
        value = value * 10 + i128::from(digit - b'0');
        if value >= limit {
            return Some(None);
        }
        if index >= digits().count() as i64 && value == 0 {
            // Only zeros follow.
            break;
        }
    }
    let next = usize::try_from(kept).ok().and_then(|index| digits().nth(index));
    if next.is_some_and(|digit| digit >= b'5') {
        value += 1;
    }
    if value >= limit {
        return Some(None);
    }
    Some(Some(if is_negative { -value } else { value }))
}

/// Days since 1970 of `2024-02-29`.
pub fn date(text: &str) -> Option<i32> {
    let (rest, is_negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let mut parts = rest.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() < 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let year: i64 = unsigned(year)?;
    days(if is_negative { -year } else { year }, unsigned(month)?, unsigned(day)?)
}

/// Days since 1970. After Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> Option<i32> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}

fn unsigned(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Nanoseconds since midnight of `12:34:56.789`; seconds may be left out.
pub fn time(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (parts.next()?, parts.next()?);
    let (seconds, fraction) = parts.next().map_or(("00", ""), |rest| rest.split_once('.').unwrap_or((rest, "")));
    if hours.len() != 2 || minutes.len() != 2 || seconds.len() != 2 || fraction.len() > 9 {
        return None;
    }
    let (hours, minutes, seconds) = (unsigned(hours)?, unsigned(minutes)?, unsigned(seconds)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let nanos = if fraction.is_empty() { 0 } else { unsigned(fraction)? * 10_i64.pow(9 - fraction.len() as u32) };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanos)
}

/// Nanoseconds since 1970 of `2024-01-01 12:34:56.789`; with `separator` between date and time. Of an instant, a `Z` at the
/// end is not part of `text`.
pub fn timestamp(text: &str, separator: char) -> Option<i128> {
    if let Some(nanos) = plain_timestamp(text.as_bytes(), separator) {
        return Some(nanos);
    }
    let (day, clock) = text.split_once(separator)?;
    Some(i128::from(date(day)?) * 86_400_000_000_000 + i128::from(time(clock)?))
}

/// The same of one of four digits of the year and up to nine of the second, by the places of its digits; `None` for any other.
#[inline]
fn plain_timestamp(text: &[u8], separator: char) -> Option<i128> {
    let (plain, fraction) = text.split_at_checked(19)?;
    let is_punctuated = plain[4] == b'-'
        && plain[7] == b'-'
        && char::from(plain[10]) == separator
        && plain[13] == b':'
        && plain[16] == b':';
    if !is_punctuated {
        return None;
    }
    let mut is_number = true;
    let mut number = |digits: &[u8]| {
        digits.iter().fold(0, |number, byte| {
            is_number &= byte.is_ascii_digit();
            number * 10 + i64::from(byte & 0xf)
        })
    };
    let (year, month, day) = (number(&plain[..4]), number(&plain[5..7]), number(&plain[8..10]));
    let (hours, minutes, seconds) = (number(&plain[11..13]), number(&plain[14..16]), number(&plain[17..19]));
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => number(digits) * 10_i64.pow(9 - digits.len() as u32),
        _ => return None,
    };
    if !is_number || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let seconds = i64::from(days(year, month, day)?) * 86_400 + (hours * 60 + minutes) * 60 + seconds;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_exact() {
        let cases = [
            ("799.929496989092949698", 38, 18, Some(Some(799_929_496_989_092_949_698))),
            ("1E-8", 20, 10, Some(Some(100))),
            ("-1.005", 10, 2, Some(Some(-101))),
            ("1.004", 10, 2, Some(Some(100))),
            ("99.995", 4, 2, Some(None)),
            ("1e3", 5, 1, Some(Some(10_000))),
            ("1e400000", 38, 0, Some(None)),
            ("0e400000", 38, 0, Some(Some(0))),
            ("1e-400000", 38, 0, Some(Some(0))),
            ("0.5", 3, 0, Some(Some(1))),
            (".5", 3, 1, Some(Some(5))),
            ("", 3, 1, None),
            (".", 3, 1, None),
            ("x", 3, 1, None),
            ("1e", 3, 1, None),
            ("--1", 3, 1, None),
        ];
        for (text, precision, scale, value) in cases {
            assert_eq!(decimal(text, precision, scale), value, "{text}");
        }
    }

    #[test]
    fn times_are_checked() {
        assert_eq!(date("2024-02-29"), Some(19_782));
        assert_eq!(date("1969-12-31"), Some(-1));
        assert_eq!([date("2023-02-29"), date("2024-13-01"), date("24-1-1"), date("x")], [None; 4]);
        assert_eq!(timestamp("1970-01-01 00:00:01.5", ' '), Some(1_500_000_000));
        assert_eq!(timestamp("1970-01-01T00:01", 'T'), Some(60_000_000_000));
        assert_eq!(timestamp("1970-01-01 24:00:00", ' '), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[-+0-9.eE:T ]{0,30}") {
            let _ = (decimal(&text, 38, 18), date(&text), time(&text), timestamp(&text, ' '));
        }

        #[test]
        fn plain_timestamps_are_read_as_others_are(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,10})?",
        ) {
            let (day, clock) = text.split_once(' ').unwrap();
            let both = date(day).zip(time(clock));
            let expected = both.map(|(day, clock)| i128::from(day) * 86_400_000_000_000 + i128::from(clock));
            prop_assert_eq!(timestamp(&text, ' '), expected);
        }

        #[test]
        fn integers_are_decimals(value in any::<i64>()) {
            prop_assert_eq!(decimal(&value.to_string(), 38, 3), Some(Some(i128::from(value) * 1000)));
        }
    }
}
