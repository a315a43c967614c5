//! From plans to jobs: alone, or as parts of programs with data streams.

use std::sync::Arc;

use flott::{DataStream, embed};
use flott_core::config::Configuration;
use flott_core::{Data, Error, Result};
use flott_local::Launcher;
use flott_operators::{NodeFactory, Program};
use flott_sql::connect::TableConnectors;
use flott_sql::execute;
use flott_sql::results::Results;
use flott_sql::session::Job;
use flott_sql_runtime::program::{self, Parts};
use flott_sql_runtime::spec::{CompiledPlan, OperatorSpec, SourceSpec};

use crate::StreamTableEnvironment;
use crate::result::TableResult;
use crate::stream::{STREAM, is_stream};

fn streams(plan: &CompiledPlan) -> impl Iterator<Item = (usize, &SourceSpec)> {
    plan.nodes.iter().enumerate().filter_map(|(at, node)| match &node.operator {
        OperatorSpec::Source(source) if is_stream(source) => Some((at, source)),
        _ => None,
    })
}

impl StreamTableEnvironment {
    /// Runs a query; its rows are in the result.
    pub(crate) fn select(&self, job: &Job) -> Result<TableResult> {
        warn(&job.warnings);
        let config = self.config(job);
        let launcher = embed::launcher(&self.env).clone();
        let make = |plan: &CompiledPlan, results| self.program(job, plan, results);
        let recipe = |plan: &CompiledPlan, launcher: &Launcher| launcher.own_recipe(&plan.name);
        let running = execute::select_with(&config, &job.plan, launcher, make, recipe)?;
        Ok(TableResult::of_query(Arc::clone(&job.schema), running))
    }

    /// Runs a job that writes tables.
    pub(crate) fn insert(&self, job: &Job) -> Result<TableResult> {
        warn(&job.warnings);
        let program = self.program(job, &job.plan, None)?;
        embed::launcher(&self.env).execute(program).map(TableResult::of_job)
    }

    /// The settings of a job: those of SQL over those of the streams' environment, and what was given outside over both.
    fn config(&self, job: &Job) -> Configuration {
        let mut config = self.env.config();
        config.extend(&job.config);
        config.extend(embed::launcher(&self.env).config());
        config
    }

    fn program(&self, job: &Job, plan: &CompiledPlan, results: Option<Results>) -> Result<Arc<Program>> {
        if streams(plan).next().is_none() {
            let inner = self.inner.borrow();
            let connectors = Arc::new(TableConnectors::new(results).with_lookups(inner.lookups.clone()));
            return program::build(plan, &self.config(job), connectors, &inner.functions).map(Arc::new);
        }
        for (key, value) in job.config.iter() {
            self.env.set(key, value);
        }
        self.embed(plan, results, None)?;
        embed::program(&self.env, &plan.name)
    }

    /// Makes a plan part of the streams' program. `end` takes the place of the sink of a query, if there is one. Returns
    /// the number of the plan's first operator.
    fn embed(&self, plan: &CompiledPlan, results: Option<Results>, end: Option<(usize, NodeFactory)>) -> Result<usize> {
        let inner = self.inner.borrow();
        let connectors = Arc::new(TableConnectors::new(results).with_lookups(inner.lookups.clone()));
        let Parts { mut graph, mut nodes, edges } = program::parts(plan, connectors, &inner.functions)?;
        let mut connected = Vec::new();
        for (at, source) in streams(plan) {
            let number = source.options.get(STREAM).and_then(|number| number.parse::<usize>().ok());
            let stream = number.and_then(|number| inner.streams.get(number)).ok_or_else(|| {
                Error::input(format!(
                    "'{}' is a data stream of no environment: from_data_stream makes such tables",
                    source.table
                ))
            })?;
            nodes[at] = stream.node(source)?;
            graph.nodes[at].is_source = false;
            "DataStreamToTable".clone_into(&mut graph.nodes[at].kind);
            connected.push((at, stream));
        }
        if let Some((at, factory)) = end {
            nodes[at] = factory;
            "TableToDataStream".clone_into(&mut graph.nodes[at].kind);
            "TableToDataStream".clone_into(&mut graph.nodes[at].name);
        }
        let first = embed::add(&self.env, embed::Part { graph, nodes, edges });
        for (at, stream) in connected {
            stream.connect(first + at);
        }
        Ok(first)
    }

    /// The records that `factory` makes of a query's rows.
    pub(crate) fn stream_of<T: Data>(&self, job: &Job, factory: NodeFactory) -> Result<DataStream<T>> {
        warn(&job.warnings);
        let is_sink = |operator: &OperatorSpec| matches!(operator, OperatorSpec::Sink(_));
        let end = job.plan.nodes.iter().position(|node| is_sink(&node.operator));
        let end = end.ok_or_else(|| Error::system("a query has no end"))?;
        let first = self.embed(&job.plan, None, Some((end, factory)))?;
        Ok(embed::stream(&self.env, first + end))
    }
}

/// Prints what the user should know, which is no error.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}
