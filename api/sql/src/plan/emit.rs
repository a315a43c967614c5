//! Operators and exchanges of relations.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use flott_core::hash::stable_hash;
use flott_core::{Error, Result};
use flott_sql_runtime::expr::Asynchronous;
use flott_sql_runtime::program::kind_of;
use flott_sql_runtime::spec::{
    CompiledPlan, Exchange, JoinKind, OperatorSpec, PLAN_VERSION, PlanEdge, PlanNode, SinkSpec, WindowSpec,
};

use super::Planner;
use super::changelog::Changes;
use super::explain::{Note, Outcome, Planned};
use super::expr::{PExpr, all_of, as_column, in_order, remap, spec};
use super::names;
use super::rel::{Calc, Id, Kinds, Op, Rel, Time};
use super::table::{SinkTable, TableInfo};

/// Who sends a relation: an operator, and where the relation's columns are among its own.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub node: usize,
    pub columns: Vec<usize>,
    /// The relation: one of several, if they are a union.
    pub of: Id,
}

/// What an operator wants of an input's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing.
    Any,
    /// Those of a key together.
    Keys(Vec<usize>),
    /// All together.
    One,
}

/// What is known of an operator.
pub(super) struct Info {
    /// By which columns rows are spread over subtasks.
    pub spread: Option<Vec<usize>>,
    pub parallelism: Option<u32>,
    /// Whether the parallelism is the operator's own, so that others do not take it over.
    pub is_own: bool,
    pub kinds: Kinds,
    pub keys: Vec<Vec<usize>>,
}

/// All scans of one table.
pub(super) struct Group {
    pub table: Arc<TableInfo>,
    pub scans: Vec<Id>,
    pub node: Option<(usize, Vec<usize>)>,
}

pub(super) struct Emitter<'p, 'a> {
    pub planner: &'p Planner<'a>,
    pub changes: Changes,
    pub users: Vec<Vec<Id>>,
    pub groups: Vec<Group>,
    pub ports: HashMap<Id, Vec<Port>>,
    pub infos: Vec<Info>,
    pub uids: HashMap<String, usize>,
    pub planned: Planned,
}

impl Planner<'_> {
    /// The plan that computes these sinks.
    pub(super) fn emit(&self, sinks: &[Id]) -> Result<Planned> {
        let mut is_used = vec![false; self.rels.len()];
        for &sink in sinks {
            is_used[sink] = true;
        }
        let mut users = vec![Vec::new(); self.rels.len()];
        for id in (0..self.rels.len()).rev() {
            if is_used[id] {
                for &input in &self.rels[id].inputs {
                    is_used[input] = true;
                    users[input].push(id);
                }
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for id in (0..self.rels.len()).filter(|&id| is_used[id]) {
            if let Op::Scan(scan) = &self.rels[id].op {
                let is_same = |group: &&mut Group| {
                    group.table.name == scan.table.name && group.table.options == scan.table.options
                };
                match groups.iter_mut().find(is_same) {
                    Some(group) => group.scans.push(id),
                    None => groups.push(Group { table: Arc::clone(&scan.table), scans: vec![id], node: None }),
                }
            }
        }
        let plan = CompiledPlan {
            version: PLAN_VERSION,
            name: self.settings.name.clone(),
            nodes: Vec::new(),
            edges: Vec::new(),
            config: self.settings.config.clone(),
        };
        let mut emitter = Emitter {
            planner: self,
            changes: self.changes(&is_used),
            users,
            groups,
            ports: HashMap::new(),
            infos: Vec::new(),
            uids: HashMap::new(),
            planned: Planned { plan, notes: Vec::new(), results: self.outcomes(sinks) },
        };
        for id in (0..self.rels.len()).filter(|&id| is_used[id]) {
            let ports = emitter.relation(id)?;
            emitter.ports.insert(id, ports);
        }
        Ok(emitter.planned)
    }

    /// What is known of the rows that sinks get.
    fn outcomes(&self, sinks: &[Id]) -> Vec<Outcome> {
        let queries = sinks.iter().filter_map(|&sink| self.rels[sink].inputs.first());
        let outcome = |&query: &Id| {
            let props = self.props(query);
            let times = props.times.iter().enumerate();
            Outcome {
                is_insert_only: props.kinds.is_insert_only(),
                rowtimes: times.filter(|(_, time)| **time == Some(Time::Event)).map(|(column, _)| column).collect(),
            }
        };
        queries.map(outcome).collect()
    }
}

impl Emitter<'_, '_> {
    fn relation(&mut self, id: Id) -> Result<Vec<Port>> {
        let rel = self.planner.rels[id].clone();
        match &rel.op {
            Op::Scan(scan) => {
                let found = |group: &Group| group.scans.contains(&id);
                let group = self.groups.iter().position(found).ok_or_else(|| Error::system("a scan has no table"))?;
                let (node, declared) = self.table(group)?;
                let at = |column: &usize| declared.iter().position(|known| known == column).unwrap_or(0);
                Ok(vec![Port { node, columns: scan.columns.iter().map(at).collect(), of: id }])
            }
            Op::Union => Ok(rel.inputs.iter().flat_map(|input| self.ports[input].clone()).collect()),
            Op::Calc(calc) => self.calc(id, &rel, calc),
            Op::Over(over, refusal) => {
                if let Some(reason) = refusal {
                    return Err(Error::input(reason.clone()));
                }
                let spec = self.planner.decided(id, &OperatorSpec::Over(over.clone()), &self.changes);
                self.operator(id, &rel, spec)
            }
            Op::Spec(spec) => {
                let spec = self.planner.decided(id, spec, &self.changes);
                self.operator(id, &rel, spec)
            }
            Op::Sink(sink) => self.sink(id, &rel, sink),
        }
    }

    fn calc(&mut self, id: Id, rel: &Rel, calc: &Calc) -> Result<Vec<Port>> {
        let mut ports = self.ports[&rel.inputs[0]].clone();
        let mut calc = calc.clone();
        if let [port] = &ports[..] {
            // Only a calculation can take its columns from anywhere.
            let at = |index: usize| port.columns[index];
            let moved = |exprs: &[PExpr]| exprs.iter().map(|expr| remap(expr, &at)).collect::<Result<Vec<_>>>();
            calc = Calc { condition: moved(&calc.condition)?, projection: moved(&calc.projection)? };
        } else {
            ports = self.plain(rel.inputs[0])?;
        }
        let schema = self.schema(&ports);
        let is_identity = calc.condition.is_empty()
            && calc.projection.len() == schema.fields().len()
            && calc.projection.iter().enumerate().all(|(index, expr)| as_column(expr) == Some(index));
        if is_identity {
            // What is left of a calculation that chose columns of a table, if others read no more of it.
            return Ok(ports);
        }
        let mut condition = in_order(&calc.condition)?.map(|expr| spec(&expr, &schema)).transpose()?;
        if let (Some(condition), Some(all)) = (&mut condition, all_of(&calc.condition)) {
            condition.text = spec(&all, &schema)?.text;
        }
        let op = OperatorSpec::Calc {
            condition,
            projection: calc.projection.iter().map(|expr| spec(expr, &schema)).collect::<Result<_>>()?,
        };
        let spread = self.spread_through(&ports, &calc.projection);
        let node = self.node(op, Arc::clone(&rel.schema), &[(ports, Wish::Any)], rel, None, self.changes.told[id])?;
        self.infos[node].spread = spread;
        if calc.condition.iter().chain(&calc.projection).any(Asynchronous::is_called_by) {
            self.planned.notes[node].state = Some("rows whose calls are under way".to_owned());
        }
        Ok(vec![self.port(node, id)])
    }

    fn operator(&mut self, id: Id, rel: &Rel, mut op: OperatorSpec) -> Result<Vec<Port>> {
        let wishes = wishes(&op);
        let mut inputs = Vec::new();
        for (index, &input) in rel.inputs.iter().enumerate() {
            let mut ports = self.plain(input)?;
            if self.planner.refuses_update_before(id) && self.changes.told[input] {
                ports = self.without_update_before(ports)?;
            }
            inputs.push((ports, wishes.get(index).cloned().unwrap_or(Wish::Any)));
        }
        let inputs = self.in_phases(id, &mut op, inputs)?;
        let parallelism = match &op {
            OperatorSpec::Values { .. } => Some(1),
            _ => None,
        };
        let node = self.node(op, Arc::clone(&rel.schema), &inputs, rel, parallelism, self.changes.told[id])?;
        Ok(vec![self.port(node, id)])
    }

    fn sink(&mut self, id: Id, rel: &Rel, sink: &SinkTable) -> Result<Vec<Port>> {
        let input = rel.inputs[0];
        let mut ports = self.plain(input)?;
        if self.planner.refuses_update_before(id) && self.changes.told[input] {
            ports = self.without_update_before(ports)?;
        }
        let parallelism = parallelism_of(&sink.options, "sink.parallelism", &sink.name)?;
        let spec = SinkSpec {
            table: sink.name.clone(),
            options: sink.options.clone(),
            table_schema: Arc::clone(&sink.schema),
            metadata: sink.metadata.clone(),
            partition_keys: sink.partition_keys.clone(),
            primary_key: sink.primary_key.clone(),
            is_overwrite: sink.is_overwrite,
            is_batch: self.planner.settings.is_batch,
        };
        let kinds = self.planner.props(input).kinds;
        let mut wish = Wish::Any;
        if let Some(parallelism) = parallelism
            && ports.iter().any(|port| self.infos[port.node].parallelism != Some(parallelism))
            && !sink.primary_key.is_empty()
            && !kinds.is_insert_only()
        {
            wish = Wish::Keys(sink.primary_key.clone());
        }
        // Named by its table alone: what has been written is to be committed, whatever is written next.
        let rel = Rel { digest: stable_hash(&("Sink", &sink.name)), ..rel.clone() };
        let schema = self.planner.schema(input);
        let op = OperatorSpec::Sink(spec.clone());
        let node = self.node(op, schema, &[(ports, wish)], &rel, parallelism, false)?;
        self.planned.notes[node].changelog = "NONE".to_owned();
        if let Some(told) = crate::connect::commits(&spec) {
            self.planned.plan.nodes[node].schema = Arc::clone(&told);
            let rel = Rel { digest: stable_hash(&("Commit", &sink.name)), ..rel };
            let ports = vec![self.port(node, id)];
            let committer = self.node(OperatorSpec::Commit(spec), told, &[(ports, Wish::One)], &rel, None, false)?;
            self.planned.notes[committer].changelog = "NONE".to_owned();
            return Ok(vec![self.port(committer, id)]);
        }
        Ok(vec![self.port(node, id)])
    }

    /// The senders of a relation, with no other columns than its own.
    fn plain(&mut self, id: Id) -> Result<Vec<Port>> {
        let ports = self.ports[&id].clone();
        let mut plain = Vec::new();
        for port in ports {
            let schema = Arc::clone(&self.planned.plan.nodes[port.node].schema);
            let is_plain = port.columns.len() == schema.fields().len()
                && port.columns.iter().enumerate().all(|(index, column)| index == *column);
            if is_plain {
                plain.push(port);
                continue;
            }
            let exprs: Vec<PExpr> = port.columns.iter().map(|&index| super::expr::column(index)).collect();
            let projection = exprs.iter().map(|expr| spec(expr, &schema)).collect::<Result<_>>()?;
            let spread = self.spread_through(std::slice::from_ref(&port), &exprs);
            let fields: Vec<_> = port.columns.iter().map(|&index| schema.fields()[index].clone()).collect();
            let of = port.of;
            let told = self.changes.told[of];
            let mut rel = self.planner.rels[of].clone();
            rel.digest = stable_hash(&("Columns", rel.digest, &port.columns));
            let op = OperatorSpec::Calc { condition: None, projection };
            let node = self.node(op, Arc::new(Schema::new(fields)), &[(vec![port], Wish::Any)], &rel, None, told)?;
            self.infos[node].spread = spread;
            plain.push(self.port(node, of));
        }
        if self.ports[&id].len() == 1 {
            // Others that need it take it from here.
            self.ports.insert(id, plain.clone());
        }
        Ok(plain)
    }

    fn without_update_before(&mut self, ports: Vec<Port>) -> Result<Vec<Port>> {
        let mut dropped = Vec::new();
        for port in ports {
            let schema = Arc::clone(&self.planned.plan.nodes[port.node].schema);
            let of = port.of;
            if !self.changes.told[of] {
                dropped.push(port);
                continue;
            }
            let mut rel = self.planner.rels[of].clone();
            rel.digest = stable_hash(&("DropUpdateBefore", rel.digest));
            let spread = self.infos[port.node].spread.clone();
            let node =
                self.node(OperatorSpec::DropUpdateBefore, schema, &[(vec![port], Wish::Any)], &rel, None, false)?;
            self.infos[node].spread = spread;
            dropped.push(self.port(node, of));
        }
        Ok(dropped)
    }

    pub(super) fn port(&self, node: usize, of: Id) -> Port {
        Port { node, columns: (0..self.planned.plan.nodes[node].schema.fields().len()).collect(), of }
    }

    fn schema(&self, ports: &[Port]) -> SchemaRef {
        Arc::clone(&self.planned.plan.nodes[ports[0].node].schema)
    }

    /// Where the columns are by which rows are spread, after columns were computed.
    fn spread_through(&self, ports: &[Port], projection: &[PExpr]) -> Option<Vec<usize>> {
        let [port] = ports else { return None };
        let spread = self.infos[port.node].spread.as_ref()?;
        let to = |column: &usize| projection.iter().position(|expr| as_column(expr) == Some(*column));
        spread.iter().map(to).collect()
    }

    /// Adds an operator, and the edges to it.
    pub(super) fn node(
        &mut self,
        op: OperatorSpec,
        schema: SchemaRef,
        inputs: &[(Vec<Port>, Wish)],
        rel: &Rel,
        parallelism: Option<u32>,
        told: bool,
    ) -> Result<usize> {
        let default = self.planner.settings.parallelism;
        let parallelism = match inputs {
            _ if parallelism.is_some() => parallelism,
            _ if inputs.iter().any(|(_, wish)| *wish == Wish::One) => Some(1),
            _ if inputs.is_empty() || inputs.iter().any(|(_, wish)| *wish != Wish::Any) => default,
            _ => {
                let mut all = inputs.iter().flat_map(|(ports, _)| ports).map(|port| match &self.infos[port.node] {
                    info if info.is_own => default,
                    info => info.parallelism,
                });
                let first = all.next().unwrap_or(default);
                if all.all(|other| other == first) { first } else { default }
            }
        };
        let mut passed: Vec<Vec<Port>> = inputs.iter().map(|(ports, _)| ports.clone()).collect();
        let mut seen = BTreeSet::new();
        for ports in &mut passed {
            for port in ports {
                // Two edges between the same two operators cannot be told apart.
                if !seen.insert(port.node) {
                    port.node = self.copy(port.node)?;
                }
            }
        }
        let schemas: Vec<SchemaRef> =
            passed.iter().filter(|ports| !ports.is_empty()).map(|ports| self.schema(ports)).collect();
        let name = names::name(&op, &schemas, &schema);
        let kind = kind_of(&op);
        let target = self.planned.plan.nodes.len();
        let mut edges = Vec::new();
        for (input, (ports, (_, wish))) in passed.iter().zip(inputs).enumerate() {
            for port in ports {
                let exchange = self.exchange(port.node, wish, parallelism);
                edges.push(PlanEdge { source: port.node, target, input: input as u8, exchange });
            }
        }
        let uid = self.uid(format!("{kind}-{:016x}", rel.digest));
        self.infos.push(Info {
            spread: spread_by(&op, &passed, inputs, &self.infos),
            parallelism,
            is_own: false,
            kinds: rel.props.kinds,
            keys: rel.props.keys.clone(),
        });
        let changelog = changelog_text(rel.props.kinds, told);
        self.planned.notes.push(Note::new(&op, &name, changelog, self.planner.settings));
        self.planned.plan.nodes.push(PlanNode { uid, name, operator: op, schema, parallelism });
        self.planned.plan.edges.extend(edges);
        Ok(target)
    }

    fn exchange(&self, source: usize, wish: &Wish, parallelism: Option<u32>) -> Exchange {
        let info = &self.infos[source];
        match wish {
            Wish::One if info.parallelism == Some(1) => Exchange::Forward,
            Wish::One => Exchange::Global,
            Wish::Keys(keys) if info.spread.as_ref() == Some(keys) && info.parallelism == parallelism => {
                Exchange::Forward
            }
            Wish::Keys(keys) => Exchange::Hash(keys.clone()),
            Wish::Any if info.parallelism == parallelism => Exchange::Forward,
            Wish::Any if info.kinds.is_insert_only() => Exchange::Rebalance,
            // The changes of a row stay in order.
            Wish::Any => match info.keys.iter().find(|key| !key.is_empty()) {
                Some(key) => Exchange::Hash(key.clone()),
                None => Exchange::Global,
            },
        }
    }

    /// An operator that passes on what `node` sends.
    fn copy(&mut self, node: usize) -> Result<usize> {
        let schema = Arc::clone(&self.planned.plan.nodes[node].schema);
        let projection = (0..schema.fields().len())
            .map(|index| spec(&super::expr::column(index), &schema))
            .collect::<Result<_>>()?;
        let target = self.planned.plan.nodes.len();
        let op = OperatorSpec::Calc { condition: None, projection };
        let name = names::name(&op, &[Arc::clone(&schema)], &schema);
        let uid = self.uid(format!("Copy-{:016x}", stable_hash(&self.planned.plan.nodes[node].uid)));
        let info = &self.infos[node];
        let parallelism = info.parallelism;
        self.infos.push(Info {
            spread: info.spread.clone(),
            parallelism,
            is_own: info.is_own,
            kinds: info.kinds,
            keys: info.keys.clone(),
        });
        let changelog = self.planned.notes[node].changelog.clone();
        self.planned.notes.push(Note { changelog, ..Note::default() });
        self.planned.plan.nodes.push(PlanNode { uid, name, operator: op, schema, parallelism });
        self.planned.plan.edges.push(PlanEdge { source: node, target, input: 0, exchange: Exchange::Forward });
        Ok(target)
    }

    /// The first to want a uid has it, others get a number behind it.
    fn uid(&mut self, wanted: String) -> String {
        let count = self.uids.entry(wanted.clone()).or_default();
        *count += 1;
        if *count == 1 { wanted } else { format!("{wanted}-{count}") }
    }
}

/// What each input of an operator is wanted by.
fn wishes(op: &OperatorSpec) -> Vec<Wish> {
    let by = |keys: &[usize]| if keys.is_empty() { Wish::One } else { Wish::Keys(keys.to_vec()) };
    match op {
        OperatorSpec::WindowTable { window: WindowSpec::Session { .. }, partition, .. } => vec![by(partition)],
        OperatorSpec::GroupAggregate(group) => vec![by(&group.keys)],
        OperatorSpec::WindowAggregate(window) => vec![by(&window.keys)],
        OperatorSpec::Over(over) => vec![by(&over.partition)],
        OperatorSpec::TopN(top) => vec![by(&top.partition)],
        OperatorSpec::Deduplicate(deduplicate) => vec![by(&deduplicate.partition)],
        OperatorSpec::WindowTopN(top) => vec![by(&top.partition)],
        OperatorSpec::Join(join) => vec![by(&join.left.keys), by(&join.right.keys)],
        OperatorSpec::IntervalJoin(join) => vec![by(&join.left_keys), by(&join.right_keys)],
        OperatorSpec::WindowJoin(join) => vec![by(&join.left_keys), by(&join.right_keys)],
        OperatorSpec::TemporalJoin(join) => vec![by(&join.left_keys), by(&join.right_keys)],
        OperatorSpec::ChangelogNormalize { key, .. } => vec![by(key)],
        OperatorSpec::SinkMaterialize(materialize) => vec![by(&materialize.key)],
        OperatorSpec::TemporalSort { .. } | OperatorSpec::Sort { .. } | OperatorSpec::Limit { .. } => vec![Wish::One],
        _ => vec![Wish::Any],
    }
}

/// By which columns of its output an operator's rows are spread.
fn spread_by(
    op: &OperatorSpec,
    ports: &[Vec<Port>],
    inputs: &[(Vec<Port>, Wish)],
    infos: &[Info],
) -> Option<Vec<usize>> {
    let keys = |index: usize| match inputs.get(index) {
        Some((_, Wish::Keys(keys))) => Some(keys.clone()),
        _ => None,
    };
    match op {
        OperatorSpec::GroupAggregate(group) if !group.keys.is_empty() => Some((0..group.keys.len()).collect()),
        OperatorSpec::WindowAggregate(window) if !window.keys.is_empty() => Some((0..window.keys.len()).collect()),
        OperatorSpec::Over(_)
        | OperatorSpec::TopN(_)
        | OperatorSpec::Deduplicate(_)
        | OperatorSpec::WindowTopN(_)
        | OperatorSpec::ChangelogNormalize { .. }
        | OperatorSpec::SinkMaterialize(_)
        | OperatorSpec::TemporalJoin(_) => keys(0),
        OperatorSpec::Join(join) => of_join(join.kind, keys(0)),
        OperatorSpec::IntervalJoin(join) => of_join(join.kind, keys(0)),
        OperatorSpec::WindowJoin(join) => of_join(join.kind, keys(0)),
        OperatorSpec::Watermark(_)
        | OperatorSpec::WindowTable { .. }
        | OperatorSpec::Unnest { .. }
        | OperatorSpec::LookupJoin(_) => match ports {
            [only] => match &only[..] {
                [port] => keys(0).or_else(|| infos[port.node].spread.clone()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Rows without a left one have nulls for its key, wherever they are.
fn of_join(kind: JoinKind, left: Option<Vec<usize>>) -> Option<Vec<usize>> {
    if matches!(kind, JoinKind::Right | JoinKind::Full) { None } else { left }
}

pub(super) fn parallelism_of(
    options: &std::collections::BTreeMap<String, String>,
    key: &str,
    table: &str,
) -> Result<Option<u32>> {
    match options.get(key).map(|text| (text, text.trim().parse())) {
        None => Ok(None),
        Some((_, Ok(parallelism))) if parallelism > 0 => Ok(Some(parallelism)),
        Some((text, _)) => Err(Error::input(format!("'{key}' = '{text}' of '{table}' is not a number from 1"))),
    }
}

/// Changes as Flink shows them: `[I,UB,UA,D]`.
fn changelog_text(kinds: Kinds, told: bool) -> String {
    let mut text = vec!["I"];
    if kinds.update && told {
        text.push("UB");
    }
    if kinds.update {
        text.push("UA");
    }
    if kinds.delete {
        text.push("D");
    }
    text.join(",")
}
