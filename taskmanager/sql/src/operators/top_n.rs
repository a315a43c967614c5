//! `Rank`: the first rows of each key in an order, as rows come and go.
//!
//! - [`bounded`]: of rows that are only inserted, or that only get better: no more than the first have to be kept
//! - [`full`]: of rows that may do anything: all are kept, in order
//! - [`ranks`]: what is put out when a list of first rows has become another one
//!
//! Rows that are equal in the order rank in the order in which they came. Unlike in Flink, nulls rank where the query says.

pub(crate) mod bounded;
mod full;
pub(crate) mod ranks;
#[cfg(test)]
mod tests;

use flott_core::Result;

use crate::operator::TableOperator;
use crate::program::OperatorContext;
use crate::spec::{TopNInput, TopNSpec};

/// Makes the operator for a spec.
pub fn make(spec: &TopNSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    Ok(match &spec.input {
        TopNInput::InsertOnly => Box::new(bounded::Bounded::new(spec, None, cx)?),
        TopNInput::Improving(key) => Box::new(bounded::Bounded::new(spec, Some(key), cx)?),
        TopNInput::Retract => Box::new(full::Full::new(spec, cx)?),
    })
}

/// `LIMIT` of rows that also change: the first of those that are there, by arrival.
pub fn limit(offset: u64, limit: u64, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    let spec = TopNSpec {
        partition: Vec::new(),
        order: Vec::new(),
        from: offset.saturating_add(1),
        to: offset.saturating_add(limit),
        with_rank: false,
        input: TopNInput::Retract,
        with_update_before: true,
        ttl_ms: 0,
        is_batch: false,
    };
    make(&spec, cx)
}
