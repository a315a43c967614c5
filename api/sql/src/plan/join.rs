//! Joins: of windows, of rows near in time, and of anything else.

use std::sync::Arc;

use datafusion::common::{DFSchema, JoinType, NullEquality};
use datafusion::logical_expr::{Join, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, IsNotNullExpr, IsNullExpr};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{
    IntervalJoinSpec, JoinInput, JoinKind, JoinSpec, OperatorSpec, TimeSpec, WindowColumn, WindowJoinSpec,
};

use super::Planner;
use super::calc::Needed;
use super::changelog::stays;
use super::convert::hint;
use super::expr::{
    PExpr, all_of, column, columns_of, comparison, conjuncts, instant, literal, meanings, physical, refused, remap,
    spec,
};
use super::rel::{Id, Kinds, Op, Props, Time, field, fields_of};
use super::window::of_zone;
use crate::logical::nodes::StateTtl;

/// Two inputs, and how their rows belong together.
pub(super) struct Pair {
    pub left: Id,
    pub right: Id,
    /// Columns that are equal, and whether nulls are.
    pub keys: Vec<(usize, usize, bool)>,
    /// What else is true; over the left columns, then the right ones.
    pub rest: Vec<PExpr>,
    /// For how long unused rows of each side are kept, if a hint says so.
    pub ttls_ms: [Option<u64>; 2],
}

impl Pair {
    fn left_keys(&self) -> Vec<usize> {
        self.keys.iter().map(|(left, ..)| *left).collect()
    }

    fn right_keys(&self) -> Vec<usize> {
        self.keys.iter().map(|(_, right, _)| *right).collect()
    }

    /// `NOT IN` with nulls: a left row has a partner unless the comparison is false. So the first key, what IN compares, is a
    /// condition like others, and null compares as equal to all.
    fn null_aware(mut self, left_width: usize) -> Self {
        let (left, right, _) = self.keys.remove(0);
        let (left, right) = (column(left), column(left_width + right));
        let or = |a: PExpr, b: PExpr| -> PExpr { Arc::new(BinaryExpr::new(a, Operator::Or, b)) };
        let is_null = |expr: &PExpr| -> PExpr { Arc::new(IsNullExpr::new(Arc::clone(expr))) };
        let equal: PExpr = Arc::new(BinaryExpr::new(Arc::clone(&left), Operator::Eq, Arc::clone(&right)));
        self.rest.push(or(or(is_null(&left), is_null(&right)), equal));
        self
    }

    fn meaning(&self) -> String {
        format!("{:?} {}", self.keys, meanings(&self.rest))
    }
}

/// The bounds of left time minus right time.
struct Bounds {
    times: (usize, usize),
    lower: i64,
    upper: i64,
    rest: Vec<PExpr>,
    keys: Vec<(usize, usize, bool)>,
}

impl Planner<'_> {
    /// `JOIN`, and what subqueries become.
    pub(super) fn join(&mut self, join: &Join) -> Result<Id> {
        let left = self.convert(&join.left, false)?;
        let right = self.convert(&join.right, false)?;
        let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
        let fields = fields_of(join.schema.fields());
        let on = join.on.iter().map(|(left, right)| Ok((physical(left, left_schema)?, physical(right, right_schema)?)));
        let on = on.collect::<Result<Vec<_>>>()?;
        let filter = match &join.filter {
            Some(filter) => conjuncts(&physical(filter, &both(left_schema, right_schema)?)?),
            None => Vec::new(),
        };
        // NOT IN is about nulls only where there can be some.
        let may_be_null = |expr: &datafusion::logical_expr::Expr, schema: &DFSchema| {
            use datafusion::logical_expr::ExprSchemable;
            expr.nullable(schema).unwrap_or(true)
        };
        let mut keys = join.on.iter();
        let is_null_aware =
            join.null_aware && keys.any(|(l, r)| may_be_null(l, left_schema) || may_be_null(r, right_schema));
        let nulls_equal = join.null_equality == NullEquality::NullEqualsNull;
        let kind = match join.join_type {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            JoinType::Right => JoinKind::Right,
            JoinType::Full => JoinKind::Full,
            JoinType::LeftSemi => JoinKind::Semi,
            JoinType::LeftAnti => JoinKind::Anti,
            JoinType::RightSemi | JoinType::RightAnti => {
                let (old_left, old_right) = (self.width(left), self.width(right));
                let swap = |index: usize| if index < old_left { index + old_right } else { index - old_left };
                let filter = filter.iter().map(|expr| remap(expr, &swap)).collect::<Result<_>>()?;
                let on = on.into_iter().map(|(left, right)| (right, left)).collect();
                let mut pair = self.pair(right, left, on, filter, nulls_equal)?;
                pair.ttls_ms = [StateTtl::of(&join.right), StateTtl::of(&join.left)];
                let kind = if join.join_type == JoinType::RightSemi { JoinKind::Semi } else { JoinKind::Anti };
                let joined = self.joined(kind, pair, is_null_aware)?;
                return self.calc(joined, Vec::new(), (0..old_right).map(column).collect(), fields);
            }
            JoinType::LeftMark => return self.mark(left, right, on, filter, nulls_equal, fields),
            JoinType::RightMark => return Err(Error::input("this subquery cannot be made a join: write it as a JOIN")),
        };
        let (left_width, right_width) = (self.width(left), self.width(right));
        let mut pair = self.pair(left, right, on, filter, nulls_equal)?;
        pair.ttls_ms = [StateTtl::of(&join.left), StateTtl::of(&join.right)];
        let wide = self.width(pair.left);
        let joined = self.joined(kind, pair, is_null_aware)?;
        let mut columns: Vec<usize> = (0..left_width).collect();
        if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            columns.extend(wide..wide + right_width);
        }
        self.calc(joined, Vec::new(), columns.into_iter().map(column).collect(), fields)
    }

    /// `EXISTS` or `IN` where it is not a condition by itself: each left row, and whether it has a partner.
    fn mark(
        &mut self,
        left: Id,
        right: Id,
        on: Vec<(PExpr, PExpr)>,
        filter: Vec<PExpr>,
        nulls_equal: bool,
        fields: Vec<arrow::datatypes::FieldRef>,
    ) -> Result<Id> {
        let left_width = self.width(left);
        let pair = self.pair(left, right, on, filter, nulls_equal)?;
        let wide = self.width(pair.left);
        if !pair.rest.is_empty() {
            return Err(Error::input(
                "EXISTS or IN inside OR or a SELECT list is supported for equal columns only: write it as a JOIN",
            ));
        }
        // Partners once each, with a column that is there for them.
        let keys = pair.right_keys();
        let partners = self.select(pair.right, &keys)?;
        let partners = self.distinct(partners)?;
        let mut needed = Needed::all(self.fields(partners));
        let is_there = literal(true.into());
        needed.exprs.push(is_there);
        needed.fields.push(field("mark", arrow::datatypes::DataType::Boolean));
        let partners = self.calc(partners, Vec::new(), needed.exprs, needed.fields)?;
        let mark = wide + keys.len();
        let keys = pair.keys.iter().enumerate().map(|(index, (left, _, nulls))| (*left, index, *nulls)).collect();
        let pair = Pair { left: pair.left, right: partners, keys, rest: Vec::new(), ttls_ms: [None; 2] };
        let joined = self.regular(JoinKind::Left, pair)?;
        let mut columns: Vec<PExpr> = (0..left_width).map(column).collect();
        columns.push(Arc::new(IsNotNullExpr::new(column(mark))));
        self.calc(joined, Vec::new(), columns, fields)
    }

    /// Finds the columns that are equal. What is compared and no column is computed before: behind the columns of its side.
    pub(super) fn pair(
        &mut self,
        left: Id,
        right: Id,
        on: Vec<(PExpr, PExpr)>,
        filter: Vec<PExpr>,
        nulls_equal: bool,
    ) -> Result<Pair> {
        let old = self.width(left);
        let mut equal: Vec<(PExpr, PExpr, bool)> = on.into_iter().map(|(l, r)| (l, r, nulls_equal)).collect();
        let mut rest = Vec::new();
        for expr in filter {
            match self.equality(left, right, &expr)? {
                Some(found) => equal.push(found),
                None => rest.push(expr),
            }
        }
        let mut sides = [Needed::all(self.fields(left)), Needed::all(self.fields(right))];
        let mut keys = Vec::new();
        for (l, r, nulls) in equal {
            let types =
                (l.data_type(&self.schema(left)).map_err(refused)?, r.data_type(&self.schema(right)).map_err(refused)?);
            if types.0 != types.1 {
                return Err(Error::input(format!(
                    "a join compares {} with {}: CAST one to the other's type",
                    types.0, types.1
                )));
            }
            let l = sides[0].position(l, |index| field(format!("$f{index}"), types.0));
            let r = sides[1].position(r, |index| field(format!("$f{index}"), types.1));
            if !keys.contains(&(l, r, nulls)) {
                keys.push((l, r, nulls));
            }
        }
        let [left_side, right_side] = sides;
        let wide = left_side.exprs.len();
        let left = self.calc(left, Vec::new(), left_side.exprs, left_side.fields)?;
        let right = self.calc(right, Vec::new(), right_side.exprs, right_side.fields)?;
        let moved = |index: usize| if index < old { index } else { index - old + wide };
        let rest = rest.iter().map(|expr| remap(expr, &moved)).collect::<Result<_>>()?;
        Ok(Pair { left, right, keys, rest, ttls_ms: [None; 2] })
    }

    /// `left = right`, each over its own side.
    fn equality(&self, left: Id, right: Id, expr: &PExpr) -> Result<Option<(PExpr, PExpr, bool)>> {
        let Some((a, operator, b)) = comparison(expr) else { return Ok(None) };
        let nulls = match operator {
            Operator::Eq => false,
            Operator::IsNotDistinctFrom => true,
            _ => return Ok(None),
        };
        let width = self.width(left);
        let is_left = |expr: &PExpr| columns_of(expr).iter().all(|column| *column < width);
        let is_right = |expr: &PExpr| columns_of(expr).iter().all(|column| *column >= width);
        if columns_of(&a).is_empty() || columns_of(&b).is_empty() {
            return Ok(None);
        }
        let (a, b) = match (is_left(&a) && is_right(&b), is_right(&a) && is_left(&b)) {
            (true, _) => (a, b),
            (_, true) => (b, a),
            _ => return Ok(None),
        };
        let b = remap(&b, &|index| index - width)?;
        let types = (a.data_type(&self.schema(left)), b.data_type(&self.schema(right)));
        Ok(matches!(types, (Ok(a), Ok(b)) if a == b).then_some((a, b, nulls)))
    }

    /// The join that fits.
    fn joined(&mut self, kind: JoinKind, pair: Pair, is_null_aware: bool) -> Result<Id> {
        if !self.settings.is_batch {
            if let Some(join) = self.window_join(kind, &pair)? {
                return Ok(join);
            }
            if let Some(join) = self.interval_join(kind, &pair)? {
                return Ok(join);
            }
        }
        if is_null_aware && !pair.keys.is_empty() {
            let width = self.width(pair.left);
            return self.regular(kind, pair.null_aware(width));
        }
        self.regular(kind, pair)
    }

    fn condition(&self, pair: &Pair, rest: &[PExpr]) -> Result<Option<flott_sql_runtime::spec::ExprSpec>> {
        let fields = self.fields(pair.left).into_iter().chain(self.fields(pair.right));
        let schema = arrow::datatypes::Schema::new(fields.collect::<Vec<_>>());
        all_of(rest).map(|expr| spec(&expr, &schema)).transpose()
    }

    fn both_fields(&self, kind: JoinKind, pair: &Pair) -> Vec<arrow::datatypes::FieldRef> {
        let mut fields = self.fields(pair.left);
        if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            fields.extend(self.fields(pair.right));
        }
        fields
    }

    /// What is known of the columns of both sides, but for changes and keys.
    fn both_props(&self, kind: JoinKind, pair: &Pair) -> Props {
        let left = self.props(pair.left).clone();
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            return Props { keys: Vec::new(), ..left };
        }
        let mut props = left.widened(self.width(pair.right));
        let width = self.width(pair.left);
        let right = self.props(pair.right);
        props.times.truncate(width);
        props.times.extend(&right.times);
        props.trends.fill(None);
        props.windows = None;
        props.keys = Vec::new();
        props
    }

    /// Which columns are unique in pairs.
    fn keys_of_pairs(&self, kind: JoinKind, pair: &Pair) -> Vec<Vec<usize>> {
        let (left, right) = (self.props(pair.left), self.props(pair.right));
        let (left_keys, right_keys) = (pair.left_keys(), pair.right_keys());
        let of_left = left.keys_after(&left_keys);
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            return of_left;
        }
        let width = self.width(pair.left);
        let shifted = |key: &Vec<usize>| key.iter().map(|column| column + width).collect::<Vec<_>>();
        let of_right: Vec<Vec<usize>> = right.keys_after(&right_keys).iter().map(shifted).collect();
        let mut keys = Vec::new();
        if right.is_unique_within(&right_keys) && matches!(kind, JoinKind::Inner | JoinKind::Left) {
            keys.extend(of_left.iter().cloned());
        }
        if left.is_unique_within(&left_keys) && matches!(kind, JoinKind::Inner | JoinKind::Right) {
            keys.extend(of_right.iter().cloned());
        }
        for left in &of_left {
            for right in &of_right {
                let both: Vec<usize> = left.iter().chain(right).copied().collect();
                if !keys.contains(&both) {
                    keys.push(both);
                }
            }
        }
        keys
    }

    /// A join of all rows that there are.
    pub(super) fn regular(&mut self, kind: JoinKind, pair: Pair) -> Result<Id> {
        let (left, right) = (self.props(pair.left).clone(), self.props(pair.right).clone());
        let (left_keys, right_keys) = (pair.left_keys(), pair.right_keys());
        let mut props = self.both_props(kind, &pair);
        // A row may find its partner much later: its time says nothing about the order any more.
        props.times.fill(None);
        props.windows = None;
        props.keys = self.keys_of_pairs(kind, &pair);
        let input = |props: &Props, keys: &[usize], ttl_ms: Option<u64>| {
            let within = props.keys.iter().find(|key| key.iter().all(|column| keys.contains(column)));
            let around = props.keys.iter().find(|key| keys.iter().all(|column| key.contains(column)));
            // A row with a key around the join's stays at its place when it is updated.
            let best = if props.kinds.update { around.or(within) } else { within.or(around) };
            JoinInput {
                keys: keys.to_vec(),
                is_insert_only: true,
                unique_key: best.or_else(|| props.keys.first()).cloned(),
                ttl_ms: ttl_ms.unwrap_or(self.settings.state_ttl_ms),
            }
        };
        let [left_ttl, right_ttl] = pair.ttls_ms;
        let (left_input, right_input) = (input(&left, &left_keys, left_ttl), input(&right, &right_keys, right_ttl));
        // A pair goes if one of its rows is updated so that it has other partners.
        let mut changes = left.kinds.or(right.kinds);
        let all_stay = stays(&left_input, &left) && stays(&right_input, &right) && pair.rest.is_empty();
        changes.delete |= changes.update && !all_stay;
        props.kinds = match kind {
            _ if self.settings.is_batch => Kinds::default(),
            JoinKind::Inner => changes,
            JoinKind::Semi => Kinds { delete: !changes.is_insert_only(), ..left.kinds },
            JoinKind::Anti => Kinds { delete: true, ..left.kinds },
            JoinKind::Left | JoinKind::Right | JoinKind::Full => Kinds::ALL,
        };
        let what = format!("Join {kind:?} {}", pair.meaning());
        let op = OperatorSpec::Join(JoinSpec {
            kind,
            left: left_input,
            right: right_input,
            nulls_equal: pair.keys.iter().map(|(.., nulls)| *nulls).collect(),
            condition: self.condition(&pair, &pair.rest)?,
            is_batch: self.settings.is_batch,
        });
        let fields = self.both_fields(kind, &pair);
        let hint = hint(&pair.ttls_ms);
        Ok(self.add_distinct(Op::Spec(op), &[pair.left, pair.right], fields, props, &what, &hint))
    }

    /// A join of rows in the same window, if both sides have such and say so.
    fn window_join(&mut self, kind: JoinKind, pair: &Pair) -> Result<Option<Id>> {
        let (left, right) = (self.props(pair.left), self.props(pair.right));
        let (Some(l), Some(r)) = (&left.windows, &right.windows) else { return Ok(None) };
        let is =
            |key: &(usize, usize, bool), wanted| l.columns[key.0] == Some(wanted) && r.columns[key.1] == Some(wanted);
        let find = |wanted| pair.keys.iter().copied().find(|key| is(key, wanted));
        let (Some(_), Some(end)) = (find(WindowColumn::Start), find(WindowColumn::End)) else { return Ok(None) };
        if l.spec != r.spec || l.zone != r.zone || l.is_processing || r.is_processing {
            return Ok(None);
        }
        if !left.kinds.is_insert_only() || !right.kinds.is_insert_only() {
            return Ok(None);
        }
        let keys: Vec<_> = pair
            .keys
            .iter()
            .copied()
            .filter(|key| l.columns[key.0].is_none() || l.columns[key.0] != r.columns[key.1])
            .collect();
        if keys.iter().any(|(.., nulls)| *nulls) {
            return Ok(None);
        }
        let windows = l.clone();
        let mut props = self.both_props(kind, pair);
        if matches!(kind, JoinKind::Inner | JoinKind::Left) {
            let mut columns = windows.columns.clone();
            columns.resize(props.times.len(), None);
            if kind == JoinKind::Inner {
                columns.truncate(self.width(pair.left));
                columns.extend(&r.columns);
            }
            props.windows = Some(super::rel::Windows { columns, ..windows.clone() });
        }
        props.keys = self.keys_of_pairs(kind, pair);
        props.kinds = Kinds::default();
        let zone = windows.zone.clone();
        let what = format!("WindowJoin {kind:?} {end:?} {keys:?} {}{}", meanings(&pair.rest), of_zone(zone.as_ref()));
        let op = OperatorSpec::WindowJoin(WindowJoinSpec {
            kind,
            left_keys: keys.iter().map(|(left, ..)| *left).collect(),
            right_keys: keys.iter().map(|(_, right, _)| *right).collect(),
            left_window_end: end.0,
            right_window_end: end.1,
            zone,
            condition: self.condition(pair, &pair.rest)?,
        });
        let fields = self.both_fields(kind, pair);
        Ok(Some(self.add(Op::Spec(op), &[pair.left, pair.right], fields, props, &what)))
    }

    /// A join of rows that are near each other in time, if the condition bounds how near.
    fn interval_join(&mut self, kind: JoinKind, pair: &Pair) -> Result<Option<Id>> {
        let (left, right) = (self.props(pair.left), self.props(pair.right));
        if !left.kinds.is_insert_only() || !right.kinds.is_insert_only() {
            return Ok(None);
        }
        let Some(bounds) = self.bounds(pair) else { return Ok(None) };
        if bounds.keys.iter().any(|(.., nulls)| *nulls) {
            return Ok(None);
        }
        let is_event = left.times[bounds.times.0] == Some(Time::Event);
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) && !is_event {
            return Ok(None);
        }
        let time = |column| if is_event { TimeSpec::Event(column) } else { TimeSpec::Processing };
        let mut props = self.both_props(kind, pair);
        props.keys = self.keys_of_pairs(kind, pair);
        props.kinds = Kinds::default();
        let spec = IntervalJoinSpec {
            kind,
            left_keys: bounds.keys.iter().map(|(left, ..)| *left).collect(),
            right_keys: bounds.keys.iter().map(|(_, right, _)| *right).collect(),
            left_time: time(bounds.times.0),
            right_time: time(bounds.times.1),
            lower_ms: bounds.lower,
            upper_ms: bounds.upper,
            condition: self.condition(pair, &bounds.rest)?,
        };
        let what = format!(
            "IntervalJoin {kind:?} {:?} {:?} {} {} {:?} {}",
            spec.left_time,
            spec.right_time,
            spec.lower_ms,
            spec.upper_ms,
            bounds.keys,
            meanings(&bounds.rest)
        );
        let fields = self.both_fields(kind, pair);
        Ok(Some(self.add(Op::Spec(OperatorSpec::IntervalJoin(spec)), &[pair.left, pair.right], fields, props, &what)))
    }

    fn bounds(&self, pair: &Pair) -> Option<Bounds> {
        let (left, right) = (self.props(pair.left), self.props(pair.right));
        let width = self.width(pair.left);
        let (mut lower, mut upper, mut times) = (None::<i64>, None::<i64>, None);
        let (mut rest, mut keys) = (Vec::new(), Vec::new());
        let mut is_pair = |l: usize, r: usize| {
            let is_attribute = matches!((left.times[l], right.times[r]), (Some(a), Some(b)) if a == b);
            if is_attribute && times.is_none() {
                times = Some((l, r));
            }
            is_attribute && times == Some((l, r))
        };
        let mut narrow = |least: Option<i64>, most: Option<i64>| {
            if let Some(least) = least {
                lower = Some(lower.map_or(least, |lower: i64| lower.max(least)));
            }
            if let Some(most) = most {
                upper = Some(upper.map_or(most, |upper: i64| upper.min(most)));
            }
        };
        for key in &pair.keys {
            match is_pair(key.0, key.1) {
                true => narrow(Some(0), Some(0)),
                false => keys.push(*key),
            }
        }
        for expr in &pair.rest {
            let Some((a, operator, b)) = comparison(expr) else {
                rest.push(expr.clone());
                continue;
            };
            let found = match (instant(&a), instant(&b)) {
                // a + x operator b + y, which says of left - right what the operator says of y - x.
                (Some((Some(a), x)), Some((Some(b), y))) if a < width && b >= width && is_pair(a, b - width) => {
                    Some((operator, y.checked_sub(x)))
                }
                (Some((Some(a), x)), Some((Some(b), y))) if b < width && a >= width && is_pair(b, a - width) => {
                    operator.swap().map(|operator| (operator, x.checked_sub(y)))
                }
                _ => None,
            };
            match found {
                Some((Operator::Eq, Some(by))) => narrow(Some(by), Some(by)),
                Some((Operator::Lt, Some(by))) => narrow(None, Some(by.saturating_sub(1))),
                Some((Operator::LtEq, Some(by))) => narrow(None, Some(by)),
                Some((Operator::Gt, Some(by))) => narrow(Some(by.saturating_add(1)), None),
                Some((Operator::GtEq, Some(by))) => narrow(Some(by), None),
                _ => rest.push(expr.clone()),
            }
        }
        Some(Bounds { times: times?, lower: lower?, upper: upper?, rest, keys })
    }
}

/// The schema of conditions: the left columns, then the right ones.
fn both(left: &DFSchema, right: &DFSchema) -> Result<DFSchema> {
    left.join(right).map_err(refused)
}
