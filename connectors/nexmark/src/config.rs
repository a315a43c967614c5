//! The options of a table, with the reference's names and defaults.

use flott_core::memory::parse_bytes;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_datagen::RowsSource;
use flott_tables::options::Options;
use flott_tables::scalar;

use crate::course::Course;
use crate::table::NexmarkTable;

/// What the events are like.
#[derive(Clone, Debug, PartialEq)]
pub struct NexmarkConfig {
    /// `first-event.rate`: events in a second of event time.
    pub rate: u32,
    /// `rate.limited`, or `max-emit-speed` = false: whether events come no faster than that.
    pub is_rate_limited: bool,
    /// `events.num` and `stop-at`: how many events there are; `None` for no end.
    pub events: Option<u64>,
    /// `person.proportion`: how many of `person + auction + bid` events are people.
    pub person_proportion: u32,
    /// `auction.proportion`
    pub auction_proportion: u32,
    /// `bid.proportion`
    pub bid_proportion: u32,
    /// `person.avg-size`, in bytes
    pub person_bytes: u32,
    /// `auction.avg-size`, in bytes
    pub auction_bytes: u32,
    /// `bid.avg-size`, in bytes
    pub bid_bytes: u32,
    /// `bid.hot-ratio.auctions`: all but one of so many bids are on the hot auction.
    pub hot_auctions: u32,
    /// `bid.hot-ratio.bidders`: all but one of so many bids are by the hot bidder.
    pub hot_bidders: u32,
    /// `auction.hot-ratio.sellers`: all but one of so many auctions are the hot seller's.
    pub hot_sellers: u32,
    /// `seed`, which the reference does not have: other seeds give other events.
    pub seed: u64,
    /// `base-time`, which the reference does not have: when the first event is; by default when the source is first started.
    pub base_time_ms: Option<Timestamp>,
}

impl Default for NexmarkConfig {
    fn default() -> Self {
        Self {
            rate: 10_000,
            is_rate_limited: false,
            events: None,
            person_proportion: 1,
            auction_proportion: 3,
            bid_proportion: 46,
            person_bytes: 200,
            auction_bytes: 500,
            bid_bytes: 100,
            hot_auctions: 2,
            hot_bidders: 4,
            hot_sellers: 4,
            seed: 0,
            base_time_ms: None,
        }
    }
}

impl NexmarkConfig {
    /// Reads `WITH (…)`, without `connector`.
    ///
    /// # Errors
    /// A value is wrong, or asks for what is not there: a rate that changes, or a source that stays after its last event.
    pub fn read(options: &Options) -> Result<Self> {
        let default = Self::default();
        let rate = positive(options, "first-event.rate", default.rate)?;
        if let Some(next) = options.number::<u32>("next-event.rate")?
            && next != rate
        {
            // The reference reads it, and goes on at the first rate.
            return Err(options.wrong(
                "next-event.rate",
                &next.to_string(),
                &format!("'first-event.rate', which is {rate}: a rate that changes is not there"),
            ));
        }
        options.choice("rate.shape", &[("SQUARE", ()), ("SINE", ())])?;
        options.duration("rate.period")?;
        if options.flag("keep-alive", false)? {
            return Err(options.wrong(
                "keep-alive",
                "true",
                "false: a source that stays after its last event is not there",
            ));
        }
        let is_rate_limited = options.flag("rate.limited", false)? || !options.flag("max-emit-speed", true)?;
        let all = options.number::<u64>("events.num")?.filter(|count| *count > 0);
        let stop = options.parsed("stop-at", "a number", |text| text.parse::<i64>().ok())?;
        let stop = stop.and_then(|count| u64::try_from(count).ok());
        let base_time = |text: &str| i64::try_from(scalar::timestamp(text, ' ')?.div_euclid(1_000_000)).ok();
        let config = Self {
            rate,
            is_rate_limited,
            events: [all, stop].into_iter().flatten().min(),
            person_proportion: options.number("person.proportion")?.unwrap_or(default.person_proportion),
            auction_proportion: options.number("auction.proportion")?.unwrap_or(default.auction_proportion),
            bid_proportion: options.number("bid.proportion")?.unwrap_or(default.bid_proportion),
            person_bytes: size(options, "person.avg-size", default.person_bytes)?,
            auction_bytes: size(options, "auction.avg-size", default.auction_bytes)?,
            bid_bytes: size(options, "bid.avg-size", default.bid_bytes)?,
            hot_auctions: positive(options, "bid.hot-ratio.auctions", default.hot_auctions)?,
            hot_bidders: positive(options, "bid.hot-ratio.bidders", default.hot_bidders)?,
            hot_sellers: positive(options, "auction.hot-ratio.sellers", default.hot_sellers)?,
            seed: options.number("seed")?.unwrap_or(default.seed),
            base_time_ms: options.parsed("base-time", "a time such as '2024-01-01 00:00:00'", base_time)?,
        };
        if config.person_proportion == 0 || config.auction_proportion == 0 {
            return Err(Error::input(format!(
                "table '{}': 'person.proportion' and 'auction.proportion' should be at least 1, since people open the auctions \
                 and bids need both",
                options.table()
            )));
        }
        Ok(config)
    }

    /// The source of a table's rows.
    pub fn source(&self, table: NexmarkTable) -> RowsSource<NexmarkTable> {
        let rate = self.is_rate_limited.then_some(f64::from(self.rate));
        // A block has events of every kind, so that all readers do.
        let block = Course::new(self).total();
        RowsSource::new(table).count(self.events).rows_per_second(rate).start_ms(self.base_time_ms).block(block)
    }
}

fn positive(options: &Options, key: &str, default: u32) -> Result<u32> {
    let parse = |text: &str| text.parse().ok().filter(|number| *number > 0);
    Ok(options.parsed(key, "a number of at least 1", parse)?.unwrap_or(default))
}

fn size(options: &Options, key: &str, default: u32) -> Result<u32> {
    /// More than that is not an event, and would be an overflow of a batch.
    const BYTES_MAX: u32 = 64 * 1024;
    let parse = |text: &str| u32::try_from(parse_bytes(text).ok()?).ok().filter(|bytes| *bytes <= BYTES_MAX);
    Ok(options.parsed(key, "a size of up to 64 kb such as '200b'", parse)?.unwrap_or(default))
}
