//! Tables of the catalog as the planner knows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, Result};
use flott_sql_runtime::spec::SourceSpec;

use super::errors::{mistake, ours, shown};
use super::scope::Scope;
use crate::catalog::{ColumnKind, Path, Table, suggestion};
use crate::plan::{ColumnKind as PlannedKind, TableColumn, TableInfo};

/// A table that is read.
pub(super) fn read(scope: &Scope, path: &Path, table: &Table, hints: &[(String, String)]) -> Result<TableInfo> {
    let mut options: BTreeMap<String, String> = table.options.clone();
    options.extend(hints.iter().cloned());
    let mut metadata = BTreeMap::new();
    for (at, column) in table.source_columns().enumerate() {
        if let ColumnKind::Metadata { key, .. } = &column.kind {
            metadata.insert(at, key.clone());
        }
    }
    let table_schema = table.source_schema();
    let spec = SourceSpec {
        table: path.to_string(),
        options: options.clone(),
        projection: (0..table_schema.fields().len()).collect(),
        table_schema,
        metadata,
        partition_keys: table.partition_keys.clone(),
        limit: None,
        filters: Vec::new(),
        is_batch: scope.settings.is_batch,
    };
    let readable = scope.connectors.source(&spec).map_err(|error| ours(&error))?;
    let scope = Arc::new(scope.clone());
    let schema = DFSchema::try_from(table.schema())?;
    let of_table = |what: &str, error: &_| mistake(format!("{what} of '{path}': {}", shown(error, None).message));
    let mut columns = Vec::new();
    for column in &table.columns {
        let kind = match &column.kind {
            ColumnKind::Physical => PlannedKind::Physical,
            ColumnKind::Metadata { key, .. } => PlannedKind::Metadata(key.clone()),
            ColumnKind::Computed(expr) => {
                let made = scope.expr(expr, &schema);
                PlannedKind::Computed(made.map_err(|error| of_table(&format!("the column '{}'", column.name), &error))?)
            }
        };
        columns.push(TableColumn { field: Arc::new(column.field()), kind });
    }
    let position = |name: &str| {
        table.columns.iter().position(|column| column.name == *name).ok_or_else(|| {
            let hint = suggestion(name, table.columns.iter().map(|column| column.name.as_str()));
            mistake(format!("'{path}' has no column '{name}'{hint}"))
        })
    };
    let watermark = match &table.watermark {
        None => None,
        Some(watermark) => {
            let [column] = &watermark.column[..] else {
                return Err(mistake(format!(
                    "the WATERMARK of '{path}' is for a field of a row: make it a computed column"
                )));
            };
            let expr = match watermark.is_of_source() {
                true if readable.has_watermarks => None,
                true => {
                    return Err(mistake(format!(
                        "the WATERMARK of '{path}' is SOURCE_WATERMARK(), and its connector sends none: say what it is, such as ts - INTERVAL '5' SECOND"
                    )));
                }
                false => Some(scope.expr(&watermark.expr, &schema).map_err(|error| of_table("the WATERMARK", &error))?),
            };
            Some((position(column)?, expr))
        }
    };
    let primary_key = table.primary_key.iter().map(|name| position(name)).collect::<Result<_>>()?;
    Ok(TableInfo {
        name: path.to_string(),
        columns,
        options,
        watermark,
        primary_key,
        partition_keys: table.partition_keys.clone(),
        changelog: readable.changelog,
        is_lookup: readable.is_lookup,
        is_scan: readable.is_scan,
        takes_limit: readable.takes_limit,
    })
}
