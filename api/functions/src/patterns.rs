//! Java's patterns of dates (`yyyy-MM-dd HH:mm:ss`): texts are made and read by them.

use std::fmt::Write;

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// What Flink assumes.
pub(crate) const USUAL: &str = "yyyy-MM-dd HH:mm:ss";

enum Piece {
    /// A letter, and how often.
    Field(char, usize),
    Literal(String),
}

/// A pattern, taken apart.
pub(crate) struct Pattern(Vec<Piece>);

impl Pattern {
    /// `None` if Java does not know it.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut chars = pattern.chars().peekable();
        let mut literal = String::new();
        while let Some(c) = chars.next() {
            if c == '\'' {
                if chars.next_if_eq(&'\'').is_some() {
                    literal.push('\'');
                    continue;
                }
                loop {
                    match chars.next()? {
                        '\'' if chars.next_if_eq(&'\'').is_some() => literal.push('\''),
                        '\'' => break,
                        other => literal.push(other),
                    }
                }
            } else if c.is_ascii_alphabetic() {
                if !"yuMLdDHhkKmsSnaEeQG".contains(c) {
                    return None;
                }
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                let mut count = 1;
                while chars.next_if_eq(&c).is_some() {
                    count += 1;
                }
                pieces.push(Piece::Field(c, count));
            } else {
                literal.push(c);
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Some(Self(pieces))
    }

    pub(crate) fn show(&self, at: NaiveDateTime, out: &mut String) {
        for piece in &self.0 {
            let (letter, count) = match piece {
                Piece::Literal(text) => {
                    out.push_str(text);
                    continue;
                }
                Piece::Field(letter, count) => (*letter, *count),
            };
            let number = match letter {
                'y' | 'u' if count == 2 => at.year().rem_euclid(100) as u32,
                'y' | 'u' => at.year().max(0) as u32,
                'M' | 'L' if count < 3 => at.month(),
                'M' | 'L' => {
                    let shown = at.format(if count == 3 { "%b" } else { "%B" });
                    let _ = write!(out, "{shown}");
                    continue;
                }
                'E' => {
                    let shown = at.format(if count <= 3 { "%a" } else { "%A" });
                    let _ = write!(out, "{shown}");
                    continue;
                }
                'a' => {
                    out.push_str(if at.hour() < 12 { "AM" } else { "PM" });
                    continue;
                }
                'G' => {
                    out.push_str(if at.year() > 0 { "AD" } else { "BC" });
                    continue;
                }
                'Q' if count >= 3 => {
                    let quarter = at.month0() / 3;
                    let _ = match count {
                        3 => write!(out, "Q{}", quarter + 1),
                        4 => write!(out, "{} quarter", ["1st", "2nd", "3rd", "4th"][quarter as usize]),
                        _ => write!(out, "{}", quarter + 1),
                    };
                    continue;
                }
                'S' => {
                    let nanos = format!("{:09}", at.nanosecond());
                    out.push_str(&nanos[..count.min(9)]);
                    continue;
                }
                'd' => at.day(),
                'D' => at.ordinal(),
                'H' => at.hour(),
                'k' => (at.hour() + 23) % 24 + 1,
                'h' => (at.hour() + 11) % 12 + 1,
                'K' => at.hour() % 12,
                'm' => at.minute(),
                's' => at.second(),
                'n' => at.nanosecond(),
                'Q' => at.month0() / 3 + 1,
                _ => at.weekday().num_days_from_sunday() + 1,
            };
            let _ = write!(out, "{number:0count$}");
        }
    }

    /// What is said by a text, all of it. A day behind a month's last is the last, as Java's smart resolver has it.
    pub(crate) fn read(&self, text: &str) -> Option<NaiveDateTime> {
        let (mut year, mut month, mut day, mut of_year) = (1970, 1u32, 1u32, None);
        let (mut hour, mut minute, mut second, mut nanos, mut is_afternoon) = (0u32, 0, 0, 0, None);
        let mut rest = text;
        for (at, piece) in self.0.iter().enumerate() {
            let (letter, count) = match piece {
                Piece::Literal(literal) => {
                    rest = rest.strip_prefix(literal.as_str())?;
                    continue;
                }
                Piece::Field(letter, count) => (*letter, *count),
            };
            match letter {
                'a' => {
                    let half = rest.get(..2)?.to_ascii_uppercase();
                    is_afternoon = Some(match half.as_str() {
                        "AM" => false,
                        "PM" => true,
                        _ => return None,
                    });
                    rest = &rest[2..];
                    continue;
                }
                'M' | 'L' if count >= 3 => {
                    let name = |month: u32| {
                        let name = NaiveDate::from_ymd_opt(2000, month, 1)?.format("%B").to_string();
                        Some(if count == 3 { name[..3].to_owned() } else { name })
                    };
                    let (found, name) =
                        (1..=12).filter_map(|at| Some((at, name(at)?))).find(|(_, name)| rest.starts_with(name))?;
                    month = found;
                    rest = &rest[name.len()..];
                    continue;
                }
                'E' => {
                    let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
                    rest = &rest[end..];
                    continue;
                }
                _ => {}
            }
            // Digits: exactly as many as letters if there are several, or if more digits follow at once.
            let is_next_number = matches!(self.0.get(at + 1), Some(Piece::Field(..)));
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let wanted = match (letter, count) {
                ('y' | 'u', 4..) if !is_next_number => digits,
                (_, 1) if !is_next_number => digits,
                _ => count,
            };
            if digits < wanted || wanted == 0 || wanted > 9 {
                return None;
            }
            let number: u32 = rest[..wanted].parse().ok()?;
            rest = &rest[wanted..];
            match letter {
                'y' | 'u' if count == 2 => year = 2000 + number as i32,
                'y' | 'u' => year = number as i32,
                'M' | 'L' => month = number,
                'd' => day = number,
                'D' => of_year = Some(number),
                'H' => hour = number,
                'k' => hour = number % 24,
                'h' | 'K' => hour = number % 12,
                'm' => minute = number,
                's' => second = number,
                'S' => nanos = number * 10u32.pow(9 - wanted as u32),
                'n' => nanos = number,
                _ => return None,
            }
        }
        if !rest.is_empty() || day > 31 {
            return None;
        }
        if is_afternoon == Some(true) {
            hour += 12;
        }
        let date = match of_year {
            Some(of_year) => NaiveDate::from_yo_opt(year, of_year)?,
            None => (0..4).find_map(|less| NaiveDate::from_ymd_opt(year, month, day.checked_sub(less)?))?,
        };
        Some(date.and_time(NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)?))
    }
}

/// A timestamp without a pattern: the usual one, with or without a fraction, or only a date. Behind the year one digit is
/// enough where two are usual.
pub(crate) fn read_usual(text: &str) -> Option<NaiveDateTime> {
    let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
    let nanos: u32 = match fraction {
        "" => 0,
        _ if fraction.len() <= 9 && fraction.bytes().all(|digit| digit.is_ascii_digit()) => {
            fraction.parse::<u32>().ok()? * 10u32.pow(9 - fraction.len() as u32)
        }
        _ => return None,
    };
    if text.split(['-', ' ', ':']).skip(1).any(|part| part.len() > 2) {
        return None;
    }
    let pattern = if text.contains(' ') { "yyyy-M-d H:m:s" } else { "yyyy-M-d" };
    Pattern::new(pattern)?.read(text)?.with_nanosecond(nanos)
}
