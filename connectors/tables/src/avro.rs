//! `avro`: object container files, with Flink's options and the schemas that Flink derives of tables.
//!
//! Fields are found by their names; a field that a file does not have is null. A block belongs to the reader of the
//! byte range that it begins in.

mod container;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use arrow_avro::compression::CompressionCodec;
use flott_core::Result;

use crate::options::Options;

pub use read::AvroFormat;
pub use schema::avro_schema;
pub use write::AvroEncoder;

/// Flink's `avro.*` options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvroOptions {
    codec: Option<CompressionCodec>,
    /// Whether TIMESTAMP is `timestamp-millis`, as in Flink before 1.19, and TIMESTAMP_LTZ is not there.
    is_legacy: bool,
}

impl AvroOptions {
    /// Reads `avro.*`.
    pub fn read(options: &Options) -> Result<Self> {
        let codecs = [
            ("null", None),
            ("deflate", Some(CompressionCodec::Deflate)),
            ("snappy", Some(CompressionCodec::Snappy)),
            ("zstandard", Some(CompressionCodec::ZStandard)),
        ];
        Ok(Self {
            codec: options.choice("avro.codec", &codecs)?.unwrap_or(Some(CompressionCodec::Snappy)),
            is_legacy: options.flag("avro.timestamp_mapping.legacy", true)?,
        })
    }
}
