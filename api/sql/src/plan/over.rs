//! Aggregates OVER windows, and what they are if only the first ranks are wanted.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator, Window, WindowFrame, WindowFrameBound, WindowFrameUnits};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{
    AggregateFunction, AggregateSpec, DeduplicateSpec, OperatorSpec, OverFrame, OverInput, OverSpec, SortColumn,
    TimeSpec, WindowColumn, WindowTopNSpec,
};

use super::Planner;
use super::aggregate::meanings;
use super::calc::Needed;
use super::call::AggregateCall;
use super::expr::{
    PExpr, as_column, column, columns_of, comparison, constant, integer, literal, millis, physical, refused, replace,
};
use super::rel::{Id, Kinds, Op, Time, Trend, field, fields_of};

/// A window of rows before each row.
#[derive(PartialEq, Eq)]
struct Frame {
    partition: Vec<usize>,
    order: Vec<SortColumn>,
    frame: OverFrame,
}

/// The aggregates of one window, with their places among all.
struct Group {
    window: Frame,
    aggregates: Vec<(usize, AggregateSpec)>,
}

impl Planner<'_> {
    /// `… OVER (…)`: one operator for each window that there is.
    pub(super) fn window(&mut self, window: &Window) -> Result<Id> {
        let input = self.convert(&window.input, false)?;
        let schema = window.input.schema();
        let width = self.width(input);
        let fields = fields_of(window.schema.fields());
        let mut needed = Needed::all(self.fields(input));
        let mut groups: Vec<Group> = Vec::new();
        for (index, expr) in window.window_expr.iter().enumerate() {
            let mut expr = expr;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::WindowFunction(call) = expr else {
                return Err(Error::system(format!("'{expr}' is not OVER a window")));
            };
            let params = &call.params;
            let name = call.fun.name().to_lowercase();
            let mut partition = Vec::new();
            for expr in &params.partition_by {
                let expr = physical(expr, schema)?;
                let data_type = expr.data_type(schema.as_arrow()).map_err(refused)?;
                let place = needed.position(expr, |index| field(format!("$f{index}"), data_type));
                if !partition.contains(&place) {
                    partition.push(place);
                }
            }
            let order = Self::sort_columns(&params.order_by, schema, &mut needed)?;
            let aggregate = AggregateCall {
                name: &name,
                arguments: &params.args,
                filter: params.filter.as_deref(),
                is_distinct: params.distinct,
                order: &[],
                nulls: params.null_treatment,
                result: fields[width + index].data_type().clone(),
            };
            let mut spec = aggregate.spec(schema, &mut needed)?;
            if is_rank(&spec.function) {
                spec.order.clone_from(&order);
                spec.arguments.clear();
            }
            let frame = match is_rank(&spec.function) || is_offset(&spec.function) {
                true => OverFrame::Rows(None),
                false => frame(&params.window_frame)?,
            };
            let window = Frame { partition, order, frame };
            match groups.iter_mut().find(|group| group.window == window) {
                Some(group) => group.aggregates.push((index, spec)),
                None => groups.push(Group { window, aggregates: vec![(index, spec)] }),
            }
        }
        let computed = needed.exprs.len();
        let mut over = self.calc(input, Vec::new(), needed.exprs, needed.fields)?;
        let mut places = vec![0; window.window_expr.len()];
        let mut next = computed;
        for Group { window, aggregates } in groups {
            for (index, _) in &aggregates {
                places[*index] = next;
                next += 1;
            }
            let aggregates = aggregates.into_iter().map(|(_, aggregate)| aggregate).collect();
            over = self.over(over, window, aggregates);
        }
        let columns = (0..width).chain(places).map(column).collect();
        self.calc(over, Vec::new(), columns, fields)
    }

    fn over(&mut self, input: Id, window: Frame, aggregates: Vec<AggregateSpec>) -> Id {
        let Frame { partition, order, frame } = window;
        let below = self.props(input).clone();
        let mut fields = self.fields(input);
        fields.extend(aggregates.iter().map(|aggregate| field(&aggregate.text, aggregate.result.clone())));
        let mut props = below.widened(aggregates.len());
        props.trends.fill(None);
        props.keys = below.keys_after(&partition);
        let is_inserted = below.kinds.is_insert_only();
        // What rows in the order of time result in is final, unless it is made of later ones.
        let time = match &order[..] {
            [sort] if is_inserted && !sort.is_descending && !aggregates.iter().any(looks_ahead) => {
                below.times[sort.column].map(|time| match time {
                    Time::Event => TimeSpec::Event(sort.column),
                    Time::Processing => TimeSpec::Processing,
                })
            }
            _ => None,
        };
        let rows = match &time {
            _ if self.settings.is_batch => OverInput::Whole,
            Some(_) => OverInput::InOrder,
            None => OverInput::Changing { with_update_before: true },
        };
        if rows != OverInput::InOrder {
            props.times.fill(None);
        }
        let is_changing = matches!(rows, OverInput::Changing { .. });
        let mut refusal = None;
        if is_changing {
            props.kinds = Kinds { update: true, delete: !is_inserted };
            props.windows = None;
            refusal = refusal_of(&order, frame, &below.times, &fields);
        }
        let of_changes = if is_changing { " of changes" } else { "" };
        let what = format!("Over {partition:?} {order:?} {frame:?} {}{of_changes}", meanings(&aggregates));
        let spec = OverSpec {
            partition,
            time: time.unwrap_or(TimeSpec::Processing),
            order,
            frame,
            aggregates,
            ttl_ms: self.settings.state_ttl_ms,
            input: rows,
        };
        self.add(Op::Over(spec, refusal), &[input], fields, props, &what)
    }

    /// If `condition` bounds a ROW_NUMBER that `input` makes: a Top-N, or what is cheaper.
    pub(super) fn top_n(
        &mut self,
        input: Id,
        condition: &[PExpr],
        projection: &[PExpr],
        fields: &[FieldRef],
    ) -> Result<Option<Id>> {
        let Op::Over(over, _) = &self.rels[input].op else { return Ok(None) };
        let [AggregateSpec { function, .. }] = &over.aggregates[..] else { return Ok(None) };
        if !is_rank(function) || over.order.is_empty() {
            return Ok(None);
        }
        let (over, below) = (over.clone(), self.rels[input].inputs[0]);
        let rank = self.width(below);
        let (mut from, mut to, mut rest) = (1_i64, i64::MAX, Vec::new());
        for expr in condition {
            match bound(expr, rank) {
                Some((least, most)) => (from, to) = (from.max(least), to.min(most)),
                None => rest.push(expr.clone()),
            }
        }
        if to == i64::MAX {
            return Ok(None);
        }
        if over.aggregates[0].function != AggregateFunction::RowNumber {
            return Ok(None);
        }
        if from > to {
            // No rank is in there: false for all rows.
            rest.push(literal(ScalarValue::Boolean(Some(false))));
            (from, to) = (1, 1);
        }
        let is_constant = from == to;
        let with_rank = !is_constant && projection.iter().chain(&rest).any(|expr| columns_of(expr).contains(&rank));
        let top = self.ranked(below, &over, from as u64, to as u64, with_rank);
        let data_type = self.rels[input].schema.fields()[rank].data_type().clone();
        let value = match is_constant {
            true => literal(ScalarValue::Int64(Some(from)).cast_to(&data_type).map_err(refused)?),
            // Ranks are BIGINT, and so is what Flink's functions make of them.
            false if data_type == DataType::Int64 => column(rank),
            false => Arc::new(datafusion::physical_expr::expressions::CastExpr::new(column(rank), data_type, None)),
        };
        let through =
            |expr: &PExpr| replace(expr, &|index| if index == rank { Arc::clone(&value) } else { column(index) });
        let rest = rest.iter().map(through).collect::<Result<_>>()?;
        let projection = projection.iter().map(through).collect::<Result<_>>()?;
        self.calc(top, rest, projection, fields.to_vec()).map(Some)
    }

    fn ranked(&mut self, input: Id, over: &OverSpec, from: u64, to: u64, with_rank: bool) -> Id {
        let below = self.props(input).clone();
        let (partition, order) = (over.partition.clone(), over.order.clone());
        if self.settings.is_batch {
            return self.top(input, partition, order, from, to, with_rank);
        }
        if let Some(windows) = &below.windows
            && below.kinds.is_insert_only()
            && !windows.is_processing
        {
            let is = |wanted| partition.iter().copied().find(|&key| windows.columns[key] == Some(wanted));
            if let (Some(_), Some(window_end)) = (is(WindowColumn::Start), is(WindowColumn::End)) {
                let others: Vec<usize> =
                    partition.iter().copied().filter(|&key| windows.columns[key].is_none()).collect();
                let zone = windows.zone.clone();
                let top = WindowTopNSpec { window_end, zone, partition: others, order, from, to, with_rank };
                return self.window_top(input, top);
            }
        }
        if let ([sort], 1, 1, true) = (&order[..], from, to, below.kinds.is_insert_only())
            && let Some(attribute) = below.times[sort.column]
        {
            let keeps_last = sort.is_descending;
            let time = match attribute {
                Time::Event => TimeSpec::Event(sort.column),
                Time::Processing => TimeSpec::Processing,
            };
            let mut props = below.clone();
            props.kinds = Kinds { update: keeps_last, delete: false };
            props.keys = vec![partition.clone()];
            props.trends.fill(None);
            for &key in &partition {
                props.trends[key] = Some(Trend::Constant);
            }
            if keeps_last {
                props.trends[sort.column] = Some(Trend::Increasing);
            }
            let what = format!("Deduplicate {partition:?} {time:?} {keeps_last}");
            let op = OperatorSpec::Deduplicate(DeduplicateSpec {
                partition,
                time,
                keeps_last,
                with_update_before: true,
                ttl_ms: self.settings.state_ttl_ms,
            });
            return self.add(Op::Spec(op), &[input], self.fields(input), props, &what);
        }
        self.top(input, partition, order, from, to, with_rank)
    }
}

impl Planner<'_> {
    /// The first ranks of each window.
    pub(super) fn window_top(&mut self, input: Id, top: WindowTopNSpec) -> Id {
        let below = self.props(input).clone();
        let mut fields = self.fields(input);
        let mut props = below.widened(usize::from(top.with_rank));
        props.trends.fill(None);
        if top.with_rank {
            fields.push(field("rank", DataType::Int64));
        }
        if top.from == top.to {
            props = props.keyed(top.partition.iter().copied().chain([top.window_end]).collect());
        }
        let what = format!(
            "WindowTopN {} {:?} {:?} {} {} {}{}",
            top.window_end,
            top.partition,
            top.order,
            top.from,
            top.to,
            top.with_rank,
            super::window::of_zone(top.zone.as_ref())
        );
        self.add(Op::Spec(OperatorSpec::WindowTopN(top)), &[input], fields, props, &what)
    }
}

fn is_rank(function: &AggregateFunction) -> bool {
    matches!(function, AggregateFunction::RowNumber | AggregateFunction::Rank | AggregateFunction::DenseRank)
}

/// Whether it depends on the place of a row, and has no frame.
fn is_offset(function: &AggregateFunction) -> bool {
    use AggregateFunction::{CumeDist, Lag, Lead, Ntile, PercentRank};
    matches!(function, Lag { .. } | Lead { .. } | Ntile { .. } | PercentRank | CumeDist)
}

/// Why results cannot be updated as rows come and go, if they cannot.
fn refusal_of(order: &[SortColumn], frame: OverFrame, times: &[Option<Time>], fields: &[FieldRef]) -> Option<String> {
    let is_time = |sort: &SortColumn| matches!(fields[sort.column].data_type(), DataType::Timestamp(..));
    if order.iter().any(|sort| times[sort.column] == Some(Time::Processing)) {
        Some("OVER windows by PROCTIME() take rows as they come: only inserted, ordered by that alone and ascending, without LEAD, NTILE, PERCENT_RANK and CUME_DIST. Order by another column, or run it with SET 'execution.runtime-mode' = 'batch'".to_owned())
    } else if matches!(frame, OverFrame::Range(Some(_))) && !(order.len() == 1 && is_time(&order[0])) {
        Some("OVER (… RANGE BETWEEN … PRECEDING …) is ordered by one column of timestamps".to_owned())
    } else {
        None
    }
}

/// Whether it depends on rows that come later in the order.
fn looks_ahead(aggregate: &AggregateSpec) -> bool {
    use AggregateFunction::{CumeDist, Lead, Ntile, PercentRank};
    matches!(aggregate.function, Lead { .. } | Ntile { .. } | PercentRank | CumeDist)
}

/// The least and the greatest rank that fulfil `expr`, if it is about the rank alone.
fn bound(expr: &PExpr, rank: usize) -> Option<(i64, i64)> {
    let (left, operator, right) = comparison(expr)?;
    let is_rank = |expr: &PExpr| {
        as_column(expr) == Some(rank) || matches!(super::expr::instant(expr), Some((Some(column), 0)) if column == rank)
    };
    let (operator, value) = match (is_rank(&left), is_rank(&right)) {
        (true, false) => (operator, integer(&constant(&right)?)?),
        (false, true) => (operator.swap()?, integer(&constant(&left)?)?),
        _ => return None,
    };
    match operator {
        Operator::Eq => Some((value, value)),
        Operator::Lt => Some((1, value.saturating_sub(1))),
        Operator::LtEq => Some((1, value)),
        Operator::Gt => Some((value.saturating_add(1), i64::MAX)),
        Operator::GtEq => Some((value, i64::MAX)),
        _ => None,
    }
}

/// The frame, which ends at the current row.
fn frame(frame: &WindowFrame) -> Result<OverFrame> {
    let ends_now = match &frame.end_bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => {
            integer(value) == Some(0) || millis(value) == Some(0)
        }
    };
    if !ends_now {
        return Err(Error::input(
            "OVER windows end at the CURRENT ROW: rows before or after it as their end are not supported",
        ));
    }
    let refused =
        |bound: &ScalarValue| Error::input(format!("'{bound} PRECEDING' is not a constant number or interval"));
    Ok(match (frame.units, &frame.start_bound) {
        (_, WindowFrameBound::Following(_)) => {
            return Err(Error::input("OVER windows begin at the current row or before it"));
        }
        (WindowFrameUnits::Groups, _) => {
            return Err(Error::input("OVER windows are of ROWS or a RANGE, not of GROUPS"));
        }
        (WindowFrameUnits::Rows, WindowFrameBound::CurrentRow) => OverFrame::Rows(Some(0)),
        (WindowFrameUnits::Range, WindowFrameBound::CurrentRow) => OverFrame::Range(Some(0)),
        (WindowFrameUnits::Rows, WindowFrameBound::Preceding(bound)) if bound.is_null() => OverFrame::Rows(None),
        (WindowFrameUnits::Range, WindowFrameBound::Preceding(bound)) if bound.is_null() => OverFrame::Range(None),
        (WindowFrameUnits::Rows, WindowFrameBound::Preceding(bound)) => {
            let rows = integer(bound).and_then(|rows| u64::try_from(rows).ok());
            OverFrame::Rows(Some(rows.ok_or_else(|| refused(bound))?))
        }
        (WindowFrameUnits::Range, WindowFrameBound::Preceding(bound)) => {
            OverFrame::Range(Some(millis(bound).or_else(|| integer(bound)).ok_or_else(|| refused(bound))?))
        }
    })
}
