//! Formats and connectors of SQL tables: bytes to Arrow batches and back, with Flink's options.
