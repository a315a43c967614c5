//! Durations, times, counts, names and tables for people.

use std::time::Duration;

use comfy_table::{Table, presets};
use flott_core::time::Timestamp;

/// Two units at most, such as `850 ms`, `12.3 s`, `4 min 05 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let (seconds, minutes, hours) = (duration.as_secs(), duration.as_secs() / 60, duration.as_secs() / 3600);
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        60..3_600 => format!("{minutes} min {:02} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{} d {:02} h", hours / 24, hours % 24),
    }
}

/// A duration as REST tells it.
pub(crate) fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Digits in groups of three.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A time in UTC, to the second.
pub(crate) fn utc(at_ms: Timestamp) -> String {
    let seconds = at_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin on 1 March, in eras of 400 of them: leap days are then the last days of years.
    let days_since_0000_03_01 = days + 719_468;
    let (era, day_of_era) = (days_since_0000_03_01.div_euclid(146_097), days_since_0000_03_01.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// A name that someone else chose, without characters that could steer the terminal.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// A word of a command as a shell takes it, in quotes if it needs them.
pub(crate) fn shell(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./:=,@%+".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A table without lines.
pub(crate) fn table(mut table: Table) -> String {
    table.load_preset(presets::NOTHING);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        let shown = |ms| duration(Duration::from_millis(ms));
        assert_eq!(shown(0), "0 ms");
        assert_eq!(shown(999), "999 ms");
        assert_eq!(shown(12_399), "12.3 s");
        assert_eq!(shown(59_999), "59.9 s");
        assert_eq!(shown(245_000), "4 min 05 s");
        assert_eq!(shown(7_380_000), "2 h 03 min");
        assert_eq!(shown(363_600_000), "4 d 05 h");
        assert_eq!(millis(-1), Duration::ZERO);
    }

    #[test]
    fn counts_have_groups() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "restart"), "1 restart");
        assert_eq!(counted(2_000, "restart"), "2,000 restarts");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(-1), "1969-12-31 23:59:59Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(utc(1_767_225_599_999), "2025-12-31 23:59:59Z");
        assert_eq!(utc(1_772_323_200_000), "2026-03-01 00:00:00Z");
    }

    #[test]
    fn words_are_quoted_for_a_shell_if_they_need_it() {
        assert_eq!(shell("s3://b/savepoint-1"), "s3://b/savepoint-1");
        assert_eq!(shell("two words"), "'two words'");
        assert_eq!(shell("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a?[2Jb?");
    }
}
