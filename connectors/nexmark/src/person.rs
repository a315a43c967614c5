//! People who register.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use flott_core::Result;
use flott_datagen::{Draws, below};

use crate::column::{ColumnKind, Rows};
use crate::config::NexmarkConfig;
use crate::course::{Event, FIRST_ID};
use crate::text::{push_extra, push_text};

const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
const CITIES: [&str; 10] =
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"];
const FIRST_NAMES: [&str; 11] =
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"];
const LAST_NAMES: [&str; 9] = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"];

/// A column of `person ROW<…>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PersonColumn {
    Id,
    Name,
    EmailAddress,
    CreditCard,
    City,
    State,
    DateTime,
    Extra,
}

impl PersonColumn {
    pub(crate) const ALL: [(&'static str, ColumnKind, Self); 8] = [
        ("id", ColumnKind::Number, Self::Id),
        ("name", ColumnKind::Text, Self::Name),
        ("emailAddress", ColumnKind::Text, Self::EmailAddress),
        ("creditCard", ColumnKind::Text, Self::CreditCard),
        ("city", ColumnKind::Text, Self::City),
        ("state", ColumnKind::Text, Self::State),
        ("dateTime", ColumnKind::Time, Self::DateTime),
        ("extra", ColumnKind::Text, Self::Extra),
    ];
}

/// Draws for people's columns.
pub(crate) struct People {
    name: Draws,
    email: Draws,
    card: Draws,
    place: Draws,
    extra: Draws,
    bytes: u32,
}

impl People {
    pub(crate) fn new(config: &NexmarkConfig) -> Self {
        let draws = |column| Draws::new(config.seed, column);
        let (name, email, card, place, extra) = (draws(0), draws(1), draws(2), draws(3), draws(4));
        Self { name, email, card, place, extra, bytes: config.person_bytes }
    }

    pub(crate) fn column(&self, column: PersonColumn, data_type: &DataType, rows: &Rows<'_>) -> Result<ArrayRef> {
        match column {
            PersonColumn::Id => Ok(rows.numbers(|event| event.last_person + FIRST_ID)),
            PersonColumn::DateTime => Ok(rows.times(data_type, |event| event.time_ms)),
            PersonColumn::Name => rows.texts(16, |out, event| self.push_name(out, event)),
            PersonColumn::EmailAddress => rows.texts(20, |out, event| self.push_email(out, event)),
            PersonColumn::CreditCard => rows.texts(20, |out, event| self.push_card(out, event)),
            PersonColumn::City => rows.texts(16, |out, event| out.extend_from_slice(self.city(event))),
            PersonColumn::State => rows.texts(2, |out, event| out.extend_from_slice(self.state(event))),
            PersonColumn::Extra => {
                let mut others = Vec::new();
                rows.texts(self.bytes as usize, |out, event| {
                    others.clear();
                    self.push_name(&mut others, event);
                    self.push_email(&mut others, event);
                    self.push_card(&mut others, event);
                    let bytes = 8 + others.len() + self.city(event).len() + self.state(event).len();
                    push_extra(out, self.extra.at(event.number), bytes, self.bytes);
                })
            }
        }
    }

    fn push_name(&self, out: &mut Vec<u8>, event: &Event) {
        let bits = self.name.at(event.number);
        out.extend_from_slice(FIRST_NAMES[below(bits, FIRST_NAMES.len() as u64) as usize].as_bytes());
        out.push(b' ');
        out.extend_from_slice(LAST_NAMES[below(bits << 32, LAST_NAMES.len() as u64) as usize].as_bytes());
    }

    fn push_email(&self, out: &mut Vec<u8>, event: &Event) {
        let mut stream = self.email.stream(event.number);
        push_text(out, &mut stream, 7, b' ');
        out.push(b'@');
        push_text(out, &mut stream, 5, b' ');
        out.extend_from_slice(b".com");
    }

    fn push_card(&self, out: &mut Vec<u8>, event: &Event) {
        let bits = self.card.at(event.number);
        for group in 0..4 {
            if group > 0 {
                out.push(b' ');
            }
            let number = below((bits >> (16 * group)) << 48, 10_000);
            out.extend([1000, 100, 10, 1].map(|unit| b'0' + (number / unit % 10) as u8));
        }
    }

    fn city(&self, event: &Event) -> &'static [u8] {
        CITIES[below(self.place.at(event.number), CITIES.len() as u64) as usize].as_bytes()
    }

    fn state(&self, event: &Event) -> &'static [u8] {
        STATES[below(self.place.at(event.number) << 32, STATES.len() as u64) as usize].as_bytes()
    }
}
