//! Choosing rows and computing columns: neighbours become one, and what nobody uses is not made.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use flott_core::Result;
use flott_sql_runtime::spec::{OperatorSpec, TimeSpec, WindowTopNSpec};

use super::Planner;
use super::expr::{
    PExpr, as_column, column, columns_of, conjuncts, constant, count_columns, is_trivial, is_volatile, meanings, remap,
    replace,
};
use super::rel::{Calc, Id, Op, Scan};

impl Planner<'_> {
    /// The rows of `input` for which all of `condition` is true, as `projection`, with `fields` for names and types.
    pub(super) fn calc(
        &mut self,
        input: Id,
        condition: Vec<PExpr>,
        projection: Vec<PExpr>,
        fields: Vec<FieldRef>,
    ) -> Result<Id> {
        let mut condition: Vec<PExpr> = condition.iter().flat_map(conjuncts).collect();
        condition.retain(|expr| !matches!(constant(expr), Some(value) if value == true.into()));
        if let Op::Calc(below) = &self.rels[input].op
            && can_merge(below, condition.iter().chain(&projection))
        {
            let below = below.clone();
            let through = |expr: &PExpr| replace(expr, &|index| Arc::clone(&below.projection[index]));
            let above: Vec<PExpr> = condition.iter().map(through).collect::<Result<_>>()?;
            let projection = projection.iter().map(through).collect::<Result<_>>()?;
            let condition = below.condition.iter().cloned().chain(above).collect();
            return self.calc(self.rels[input].inputs[0], condition, projection, fields);
        }
        if let Some(top) = self.top_n(input, &condition, &projection, &fields)? {
            return Ok(top);
        }
        let is_identity = |planner: &Self, input: Id, condition: &[PExpr], projection: &[PExpr]| {
            condition.is_empty()
                && projection.len() == planner.width(input)
                && projection.iter().enumerate().all(|(index, expr)| as_column(expr) == Some(index))
        };
        if is_identity(self, input, &condition, &projection) {
            self.rename(input, &fields);
            return Ok(input);
        }
        let (input, condition, projection) = self.narrow(input, condition, projection)?;
        if is_identity(self, input, &condition, &projection) {
            self.rename(input, &fields);
            return Ok(input);
        }
        let mut props = self.props(input).project(&projection);
        props.kinds.delete |= props.kinds.update && !self.props(input).is_chosen_by_key(&condition);
        let what = format!("Calc {} WHERE {}", meanings(&projection), meanings(&condition));
        let identity = match condition.iter().chain(&projection).any(is_volatile) {
            true => {
                self.volatile += 1;
                format!("volatile {}", self.volatile)
            }
            false => String::new(),
        };
        let calc = Op::Calc(Calc { condition, projection });
        Ok(self.add_distinct(calc, &[input], fields, props, &what, &identity))
    }

    /// These columns of `input`.
    pub(super) fn select(&mut self, input: Id, columns: &[usize]) -> Result<Id> {
        let fields = columns.iter().map(|&index| self.rels[input].schema.fields()[index].clone()).collect();
        self.calc(input, Vec::new(), columns.iter().map(|&index| column(index)).collect(), fields)
    }

    /// The same, on an input that has nothing but what is used.
    fn narrow(
        &mut self,
        input: Id,
        condition: Vec<PExpr>,
        projection: Vec<PExpr>,
    ) -> Result<(Id, Vec<PExpr>, Vec<PExpr>)> {
        let used: BTreeSet<usize> = condition.iter().chain(&projection).flat_map(columns_of).collect();
        let rel = self.rels[input].clone();
        let (new, kept) = match &rel.op {
            Op::Scan(scan) => {
                let mut kept: Vec<usize> = used.into_iter().collect();
                if kept.is_empty() {
                    // Rows must be counted all the same: by the column that is read in any case, if there is one.
                    let watermark = scan.table.watermark.as_ref().map(|(column, _)| *column);
                    let position = scan.columns.iter().position(|column| Some(*column) == watermark);
                    kept.extend(position.or((!scan.columns.is_empty()).then_some(0)));
                }
                let columns = kept.iter().map(|&index| scan.columns[index]).collect();
                (self.scan(Scan { columns, ..scan.clone() }), kept)
            }
            Op::Spec(OperatorSpec::WindowTable { window, time, partition, .. }) => {
                let below = rel.inputs[0];
                let width = self.width(below);
                let mut needed: BTreeSet<usize> = used.iter().copied().filter(|index| *index < width).collect();
                needed.extend(partition);
                if let TimeSpec::Event(time) = time {
                    needed.insert(*time);
                }
                let kept: Vec<usize> = needed.into_iter().collect();
                if kept.len() == width {
                    return Ok((input, condition, projection));
                }
                let at = |index: &usize| kept.iter().position(|kept| kept == index).unwrap_or(0);
                let time = match time {
                    TimeSpec::Event(time) => TimeSpec::Event(at(time)),
                    other => other.clone(),
                };
                let partition = partition.iter().map(at).collect();
                let below = self.select(below, &kept)?;
                let new = self.window_table(below, *window, time, partition, &rel.schema.fields()[width..])?;
                (new, kept.iter().copied().chain(width..width + 3).collect())
            }
            Op::Spec(OperatorSpec::TopN(top)) if top.with_rank && !used.contains(&(self.width(input) - 1)) => {
                let top = top.clone();
                let new = self.top(rel.inputs[0], top.partition, top.order, top.from, top.to, false);
                (new, (0..self.width(new)).collect())
            }
            Op::Spec(OperatorSpec::WindowTopN(top)) if top.with_rank && !used.contains(&(self.width(input) - 1)) => {
                let top = WindowTopNSpec { with_rank: false, ..top.clone() };
                let new = self.window_top(rel.inputs[0], top);
                (new, (0..self.width(new)).collect())
            }
            Op::Spec(OperatorSpec::Unnest {
                column: collection,
                passes_collection: true,
                is_outer,
                with_ordinality,
            }) => {
                let below = rel.inputs[0];
                let width = self.width(below);
                let mut needed: BTreeSet<usize> = used.iter().copied().filter(|index| *index < width).collect();
                // Each element with the whole collection beside it is a copy of that.
                let passes = !needed.insert(*collection);
                if needed.len() == width && passes {
                    return Ok((input, condition, projection));
                }
                let mut kept: Vec<usize> = needed.into_iter().collect();
                let at = kept.iter().position(|index| index == collection).unwrap_or(0);
                let below = self.select(below, &kept)?;
                let elements = &rel.schema.fields()[width..];
                let new = self.elements(below, (at, passes), *is_outer, *with_ordinality, elements);
                if !passes {
                    kept.remove(at);
                }
                (new, kept.into_iter().chain(width..width + elements.len()).collect())
            }
            Op::Spec(OperatorSpec::TemporalJoin(join)) if join.condition.is_none() => {
                let width = self.width(rel.inputs[0]);
                let mut sides = [BTreeSet::new(), BTreeSet::new()];
                for index in used {
                    if index < width {
                        sides[0].insert(index)
                    } else {
                        sides[1].insert(index - width)
                    };
                }
                let mut join = join.clone();
                let [left, right] = &mut sides;
                left.extend(&join.left_keys);
                right.extend(&join.right_keys);
                for (side, time) in [(&mut *left, &join.left_time), (&mut *right, &join.right_time)] {
                    if let TimeSpec::Event(time) = time {
                        side.insert(*time);
                    }
                }
                if left.len() == width && right.len() == self.width(rel.inputs[1]) {
                    return Ok((input, condition, projection));
                }
                let [left, right] = sides.map(|side| side.into_iter().collect::<Vec<_>>());
                let at = |kept: &[usize], index: &mut usize| {
                    *index = kept.iter().position(|kept| kept == index).unwrap_or(0);
                };
                join.left_keys.iter_mut().for_each(|key| at(&left, key));
                join.right_keys.iter_mut().for_each(|key| at(&right, key));
                for (kept, time) in [(&left, &mut join.left_time), (&right, &mut join.right_time)] {
                    if let TimeSpec::Event(time) = time {
                        at(kept, time);
                    }
                }
                let inputs = [self.select(rel.inputs[0], &left)?, self.select(rel.inputs[1], &right)?];
                let new = self.versions(inputs, join, "");
                (new, left.into_iter().chain(right.into_iter().map(|index| index + width)).collect())
            }
            _ => return Ok((input, condition, projection)),
        };
        let at = |index: usize| kept.iter().position(|kept| *kept == index).unwrap_or(0);
        let moved = |exprs: Vec<PExpr>| exprs.iter().map(|expr| remap(expr, &at)).collect::<Result<Vec<_>>>();
        Ok((new, moved(condition)?, moved(projection)?))
    }
}

/// Whether what is above may compute for itself what `below` does: nothing is computed twice by that, and nothing random
/// moves.
fn can_merge<'a>(below: &Calc, above: impl Iterator<Item = &'a PExpr>) -> bool {
    let mut counts = vec![0; below.projection.len()];
    above.for_each(|expr| count_columns(expr, &mut counts));
    below.projection.iter().zip(counts).all(|(expr, uses)| is_trivial(expr) || (uses <= 1 && !is_volatile(expr)))
        && !below.condition.iter().any(is_volatile)
}

/// Columns that an operator needs: those of its input, and some that are computed for it.
pub(super) struct Needed {
    pub exprs: Vec<PExpr>,
    pub fields: Vec<FieldRef>,
}

impl Needed {
    /// None yet.
    pub(super) fn nothing() -> Self {
        Self { exprs: Vec::new(), fields: Vec::new() }
    }

    /// All columns of an input.
    pub(super) fn all(fields: Vec<FieldRef>) -> Self {
        Self { exprs: (0..fields.len()).map(column).collect(), fields }
    }

    /// The position of `expr` among them.
    pub(super) fn position(&mut self, expr: PExpr, field: impl FnOnce(usize) -> FieldRef) -> usize {
        if !is_volatile(&expr)
            && let Some(found) =
                self.exprs.iter().position(|known| known.as_ref() == expr.as_ref() || same_column(known, &expr))
        {
            return found;
        }
        self.fields.push(field(self.exprs.len()));
        self.exprs.push(expr);
        self.exprs.len() - 1
    }
}

/// Columns are equal by position: DataFusion compares names as well.
fn same_column(a: &PExpr, b: &PExpr) -> bool {
    matches!((as_column(a), as_column(b)), (Some(a), Some(b)) if a == b)
}
