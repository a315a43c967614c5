//! Joins with the version of a table at a time: versioned tables, and tables that are looked up.

use std::collections::BTreeMap;

use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{LookupJoinSpec, OperatorSpec, SourceSpec, TemporalJoinSpec, TimeSpec};

use super::Planner;
use super::calc::Needed;
use super::expr::{
    PExpr, all_of, as_column, column, columns_of, conjuncts, constant, literal, meanings, physical, refused, remap,
    replace, spec,
};
use super::join::Pair;
use super::reading::Reading;
use super::rel::{Id, Op, Scan, Time, field, fields_of};
use crate::logical::nodes::TemporalJoin;

impl Planner<'_> {
    /// `JOIN … FOR SYSTEM_TIME AS OF …`.
    pub(super) fn temporal_join(&mut self, join: &TemporalJoin) -> Result<Id> {
        let left = self.convert(&join.left, false)?;
        let right = self.convert(&join.right, false)?;
        let (left_width, right_width) = (self.width(left), self.width(right));
        let fields = fields_of(join.schema.fields());
        let on = conjuncts(&physical(&join.on, &join.schema)?);
        let is_true = |expr: &PExpr| matches!(constant(expr), Some(value) if value == true.into());
        let on: Vec<PExpr> = on.into_iter().filter(|expr| !is_true(expr)).collect();
        let time = physical(&join.time, join.left.schema())?;
        let mut needed = Needed::all(self.fields(left));
        let data_type = time.data_type(join.left.schema().as_arrow()).map_err(refused)?;
        let time = needed.position(time, |index| field(format!("$f{index}"), data_type));
        let before = needed.exprs.len();
        let left = self.calc(left, Vec::new(), needed.exprs, needed.fields)?;
        let moved = |index: usize| if index < left_width { index } else { index - left_width + before };
        let on = moved_all(&on, &moved)?;
        let attribute = self.props(left).times[time];
        let joined = match attribute {
            None => {
                return Err(Error::input(format!(
                    "FOR SYSTEM_TIME AS OF needs a time attribute of the left table, and '{}' is none",
                    self.schema(left).field(time).name()
                )));
            }
            Some(Time::Processing) if self.lookup_table(right).is_some() => {
                return self.lookup(left, right, on, join.is_left_outer, left_width, fields);
            }
            Some(attribute) => {
                let wide = self.width(left);
                let (right, chosen) = self.all_versions(right, wide)?;
                let pair = self.pair(left, right, Vec::new(), on.into_iter().chain(chosen).collect(), false)?;
                self.versioned(pair, time, attribute, join.is_left_outer)?
            }
        };
        let wide = self.width(joined) - self.width(self.rels[joined].inputs[1]);
        let columns = (0..left_width).chain(wide..wide + right_width).map(column).collect();
        self.calc(joined, Vec::new(), columns, fields)
    }

    /// Versions of which none is left out, and which of them count: over a left of so many columns, and these. A version that
    /// does not count ends the one before it all the same.
    fn all_versions(&mut self, right: Id, left_width: usize) -> Result<(Id, Vec<PExpr>)> {
        let Op::Calc(calc) = self.rels[right].op.clone() else { return Ok((right, Vec::new())) };
        let below = self.rels[right].inputs[0];
        if calc.condition.is_empty() || self.props(below).is_chosen_by_key(&calc.condition) {
            return Ok((right, Vec::new()));
        }
        let mut needed = Needed { exprs: calc.projection, fields: self.fields(right) };
        let mut places = BTreeMap::new();
        for index in calc.condition.iter().flat_map(columns_of) {
            let known = self.schema(below).fields()[index].clone();
            places.insert(index, needed.position(column(index), |_| known));
        }
        let place = |index: usize| left_width + places.get(&index).copied().unwrap_or(0);
        let chosen = moved_all(&calc.condition, &place)?;
        Ok((self.calc(below, Vec::new(), needed.exprs, needed.fields)?, chosen))
    }

    fn versioned(&mut self, pair: Pair, time: usize, attribute: Time, is_left_outer: bool) -> Result<Id> {
        let right = self.props(pair.right).clone();
        let left_keys: Vec<usize> = pair.keys.iter().map(|(left, ..)| *left).collect();
        let right_keys: Vec<usize> = pair.keys.iter().map(|(_, right, _)| *right).collect();
        if !right.is_unique_within(&right_keys) {
            let reason = match right.keys.is_empty() {
                true => {
                    "has no primary key: declare PRIMARY KEY (…) NOT ENFORCED, or join a view that keeps the last row of each key by ROW_NUMBER()"
                }
                false => {
                    "has a primary key that the join's condition does not have all columns of: compare them with ="
                }
            };
            return Err(Error::input(format!("the right table of FOR SYSTEM_TIME AS OF {reason}")));
        }
        let (left_time, right_time) = match attribute {
            Time::Processing => (TimeSpec::Processing, TimeSpec::Processing),
            Time::Event => {
                let version = right.times.iter().position(|time| *time == Some(Time::Event));
                let version = version.ok_or_else(|| {
                    Error::input("the right table of FOR SYSTEM_TIME AS OF an event time has no such time itself: declare a WATERMARK for when its versions are from")
                })?;
                (TimeSpec::Event(time), TimeSpec::Event(version))
            }
        };
        let fields = self.fields(pair.left).into_iter().chain(self.fields(pair.right));
        let schema = arrow::datatypes::Schema::new(fields.collect::<Vec<_>>());
        let spec = TemporalJoinSpec {
            is_left_outer,
            left_keys,
            right_keys,
            left_time,
            right_time,
            ttl_ms: if self.settings.is_batch { 0 } else { self.settings.state_ttl_ms },
            condition: all_of(&pair.rest).map(|expr| spec(&expr, &schema)).transpose()?,
        };
        Ok(self.versions([pair.left, pair.right], spec, &meanings(&pair.rest)))
    }

    /// Rows with the versions of others.
    pub(super) fn versions(&mut self, inputs: [Id; 2], spec: TemporalJoinSpec, condition: &str) -> Id {
        let mut fields = self.fields(inputs[0]);
        fields.extend(self.fields(inputs[1]));
        let left = self.props(inputs[0]);
        let mut props = left.widened(self.width(inputs[1]));
        props.trends.fill(None);
        props.keys = left.keys_after(&spec.left_keys);
        props.kinds.delete |= props.kinds.update;
        let what = format!(
            "TemporalJoin {} {:?} {:?} {:?} {:?} {condition}",
            spec.is_left_outer, spec.left_time, spec.right_time, spec.left_keys, spec.right_keys
        );
        self.add(Op::Spec(OperatorSpec::TemporalJoin(spec)), &inputs, fields, props, &what)
    }

    /// The table that a relation reads and nothing else, if rows can be looked up in it.
    fn lookup_table(&self, id: Id) -> Option<Scan> {
        let id = match &self.rels[id].op {
            Op::Calc(_) => self.rels[id].inputs[0],
            _ => id,
        };
        match &self.rels[id].op {
            Op::Scan(scan) if scan.table.is_lookup => Some(scan.clone()),
            _ => None,
        }
    }

    fn lookup(
        &mut self,
        left: Id,
        right: Id,
        on: Vec<PExpr>,
        is_left_outer: bool,
        left_width: usize,
        fields: Vec<arrow::datatypes::FieldRef>,
    ) -> Result<Id> {
        let scan = self.lookup_table(right).ok_or_else(|| Error::system("a lookup join has no table"))?;
        // What the connector reads, and how the right columns and conditions are made of that.
        let reading = Reading::of(&scan.table, &scan.columns, false)?;
        let (mut conditions, mut made) = (Vec::new(), reading.columns.clone());
        if let Op::Calc(calc) = &self.rels[right].op {
            let through = |expr: &PExpr| replace(expr, &|index| reading.columns[index].clone());
            conditions = calc.condition.iter().map(through).collect::<Result<_>>()?;
            made = calc.projection.iter().map(through).collect::<Result<_>>()?;
        }
        let width = self.width(left);
        let over_both = |expr: &PExpr, width: usize| -> Result<PExpr> {
            replace(expr, &|index| match index.checked_sub(width) {
                None => column(index),
                Some(right) => remap(&made[right], &|index| index + width).unwrap_or_else(|_| column(index)),
            })
        };
        let mut needed = Needed::all(self.fields(left));
        let (mut left_keys, mut right_keys, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut add_key = |key: PExpr, column: usize| -> Result<bool> {
            let right = reading.projection[column];
            // A column is asked for one value: that it equals another, too, is a condition.
            let is_new = !right_keys.contains(&right);
            if is_new {
                let data_type = key.data_type(&self.schema(left)).map_err(refused)?;
                left_keys.push(needed.position(key, |index| field(format!("$f{index}"), data_type)));
                right_keys.push(right);
            }
            Ok(is_new)
        };
        for expr in &on {
            let is_key = match self.lookup_key(left, width, expr, &made) {
                Some((key, column)) => add_key(key, column)?,
                None => false,
            };
            if !is_key {
                rest.push(over_both(expr, width)?);
            }
        }
        // Constants are keys behind the others, wherever they are compared.
        let mut is_constant_key = |expr: &PExpr, start: usize| match constant_key(expr, start, &reading.fields) {
            Some((value, right)) => add_key(literal(value), right),
            None => Ok(false),
        };
        let (mut both, mut own) = (Vec::new(), Vec::new());
        for expr in rest {
            if !is_constant_key(&expr, width)? {
                both.push(expr);
            }
        }
        for expr in conditions {
            if !is_constant_key(&expr, 0)? {
                own.push(expr);
            }
        }
        if left_keys.is_empty() {
            return Err(Error::input(format!(
                "a lookup in '{}' needs a condition that one of its columns equals an expression of the left table, or a constant",
                scan.table.name
            )));
        }
        let wide = needed.exprs.len();
        let moved = |index: usize| if index < width { index } else { index - width + wide };
        let mut rest = moved_all(&both, &moved)?;
        rest.extend(moved_all(&own, &|index| index + wide)?);
        let left = self.calc(left, Vec::new(), needed.exprs, needed.fields)?;
        let mut all = self.fields(left);
        all.extend(reading.fields.iter().cloned());
        let schema = arrow::datatypes::Schema::new(all.clone());
        let mut props = self.props(left).widened(reading.fields.len());
        props.trends.fill(None);
        let is_unique = !scan.table.primary_key.is_empty()
            && scan.table.primary_key.iter().all(|key| {
                scan.table.read().iter().position(|column| column == key).is_some_and(|key| right_keys.contains(&key))
            });
        props.kinds.delete |= props.kinds.update;
        if !is_unique {
            props.keys = Vec::new();
        }
        let what = format!(
            "LookupJoin {} {:?} {left_keys:?} {right_keys:?} {is_left_outer} {}",
            scan.table.name,
            reading.projection,
            meanings(&rest)
        );
        let table = SourceSpec { is_batch: self.settings.is_batch, ..reading.source(&scan.table) };
        let op = OperatorSpec::LookupJoin(LookupJoinSpec {
            table,
            left_keys,
            right_keys,
            is_left_outer,
            condition: all_of(&rest).map(|expr| spec(&expr, &schema)).transpose()?,
            // Known when all operators are.
            is_insert_only: false,
            timeout_ms: self.settings.lookup_timeout_ms,
            requests_max: self.settings.lookups_max,
        });
        let identity = format!("{:?}", scan.table.options);
        let joined = self.add_distinct(Op::Spec(op), &[left], all, props, &what, &identity);
        let mut columns: Vec<PExpr> = (0..left_width).map(column).collect();
        columns.extend(moved_all(&made, &|index| index + wide)?);
        self.calc(joined, Vec::new(), columns, fields)
    }

    /// `expression over the left = column of the table`.
    fn lookup_key(&self, left: Id, width: usize, expr: &PExpr, made: &[PExpr]) -> Option<(PExpr, usize)> {
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        if *binary.op() != Operator::Eq {
            return None;
        }
        let key = |key: &PExpr, of: &PExpr| -> Option<(PExpr, usize)> {
            let is_left = columns_of(key).iter().all(|column| *column < width);
            let right = as_column(of)?.checked_sub(width)?;
            let right = as_column(&made[right])?;
            (is_left && !columns_of(key).is_empty() && key.data_type(&self.schema(left)).is_ok())
                .then(|| (key.clone(), right))
        };
        key(binary.left(), binary.right()).or_else(|| key(binary.right(), binary.left()))
    }
}

/// `column of the table = constant`, over the columns that are read of it, the first of which is at `start`. The types of which
/// equal values may differ in their bytes are left to conditions.
fn constant_key(expr: &PExpr, start: usize, fields: &[FieldRef]) -> Option<(ScalarValue, usize)> {
    let binary = expr.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == Operator::Eq)?;
    let key = |of: &PExpr, value: &PExpr| -> Option<(ScalarValue, usize)> {
        let right = as_column(of)?.checked_sub(start)?;
        let data_type = fields.get(right)?.data_type();
        let value = value.downcast_ref::<Literal>()?.value();
        let is_key = !value.is_null() && value.data_type() == *data_type;
        (is_key && !data_type.is_floating() && !data_type.is_nested()).then(|| (value.clone(), right))
    };
    key(binary.left(), binary.right()).or_else(|| key(binary.right(), binary.left()))
}

fn moved_all(exprs: &[PExpr], to: &dyn Fn(usize) -> usize) -> Result<Vec<PExpr>> {
    exprs.iter().map(|expr| remap(expr, to)).collect()
}
