//! Aggregate functions of the program.
//!
//! What such a function keeps of a group are bytes, which are taken for its accumulator once a batch and group, not once a row.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use flott_core::{Error, Result};

use crate::expr::Functions;
use crate::spec::{AggregateFunction, AggregateSpec, OperatorSpec, OverFrame, TimeSpec, WindowSpec};

/// An aggregate function of the program.
pub trait UserAggregate: Send + Sync {
    /// The type of its result.
    fn result(&self) -> DataType;

    /// Whether rows can be taken back.
    fn can_retract(&self) -> bool;

    /// Whether what is kept of two groups can become one.
    fn can_merge(&self) -> bool;

    /// Takes rows into what is kept of their groups, or out of it. Empty bytes are a group without rows.
    ///
    /// # Errors
    /// The function failed, or what was kept cannot be read.
    fn update(&self, arguments: &[ArrayRef], rows: &[UserRow], groups: &mut [Vec<u8>]) -> Result<()>;

    /// Takes all that is kept of another group, whose rows come later.
    ///
    /// # Errors
    /// As for [`Self::update`].
    fn merge(&self, group: &mut Vec<u8>, later: &[u8]) -> Result<()>;

    /// The result of each group.
    ///
    /// # Errors
    /// As for [`Self::update`].
    fn results(&self, groups: &[Vec<u8>]) -> Result<ArrayRef>;
}

/// A row for an aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRow {
    /// Its place among the arguments.
    pub row: u32,
    /// The place of its group among those of the call.
    pub group: u32,
    /// Whether it comes, or goes.
    pub is_addition: bool,
}

/// Aggregate functions by name.
pub type UserAggregates = HashMap<String, Arc<dyn UserAggregate>>;

/// A function, by its name for messages.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) function: Arc<dyn UserAggregate>,
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Whether functions of the program can do what an operator asks of them.
///
/// # Errors
/// One cannot: the message says what it lacks.
pub fn check(operator: &OperatorSpec, functions: &Functions) -> Result<()> {
    let (aggregates, retracts, merges) = match operator {
        OperatorSpec::GroupAggregate(group) => (&group.aggregates, !group.is_insert_only, false),
        OperatorSpec::WindowAggregate(window) => {
            let has_panes = !matches!(window.time, TimeSpec::Window { .. });
            let merges = match window.window {
                WindowSpec::Tumble { .. } => false,
                WindowSpec::Hop { .. } | WindowSpec::Cumulate { .. } => has_panes,
                WindowSpec::Session { .. } => true,
            };
            (&window.aggregates, !window.is_insert_only, merges)
        }
        OperatorSpec::Over(over) => {
            let leaves = !matches!(over.frame, OverFrame::Rows(None) | OverFrame::Range(None));
            (&over.aggregates, leaves, false)
        }
        _ => return Ok(()),
    };
    for aggregate in aggregates {
        let AggregateFunction::User(name) = &aggregate.function else { continue };
        let function = find(name, functions)?;
        if retracts && !function.can_retract() {
            return Err(Error::input(format!(
                "{}: '{name}' takes no rows back, and rows are taken back here: implement its retract",
                aggregate.text
            )));
        }
        if merges && !function.can_merge() {
            return Err(Error::input(format!(
                "{}: '{name}' does not merge groups, and these windows are put together of parts: implement its merge",
                aggregate.text
            )));
        }
    }
    Ok(())
}

/// The function of a name.
pub(super) fn find(name: &str, functions: &Functions) -> Result<Arc<dyn UserAggregate>> {
    functions.aggregate(name).ok_or_else(|| {
        Error::input(format!("'{name}' cannot be computed: this program has no such aggregate function, so it is another than the one that planned the job"))
    })
}

/// The function of an aggregate, if it is one of the program.
pub(super) fn of(spec: &AggregateSpec, functions: &Functions) -> Result<Option<Named>> {
    let AggregateFunction::User(name) = &spec.function else { return Ok(None) };
    let function = find(name, functions)?;
    if function.result() != spec.result {
        return Err(Error::input(format!(
            "{}: '{name}' gives {}, and gave {} to the program that planned the job",
            spec.text,
            function.result(),
            spec.result
        )));
    }
    Ok(Some(Named { name: name.clone(), function }))
}
