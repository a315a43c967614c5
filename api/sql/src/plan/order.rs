//! ORDER BY and LIMIT: by time, of the first rows, and in batch mode of all.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::{Limit, LogicalPlan, Sort, SortExpr};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{OperatorSpec, SortColumn, TopNInput, TopNSpec};

use super::Planner;
use super::calc::Needed;
use super::expr::{constant, physical, refused};
use super::rel::{Id, Kinds, Op, Props, Scan, Time, Trend, field, fields_of};
use super::table::Changelog;

impl Planner<'_> {
    /// Positions of sort columns, those that are expressions added to what is needed.
    pub(super) fn sort_columns(sort: &[SortExpr], schema: &DFSchema, needed: &mut Needed) -> Result<Vec<SortColumn>> {
        let mut columns = Vec::new();
        for sort in sort {
            let expr = physical(&sort.expr, schema)?;
            // A constant orders nothing.
            if constant(&expr).is_some() {
                continue;
            }
            let data_type = expr.data_type(schema.as_arrow()).map_err(refused)?;
            let column = needed.position(expr, |index| field(format!("$f{index}"), data_type));
            if !columns.iter().any(|known: &SortColumn| known.column == column) {
                columns.push(SortColumn { column, is_descending: !sort.asc, nulls_first: sort.nulls_first });
            }
        }
        Ok(columns)
    }

    pub(super) fn sort(&mut self, sort: &Sort, is_ordered: bool) -> Result<Id> {
        let input = self.convert(&sort.input, false)?;
        if !is_ordered && sort.fetch.is_none() {
            return Ok(input);
        }
        let width = self.width(input);
        let mut needed = Needed::all(self.fields(input));
        let order = Self::sort_columns(&sort.expr, sort.input.schema(), &mut needed)?;
        let input = self.calc(input, Vec::new(), needed.exprs, needed.fields)?;
        let sorted = self.sorted(input, order, 0, sort.fetch.map(|fetch| fetch as u64))?;
        self.select(sorted, &(0..width).collect::<Vec<_>>())
    }

    fn sorted(&mut self, input: Id, order: Vec<SortColumn>, offset: u64, limit: Option<u64>) -> Result<Id> {
        let fields = self.fields(input);
        let props = self.props(input);
        if self.settings.is_batch {
            let what = format!("Sort {order:?} {offset} {limit:?}");
            let op = OperatorSpec::Sort { order, offset, limit, is_insert_only: props.kinds.is_insert_only() };
            let props = Props { kinds: Kinds::default(), ..props.clone() };
            return Ok(self.add(Op::Spec(op), &[input], fields, props, &what));
        }
        if let Some(limit) = limit {
            return Ok(self.top(input, Vec::new(), order, offset + 1, offset.saturating_add(limit), false));
        }
        let first = order.first().copied();
        match first.map(|first| (props.times[first.column], first.is_descending)) {
            None => Ok(input),
            // Rows come in the order of processing time.
            Some((Some(Time::Processing), false)) if props.kinds.is_insert_only() && order.len() == 1 => Ok(input),
            Some((Some(time), false)) if props.kinds.is_insert_only() => {
                let is_processing = time == Time::Processing;
                let order = if is_processing { order[1..].to_vec() } else { order };
                let what = format!("TemporalSort {order:?}{}", if is_processing { " PROCTIME" } else { "" });
                let props = props.clone();
                let op = OperatorSpec::TemporalSort { order, is_processing };
                Ok(self.add(Op::Spec(op), &[input], fields, props, &what))
            }
            Some((Some(_), false)) => Err(Error::input(
                "a stream with updates or deletes cannot be sorted by time: add a LIMIT, or run it with SET 'execution.runtime-mode' = 'batch'",
            )),
            Some((Some(_), true)) => Err(Error::input(
                "an unbounded stream cannot be sorted by time in descending order: its last row never comes. Sort ascending, or add a LIMIT",
            )),
            Some((None, _)) => Err(Error::input(format!(
                "an unbounded stream cannot be sorted by '{}', which is not a time attribute: sort by time first, add a LIMIT, or run it with SET 'execution.runtime-mode' = 'batch'",
                fields[order[0].column].name()
            ))),
        }
    }

    /// The rows from rank `from` to rank `to` of each partition.
    pub(super) fn top(
        &mut self,
        input: Id,
        partition: Vec<usize>,
        order: Vec<SortColumn>,
        from: u64,
        to: u64,
        with_rank: bool,
    ) -> Id {
        let below = self.props(input).clone();
        let mut fields = self.fields(input);
        let width = fields.len();
        let mut props = below.widened(usize::from(with_rank));
        props.windows = None;
        props.times.fill(None);
        props.trends.fill(None);
        props.keys = below.keys_after(&partition);
        if with_rank {
            fields.push(field("rank", DataType::Int64));
            props = props.keyed(partition.iter().copied().chain([width]).collect());
        }
        if from == to {
            props = props.keyed(partition.clone());
        }
        let changes =
            if self.settings.is_batch { TopNInput::InsertOnly } else { improving(&below, &partition, &order) };
        // Once the first are found, they stay the first only if nothing can come before them.
        props.kinds = if self.settings.is_batch { Kinds::default() } else { Kinds::ALL };
        let what = format!("TopN {partition:?} {order:?} {from} {to} {with_rank}");
        let op = OperatorSpec::TopN(TopNSpec {
            partition,
            order,
            from,
            to,
            with_rank,
            input: changes,
            with_update_before: true,
            ttl_ms: self.settings.state_ttl_ms,
            is_batch: self.settings.is_batch,
        });
        self.add(Op::Spec(op), &[input], fields, props, &what)
    }

    pub(super) fn limit(&mut self, limit: &Limit) -> Result<Id> {
        let skip = match limit.get_skip_type().map_err(refused)? {
            SkipType::Literal(skip) => skip as u64,
            SkipType::UnsupportedExpr => return Err(Error::input("OFFSET must be a number")),
        };
        let fetch = match limit.get_fetch_type().map_err(refused)? {
            FetchType::Literal(fetch) => fetch.map(|fetch| fetch as u64),
            FetchType::UnsupportedExpr => return Err(Error::input("LIMIT must be a number")),
        };
        if let Some(id) = self.limit_of_sort(&limit.input, skip, fetch)? {
            return Ok(id);
        }
        let mut input = self.convert(&limit.input, false)?;
        if skip == 0 && fetch.is_none() {
            return Ok(input);
        }
        // Which rows are there that also go is known at the end only.
        if let (Some(fetch), Op::Scan(scan)) = (fetch, &self.rels[input].op)
            && scan.table.takes_limit
            && scan.table.changelog == Changelog::InsertOnly
        {
            let scan = Scan { limit: Some(skip.saturating_add(fetch)), ..scan.clone() };
            input = self.scan(scan);
        }
        let what = format!("Limit {skip} {fetch:?}");
        let props = self.props(input).clone();
        let kinds = if props.kinds.is_insert_only() { props.kinds } else { Kinds::ALL };
        let op = OperatorSpec::Limit {
            offset: skip,
            limit: fetch.unwrap_or(u64::MAX),
            is_insert_only: props.kinds.is_insert_only(),
        };
        Ok(self.add(Op::Spec(op), &[input], self.fields(input), props.changing(kinds), &what))
    }

    /// `ORDER BY … LIMIT … OFFSET …`, where columns may be left out in between.
    fn limit_of_sort(&mut self, plan: &LogicalPlan, skip: u64, fetch: Option<u64>) -> Result<Option<Id>> {
        match plan {
            LogicalPlan::SubqueryAlias(alias) => self.limit_of_sort(&alias.input, skip, fetch),
            LogicalPlan::Projection(projection) => {
                let Some(input) = self.limit_of_sort(&projection.input, skip, fetch)? else { return Ok(None) };
                let schema = projection.input.schema();
                let exprs = projection.expr.iter().map(|expr| physical(expr, schema)).collect::<Result<_>>()?;
                self.calc(input, Vec::new(), exprs, fields_of(projection.schema.fields())).map(Some)
            }
            LogicalPlan::Sort(sort) => {
                // The sort has been told of the limit already, and then it is of the skipped rows too.
                let most = sort.fetch.map(|most| (most as u64).saturating_sub(skip));
                let limit = fetch.into_iter().chain(most).min();
                let input = self.convert(&sort.input, false)?;
                let width = self.width(input);
                let mut needed = Needed::all(self.fields(input));
                let order = Self::sort_columns(&sort.expr, sort.input.schema(), &mut needed)?;
                let input = self.calc(input, Vec::new(), needed.exprs, needed.fields)?;
                if limit.is_none() && !self.settings.is_batch {
                    return Err(Error::input(
                        "OFFSET without LIMIT keeps all rows of an unbounded stream: add a LIMIT",
                    ));
                }
                let sorted = self.sorted(input, order, skip, limit)?;
                self.select(sorted, &(0..width).collect::<Vec<_>>()).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// What changes of its input a Top-N must be ready for.
fn improving(input: &Props, partition: &[usize], order: &[SortColumn]) -> TopNInput {
    if input.kinds.is_insert_only() {
        return TopNInput::InsertOnly;
    }
    let improves = |sort: &SortColumn| match input.trends[sort.column] {
        Some(Trend::Constant) => true,
        Some(Trend::Increasing) => sort.is_descending,
        Some(Trend::Decreasing) => !sort.is_descending,
        None => false,
    };
    let key = input.keys.iter().find(|key| partition.iter().all(|column| key.contains(column)));
    match key {
        Some(key) if !input.kinds.delete && !order.is_empty() && order.iter().all(improves) => {
            TopNInput::Improving(key.clone())
        }
        _ => TopNInput::Retract,
    }
}
