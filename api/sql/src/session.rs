//! A session: what statements change, and what they answer.
//!
//! A session knows names and settings, and makes a compiled plan of what is to be run. It runs nothing itself.
//!
//! - [`show`]: SHOW and DESCRIBE; [`settings`]: SET and RESET; [`keys`]: which settings there are; [`recovery`]: what jobs start from

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, Query};
use flott_core::config::Configuration;
use flott_core::{Error, Result};
use flott_sql_runtime::spec::CompiledPlan;

use crate::catalog::{self, Catalog, Column, ColumnKind, Relation, Table, UserFunction, define};
use crate::logical::{Connectors, Installed, Queries, is_function};
use crate::parse::{
    AlterAction, AlterTable, CreateTable, CreateView, Drop, ExplainDetail, Insert, Name, Object, Show, Statement,
};
use crate::plan::{self, Outcome, Planned, Settings, SinkQuery};
use crate::types::SqlType;

mod keys;
mod recovery;
mod settings;
mod show;

pub use keys::setting_keys;
pub use recovery::Recovery;
pub use settings::SessionConfig;

/// What a statement answers.
#[derive(Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// These rows, which are known without a job.
    Rows(RecordBatch),
    /// A job whose rows are the answer.
    Select(Job),
    /// A job that writes tables.
    Insert(Job),
}

/// What is to be run.
#[derive(Debug)]
pub struct Job {
    /// The plan.
    pub plan: CompiledPlan,
    /// The columns of a SELECT; none of an INSERT.
    pub schema: SchemaRef,
    /// The settings of the engine that the script has made.
    pub config: Configuration,
    /// What its user should know, such as state that grows for ever.
    pub warnings: Vec<String>,
    /// What is known of the rows of each query, in their order.
    pub results: Vec<Outcome>,
}

/// Names, settings, and what statements do with them.
///
/// ```
/// use flott_sql::parse::parse_script;
/// use flott_sql::session::{Answer, Session};
///
/// let mut session = Session::default();
/// let script = "CREATE TABLE t (a INT) WITH ('connector' = 'blackhole'); SHOW TABLES";
/// let mut answers = Vec::new();
/// for statement in parse_script(script)? {
///     answers.push(session.execute(&statement)?);
/// }
/// let Answer::Rows(tables) = &answers[1] else { panic!("SHOW has rows") };
/// assert_eq!(tables.num_rows(), 1);
/// # Ok::<(), flott_core::Error>(())
/// ```
pub struct Session {
    catalog: Catalog,
    config: SessionConfig,
    connectors: Arc<dyn Connectors>,
}

impl Default for Session {
    fn default() -> Self {
        Self::new(SessionConfig::default())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("catalog", &self.catalog).field("config", &self.config).finish_non_exhaustive()
    }
}

impl Session {
    /// A session with settings, which RESET goes back to.
    pub fn new(config: SessionConfig) -> Self {
        Self { catalog: Catalog::default(), config, connectors: Arc::new(Installed) }
    }

    /// With connectors besides those of this crate, which know these too.
    #[must_use]
    pub fn with_connectors(mut self, connectors: Arc<dyn Connectors>) -> Self {
        self.connectors = connectors;
        self
    }

    /// The same, from now on.
    pub fn set_connectors(&mut self, connectors: Arc<dyn Connectors>) {
        self.connectors = connectors;
    }

    /// Offers a function of the program, to queries and to CREATE FUNCTION.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn register(&mut self, identifier: &str, function: UserFunction) -> Result<()> {
        let is_name = |text: &str| {
            let mut letters = text.chars();
            letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
                && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
        };
        if !is_name(identifier) {
            return Err(Error::input(format!(
                "'{identifier}' is no name of a function: it has letters, digits and '_', and a digit is not the first"
            )));
        }
        if is_function(identifier) {
            return Err(Error::input(format!("'{identifier}' is the name of a built-in function: take another")));
        }
        if self.catalog.function(identifier).is_some() {
            return Err(Error::input(format!("the function '{identifier}' is registered already: DROP it first")));
        }
        self.catalog.register(identifier, function);
        Ok(())
    }

    /// What names mean.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The settings.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// What whoever made settings should know of them: what has not been asked for yet.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.config.take_warnings()
    }

    /// Does what a statement says, up to running jobs.
    ///
    /// # Errors
    /// It is not possible: the message says why, and what to do. Nothing has changed then.
    pub fn execute(&mut self, statement: &Statement) -> Result<Answer> {
        match statement {
            Statement::Query(query) => return self.select(query).map(Answer::Select),
            Statement::Insert(insert) => return self.insert(std::slice::from_ref(insert)).map(Answer::Insert),
            Statement::StatementSet(inserts) => return self.insert(inserts).map(Answer::Insert),
            Statement::CreateTable(create) => match &create.query {
                Some(query) => return self.create_table_as(create, query),
                None => self.create_table(create)?,
            },
            Statement::CreateView(view) => self.create_view(view)?,
            Statement::CreateFunction(function) => {
                self.catalog.create_function(&function.name, &function.identifier, function.if_not_exists)?;
            }
            Statement::CreateCatalog(create) => {
                let name = single(&create.name, "catalog")?;
                match create.options.get("type").map(String::as_str) {
                    None | Some("generic_in_memory") => {}
                    Some(other) => {
                        return Err(Error::input(format!(
                            "a catalog of type '{other}' is not supported: there is 'generic_in_memory'"
                        )));
                    }
                }
                self.catalog.create_catalog(name, create.options.clone(), create.if_not_exists)?;
            }
            Statement::CreateDatabase(create) => self.catalog.create_database(&create.name, create.if_not_exists)?,
            Statement::Drop(drop) => self.drop(drop)?,
            Statement::AlterTable(alter) => self.alter(alter)?,
            Statement::UseCatalog(name) => self.catalog.use_catalog(single(name, "catalog")?)?,
            Statement::UseDatabase(name) => self.catalog.use_database(name)?,
            Statement::Set(None) => return Ok(Answer::Rows(self.config.rows()?)),
            Statement::Set(Some((key, value))) => self.config.set(key, value)?,
            Statement::Reset(None) => self.config.reset_all(),
            Statement::Reset(Some(key)) => self.config.reset(key),
            Statement::Show(show) => return self.show(show).map(Answer::Rows),
            Statement::Describe(name) => return self.describe(name).map(Answer::Rows),
            Statement::Explain { details, statement } => return self.explain(details, statement).map(Answer::Rows),
        }
        Ok(Answer::Done)
    }

    fn settings(&self) -> Result<Settings> {
        Settings::new(self.config.values())
    }

    fn queries(&self, settings: &Settings) -> Queries<'_> {
        Queries::new(&self.catalog, settings).with_connectors(Arc::clone(&self.connectors))
    }

    /// The columns of a query.
    ///
    /// # Errors
    /// It names what is not there, or uses it as what it is not.
    pub fn schema(&self, query: &Query) -> Result<SchemaRef> {
        self.queries(&self.settings()?).schema(query)
    }

    /// The job of a query whose rows are for whoever asks.
    ///
    /// # Errors
    /// As for [`Self::schema`]; or streams cannot have it.
    pub fn select(&self, query: &Query) -> Result<Job> {
        let settings = self.settings()?;
        let query = self.queries(&settings).select(query)?;
        let schema = Arc::clone(&query.sink.schema);
        self.job(&[query], &settings, schema)
    }

    fn insert(&self, inserts: &[Insert]) -> Result<Job> {
        let settings = self.settings()?;
        let queries = self.sinks(inserts, &settings)?;
        self.job(&queries, &settings, Arc::new(Schema::empty()))
    }

    fn sinks(&self, inserts: &[Insert], settings: &Settings) -> Result<Vec<SinkQuery>> {
        inserts.iter().map(|insert| self.queries(settings).insert(insert)).collect()
    }

    fn job(&self, queries: &[SinkQuery], settings: &Settings, schema: SchemaRef) -> Result<Job> {
        let Planned { plan, notes, results } = plan::plan(queries, settings)?;
        let warnings = notes.into_iter().filter_map(|note| note.warning).collect();
        Ok(Job { plan, schema, config: self.config.engine().clone(), warnings, results })
    }

    fn explain(&self, details: &[ExplainDetail], statement: &Statement) -> Result<RecordBatch> {
        if details.contains(&ExplainDetail::EstimatedCost) {
            return Err(Error::input("EXPLAIN ESTIMATED_COST is not supported: nothing estimates costs"));
        }
        if details.contains(&ExplainDetail::PlanAdvice) {
            return Err(Error::input(
                "EXPLAIN PLAN_ADVICE is not supported: EXPLAIN by itself says under Warnings what state grows without end",
            ));
        }
        let settings = self.settings()?;
        let queries = match statement {
            Statement::Query(query) => vec![self.queries(&settings).select(query)?],
            Statement::Insert(insert) => self.sinks(std::slice::from_ref(insert), &settings)?,
            Statement::StatementSet(inserts) => self.sinks(inserts, &settings)?,
            _ => return Err(Error::input("EXPLAIN is for queries, INSERT and statement sets")),
        };
        let planned = plan::plan(&queries, &settings)?;
        let mut text = planned.explain(&queries, self.config.engine())?;
        if details.contains(&ExplainDetail::JsonExecutionPlan) {
            text.push_str("\n== Physical Execution Plan ==\n");
            text.push_str(&planned.execution_plan(self.config.engine())?);
            text.push('\n');
        }
        show::texts("result", [text])
    }

    fn create_table(&mut self, create: &CreateTable) -> Result<()> {
        let like = match &create.like {
            Some(like) => Some(Arc::clone(self.catalog.table(&self.catalog.resolve(&like.table.parts)?)?)),
            None => None,
        };
        let settings = self.settings()?;
        let queries = self.queries(&settings);
        let type_of = |expr: &Expr, columns: &[Column]| type_of(&queries, expr, columns);
        let table = define::define(create, like.as_deref(), type_of)?;
        let path = self.catalog.resolve(&create.name.parts)?;
        self.catalog.create(path, Relation::Table(Arc::new(table)), create.is_temporary, create.if_not_exists)
    }

    fn create_table_as(&mut self, create: &CreateTable, query: &Query) -> Result<Answer> {
        let settings = self.settings()?;
        let schema = self.queries(&settings).schema(query)?;
        let mut columns = Vec::new();
        for field in schema.fields() {
            let data_type = SqlType::from_field(field).map_err(Error::input)?;
            columns.push(Column { name: field.name().clone(), data_type, kind: ColumnKind::Physical, comment: None });
        }
        let queries = self.queries(&settings);
        let table = define::define_as(create, &columns, |expr, columns| type_of(&queries, expr, columns))?;
        let path = self.catalog.resolve(&create.name.parts)?;
        let is_there = self.catalog.relation(&path).is_ok();
        if is_there && create.if_not_exists {
            return Ok(Answer::Done);
        }
        self.catalog.create(path.clone(), Relation::Table(Arc::new(table)), create.is_temporary, false)?;
        let insert = Insert {
            table: create.name.clone(),
            hints: BTreeMap::new(),
            partition: Vec::new(),
            columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
            is_overwrite: false,
            on_conflict: None,
            query: Box::new(query.clone()),
        };
        let job = self.insert(&[insert]);
        if job.is_err() {
            self.catalog.drop(&path, false, create.is_temporary, true)?;
        }
        job.map(Answer::Insert)
    }

    fn create_view(&mut self, view: &CreateView) -> Result<()> {
        let settings = self.settings()?;
        let schema = self.queries(&settings).schema(&view.query)?;
        if !view.columns.is_empty() && view.columns.len() != schema.fields().len() {
            return Err(Error::input(format!(
                "the view '{}' has {} names for {} columns",
                view.name,
                view.columns.len(),
                schema.fields().len()
            )));
        }
        self.catalog.create_view(view)
    }

    fn drop(&mut self, drop: &Drop) -> Result<()> {
        match drop.object {
            Object::Table | Object::View => {
                let path = self.catalog.resolve(&drop.name.parts)?;
                self.catalog.drop(&path, drop.object == Object::View, drop.is_temporary, drop.if_exists).map(|_| ())
            }
            Object::Function => self.catalog.drop_function(&drop.name, drop.if_exists),
            Object::Catalog => self.catalog.drop_catalog(single(&drop.name, "catalog")?, drop.if_exists),
            Object::Database => self.catalog.drop_database(&drop.name, drop.if_exists, drop.is_cascade),
        }
    }

    fn alter(&mut self, alter: &AlterTable) -> Result<()> {
        let path = self.catalog.resolve(&alter.name.parts)?;
        let is_view = match self.catalog.relation(&path) {
            Ok(relation) => matches!(relation, Relation::View(_)),
            Err(_) if alter.if_exists => return Ok(()),
            Err(error) => return Err(error),
        };
        if is_view != alter.is_view {
            let (is, other) = if is_view { ("view", "VIEW") } else { ("table", "TABLE") };
            return Err(Error::input(format!("'{path}' is a {is}: say ALTER {other}")));
        }
        match &alter.action {
            AlterAction::Rename(to) => self.catalog.rename(&path, to),
            AlterAction::Set(options) => self.catalog.alter_options(&path, |all| all.extend(options.clone())),
            AlterAction::Reset(keys) => {
                self.catalog.alter_options(&path, |all| all.retain(|key, _| !keys.contains(key)))
            }
            action => {
                let settings = self.settings()?;
                let queries = self.queries(&settings);
                let table = self.catalog.table(&path)?.as_ref().clone();
                let type_of = |expr: &Expr, columns: &[Column]| type_of(&queries, expr, columns);
                let table = catalog::alter(table, &alter.name.to_string(), action, type_of)?;
                self.catalog.replace(&path, table)
            }
        }
    }

    fn show(&self, show: &Show) -> Result<RecordBatch> {
        show::show(self, show)
    }

    fn describe(&self, name: &Name) -> Result<RecordBatch> {
        show::describe(self, name, &Default::default())
    }

    /// The columns of a table or view, as a query sees them.
    fn columns(&self, name: &Name) -> Result<(Vec<Column>, Option<Arc<Table>>)> {
        let path = self.catalog.resolve(&name.parts)?;
        match self.catalog.relation(&path)? {
            Relation::Table(table) => Ok((table.columns.clone(), Some(Arc::clone(table)))),
            Relation::View(view) => {
                let settings = self.settings()?;
                let catalog = self.catalog.within(&view.catalog, &view.database);
                let queries = Queries::new(&catalog, &settings).with_connectors(Arc::clone(&self.connectors));
                let schema = queries.schema(&view.query)?;
                let names = view.columns.iter().map(String::as_str).chain(std::iter::repeat(""));
                let columns = schema.fields().iter().zip(names).map(|(field, name)| {
                    let name = if name.is_empty() { field.name() } else { name };
                    let data_type = SqlType::from_field(field).map_err(Error::input)?;
                    Ok(Column { name: name.to_owned(), data_type, kind: ColumnKind::Physical, comment: None })
                });
                Ok((columns.collect::<Result<_>>()?, None))
            }
        }
    }
}

/// The type of an expression over columns.
fn type_of(queries: &Queries<'_>, expr: &Expr, columns: &[Column]) -> Result<SqlType> {
    let schema = Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>());
    SqlType::from_field(&queries.column("", expr, &schema)?).map_err(Error::input)
}

/// The one part of a name that has no others.
fn single<'a>(name: &'a Name, what: &str) -> Result<&'a str> {
    match name.parts.as_slice() {
        [name] => Ok(name),
        _ => Err(Error::input(format!("'{name}' is no {what}'s name: it has {} parts", name.parts.len()))),
    }
}
