//! `nexmark`: the events of an auction house, as the Nexmark suite for Flink makes them: people who register, auctions that
//! they open, and bids on these.
//!
//! The numbers, proportions and distributions are those of the reference generator (github.com/nexmark/nexmark), column by
//! column. What is different, on purpose:
//!
//! - An event is a function of its number, the seed and the time of the first event: the same options give the same events,
//!   whatever the parallelism is and however often the job starts again. The reference draws new ones each time.
//! - The first event has number 0, not 2. The bidder's number is shifted by 1000 once, as in Apache Beam: the reference does it
//!   twice, so that half of its bidders never register.
//! - The readers share one course of events. In the reference each has a course of its own at a part of the rate.
//!
//! ```
//! use std::sync::Arc;
//! use arrow::datatypes::{DataType, Field, Schema};
//! use flott_datagen::MakeRows;
//! use flott_nexmark::{NexmarkConfig, NexmarkTable};
//! let schema = Schema::new(vec![Field::new("event_type", DataType::Int32, true)]);
//! let table = NexmarkTable::new("events", &Arc::new(schema), &NexmarkConfig::default())?;
//! assert_eq!(table.make(0, &[0, 1, 2, 3, 4, 5])?.len(), 6);
//! # Ok::<(), flott_core::Error>(())
//! ```
//!
//! - [`NexmarkConfig`]: the options of the table; [`NexmarkTable`]: rows of it, for [`flott_datagen::RowsSource`]
//! - `course`: which event comes when, and who is there then; `text`: names and texts
//! - `auction`, `bid`, `person`: the columns of each kind of event

mod auction;
mod bid;
mod column;
mod config;
mod course;
mod person;
mod table;
mod text;

pub use config::NexmarkConfig;
pub use table::{NexmarkTable, wide_schema};
