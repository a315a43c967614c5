//! When a partition is, by the text that its columns make.

use flott_core::{Error, Result};

use crate::define::{Zone, zone_of};
use crate::patterns::{Pattern, read_usual};

/// Reads times of partitions.
pub struct PartitionTime {
    pattern: Option<Pattern>,
    zone: Zone,
}

impl PartitionTime {
    /// Reads with a pattern of Java's, or as Flink does without one: `2024-01-01 10:00:00`, or only the day. Clocks are those of
    /// `zone`.
    ///
    /// # Errors
    /// Java knows no such pattern, or there is no such zone.
    pub fn new(pattern: Option<&str>, zone: &str) -> Result<Self> {
        let read = |text| Pattern::new(text).ok_or_else(|| Error::input(format!("'{text}' is no pattern of dates")));
        let zone = zone_of(zone).ok_or_else(|| Error::input(format!("there is no time zone '{zone}'")))?;
        Ok(Self { pattern: pattern.map(read).transpose()?, zone })
    }

    /// Milliseconds since 1970; `None` if the text is no such time.
    pub fn read_ms(&self, text: &str) -> Option<i64> {
        let at = match &self.pattern {
            Some(pattern) => pattern.read(text),
            None => read_usual(text),
        };
        Some(self.zone.to_utc(at?).and_utc().timestamp_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_zone() {
        let read = |pattern, zone, text| PartitionTime::new(pattern, zone).unwrap().read_ms(text);
        assert_eq!(read(None, "UTC", "1970-01-02"), Some(86_400_000));
        assert_eq!(read(None, "UTC", "1970-01-01 01:00:00"), Some(3_600_000));
        assert_eq!(read(Some("yyyyMMdd-HH"), "UTC", "19700101-02"), Some(7_200_000));
        assert_eq!(read(None, "Asia/Shanghai", "1970-01-01 08:00:00"), Some(0));
        assert_eq!(read(None, "UTC", "__DEFAULT_PARTITION__"), None);
        assert!(PartitionTime::new(Some("nonsense"), "UTC").is_err());
        assert!(PartitionTime::new(None, "Mars").is_err());
    }
}
