//! Streaming SQL at run time: operators over Arrow batches, and the compiled plan that says which.
//!
//! A SQL job is planned once. What comes out is a [`CompiledPlan`](spec::CompiledPlan): operators as plain data, with
//! expressions in DataFusion's binary form. It ships to the workers, which build a
//! [`Program`](flott_operators::Program) of it ([`program`]) and plan nothing again.
//!
//! What travels is a [`Chunk`]: an Arrow batch whose rows are changes of a dynamic table.
//!
//! - [`spec`]: the compiled plan
//! - [`exchange`]: chunks on channels
//! - [`row`]: rows and keys as bytes, for state; [`sort_key`]: bytes that compare as the rows do
//! - [`expr`]: expressions that ship
//! - [`changes`]: changes on their way out; [`touched`]: the keys that a chunk touches; [`time`]: time in rows;
//!   [`local_time`]: what clocks show; [`windows`]: windows and panes
//! - [`operator`]: what an operator implements
//! - [`aggregates`]: aggregate functions
//! - [`program`]: from a plan to a program; [`operators`]: one module each

pub mod aggregates;
pub mod changes;
pub mod exchange;
pub mod expr;
pub mod local_time;
pub mod operator;
pub mod operators;
pub mod program;
pub mod row;
pub mod sort_key;
pub mod spec;
pub mod time;
pub mod touched;
pub mod windows;

pub use flott_chunk::{Chunk, RowKind};
pub use operator::{Emit, TableOperator};
