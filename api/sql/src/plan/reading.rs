//! How a table is read: its columns, those that are computed of them, and its watermark.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::DFSchema;
use flott_core::{Error, Result};
use flott_sql_runtime::spec::SourceSpec;

use super::expr::{PExpr, column, columns_of, physical, refused, remap, replace};
use super::table::{ColumnKind, TableInfo};

/// What is read of a table for some of its columns.
pub(super) struct Reading {
    /// The columns that are read, as positions among those that the connector makes.
    pub projection: Vec<usize>,
    /// Their fields.
    pub fields: Vec<FieldRef>,
    /// The declared columns that are made.
    pub declared: Vec<usize>,
    /// How each of them is, over what is read.
    pub columns: Vec<PExpr>,
    /// The position of the column with event time among `declared`, and the watermark over these.
    pub watermark: Option<(usize, PExpr)>,
}

impl Reading {
    /// What is read for these declared columns, in their order; with the watermark, what that needs comes behind them.
    pub(super) fn of(table: &TableInfo, wanted: &[usize], with_watermark: bool) -> Result<Self> {
        let names = DFSchema::try_from(table.schema()).map_err(refused)?;
        let watermark = match &table.watermark {
            Some((column, Some(expr))) if with_watermark => Some((*column, physical(expr, &names)?)),
            _ => None,
        };
        let mut declared = wanted.to_vec();
        if let Some((time, expr)) = &watermark {
            let needed: BTreeSet<usize> = columns_of(expr).into_iter().chain([*time]).collect();
            declared.extend(needed.into_iter().filter(|column| !wanted.contains(column)));
        }
        let made = declared.iter().map(|&index| made(table, index, &names, 0)).collect::<Result<Vec<_>>>()?;
        let mut read: BTreeSet<usize> = made.iter().flat_map(columns_of).collect();
        let all = table.read();
        if read.is_empty() {
            // Rows are counted by something.
            read.extend(all.first());
        }
        let read: Vec<usize> = read.into_iter().collect();
        let at = |list: &[usize], wanted: usize| list.iter().position(|index| *index == wanted).unwrap_or(0);
        let columns = made.iter().map(|expr| remap(expr, &|index| at(&read, index))).collect::<Result<_>>()?;
        let watermark = match watermark {
            Some((time, expr)) => Some((at(&declared, time), remap(&expr, &|index| at(&declared, index))?)),
            None => None,
        };
        Ok(Self {
            projection: read.iter().map(|&index| at(&all, index)).collect(),
            fields: read.iter().map(|&index| Arc::clone(&table.columns[index].field)).collect(),
            declared,
            columns,
            watermark,
        })
    }

    /// What the connector is told.
    pub(super) fn source(&self, table: &TableInfo) -> SourceSpec {
        let all = table.read();
        let mut metadata = BTreeMap::new();
        for (position, &index) in all.iter().enumerate() {
            if let ColumnKind::Metadata(key) = &table.columns[index].kind {
                metadata.insert(position, key.clone());
            }
        }
        let fields: Vec<FieldRef> = all.iter().map(|&index| Arc::clone(&table.columns[index].field)).collect();
        SourceSpec {
            table: table.name.clone(),
            options: table.options.clone(),
            table_schema: Arc::new(Schema::new(fields)),
            metadata,
            partition_keys: table.partition_keys.clone(),
            projection: self.projection.clone(),
            limit: None,
            filters: Vec::new(),
            is_batch: false,
        }
    }
}

/// A declared column, over those that the connector makes.
fn made(table: &TableInfo, index: usize, names: &DFSchema, depth: usize) -> Result<PExpr> {
    let ColumnKind::Computed(expr) = &table.columns[index].kind else { return Ok(column(index)) };
    if depth > table.columns.len() {
        let name = table.columns[index].field.name();
        return Err(Error::input(format!("the computed column '{name}' of '{}' is computed from itself", table.name)));
    }
    let expr = physical(expr, names)?;
    let mut parts = BTreeMap::new();
    for used in columns_of(&expr) {
        parts.insert(used, made(table, used, names, depth + 1)?);
    }
    replace(&expr, &|index| parts.get(&index).map_or_else(|| column(index), Arc::clone))
}
