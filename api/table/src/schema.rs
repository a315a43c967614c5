//! [`Schema`]: how a data stream is a table.

use std::fmt::Write;

use flott_core::Result;
use flott_sql::catalog::suggestion;
use flott_sql::types::SqlType;

/// The columns of a table that a data stream is.
///
/// ```
/// use flott_table::prelude::*;
/// let schema = Schema::builder()
///     .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
///     .watermark("rowtime", "SOURCE_WATERMARK()")
///     .build();
/// # let _ = schema;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schema {
    columns: Vec<(String, Column)>,
    watermark: Option<(String, String)>,
    primary_key: Vec<String>,
}

#[derive(Clone, Debug)]
enum Column {
    Physical(String),
    Metadata(String),
    Expression(String),
}

impl Schema {
    /// A schema that says nothing yet: the columns are the fields of the stream's type.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder(Self::default())
    }

    /// The body of the CREATE TABLE for a stream whose type has these columns.
    pub(crate) fn definition(&self, of_type: &[(String, SqlType)]) -> Result<String> {
        let declares = self.columns.iter().any(|(_, column)| matches!(column, Column::Physical(_)));
        let mut parts = Vec::new();
        if !declares {
            parts.extend(of_type.iter().map(|(name, of)| {
                // A column of a primary key is NOT NULL by itself.
                format!("{} {of}", quoted(name))
            }));
        }
        for (name, column) in &self.columns {
            parts.push(match column {
                Column::Physical(of) => {
                    if !of_type.iter().any(|(known, _)| known == name) {
                        let hint = suggestion(name, of_type.iter().map(|(known, _)| known));
                        return Err(flott_core::Error::input(format!(
                            "the stream's records have no field '{name}'{hint}"
                        )));
                    }
                    format!("{} {of}", quoted(name))
                }
                Column::Metadata(of) => format!("{} {of} METADATA FROM 'rowtime' VIRTUAL", quoted(name)),
                Column::Expression(expression) => format!("{} AS {expression}", quoted(name)),
            });
        }
        if let Some((column, expression)) = &self.watermark {
            parts.push(format!("WATERMARK FOR {} AS {expression}", quoted(column)));
        }
        if !self.primary_key.is_empty() {
            let names: Vec<String> = self.primary_key.iter().map(|name| quoted(name)).collect();
            parts.push(format!("PRIMARY KEY ({}) NOT ENFORCED", names.join(", ")));
        }
        let mut text = String::new();
        let _ = write!(text, "({})", parts.join(", "));
        Ok(text)
    }

    /// Whether rows are told apart by a key.
    pub(crate) fn has_primary_key(&self) -> bool {
        !self.primary_key.is_empty()
    }
}

/// A name as SQL has it between backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A [`Schema`] that is being written. Mistakes in it are found by whoever takes it.
#[derive(Clone, Debug)]
pub struct SchemaBuilder(Schema);

impl SchemaBuilder {
    /// A field of the stream's type, as a column of this type of SQL. If any is declared, only declared ones are columns.
    #[must_use]
    pub fn column(mut self, name: &str, data_type: &str) -> Self {
        self.0.columns.push((name.to_owned(), Column::Physical(data_type.to_owned())));
        self
    }

    /// A column that is computed of others.
    #[must_use]
    pub fn column_by_expression(mut self, name: &str, expression: &str) -> Self {
        self.0.columns.push((name.to_owned(), Column::Expression(expression.to_owned())));
        self
    }

    /// A column with the records' timestamps, TIMESTAMP(3) or TIMESTAMP_LTZ(3).
    #[must_use]
    pub fn column_by_metadata(mut self, name: &str, data_type: &str) -> Self {
        self.0.columns.push((name.to_owned(), Column::Metadata(data_type.to_owned())));
        self
    }

    /// Makes a column event time. The expression says how far it has come: `SOURCE_WATERMARK()` takes the stream's
    /// watermarks, others are computed, such as `ts - INTERVAL '5' SECOND`.
    #[must_use]
    pub fn watermark(mut self, column: &str, expression: &str) -> Self {
        self.0.watermark = Some((column.to_owned(), expression.to_owned()));
        self
    }

    /// The columns of which no two rows have the same.
    #[must_use]
    pub fn primary_key(mut self, columns: &[&str]) -> Self {
        self.0.primary_key = columns.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// The schema.
    pub fn build(self) -> Schema {
        self.0
    }
}
