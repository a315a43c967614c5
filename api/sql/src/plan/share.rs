//! One aggregation for equal windows: queries that aggregate the same rows by the same windows and keys share an operator, whatever
//! each of them aggregates.
//!
//! That has the aggregates of all, each once, and every query takes its own columns of what comes out. A key has a result in a
//! window exactly if it has rows there, which is the same for all: so neither results nor changes are others. What is above
//! keeps its digest, and with that its state.
//!
//! State is one record for each key and window, of these aggregates and no others. Hence the operator's digest:
//! - Where a query has all the aggregates, the operator is that query's, as if it were alone. The others come and go.
//! - Else it is made of the rows, windows, keys and aggregates, in an order that is not that of the queries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use flott_core::hash::stable_hash;
use flott_core::{Error, Result};
use flott_sql_runtime::expr::Asynchronous;
use flott_sql_runtime::spec::{AggregateSpec, OperatorSpec, TimeSpec, WindowAggregateSpec, WindowColumn};

use super::Planner;
use super::aggregate::relocated;
use super::calc::Needed;
use super::expr::{PExpr, column, is_volatile, meaning_by, remap};
use super::rel::{Calc, Id, Op, Rel, Scan, Windows};
use super::window::of_zone;

/// Where rows come from.
enum Base {
    /// A table, of which each query reads other columns: they are by declared position.
    Table(Scan),
    /// A relation, with its digest.
    Rel(Id, u64),
}

impl Base {
    /// Equal for the same.
    fn identity(&self) -> String {
        match self {
            Self::Table(scan) => format!("{} {:?}", scan.table.name, scan.table.options),
            Self::Rel(id, _) => id.to_string(),
        }
    }

    /// Says what it computes.
    fn digest(&self) -> u64 {
        match self {
            Self::Table(scan) => stable_hash(&("Table", &scan.table.name)),
            Self::Rel(_, digest) => *digest,
        }
    }

    /// What an expression over its columns means.
    fn meaning(&self, expr: &PExpr) -> String {
        meaning_by(expr, &|index| match self {
            Self::Table(scan) => format!("{:?}", scan.table.meaning(index)),
            Self::Rel(..) => format!("${index}"),
        })
    }
}

/// A window aggregate, as it is over what is below the calculation in front of it.
struct Member {
    id: Id,
    digest: u64,
    base: Base,
    condition: Vec<PExpr>,
    /// The columns of its input, over the base.
    columns: Vec<PExpr>,
    fields: Vec<FieldRef>,
    spec: WindowAggregateSpec,
    windows: Windows,
    output: Vec<FieldRef>,
    /// What rows, windows and keys mean.
    what: String,
    /// What each aggregate means.
    calls: Vec<String>,
}

/// The operator that a family becomes, but for columns of windows.
struct Common {
    digest: u64,
    columns: Vec<PExpr>,
    fields: Vec<FieldRef>,
    spec: WindowAggregateSpec,
    /// How its first columns are called.
    output: Vec<FieldRef>,
    calls: Vec<String>,
}

/// Where a relation is in the new arena.
#[derive(Clone)]
struct Seat {
    id: Id,
    /// Which columns there are its own, unless all of them are, in order.
    columns: Option<Vec<usize>>,
    /// A relation of these alone, once somebody needs it.
    alone: Option<Id>,
}

impl Planner<'_> {
    /// Shares what can be shared below `sinks`. Returns where these are then.
    pub(super) fn share_windows(&mut self, sinks: &[Id]) -> Result<Vec<Id>> {
        let mut sinks = sinks.to_vec();
        if !self.settings.shares_windows {
            return Ok(sinks);
        }
        loop {
            let families = self.families(&sinks)?;
            if families.is_empty() {
                return Ok(sinks);
            }
            // Windows of windows may have the same rows now.
            sinks = self.rebuild(&sinks, &families)?;
        }
    }

    /// The window aggregates that can be one, by the operator that they would be.
    fn families(&self, sinks: &[Id]) -> Result<Vec<Vec<Member>>> {
        let is_used = self.used(sinks);
        let mut families: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        for id in (0..self.rels.len()).filter(|&id| is_used[id]) {
            if let Some(member) = self.member(id)? {
                families.entry(format!("{} {}", member.base.identity(), member.what)).or_default().push(member);
            }
        }
        Ok(families.into_values().filter(|family| family.len() > 1).collect())
    }

    /// Which relations there are of `sinks`.
    fn used(&self, sinks: &[Id]) -> Vec<bool> {
        let mut is_used = vec![false; self.rels.len()];
        sinks.iter().for_each(|&sink| is_used[sink] = true);
        for id in (0..self.rels.len()).rev() {
            if is_used[id] {
                self.rels[id].inputs.iter().for_each(|&input| is_used[input] = true);
            }
        }
        is_used
    }

    fn member(&self, id: Id) -> Result<Option<Member>> {
        let rel = &self.rels[id];
        let (Op::Spec(OperatorSpec::WindowAggregate(spec)), Some(windows)) = (&rel.op, &rel.props.windows) else {
            return Ok(None);
        };
        let input = rel.inputs[0];
        let (below, condition, columns) = match &self.rels[input].op {
            Op::Calc(calc) => (self.rels[input].inputs[0], calc.condition.clone(), calc.projection.clone()),
            _ => (input, Vec::new(), (0..self.width(input)).map(column).collect()),
        };
        // What is random is so for each query, and none waits for what only another asks for.
        let is_own = |expr: &PExpr| is_volatile(expr) || Asynchronous::is_called_by(expr);
        if condition.iter().chain(&columns).any(is_own) {
            return Ok(None);
        }
        let (base, places) = match &self.rels[below].op {
            Op::Scan(scan) if scan.limit.is_none() => (Base::Table(scan.clone()), scan.columns.clone()),
            _ => (Base::Rel(below, self.rels[below].digest), (0..self.width(below)).collect()),
        };
        let (condition, columns) = (moved(&condition, &places)?, moved(&columns, &places)?);
        let meaning = |index: usize| base.meaning(&columns[index]);
        let meanings = |all: &[usize]| all.iter().map(|&index| meaning(index)).collect::<Vec<_>>().join(", ");
        let time = match &spec.time {
            TimeSpec::Event(time) => meaning(*time),
            TimeSpec::Processing => "PROCTIME".to_owned(),
            TimeSpec::Window { start, end } => format!("{} TO {}", meaning(*start), meaning(*end)),
        };
        let conditions = condition.iter().map(|expr| base.meaning(expr)).collect::<Vec<_>>().join(" AND ");
        let (keys, zone) = (meanings(&spec.keys), of_zone(spec.zone.as_ref()));
        let what = format!("{:?} {time} GROUP BY {keys} WHERE {conditions}{zone}", spec.window);
        let call = |aggregate: &AggregateSpec| {
            let order = aggregate.order.iter();
            let order =
                order.map(|sort| format!("{} {} {}", meaning(sort.column), sort.is_descending, sort.nulls_first));
            format!(
                "{:?}({}) {:?} {} {:?} {:?}",
                aggregate.function,
                meanings(&aggregate.arguments),
                aggregate.filter.map(meaning),
                aggregate.is_distinct,
                order.collect::<Vec<_>>(),
                aggregate.result
            )
        };
        let calls = spec.aggregates.iter().map(call).collect();
        Ok(Some(Member {
            id,
            digest: rel.digest,
            base,
            condition,
            columns,
            fields: self.fields(input),
            spec: spec.clone(),
            windows: windows.clone(),
            output: self.fields(id),
            what,
            calls,
        }))
    }

    /// Puts all that `sinks` are made of into a new arena, in which each family is one operator.
    fn rebuild(&mut self, sinks: &[Id], families: &[Vec<Member>]) -> Result<Vec<Id>> {
        let is_used = self.used(sinks);
        let old = std::mem::take(&mut self.rels);
        self.known.clear();
        let mut seats: Vec<Option<Seat>> = vec![None; old.len()];
        for id in (0..old.len()).filter(|&id| is_used[id]) {
            if seats[id].is_some() {
                continue;
            }
            match families.iter().find(|family| family.iter().any(|member| member.id == id)) {
                // What all of them read is there when the first is made.
                Some(family) => {
                    for (member, seat) in family.iter().zip(self.shared(family, &seats)?) {
                        seats[member.id] = Some(seat);
                    }
                }
                None => {
                    let id_now = self.taken_over(id, &old, &mut seats)?;
                    seats[id] = Some(Seat { id: id_now, columns: None, alone: None });
                }
            }
        }
        sinks.iter().map(|&sink| seat_of(&seats, sink).map(|seat| seat.id)).collect()
    }

    /// A relation of the old arena, on what its inputs are now.
    fn taken_over(&mut self, id: Id, old: &[Rel], seats: &mut [Option<Seat>]) -> Result<Id> {
        let mut rel = old[id].clone();
        match &mut rel.op {
            // Only a calculation can take its columns from anywhere.
            Op::Calc(calc) => {
                let seat = seat_of(seats, rel.inputs[0])?;
                if let Some(columns) = &seat.columns {
                    calc.condition = moved(&calc.condition, columns)?;
                    calc.projection = moved(&calc.projection, columns)?;
                }
                rel.inputs[0] = seat.id;
            }
            _ => {
                for input in &mut rel.inputs {
                    *input = self.alone(*input, old, seats)?;
                }
            }
        }
        self.rels.push(rel);
        Ok(self.rels.len() - 1)
    }

    /// A relation of the old arena with no other columns than its own.
    fn alone(&mut self, id: Id, old: &[Rel], seats: &mut [Option<Seat>]) -> Result<Id> {
        let seat = seat_of(seats, id)?.clone();
        let Some(columns) = &seat.columns else { return Ok(seat.id) };
        if let Some(alone) = seat.alone {
            return Ok(alone);
        }
        let projection = columns.iter().map(|&index| column(index)).collect();
        let calc = Op::Calc(Calc { condition: Vec::new(), projection });
        self.rels.push(Rel { op: calc, inputs: vec![seat.id], ..old[id].clone() });
        let alone = Some(self.rels.len() - 1);
        seats[id] = Some(Seat { alone, ..seat });
        Ok(self.rels.len() - 1)
    }

    /// Makes one operator of a family. Returns the seat of each.
    fn shared(&mut self, family: &[Member], seats: &[Option<Seat>]) -> Result<Vec<Seat>> {
        let Common { digest, columns, fields, mut spec, output, calls } = common(family);
        let is_wanted = |column: &WindowColumn| family.iter().any(|member| member.spec.window_columns.contains(column));
        for column in [WindowColumn::Start, WindowColumn::End, WindowColumn::Time].iter().filter(|&c| is_wanted(c)) {
            if !spec.window_columns.contains(column) {
                spec.window_columns.push(*column);
            }
        }
        let (below, places) = self.base(family, seats)?;
        let (condition, columns) = (moved(&family[0].condition, &places)?, moved(&columns, &places)?);
        let input = self.calc(below, condition, columns, fields)?;
        let id = self.window_aggregate(input, spec.clone(), &family[0].windows, &types(family));
        self.rels[id].digest = digest;
        let own = self.fields(id);
        let names: Vec<FieldRef> = output.iter().chain(own.iter().skip(output.len())).cloned().collect();
        self.rename(id, &names);
        let (keys, first) = (spec.keys.len(), spec.keys.len() + calls.len());
        let seat = |member: &Member| {
            let of_calls = member.calls.iter().map(|call| keys + place_of(&calls, call));
            let window_columns = member.spec.window_columns.iter();
            let of_windows = window_columns.map(|column| first + place_of(&spec.window_columns, column));
            let columns: Vec<usize> = (0..keys).chain(of_calls).chain(of_windows).collect();
            let is_all = columns.iter().copied().eq(0..own.len());
            Seat { id, columns: (!is_all).then_some(columns), alone: None }
        };
        Ok(family.iter().map(seat).collect())
    }

    /// What a family reads in the new arena, and where each column of the base is in it.
    fn base(&mut self, family: &[Member], seats: &[Option<Seat>]) -> Result<(Id, Vec<usize>)> {
        match &family[0].base {
            Base::Table(scan) => {
                let read = family.iter().filter_map(|member| match &member.base {
                    Base::Table(scan) => Some(&scan.columns),
                    Base::Rel(..) => None,
                });
                let columns: BTreeSet<usize> = read.flatten().copied().collect();
                let mut places = vec![0; scan.table.columns.len()];
                columns.iter().enumerate().for_each(|(place, column)| places[*column] = place);
                let scan = Scan { columns: columns.into_iter().collect(), ..scan.clone() };
                Ok((self.scan(scan), places))
            }
            Base::Rel(id, _) => {
                let seat = seat_of(seats, *id)?;
                let all = || (0..self.width(seat.id)).collect();
                Ok((seat.id, seat.columns.clone().unwrap_or_else(all)))
            }
        }
    }
}

/// What has the aggregates of a whole family: one of it, or a new operator.
fn common(family: &[Member]) -> Common {
    let calls = || family.iter().flat_map(|member| &member.calls);
    let has_all = |member: &&Member| calls().all(|call| member.calls.contains(call));
    // Of several, one that the order of queries does not decide on.
    let Some(leader) = family.iter().filter(has_all).min_by_key(|member| member.digest) else {
        return united(family);
    };
    Common {
        digest: leader.digest,
        columns: leader.columns.clone(),
        fields: leader.fields.clone(),
        spec: leader.spec.clone(),
        output: leader.output.clone(),
        calls: leader.calls.clone(),
    }
}

fn united(family: &[Member]) -> Common {
    let first = &family[0];
    let mut calls: BTreeMap<&String, (&Member, &AggregateSpec)> = BTreeMap::new();
    for member in family {
        for (call, aggregate) in member.calls.iter().zip(&member.spec.aggregates) {
            calls.entry(call).or_insert((member, aggregate));
        }
    }
    let mut needed = Needed::nothing();
    let mut place = |member: &Member, index: usize| {
        needed.position(Arc::clone(&member.columns[index]), |_| Arc::clone(&member.fields[index]))
    };
    let keys = first.spec.keys.iter().map(|&key| place(first, key)).collect();
    let aggregates = calls.values().map(|&(of, aggregate)| relocated(aggregate, |index| place(of, index))).collect();
    let time = match first.spec.time {
        TimeSpec::Event(time) => TimeSpec::Event(place(first, time)),
        TimeSpec::Processing => TimeSpec::Processing,
        TimeSpec::Window { start, end } => TimeSpec::Window { start: place(first, start), end: place(first, end) },
    };
    let calls: Vec<String> = calls.into_keys().cloned().collect();
    Common {
        digest: stable_hash(&("WindowAggregates", first.base.digest(), &first.what, &calls)),
        columns: needed.exprs,
        fields: needed.fields,
        spec: WindowAggregateSpec { keys, aggregates, time, window_columns: Vec::new(), ..first.spec.clone() },
        output: Vec::new(),
        calls,
    }
}

/// The types of the columns of windows that somebody of a family wants.
fn types(family: &[Member]) -> BTreeMap<WindowColumn, DataType> {
    let of_member = |member: &Member| {
        let columns = member.spec.window_columns.iter().rev().zip(member.output.iter().rev());
        columns.map(|(column, field)| (*column, field.data_type().clone())).collect::<Vec<_>>()
    };
    family.iter().flat_map(of_member).collect()
}

fn moved(exprs: &[PExpr], places: &[usize]) -> Result<Vec<PExpr>> {
    exprs.iter().map(|expr| remap(expr, &|index| places[index])).collect()
}

fn place_of<T: PartialEq>(all: &[T], one: &T) -> usize {
    all.iter().position(|known| known == one).unwrap_or(0)
}

fn seat_of(seats: &[Option<Seat>], id: Id) -> Result<&Seat> {
    seats[id].as_ref().ok_or_else(|| Error::system("a relation is read before it is made"))
}
