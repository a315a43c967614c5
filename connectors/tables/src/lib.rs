//! Formats of SQL tables: bytes to Arrow batches and back, with Flink's options and Flink's conversions.
//!
//! - [`column`]: values as text into columns; [`scalar`]: one value from its text
//! - [`json`], [`csv`]: formats, as decoders and encoders of [`flott_formats`]
//! - [`options`]: what stands in `WITH (…)`

pub mod column;
pub mod csv;
pub mod json;
pub mod options;
pub mod scalar;
