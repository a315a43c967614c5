//! From logical plans to a compiled plan.
//!
//! - [`table`]: what is known of tables
//! - `rel`, `convert` and what they call: relations by column position, with time attributes, windows, keys and changes
//! - `share`: one aggregation for equal windows
//! - `changelog`: which operators must tell of rows before updates
//! - `emit`: operators and exchanges; `phases`: aggregates in two of them; `tables` and `reading`: how tables are read
//! - `names`, `explain`: how all that is shown; `state`: what operators keep

use std::collections::{BTreeMap, HashMap};

use datafusion::logical_expr::LogicalPlan;
use flott_core::time::parse_duration;
use flott_core::{Error, Result};
use flott_sql_runtime::local_time::LocalTime;
use flott_sql_runtime::spec::CompiledPlan;

mod aggregate;
mod calc;
mod call;
mod changelog;
mod convert;
mod emit;
mod explain;
mod expr;
mod join;
mod names;
mod order;
mod over;
mod phases;
mod reading;
mod rel;
mod share;
mod state;
pub mod table;
mod tables;
mod temporal;
#[cfg(test)]
mod tests;
mod window;

pub use explain::{Note, Outcome, Planned};
pub use phases::AggregatePhases;
pub use table::{Changelog, ColumnKind, SinkTable, TableColumn, TableInfo};

/// A query, and the table that its result is written to.
#[derive(Clone, Debug)]
pub struct SinkQuery {
    /// The query, optimised.
    pub plan: LogicalPlan,
    /// The table. For a SELECT by itself, one of the connector [`COLLECT`].
    pub sink: SinkTable,
}

/// The connector of the sink that a SELECT by itself has.
pub const COLLECT: &str = "__collect";

/// What settings of the session mean for planning.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The job's name.
    pub name: String,
    /// `execution.runtime-mode` = `batch`.
    pub is_batch: bool,
    /// `table.exec.state.ttl`; 0 for ever.
    pub state_ttl_ms: u64,
    /// `table.exec.source.idle-timeout`; 0 for never.
    pub idle_timeout_ms: u64,
    /// `table.exec.resource.default-parallelism`; `None` for that of the job.
    pub parallelism: Option<u32>,
    /// `parallelism.default`, if the session says it.
    pub job_parallelism: Option<u32>,
    /// `table.optimizer.agg-phase-strategy`.
    pub aggregate_phases: AggregatePhases,
    /// `table.optimizer.reuse-sub-plan-enabled`: whether queries with equal windows share an operator, whatever they aggregate.
    pub shares_windows: bool,
    /// `table.exec.source.cdc-events-duplicate`.
    pub cdc_events_duplicate: bool,
    /// `table.exec.sink.require-on-conflict`: whether a query whose key is not the sink's needs ON CONFLICT. Without it,
    /// and without the clause, the latest row of a key counts.
    pub requires_on_conflict: bool,
    /// `table.exec.async-lookup.timeout`.
    pub lookup_timeout_ms: u64,
    /// `table.exec.async-lookup.buffer-capacity`: how many requests to a table may be under way in a subtask.
    pub lookups_max: u32,
    /// All that was SET.
    pub config: BTreeMap<String, String>,
}

impl Settings {
    /// The meaning of what was SET.
    ///
    /// # Errors
    /// A value is not of its option's type: the message names both.
    pub fn new(config: &BTreeMap<String, String>) -> Result<Self> {
        let text = |key: &str| config.get(key).map(|value| value.trim());
        let wrong = |key: &str, value: &str, what: &str| Error::input(format!("SET '{key}' = '{value}' is not {what}"));
        let duration = |key: &str| match text(key) {
            None | Some("") => Ok(0),
            Some(value) => parse_duration(value)
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
                .map_err(|_| wrong(key, value, "a duration such as '1 h'")),
        };
        let truth = |key: &str, default: bool| match text(key) {
            None => Ok(default),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(wrong(key, value, "true or false")),
        };
        let is_batch = match text("execution.runtime-mode") {
            None => false,
            Some(mode) if mode.eq_ignore_ascii_case("streaming") => false,
            Some(mode) if mode.eq_ignore_ascii_case("batch") => true,
            Some(mode) => return Err(wrong("execution.runtime-mode", mode, "'streaming' or 'batch'")),
        };
        let count = |key: &str, value: &str| match value.parse::<u32>() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(wrong(key, value, "a number from 1")),
        };
        let parallelism = match text("table.exec.resource.default-parallelism") {
            None | Some("-1") => None,
            Some(value) => Some(count("table.exec.resource.default-parallelism", value)?),
        };
        let lookups_max = match text("table.exec.async-lookup.buffer-capacity") {
            None => 100,
            Some(value) => count("table.exec.async-lookup.buffer-capacity", value)?,
        };
        let lookup_timeout_ms = match duration("table.exec.async-lookup.timeout")? {
            0 => 180_000,
            timeout_ms => timeout_ms,
        };
        Ok(Self {
            name: text("pipeline.name").unwrap_or("sql").to_owned(),
            is_batch,
            state_ttl_ms: duration("table.exec.state.ttl")?,
            idle_timeout_ms: duration("table.exec.source.idle-timeout")?,
            parallelism,
            job_parallelism: text("parallelism.default").and_then(|value| value.parse().ok()),
            aggregate_phases: AggregatePhases::read(text(AggregatePhases::KEY))?,
            shares_windows: truth("table.optimizer.reuse-sub-plan-enabled", true)?,
            cdc_events_duplicate: truth("table.exec.source.cdc-events-duplicate", false)?,
            requires_on_conflict: truth("table.exec.sink.require-on-conflict", true)?,
            lookup_timeout_ms,
            lookups_max,
            config: config.clone(),
        })
    }
}

impl Settings {
    /// `table.local-time-zone`, unless that is UTC: windows of instants (TIMESTAMP_LTZ) are those of local time there.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn zone(&self) -> Result<Option<String>> {
        let zone = self.config.get("table.local-time-zone").map(|zone| zone.trim());
        let Some(zone) = zone.filter(|zone| *zone != "default") else { return Ok(None) };
        Ok((!LocalTime::new(Some(zone))?.is_utc()).then(|| zone.to_owned()))
    }
}

/// Makes one job of all queries. What they have in common is computed once.
///
/// # Errors
/// A query is not possible on streams, or its sink cannot take its changes: the message says what is and what to do.
pub fn compile(statements: &[SinkQuery], settings: &Settings) -> Result<CompiledPlan> {
    Ok(plan(statements, settings)?.plan)
}

/// The same, with what is known of each operator.
///
/// # Errors
/// As for [`compile`].
pub fn plan(statements: &[SinkQuery], settings: &Settings) -> Result<Planned> {
    let mut planner = Planner::new(settings);
    let mut sinks = Vec::new();
    for query in statements {
        let result = planner.convert(&query.plan, true)?;
        sinks.push(planner.sink(result, &query.sink)?);
    }
    let sinks = planner.share_windows(&sinks)?;
    planner.emit(&sinks)
}

/// Makes relations of logical plans, and operators of relations.
struct Planner<'a> {
    settings: &'a Settings,
    rels: Vec<rel::Rel>,
    known: HashMap<(String, Vec<rel::Id>), rel::Id>,
    /// How many relations have been made that are equal to no other.
    volatile: usize,
}
