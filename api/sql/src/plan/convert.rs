//! From DataFusion's logical nodes to relations.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::logical_expr::{Distinct, Expr, Extension, LogicalPlan, TableScan, Values};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{GroupAggregateSpec, OperatorSpec};

use super::Planner;
use super::expr::{PExpr, column, conjuncts, meanings, physical, refused, spec};
use super::rel::{Id, Kinds, Op, Props, Scan, Time, Trend, field, fields_of};
use super::table::{Changelog, ColumnKind, TableInfo};
use crate::logical::nodes::{StateTtl, TemporalJoin, UnnestJoin, WindowTable};

impl Planner<'_> {
    /// The relation that `plan` is. Its columns are those of the plan's schema, in order.
    ///
    /// `is_ordered` says whether anybody sees the order: sorting below anything else means nothing, as in Flink.
    pub(super) fn convert(&mut self, plan: &LogicalPlan, is_ordered: bool) -> Result<Id> {
        let fields = || fields_of(plan.schema().fields());
        match plan {
            LogicalPlan::Projection(projection) => {
                if let LogicalPlan::EmptyRelation(empty) = projection.input.as_ref()
                    && empty.produce_one_row
                {
                    return self.values(std::slice::from_ref(&projection.expr), plan);
                }
                let input = self.convert(&projection.input, is_ordered)?;
                let schema = projection.input.schema();
                let exprs = projection.expr.iter().map(|expr| physical(expr, schema)).collect::<Result<_>>()?;
                self.calc(input, Vec::new(), exprs, fields())
            }
            LogicalPlan::Filter(filter) => {
                let input = self.convert(&filter.input, is_ordered)?;
                let condition = conjuncts(&physical(&filter.predicate, filter.input.schema())?);
                let all = (0..self.width(input)).map(column).collect();
                self.calc(input, condition, all, fields())
            }
            LogicalPlan::SubqueryAlias(alias) => self.convert(&alias.input, is_ordered),
            LogicalPlan::Repartition(repartition) => self.convert(&repartition.input, false),
            LogicalPlan::TableScan(scan) => self.table_scan(scan),
            LogicalPlan::Values(Values { values, .. }) => self.values(values, plan),
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => self.values(&[Vec::new()], plan),
            LogicalPlan::EmptyRelation(_) => self.values(&[], plan),
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| self.convert(input, false)).collect::<Result<Vec<_>>>()?;
                self.union(&inputs, fields())
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.convert(input, false)?;
                self.distinct(input)
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Sort(sort) => self.sort(sort, is_ordered),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Extension(Extension { node }) => {
                let node = node.as_any();
                if let Some(window) = node.downcast_ref::<WindowTable>() {
                    self.windowed(window)
                } else if let Some(join) = node.downcast_ref::<TemporalJoin>() {
                    self.temporal_join(join)
                } else if let Some(unnest) = node.downcast_ref::<UnnestJoin>() {
                    self.unnest(unnest)
                } else if let Some(hinted) = node.downcast_ref::<StateTtl>() {
                    // Whoever has state of it asks.
                    self.convert(&hinted.input, is_ordered)
                } else {
                    Err(unsupported(plan))
                }
            }
            _ => Err(unsupported(plan)),
        }
    }

    fn values(&mut self, rows: &[Vec<Expr>], plan: &LogicalPlan) -> Result<Id> {
        let none = datafusion::common::DFSchema::empty();
        let exprs = |row: &Vec<Expr>| row.iter().map(|expr| physical(expr, &none)).collect::<Result<Vec<PExpr>>>();
        let rows: Vec<Vec<PExpr>> = rows.iter().map(exprs).collect::<Result<_>>()?;
        let what = rows.iter().map(|row| meanings(row)).collect::<Vec<_>>().join(" | ");
        let fields = fields_of(plan.schema().fields());
        // An empty relation has types, but no rows to tell it from another by.
        let what = format!("Values {what} {:?}", fields.iter().map(|field| field.data_type()).collect::<Vec<_>>());
        let empty = arrow::datatypes::Schema::empty();
        let row = |row: &Vec<PExpr>| row.iter().map(|expr| spec(expr, &empty)).collect::<Result<_>>();
        let rows = rows.iter().map(row).collect::<Result<Vec<_>>>()?;
        let mut props = Props::plain(fields.len());
        if rows.len() <= 1 {
            props = props.keyed(Vec::new());
        }
        Ok(self.add(Op::Spec(OperatorSpec::Values { rows }), &[], fields, props, &what))
    }

    fn table_scan(&mut self, scan: &TableScan) -> Result<Id> {
        let table = TableInfo::of(&scan.source, &scan.table_name.to_string())?;
        let all = || (0..table.columns.len()).collect();
        let columns: Vec<usize> = scan.projection.clone().unwrap_or_else(all);
        let wanted = columns.len();
        let mut read = columns.clone();
        if self.normalizes(&table) {
            read.extend(table.primary_key.iter().filter(|key| !columns.contains(key)));
        }
        if self.settings.is_batch && table.changelog != Changelog::InsertOnly {
            return Err(Error::input(format!(
                "'{}' tells of updates and deletes, which batch mode has no use for: SET 'execution.runtime-mode' = 'streaming'",
                table.name
            )));
        }
        if table.changelog == Changelog::Upsert && table.primary_key.is_empty() {
            return Err(Error::input(format!(
                "'{}' tells of updates by key, but has no PRIMARY KEY (…) NOT ENFORCED: declare one",
                table.name
            )));
        }
        let names = datafusion::common::DFSchema::try_from(table.schema()).map_err(refused)?;
        let conditions = scan.filters.iter().map(|filter| physical(filter, &names)).collect::<Result<Vec<_>>>()?;
        for expr in &conditions {
            read.extend(super::expr::columns_of(expr).into_iter().filter(|column| !columns.contains(column)));
        }
        let mut seen = BTreeSet::new();
        read.retain(|column| seen.insert(*column));
        let table = Arc::new(table);
        // How many rows are enough says the LIMIT right above, which knows whether each of them counts.
        let mut input = self.scan(Scan { table: Arc::clone(&table), columns: read.clone(), limit: None });
        if self.normalizes(&table) {
            let at = |key: &usize| read.iter().position(|column| column == key).unwrap_or(0);
            input = self.normalize(input, table.primary_key.iter().map(at).collect());
        }
        let at = |index: usize| read.iter().position(|column| *column == index).unwrap_or(0);
        let conditions = conditions.iter().map(|expr| super::expr::remap(expr, &at)).collect::<Result<Vec<_>>>()?;
        let fields = fields_of(scan.projected_schema.fields());
        self.calc(input, conditions, (0..wanted).map(column).collect(), fields)
    }

    /// Whether what the table tells must be completed before anybody may rely on it.
    fn normalizes(&self, table: &TableInfo) -> bool {
        let repeats = self.settings.cdc_events_duplicate && !table.primary_key.is_empty();
        table.changelog == Changelog::Upsert || (table.changelog == Changelog::All && repeats)
    }

    fn normalize(&mut self, input: Id, key: Vec<usize>) -> Id {
        let what = format!("ChangelogNormalize {key:?}");
        let mut props = self.props(input).clone().changing(Kinds::ALL);
        props.keys = vec![key.clone()];
        let op = OperatorSpec::ChangelogNormalize { key, with_update_before: true, ttl_ms: self.settings.state_ttl_ms };
        self.add(Op::Spec(op), &[input], self.fields(input), props, &what)
    }

    /// Columns of a table, with its time attributes and key.
    pub(super) fn scan(&mut self, scan: Scan) -> Id {
        let table = &scan.table;
        let mut props = Props::plain(scan.columns.len());
        for (time, &index) in props.times.iter_mut().zip(&scan.columns) {
            *time = match &table.columns[index].kind {
                ColumnKind::Computed(expr) if is_proctime_call(expr) => Some(Time::Processing),
                _ if table.watermark.as_ref().is_some_and(|(column, _)| *column == index) => Some(Time::Event),
                _ => None,
            };
        }
        if table.changelog != Changelog::InsertOnly {
            props.kinds = Kinds::ALL;
        }
        let at = |key: &usize| scan.columns.iter().position(|column| column == key);
        if !table.primary_key.is_empty()
            && let Some(key) = table.primary_key.iter().map(at).collect::<Option<Vec<_>>>()
        {
            for &column in &key {
                props.trends[column] = Some(Trend::Constant);
            }
            props = props.keyed(key);
        }
        let fields = fields_of(scan.columns.iter().map(|&index| &table.columns[index].field));
        let columns: Vec<String> = scan.columns.iter().map(|&index| table.meaning(index)).collect();
        let what = format!("Scan {} [{}]", table.name, columns.join(", "));
        let identity = format!("{:?} {:?}", table.options, scan.limit);
        self.add_distinct(Op::Scan(scan), &[], fields, props, &what, &identity)
    }

    /// All rows of all inputs.
    pub(super) fn union(&mut self, inputs: &[Id], fields: Vec<FieldRef>) -> Result<Id> {
        let mut all = Vec::new();
        for &input in inputs {
            let types = |fields: &[FieldRef]| fields.iter().map(|f| f.data_type().clone()).collect::<Vec<_>>();
            if types(&self.fields(input)) != types(&fields) {
                return Err(Error::input(
                    "the queries of a UNION have different types of columns: CAST them to the same",
                ));
            }
            match &self.rels[input].op {
                Op::Union => all.extend(self.rels[input].inputs.clone()),
                _ => all.push(input),
            }
        }
        if let [only] = all[..] {
            return Ok(only);
        }
        let mut props = Props::plain(fields.len());
        for (index, time) in props.times.iter_mut().enumerate() {
            let first = self.props(all[0]).times[index];
            *time = first.filter(|_| all.iter().all(|&input| self.props(input).times[index] == first));
        }
        for &input in &all {
            props.kinds = props.kinds.or(self.props(input).kinds);
        }
        Ok(self.add(Op::Union, &all, fields, props, "Union"))
    }

    /// Equal rows once.
    pub(super) fn distinct(&mut self, input: Id) -> Result<Id> {
        let keys: Vec<usize> = (0..self.width(input)).collect();
        Ok(self.group(input, keys, Vec::new(), None))
    }

    /// `GROUP BY keys`, without windows. `ttl_ms` is for how long unused keys are kept, if a hint says so.
    pub(super) fn group(
        &mut self,
        input: Id,
        keys: Vec<usize>,
        aggregates: Vec<flott_sql_runtime::spec::AggregateSpec>,
        ttl_ms: Option<u64>,
    ) -> Id {
        let mut fields: Vec<FieldRef> = keys.iter().map(|&key| self.rels[input].schema.fields()[key].clone()).collect();
        fields.extend(aggregates.iter().map(|aggregate| field(&aggregate.text, aggregate.result.clone())));
        let below = self.props(input).kinds;
        let mut props = Props::plain(fields.len()).keyed((0..keys.len()).collect());
        props.trends[..keys.len()].fill(Some(Trend::Constant));
        if !self.settings.is_batch {
            // Without keys and without rows there is no row, as in Flink.
            props.kinds = Kinds { update: !aggregates.is_empty(), delete: !below.is_insert_only() };
            if below.is_insert_only() {
                for (trend, aggregate) in props.trends[keys.len()..].iter_mut().zip(&aggregates) {
                    *trend = super::aggregate::trend(aggregate);
                }
            }
        }
        let what = format!("GroupAggregate {keys:?} {}", super::aggregate::meanings(&aggregates));
        let op = OperatorSpec::GroupAggregate(GroupAggregateSpec {
            keys,
            aggregates,
            is_insert_only: true,
            with_update_before: true,
            ttl_ms: ttl_ms.unwrap_or(self.settings.state_ttl_ms),
            is_batch: self.settings.is_batch,
            has_partials: false,
        });
        self.add_distinct(Op::Spec(op), &[input], fields, props, &what, &hint(&[ttl_ms]))
    }
}

/// What tells an operator with a hint from one without.
pub(super) fn hint(ttls_ms: &[Option<u64>]) -> String {
    if ttls_ms.iter().all(Option::is_none) { String::new() } else { format!("{ttls_ms:?}") }
}

/// Whether a computed column is `PROCTIME()`.
pub(super) fn is_proctime_call(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_proctime_call(&alias.expr),
        Expr::ScalarFunction(call) => matches!(call.func.name(), "proctime" | "flink_proctime"),
        _ => false,
    }
}

fn unsupported(plan: &LogicalPlan) -> Error {
    Error::input(format!("'{}' is not supported in a query", plan.display()))
}
