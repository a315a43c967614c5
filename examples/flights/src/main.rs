//! Hourly departures and mean delay per airport, in event time; flights that come too late for their hour go to a
//! side output.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use flott::Result;
use flott::filesystem::{FileSink, FileSource};
use flott::prelude::*;
use flott::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(clap::Args)]
struct Arguments {
    /// The flights, as scripts/fetch-flights.py prepares them
    #[arg(long, value_name = "FILE")]
    input: String,

    /// The folder for lines of `hour,origin,departures,mean delay`
    #[arg(long, value_name = "DIR")]
    output: String,

    /// The folder for flights that came too late for their hour, as they stand in the input
    #[arg(long, value_name = "DIR")]
    late: String,

    /// Reads no more than so many flights in a second
    #[arg(long, value_name = "N")]
    rows_per_second: Option<NonZeroU32>,
}

/// A row of the input.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Flight {
    /// The scheduled departure, in milliseconds since 1970.
    departure: Timestamp,
    origin: String,
    dest: String,
    carrier: String,
    flight: u32,
    /// In minutes; a cancelled flight has none.
    dep_delay: Option<i32>,
}

/// A row of the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hour {
    start: String,
    origin: String,
    departures: u32,
    mean_delay: String,
}

fn main() -> ExitCode {
    flott::run(build)
}

fn build(env: &StreamExecutionEnvironment, arguments: Arguments) -> Result<()> {
    // One subtask reads the file from end to end and sends the watermarks, so flights come in the order in which they
    // were reported, and the same ones are late in every run.
    let file = FileSource::<Flight>::csv(arguments.input).whole_files(true);
    let mut flights = env.from_source("Flights", file).uid("flights").set_parallelism(1);
    if let Some(rows_per_second) = arguments.rows_per_second {
        flights = flights.map(throttle(rows_per_second)).name("Throttle").set_parallelism(1);
    }
    let strategy =
        WatermarkStrategy::bounded_out_of_orderness(Duration::from_secs(3600), |flight: &Flight| flight.departure);
    let late = OutputTag::<Flight>::new("late");
    let hours = flights
        .assign_timestamps_and_watermarks(strategy)
        .uid("event time")
        .set_parallelism(1)
        .key_by_ref(|flight: &Flight| &flight.origin)
        .window(TumblingEventTimeWindows::of(Duration::from_secs(3600)))
        .side_output_late_data(&late)
        .aggregate_with(MeanDelay, |origin, window, delays| Hour {
            start: hour_utc(window.start),
            origin: origin.clone(),
            departures: delays.departures,
            mean_delay: delays.mean(),
        })
        .name("Hours")
        .uid("hours");
    hours.side_output(&late).sink_to(FileSink::csv(arguments.late).has_header(false)).name("Late").uid("late files");
    hours.sink_to(FileSink::csv(arguments.output).has_header(false)).name("Hourly").uid("hourly files");
    env.execute("flights").map(drop)
}

/// Lets so many rows pass in a second, in naps of about 10 ms.
fn throttle(rows_per_second: NonZeroU32) -> impl FnMut(Flight) -> Flight + Clone + Send + Sync + 'static {
    let rows_per_nap = (rows_per_second.get() / 100).max(1);
    let nap = Duration::from_secs(1) * rows_per_nap / rows_per_second.get();
    let mut rows = 0;
    move |flight| {
        rows += 1;
        if rows == rows_per_nap {
            rows = 0;
            std::thread::sleep(nap);
        }
        flight
    }
}

/// Departures and their delays; cancelled flights count for nothing.
#[derive(Clone, Copy)]
struct MeanDelay;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Delays {
    departures: u32,
    minutes: i64,
}

impl AggregateFunction<Flight> for MeanDelay {
    type Accumulator = Delays;
    type Output = Delays;

    fn create(&self) -> Delays {
        Delays::default()
    }

    fn add(&self, delays: &mut Delays, flight: Flight) {
        if let Some(delay) = flight.dep_delay {
            delays.departures += 1;
            delays.minutes += i64::from(delay);
        }
    }

    fn merge(&self, delays: &mut Delays, other: Delays) {
        delays.departures += other.departures;
        delays.minutes += other.minutes;
    }

    fn result(&self, delays: &Delays) -> Delays {
        *delays
    }
}

impl Delays {
    /// The mean in minutes with two decimals, halves rounded away from zero; empty without departures. In integers,
    /// so that it does not depend on the order of the flights.
    fn mean(self) -> String {
        if self.departures == 0 {
            return String::new();
        }
        let departures = u64::from(self.departures);
        let hundredths = (200 * self.minutes.unsigned_abs() + departures) / (2 * departures);
        let sign = if self.minutes < 0 && hundredths > 0 { "-" } else { "" };
        format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// An hour's start as people read it: `2013-01-01T05:00:00Z`. The date is the proleptic Gregorian one, counted in
/// eras of 400 years that begin in March.
fn hour_utc(start: Timestamp) -> String {
    let hours = start.div_euclid(3_600_000);
    let (days, hour) = (hours.div_euclid(24), hours.rem_euclid(24));
    let days = days + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153; // since March
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:00:00Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_have_two_decimals() {
        let mean = |departures, minutes| Delays { departures, minutes }.mean();
        assert_eq!(mean(0, 0), "");
        assert_eq!(mean(4, 9), "2.25");
        assert_eq!(mean(8, 1), "0.13");
        assert_eq!(mean(8, -1), "-0.13");
        assert_eq!(mean(1000, -1), "0.00");
        assert_eq!(mean(3, -5), "-1.67");
    }

    #[test]
    fn hours_are_dates() {
        assert_eq!(hour_utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(hour_utc(-1), "1969-12-31T23:00:00Z");
        assert_eq!(hour_utc(1_357_016_400_000), "2013-01-01T05:00:00Z");
        assert_eq!(hour_utc(951_782_400_000), "2000-02-29T00:00:00Z");
    }
}
