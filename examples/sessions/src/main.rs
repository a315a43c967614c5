//! Sessions of the users of a web site, from a seeded stream of clicks: how long each lasted, and how many clicks it had.

use std::process::ExitCode;
use std::time::Duration;

use flott::Result;
use flott::datagen::GeneratorSource;
use flott::filesystem::FileSink;
use flott::prelude::*;
use flott::time::{Timestamp, parse_duration};
use serde::{Deserialize, Serialize};

/// 2024-01-01T00:00:00Z.
const START_MS: Timestamp = 1_704_067_200_000;

/// Event time between two clicks.
const CLICK_EVERY_MS: Timestamp = 15;

/// A click is up to so much behind its place in time. Watermarks allow for more than that, so none is late, and
/// sessions do not depend on how the generators get on.
const DISORDER_MS_MAX: Timestamp = 4_999;
const OUT_OF_ORDERNESS: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
struct Arguments {
    /// How many clicks there are
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    events: u64,

    /// How many users click
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    users: u64,

    /// Another seed gives other clicks
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,

    /// A session ends when its user does not click for so long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    gap: Duration,

    /// The folder for lines of `user,start,end,clicks`
    #[arg(long, value_name = "DIR")]
    output: String,

    /// Makes no more than so many clicks in a second
    #[arg(long, value_name = "N")]
    rows_per_second: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Click {
    user: u64,
    time: Timestamp,
}

/// A row of the result. Times are in milliseconds since 1970; the end is the last click and the gap.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    user: u64,
    start: Timestamp,
    end: Timestamp,
    clicks: u64,
}

fn main() -> ExitCode {
    flott::run(build)
}

fn build(env: &StreamExecutionEnvironment, arguments: Arguments) -> Result<()> {
    let Arguments { events, users, seed, gap, output, rows_per_second } = arguments;
    let mut clicks = GeneratorSource::new(move |index| click(index, users, seed)).count(events);
    if let Some(rate) = rows_per_second {
        clicks = clicks.rows_per_second(rate);
    }
    let strategy = WatermarkStrategy::bounded_out_of_orderness(OUT_OF_ORDERNESS, |click: &Click| click.time);
    env.from_generator(clicks)
        .name("Clicks")
        .uid("clicks")
        .assign_timestamps_and_watermarks(strategy)
        .uid("event time")
        .key_by_ref(|click: &Click| &click.user)
        .window(EventTimeSessionWindows::with_gap(gap))
        .aggregate_with(Clicks, |user, window, clicks| Session {
            user: *user,
            start: window.start,
            end: window.end,
            clicks,
        })
        .name("Sessions")
        .uid("sessions")
        .sink_to(FileSink::csv(output).has_header(false))
        .name("Files")
        .uid("files");
    env.execute("sessions").map(drop)
}

/// Click number `index`: the same whenever and wherever it is made.
fn click(index: u64, users: u64, seed: u64) -> Click {
    let random = split_mix(seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let (high, low) = (random >> 32, random & 0xFFFF_FFFF);
    let place = START_MS.saturating_add((index as i64).saturating_mul(CLICK_EVERY_MS));
    Click { user: high % users, time: place - low as i64 % (DISORDER_MS_MAX + 1) }
}

/// The output function of SplitMix64.
fn split_mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Counts the clicks of a session.
#[derive(Clone, Copy)]
struct Clicks;

impl AggregateFunction<Click> for Clicks {
    type Accumulator = u64;
    type Output = u64;

    fn create(&self) -> u64 {
        0
    }

    fn add(&self, clicks: &mut u64, _click: Click) {
        *clicks += 1;
    }

    fn merge(&self, clicks: &mut u64, other: u64) {
        *clicks += other;
    }

    fn result(&self, clicks: &u64) -> u64 {
        *clicks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_click_is_further_behind_than_watermarks_allow() {
        let mut highest = Timestamp::MIN;
        for index in 0..10_000 {
            let click = click(index, 7, 1);
            assert!(click.user < 7);
            assert!(click.time > highest.saturating_sub(OUT_OF_ORDERNESS.as_millis() as i64 + 1));
            highest = highest.max(click.time);
        }
    }
}
