//! What operators keep, and whether that grows without end.

use flott_sql_runtime::spec::{
    AggregateFunction, AggregateSpec, JoinSpec, OperatorSpec, OverFrame, OverInput, OverSpec, SinkSpec, TimeSpec,
    TopNInput, WindowSpec,
};

use super::names::duration;

/// What an operator keeps.
pub(super) struct Kept {
    /// In words: `a row of aggregates for each key`.
    pub what: String,
    growth: Growth,
}

/// How that grows.
enum Growth {
    /// Not beyond what is needed of the latest rows, or of a table.
    Bounded,
    /// With the keys that there ever were. An unused one goes after so many milliseconds, never if that is 0; there are two such
    /// times if the sides of a join have different ones.
    Keys(Vec<u64>),
    /// With the rows that there ever were: all of them are of one key, which is always in use.
    Rows,
}

impl Kept {
    /// What `op` keeps, if anything.
    pub(super) fn by(op: &OperatorSpec) -> Option<Self> {
        Some(match op {
            OperatorSpec::Source(_) => bounded("how far it has read"),
            OperatorSpec::GroupAggregate(group) => {
                aggregates(group.keys.is_empty(), &group.aggregates, !group.is_insert_only, group.ttl_ms)
            }
            OperatorSpec::WindowAggregate(_) => bounded("a row of aggregates for each key and open window"),
            OperatorSpec::Over(over) => of_over(over),
            OperatorSpec::TopN(top) => match (&top.input, top.partition.is_empty()) {
                (TopNInput::Retract, true) => rows("all rows"),
                (TopNInput::Retract, false) => keys("all rows of each partition", top.ttl_ms),
                (_, true) => bounded("the first rows"),
                (_, false) => keys("the first rows of each partition", top.ttl_ms),
            },
            OperatorSpec::Deduplicate(one) if one.partition.is_empty() => bounded("one row"),
            OperatorSpec::Deduplicate(one) => keys("a row for each key", one.ttl_ms),
            OperatorSpec::WindowTopN(_) => bounded("the first rows of each open window"),
            OperatorSpec::Join(join) => of_join(join),
            OperatorSpec::IntervalJoin(_) => bounded("the rows of both inputs that may still find a partner"),
            OperatorSpec::WindowJoin(_) => bounded("the rows of open windows"),
            OperatorSpec::TemporalJoin(join) => match join.right_time {
                TimeSpec::Processing => keys("the right table's row of each key", join.ttl_ms),
                _ => keys(
                    "the right table's last version of each key, and left rows until their time has come",
                    join.ttl_ms,
                ),
            },
            OperatorSpec::LookupJoin(join) => match join.table.options.get("connector").map(String::as_str) {
                Some("filesystem") => bounded("the table, in memory alone"),
                _ => bounded("rows whose look-ups are under way"),
            },
            OperatorSpec::ChangelogNormalize { ttl_ms, .. } => keys("the last row of each primary key", *ttl_ms),
            OperatorSpec::SinkMaterialize(sink) => keys("all rows of each primary key", sink.ttl_ms),
            OperatorSpec::TemporalSort { .. } => bounded("rows until their time has come"),
            OperatorSpec::Sort { limit: Some(_), is_insert_only: true, .. } => bounded("the first rows"),
            OperatorSpec::Sort { .. } => bounded("all rows, until the input ends"),
            OperatorSpec::WindowTable { window: WindowSpec::Session { .. }, .. } => {
                bounded("the rows of open sessions")
            }
            OperatorSpec::Limit { is_insert_only: true, .. } => bounded("how many rows there were"),
            OperatorSpec::Limit { .. } => rows("all rows"),
            OperatorSpec::Sink(sink) if is_of_files(sink) => bounded("files that no checkpoint has published yet"),
            OperatorSpec::Commit(_) => bounded("files and partitions that are not complete"),
            _ => return None,
        })
    }

    /// The same with how long it is kept.
    pub(super) fn shown(&self) -> String {
        match &self.growth {
            Growth::Bounded => self.what.clone(),
            Growth::Keys(ttls_ms) if !ttls_ms.contains(&0) => {
                let ttls = ttls_ms.iter().map(|ttl_ms| duration(i64::try_from(*ttl_ms).unwrap_or(i64::MAX)));
                format!("{}, {} after its last use", self.what, ttls.collect::<Vec<_>>().join(" and "))
            }
            Growth::Keys(_) | Growth::Rows => format!("{}, for ever", self.what),
        }
    }

    /// What to say if it grows without end. `operator` is who keeps it.
    pub(super) fn warning(&self, operator: &str) -> Option<String> {
        let what = &self.what;
        match &self.growth {
            Growth::Keys(ttls_ms) if ttls_ms.contains(&0) => Some(format!(
                "{operator} keeps {what} for ever: SET 'table.exec.state.ttl' to for how long an unused one is kept, if keys do not come back"
            )),
            Growth::Rows => Some(format!(
                "{operator} keeps {what} for as long as rows come, whatever 'table.exec.state.ttl' is: it has one key, which is always in use. Windows, or a key such as the day, would bound it"
            )),
            Growth::Bounded | Growth::Keys(_) => None,
        }
    }
}

fn is_of_files(sink: &SinkSpec) -> bool {
    sink.options.get("connector").is_some_and(|connector| connector == "filesystem")
}

fn bounded(what: &str) -> Kept {
    Kept { what: what.to_owned(), growth: Growth::Bounded }
}

fn keys(what: &str, ttl_ms: u64) -> Kept {
    Kept { what: what.to_owned(), growth: Growth::Keys(vec![ttl_ms]) }
}

fn rows(what: &str) -> Kept {
    Kept { what: what.to_owned(), growth: Growth::Rows }
}

/// Aggregates of all rows so far.
fn aggregates(is_global: bool, aggregates: &[AggregateSpec], retracts: bool, ttl_ms: u64) -> Kept {
    let keeping = aggregates.iter().filter(|aggregate| keeps_values(aggregate, retracts));
    let keeping: Vec<&str> = keeping.map(|aggregate| aggregate.text.as_str()).collect();
    let what = if is_global { "one row of aggregates" } else { "a row of aggregates for each key" };
    let what = match keeping.is_empty() {
        true => what.to_owned(),
        false => format!("{what}, with the values of {}", keeping.join(", ")),
    };
    match is_global {
        false => keys(&what, ttl_ms),
        true if keeping.is_empty() => bounded(&what),
        true => rows(&what),
    }
}

/// Whether an aggregate keeps the values that it is of, not only what they come to.
fn keeps_values(aggregate: &AggregateSpec, retracts: bool) -> bool {
    aggregate.is_distinct
        || match aggregate.function {
            AggregateFunction::Collect
            | AggregateFunction::ArrayAgg
            | AggregateFunction::ListAgg { .. }
            | AggregateFunction::JsonArrayAgg { .. }
            | AggregateFunction::JsonObjectAgg { .. }
            | AggregateFunction::Percentile { .. } => true,
            // When the one that counts goes, it is another's turn.
            AggregateFunction::Min
            | AggregateFunction::Max
            | AggregateFunction::FirstValue
            | AggregateFunction::LastValue => retracts,
            _ => false,
        }
}

fn of_over(over: &OverSpec) -> Kept {
    let is_global = over.partition.is_empty();
    match over.frame {
        // Any of them may go, and what comes may be before it.
        _ if matches!(over.input, OverInput::Changing { .. }) => match is_global {
            true => rows("all rows, with what they result in"),
            false => keys("all rows of each key, with what they result in", over.ttl_ms),
        },
        OverFrame::Rows(None) | OverFrame::Range(None) => aggregates(is_global, &over.aggregates, false, over.ttl_ms),
        OverFrame::Rows(Some(_)) if is_global => bounded("the last rows"),
        OverFrame::Rows(Some(_)) => keys("the last rows of each key", over.ttl_ms),
        // No watermark says that a key's last rows are out of every frame.
        OverFrame::Range(Some(_)) if !is_global && over.time == TimeSpec::Processing => {
            keys("the rows of each key's last time", over.ttl_ms)
        }
        OverFrame::Range(Some(_)) => bounded("the rows of each key's last time"),
    }
}

fn of_join(join: &JoinSpec) -> Kept {
    let mut ttls_ms = vec![join.left.ttl_ms, join.right.ttl_ms];
    ttls_ms.dedup();
    Kept { what: "all rows of both inputs".to_owned(), growth: Growth::Keys(ttls_ms) }
}
