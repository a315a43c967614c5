//! INSERT: the query's columns as those of the table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use flott_sql_runtime::spec::SinkSpec;

use super::coerce::converted;
use super::errors::{mistake, mistake_at, ours};
use super::scope::Scope;
use crate::catalog::{Column, ColumnKind, Path, Table, suggestion};
use crate::parse::Insert;
use crate::plan::{COLLECT, Changelog, SinkTable};
use crate::types::SqlType;
use crate::types::coerce::{decimal_of, is_approximate, is_numeric};

/// The sink of a query whose rows are shown.
pub(super) fn collect(plan: &LogicalPlan) -> SinkTable {
    SinkTable {
        name: "SELECT".to_owned(),
        options: BTreeMap::from([("connector".to_owned(), COLLECT.to_owned())]),
        schema: Arc::clone(plan.schema().inner()),
        metadata: BTreeMap::new(),
        partition_keys: Vec::new(),
        primary_key: Vec::new(),
        changelog: Changelog::All,
        is_overwrite: false,
        on_conflict: None,
    }
}

/// Where the values of a column of the table are from.
enum From {
    /// The query's column.
    Query(usize),
    /// `PARTITION (p = v)`.
    Constant(Expr),
    /// It is not said.
    Nothing,
}

/// The query with the table's columns, and the table.
pub(super) fn insert(scope: &Arc<Scope>, insert: &Insert) -> Result<(LogicalPlan, SinkTable)> {
    let path = scope.catalog.resolve(&insert.table.parts).map_err(|error| ours(&error))?;
    let table = scope.catalog.table(&path);
    let table = table.map_err(|error| mistake_at(error.message, insert.table.start))?;
    let sink = written(scope, &path, table, insert)?;
    let plan = scope.plan(&insert.query)?;
    let columns: Vec<&Column> = table.sink_columns().collect();
    let sources = sources(scope, &path, &columns, &table.partition_keys, insert)?;
    let given = sources.iter().filter(|source| matches!(source, From::Query(_))).count();
    let query = plan.schema().inner();
    let refuse = |cause: &str| {
        mistake(format!(
            "Column types of query result and sink for '{path}' do not match.\nCause: {cause}\n\nQuery schema: [{}]\nSink schema:  [{}]",
            shown(query),
            shown(&table.sink_schema())
        ))
    };
    if given != query.fields().len() {
        return Err(refuse("Different number of columns."));
    }
    let mut made = Vec::new();
    for (at, (column, source)) in columns.iter().zip(sources).enumerate() {
        let to = column.data_type.to_arrow();
        let (expr, from) = match source {
            From::Query(index) => {
                let field = query.field(index);
                (Expr::Column(plan.schema().columns().remove(index)), field.data_type().clone())
            }
            From::Constant(expr) => {
                let of = expr.get_type(&DFSchema::empty())?;
                (expr, of)
            }
            From::Nothing if !column.data_type.is_nullable => {
                return Err(mistake(format!(
                    "the column '{}' of '{path}' is NOT NULL: the INSERT must give it a value",
                    column.name
                )));
            }
            From::Nothing => (Expr::Literal(ScalarValue::try_from(&to)?, None), to.clone()),
        };
        if !is_implicit(&from, &to) {
            return Err(refuse(&format!(
                "Incompatible types for sink column '{}' at position {}.",
                column.name,
                at + 1
            )));
        }
        made.push(converted(expr, &from, &to)?.alias(&column.name));
    }
    let plan = LogicalPlanBuilder::from(plan).project(made)?.build()?;
    Ok((plan, sink))
}

fn sources(
    scope: &Arc<Scope>,
    path: &Path,
    columns: &[&Column],
    partition_keys: &[String],
    insert: &Insert,
) -> Result<Vec<From>> {
    let known = |name: &str| match columns.iter().position(|column| column.name == name) {
        Some(at) => Ok(at),
        None => {
            let hint = suggestion(name, columns.iter().map(|column| column.name.as_str()));
            Err(mistake_at(format!("'{path}' has no column '{name}' that can be written{hint}"), insert.table.start))
        }
    };
    let mut sources: Vec<From> = columns.iter().map(|_| From::Nothing).collect();
    for (name, value) in &insert.partition {
        let at = known(name)?;
        if !partition_keys.contains(name) {
            let keys = match partition_keys {
                [] => "is not partitioned".to_owned(),
                keys => format!("is PARTITIONED BY ({})", keys.join(", ")),
            };
            let cause = format!("'{name}' is no partition column: '{path}' {keys}");
            return Err(mistake_at(cause, insert.table.start));
        }
        let expr = scope.expr(value, &DFSchema::empty())?;
        let (from, to) = (expr.get_type(&DFSchema::empty())?, columns[at].data_type.to_arrow());
        // As in Hive, constants of partitions are texts.
        let expr = if from == DataType::Utf8 || from == DataType::Null { converted(expr, &from, &to)? } else { expr };
        sources[at] = From::Constant(expr);
    }
    let targets = match insert.columns.is_empty() {
        true => (0..columns.len()).filter(|at| matches!(sources[*at], From::Nothing)).collect(),
        false => insert.columns.iter().map(|name| known(name)).collect::<Result<Vec<_>>>()?,
    };
    for (index, at) in targets.into_iter().enumerate() {
        if !matches!(sources[at], From::Nothing) {
            let name = &columns[at].name;
            return Err(mistake_at(format!("the column '{name}' is given twice"), insert.table.start));
        }
        sources[at] = From::Query(index);
    }
    Ok(sources)
}

fn written(scope: &Scope, path: &Path, table: &Table, insert: &Insert) -> Result<SinkTable> {
    let mut options: BTreeMap<String, String> = table.options.clone();
    options.extend(insert.hints.clone());
    let columns: Vec<&Column> = table.sink_columns().collect();
    let mut metadata = BTreeMap::new();
    for (at, column) in columns.iter().enumerate() {
        if let ColumnKind::Metadata { key, .. } = &column.kind {
            metadata.insert(at, key.clone());
        }
    }
    let position = |name: &String| {
        columns.iter().position(|column| column.name == *name).ok_or_else(|| {
            mistake(format!("the primary key of '{path}' has the column '{name}', which cannot be written"))
        })
    };
    let primary_key: Vec<usize> = table.primary_key.iter().map(position).collect::<Result<_>>()?;
    let spec = SinkSpec {
        table: path.to_string(),
        options,
        table_schema: table.sink_schema(),
        metadata,
        partition_keys: table.partition_keys.clone(),
        primary_key,
        is_overwrite: insert.is_overwrite,
        is_batch: scope.settings.is_batch,
    };
    let changelog = scope.connectors.sink(&spec).map_err(|error| ours(&error))?;
    Ok(SinkTable {
        name: spec.table,
        options: spec.options,
        schema: spec.table_schema,
        metadata: spec.metadata,
        partition_keys: spec.partition_keys,
        primary_key: spec.primary_key,
        changelog,
        is_overwrite: spec.is_overwrite,
        on_conflict: insert.on_conflict,
    })
}

/// Columns as Flink shows them.
fn shown(schema: &SchemaRef) -> String {
    let schema: &Schema = schema;
    let column = |field: &arrow::datatypes::FieldRef| {
        let of = SqlType::from_field(field).map_or_else(|_| field.data_type().to_string(), |of| of.to_string());
        format!("{}: {of}", field.name())
    };
    schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Whether INSERT converts values without a CAST.
fn is_implicit(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        _ if from == to => true,
        (DataType::Null, _) => true,
        (_, DataType::Decimal128(..)) => is_numeric(from),
        (DataType::Decimal128(..), _) => is_approximate(to),
        (DataType::Float32, DataType::Float64) => true,
        (_, DataType::Float32 | DataType::Float64) => decimal_of(from).is_some(),
        (DataType::Timestamp(..), DataType::Timestamp(..)) => true,
        (DataType::Timestamp(_, None), DataType::Date32 | DataType::Time32(_)) => true,
        (DataType::List(from), DataType::List(to)) => is_implicit(from.data_type(), to.data_type()),
        (DataType::Map(from, _), DataType::Map(to, _)) => is_implicit(from.data_type(), to.data_type()),
        (DataType::Struct(from), DataType::Struct(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| is_implicit(from.data_type(), to.data_type()))
        }
        _ => match (decimal_of(from), decimal_of(to)) {
            (Some((from, 0)), Some((to, 0))) => from <= to,
            _ => false,
        },
    }
}
