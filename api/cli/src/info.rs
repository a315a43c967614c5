//! `flott info`: the graph of a job without running it, and all configuration options.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use flott_core::config::options;
use flott_core::{Error, Result};
use flott_graph::JobGraph;
use serde_json::{Value, json};

use crate::format;
use crate::output::OutputArgs;
use crate::plan::PlanArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott info ./job -- --input data.csv       vertices, operators and streams of the job
  flott info -p 4 -o json ./job              the graph as JSON
  flott info --options                       all configuration options";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Lists all configuration options: key, default, meaning
    #[arg(long, conflicts_with = "binary")]
    options: bool,

    /// The job's binary
    #[arg(required_unless_present = "options")]
    binary: Option<PathBuf>,

    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    format: OutputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (text, value) = match &args.binary {
        Some(binary) => {
            let graph = args.plan.plan(binary)?.graph;
            let value = serde_json::to_value(&graph)
                .map_err(|error| Error::system(format!("writing the graph as JSON: {error}")))?;
            (describe(&graph), value)
        }
        None => all_options(),
    };
    args.format.output.print(&text, &value)?;
    Ok(ExitCode::SUCCESS)
}

/// The graph as a tree: vertices, below them their operators and the streams that leave them.
fn describe(graph: &JobGraph) -> String {
    let subtasks: u64 = graph.vertices.iter().map(|vertex| u64::from(vertex.parallelism)).sum();
    let mut text = format!(
        "Job '{}': {} {}, {}, needs {}\n",
        format::printable(&graph.name),
        graph.vertices.len(),
        if graph.vertices.len() == 1 { "vertex" } else { "vertices" },
        format::counted(subtasks, "subtask"),
        format::counted(graph.slots().into(), "slot")
    );
    for (id, vertex) in (0..).zip(&graph.vertices) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n[{id}] {}   parallelism {}, at most {}",
            format::printable(&vertex.name),
            vertex.parallelism,
            vertex.max_parallelism
        );
        let operators = vertex.operators.iter().map(|operator| {
            let uid = operator.uid.as_ref().map(|uid| format!(", uid '{}'", format::printable(uid)));
            let name = format::printable(&operator.name);
            format!("{} '{name}', id {}{}", operator.kind, operator.id, uid.unwrap_or_default())
        });
        let streams = graph.outputs(id).map(|edge| format!("to [{}] by {:?}", edge.target, edge.partitioning));
        let children: Vec<String> = operators.chain(streams).collect();
        for (position, child) in children.iter().enumerate() {
            let branch = if position + 1 < children.len() { "├─" } else { "└─" };
            let _ = writeln!(text, "    {branch} {child}");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn all_options() -> (String, Value) {
    let mut text = String::new();
    for option in options::all() {
        let default = if option.default.is_empty() { "(empty)" } else { option.default };
        let alias = option.alias.map(|alias| format!(" Older key: {alias}.")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} = {default}\n    {}{alias}", option.key, option.description.trim());
    }
    text.truncate(text.trim_end().len());
    let values = options::all().iter().map(|option| {
        json!({
            "key": option.key,
            "alias": option.alias,
            "default": option.default,
            "description": option.description.trim(),
        })
    });
    (text, values.collect())
}

#[cfg(test)]
mod tests {
    use flott_core::config::Configuration;
    use flott_core::ids::OperatorId;
    use flott_graph::{JobEdge, JobVertex, OperatorDescriptor, Partitioning};

    use super::*;

    fn vertex(id: u8, names: &[&str], uid: Option<&str>) -> JobVertex {
        let operator = |name: &&str| OperatorDescriptor {
            id: OperatorId([id; 16]),
            uid: uid.map(str::to_owned),
            kind: "Map".into(),
            name: (*name).to_owned(),
            node: 0,
        };
        JobVertex {
            name: names.join(" -> "),
            operators: names.iter().map(operator).collect(),
            parallelism: 2,
            max_parallelism: 128,
            is_source: false,
            is_non_parallel: false,
        }
    }

    #[test]
    fn a_graph_is_shown_as_a_tree() {
        let graph = JobGraph {
            name: "word count".into(),
            vertices: vec![vertex(0, &["words"], None), vertex(1, &["count", "print"], Some("counts"))],
            edges: vec![JobEdge { source: 0, target: 1, partitioning: Partitioning::Hash, stream_edge: 0 }],
            config: Configuration::default(),
        };
        assert_eq!(
            describe(&graph),
            "\
Job 'word count': 2 vertices, 4 subtasks, needs 2 slots

[0] words   parallelism 2, at most 128
    ├─ Map 'words', id 00000000000000000000000000000000
    └─ to [1] by Hash

[1] count -> print   parallelism 2, at most 128
    ├─ Map 'count', id 01010101010101010101010101010101, uid 'counts'
    └─ Map 'print', id 01010101010101010101010101010101, uid 'counts'"
        );
    }

    #[test]
    fn all_options_are_listed() {
        let (text, values) = all_options();
        assert!(text.contains("rest.port = 8081\n    The port of REST; 0 takes a free one."), "{text}");
        assert_eq!(values.as_array().map(Vec::len), Some(options::all().len()));
    }
}
