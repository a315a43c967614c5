//! Bids on auctions.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use flott_core::Result;
use flott_datagen::{Draws, unit};

use crate::column::{ColumnKind, Rows};
use crate::config::NexmarkConfig;
use crate::course::{Event, FIRST_ID, HOT_EVERY, LEAD, OPEN_AUCTIONS, below32, is_hot};
use crate::text::{CHANNEL_TABLE, CHANNELS, HOT_CHANNELS, push_extra};

/// A column of `bid ROW<…>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BidColumn {
    Auction,
    Bidder,
    Price,
    Channel,
    Url,
    DateTime,
    Extra,
}

impl BidColumn {
    pub(crate) const ALL: [(&'static str, ColumnKind, Self); 7] = [
        ("auction", ColumnKind::Number, Self::Auction),
        ("bidder", ColumnKind::Number, Self::Bidder),
        ("price", ColumnKind::Number, Self::Price),
        ("channel", ColumnKind::Text, Self::Channel),
        ("url", ColumnKind::Text, Self::Url),
        ("dateTime", ColumnKind::Time, Self::DateTime),
        ("extra", ColumnKind::Text, Self::Extra),
    ];
}

/// Draws for bids' columns.
pub(crate) struct Bids {
    hot_auctions: u32,
    hot_bidders: u32,
    auction: Draws,
    bidder: Draws,
    price: Draws,
    channel: Draws,
    extra: Draws,
    bytes: u32,
}

impl Bids {
    pub(crate) fn new(config: &NexmarkConfig) -> Self {
        let draws = |column| Draws::new(config.seed, column);
        Self {
            hot_auctions: config.hot_auctions,
            hot_bidders: config.hot_bidders,
            auction: draws(32),
            bidder: draws(33),
            price: draws(34),
            channel: draws(35),
            extra: draws(36),
            bytes: config.bid_bytes,
        }
    }

    pub(crate) fn column(&self, column: BidColumn, data_type: &DataType, rows: &Rows<'_>) -> Result<ArrayRef> {
        let channels = &*CHANNEL_TABLE;
        match column {
            BidColumn::Auction => Ok(rows.numbers(|event| self.auction(event))),
            BidColumn::Bidder => Ok(rows.numbers(|event| self.bidder(event))),
            BidColumn::Price => Ok(rows.numbers(|event| price(self.price.at(event.number)))),
            BidColumn::DateTime => Ok(rows.times(data_type, |event| event.time_ms)),
            BidColumn::Channel => {
                rows.texts(12, |out, event| out.extend_from_slice(channels.name(self.channel(event))))
            }
            BidColumn::Url => rows.texts(72, |out, event| out.extend_from_slice(channels.url(self.channel(event)))),
            BidColumn::Extra => rows.texts(self.bytes as usize, |out, event| {
                push_extra(out, self.extra.at(event.number), 32, self.bytes);
            }),
        }
    }

    #[inline]
    fn auction(&self, event: &Event) -> i64 {
        let auction = match is_hot(self.auction.at(event.number), self.hot_auctions) {
            (true, _) => event.last_auction / HOT_EVERY * HOT_EVERY,
            (false, bits) => {
                let first = (event.last_auction - OPEN_AUCTIONS as i64).max(0);
                first + below32(bits, (event.last_auction - first) as u64 + 1 + LEAD) as i64
            }
        };
        auction + FIRST_ID
    }

    #[inline]
    fn bidder(&self, event: &Event) -> i64 {
        match is_hot(self.bidder.at(event.number), self.hot_bidders) {
            // Not the one who sells: see `crate::auction`.
            (true, _) => event.last_person / HOT_EVERY * HOT_EVERY + 1 + FIRST_ID,
            (false, bits) => event.any_person(bits),
        }
    }

    #[inline]
    fn channel(&self, event: &Event) -> usize {
        match is_hot(self.channel.at(event.number), 2) {
            (true, bits) => below32(bits, HOT_CHANNELS.len() as u64) as usize,
            (false, bits) => HOT_CHANNELS.len() + below32(bits, CHANNELS) as usize,
        }
    }
}

/// A price from 100 to 100,000,000: its logarithm is spread evenly.
#[inline]
pub(crate) fn price(bits: u64) -> i64 {
    /// Six powers of ten, as a power of e.
    const EXPONENT_MAX: f64 = 6.0 * std::f64::consts::LN_10;
    ((unit(bits) * EXPONENT_MAX).exp() * 100.0).round() as i64
}
