//! The compiled plan: what a SQL job is, as plain data.
//!
//! The planner makes it, `flott sql` ships it, and [`crate::program`] builds a program of it. Columns are positions, types
//! are Arrow's, expressions are compiled, and whatever the planner has found out about changelogs and time stands here: an
//! operator decides nothing of that.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, SchemaRef};
use flott_core::{Error, Result, codec};
use serde::{Deserialize, Serialize};

pub use crate::expr::ExprSpec;
pub use crate::sort_key::SortColumn;

/// The version of the form. A plan of another one is refused.
pub const PLAN_VERSION: u32 = 3;

/// A SQL job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompiledPlan {
    /// [`PLAN_VERSION`] of the build that made it.
    pub version: u32,
    /// The job's name.
    pub name: String,
    /// Its operators. The edges of each lead from earlier ones.
    pub nodes: Vec<PlanNode>,
    /// Its edges, in the order of the targets' inputs.
    pub edges: Vec<PlanEdge>,
    /// What the script has SET.
    pub config: BTreeMap<String, String>,
}

impl CompiledPlan {
    /// The form that ships.
    pub fn encode(&self) -> Result<Vec<u8>> {
        codec::encode(self)
    }

    /// Reads that form.
    ///
    /// # Errors
    /// It is of another version, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let version: u32 = codec::Decoder::new(bytes).read()?;
        if version != PLAN_VERSION {
            return Err(Error::input(format!(
                "the compiled plan has version {version}, and this build reads version {PLAN_VERSION}: compile the script again"
            )));
        }
        codec::decode(bytes)
    }
}

/// An operator of a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanNode {
    /// What its state is named by: made of what it computes, not of where it stands.
    pub uid: String,
    /// How it is shown, as Flink would: `GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])`.
    pub name: String,
    /// What it does.
    pub operator: OperatorSpec,
    /// The columns that it puts out.
    pub schema: SchemaRef,
    /// How many subtasks it has; `None` for as many as the job.
    pub parallelism: Option<u32>,
}

/// An edge of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEdge {
    /// The position of the operator that sends.
    pub source: usize,
    /// The position of the one that receives.
    pub target: usize,
    /// Which input of that: [`crate::Chunk::input`]. Several edges of one input are a union.
    pub input: u8,
    /// Which subtask gets a row.
    pub exchange: Exchange,
}

/// Which subtask gets a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exchange {
    /// The one with the same number: chained, if it is the only input.
    Forward,
    /// The owner of the key in these columns of the sender.
    Hash(Vec<usize>),
    /// The first.
    Global,
    /// One after the other.
    Rebalance,
    /// All.
    Broadcast,
}

/// What an operator does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum OperatorSpec {
    /// Reads a table. Made by the session's connectors.
    Source(SourceSpec),
    /// Writes a table. Made by the session's connectors.
    Sink(SinkSpec),
    /// Says how far event time has come.
    Watermark(WatermarkSpec),
    /// Chooses rows, then computes columns.
    Calc {
        /// Which rows; over the input.
        condition: Option<ExprSpec>,
        /// The output's columns; over the input.
        projection: Vec<ExprSpec>,
    },
    /// Each row several times, with other columns: GROUPING SETS.
    Expand {
        /// The output's columns, for each time.
        projections: Vec<Vec<ExprSpec>>,
    },
    /// Adds `window_start`, `window_end` and `window_time` to each row, once for each window that it is in.
    WindowTable {
        /// The windows.
        window: WindowSpec,
        /// Which column says when a row was.
        time: TimeSpec,
        /// For session windows: the key that they are per. Empty for others.
        partition: Vec<usize>,
        /// The session's time zone, if time is an instant (TIMESTAMP_LTZ) and windows are those of local time there.
        zone: Option<String>,
    },
    /// The first phase of a [`OperatorSpec::GroupAggregate`] or [`OperatorSpec::WindowAggregate`] that has partials. Output: the
    /// input's columns, then the partial one.
    LocalAggregate(LocalAggregateSpec),
    /// GROUP BY without windows: updates as rows come. Output: keys, then aggregates.
    GroupAggregate(GroupAggregateSpec),
    /// GROUP BY with windows: final rows as windows close.
    WindowAggregate(WindowAggregateSpec),
    /// Aggregates OVER the rows before. Output: the input's columns, then the aggregates.
    Over(OverSpec),
    /// ROW_NUMBER() with an upper bound.
    TopN(TopNSpec),
    /// The first or last row of a key.
    Deduplicate(DeduplicateSpec),
    /// Top-N (or, with 1 and time order, deduplication) of each window of rows that have one.
    WindowTopN(WindowTopNSpec),
    /// A join of all rows that there are. Output: the left columns, then (not for semi and anti) the right ones.
    Join(JoinSpec),
    /// A join of rows that are near each other in time.
    IntervalJoin(IntervalJoinSpec),
    /// A join of rows in the same window.
    WindowJoin(WindowJoinSpec),
    /// A join with the version of the right table that was valid at the left row's time.
    TemporalJoin(TemporalJoinSpec),
    /// A join with what a connector looks up. Made by the session's connectors.
    LookupJoin(LookupJoinSpec),
    /// Rows of a collection.
    Unnest {
        /// The column with an array, a map or a multiset. Output: the input's columns, then the element's (a row's fields
        /// each by itself, a map's key and value), then the ordinal if wanted.
        column: usize,
        /// Whether that column is among those that are put out.
        passes_collection: bool,
        /// Whether a row without elements stays, with nulls.
        is_outer: bool,
        /// Whether the ordinal, from 1, is wanted.
        with_ordinality: bool,
    },
    /// Completes the changelog of a table that tells only upserts and deletes, or that may repeat itself.
    ChangelogNormalize {
        /// The primary key.
        key: Vec<usize>,
        /// Whether `-U` is wanted.
        with_update_before: bool,
        /// For how long an unused key is kept; 0 for ever.
        ttl_ms: u64,
    },
    /// Leaves out `-U`.
    DropUpdateBefore,
    /// In the order of event time; what comes late is dropped. Or in that of processing time, in which rows come.
    TemporalSort {
        /// The time column first, ascending. By processing time: the columns behind it, which order rows of the same
        /// millisecond.
        order: Vec<SortColumn>,
        /// Whether time is the machine's.
        is_processing: bool,
    },
    /// In order, at the end of bounded input.
    Sort {
        /// By which columns.
        order: Vec<SortColumn>,
        /// How many rows to leave out.
        offset: u64,
        /// How many to put out.
        limit: Option<u64>,
        /// Whether rows are only inserted.
        is_insert_only: bool,
    },
    /// The first rows, in no particular order. One subtask.
    Limit {
        /// How many rows to leave out.
        offset: u64,
        /// How many to put out.
        limit: u64,
        /// Whether rows are only inserted.
        is_insert_only: bool,
    },
    /// Fixed rows, by one subtask.
    Values {
        /// The output's columns for each row; over no columns.
        rows: Vec<Vec<ExprSpec>>,
    },
    /// One row for each primary key of a sink, from rows of which several may have the same.
    SinkMaterialize(SinkMaterializeSpec),
    /// Completes what the writers of a table have written. One subtask. Made by the session's connectors.
    Commit(SinkSpec),
}

/// A column of time, in which unit whatsoever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeSpec {
    /// Event time is in this column, of a timestamp type.
    Event(usize),
    /// The wall clock.
    Processing,
    /// The rows are in windows already, whose start and end these columns have.
    Window {
        /// `window_start`.
        start: usize,
        /// `window_end`.
        end: usize,
    },
}

/// What reads a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// The table, for messages.
    pub table: String,
    /// `WITH (…)`, checked.
    pub options: BTreeMap<String, String>,
    /// The table's physical and metadata columns, in order.
    pub table_schema: SchemaRef,
    /// For each column of `table_schema` that is metadata, its key.
    pub metadata: BTreeMap<usize, String>,
    /// The table's partition columns.
    pub partition_keys: Vec<String>,
    /// Which columns of `table_schema` are read: they are the output.
    pub projection: Vec<usize>,
    /// How many rows of each reader are enough. What is too much is left out behind it.
    pub limit: Option<u64>,
    /// Conditions over the *output* that the connector may use to read less. They are checked behind it all the same.
    pub filters: Vec<ExprSpec>,
    /// Whether the script runs in batch mode.
    pub is_batch: bool,
}

/// What writes a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkSpec {
    /// The table, for messages; the name of a SELECT's result.
    pub table: String,
    /// `WITH (…)`, checked.
    pub options: BTreeMap<String, String>,
    /// Its columns; for those that are metadata, `metadata` has the key.
    pub table_schema: SchemaRef,
    /// For each column of `table_schema` that is metadata, its key.
    pub metadata: BTreeMap<usize, String>,
    /// Its partition columns.
    pub partition_keys: Vec<String>,
    /// The primary key, empty if there is none.
    pub primary_key: Vec<usize>,
    /// Whether it is `INSERT OVERWRITE`.
    pub is_overwrite: bool,
    /// Whether the script runs in batch mode.
    pub is_batch: bool,
}

/// Says how far event time has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatermarkSpec {
    /// The column with event time.
    pub column: usize,
    /// The watermark after a row; over the input. A null or earlier one changes nothing.
    pub watermark: ExprSpec,
    /// A subtask or split without rows for so long does not hold others back; 0 for never.
    pub idle_timeout_ms: u64,
}

/// Windows of time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowSpec {
    /// One after the other.
    Tumble {
        /// How long.
        size_ms: i64,
        /// How much later than at multiples of the size they start.
        offset_ms: i64,
    },
    /// Overlapping.
    Hop {
        /// From one start to the next.
        slide_ms: i64,
        /// How long.
        size_ms: i64,
        /// How much later than at multiples of the slide they start.
        offset_ms: i64,
    },
    /// Growing in steps up to a size, then anew.
    Cumulate {
        /// By how much they grow.
        step_ms: i64,
        /// How long the last is.
        size_ms: i64,
        /// How much later than at multiples of the size they start.
        offset_ms: i64,
    },
    /// As long as rows of a key come.
    Session {
        /// How long a pause ends one.
        gap_ms: i64,
    },
}

/// An aggregate function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AggregateFunction {
    /// `COUNT(*)` without arguments, `COUNT(x)` with one.
    Count,
    /// The sum, null over nothing; integers wrap, as in Flink.
    Sum,
    /// The sum, 0 over nothing.
    Sum0,
    /// The mean, in the argument's type family: of integers an integer.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The first that is not null, by arrival.
    FirstValue,
    /// The last that is not null, by arrival.
    LastValue,
    /// Texts with a separator between them.
    ListAgg {
        /// The separator, if it is constant; else it is the second argument.
        separator: Option<String>,
    },
    /// All values with how often: a multiset.
    Collect,
    /// All values: an array.
    ArrayAgg,
    /// Standard deviation of the population.
    StddevPop,
    /// Standard deviation of a sample.
    StddevSamp,
    /// Variance of the population.
    VarPop,
    /// Variance of a sample.
    VarSamp,
    /// Distinct values, estimated.
    ApproxCountDistinct,
    /// The only value; more are an error. For scalar subqueries.
    SingleValue,
    /// A JSON object of keys and values.
    JsonObjectAgg {
        /// Whether pairs with a null value are left out.
        absent_on_null: bool,
    },
    /// A JSON array.
    JsonArrayAgg {
        /// Whether nulls are left out.
        absent_on_null: bool,
    },
    /// The rank of an OVER window: `ROW_NUMBER`.
    RowNumber,
    /// `RANK`.
    Rank,
    /// `DENSE_RANK`.
    DenseRank,
    /// `LAG(x, offset, default)`.
    Lag {
        /// How many rows before.
        offset: u64,
    },
    /// `LEAD(x, offset, default)`, unless rows come in order.
    Lead {
        /// How many rows after.
        offset: u64,
    },
    /// `NTILE`, unless rows come in order.
    Ntile {
        /// How many buckets.
        buckets: u64,
    },
    /// A function of the user, by name.
    User(String),
    /// `PERCENTILE(x, at, times)`: the values at places among all. An array of them if the result is one.
    Percentile {
        /// The places from 0 to 1, as the bits of DOUBLEs, which have no equality.
        at: Vec<u64>,
    },
    /// `PERCENT_RANK`, unless rows come in order.
    PercentRank,
    /// `CUME_DIST`, unless rows come in order.
    CumeDist,
}

/// One aggregate of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateSpec {
    /// The function.
    pub function: AggregateFunction,
    /// The columns with its arguments.
    pub arguments: Vec<usize>,
    /// The boolean column that says which rows count: `FILTER (WHERE …)`.
    pub filter: Option<usize>,
    /// Whether equal arguments count once.
    pub is_distinct: bool,
    /// By what ordered: `WITHIN GROUP`, or the columns of an OVER window for ranks.
    pub order: Vec<SortColumn>,
    /// The type of the result.
    pub result: DataType,
    /// How it is shown: `COUNT(DISTINCT x)`.
    pub text: String,
}

/// See [`OperatorSpec::GroupAggregate`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAggregateSpec {
    /// The columns of the key; none for one global row.
    pub keys: Vec<usize>,
    /// The aggregates; none for DISTINCT.
    pub aggregates: Vec<AggregateSpec>,
    /// Whether the input only inserts: then state need not be able to take anything back.
    pub is_insert_only: bool,
    /// Whether `-U` is wanted by whoever comes next.
    pub with_update_before: bool,
    /// For how long an unused key is kept; 0 for ever.
    pub ttl_ms: u64,
    /// Whether only the final rows are put out, at the end of bounded input.
    pub is_batch: bool,
    /// Whether the last column of the input says what else a row stands for: see [`crate::aggregates::partial`].
    pub has_partials: bool,
}

/// See [`OperatorSpec::LocalAggregate`]: what the operator behind it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalAggregateSpec {
    /// The columns of the key, without those of windows.
    pub keys: Vec<usize>,
    /// The aggregates.
    pub aggregates: Vec<AggregateSpec>,
    /// The windows and where time is, if there are windows.
    pub windows: Option<(WindowSpec, TimeSpec)>,
    /// The session's time zone, if event time is an instant (TIMESTAMP_LTZ) and windows are those of local time there.
    pub zone: Option<String>,
    /// Whether the input only inserts.
    pub is_insert_only: bool,
}

/// A column that windows add to the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WindowColumn {
    /// `window_start`, TIMESTAMP(3).
    Start,
    /// `window_end`, TIMESTAMP(3).
    End,
    /// `window_time`, the window's last millisecond.
    Time,
}

/// See [`OperatorSpec::WindowAggregate`]. Output: keys, then aggregates, then window columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowAggregateSpec {
    /// The columns of the key, without those of the window.
    pub keys: Vec<usize>,
    /// The aggregates.
    pub aggregates: Vec<AggregateSpec>,
    /// The windows. With [`TimeSpec::Window`], those that the rows have.
    pub window: WindowSpec,
    /// Where time is.
    pub time: TimeSpec,
    /// The session's time zone, if event time is an instant (TIMESTAMP_LTZ) and windows are those of local time there.
    pub zone: Option<String>,
    /// What of the window is put out.
    pub window_columns: Vec<WindowColumn>,
    /// Whether the input only inserts.
    pub is_insert_only: bool,
    /// Whether the last column of the input says what else a row stands for: see [`crate::aggregates::partial`].
    pub has_partials: bool,
}

/// See [`OperatorSpec::Over`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverSpec {
    /// The key.
    pub partition: Vec<usize>,
    /// Time, or nothing in particular unless rows come in order.
    pub time: TimeSpec,
    /// All columns of ORDER BY.
    pub order: Vec<SortColumn>,
    /// Which rows before the current one count, besides itself.
    pub frame: OverFrame,
    /// The aggregates.
    pub aggregates: Vec<AggregateSpec>,
    /// For how long an unused key is kept; 0 for ever.
    pub ttl_ms: u64,
    /// How rows come.
    pub input: OverInput,
}

/// How the rows of an OVER window come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverInput {
    /// They are only inserted, and ordered by time alone: what a row results in is final.
    InOrder,
    /// They come and go, anywhere in the order: results are updated.
    Changing {
        /// Whether `-U` is wanted by whoever comes next.
        with_update_before: bool,
    },
    /// All are there before the first result: bounded input in batch mode.
    Whole,
}

/// Which rows an OVER aggregate is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverFrame {
    /// So many rows before, and the current one; `None` for all.
    Rows(Option<u64>),
    /// Rows up to so many milliseconds before, and those of the same time; `None` for all.
    Range(Option<i64>),
}

/// See [`OperatorSpec::TopN`]. Output: the input's columns, then the rank if it is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopNSpec {
    /// The key.
    pub partition: Vec<usize>,
    /// The order.
    pub order: Vec<SortColumn>,
    /// The first rank that is put out, from 1.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// Whether the rank (BIGINT) is put out.
    pub with_rank: bool,
    /// What the input's changes are.
    pub input: TopNInput,
    /// Whether `-U` is wanted by whoever comes next.
    pub with_update_before: bool,
    /// For how long an unused key is kept; 0 for ever.
    pub ttl_ms: u64,
    /// Whether only the final rows are put out, at the end of bounded input.
    pub is_batch: bool,
}

/// What the changes are that a Top-N gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopNInput {
    /// Only new rows: those that are not among the first need not be kept.
    InsertOnly,
    /// Updates of rows with this key, by which they only get better ranks, and no deletes.
    Improving(Vec<usize>),
    /// Anything.
    Retract,
}

/// See [`OperatorSpec::Deduplicate`]. Output: the input's columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeduplicateSpec {
    /// The key.
    pub partition: Vec<usize>,
    /// By which time.
    pub time: TimeSpec,
    /// Whether the last row is kept, else the first.
    pub keeps_last: bool,
    /// Whether `-U` is wanted by whoever comes next.
    pub with_update_before: bool,
    /// For how long an unused key is kept; 0 for ever.
    pub ttl_ms: u64,
}

/// See [`OperatorSpec::WindowTopN`]. Output: the input's columns, then the rank if it is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowTopNSpec {
    /// The column with `window_end`.
    pub window_end: usize,
    /// The session's time zone, if event time is an instant (TIMESTAMP_LTZ) and windows are those of local time there.
    pub zone: Option<String>,
    /// The key, without columns of the window.
    pub partition: Vec<usize>,
    /// The order.
    pub order: Vec<SortColumn>,
    /// The first rank that is put out, from 1.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// Whether the rank (BIGINT) is put out.
    pub with_rank: bool,
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without partner.
    Left,
    /// Pairs, and right rows without partner.
    Right,
    /// Pairs, and rows of both sides without partner.
    Full,
    /// Left rows with a partner.
    Semi,
    /// Left rows without a partner.
    Anti,
}

/// What a join knows of one of its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinInput {
    /// The columns of the join's key, in the order of the other side's.
    pub keys: Vec<usize>,
    /// Whether it only inserts.
    pub is_insert_only: bool,
    /// Columns that are unique, if there are such: at most one row has the same values there. Then an addition replaces
    /// the row that is there (an upsert).
    pub unique_key: Option<Vec<usize>>,
    /// For how long a row is kept; 0 for ever.
    pub ttl_ms: u64,
}

/// See [`OperatorSpec::Join`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinSpec {
    /// Its kind.
    pub kind: JoinKind,
    /// Input 0.
    pub left: JoinInput,
    /// Input 1.
    pub right: JoinInput,
    /// For each column of the key, whether nulls are equal: `IS NOT DISTINCT FROM`.
    pub nulls_equal: Vec<bool>,
    /// What else pairs must fulfil; over the left columns, then the right ones.
    pub condition: Option<ExprSpec>,
    /// Whether only the final rows are put out, at the end of bounded input.
    pub is_batch: bool,
}

/// See [`OperatorSpec::IntervalJoin`]. Pairs have `right time + lower <= left time <= right time + upper`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalJoinSpec {
    /// Inner, Left, Right, Full, Semi or Anti.
    pub kind: JoinKind,
    /// The key on the left.
    pub left_keys: Vec<usize>,
    /// The key on the right.
    pub right_keys: Vec<usize>,
    /// Time on the left.
    pub left_time: TimeSpec,
    /// Time on the right.
    pub right_time: TimeSpec,
    /// The lower bound of left time minus right time, inclusive.
    pub lower_ms: i64,
    /// The upper bound of left time minus right time, inclusive.
    pub upper_ms: i64,
    /// What else pairs must fulfil; over the left columns, then the right ones.
    pub condition: Option<ExprSpec>,
}

/// See [`OperatorSpec::WindowJoin`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowJoinSpec {
    /// Its kind.
    pub kind: JoinKind,
    /// The key on the left, without columns of the window.
    pub left_keys: Vec<usize>,
    /// The key on the right.
    pub right_keys: Vec<usize>,
    /// The column with `window_end` on the left.
    pub left_window_end: usize,
    /// The column with `window_end` on the right.
    pub right_window_end: usize,
    /// The session's time zone, if event time is an instant (TIMESTAMP_LTZ) and windows are those of local time there.
    pub zone: Option<String>,
    /// What else pairs must fulfil; over the left columns, then the right ones.
    pub condition: Option<ExprSpec>,
}

/// See [`OperatorSpec::TemporalJoin`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemporalJoinSpec {
    /// Whether left rows without a version stay.
    pub is_left_outer: bool,
    /// The key on the left.
    pub left_keys: Vec<usize>,
    /// The key on the right: the versioned table's primary key.
    pub right_keys: Vec<usize>,
    /// The left row's time.
    pub left_time: TimeSpec,
    /// From when on a version is valid.
    pub right_time: TimeSpec,
    /// For how long an unused key is kept; 0 for ever.
    pub ttl_ms: u64,
    /// What else pairs must fulfil; over the left columns, then the right ones.
    pub condition: Option<ExprSpec>,
}

/// See [`OperatorSpec::LookupJoin`]. No column of the table is in the key twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupJoinSpec {
    /// What is looked up. Its projection is what comes behind the left columns.
    pub table: SourceSpec,
    /// The columns of the left that are looked up by.
    pub left_keys: Vec<usize>,
    /// The columns of `table.table_schema` that these must equal.
    pub right_keys: Vec<usize>,
    /// Whether left rows without a match stay.
    pub is_left_outer: bool,
    /// What else pairs must fulfil; over the left columns, then the right ones.
    pub condition: Option<ExprSpec>,
    /// Whether left rows are only inserted.
    pub is_insert_only: bool,
    /// For how long a table may be asked for the same keys, with all retries.
    pub timeout_ms: u64,
    /// How many requests to it may be under way in a subtask.
    pub requests_max: u32,
}

/// See [`OperatorSpec::SinkMaterialize`]. The input has `-U`; the output has the input's columns, and is unique by `key`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkMaterializeSpec {
    /// The sink's primary key.
    pub key: Vec<usize>,
    /// Columns that are unique in the input, if there are such: an addition replaces the row with the same.
    pub upsert_key: Option<Vec<usize>>,
    /// What becomes of different rows with the same primary key.
    pub conflict: ConflictStrategy,
    /// For how long an unused key is kept; 0 for ever.
    pub ttl_ms: u64,
}

/// `ON CONFLICT DO …`: what becomes of different rows with the same primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConflictStrategy {
    /// The latest counts; when it goes, the one before it counts again.
    Deduplicate,
    /// It is an error.
    Error,
    /// The first counts.
    Nothing,
}
