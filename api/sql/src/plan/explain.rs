//! A plan as people read it.

use std::collections::HashMap;
use std::fmt::{self, Write};

use flott_core::Result;
use flott_core::config::{Configuration, options};
use flott_graph::JobGraph;
use flott_sql_runtime::program;
use flott_sql_runtime::spec::{CompiledPlan, Exchange, OperatorSpec, PlanEdge};

use super::state::Kept;
use super::{Settings, SinkQuery};

mod json;

/// A compiled plan, and what is known of its operators.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: CompiledPlan,
    /// A note for each of its operators.
    pub notes: Vec<Note>,
    /// What is known of the rows of each query, in their order.
    pub results: Vec<Outcome>,
}

/// What is known of a query's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether none is ever updated or deleted.
    pub is_insert_only: bool,
    /// Its columns with event time.
    pub rowtimes: Vec<usize>,
}

/// What is known of an operator.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// Its changes: `I,UB,UA,D`.
    pub changelog: String,
    /// What it keeps, if anything.
    pub state: Option<String>,
    /// What its user should know.
    pub warning: Option<String>,
}

impl Note {
    pub(super) fn new(op: &OperatorSpec, name: &str, changelog: String, settings: &Settings) -> Self {
        let Some(kept) = Kept::by(op) else { return Self { changelog, ..Self::default() } };
        if settings.is_batch {
            // It ends with its input.
            return Self { changelog, state: Some(kept.what), warning: None };
        }
        let operator = name.split_once('(').map_or(name, |(kind, _)| kind);
        Self { changelog, state: Some(kept.shown()), warning: kept.warning(operator) }
    }
}

impl Planned {
    /// What a user should know before the job runs.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().filter_map(|note| note.warning.as_deref())
    }

    /// `EXPLAIN`: the logical plans, the operators with their changes and state, and the job that `config` makes of them.
    ///
    /// # Errors
    /// The job cannot be as `config` says.
    pub fn explain(&self, statements: &[SinkQuery], config: &Configuration) -> Result<String> {
        let mut text = String::from("== Logical Plan ==\n");
        for statement in statements {
            let _ = writeln!(text, "Sink(table=[{}])", statement.sink.name);
            for line in statement.plan.display_indent().to_string().lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text.push_str("\n== Physical Plan ==\n");
        let mut reuse = HashMap::new();
        for node in 0..self.plan.nodes.len() {
            if self.plan.edges.iter().filter(|edge| edge.source == node).count() > 1 {
                let next = reuse.len() + 1;
                reuse.insert(node, (next, false));
            }
        }
        for (node, _) in self.plan.nodes.iter().enumerate() {
            if !self.plan.edges.iter().any(|edge| edge.source == node) {
                self.tree(node, "", "", &mut reuse, &mut text);
                text.push('\n');
            }
        }
        let stateful: Vec<_> = (self.notes.iter().zip(&self.plan.nodes))
            .filter_map(|(note, node)| note.state.as_ref().map(|state| (node, state)))
            .collect();
        if !stateful.is_empty() {
            text.push_str("== State ==\n");
            for (node, state) in stateful {
                let _ = writeln!(text, "{} ({}): {state}", node.name, node.uid);
            }
            text.push('\n');
        }
        if self.warnings().next().is_some() {
            text.push_str("== Warnings ==\n");
            self.warnings().for_each(|warning| text.push_str(&format!("{warning}\n")));
            text.push('\n');
        }
        text.push_str("== Job Graph ==\n");
        let graph = program::stream_graph(&self.plan);
        let job = JobGraph::from_stream_graph(&self.plan.name, &graph, config)?;
        for (id, vertex) in job.vertices.iter().enumerate() {
            let is_said = config.is_set(options::PARALLELISM_DEFAULT)
                || self.plan.nodes[vertex.operators[0].node].parallelism.is_some();
            let parallelism = if is_said { vertex.parallelism.to_string() } else { "default".to_owned() };
            let names: Vec<&str> = vertex.operators.iter().map(|operator| operator.kind.as_str()).collect();
            let _ = write!(text, "{id}: {} (parallelism {parallelism})", names.join(" -> "));
            for edge in job.edges.iter().filter(|edge| edge.target as usize == id) {
                let _ = write!(text, " <- {} {:?}", edge.source, edge.partitioning);
            }
            text.push('\n');
        }
        Ok(text)
    }

    fn tree(&self, node: usize, first: &str, rest: &str, reuse: &mut HashMap<usize, (usize, bool)>, text: &mut String) {
        let mut name = self.plan.nodes[node].name.clone();
        let changelog = &self.notes[node].changelog;
        if let Some((number, is_shown)) = reuse.get_mut(&node) {
            if *is_shown {
                let _ = writeln!(text, "{first}Reused(reference_id=[{number}])");
                return;
            }
            *is_shown = true;
            let _ = write!(name, " [reuse_id={number}]");
        }
        let _ = writeln!(text, "{first}{name} changelogMode=[{changelog}]");
        let edges: Vec<&PlanEdge> = self.plan.edges.iter().filter(|edge| edge.target == node).collect();
        for (index, edge) in edges.iter().enumerate() {
            let is_last = index + 1 == edges.len();
            let (branch, below) = if is_last { ("+- ", "   ") } else { (":- ", ":  ") };
            let (mut first, mut below) = (format!("{rest}{branch}"), format!("{rest}{below}"));
            if let Some(exchange) = self.exchange(edge) {
                let _ = writeln!(text, "{first}Exchange(distribution=[{exchange}])");
                first = format!("{below}+- ");
                below.push_str("   ");
            }
            self.tree(edge.source, &first, &below, reuse, text);
        }
    }

    fn exchange(&self, edge: &PlanEdge) -> Option<String> {
        let schema = &self.plan.nodes[edge.source].schema;
        Some(match &edge.exchange {
            Exchange::Forward => return None,
            Exchange::Hash(keys) => {
                let keys: Vec<&str> = keys.iter().map(|&key| schema.field(key).name().as_str()).collect();
                format!("hash[{}]", keys.join(", "))
            }
            Exchange::Global => "single".to_owned(),
            Exchange::Rebalance => "rebalance".to_owned(),
            Exchange::Broadcast => "broadcast".to_owned(),
        })
    }
}

/// One line an operator: its number, what it is, its changes, and where its rows come from.
impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (node, (operator, note)) in self.plan.nodes.iter().zip(&self.notes).enumerate() {
            write!(f, "{node} {} [{}]", operator.name, note.changelog)?;
            if let Some(parallelism) = operator.parallelism {
                write!(f, " x{parallelism}")?;
            }
            for edge in self.plan.edges.iter().filter(|edge| edge.target == node) {
                let exchange = self.exchange(edge).unwrap_or_else(|| "forward".to_owned());
                let input = if edge.input > 0 { format!("input {} ", edge.input) } else { String::new() };
                write!(f, " <- {input}{} {exchange}", edge.source)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
