//! GROUP BY: of windows, of grouping sets, and of anything else.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::AggregateFunction as Call;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet};
use datafusion::physical_expr::expressions::CastExpr;
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{
    AggregateFunction, AggregateSpec, OperatorSpec, TimeSpec, WindowAggregateSpec, WindowColumn,
};

use super::Planner;
use super::calc::Needed;
use super::call::AggregateCall;
use super::expr::{PExpr, as_column, column, columns_of, literal, meanings as expr_meanings, physical, refused, spec};
use super::rel::{Id, Op, Props, Time, Trend, Windows, field, fields_of};
use super::window::of_zone;
use crate::logical::nodes::StateTtl;

/// What aggregates mean, whatever they are called.
pub(super) fn meanings(aggregates: &[AggregateSpec]) -> String {
    let meaning = |a: &AggregateSpec| {
        format!("{:?}{:?} {:?} {} {:?} {:?}", a.function, a.arguments, a.filter, a.is_distinct, a.order, a.result)
    };
    aggregates.iter().map(meaning).collect::<Vec<_>>().join("; ")
}

/// How an aggregate of rows that only come changes.
pub(super) fn trend(aggregate: &AggregateSpec) -> Option<Trend> {
    match aggregate.function {
        AggregateFunction::Count | AggregateFunction::Max => Some(Trend::Increasing),
        AggregateFunction::Min => Some(Trend::Decreasing),
        _ => None,
    }
}

impl Planner<'_> {
    /// `GROUP BY`.
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Id> {
        let input = self.convert(&aggregate.input, false)?;
        let schema = aggregate.input.schema();
        let fields = fields_of(aggregate.schema.fields());
        let sets = match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => Some(sets.clone()),
            [Expr::GroupingSet(_)] => return Err(Error::system("ROLLUP or CUBE was not made GROUPING SETS")),
            _ => None,
        };
        let groups: Vec<Expr> = match &aggregate.group_expr[..] {
            [Expr::GroupingSet(set)] => set.distinct_expr().into_iter().cloned().collect(),
            groups => groups.to_vec(),
        };
        let mut needed = Needed::nothing();
        let mut keys = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            keys.push(needed.position(physical(group, schema)?, |_| fields[index].clone()));
        }
        let results = groups.len() + usize::from(sets.is_some());
        // Grouping sets make nulls of keys: what aggregates are of stands by itself then.
        let apart = if sets.is_some() { needed.exprs.len() } else { 0 };
        let kept = (sets.is_some()).then(|| std::mem::replace(&mut needed, Needed::nothing()));
        let mut aggregates = Vec::new();
        for (index, expr) in aggregate.aggr_expr.iter().enumerate() {
            let mut expr = expr;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::AggregateFunction(Call { func, params }) = expr else {
                return Err(Error::system(format!("'{expr}' is not an aggregate")));
            };
            let name = func.name().to_lowercase();
            let call = AggregateCall {
                name: &name,
                arguments: &params.args,
                filter: params.filter.as_deref(),
                is_distinct: params.distinct,
                order: &params.order_by,
                nulls: params.null_treatment,
                result: fields[results + index].data_type().clone(),
            };
            aggregates.push(call.spec(schema, &mut needed)?);
        }
        if let Some(mut all) = kept {
            all.exprs.append(&mut needed.exprs);
            all.fields.append(&mut needed.fields);
            needed = all;
            aggregates = aggregates.iter().map(|aggregate| relocated(aggregate, |column| column + apart)).collect();
        }
        let width = needed.exprs.len();
        let mut input = self.calc(input, Vec::new(), needed.exprs, needed.fields)?;
        let mut grouping = None;
        if let Some(sets) = sets {
            input = self.expand(input, &groups, &keys, &sets)?;
            grouping = Some(width);
            keys.extend(grouping);
        }
        let mut unique: Vec<usize> = Vec::new();
        keys.iter().for_each(|key| {
            if !unique.contains(key) {
                unique.push(*key)
            }
        });
        let (grouped, found) = match self.group_windows(input, &unique, &aggregates)? {
            Some(windows) => windows,
            None => {
                let found = unique.iter().copied().zip(0..).collect();
                (self.group(input, unique, aggregates.clone(), StateTtl::of(&aggregate.input)), found)
            }
        };
        // The columns as the query has them: groups, the grouping id, aggregates.
        let first = self.width(grouped) - aggregates.len() - self.windows_behind(grouped);
        let mut columns: Vec<PExpr> = keys.iter().map(|key| column(found[key])).collect();
        if grouping.is_some() {
            let id = columns.pop().unwrap_or_else(|| column(0));
            columns.push(std::sync::Arc::new(CastExpr::new(id, fields[groups.len()].data_type().clone(), None)));
        }
        columns.extend((0..aggregates.len()).map(|index| column(first + index)));
        self.calc(grouped, Vec::new(), columns, fields)
    }

    fn windows_behind(&self, id: Id) -> usize {
        match &self.rels[id].op {
            Op::Spec(OperatorSpec::WindowAggregate(spec)) => spec.window_columns.len(),
            _ => 0,
        }
    }

    /// Each row once for each grouping set, with the columns of the key that are not in it null, and behind all the
    /// number that DataFusion's GROUPING() expects.
    fn expand(&mut self, input: Id, groups: &[Expr], keys: &[usize], sets: &[Vec<Expr>]) -> Result<Id> {
        let mut fields = self.fields(input);
        let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
        let mut projections = Vec::new();
        let mut nulled = Vec::new();
        for set in sets {
            let is_left_out: Vec<bool> = groups.iter().map(|group| !set.contains(group)).collect();
            let mask = is_left_out.iter().fold(0_u64, |mask, is_null| (mask << 1) | u64::from(*is_null));
            let ordinal = seen.entry(mask).or_default();
            let id = mask | (*ordinal << groups.len());
            *ordinal += 1;
            let mut projection: Vec<PExpr> = (0..fields.len()).map(column).collect();
            for (key, is_null) in keys.iter().zip(&is_left_out) {
                if *is_null {
                    nulled.push(*key);
                    let null = ScalarValue::try_from(fields[*key].data_type()).map_err(refused)?;
                    projection[*key] = literal(null);
                }
            }
            projection.push(literal(ScalarValue::Int64(Some(id as i64))));
            projections.push(projection);
        }
        let what = projections.iter().map(|exprs| expr_meanings(exprs)).collect::<Vec<_>>().join(" | ");
        let schema = self.schema(input);
        let specs = projections.iter().map(|exprs| exprs.iter().map(|expr| spec(expr, &schema)).collect());
        let projections = specs.collect::<Result<Vec<Vec<_>>>>()?;
        fields.push(field("$e", DataType::Int64));
        let below = self.props(input);
        let mut props = below.widened(1);
        props.trends.fill(None);
        for key in nulled {
            props.times[key] = None;
            if let Some(windows) = &mut props.windows {
                windows.columns[key] = None;
            }
        }
        let id = fields.len() - 1;
        props.keys = Vec::new();
        for key in &below.keys {
            // A key that is nulled for some sets is none any more.
            if !key.iter().any(|column| keys.contains(column)) {
                props.keys.push(key.iter().copied().chain([id]).collect());
            }
        }
        Ok(self.add(Op::Spec(OperatorSpec::Expand { projections }), &[input], fields, props, &format!("Expand {what}")))
    }

    /// `GROUP BY window_start, window_end, …`, with where each key of `keys` is in it.
    fn group_windows(
        &mut self,
        input: Id,
        keys: &[usize],
        aggregates: &[AggregateSpec],
    ) -> Result<Option<(Id, BTreeMap<usize, usize>)>> {
        let Some(windows) = self.props(input).windows.clone() else { return Ok(None) };
        let is_key = |wanted: WindowColumn| keys.iter().copied().find(|&key| windows.columns[key] == Some(wanted));
        let (Some(start), Some(end)) = (is_key(WindowColumn::Start), is_key(WindowColumn::End)) else {
            return Ok(None);
        };
        let others: Vec<usize> = keys.iter().copied().filter(|&key| windows.columns[key].is_none()).collect();
        let mut window_columns = Vec::new();
        for key in keys {
            if let Some(column) = windows.columns[*key]
                && !window_columns.contains(&column)
            {
                window_columns.push(column);
            }
        }
        // The window's time is an instant, where that of rows is.
        let types: BTreeMap<WindowColumn, DataType> = (keys.iter())
            .filter_map(|&key| Some((windows.columns[key]?, self.rels[input].schema.field(key).data_type().clone())))
            .collect();
        let direct = self.below_window(input, &windows, &others, aggregates)?;
        let (input, keys_below, aggregates, time) = match direct {
            Some((input, time, moved)) => {
                let to = |column: usize| moved.iter().position(|old| *old == column).unwrap_or(0);
                let keys_below: Vec<usize> = others.iter().map(|&key| to(key)).collect();
                let aggregates: Vec<AggregateSpec> = aggregates.iter().map(|a| relocated(a, &to)).collect();
                (input, keys_below, aggregates, time)
            }
            None => (input, others.clone(), aggregates.to_vec(), TimeSpec::Window { start, end }),
        };
        if windows.is_processing && matches!(time, TimeSpec::Window { .. }) && !self.settings.is_batch {
            return Err(Error::input(
                "windows of processing time are aggregated right where they are made: GROUP BY window_start, window_end over the window's table itself",
            ));
        }
        let first = keys_below.len() + aggregates.len();
        let mut found: BTreeMap<usize, usize> = others.iter().copied().zip(0..).collect();
        for key in keys {
            if let Some(column) = windows.columns[*key] {
                found.insert(*key, first + window_columns.iter().position(|known| *known == column).unwrap_or(0));
            }
        }
        let spec = WindowAggregateSpec {
            keys: keys_below,
            aggregates,
            window: windows.spec,
            time,
            zone: windows.zone.clone(),
            window_columns,
            is_insert_only: true,
            has_partials: false,
        };
        Ok(Some((self.window_aggregate(input, spec, &windows, &types), found)))
    }

    /// The operator that `spec` says, of windows that have columns of these types: keys, aggregates, columns of windows.
    pub(super) fn window_aggregate(
        &mut self,
        input: Id,
        spec: WindowAggregateSpec,
        windows: &Windows,
        types: &BTreeMap<WindowColumn, DataType>,
    ) -> Id {
        let WindowAggregateSpec { keys, aggregates, time, window_columns, .. } = &spec;
        let mut fields: Vec<FieldRef> = keys.iter().map(|&key| self.rels[input].schema.fields()[key].clone()).collect();
        fields.extend(aggregates.iter().map(|aggregate| field(&aggregate.text, aggregate.result.clone())));
        let first = fields.len();
        let mut props = Props::plain(first + window_columns.len());
        let mut in_windows = Windows { columns: vec![None; first], ..windows.clone() };
        for (index, column) in window_columns.iter().enumerate() {
            fields.push(window_field(*column, &types[column]));
            in_windows.columns.push(Some(*column));
            if *column == WindowColumn::Time {
                let time = if windows.is_processing { Time::Processing } else { Time::Event };
                props.times[first + index] = (!self.settings.is_batch).then_some(time);
            }
        }
        let key = (0..keys.len()).chain(
            [WindowColumn::Start, WindowColumn::End]
                .into_iter()
                .map(|column| first + window_columns.iter().position(|known| *known == column).unwrap_or(0)),
        );
        let mut props = props.keyed(key.collect());
        props.windows = Some(in_windows);
        let what = format!(
            "WindowAggregate {:?} {time:?} {keys:?} {} {window_columns:?}{}",
            windows.spec,
            meanings(aggregates),
            of_zone(windows.zone.as_ref())
        );
        self.add(Op::Spec(OperatorSpec::WindowAggregate(spec)), &[input], fields, props, &what)
    }

    /// If rows get their windows right below, and nothing but keys is made of these: the rows before they do, what time
    /// they have, and which of the columns each of theirs was.
    fn below_window(
        &mut self,
        input: Id,
        windows: &Windows,
        keys: &[usize],
        aggregates: &[AggregateSpec],
    ) -> Result<Option<(Id, TimeSpec, Vec<usize>)>> {
        let all = |planner: &Self, id: Id| (0..planner.width(id)).map(column).collect::<Vec<_>>();
        let (table, condition, projection) = match &self.rels[input].op {
            Op::Calc(calc) => (self.rels[input].inputs[0], calc.condition.clone(), calc.projection.clone()),
            _ => (input, Vec::new(), all(self, input)),
        };
        let Op::Spec(OperatorSpec::WindowTable { time, partition, .. }) = self.rels[table].op.clone() else {
            return Ok(None);
        };
        let below = self.rels[table].inputs[0];
        let width = self.width(below);
        let is_of_window = |expr: &PExpr| columns_of(expr).iter().any(|column| *column >= width);
        if condition.iter().any(is_of_window) {
            return Ok(None);
        }
        let mut used: Vec<usize> = keys.to_vec();
        for aggregate in aggregates {
            used.extend(&aggregate.arguments);
            used.extend(aggregate.filter);
            used.extend(aggregate.order.iter().map(|sort| sort.column));
        }
        let mut kept: Vec<usize> = Vec::new();
        used.iter().for_each(|column| {
            if !kept.contains(column) {
                kept.push(*column)
            }
        });
        if kept.iter().any(|&column| is_of_window(&projection[column]) || windows.columns[column].is_some()) {
            return Ok(None);
        }
        if !partition.is_empty() {
            // Sessions are of a partition: they are those of the keys only if it is the same.
            let of_keys: Vec<Option<usize>> = keys.iter().map(|&key| as_column(&projection[key])).collect();
            let is_same = partition.iter().all(|column| of_keys.contains(&Some(*column)))
                && of_keys.iter().all(|column| column.is_some_and(|column| partition.contains(&column)));
            if !is_same {
                return Ok(None);
            }
        } else if matches!(windows.spec, flott_sql_runtime::spec::WindowSpec::Session { .. }) && !keys.is_empty() {
            return Ok(None);
        }
        let mut needed = Needed::nothing();
        for &index in &kept {
            needed.exprs.push(projection[index].clone());
            needed.fields.push(self.rels[input].schema.fields()[index].clone());
        }
        let time = match time {
            TimeSpec::Event(time) => {
                let old = self.rels[below].schema.fields()[time].clone();
                TimeSpec::Event(needed.position(column(time), |_| old))
            }
            other => other,
        };
        let below = self.calc(below, condition, needed.exprs, needed.fields)?;
        Ok(Some((below, time, kept)))
    }
}

/// A column of a window, as it is called and typed.
fn window_field(column: WindowColumn, data_type: &DataType) -> FieldRef {
    let name = match column {
        WindowColumn::Start => "window_start",
        WindowColumn::End => "window_end",
        WindowColumn::Time => "window_time",
    };
    field(name, data_type.clone())
}

/// An aggregate of the same columns, which are elsewhere.
pub(super) fn relocated(aggregate: &AggregateSpec, mut to: impl FnMut(usize) -> usize) -> AggregateSpec {
    let mut new = aggregate.clone();
    new.arguments.iter_mut().for_each(|column| *column = to(*column));
    new.filter = new.filter.map(&mut to);
    new.order.iter_mut().for_each(|sort| sort.column = to(sort.column));
    new
}
