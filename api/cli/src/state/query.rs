//! SQL over the states of a savepoint. It is only read, whatever the query says.

use std::sync::Arc;

use datafusion::catalog::MemorySchemaProvider;
use datafusion::common::{DataFusionError, SchemaError, TableReference};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{DescribeAlias, SetExpr, Statement as SqlStatement};
use flott_checkpoint::Store;
use flott_core::{Error, Result, ResultExt};
use futures::{StreamExt, TryStreamExt, stream};

use super::states::{State, TableName, table_names};
use super::table::StateTable;
use crate::suggest::did_you_mean;
use crate::verify;

const CATALOG: &str = "savepoint";

/// Where tables are that need no operator in front of their name.
const SCHEMA: &str = "public";

/// What `SHOW TABLES` means here: the states, without what describes them.
const SHOW_TABLES: &str = "SELECT table_schema, table_name FROM information_schema.tables \
    WHERE table_schema <> 'information_schema' ORDER BY table_schema, table_name";

/// How many files are opened at a time to learn the columns of their tables.
const OPENED_AT_A_TIME: usize = 8;

/// Runs a query; returns its rows as they come. The files of its tables are verified first, unless `is_verified` says that
/// they are: a damaged one can give wrong rows.
pub(super) async fn run(
    store: &Store,
    states: &[State],
    sql: &str,
    is_verified: bool,
) -> Result<SendableRecordBatchStream> {
    let context = context();
    let session = context.state();
    let mut statement = parse(&session, sql)?;
    match only_reads(&statement) {
        Reading::Yes => {}
        Reading::ShowTables => {
            statement = parse(&session, SHOW_TABLES)?;
        }
        Reading::No => {
            let what = sql.split_whitespace().next().unwrap_or_default().to_uppercase();
            return Err(Error::input(format!(
                "this {what} is not possible: a savepoint is only read, with SELECT, WITH, SHOW TABLES or DESCRIBE"
            )));
        }
    }
    let references = session.resolve_table_references(&statement).map_err(|error| explain(&error))?;
    if !is_verified {
        verify_tables(store, states, &references).await?;
    }
    let names = register(&context, store, states).await?;
    let planned = match session.statement_to_plan(statement).await {
        Ok(plan) => plan,
        Err(error) => return Err(unknown_table(&context, &references, &names).unwrap_or_else(|| explain(&error))),
    };
    // A second lock: nothing that changes anything is carried out, even if it was hidden in what reads.
    let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    options.verify_plan(&planned).map_err(|error| explain(&error))?;
    let frame = context.execute_logical_plan(planned).await.map_err(|error| explain(&error))?;
    frame.execute_stream().await.map_err(|error| explain(&error))
}

fn context() -> SessionContext {
    let mut config =
        SessionConfig::new().with_information_schema(true).with_default_catalog_and_schema(CATALOG, SCHEMA);
    // Names of states and fields are the program's: they mean what is written.
    config.options_mut().sql_parser.enable_ident_normalization = false;
    SessionContext::new_with_config(config)
}

fn parse(session: &SessionState, sql: &str) -> Result<Statement> {
    let dialect = session.config_options().sql_parser.dialect;
    session.sql_to_statement(sql, &dialect).map_err(|error| match error.find_root() {
        DataFusionError::NotImplemented(text) if text.contains("single SQL statement") => {
            Error::input("one statement at a time")
        }
        DataFusionError::Plan(text) if text.contains("No SQL statements") => Error::input("there is no statement"),
        _ => explain(&error),
    })
}

/// Reads the files of the tables that a query names.
async fn verify_tables(store: &Store, states: &[State], references: &[TableReference]) -> Result<()> {
    for (state, name) in states.iter().zip(table_names(states)) {
        let Some(name) = name else { continue };
        let schema = name.operator.as_deref().unwrap_or(SCHEMA);
        let is_it = |reference: &TableReference| {
            reference.table() == name.state && reference.schema().unwrap_or(SCHEMA) == schema
        };
        if references.iter().any(is_it) {
            let verified = verify::files(store, state.files.iter().cloned().collect()).await;
            verified.with_context(|| format!("state '{}' of operator '{}'", state.name, state.operator))?;
        }
    }
    Ok(())
}

/// Registers the table of each keyed state; returns their names.
async fn register(context: &SessionContext, store: &Store, states: &[State]) -> Result<Vec<TableName>> {
    let session = &context.state();
    let named: Vec<(&State, TableName)> =
        states.iter().zip(table_names(states)).filter_map(|(state, name)| Some((state, name?))).collect();
    let opened = stream::iter(named).map(|(state, name)| async move {
        let table = StateTable::open(session, store, &state.files).await;
        let table = table.with_context(|| format!("state '{}' of operator '{}'", state.name, state.operator))?;
        Ok::<_, Error>((name, table))
    });
    let opened: Vec<(TableName, StateTable)> = opened.buffered(OPENED_AT_A_TIME).try_collect().await?;
    let mut names = Vec::with_capacity(opened.len());
    for (name, table) in opened {
        let reference = match &name.operator {
            None => TableReference::bare(name.state.as_str()),
            Some(operator) => {
                let catalog = context.catalog(CATALOG).ok_or_else(|| Error::system("the query has no catalog"))?;
                if catalog.schema(operator).is_none() {
                    let schema = Arc::new(MemorySchemaProvider::new());
                    catalog.register_schema(operator, schema).map_err(|error| explain(&error))?;
                }
                TableReference::partial(operator.as_str(), name.state.as_str())
            }
        };
        context.register_table(reference, Arc::new(table)).map_err(|error| explain(&error))?;
        names.push(name);
    }
    Ok(names)
}

/// Whether a statement changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Yes,
    ShowTables,
    No,
}

fn only_reads(statement: &Statement) -> Reading {
    let Statement::Statement(statement) = statement else { return Reading::No };
    match &**statement {
        SqlStatement::Query(query) if selects(&query.body) => Reading::Yes,
        SqlStatement::ShowTables { .. } => Reading::ShowTables,
        SqlStatement::ExplainTable { describe_alias: DescribeAlias::Describe | DescribeAlias::Desc, .. } => {
            Reading::Yes
        }
        _ => Reading::No,
    }
}

/// A query may be an INSERT behind a WITH, or a SELECT into a new table.
fn selects(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::Query(query) => selects(&query.body),
        SetExpr::SetOperation { left, right, .. } => selects(left) && selects(right),
        SetExpr::Values(_) => true,
        _ => false,
    }
}

/// The error for the first table that does not exist, if there is one.
fn unknown_table(context: &SessionContext, references: &[TableReference], names: &[TableName]) -> Option<Error> {
    let exists = |reference: &&TableReference| context.table_exist((*reference).clone()).unwrap_or(false);
    let unknown = references.iter().find(|reference| !exists(reference))?;
    let several: Vec<String> =
        names.iter().filter(|name| name.state == unknown.table()).map(TableName::to_sql).collect();
    Some(Error::input(match several[..] {
        [] => {
            let known: Vec<String> = names.iter().map(TableName::to_sql).collect();
            let wanted = unknown.table();
            format!(
                "the savepoint has no keyed state '{wanted}': {}",
                did_you_mean(wanted, known.iter().map(String::as_str))
            )
        }
        _ => format!("there is no table '{unknown}': write {}", several.join(" or ")),
    }))
}

/// DataFusion's error as one of ours.
pub(super) fn explain(error: &DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::SchemaError(schema_error, _) => match &**schema_error {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let known = valid_fields.iter().map(|column| column.name.as_str());
                Error::input(format!("there is no column '{}': {}", field.name, did_you_mean(&field.name, known)))
            }
            other => Error::input(format!("the query is refused: {other}")),
        },
        DataFusionError::SQL(error, _) => Error::input(format!("the query is not SQL that is understood: {error}")),
        root @ (DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_)) => {
            Error::system(format!("the savepoint cannot be read: {root}"))
        }
        // Without what DataFusion puts before it, which tells of its own parts.
        root => {
            let message = root.message();
            let message = message.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or_default();
            let what = if matches!(root, DataFusionError::NotImplemented(_)) { "not possible" } else { "refused" };
            Error::input(format!("the query is {what}: {message}"))
        }
    }
}

#[cfg(test)]
mod tests;
