//! The rows of a query's result, printed.

use comfy_table::{CellAlignment, Table};
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SendableRecordBatchStream;
use flott_core::{Error, Result};
use futures::TryStreamExt;

use super::Form;
use super::query::explain;
use crate::{format, output, terminal};

/// How many rows a table for people has; it is measured before it is printed, so that it is in memory.
const TABLE_ROWS_MAX: usize = 10_000;

/// Prints the rows as they come, or as one table.
pub(super) async fn print(form: Form, mut rows: SendableRecordBatchStream) -> Result<()> {
    let schema = rows.schema();
    if form == Form::Csv && !output::write(csv_header(&schema).as_bytes())? {
        return Ok(());
    }
    let mut cells = Vec::new();
    while let Some(batch) = rows.try_next().await.map_err(|error| explain(&error))? {
        let text = match form {
            Form::Json => json_lines(&batch).map_err(unprintable)?,
            Form::Csv => csv_lines(&batch).map_err(unprintable)?,
            Form::Table => {
                cells.extend(table_cells(&batch, TABLE_ROWS_MAX + 1 - cells.len()).map_err(unprintable)?);
                if cells.len() > TABLE_ROWS_MAX {
                    break;
                }
                continue;
            }
        };
        if !output::write(&text)? {
            return Ok(());
        }
    }
    if form == Form::Table {
        let is_cut = cells.len() > TABLE_ROWS_MAX;
        cells.truncate(TABLE_ROWS_MAX);
        output::write(format!("{}\n", table(&schema, cells)).as_bytes())?;
        if is_cut {
            let shown = format::count(TABLE_ROWS_MAX as u64);
            terminal::say(format_args!("the first {shown} rows are shown: `-o csv` and `-o json` print all"));
        }
    }
    Ok(())
}

/// A value that the form has no way to write.
fn unprintable(error: ArrowError) -> Error {
    Error::input(format!("a row cannot be printed in this form: {error}; choose its columns, or another form with -o"))
}

fn json_lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut lines = Vec::new();
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut lines);
    writer.write(batch)?;
    writer.finish()?;
    Ok(lines)
}

fn csv_header(schema: &SchemaRef) -> String {
    csv_line(schema.fields().iter().map(|field| Some(field.name().clone())))
}

fn csv_lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let formatters = formatters(batch)?;
    let mut lines = String::new();
    for row in 0..batch.num_rows() {
        let cells = batch.columns().iter().zip(&formatters);
        lines.push_str(&csv_line(
            cells.map(|(column, cell)| (!column.is_null(row)).then(|| cell.value(row).to_string())),
        ));
    }
    Ok(lines.into_bytes())
}

/// One line as RFC 4180 has it. Nothing between two commas is null, an empty text has quotes.
pub(super) fn csv_line(cells: impl Iterator<Item = Option<String>>) -> String {
    let quoted = |cell: Option<String>| match cell {
        None => String::new(),
        Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Some(text) => text,
    };
    let mut line = cells.map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

/// The cells of up to `rows_max` rows.
fn table_cells(batch: &RecordBatch, rows_max: usize) -> Result<Vec<Vec<String>>, ArrowError> {
    let formatters = formatters(batch)?;
    let row = |row: usize| formatters.iter().map(|cell| format::printable(&cell.value(row).to_string())).collect();
    Ok((0..batch.num_rows().min(rows_max)).map(row).collect())
}

fn formatters(batch: &RecordBatch) -> Result<Vec<ArrayFormatter<'_>>, ArrowError> {
    const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_null("null").with_display_error(true);
    batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &OPTIONS)).collect()
}

fn table(schema: &SchemaRef, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.set_header(schema.fields().iter().map(|field| format::printable(field.name())));
    for row in rows {
        table.add_row(row);
    }
    for (column, field) in table.column_iter_mut().zip(schema.fields()) {
        if field.data_type().is_numeric() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format::table(table)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, BinaryArray, Int64Array, StringArray};
    use expect_test::expect;

    use super::*;

    fn batch() -> RecordBatch {
        let columns: [(&str, ArrayRef); 3] = [
            ("key", Arc::new(StringArray::from(vec![Some("a, \"b\""), Some(""), None]))),
            ("n", Arc::new(Int64Array::from(vec![Some(-1), None, Some(1_000)]))),
            (
                "raw",
                Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\x01\xff".as_slice()), Some(b"".as_slice()), None])),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    #[test]
    fn lines_of_csv_tell_null_from_empty() {
        let text = csv_header(&batch().schema()) + std::str::from_utf8(&csv_lines(&batch()).unwrap()).unwrap();
        expect![[r#"
            key,n,raw
            "a, ""b""",-1,01ff
            "",,""
            ,1000,
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn lines_of_json_are_objects() {
        let text = String::from_utf8(json_lines(&batch()).unwrap()).unwrap();
        expect![[r#"
            {"key":"a, \"b\"","n":-1,"raw":"01ff"}
            {"key":"","n":null,"raw":""}
            {"key":null,"n":1000,"raw":null}
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn numbers_stand_on_the_right() {
        let rows = table_cells(&batch(), 2).unwrap();
        let text = table(&batch().schema(), rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["a,", "\"b\"", "-1", "01ff"]);
        assert!(lines[2].trim_start().starts_with("null"), "{text}");
        let end = |line: &str, cell: &str| line.find(cell).unwrap() + cell.len();
        assert_eq!(end(lines[1], "-1"), end(lines[2], "null"), "{text}");
    }
}
