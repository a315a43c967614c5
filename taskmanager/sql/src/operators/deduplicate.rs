//! `Deduplicate`: the first or the last row of a key.
//!
//! - [`last`]: the last by arrival or by event time; known at once, and replaced when a later one comes
//! - [`first`]: the first by arrival, known at once; by event time it is known when the watermark has passed it, so that what
//!   is put out never changes

mod first;
mod last;
#[cfg(test)]
mod tests;

use flott_chunk::Chunk;
use flott_core::{Error, Result};

use crate::operator::TableOperator;
use crate::program::OperatorContext;
use crate::spec::{DeduplicateSpec, TimeSpec};

/// Refuses rows that change.
fn check(chunk: &Chunk) -> Result<()> {
    match chunk.is_insert_only() {
        true => Ok(()),
        false => Err(Error::system("a deduplication was planned over rows that change")),
    }
}

/// Makes the operator for a spec.
pub fn make(spec: &DeduplicateSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    let time = match spec.time {
        TimeSpec::Event(column) => Some(column),
        TimeSpec::Processing => None,
        TimeSpec::Window { .. } => {
            return Err(Error::system("a deduplication by windows was planned as one without them"));
        }
    };
    Ok(match (spec.keeps_last, time) {
        (true, time) => Box::new(last::Last::new(spec, time, cx)?),
        (false, Some(time)) => Box::new(first::FirstByTime::new(spec, time, cx)?),
        (false, None) => Box::new(first::FirstToCome::new(spec, cx)?),
    })
}
