//! Rows on standard output.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, SchemaRef};
use clap::ValueEnum;
use flott_chunk::display::write_changelog;
use flott_chunk::{Chunk, RowKind};
use flott_core::Result;
use flott_sql_functions::texts;
use flott_tables::json::{JsonOptions, write_object};
use unicode_width::UnicodeWidthStr;

use super::live::LiveTable;
use crate::output;

/// How many characters of a value are shown.
pub(super) const WIDTH_MAX: usize = 30;

/// How often a table that changes is shown anew.
pub(super) const REDRAW_PAUSE: Duration = Duration::from_millis(100);

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The result as it is now: on a terminal it changes before your eyes, elsewhere its last state is printed
    Table,
    /// Changes in a table with lines
    Tableau,
    /// The row's kind and its values, separated by tabs
    Changelog,
    /// An object a line: `{"op":"+I","row":{…}}`
    Json,
}

/// Shows rows that are known at once.
pub(crate) fn rows(form: Form, batch: &RecordBatch) -> Result<()> {
    // A text of several lines, such as a plan, is no table.
    if matches!(form, Form::Table | Form::Tableau) && batch.num_columns() == 1 && batch.num_rows() == 1 {
        let cells = texts(batch.column(0))?;
        let text = cells.as_string::<i32>().value(0);
        if text.contains('\n') {
            output::write(format!("{}\n", text.trim_end()).as_bytes())?;
            return Ok(());
        }
    }
    let form = if form == Form::Table { Form::Tableau } else { form };
    let mut renderer = Renderer::new(form, &batch.schema(), true)?;
    renderer.chunk(&Chunk::inserts(batch.clone()))?;
    renderer.end()
}

/// Shows the rows of a SELECT as they come.
pub(crate) struct Renderer {
    form: Form,
    schema: SchemaRef,
    /// The rows of a table that is shown when all are there, since its columns are as wide as what is in them.
    kept: Option<Vec<Vec<ArrayRef>>>,
    widths: Vec<usize>,
    rows: u64,
    text: String,
    live: LiveTable,
    is_terminal: bool,
    drawn_at: Option<Duration>,
    drawn_changes: u64,
    drawn_lines: usize,
}

impl Renderer {
    /// `is_final` says that there are no changes to come, so that the rows can be waited for.
    pub(crate) fn new(form: Form, schema: &SchemaRef, is_final: bool) -> Result<Self> {
        let is_kept = is_final && form == Form::Tableau;
        let fields = schema.fields().iter();
        let widths = fields.map(|field| shown_width(field.name()).max(type_width(field.data_type()))).collect();
        let mut renderer = Self {
            form,
            schema: Arc::clone(schema),
            kept: is_kept.then(Vec::new),
            widths,
            rows: 0,
            text: String::new(),
            live: LiveTable::default(),
            is_terminal: std::io::stdout().is_terminal(),
            drawn_at: None,
            drawn_changes: 0,
            drawn_lines: 0,
        };
        if form == Form::Tableau && !is_kept {
            renderer.head();
            renderer.flush()?;
        }
        Ok(renderer)
    }

    /// Shows rows; whether someone still reads them.
    pub(crate) fn chunk(&mut self, chunk: &Chunk) -> Result<bool> {
        self.rows += chunk.len() as u64;
        match self.form {
            Form::Changelog => {
                for row in 0..chunk.len() {
                    write_changelog(chunk, row, &mut self.text);
                    self.text.push('\n');
                }
            }
            Form::Json => {
                for row in 0..chunk.len() {
                    let _ = write!(self.text, "{{\"op\":\"{}\",\"row\":", chunk.kind(row).short());
                    write_object(&chunk.batch, row, &JsonOptions::default(), &mut self.text)?;
                    self.text.push_str("}\n");
                }
            }
            Form::Table => self.live.apply(chunk)?,
            Form::Tableau => {
                let cells = chunk.batch.columns().iter().map(texts).collect::<Result<Vec<_>>>()?;
                match &mut self.kept {
                    Some(kept) => kept.push(cells),
                    None => (0..chunk.len()).for_each(|row| self.line(Some(chunk.kind(row)), &cells, row)),
                }
            }
        }
        if self.form == Form::Table {
            return self.redraw();
        }
        self.flush()
    }

    /// No rows have come for a while: what has not been shown is shown now.
    pub(crate) fn pause(&mut self) -> Result<bool> {
        if self.form == Form::Table && self.drawn_changes != self.live.changes() { self.redraw() } else { Ok(true) }
    }

    /// Shows the table anew, not more often than eyes can follow.
    fn redraw(&mut self) -> Result<bool> {
        let now = flott_env::monotonic();
        if !self.is_terminal || self.drawn_at.is_some_and(|at| now.saturating_sub(at) < REDRAW_PAUSE) {
            return Ok(true);
        }
        (self.drawn_at, self.drawn_changes) = (Some(now), self.live.changes());
        let (lines, width) = terminal_size();
        self.draw(lines, width)
    }

    /// Shows the table over what was shown before.
    fn draw(&mut self, lines: usize, width: usize) -> Result<bool> {
        if self.drawn_lines > 0 {
            // To the beginning of the line first: Ctrl-C leaves its mark there.
            let _ = write!(self.text, "\r\x1b[{}A\x1b[J", self.drawn_lines);
        }
        let screen = self.live.screen(&names(&self.schema), lines, width);
        self.drawn_lines = screen.lines().count();
        self.text.push_str(&screen);
        self.flush()
    }

    /// All rows have been shown.
    pub(crate) fn end(mut self) -> Result<()> {
        if self.form == Form::Table {
            let (lines, width) = if self.is_terminal { terminal_size() } else { (usize::MAX, usize::MAX) };
            return self.draw(lines, width).map(drop);
        }
        if self.form != Form::Tableau {
            return Ok(());
        }
        let total = match (self.kept.take(), self.rows) {
            (Some(_), 0) => "Empty set\n".to_owned(),
            (Some(kept), rows) => {
                self.final_table(&kept);
                format!("{rows} {} in set\n", if rows == 1 { "row" } else { "rows" })
            }
            (None, 0) => "Received a total of 0 row\n".to_owned(),
            (None, rows) => {
                self.border(true);
                format!("Received a total of {rows} {}\n", if rows == 1 { "row" } else { "rows" })
            }
        };
        self.text.push_str(&total);
        self.flush().map(drop)
    }

    /// The query was cancelled: what has come stays, as Flink's client says it.
    pub(crate) fn cancelled(mut self) -> Result<()> {
        let (form, rows) = (self.form, self.rows);
        match form {
            Form::Table => {
                let (lines, width) = terminal_size();
                self.draw(lines, width)?;
            }
            // The rows of a final table were still to come.
            Form::Tableau if self.kept.is_none() && rows > 0 => {
                self.border(true);
                self.flush()?;
            }
            _ => {}
        }
        let noun = if rows == 1 { "row" } else { "rows" };
        crate::terminal::say(format_args!("Query terminated, received a total of {rows} {noun}"));
        Ok(())
    }

    fn final_table(&mut self, kept: &[Vec<ArrayRef>]) {
        for (column, field) in self.schema.fields().iter().enumerate() {
            let cells = kept.iter().flat_map(|cells| cells[column].as_string::<i32>().iter());
            let widest = cells.map(|cell| shown_width(cell.unwrap_or(NULL))).max().unwrap_or_default();
            self.widths[column] = widest.max(shown_width(field.name())).min(WIDTH_MAX);
        }
        self.border(false);
        self.names(None);
        self.border(false);
        for cells in kept {
            let rows = cells.first().map_or(0, |column| column.len());
            (0..rows).for_each(|row| self.line(None, cells, row));
        }
        self.border(false);
    }

    fn head(&mut self) {
        self.border(true);
        self.names(Some("op"));
        self.border(true);
    }

    fn names(&mut self, op: Option<&str>) {
        let names = names(&self.schema);
        self.cells(op, names.iter().map(String::as_str));
    }

    fn line(&mut self, kind: Option<RowKind>, columns: &[ArrayRef], row: usize) {
        let columns: Vec<&StringArray> = columns.iter().map(|column| column.as_string()).collect();
        let cells = columns.iter().map(|column| if column.is_null(row) { NULL } else { column.value(row) });
        self.cells(kind.map(RowKind::short), cells);
    }

    fn cells<'a>(&mut self, op: Option<&str>, cells: impl Iterator<Item = &'a str>) {
        if let Some(op) = op {
            let _ = write!(self.text, "| {op} ");
        }
        for (cell, width) in cells.zip(&self.widths) {
            let cell = cut(cell, *width);
            let blank = width.saturating_sub(shown_width(&cell));
            let _ = write!(self.text, "| {:blank$}{cell} ", "");
        }
        self.text.push_str("|\n");
    }

    fn border(&mut self, has_op: bool) {
        if has_op {
            self.text.push_str("+----");
        }
        for width in &self.widths {
            let _ = write!(self.text, "+{:-<1$}", "", width + 2);
        }
        self.text.push_str("+\n");
    }

    fn flush(&mut self) -> Result<bool> {
        let is_read = output::write(self.text.as_bytes())?;
        self.text.clear();
        Ok(is_read)
    }
}

pub(super) const NULL: &str = "<NULL>";

fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The lines and columns of the terminal.
fn terminal_size() -> (usize, usize) {
    let (lines, width) = console::Term::stdout().size();
    (usize::from(lines), usize::from(width))
}

/// How wide a column is whose rows are not there yet: as in Flink's client.
fn type_width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean => 7,
        DataType::Int8 => 5,
        DataType::Int16 => 7,
        DataType::Int32 => 11,
        DataType::Int64 => 20,
        DataType::Decimal128(precision, _) => usize::from(*precision) + 2,
        DataType::Date32 => 10,
        DataType::Time32(_) => 8,
        DataType::Timestamp(..) => 23,
        _ => WIDTH_MAX,
    }
}

/// How many columns of a terminal a text takes. Wide characters, such as Chinese ones, take two.
pub(super) fn shown_width(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits, on one line.
pub(super) fn cut(text: &str, width: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if shown_width(&line) <= width {
        return line;
    }
    let mut out = String::new();
    for c in line.chars() {
        if shown_width(&out) + shown_width(c.encode_utf8(&mut [0; 4])) + 3 > width {
            break;
        }
        out.push(c);
    }
    out + "..."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abc...");
        assert_eq!(cut("日本語日本", 8), "日本...");
        assert_eq!(cut("a\nb", 6), "a b");
    }
}
