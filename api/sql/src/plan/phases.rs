//! Aggregates in two phases: `table.optimizer.agg-phase-strategy`.

use std::sync::Arc;

use arrow::datatypes::Schema;
use flott_core::hash::stable_hash;
use flott_core::{Error, Result};
use flott_sql_runtime::aggregates::Aggregates;
use flott_sql_runtime::aggregates::partial::partial_field;
use flott_sql_runtime::spec::{LocalAggregateSpec, OperatorSpec, TimeSpec, WindowSpec};

use super::emit::{Emitter, Port, Wish};
use super::rel::Id;

/// When rows are aggregated before they are sent by key, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AggregatePhases {
    /// Where it may pay: there are several subtasks.
    #[default]
    Auto,
    /// Never.
    One,
    /// Wherever aggregates can be merged.
    Two,
}

impl AggregatePhases {
    /// The key of the setting.
    pub(super) const KEY: &'static str = "table.optimizer.agg-phase-strategy";

    /// What a setting means.
    pub(super) fn read(value: Option<&str>) -> Result<Self> {
        let known = [("AUTO", Self::Auto), ("ONE_PHASE", Self::One), ("TWO_PHASE", Self::Two)];
        let Some(value) = value else { return Ok(Self::default()) };
        let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
        found
            .map(|(_, phases)| *phases)
            .ok_or_else(|| Error::input(format!("SET '{}' = '{value}' is not AUTO, ONE_PHASE or TWO_PHASE", Self::KEY)))
    }
}

/// What there is of an aggregate to be computed in front of the exchange.
fn local_of(op: &OperatorSpec) -> Option<LocalAggregateSpec> {
    match op {
        // A row may be taken back that is forgotten. It does not count then, which only who keeps the groups knows.
        OperatorSpec::GroupAggregate(group) if group.ttl_ms > 0 && !group.is_insert_only => None,
        OperatorSpec::GroupAggregate(group) => Some(LocalAggregateSpec {
            keys: group.keys.clone(),
            aggregates: group.aggregates.clone(),
            windows: None,
            zone: None,
            is_insert_only: group.is_insert_only,
        }),
        OperatorSpec::WindowAggregate(window) => match (window.window, &window.time) {
            // When a row comes decides on its window. And sessions are cut by the times of all rows.
            (_, TimeSpec::Processing) | (WindowSpec::Session { .. }, TimeSpec::Event(_)) => None,
            (_, time) => Some(LocalAggregateSpec {
                keys: window.keys.clone(),
                aggregates: window.aggregates.clone(),
                windows: Some((window.window, time.clone())),
                zone: window.zone.clone(),
                is_insert_only: window.is_insert_only,
            }),
        },
        _ => None,
    }
}

impl Emitter<'_, '_> {
    /// Puts the first phase in front of an aggregate, if it is to be computed in two. Returns what the aggregate reads then.
    pub(super) fn in_phases(
        &mut self,
        id: Id,
        op: &mut OperatorSpec,
        inputs: Vec<(Vec<Port>, Wish)>,
    ) -> Result<Vec<(Vec<Port>, Wish)>> {
        let settings = self.planner.settings;
        let is_wanted = match settings.aggregate_phases {
            AggregatePhases::One => false,
            AggregatePhases::Two => true,
            AggregatePhases::Auto => settings.parallelism.or(settings.job_parallelism).is_some_and(|count| count > 1),
        };
        let ([(ports, wish)], true) = (&inputs[..], is_wanted) else { return Ok(inputs) };
        let Some(local) = local_of(op) else { return Ok(inputs) };
        let stays = |port: &Port| match wish {
            Wish::Keys(keys) => self.infos[port.node].spread.as_ref() == Some(keys),
            Wish::One => self.infos[port.node].parallelism == Some(1),
            Wish::Any => true,
        };
        let Some(first) = ports.first().filter(|_| !ports.iter().any(stays)) else { return Ok(inputs) };
        let schema = Arc::clone(&self.planned.plan.nodes[first.node].schema);
        // Functions of the program are not there, nor are they merged: whoever calls one is computed in one phase.
        let aggregates = Aggregates::new(&local.aggregates, &schema, !local.is_insert_only);
        if !aggregates.is_ok_and(|aggregates| aggregates.are_mergeable()) {
            return Ok(inputs);
        }
        match op {
            OperatorSpec::GroupAggregate(group) => group.has_partials = true,
            OperatorSpec::WindowAggregate(window) => window.has_partials = true,
            _ => {}
        }
        let input = self.planner.rels[id].inputs[0];
        let mut rel = self.planner.rels[input].clone();
        rel.digest = stable_hash(&("Local", self.planner.rels[id].digest));
        let fields = schema.fields().iter().cloned().chain([partial_field()]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (ports, wish) = (ports.clone(), wish.clone());
        let told = self.changes.told[input];
        let node = self.node(OperatorSpec::LocalAggregate(local), schema, &[(ports, Wish::Any)], &rel, None, told)?;
        Ok(vec![(vec![self.port(node, input)], wish)])
    }
}
