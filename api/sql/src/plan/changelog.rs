//! Changelogs: which operators must tell of rows before updates, and which sinks can take what they get.

use std::sync::Arc;

use flott_core::{Error, Result};
use flott_sql_runtime::spec::{
    ConflictStrategy, JoinInput, OperatorSpec, OverInput, OverSpec, SinkMaterializeSpec, TopNInput,
};

use super::Planner;
use super::rel::{Id, Kinds, Op, Props};
use super::table::{Changelog, SinkTable};

/// What has been decided about `-U`.
pub(super) struct Changes {
    /// Whether somebody needs it of a relation.
    pub needed: Vec<bool>,
    /// Whether a relation tells it.
    pub told: Vec<bool>,
}

impl Planner<'_> {
    /// The result of a query, in its sink.
    ///
    /// # Errors
    /// The sink cannot take the result's changes.
    pub(super) fn sink(&mut self, result: Id, sink: &SinkTable) -> Result<Id> {
        let fields = self.fields(result);
        let types = |fields: &mut dyn Iterator<Item = &arrow::datatypes::DataType>| {
            fields.map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let is_same = fields.len() == sink.schema.fields().len()
            && fields.iter().zip(sink.schema.fields()).all(|(a, b)| a.data_type().equals_datatype(b.data_type()));
        if !is_same {
            return Err(Error::input(format!(
                "the query's columns are not those of '{}': it gives ({}), the table has ({})",
                sink.name,
                types(&mut fields.iter().map(|field| field.data_type())),
                types(&mut sink.schema.fields().iter().map(|field| field.data_type()))
            )));
        }
        let props = self.props(result).clone();
        let mut input = result;
        if !props.kinds.is_insert_only() {
            self.check_sink(result, sink)?;
            if !sink.primary_key.is_empty() && !is_by_key(&props, sink) {
                input = self.materialize(result, sink)?;
            }
        }
        let what = format!("Sink {}", sink.name);
        self.volatile += 1;
        let identity = format!("sink {}", self.volatile);
        let props = Props::plain(fields.len());
        Ok(self.add_distinct(Op::Sink(sink.clone()), &[input], fields, props, &what, &identity))
    }

    fn check_sink(&self, result: Id, sink: &SinkTable) -> Result<()> {
        let kinds = self.props(result).kinds;
        let changes = match (kinds.update, kinds.delete) {
            (true, true) => "updates and deletes",
            (true, false) => "updates",
            _ => "deletes",
        };
        match sink.changelog {
            Changelog::All => Ok(()),
            Changelog::Upsert if !sink.primary_key.is_empty() => Ok(()),
            Changelog::Upsert => Err(Error::input(format!(
                "'{}' takes {changes} by primary key, and has none: declare PRIMARY KEY (…) NOT ENFORCED",
                sink.name
            ))),
            Changelog::InsertOnly => {
                let maker = self.shown(self.maker(result))?;
                Err(Error::input(format!(
                    "'{}' can only be appended to, and {maker} makes {changes}: write to a table that takes them (an upsert or debezium-json one), aggregate by windows, or set 'execution.runtime-mode' = 'batch' for a final result",
                    sink.name
                )))
            }
        }
    }

    /// The operator that makes the changes that `id` passes on.
    fn maker(&self, id: Id) -> Id {
        let rel = &self.rels[id];
        let passes = match &rel.op {
            Op::Calc(_) | Op::Union => true,
            Op::Spec(OperatorSpec::Unnest { .. } | OperatorSpec::LookupJoin(_) | OperatorSpec::TemporalJoin(_)) => true,
            Op::Spec(OperatorSpec::WindowTable { .. } | OperatorSpec::Expand { .. }) => true,
            Op::Spec(OperatorSpec::Join(join)) => join.kind == flott_sql_runtime::spec::JoinKind::Inner,
            _ => false,
        };
        let source = rel.inputs.iter().find(|&&input| !self.props(input).kinds.is_insert_only());
        match source {
            Some(&source) if passes => self.maker(source),
            _ => id,
        }
    }

    /// One row for each primary key.
    fn materialize(&mut self, result: Id, sink: &SinkTable) -> Result<Id> {
        let props = self.props(result).clone();
        let name = |columns: &[usize]| {
            columns.iter().map(|&column| sink.schema.field(column).name().as_str()).collect::<Vec<_>>().join(", ")
        };
        // A key within the primary key: what is unique by the one is unique by the other.
        if props.is_unique_within(&sink.primary_key) {
            return Ok(result);
        }
        let conflict = match sink.on_conflict {
            Some(conflict) => conflict,
            None if !self.settings.requires_on_conflict => ConflictStrategy::Deduplicate,
            None => {
                let key = match props.keys.first() {
                    Some(key) => format!("is unique by ({})", name(key)),
                    None => "is unique by nothing".to_owned(),
                };
                return Err(Error::input(format!(
                    "the primary key of '{}' is ({}), and the query {key}: rows of different keys may overwrite each other. Say what counts: ON CONFLICT DO DEDUPLICATE (the latest; keeps all rows), DO ERROR or DO NOTHING",
                    sink.name,
                    name(&sink.primary_key)
                )));
            }
        };
        let spec = SinkMaterializeSpec {
            key: sink.primary_key.clone(),
            upsert_key: props.keys.first().cloned(),
            conflict,
            ttl_ms: self.settings.state_ttl_ms,
        };
        let what = format!("SinkMaterialize {:?} {:?} {:?}", spec.key, spec.upsert_key, spec.conflict);
        let mut after = Props::plain(self.width(result)).changing(Kinds::ALL);
        after.keys = vec![sink.primary_key.clone()];
        Ok(self.add(Op::Spec(OperatorSpec::SinkMaterialize(spec)), &[result], self.fields(result), after, &what))
    }

    /// Decides for all relations in use.
    pub(super) fn changes(&self, is_used: &[bool]) -> Changes {
        let mut needed = vec![false; self.rels.len()];
        for id in (0..self.rels.len()).rev().filter(|&id| is_used[id]) {
            for (index, &input) in self.rels[id].inputs.iter().enumerate() {
                needed[input] |= self.props(input).kinds.update && self.needs(id, index, needed[id]);
            }
        }
        let mut told = vec![false; self.rels.len()];
        for id in (0..self.rels.len()).filter(|&id| is_used[id]) {
            let rel = &self.rels[id];
            let passed = rel.inputs.iter().any(|&input| told[input]);
            told[id] = match &rel.op {
                Op::Scan(scan) => scan.table.changelog == Changelog::All && needed[id],
                Op::Calc(_) | Op::Union => passed,
                Op::Over(over, _) => matches!(over.input, OverInput::Changing { .. }) && needed[id],
                Op::Sink(_) => false,
                Op::Spec(spec) => match spec {
                    OperatorSpec::GroupAggregate(_)
                    | OperatorSpec::TopN(_)
                    | OperatorSpec::Deduplicate(_)
                    | OperatorSpec::ChangelogNormalize { .. } => rel.props.kinds.update && needed[id],
                    OperatorSpec::SinkMaterialize(_) => false,
                    _ => rel.props.kinds.update && passed,
                },
            };
        }
        Changes { needed, told }
    }

    /// Whether `id` needs `-U` of an input that has updates, if it is itself asked for it or not.
    fn needs(&self, id: Id, index: usize, is_asked: bool) -> bool {
        let rel = &self.rels[id];
        let props = self.props(rel.inputs[index]);
        match &rel.op {
            // A row that is updated so that it is not chosen any more goes by its `-U`.
            Op::Calc(calc) => is_asked || !props.is_chosen_by_key(&calc.condition),
            Op::Union | Op::Scan(_) => is_asked,
            Op::Over(..) => true,
            Op::Sink(sink) => match sink.changelog {
                Changelog::All => true,
                Changelog::Upsert => !is_by_key(props, sink),
                Changelog::InsertOnly => false,
            },
            Op::Spec(spec) => match spec {
                OperatorSpec::ChangelogNormalize { .. } => false,
                OperatorSpec::TopN(top) => !matches!(top.input, TopNInput::Improving(_)),
                OperatorSpec::Join(join) => {
                    let [left, right] = [0, 1].map(|index| self.props(rel.inputs[index]));
                    is_asked || !stays(&join.left, left) || !stays(&join.right, right) || join.condition.is_some()
                }
                OperatorSpec::TemporalJoin(_) if index == 1 => false,
                OperatorSpec::Expand { .. } | OperatorSpec::WindowTable { .. } | OperatorSpec::Unnest { .. } => {
                    is_asked
                }
                OperatorSpec::LookupJoin(_) | OperatorSpec::TemporalJoin(_) => is_asked,
                _ => true,
            },
        }
    }

    /// An operator with what has been decided about its changes.
    pub(super) fn decided(&self, id: Id, spec: &OperatorSpec, changes: &Changes) -> OperatorSpec {
        let mut spec = spec.clone();
        let inputs = &self.rels[id].inputs;
        let inserts = |index: usize| self.props(inputs[index]).kinds.is_insert_only();
        let needed = changes.needed[id];
        match &mut spec {
            OperatorSpec::GroupAggregate(group) => {
                (group.is_insert_only, group.with_update_before) = (inserts(0), needed);
            }
            OperatorSpec::WindowAggregate(window) => window.is_insert_only = inserts(0),
            OperatorSpec::LookupJoin(join) => join.is_insert_only = inserts(0),
            OperatorSpec::Over(OverSpec { input: OverInput::Changing { with_update_before }, .. }) => {
                *with_update_before = needed;
            }
            OperatorSpec::TopN(top) => top.with_update_before = needed,
            OperatorSpec::Deduplicate(deduplicate) => deduplicate.with_update_before = needed,
            OperatorSpec::ChangelogNormalize { with_update_before, .. } => *with_update_before = needed,
            OperatorSpec::Join(join) => {
                (join.left.is_insert_only, join.right.is_insert_only) = (inserts(0), inserts(1));
            }
            _ => {}
        }
        spec
    }

    /// Whether `id` can do nothing with `-U`. Where a row may go by it alone, sinks take it for a delete.
    pub(super) fn refuses_update_before(&self, id: Id) -> bool {
        match &self.rels[id].op {
            Op::Sink(sink) => {
                let may_go = self.props(self.rels[id].inputs[0]).kinds.delete;
                sink.changelog == Changelog::Upsert && !may_go && !self.needs(id, 0, false)
            }
            Op::Spec(OperatorSpec::TopN(top)) => matches!(top.input, TopNInput::Improving(_)),
            _ => false,
        }
    }

    /// How an operator is shown, for messages.
    fn shown(&self, id: Id) -> Result<String> {
        let rel = &self.rels[id];
        let inputs: Vec<_> = rel.inputs.iter().map(|&input| Arc::clone(&self.rels[input].schema)).collect();
        Ok(match &rel.op {
            Op::Spec(spec) => super::names::name(spec, &inputs, &rel.schema),
            Op::Over(spec, _) => super::names::name(&OperatorSpec::Over(spec.clone()), &inputs, &rel.schema),
            Op::Scan(scan) => format!("the table '{}'", scan.table.name),
            _ => "the query".to_owned(),
        })
    }
}

/// Whether updated rows have the same partners as before: their key has all columns of the join's in it.
pub(super) fn stays(input: &JoinInput, props: &Props) -> bool {
    let around = |key: &Vec<usize>| input.keys.iter().all(|column| key.contains(column));
    !props.kinds.update || input.unique_key.as_ref().is_some_and(around)
}

/// Whether rows of the sink's key are told in order: it is a key of the query.
fn is_by_key(props: &Props, sink: &SinkTable) -> bool {
    let is_primary = |key: &Vec<usize>| {
        key.len() == sink.primary_key.len() && key.iter().all(|column| sink.primary_key.contains(column))
    };
    !sink.primary_key.is_empty() && props.keys.iter().any(is_primary)
}
