//! Data streams as tables, and tables as data streams.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type, SchemaRef, TimeUnit, TimestampMillisecondType};
use flott::{DataStream, embed};
use flott_chunk::{Chunk, RowKind, batch_of};
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Error, Result};
use flott_operators::task::Task;
use flott_operators::{AnyPush, NodeFactory, Operator, OperatorNode, Output, Push};
use flott_sql::catalog::suggestion;
use flott_sql::connect::LookupConnectors;
use flott_sql::logical::{Connectors, Installed, Readable};
use flott_sql::plan::Changelog;
use flott_sql_runtime::exchange::ChunkHead;
use flott_sql_runtime::spec::{SinkSpec, SourceSpec};

use crate::shape::{Reader, Shape};

/// The connector of tables that data streams are.
pub(crate) const CONNECTOR: &str = "data-stream";
/// The option with the stream's number.
pub(crate) const STREAM: &str = "stream";
/// The option that says which changes come.
pub(crate) const CHANGELOG: &str = "changelog-mode";
/// The metadata that every stream has if its records have timestamps.
const ROWTIME: &str = "rowtime";

/// Which changes a stream tells of, or a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangelogMode {
    /// New rows only: `+I`.
    InsertOnly,
    /// `+I`, `+U` and `-D`, by a primary key.
    Upsert,
    /// `+I`, `-U`, `+U` and `-D`.
    #[default]
    All,
}

impl ChangelogMode {
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::InsertOnly => "insert-only",
            Self::Upsert => "upsert",
            Self::All => "all",
        }
    }
}

/// What planning knows of tables: those that are data streams, those of the program's connectors, and all others.
#[derive(Default)]
pub(crate) struct StreamConnectors {
    pub lookups: LookupConnectors,
}

impl Connectors for StreamConnectors {
    fn source(&self, spec: &SourceSpec) -> Result<Readable> {
        if let Some(readable) = self.lookups.readable(spec)? {
            return Ok(readable);
        }
        if !is_stream(spec) {
            return Installed.source(spec);
        }
        let changelog = match spec.options.get(CHANGELOG).map(String::as_str) {
            Some("upsert") => Changelog::Upsert,
            Some("all") => Changelog::All,
            _ => Changelog::InsertOnly,
        };
        for (column, key) in &spec.metadata {
            let field = spec.table_schema.field(*column);
            if key != ROWTIME {
                return Err(Error::input(format!(
                    "'{}': the column '{}' is the metadata '{key}', and a data stream has '{ROWTIME}' alone{}",
                    spec.table,
                    field.name(),
                    suggestion(key, [ROWTIME])
                )));
            }
            if !matches!(field.data_type(), DataType::Timestamp(TimeUnit::Millisecond, _)) {
                return Err(Error::input(format!(
                    "'{}': the column '{}' is the '{ROWTIME}' of a data stream: its type is TIMESTAMP(3) or TIMESTAMP_LTZ(3)",
                    spec.table,
                    field.name()
                )));
            }
        }
        // The stream is not the table's alone: it goes on.
        Ok(Readable { changelog, is_lookup: false, is_scan: true, has_watermarks: true, takes_limit: false })
    }

    fn sink(&self, spec: &SinkSpec) -> Result<Changelog> {
        match spec.options.get("connector").map(String::as_str) {
            Some(CONNECTOR) => Err(Error::input(format!(
                "'{}' is a data stream, which is only read: to_data_stream makes a stream of a table",
                spec.table
            ))),
            Some(name) if self.lookups.has(name) => Err(Error::input(format!(
                "table '{}' cannot be written: the connector '{name}' only looks rows up",
                spec.table
            ))),
            _ => Installed.sink(spec),
        }
    }
}

/// Whether a table is a data stream.
pub(crate) fn is_stream(spec: &SourceSpec) -> bool {
    spec.options.get("connector").is_some_and(|name| name == CONNECTOR)
}

/// A data stream that is a table, whatever its records are.
pub(crate) trait StreamTable {
    /// Makes the operator from records to rows.
    fn node(&self, spec: &SourceSpec) -> Result<NodeFactory>;

    /// Sends the records to that operator.
    fn connect(&self, operator: usize);
}

/// A stream of records, each of which has a kind and a value.
pub(crate) struct Records<T, V> {
    pub stream: DataStream<T>,
    pub shape: Shape,
    pub split: fn(T) -> (RowKind, V),
}

impl<T: Data, V: Data> StreamTable for Records<T, V> {
    fn node(&self, spec: &SourceSpec) -> Result<NodeFactory> {
        let schema = spec.table_schema.project(&spec.projection);
        let schema = Arc::new(schema.map_err(|error| Error::system(format!("'{}': {error}", spec.table)))?);
        let is_rowtime = |at: usize| spec.metadata.contains_key(&spec.projection[at]);
        let rowtimes: Vec<usize> = (0..spec.projection.len()).filter(|at| is_rowtime(*at)).collect();
        let wanted: Vec<FieldRef> = (0..spec.projection.len())
            .filter(|at| !is_rowtime(*at))
            .map(|at| Arc::clone(&schema.fields()[at]))
            .collect();
        // It is made once here, so that mistakes are found before anything runs.
        self.shape.writer(&wanted)?;
        let (shape, split) = (self.shape.clone(), self.split);
        Ok(NodeFactory::operator::<T>(move |_, mut targets| {
            let operator = ToRows {
                writer: shape.writer(&wanted)?,
                split,
                schema: Arc::clone(&schema),
                rowtimes: rowtimes.clone(),
                values: Vec::new(),
                buffer: Batch::default(),
            };
            let out = targets.output::<Chunk>()?;
            Ok(Box::new(OperatorNode::new(targets.id, targets.name, operator, out)))
        }))
    }

    fn connect(&self, operator: usize) {
        embed::connect(&self.stream, operator);
    }
}

/// From records to rows.
struct ToRows<T, V> {
    writer: crate::shape::Writer,
    split: fn(T) -> (RowKind, V),
    schema: SchemaRef,
    /// Which columns are the records' timestamps.
    rowtimes: Vec<usize>,
    values: Vec<V>,
    buffer: Batch<Chunk>,
}

impl<T: Data, V: Data> Operator<T, Chunk> for ToRows<T, V> {
    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<Chunk>) -> Result<()> {
        let rows = batch.len();
        let mut kinds = Vec::with_capacity(rows);
        self.values.clear();
        for record in batch.rows.drain(..) {
            let (kind, value) = (self.split)(record);
            kinds.push(kind);
            self.values.push(value);
        }
        let mut columns = self.writer.columns(&self.values)?;
        if !self.rowtimes.is_empty() {
            if batch.timestamps.len() != rows {
                return Err(Error::input(
                    "the records have no timestamps for the column 'rowtime': call assign_timestamps_and_watermarks before from_data_stream",
                ));
            }
            let times = std::mem::take(&mut batch.timestamps);
            let times: ArrayRef = Arc::new(PrimitiveArray::<TimestampMillisecondType>::from_iter_values(times));
            for &at in &self.rowtimes {
                let of = self.schema.field(at).data_type();
                let column = cast(&times, of).map_err(|error| Error::system(format!("timestamps as {of}: {error}")))?;
                columns.insert(at, column);
            }
        }
        let batch_of_rows = batch_of(&self.schema, columns, rows)?;
        self.buffer.rows.push(Chunk::new(batch_of_rows, kinds));
        self.buffer.split = batch.split;
        let sent = out.push(&mut self.buffer);
        self.buffer.clear();
        sent
    }
}

/// The operator from rows to records: a value and its kind make one.
pub(crate) fn to_records<T: Data, V: Data>(
    reader: Reader,
    rowtime: Option<usize>,
    join: fn(RowKind, V) -> Result<T>,
) -> NodeFactory {
    NodeFactory::Operator {
        make: Box::new(move |_, mut targets| {
            let operator = FromRows { reader: reader.clone(), rowtime, join, buffer: Batch::default() };
            let out = targets.output::<T>()?;
            let node: Box<dyn Push<Chunk>> = Box::new(OperatorNode::new(targets.id, targets.name, operator, out));
            Ok(AnyPush::new(node))
        }),
        head: Box::new(|cx, chain| {
            let head: Box<dyn Task> = Box::new(ChunkHead::new(chain.typed::<Chunk>()?, Arc::clone(&cx.counters)));
            Ok(head)
        }),
    }
}

/// From rows to records.
struct FromRows<T, V> {
    reader: Reader,
    rowtime: Option<usize>,
    join: fn(RowKind, V) -> Result<T>,
    buffer: Batch<T>,
}

impl<T: Data, V: Data> Operator<Chunk, T> for FromRows<T, V> {
    fn process(&mut self, batch: &mut Batch<Chunk>, out: &mut Output<T>) -> Result<()> {
        for chunk in batch.rows.drain(..) {
            let mut start = 0;
            while start < chunk.len() {
                let part = chunk.slice(start, Batch::<T>::ROWS_MAX.min(chunk.len() - start));
                start += part.len();
                let values = self.reader.values::<V>(&part.batch)?;
                for (row, value) in values.into_iter().enumerate() {
                    self.buffer.rows.push((self.join)(part.kind(row), value)?);
                }
                if let Some(column) = self.rowtime {
                    times(part.column(column), &mut self.buffer.timestamps)?;
                }
                self.buffer.split = batch.split;
                out.push(&mut self.buffer)?;
                self.buffer.clear();
            }
        }
        Ok(())
    }
}

/// Appends the times of a column in milliseconds.
fn times(column: &ArrayRef, out: &mut Vec<Timestamp>) -> Result<()> {
    let zone = match column.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        other => return Err(Error::system(format!("event time of the type {other}"))),
    };
    let failed = |error: arrow::error::ArrowError| Error::input(format!("event time: {error}"));
    let millis = cast(column, &DataType::Timestamp(TimeUnit::Millisecond, zone)).map_err(failed)?;
    if millis.null_count() > 0 {
        return Err(Error::input("a row has NULL for its event time, and a record of a stream has a timestamp"));
    }
    let millis = cast(&millis, &DataType::Int64).map_err(failed)?;
    out.extend_from_slice(millis.as_primitive::<Int64Type>().values());
    Ok(())
}
