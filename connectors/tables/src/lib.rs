//! Formats of SQL tables: bytes to Arrow batches and back, with Flink's options and Flink's conversions.
//!
//! - [`column`]: values as text into columns; [`scalar`]: one value from its text
//! - [`json`], [`csv`], [`raw`]: formats, as decoders and encoders of [`flott_formats`]; [`lines`]: what those of lines share
//! - [`options`]: what stands in `WITH (…)`

pub mod column;
pub mod csv;
pub mod json;
pub mod lines;
pub mod options;
pub mod raw;
pub mod scalar;
