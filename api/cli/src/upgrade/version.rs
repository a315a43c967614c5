//! The new version of a job: what is submitted, and what is known of it before.

use std::path::{Path, PathBuf};

use flott_checkpoint::Manifest;
use flott_core::Result;
use flott_local::check::RestoreReport;
use flott_local::plan::Planned;

use super::by_hand::Start;
use crate::plan::PlanArgs;

/// What a version would make of a savepoint.
pub(crate) type Check<'a> = Box<dyn Fn(&Manifest) -> Result<RestoreReport> + 'a>;

/// What a job becomes.
pub(crate) struct NewVersion<'a> {
    /// The program that its workers run.
    pub(crate) binary: PathBuf,
    /// Its graph, and how workers build it.
    pub(crate) planned: Planned,
    /// Whether state that it does not claim may be dropped.
    pub(crate) allow_non_restored_state: bool,
    /// What it would make of a savepoint.
    pub(crate) check: Check<'a>,
    /// How users start it by hand.
    pub(crate) start: Start,
}

impl<'a> NewVersion<'a> {
    /// A binary, which is asked for its graph.
    pub(super) fn of_binary(binary: &'a Path, plan: &'a PlanArgs, allow_non_restored_state: bool) -> Result<Self> {
        Ok(Self {
            binary: binary.to_owned(),
            planned: plan.plan(binary)?,
            allow_non_restored_state,
            check: Box::new(move |manifest| plan.check(binary, manifest, allow_non_restored_state)),
            start: Start::of_binary(binary, plan),
        })
    }
}
