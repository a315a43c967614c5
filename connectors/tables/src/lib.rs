//! Formats of SQL tables: bytes to Arrow batches and back, with Flink's options and Flink's conversions.
//!
//! - [`column`]: values as text into columns; [`scalar`]: one value from its text
//! - [`json`], [`csv`], [`raw`]: formats, as decoders and encoders of [`flott_formats`]; [`lines`]: what those of lines share
//! - [`parquet`], [`avro`]: formats that are read in pieces; [`conform`]: their columns as those of tables
//! - [`options`]: what stands in `WITH (…)`
//! - [`lookup`]: connectors whose tables are asked for rows by key

pub mod avro;
pub mod column;
pub mod conform;
pub mod csv;
pub mod json;
pub mod lines;
pub mod lookup;
pub mod options;
pub mod parquet;
pub mod raw;
pub mod scalar;
#[cfg(test)]
mod testing;
