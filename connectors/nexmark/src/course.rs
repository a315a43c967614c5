//! The course of events: which event comes when, and who and what is there then.

use flott_core::time::Timestamp;

use crate::config::NexmarkConfig;

/// The first number of a person, and of an auction.
pub(crate) const FIRST_ID: i64 = 1000;
/// So many people that will register soon are bidders already, and so many auctions that will be opened have bids.
pub(crate) const LEAD: u64 = 10;
/// Who is hot changes with every so many people, or auctions.
pub(crate) const HOT_EVERY: i64 = 100;
/// People who open auctions and bid.
const ACTIVE_PEOPLE: u64 = 1000;
/// Auctions that are open.
pub(crate) const OPEN_AUCTIONS: u64 = 100;

/// The kind of an event, with the numbers of `event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EventKind {
    Person = 0,
    Auction = 1,
    Bid = 2,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    people: u64,
    auctions: u64,
    total: u64,
    delay_us: f64,
}

/// An event that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Its number in the course.
    pub(crate) number: u64,
    pub(crate) kind: EventKind,
    /// When it is.
    pub(crate) time_ms: Timestamp,
    /// The last person there is, counted from 0.
    pub(crate) last_person: i64,
    /// The last auction there is, counted from 0; −1 before the first.
    pub(crate) last_auction: i64,
}

impl Course {
    pub(crate) fn new(config: &NexmarkConfig) -> Self {
        let (people, auctions) = (u64::from(config.person_proportion), u64::from(config.auction_proportion));
        Self {
            people,
            auctions,
            total: people + auctions + u64::from(config.bid_proportion),
            delay_us: 1_000_000.0 / f64::from(config.rate),
        }
    }

    /// How many events there are until the kinds of events come anew.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Milliseconds from the first event to event `number`.
    pub(crate) fn delay_ms(&self, number: u64) -> i64 {
        (number as f64 * self.delay_us) as i64 / 1000
    }

    /// Event `number`, if the first is at `start_ms`.
    pub(crate) fn event(&self, start_ms: Timestamp, number: u64) -> Event {
        let (round, offset) = (number / self.total, number % self.total);
        let (kind, last_person, last_auction) = if offset < self.people {
            (EventKind::Person, offset as i64, -1)
        } else if offset < self.people + self.auctions {
            (EventKind::Auction, self.people as i64 - 1, (offset - self.people) as i64)
        } else {
            (EventKind::Bid, self.people as i64 - 1, self.auctions as i64 - 1)
        };
        Event {
            number,
            kind,
            time_ms: start_ms.saturating_add(self.delay_ms(number)),
            last_person: (round * self.people) as i64 + last_person,
            last_auction: (round * self.auctions) as i64 + last_auction,
        }
    }

    /// The longest that an auction is open: twice as long as it takes to open all that are open at a time.
    pub(crate) fn open_ms_max(&self, number: u64) -> u64 {
        let events = OPEN_AUCTIONS * self.total / self.auctions;
        let horizon_ms = self.delay_ms(number.saturating_add(events)) - self.delay_ms(number);
        (horizon_ms * 2).max(1) as u64
    }
}

impl Event {
    /// One of the people that are active, drawn with 32 random bits.
    #[inline]
    pub(crate) fn any_person(&self, bits: u32) -> i64 {
        let people = self.last_person as u64 + 1;
        let active = people.min(ACTIVE_PEOPLE);
        (people - active + below32(bits, active + LEAD)) as i64 + FIRST_ID
    }
}

/// A number from 0 to `count - 1` made of 32 random bits.
#[inline]
pub(crate) fn below32(bits: u32, count: u64) -> u64 {
    (u64::from(bits) * count) >> 32
}

/// Draws twice with 64 random bits: whether it is the hot one, in all but one of `ratio` cases; and 32 bits more.
#[inline]
pub(crate) fn is_hot(bits: u64, ratio: u32) -> (bool, u32) {
    (below32(bits as u32, u64::from(ratio)) > 0, (bits >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_three_auctions_and_forty_six_bids() {
        let course = Course::new(&NexmarkConfig::default());
        let mut counts = [0; 3];
        let (mut people, mut auctions) = (-1, -1);
        for number in 0..5000 {
            let event = course.event(0, number);
            counts[event.kind as usize] += 1;
            people += i64::from(event.kind == EventKind::Person);
            auctions += i64::from(event.kind == EventKind::Auction);
            assert_eq!((event.last_person, event.last_auction), (people, auctions), "{event:?}");
        }
        assert_eq!(counts, [100, 300, 4600]);
    }

    #[test]
    fn time_goes_on_at_the_rate() {
        let course = Course::new(&NexmarkConfig { rate: 3, ..NexmarkConfig::default() });
        let times: Vec<i64> = (0..7).map(|number| course.event(1000, number).time_ms).collect();
        assert_eq!(times, [1000, 1333, 1666, 2000, 2333, 2666, 3000]);
        assert_eq!(course.event(0, 3_000_000_000).time_ms, 1_000_000_000_000);
    }
}
