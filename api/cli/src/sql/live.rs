//! The result of a query as it is now: rows come and go.

use std::collections::HashMap;
use std::fmt::Write;

use arrow::array::{Array, AsArray, StringArray};
use flott_chunk::Chunk;
use flott_core::Result;
use flott_sql_functions::texts;

/// The rows of a changelog, after all changes that have come.
#[derive(Debug, Default)]
pub(crate) struct LiveTable {
    rows: Vec<Option<Vec<String>>>,
    /// Where equal rows are, the latest last.
    places: HashMap<Vec<String>, Vec<usize>>,
    /// Places of rows that went, to be used again: an update takes the place of the row before it.
    free: Vec<usize>,
    changes: u64,
}

impl LiveTable {
    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// How many changes have come.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes changes.
    ///
    /// # Errors
    /// A value has no text.
    pub(crate) fn apply(&mut self, chunk: &Chunk) -> Result<()> {
        let columns = chunk.batch.columns().iter().map(texts).collect::<Result<Vec<_>>>()?;
        let columns: Vec<&StringArray> = columns.iter().map(|column| column.as_string()).collect();
        for row in 0..chunk.len() {
            let cells = columns.iter().map(|column| {
                let text = if column.is_null(row) { super::render::NULL } else { column.value(row) };
                text.to_owned()
            });
            let cells: Vec<String> = cells.collect();
            self.changes += 1;
            if chunk.kind(row).is_addition() { self.add(cells) } else { self.remove(&cells) }
        }
        Ok(())
    }

    fn add(&mut self, cells: Vec<String>) {
        let place = self.free.pop().unwrap_or(self.rows.len());
        self.places.entry(cells.clone()).or_default().push(place);
        match self.rows.get_mut(place) {
            Some(free) => *free = Some(cells),
            None => self.rows.push(Some(cells)),
        }
    }

    fn remove(&mut self, cells: &[String]) {
        // What is not there cannot go: a changelog may begin in the middle.
        let Some(places) = self.places.get_mut(cells) else { return };
        if let Some(place) = places.pop() {
            self.rows[place] = None;
            self.free.push(place);
        }
        if places.is_empty() {
            self.places.remove(cells);
        }
    }

    /// The rows that there are, in the order in which they came.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &[String]> {
        self.rows.iter().flatten().map(Vec::as_slice)
    }

    /// The last rows, below the names of the columns, as a text of at most `lines` lines that are at most `width` wide.
    pub(crate) fn screen(&self, names: &[String], lines: usize, width: usize) -> String {
        let shown: Vec<&[String]> = self.rows().rev().take(lines.saturating_sub(3).max(1)).collect();
        let mut widths: Vec<usize> = names.iter().map(|name| super::render::shown_width(name)).collect();
        for row in &shown {
            for (width, cell) in widths.iter_mut().zip(*row) {
                *width = (*width).max(super::render::shown_width(cell)).min(super::render::WIDTH_MAX);
            }
        }
        let mut out = String::new();
        let mut line = |cells: &[String]| {
            let mut text = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                let cell = super::render::cut(cell, *width);
                let blank = width.saturating_sub(super::render::shown_width(&cell));
                let _ = write!(text, " {:blank$}{cell} ", "");
            }
            let _ = writeln!(out, "{}", super::render::cut(text.trim_end(), width));
        };
        line(names);
        shown.iter().rev().for_each(|row| line(row));
        let more = self.len() - shown.len();
        let _ = match more {
            0 => writeln!(out, "{} rows, {} changes", self.len(), self.changes),
            _ => writeln!(out, "{} rows ({more} above), {} changes", self.len(), self.changes),
        };
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use flott_chunk::RowKind;

    use super::*;

    fn chunk(rows: &[(RowKind, i64)]) -> Chunk {
        let column: ArrayRef = Arc::new(rows.iter().map(|(_, n)| Some(*n)).collect::<Int64Array>());
        Chunk::new(RecordBatch::try_from_iter([("n", column)]).unwrap(), rows.iter().map(|(kind, _)| *kind).collect())
    }

    #[test]
    fn an_update_takes_the_place_of_the_row_before_it() {
        use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
        let mut table = LiveTable::default();
        table.apply(&chunk(&[(Insert, 1), (Insert, 2), (Insert, 2), (UpdateBefore, 1), (UpdateAfter, 9)])).unwrap();
        assert_eq!(table.rows().flatten().collect::<Vec<_>>(), ["9", "2", "2"]);
        table.apply(&chunk(&[(Delete, 2), (Delete, 7)])).unwrap();
        assert_eq!(table.rows().flatten().collect::<Vec<_>>(), ["9", "2"]);
        assert_eq!((table.len(), table.changes()), (2, 7));
    }

    #[test]
    fn a_screen_has_the_last_rows() {
        let mut table = LiveTable::default();
        for n in 0..50 {
            table.apply(&chunk(&[(RowKind::Insert, n)])).unwrap();
        }
        let screen = table.screen(&["n".to_owned()], 5, 80);
        assert_eq!(screen, "  n\n 48\n 49\n50 rows (48 above), 50 changes\n");
    }
}
