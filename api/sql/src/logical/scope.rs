//! What a query may name.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue, TableReference};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF,
};

use super::errors::{mistake, ours, shown};
use super::functions::Functions;
use super::operators::Operators;
use super::queries::Connectors;
use super::relations::Relations;
use super::tables;
use crate::catalog::{Catalog, Relation, UserFunction, View};
use crate::plan::Settings;

/// How many views may be in one another.
const DEPTH_MAX: usize = 64;

/// What names mean while a query is planned.
#[derive(Clone)]
pub(super) struct Scope {
    pub catalog: Catalog,
    pub settings: Settings,
    pub connectors: Arc<dyn Connectors>,
    pub options: ConfigOptions,
    /// How many views this is in.
    pub depth: usize,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("current", &self.catalog.current()).finish_non_exhaustive()
    }
}

impl Scope {
    /// What is read by a name, with options that hints set.
    pub(super) fn source(&self, parts: &[String], hints: &[(String, String)]) -> Result<Arc<dyn TableSource>> {
        let path = self.catalog.resolve(parts).map_err(|error| ours(&error))?;
        match self.catalog.relation(&path).map_err(|error| ours(&error))? {
            Relation::Table(table) => {
                let info = tables::read(self, &path, table, hints)?;
                Ok(Arc::new(info))
            }
            Relation::View(_) if !hints.is_empty() => {
                Err(mistake(format!("'{path}' is a view: OPTIONS are for tables, and views have none")))
            }
            Relation::View(view) => {
                let plan = self.view(view).map_err(|error| {
                    // Its places are in another text.
                    mistake(format!("in the view '{}': {}", path.name, shown(&error, None).message))
                })?;
                Ok(Arc::new(Query(plan)))
            }
        }
    }

    fn view(&self, view: &View) -> Result<LogicalPlan> {
        if self.depth >= DEPTH_MAX {
            return Err(mistake(format!("more than {DEPTH_MAX} views are in one another: is one in itself?")));
        }
        let catalog = self.catalog.within(&view.catalog, &view.database);
        let scope = Arc::new(Self { catalog, depth: self.depth + 1, ..self.clone() });
        let plan = scope.plan(&view.query)?;
        if view.columns.is_empty() {
            return Ok(plan);
        }
        let columns = plan.schema().columns();
        if columns.len() != view.columns.len() {
            let (has, named) = (columns.len(), view.columns.len());
            return Err(mistake(format!("the view names {named} columns, and its query has {has}")));
        }
        let named = columns.into_iter().zip(&view.columns).map(|(column, name)| Expr::Column(column).alias(name));
        LogicalPlanBuilder::from(plan).project(named.collect::<Vec<_>>())?.build()
    }
}

/// A view, or anything else that has a plan.
#[derive(Debug)]
struct Query(LogicalPlan);

impl TableSource for Query {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.schema().inner())
    }

    fn get_logical_plan(&'_ self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.0))
    }
}

/// The scope as DataFusion asks for it.
pub(super) struct Context {
    scope: Arc<Scope>,
    operators: [Arc<dyn ExprPlanner>; 1],
    relations: [Arc<dyn RelationPlanner>; 1],
}

impl Context {
    /// For a query with these constants.
    pub(super) fn new(scope: &Arc<Scope>, constants: &Arc<Vec<ScalarValue>>) -> Self {
        let relations = Relations { scope: Arc::clone(scope), constants: Arc::clone(constants) };
        Self { scope: Arc::clone(scope), operators: [Arc::new(Operators)], relations: [Arc::new(relations)] }
    }
}

/// The parts of a table's name.
pub(super) fn parts_of(name: &TableReference) -> Vec<String> {
    [name.catalog(), name.schema(), Some(name.table())].into_iter().flatten().map(str::to_owned).collect()
}

impl ContextProvider for Context {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>, DataFusionError> {
        self.scope.source(&parts_of(&name), &[])
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.operators
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relations
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        match self.scope.catalog.function(name) {
            Some(UserFunction::Scalar(function) | UserFunction::Table(function)) => Some(Arc::clone(function)),
            Some(UserFunction::Aggregate(_)) => None,
            None => Functions::all().scalar(name).cloned(),
        }
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        match self.scope.catalog.function(name) {
            Some(UserFunction::Aggregate(function)) => Some(Arc::clone(function)),
            Some(_) => None,
            None => Functions::all().aggregate(name).cloned(),
        }
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        Functions::all().window(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.scope.options
    }

    fn udf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}
