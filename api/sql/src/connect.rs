//! The connectors of SQL tables: what `'connector' = '…'` names.
//!
//! Planning asks [`describe_source`] and [`check_sink`] what a table can do; a program is built with [`TableConnectors`]. Both
//! read the same options, so what planning accepts can be built. A program may have [`LookupConnectors`] besides.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use flott_chunk::Chunk;
use flott_connector_spi::{Boundedness, Source};
use flott_core::config::options::CHECKPOINT_INTERVAL;
use flott_core::ids::OperatorId;
use flott_core::{Data, Error, Result};
use flott_operators::operator::Operator;
use flott_operators::program::NodeTargets;
use flott_operators::sink::SinkOperator;
use flott_operators::source::SourceHead;
use flott_operators::{OperatorNode, Push, SourceTask, TaskContext};
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::operators::lookup_join::LookupTable;
use flott_sql_runtime::program::Connectors;
use flott_sql_runtime::spec::{LookupJoinSpec, SinkSpec, SourceSpec};
use flott_tables::options::Options;

use crate::plan::{COLLECT, Changelog};
use crate::results::Results;
use crate::results::offer::OfferSink;

mod asked;
mod blackhole;
mod datagen;
mod filesystem;
mod limit;
mod nexmark;
mod print;
mod whole;

pub use asked::LookupConnectors;

/// The names of connectors, for messages.
const NAMES: [&str; 5] = ["filesystem", "datagen", "nexmark", "print", "blackhole"];

/// What planning needs to know of a table that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceDescription {
    /// What its changes are.
    pub changelog: Changelog,
    /// Whether it ends.
    pub boundedness: Boundedness,
    /// Whether rows can be looked up in it by key.
    pub is_lookup: bool,
}

/// What a table is that is read; checks its options.
pub fn describe_source(spec: &SourceSpec) -> Result<SourceDescription> {
    match connector(&spec.table, &spec.options)? {
        "filesystem" => {
            filesystem::source(spec, None)?;
            let changelog = filesystem::changelog(&spec.options);
            let is_lookup = changelog == Changelog::InsertOnly;
            Ok(SourceDescription { changelog, boundedness: Boundedness::Bounded, is_lookup })
        }
        "datagen" => Ok(made(&datagen::source(spec)?)),
        "nexmark" => Ok(made(&nexmark::source(spec)?)),
        name @ ("print" | "blackhole") => {
            Err(Error::input(format!("table '{}' cannot be read: the connector '{name}' only writes", spec.table)))
        }
        name => Err(unknown(&spec.table, name)),
    }
}

/// How the files of a writer begin. A job may write a table more than once, and none of the writers may take a file of another for
/// its own. No prefix is a number, or a file would seem to be that of a subtask.
fn part_prefix(operator: OperatorId) -> String {
    format!("part-w{}", &operator.to_string()[..8])
}

/// What a table takes that is written; checks its options.
pub fn check_sink(spec: &SinkSpec) -> Result<Changelog> {
    refuse_written_metadata(spec)?;
    match connector(&spec.table, &spec.options)? {
        "filesystem" => filesystem::sink(spec).map(|_| filesystem::changelog(&spec.options)),
        "print" => print::Print::new(spec).map(|_| Changelog::All),
        "blackhole" => blackhole::Blackhole::new(spec).map(|_| Changelog::All),
        COLLECT => Ok(Changelog::All),
        name @ ("datagen" | "nexmark") => {
            Err(Error::input(format!("table '{}' cannot be written: the connector '{name}' only reads", spec.table)))
        }
        name => Err(unknown(&spec.table, name)),
    }
}

/// What the writers of a table send to the one operator behind them that completes what they have written, if the table has
/// one.
pub(crate) fn commits(spec: &SinkSpec) -> Option<SchemaRef> {
    match spec.options.get("connector").map(String::as_str) {
        Some("filesystem") => filesystem::commit::committed(spec),
        _ => None,
    }
}

fn connector<'a>(table: &str, options: &'a BTreeMap<String, String>) -> Result<&'a str> {
    options.get("connector").map(String::as_str).ok_or_else(|| {
        Error::input(format!("table '{table}' has no option 'connector': add one of {} to WITH (…)", NAMES.join(", ")))
    })
}

fn unknown(table: &str, name: &str) -> Error {
    Error::input(format!("table '{table}': there is no connector '{name}'; there are {}", NAMES.join(", ")))
}

fn options(table: &str, options: &BTreeMap<String, String>) -> Options {
    Options::new(table, options.iter().map(|(key, value)| (key.as_str(), value.as_str())))
}

/// The options of a table that is read, without those that planning takes.
fn scan_options(spec: &SourceSpec) -> Options {
    let options = options(&spec.table, &spec.options);
    for key in ["connector", "scan.parallelism", "scan.watermark.idle-timeout"] {
        options.get(key);
    }
    options
}

/// The columns that are read.
fn projected(spec: &SourceSpec) -> Result<SchemaRef> {
    let schema = spec.table_schema.project(&spec.projection);
    schema
        .map(Arc::new)
        .map_err(|error| Error::system(format!("table '{}': a column that is not there is read: {error}", spec.table)))
}

/// That no column is metadata, of which the connector has none.
fn refuse_metadata(spec: &SourceSpec, connector: &str) -> Result<()> {
    let Some((column, key)) = spec.metadata.first_key_value() else { return Ok(()) };
    let name = spec.table_schema.field(*column).name();
    Err(Error::input(format!(
        "table '{}': the column '{name}' is the metadata '{key}', and '{connector}' has no metadata",
        spec.table
    )))
}

/// That no column that is written is metadata.
fn refuse_written_metadata(spec: &SinkSpec) -> Result<()> {
    let Some((column, key)) = spec.metadata.first_key_value() else { return Ok(()) };
    let name = spec.table_schema.field(*column).name();
    Err(Error::input(format!(
        "table '{}': the column '{name}' is the metadata '{key}', which no connector writes: declare it VIRTUAL",
        spec.table
    )))
}

/// Rows that are made are never taken back.
fn made(source: &impl Source) -> SourceDescription {
    SourceDescription { changelog: Changelog::InsertOnly, boundedness: source.boundedness(), is_lookup: false }
}

/// Uses the source of a table, whose type its connector knows.
pub trait SourceVisitor {
    /// What comes of it.
    type Output;

    /// Uses it.
    fn visit<S: Source<Item = Chunk>>(self, source: S) -> Result<Self::Output>;
}

/// Gives the source of a table to `visitor`. Without `functions` it reads what they might leave out.
///
/// # Errors
/// Its options are wrong, or the visitor fails.
pub fn with_source<V: SourceVisitor>(
    spec: &SourceSpec,
    functions: Option<&Functions>,
    visitor: V,
) -> Result<V::Output> {
    match connector(&spec.table, &spec.options)? {
        "filesystem" => match filesystem::source(spec, functions)? {
            filesystem::TableFiles::Lines(source) => limited(spec, source, visitor),
            filesystem::TableFiles::Blocks(source) => limited(spec, source, visitor),
        },
        "datagen" => limited(spec, datagen::source(spec)?, visitor),
        "nexmark" => limited(spec, nexmark::source(spec)?, visitor),
        name => Err(unknown(&spec.table, name)),
    }
}

/// Gives a source to `visitor`, or as much of it as is enough.
fn limited<S: Source<Item = Chunk>, V: SourceVisitor>(spec: &SourceSpec, source: S, visitor: V) -> Result<V::Output> {
    match spec.limit {
        Some(rows) => visitor.visit(limit::Limited::new(source, rows)),
        None => visitor.visit(source),
    }
}

/// The connectors, with where the rows of a SELECT go.
pub struct TableConnectors {
    results: Option<Results>,
    lookups: LookupConnectors,
}

impl TableConnectors {
    /// `results` is needed by plans of a SELECT only.
    pub fn new(results: Option<Results>) -> Self {
        Self { results, lookups: LookupConnectors::default() }
    }

    /// With connectors of the program.
    #[must_use]
    pub fn with_lookups(self, lookups: LookupConnectors) -> Self {
        Self { lookups, ..self }
    }
}

impl Connectors for TableConnectors {
    fn source(
        &self,
        spec: &SourceSpec,
        functions: &Functions,
        cx: &TaskContext,
        targets: NodeTargets<'_>,
    ) -> Result<Box<dyn SourceTask>> {
        with_source(spec, Some(functions), Head { cx, targets })
    }

    fn sink(&self, spec: &SinkSpec, cx: &TaskContext, targets: NodeTargets<'_>) -> Result<Box<dyn Push<Chunk>>> {
        match connector(&spec.table, &spec.options)? {
            "filesystem" => {
                let (sink, _) = filesystem::sink(spec)?;
                let sink = sink.prefix(part_prefix(targets.id));
                match commits(spec) {
                    Some(_) => operator(filesystem::commit::Announcing::new(sink, cx), targets),
                    None => tail(sink, cx, targets),
                }
            }
            "print" => tail(print::Print::new(spec)?, cx, targets),
            "blackhole" => tail(blackhole::Blackhole::new(spec)?, cx, targets),
            COLLECT => match &self.results {
                Some(Results::Here(results)) => tail(results.clone(), cx, targets),
                Some(Results::Offered(jobmanager)) => {
                    let is_exactly_once = cx.config.get(CHECKPOINT_INTERVAL)?.is_some();
                    tail(OfferSink { jobmanager: jobmanager.clone(), is_exactly_once }, cx, targets)
                }
                None => Err(Error::system("nobody is there to take the rows of the SELECT")),
            },
            name => Err(unknown(&spec.table, name)),
        }
    }

    fn commit(&self, spec: &SinkSpec, cx: &TaskContext, targets: NodeTargets<'_>) -> Result<Box<dyn Push<Chunk>>> {
        let (_, policy) = filesystem::sink(spec)?;
        let path = options(&spec.table, &spec.options).required("path")?.to_owned();
        operator(filesystem::commit::Committer::new(policy, path, cx), targets)
    }

    fn lookup(&self, spec: &LookupJoinSpec, functions: &Functions, cx: &TaskContext) -> Result<LookupTable> {
        let table = &spec.table.table;
        match connector(table, &spec.table.options)? {
            "filesystem" => filesystem::lookup(spec, functions, &cx.io).map(LookupTable::Whole),
            name => match self.lookups.open(spec)? {
                Some(table) => Ok(LookupTable::Asked(table)),
                None => Err(Error::input(format!(
                    "rows cannot be looked up in table '{table}': its connector '{name}' has no such way to read"
                ))),
            },
        }
    }
}

/// Makes the head of a chain.
struct Head<'a> {
    cx: &'a TaskContext,
    targets: NodeTargets<'a>,
}

impl SourceVisitor for Head<'_> {
    type Output = Box<dyn SourceTask>;

    fn visit<S: Source<Item = Chunk>>(mut self, source: S) -> Result<Self::Output> {
        let out = self.targets.output::<Chunk>()?;
        Ok(Box::new(SourceHead::new(self.targets.id, self.targets.name, source.into(), self.cx, out)?))
    }
}

fn tail<S: flott_connector_spi::Sink<Chunk>>(
    sink: S,
    cx: &TaskContext,
    targets: NodeTargets<'_>,
) -> Result<Box<dyn Push<Chunk>>> {
    operator::<(), _>(SinkOperator::new(sink, cx), targets)
}

fn operator<Out: Data, O: Operator<Chunk, Out> + 'static>(
    operator: O,
    mut targets: NodeTargets<'_>,
) -> Result<Box<dyn Push<Chunk>>> {
    let out = targets.output::<Out>()?;
    Ok(Box::new(OperatorNode::new(targets.id, targets.name, operator, out)))
}
