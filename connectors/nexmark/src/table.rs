//! The one wide table of all events.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use flott_chunk::{Chunk, batch_of};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_datagen::MakeRows;

use crate::auction::{AuctionColumn, Auctions};
use crate::bid::{BidColumn, Bids};
use crate::column::{ColumnKind, Rows};
use crate::config::NexmarkConfig;
use crate::course::{Course, Event, EventKind};
use crate::person::{People, PersonColumn};

/// Rows of `event_type INT, person ROW<…>, auction ROW<…>, bid ROW<…>`, or of those columns and fields that are wanted.
pub struct NexmarkTable {
    schema: SchemaRef,
    columns: Vec<Column>,
    course: Course,
    people: People,
    auctions: Auctions,
    bids: Bids,
}

/// All columns of the table, with all their fields.
pub fn wide_schema() -> Schema {
    fn row<C>(name: &str, all: &[(&str, ColumnKind, C)]) -> Field {
        let fields = all.iter().map(|(name, kind, _)| Field::new(*name, data_type(*kind), true));
        Field::new(name, DataType::Struct(fields.collect()), true)
    }
    Schema::new(vec![
        Field::new("event_type", DataType::Int32, true),
        row("person", &PersonColumn::ALL),
        row("auction", &AuctionColumn::ALL),
        row("bid", &BidColumn::ALL),
    ])
}

fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Number => DataType::Int64,
        ColumnKind::Time => DataType::Timestamp(TimeUnit::Millisecond, None),
        ColumnKind::Text => DataType::Utf8,
    }
}

enum Column {
    EventType,
    Person(Fields, Vec<PersonColumn>),
    Auction(Fields, Vec<AuctionColumn>),
    Bid(Fields, Vec<BidColumn>),
}

impl NexmarkTable {
    /// Rows of these columns; `table` is for messages.
    ///
    /// # Errors
    /// There is no such column, or it has another type.
    pub fn new(table: &str, schema: &SchemaRef, config: &NexmarkConfig) -> Result<Self> {
        let columns = schema.fields().iter().map(|field| column(table, field)).collect::<Result<_>>()?;
        Ok(Self {
            schema: Arc::clone(schema),
            columns,
            course: Course::new(config),
            people: People::new(config),
            auctions: Auctions::new(config),
            bids: Bids::new(config),
        })
    }
}

fn column(table: &str, field: &Field) -> Result<Column> {
    let name = field.name().as_str();
    let of = |what: &str| {
        Error::input(format!("table '{table}': the column '{name}' of the connector 'nexmark' should be {what}"))
    };
    match (name, field.data_type()) {
        ("event_type", DataType::Int32) => Ok(Column::EventType),
        ("event_type", _) => Err(of("INT")),
        ("person", DataType::Struct(fields)) => {
            Ok(Column::Person(fields.clone(), columns(table, name, fields, &PersonColumn::ALL)?))
        }
        ("auction", DataType::Struct(fields)) => {
            Ok(Column::Auction(fields.clone(), columns(table, name, fields, &AuctionColumn::ALL)?))
        }
        ("bid", DataType::Struct(fields)) => {
            Ok(Column::Bid(fields.clone(), columns(table, name, fields, &BidColumn::ALL)?))
        }
        ("person" | "auction" | "bid", _) => Err(of("ROW<…>")),
        _ => Err(Error::input(format!(
            "table '{table}': the connector 'nexmark' has no column '{name}'; it has event_type, person, auction, bid"
        ))),
    }
}

fn columns<C: Copy>(table: &str, row: &str, fields: &Fields, all: &[(&str, ColumnKind, C)]) -> Result<Vec<C>> {
    let column = |field: &Arc<Field>| {
        let name = field.name();
        let Some((_, kind, column)) = all.iter().find(|(known, _, _)| known == name) else {
            let names: Vec<&str> = all.iter().map(|(name, _, _)| *name).collect();
            return Err(Error::input(format!(
                "table '{table}': the column '{row}' of the connector 'nexmark' has no field '{name}'; it has {}",
                names.join(", ")
            )));
        };
        let (fits, what) = match kind {
            ColumnKind::Number => (*field.data_type() == DataType::Int64, "BIGINT"),
            ColumnKind::Text => (*field.data_type() == DataType::Utf8, "VARCHAR"),
            ColumnKind::Time => {
                (matches!(field.data_type(), DataType::Timestamp(TimeUnit::Millisecond, _)), "TIMESTAMP(3)")
            }
        };
        match fits {
            true => Ok(*column),
            false => Err(Error::input(format!(
                "table '{table}': the field '{row}.{name}' of the connector 'nexmark' should be {what}"
            ))),
        }
    };
    fields.iter().map(column).collect()
}

impl MakeRows for NexmarkTable {
    type Item = Chunk;

    fn make(&self, start_ms: Timestamp, numbers: &[u64]) -> Result<Chunk> {
        let events: Vec<Event> = numbers.iter().map(|&number| self.course.event(start_ms, number)).collect();
        let array = |column: &Column| match column {
            Column::EventType => {
                Ok(Arc::new(Int32Array::from_iter_values(events.iter().map(|event| event.kind as i32))) as ArrayRef)
            }
            Column::Person(fields, columns) => {
                let rows = Rows::of(&events, EventKind::Person);
                row(fields, columns, rows, |column, of, rows| self.people.column(column, of, rows))
            }
            Column::Auction(fields, columns) => {
                let rows = Rows::of(&events, EventKind::Auction);
                row(fields, columns, rows, |column, of, rows| self.auctions.column(column, of, rows))
            }
            Column::Bid(fields, columns) => {
                let rows = Rows::of(&events, EventKind::Bid);
                row(fields, columns, rows, |column, of, rows| self.bids.column(column, of, rows))
            }
        };
        let arrays = self.columns.iter().map(array).collect::<Result<_>>()?;
        Ok(Chunk::inserts(batch_of(&self.schema, arrays, numbers.len())?))
    }
}

fn row<C: Copy>(
    fields: &Fields,
    columns: &[C],
    rows: Rows<'_>,
    make: impl Fn(C, &DataType, &Rows<'_>) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let of = |(field, column): (&Arc<Field>, &C)| make(*column, field.data_type(), &rows);
    let arrays = fields.iter().zip(columns).map(of).collect::<Result<Vec<_>>>()?;
    let array = StructArray::try_new_with_length(fields.clone(), arrays, rows.nulls.clone(), rows.len());
    Ok(Arc::new(array.map_err(|error| Error::system(format!("making events: {error}")))?))
}

#[cfg(test)]
mod tests;
