//! What the planner must know of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::logical_expr::{Expr, TableSource};
use flott_core::{Error, Result};

/// A table that is read: the source of [`TableScan`](datafusion::logical_expr::TableScan)s, whose schema is all of its
/// declared columns.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its whole name: `default_catalog.default_database.t`.
    pub name: String,
    /// Its declared columns, in order.
    pub columns: Vec<TableColumn>,
    /// `WITH (…)` and hints.
    pub options: BTreeMap<String, String>,
    /// `WATERMARK FOR column AS expression`: the column's position, and the expression over the declared columns; none if
    /// the connector sends watermarks: `SOURCE_WATERMARK()`.
    pub watermark: Option<(usize, Option<Expr>)>,
    /// The positions of `PRIMARY KEY (…) NOT ENFORCED`; none if empty.
    pub primary_key: Vec<usize>,
    /// `PARTITIONED BY (…)`.
    pub partition_keys: Vec<String>,
    /// Which changes the connector and its format tell of.
    pub changelog: Changelog,
    /// Whether the connector can look rows up by key.
    pub is_lookup: bool,
    /// Whether it can read the table as a whole.
    pub is_scan: bool,
    /// Whether the connector can be told how many rows are enough.
    pub takes_limit: bool,
}

/// A declared column.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name and type.
    pub field: FieldRef,
    /// Where its values come from.
    pub kind: ColumnKind,
}

/// Where a column's values come from.
#[derive(Clone, Debug)]
pub enum ColumnKind {
    /// The format.
    Physical,
    /// `METADATA FROM 'key'`.
    Metadata(String),
    /// `AS expression`, over the declared columns. `PROCTIME()` makes it a processing-time attribute.
    Computed(Expr),
}

/// Which changes a table tells of, or takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changelog {
    /// `+I`.
    InsertOnly,
    /// `+I`, `+U` and `-D`, by the primary key. A sink takes a `-U` that comes all the same for a `-D`.
    Upsert,
    /// `+I`, `-U`, `+U` and `-D`.
    All,
}

/// A table that is written.
#[derive(Clone, Debug)]
pub struct SinkTable {
    /// Its whole name.
    pub name: String,
    /// `WITH (…)` and hints.
    pub options: BTreeMap<String, String>,
    /// Its columns, which are the query's: those that are physical or metadata.
    pub schema: SchemaRef,
    /// For each column that is metadata, its key.
    pub metadata: BTreeMap<usize, String>,
    /// `PARTITIONED BY (…)`.
    pub partition_keys: Vec<String>,
    /// The positions of the primary key; none if empty.
    pub primary_key: Vec<usize>,
    /// Which changes it takes.
    pub changelog: Changelog,
    /// Whether it is `INSERT OVERWRITE`.
    pub is_overwrite: bool,
    /// `ON CONFLICT DO …`.
    pub on_conflict: Option<flott_sql_runtime::spec::ConflictStrategy>,
}

impl TableInfo {
    /// All declared columns.
    pub fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>())
    }

    /// The positions of the columns that the connector makes. The others are computed.
    pub(super) fn read(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&i| !matches!(self.columns[i].kind, ColumnKind::Computed(_))).collect()
    }

    /// What a column means, wherever it is declared. How it is computed belongs to that, and so does its type, since state is made of
    /// values: what was kept of an INT is not what is kept of a BIGINT.
    pub(super) fn meaning(&self, index: usize) -> String {
        let TableColumn { field, kind } = &self.columns[index];
        let column = format!("{} {:?}", field.name(), field.data_type());
        match kind {
            ColumnKind::Computed(expr) => format!("{column} AS {expr}"),
            _ => column,
        }
    }

    /// The table behind a scan.
    pub(super) fn of(source: &Arc<dyn TableSource>, name: &str) -> Result<Self> {
        let table: Option<&Self> = source.downcast_ref();
        table.cloned().ok_or_else(|| Error::input(format!("'{name}' is not a table that can be read")))
    }
}

impl TableSource for TableInfo {
    fn schema(&self) -> SchemaRef {
        Arc::new(TableInfo::schema(self))
    }
}
