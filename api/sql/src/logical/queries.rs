//! From queries to optimised logical plans.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use flott_core::Result;
use flott_sql_runtime::spec::{SinkSpec, SourceSpec};

use super::errors::{mistake, shown};
use super::rewrite::{Rewritten, rewritten};
use super::scope::{Context, Scope};
use super::{insert, optimize, settle};
use crate::catalog::Catalog;
use crate::connect::SourceDescription;
use crate::parse::Insert;
use crate::plan::{Changelog, Settings, SinkQuery};

/// What planning asks of a table's connector.
pub trait Connectors: Send + Sync {
    /// What a table is that is read; checks its options.
    ///
    /// # Errors
    /// The options are wrong, or the table cannot be read.
    fn source(&self, spec: &SourceSpec) -> Result<Readable>;

    /// What a table takes that is written; checks its options.
    ///
    /// # Errors
    /// The options are wrong, or the table cannot be written.
    fn sink(&self, spec: &SinkSpec) -> Result<Changelog>;
}

/// A table that is read, as its connector says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readable {
    /// Which changes it tells of.
    pub changelog: Changelog,
    /// Whether rows can be looked up in it by key.
    pub is_lookup: bool,
    /// Whether it can be read as a whole.
    pub is_scan: bool,
    /// Whether watermarks come with its rows: `SOURCE_WATERMARK()`.
    pub has_watermarks: bool,
    /// Whether it can be told how many rows are enough.
    pub takes_limit: bool,
}

/// The connectors of this program: those of [`connect`](crate::connect).
#[derive(Clone, Copy, Debug, Default)]
pub struct Installed;

impl Connectors for Installed {
    fn source(&self, spec: &SourceSpec) -> Result<Readable> {
        let SourceDescription { changelog, is_lookup, .. } = crate::connect::describe_source(spec)?;
        Ok(Readable { changelog, is_lookup, is_scan: true, has_watermarks: false, takes_limit: true })
    }

    fn sink(&self, spec: &SinkSpec) -> Result<Changelog> {
        crate::connect::check_sink(spec)
    }
}

/// Plans queries over a catalog.
///
/// ```
/// use flott_sql::catalog::Catalog;
/// use flott_sql::logical::Queries;
/// use flott_sql::parse::parse_query;
/// use flott_sql::plan::Settings;
///
/// let (catalog, settings) = (Catalog::default(), Settings::new(&Default::default())?);
/// let queries = Queries::new(&catalog, &settings);
/// let schema = queries.schema(&parse_query("SELECT 1 + 1 AS two, UPPER('a')")?)?;
/// assert_eq!(schema.field(0).name(), "two");
/// assert_eq!(schema.field(1).name(), "EXPR$1");
/// # Ok::<(), flott_core::Error>(())
/// ```
pub struct Queries<'a> {
    scope: Arc<Scope>,
    script: Option<&'a str>,
    now_ms: Option<i64>,
}

impl fmt::Debug for Queries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queries").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl<'a> Queries<'a> {
    /// Over these tables, with the connectors of this program.
    pub fn new(catalog: &Catalog, settings: &Settings) -> Self {
        let mut options = ConfigOptions::default();
        // What is compared with a subquery's value is joined with it: operators know no subqueries.
        options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
        options.execution.time_zone = settings.config.get("table.local-time-zone").cloned();
        let scope = Scope {
            catalog: catalog.clone(),
            settings: settings.clone(),
            connectors: Arc::new(Installed),
            options,
            depth: 0,
        };
        Self { scope: Arc::new(scope), script: None, now_ms: None }
    }

    /// With other connectors.
    #[must_use]
    pub fn with_connectors(mut self, connectors: Arc<dyn Connectors>) -> Self {
        self.scope = Arc::new(Scope { connectors, ..self.scope.as_ref().clone() });
        self
    }

    /// With the whole script that the statements are from: mistakes are shown in it.
    #[must_use]
    pub fn with_script(mut self, script: &'a str) -> Self {
        self.script = Some(script);
        self
    }

    /// With the time at which the script runs, in milliseconds since 1970: in batch mode it is that of a whole query.
    #[must_use]
    pub fn at(mut self, now_ms: i64) -> Self {
        self.now_ms = Some(now_ms);
        self
    }

    fn optimized(&self, plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
        let options = &self.scope.options;
        let plan = match self.now_ms {
            Some(now_ms) if self.scope.settings.is_batch => {
                let zone = options.execution.time_zone.as_deref().unwrap_or("UTC");
                flott_sql_functions::at_query_start(plan, now_ms, zone)?
            }
            _ => plan,
        };
        optimize::optimized(plan, options)
    }

    fn show(&self) -> impl Fn(DataFusionError) -> flott_core::Error + '_ {
        |error| shown(&error, self.script)
    }

    /// The plan of a query, optimised.
    ///
    /// # Errors
    /// It names what is not there, or uses it as what it is not: the message has the place.
    pub fn query(&self, query: &ast::Query) -> Result<LogicalPlan> {
        let plan = self.scope.plan(query).map_err(self.show())?;
        self.optimized(plan).map_err(self.show())
    }

    /// A query whose rows are shown: as an INSERT into the connector [`COLLECT`](crate::plan::COLLECT).
    ///
    /// # Errors
    /// As for [`Queries::query`].
    pub fn select(&self, query: &ast::Query) -> Result<SinkQuery> {
        let plan = self.query(query)?;
        Ok(SinkQuery { sink: insert::collect(&plan), plan })
    }

    /// The query of an INSERT, with its table.
    ///
    /// # Errors
    /// As for [`Queries::query`]; or the query's columns are not those of the table, or the table cannot be written.
    pub fn insert(&self, insert: &Insert) -> Result<SinkQuery> {
        let (plan, sink) = insert::insert(&self.scope, insert).map_err(self.show())?;
        let plan = self.optimized(plan).map_err(self.show())?;
        Ok(SinkQuery { plan, sink })
    }

    /// The columns of a query.
    ///
    /// # Errors
    /// As for [`Queries::query`].
    pub fn schema(&self, query: &ast::Query) -> Result<SchemaRef> {
        let plan = self.scope.plan(query).map_err(self.show())?;
        Ok(Arc::clone(plan.schema().inner()))
    }

    /// What an expression over these columns gives, such as that of a computed column.
    ///
    /// # Errors
    /// As for [`Queries::query`].
    pub fn column(&self, name: &str, expr: &ast::Expr, columns: &Schema) -> Result<Field> {
        let schema = DFSchema::try_from(columns.clone()).map_err(self.show())?;
        let expr = self.scope.expr(expr, &schema).map_err(self.show())?;
        let (_, field) = expr.to_field(&schema).map_err(self.show())?;
        Ok(field.as_ref().clone().with_name(name))
    }
}

fn parser_options() -> ParserOptions {
    ParserOptions::new()
        .with_enable_ident_normalization(false)
        .with_parse_float_as_decimal(true)
        .with_map_string_types_to_utf8view(false)
        .with_collect_spans(true)
        // NULL is lowest.
        .with_default_null_ordering(NullOrdering::NullsMin)
}

/// The types of what `$1`, `$2`, … stand for.
fn fields(constants: &[ScalarValue]) -> Vec<Option<FieldRef>> {
    let field = |value: &ScalarValue| Some(Arc::new(Field::new("", value.data_type(), value.is_null())));
    constants.iter().map(field).collect()
}

impl Scope {
    /// The plan of a query, with Flink's types and names.
    pub(super) fn plan(self: &Arc<Self>, query: &ast::Query) -> Result<LogicalPlan, DataFusionError> {
        let Rewritten { tree, constants } = rewritten(Box::new(query.clone()), self)?;
        let constants = Arc::new(constants);
        let context = Context::new(self, &constants);
        let mut names = PlannerContext::new().with_prepare_param_data_types(fields(&constants));
        let planner = SqlToRel::new_with_options(&context, parser_options());
        let plan = planner.sql_statement_to_plan_with_context(ast::Statement::Query(tree), &mut names)?;
        named(settle::settled(plan, &constants)?)
    }

    /// An expression over columns.
    pub(super) fn expr(self: &Arc<Self>, expr: &ast::Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
        let Rewritten { tree, constants } = rewritten(expr.clone(), self)?;
        let constants = Arc::new(constants);
        let context = Context::new(self, &constants);
        let mut names = PlannerContext::new().with_prepare_param_data_types(fields(&constants));
        let planner = SqlToRel::new_with_options(&context, parser_options());
        let expr = planner.sql_to_expr(tree, schema, &mut names)?;
        settle::settled_expr(expr, schema, &constants)
    }
}

/// The result's columns by the names that Flink gives them: each once.
fn named(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let mut names: Vec<String> = Vec::new();
    for (at, field) in plan.schema().fields().iter().enumerate() {
        if *field.data_type() == DataType::Null {
            return Err(mistake(format!("the column '{}' is NULL without a type: CAST(NULL AS …)", field.name())));
        }
        let name = match field.name().strip_prefix("EXPR$?") {
            Some(_) => format!("EXPR${at}"),
            None => field.name().clone(),
        };
        let numbered = (0..).map(|number| format!("{name}{number}"));
        let unique = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.push(unique.unwrap_or(name));
    }
    let is_named = plan.schema().fields().iter().zip(&names).all(|(field, name)| field.name() == name);
    if is_named {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(&names);
    let columns: Vec<_> = columns
        .map(|(column, name)| match column.name == *name {
            true => Expr::Column(column),
            false => Expr::Column(column).alias(name),
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
