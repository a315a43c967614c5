//! [`TableResult`]: what a statement answers.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use flott::JobOutcome;
use flott_chunk::display::write_changelog;
use flott_chunk::{Chunk, RowKind};
use flott_core::{Error, Result, ResultExt};
use flott_sql::execute::{Next, Running};
use serde::de::DeserializeOwned;

use crate::shape::{Reader, Shape};

/// How long the rows of a job are waited for at a time.
const PATIENCE: Duration = Duration::from_millis(100);

/// What a statement answers: nothing, rows that are known at once, a job that has written tables, or the rows of a query as
/// they come.
pub struct TableResult(Kind);

enum Kind {
    Done,
    Rows(RecordBatch),
    Job(JobOutcome),
    Query(SchemaRef, Running),
}

impl TableResult {
    pub(crate) fn done() -> Self {
        Self(Kind::Done)
    }

    pub(crate) fn of_rows(rows: RecordBatch) -> Self {
        Self(Kind::Rows(rows))
    }

    pub(crate) fn of_job(outcome: JobOutcome) -> Self {
        Self(Kind::Job(outcome))
    }

    pub(crate) fn of_query(schema: SchemaRef, running: Running) -> Self {
        Self(Kind::Query(schema, running))
    }

    /// The job that an INSERT was.
    pub fn job(&self) -> Option<&JobOutcome> {
        match &self.0 {
            Kind::Job(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The columns of the rows.
    pub fn schema(&self) -> Option<SchemaRef> {
        match &self.0 {
            Kind::Rows(rows) => Some(rows.schema()),
            Kind::Query(schema, _) => Some(SchemaRef::clone(schema)),
            Kind::Done | Kind::Job(_) => None,
        }
    }

    /// Waits for all rows, and takes them for values of a type. They must be new rows only: see [`Self::changes`].
    ///
    /// # Errors
    /// The job failed; rows are no values of the type, or are updated.
    pub fn collect<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        let insert = |(kind, value)| match kind {
            RowKind::Insert => Ok(value),
            kind => Err(Error::input(format!(
                "the result has a row of the kind {}, since it is updated as rows come: take its changes()",
                kind.short()
            ))),
        };
        self.into_changes()?.map(|change| change.and_then(insert)).collect()
    }

    /// Waits for all changes.
    ///
    /// # Errors
    /// The job failed, or rows are no values of the type.
    pub fn changes<T: DeserializeOwned>(self) -> Result<Vec<(RowKind, T)>> {
        self.into_changes()?.collect()
    }

    /// The changes as they come, until the job ends. Dropping it cancels nothing by itself: the job ends when nobody takes
    /// its rows.
    ///
    /// # Errors
    /// The rows' columns are not those of the type.
    pub fn into_changes<T: DeserializeOwned>(self) -> Result<Changes<T>> {
        let schema = self.schema().ok_or_else(|| Error::input("the statement has no rows"))?;
        let reader = Shape::of::<T>()?.reader(&schema)?;
        Ok(Changes { chunks: self.chunks(), reader, now: Vec::new().into_iter() })
    }

    /// Prints the changes as they come, as `flott sql -o changelog` does: the kind of each row and its values, with tabs
    /// between.
    ///
    /// # Errors
    /// The job failed, or standard output cannot be written to.
    pub fn print(self) -> Result<()> {
        let mut text = String::new();
        for chunk in self.chunks() {
            let chunk = chunk?;
            for row in 0..chunk.len() {
                write_changelog(&chunk, row, &mut text);
                text.push('\n');
            }
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("writing to standard output")?;
            text.clear();
        }
        Ok(())
    }

    fn chunks(self) -> Chunks {
        match self.0 {
            Kind::Done | Kind::Job(_) => Chunks { known: None, running: None },
            Kind::Rows(rows) => Chunks { known: Some(Chunk::inserts(rows)), running: None },
            Kind::Query(_, running) => Chunks { known: None, running: Some(running) },
        }
    }
}

/// Rows by the chunk.
struct Chunks {
    known: Option<Chunk>,
    running: Option<Running>,
}

impl Iterator for Chunks {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Result<Chunk>> {
        if let Some(known) = self.known.take() {
            return Some(Ok(known));
        }
        loop {
            match self.running.as_ref()?.next(PATIENCE) {
                Next::Rows(chunk) => return Some(Ok(chunk)),
                Next::Pause => {}
                Next::End => return self.running.take()?.end().err().map(Err),
            }
        }
    }
}

/// The changes of a query's result as they come. See [`TableResult::into_changes`].
pub struct Changes<T> {
    chunks: Chunks,
    reader: Reader,
    now: std::vec::IntoIter<(RowKind, T)>,
}

impl<T: DeserializeOwned> Iterator for Changes<T> {
    type Item = Result<(RowKind, T)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(change) = self.now.next() {
                return Some(Ok(change));
            }
            let chunk = match self.chunks.next()? {
                Ok(chunk) => chunk,
                Err(error) => return Some(Err(error)),
            };
            match self.reader.values::<T>(&chunk.batch) {
                Ok(values) => {
                    let kinds = (0..chunk.len()).map(|row| chunk.kind(row));
                    self.now = kinds.zip(values).collect::<Vec<_>>().into_iter();
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
