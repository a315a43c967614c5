//! Aggregate functions: what is kept of a group of rows, how rows change it, and what it results in.
//!
//! Whoever aggregates keeps [`Accumulators`] in keyed state, one for each group. For a batch, those of its groups are loaded
//! into an [`Arena`], and the batch is [bound](Aggregates::bind): each column that is an argument is resolved and brought to
//! one of a few forms once. Then aggregates run one after the other over all rows, with no call and no allocation a row
//! where their state is of fixed size: COUNT, SUM, AVG, the deviations, and MIN and MAX of what never goes again.
//!
//! - [`plan`]: from the plan's aggregates to what runs; [`input`]: arguments of a batch
//! - [`grouping`]: which rows have the same key
//! - [`state`]: what is kept; [`rich`]: what has no fixed size; [`counts`]: values that are entries of their own;
//!   [`seen`]: distinct values that several aggregates share; [`sketch`]: distinct values, estimated;
//!   [`percentile`]: places among values
//! - [`user`]: functions of the program
//! - [`update`]: rows come and go; [`merge`]: groups become one; [`partial`]: in two phases; [`results`]: what comes out;
//!   [`json`]: as JSON
//!
//! Where Flink's results depend on the order of rows, or are wrong, these decisions hold:
//! - A sum of decimals is exact as long as it has 77 digits. It is NULL while it does not fit the result's type, and right
//!   again when it does; Flink goes on from whatever comes next.
//! - NaN loses against every number in MIN and MAX. In Flink that depends on which comes first.
//! - Rows that are taken back before they came are remembered, and count when they come.

pub mod counts;
pub mod grouping;
pub mod input;
pub mod json;
pub mod merge;
pub mod partial;
pub mod percentile;
pub mod plan;
pub mod results;
pub mod rich;
pub mod seen;
pub mod sketch;
pub mod state;
pub mod update;
pub mod user;

pub use input::Bound;
pub use plan::Aggregates;
pub use results::Results;
pub use state::{Accumulators, Arena};

#[cfg(test)]
mod tests;
