//! Auctions that are opened.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use flott_core::Result;
use flott_datagen::{Draws, below};

use crate::bid::price;
use crate::column::{ColumnKind, Rows};
use crate::config::NexmarkConfig;
use crate::course::{Course, Event, FIRST_ID, HOT_EVERY, is_hot};
use crate::text::{push_extra, push_text};

const FIRST_CATEGORY: i64 = 10;
const CATEGORIES: u64 = 5;

/// A column of `auction ROW<…>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuctionColumn {
    Id,
    ItemName,
    Description,
    InitialBid,
    Reserve,
    DateTime,
    Expires,
    Seller,
    Category,
    Extra,
}

impl AuctionColumn {
    pub(crate) const ALL: [(&'static str, ColumnKind, Self); 10] = [
        ("id", ColumnKind::Number, Self::Id),
        ("itemName", ColumnKind::Text, Self::ItemName),
        ("description", ColumnKind::Text, Self::Description),
        ("initialBid", ColumnKind::Number, Self::InitialBid),
        ("reserve", ColumnKind::Number, Self::Reserve),
        ("dateTime", ColumnKind::Time, Self::DateTime),
        ("expires", ColumnKind::Time, Self::Expires),
        ("seller", ColumnKind::Number, Self::Seller),
        ("category", ColumnKind::Number, Self::Category),
        ("extra", ColumnKind::Text, Self::Extra),
    ];
}

/// Draws for auctions' columns.
pub(crate) struct Auctions {
    course: Course,
    hot_sellers: u32,
    seller: Draws,
    category: Draws,
    initial_bid: Draws,
    reserve: Draws,
    expires: Draws,
    name: Draws,
    description: Draws,
    extra: Draws,
    bytes: u32,
}

impl Auctions {
    pub(crate) fn new(config: &NexmarkConfig) -> Self {
        let draws = |column| Draws::new(config.seed, column);
        Self {
            course: Course::new(config),
            hot_sellers: config.hot_sellers,
            seller: draws(16),
            category: draws(17),
            initial_bid: draws(18),
            reserve: draws(19),
            expires: draws(20),
            name: draws(21),
            description: draws(22),
            extra: draws(23),
            bytes: config.auction_bytes,
        }
    }

    pub(crate) fn column(&self, column: AuctionColumn, data_type: &DataType, rows: &Rows<'_>) -> Result<ArrayRef> {
        match column {
            AuctionColumn::Id => Ok(rows.numbers(|event| event.last_auction + FIRST_ID)),
            AuctionColumn::InitialBid => Ok(rows.numbers(|event| price(self.initial_bid.at(event.number)))),
            AuctionColumn::Reserve => {
                Ok(rows
                    .numbers(|event| price(self.initial_bid.at(event.number)) + price(self.reserve.at(event.number))))
            }
            AuctionColumn::DateTime => Ok(rows.times(data_type, |event| event.time_ms)),
            AuctionColumn::Expires => Ok(rows.times(data_type, |event| {
                let open_ms = below(self.expires.at(event.number), self.course.open_ms_max(event.number));
                event.time_ms.saturating_add(1 + open_ms as i64)
            })),
            AuctionColumn::Seller => {
                Ok(rows.numbers(|event| match is_hot(self.seller.at(event.number), self.hot_sellers) {
                    (true, _) => event.last_person / HOT_EVERY * HOT_EVERY + FIRST_ID,
                    (false, bits) => event.any_person(bits),
                }))
            }
            AuctionColumn::Category => {
                Ok(rows.numbers(|event| FIRST_CATEGORY + below(self.category.at(event.number), CATEGORIES) as i64))
            }
            AuctionColumn::ItemName => rows.texts(20, |out, event| self.push_name(out, event)),
            AuctionColumn::Description => rows.texts(60, |out, event| self.push_description(out, event)),
            AuctionColumn::Extra => {
                let mut others = Vec::new();
                rows.texts(self.bytes as usize, |out, event| {
                    others.clear();
                    self.push_name(&mut others, event);
                    self.push_description(&mut others, event);
                    push_extra(out, self.extra.at(event.number), 48 + others.len(), self.bytes);
                })
            }
        }
    }

    fn push_name(&self, out: &mut Vec<u8>, event: &Event) {
        push_text(out, &mut self.name.stream(event.number), 20, b' ');
    }

    fn push_description(&self, out: &mut Vec<u8>, event: &Event) {
        push_text(out, &mut self.description.stream(event.number), 100, b' ');
    }
}
