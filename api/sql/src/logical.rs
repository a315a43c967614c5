//! Queries as DataFusion's logical plans, with Flink's meaning.

pub mod nodes;
