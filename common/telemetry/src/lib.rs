//! What a process tells about itself: logs, counters, and metrics as Prometheus reads them.
//!
//! ```
//! use flott_core::ids::SubtaskId;
//! use flott_telemetry::TaskCounters;
//! let counters = TaskCounters::default();
//! counters.records_in.add(1024);
//! let metrics = counters.snapshot(SubtaskId { vertex: 1, index: 0 });
//! assert_eq!(metrics.records_in, 1024);
//! ```
//!
//! - [`init_tracing`]: logs to standard error, as text or JSON
//! - [`TaskCounters`]: the counters of one subtask, cheap enough for the hot path
//! - [`prometheus`]: the text format of `/metrics`
//!
//! It collects nothing by itself and opens no port: the workers send their counters with their
//! heartbeats, and the JobManager prints them.

mod counters;
mod logging;
pub mod prometheus;

pub use counters::{Counter, Gauge, StateFigures, StateGauge, TaskCounters};
pub use logging::init_tracing;
