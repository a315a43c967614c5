//! Tables.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::Expr;

use crate::parse::Options;
use crate::types::SqlType;

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// How far event time has come.
    pub watermark: Option<Watermark>,
    /// The columns that no two rows have alike; empty if it is not known.
    pub primary_key: Vec<String>,
    /// By what its rows are kept apart.
    pub partition_keys: Vec<String>,
    /// `WITH (…)`.
    pub options: Options,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: SqlType,
    /// Where its values come from.
    pub kind: ColumnKind,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a table has few columns")]
pub enum ColumnKind {
    /// From the rows.
    Physical,
    /// From around the rows.
    Metadata {
        /// What it is called there.
        key: String,
        /// Whether it is not written.
        is_virtual: bool,
    },
    /// From the columns that are no computed ones.
    Computed(Expr),
}

/// `WATERMARK FOR a.b AS e`.
#[derive(Clone, Debug, PartialEq)]
pub struct Watermark {
    /// The column, and the fields in it.
    pub column: Vec<String>,
    /// The watermark, over all columns.
    pub expr: Expr,
}

impl Watermark {
    /// Whether it is that of the source: `SOURCE_WATERMARK()`.
    pub fn is_of_source(&self) -> bool {
        matches!(&self.expr, Expr::Function(call) if call.to_string().eq_ignore_ascii_case("SOURCE_WATERMARK()"))
    }
}

impl Table {
    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// All columns, as a query sees them.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.columns.iter().map(Column::field).collect::<Vec<_>>()))
    }

    /// The columns that its connector reads: physical ones and metadata.
    pub fn source_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !matches!(column.kind, ColumnKind::Computed(_)))
    }

    /// The schema of [`Table::source_columns`].
    pub fn source_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.source_columns().map(Column::field).collect::<Vec<_>>()))
    }

    /// The columns that INSERT writes: physical ones and metadata that is not virtual.
    pub fn sink_columns(&self) -> impl Iterator<Item = &Column> {
        self.source_columns().filter(|column| !matches!(column.kind, ColumnKind::Metadata { is_virtual: true, .. }))
    }

    /// The schema of [`Table::sink_columns`].
    pub fn sink_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.sink_columns().map(Column::field).collect::<Vec<_>>()))
    }

    /// Whether a column is computed.
    pub fn has_computed_columns(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.kind, ColumnKind::Computed(_)))
    }
}

impl Column {
    /// The column in Arrow.
    pub fn field(&self) -> Field {
        self.data_type.to_field(&self.name)
    }
}
