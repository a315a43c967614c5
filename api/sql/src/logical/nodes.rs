//! What Flink's queries have and DataFusion's do not: logical nodes of our own.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::{DFSchema, DFSchemaRef, Result, TableReference};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use flott_sql_runtime::spec::WindowSpec;

use crate::plan::TableInfo;

/// `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))`: each row with `window_start`, `window_end` and `window_time` behind its
/// columns, once for each of its windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowTable {
    /// The table.
    pub input: LogicalPlan,
    /// The windows. Lengths are in milliseconds.
    pub window: WindowSpec,
    /// The column that DESCRIPTOR names.
    pub time: Expr,
    /// `PARTITION BY` of session windows.
    pub partition: Vec<Expr>,
    /// The input's columns and the three of the window.
    pub schema: DFSchemaRef,
}

/// `JOIN t FOR SYSTEM_TIME AS OF time`: each left row with the version of `right` that was valid then. A temporal join if
/// the right side is a versioned table, a lookup join if `time` is processing time and it is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporalJoin {
    /// The rows.
    pub left: LogicalPlan,
    /// The versions.
    pub right: LogicalPlan,
    /// The condition, over the schema.
    pub on: Expr,
    /// The left row's time, over the left.
    pub time: Expr,
    /// Whether left rows without a version stay.
    pub is_left_outer: bool,
    /// The left columns, then the right ones.
    pub schema: DFSchemaRef,
}

/// `CROSS JOIN UNNEST(c) AS t (x)` or `LEFT JOIN UNNEST(c) AS t (x) ON TRUE`, where `c` is an expression over the left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnnestJoin {
    /// The rows.
    pub input: LogicalPlan,
    /// The collection, over the input.
    pub collection: Expr,
    /// Whether a row without elements stays.
    pub is_outer: bool,
    /// Whether the ordinal is there: INT, the last column.
    pub with_ordinality: bool,
    /// The input's columns, then the element's: the fields of a row, the key and the value of a map, else one.
    pub schema: DFSchemaRef,
}

/// A table of which a join or an aggregation right above keeps unused rows for so long: the hint `STATE_TTL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateTtl {
    /// The table.
    pub input: LogicalPlan,
    /// For how long; 0 for ever.
    pub ttl_ms: u64,
    /// The table's columns.
    pub schema: DFSchemaRef,
}

impl StateTtl {
    /// That of a plan, if it does nothing else but choose rows and columns of a table with that hint.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<u64> {
        match plan {
            LogicalPlan::Extension(Extension { node }) => Some(node.as_any().downcast_ref::<Self>()?.ttl_ms),
            LogicalPlan::SubqueryAlias(alias) => Self::of(&alias.input),
            LogicalPlan::Projection(projection) => Self::of(&projection.input),
            LogicalPlan::Filter(filter) => Self::of(&filter.input),
            _ => None,
        }
    }
}

/// What a table factor is while a query is planned, until the row is known that it depends on: a node of ours then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    /// The collection, over outer columns.
    pub collection: Expr,
    /// Whether each element has its number.
    pub with_ordinality: bool,
    /// The element's columns.
    pub schema: DFSchemaRef,
}

/// The same for the version of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The table.
    pub input: LogicalPlan,
    /// The time, over outer columns.
    pub time: Expr,
    /// The table's columns.
    pub schema: DFSchemaRef,
}

/// The query of `(a, b) IN (SELECT x, y …)` while it is planned: one column in place of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tuples {
    /// The query.
    pub input: LogicalPlan,
    /// The column that stands for its columns.
    pub schema: DFSchemaRef,
}

macro_rules! node {
    ($type:ty, $name:literal, [$($input:ident),*], [$($expr:ident),*], [$($list:ident),*]) => {
        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                // Nodes that differ elsewhere are told apart by `eq`.
                $(self.$expr.hash(state);)*
                $(self.$input.hash(state);)*
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                (self == other).then_some(Ordering::Equal)
            }
        }

        impl UserDefinedLogicalNodeCore for $type {
            fn name(&self) -> &str {
                $name
            }

            fn inputs(&self) -> Vec<&LogicalPlan> {
                vec![$(&self.$input),*]
            }

            fn schema(&self) -> &DFSchemaRef {
                &self.schema
            }

            fn expressions(&self) -> Vec<Expr> {
                #[allow(unused_mut, reason = "a node without lists adds nothing")]
                let mut all: Vec<Expr> = vec![$(self.$expr.clone()),*];
                $(all.extend(self.$list.iter().cloned());)*
                all
            }

            fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)?;
                self.details(f)
            }

            fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
                let mut new = self.clone();
                #[allow(unused_mut, unused_variables, reason = "a node without expressions takes none")]
                let mut exprs = exprs.into_iter();
                #[allow(unused_mut, unused_variables, reason = "a node without inputs takes none")]
                let mut inputs = inputs.into_iter();
                $(if let Some(expr) = exprs.next() { new.$expr = expr; })*
                $(new.$list = exprs.by_ref().collect();)*
                $(if let Some(input) = inputs.next() { new.$input = input; })*
                new.schema = new.schema_after(self)?;
                Ok(new)
            }

            fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
                self.columns_that_hold_filters()
            }

            fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
                // Each input's columns come through, one input after the other; what the node adds is behind them.
                let mut first = 0;
                let mut needed = Vec::new();
                for (input, width) in self.inputs().iter().map(|input| input.schema().fields().len()).enumerate() {
                    let of_input = output_columns.iter().filter(|column| (first..first + width).contains(*column));
                    let mut of_input: Vec<usize> = of_input.map(|column| column - first).collect();
                    of_input.extend(self.needed_besides(input));
                    of_input.sort_unstable();
                    of_input.dedup();
                    needed.push(of_input);
                    first += width;
                }
                Some(needed)
            }
        }
    };
}

fn names(schema: &DFSchema) -> impl Iterator<Item = String> + '_ {
    schema.fields().iter().map(|field| field.name().clone())
}

/// The columns that a node adds to its input's.
fn added(schema: &DFSchema, input: &LogicalPlan) -> Vec<(Option<TableReference>, Arc<Field>)> {
    let columns = schema.iter().skip(input.schema().fields().len());
    columns.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect()
}

/// The columns of an input and some more.
pub(super) fn extended(input: &DFSchema, added: Vec<(Option<TableReference>, Arc<Field>)>) -> Result<DFSchemaRef> {
    let columns = input.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    let schema = DFSchema::new_with_metadata(columns.chain(added).collect(), input.metadata().clone())?;
    Ok(Arc::new(schema))
}

/// The columns of both sides of a join.
pub(super) fn joined(left: &DFSchema, right: &DFSchema, is_left_outer: bool) -> Result<DFSchemaRef> {
    let of_right = right.iter().map(|(qualifier, field)| {
        let field = match is_left_outer {
            true => Arc::new(field.as_ref().clone().with_nullable(true)),
            false => Arc::clone(field),
        };
        (qualifier.cloned(), field)
    });
    extended(left, of_right.collect())
}

/// The table that a plan reads, if it does nothing else but choose rows and columns: these have their names.
fn table_of(plan: &LogicalPlan) -> Option<&TableInfo> {
    match plan {
        LogicalPlan::TableScan(scan) => scan.source.downcast_ref(),
        LogicalPlan::SubqueryAlias(alias) => table_of(&alias.input),
        LogicalPlan::Projection(projection) if projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) => {
            table_of(&projection.input)
        }
        LogicalPlan::Filter(filter) => table_of(&filter.input),
        _ => None,
    }
}

impl WindowTable {
    fn needed_besides(&self, _input: usize) -> Vec<usize> {
        Vec::new()
    }

    fn schema_after(&self, before: &Self) -> Result<DFSchemaRef> {
        extended(self.input.schema(), added(&before.schema, &before.input))
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        // A row decides on the bounds of sessions even if it is not wanted itself. Other windows are each row's own.
        let is_session = matches!(self.window, WindowSpec::Session { .. });
        let first = if is_session { 0 } else { self.input.schema().fields().len() };
        names(&self.schema).skip(first).collect()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": {:?} ON {}", self.window, self.time)?;
        match self.partition.is_empty() {
            true => Ok(()),
            false => {
                write!(f, " PARTITION BY {}", self.partition.iter().map(Expr::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl TemporalJoin {
    /// Versions have a time and a key, which nobody names.
    fn needed_besides(&self, input: usize) -> Vec<usize> {
        if input != 1 {
            return Vec::new();
        }
        let fields = self.right.schema().fields();
        let place = |name: &String| fields.iter().position(|field| field.name() == name);
        let of_table = table_of(&self.right).and_then(|table| {
            let time = table.watermark.as_ref().map(|(time, _)| *time);
            let columns = table.primary_key.iter().copied().chain(time);
            columns.map(|column| place(table.columns[column].field.name())).collect::<Option<Vec<_>>>()
        });
        of_table.unwrap_or_else(|| (0..fields.len()).collect())
    }

    fn schema_after(&self, _before: &Self) -> Result<DFSchemaRef> {
        joined(self.left.schema(), self.right.schema(), self.is_left_outer)
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        // Filters would go to both sides. A version that is not wanted still ends the one before it.
        names(&self.schema).collect()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_left_outer { "Left" } else { "Inner" };
        write!(f, ": {kind} ON {} AS OF {}", self.on, self.time)
    }
}

impl StateTtl {
    fn needed_besides(&self, _input: usize) -> Vec<usize> {
        Vec::new()
    }

    #[expect(clippy::unnecessary_wraps, reason = "others may fail")]
    fn schema_after(&self, _before: &Self) -> Result<DFSchemaRef> {
        Ok(Arc::clone(self.input.schema()))
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": {} ms", self.ttl_ms)
    }
}

impl Elements {
    fn needed_besides(&self, _input: usize) -> Vec<usize> {
        Vec::new()
    }

    #[expect(clippy::unnecessary_wraps, reason = "others may fail")]
    fn schema_after(&self, _before: &Self) -> Result<DFSchemaRef> {
        Ok(Arc::clone(&self.schema))
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        names(&self.schema).collect()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": {}", self.collection)
    }
}

impl Version {
    fn needed_besides(&self, _input: usize) -> Vec<usize> {
        Vec::new()
    }

    #[expect(clippy::unnecessary_wraps, reason = "others may fail")]
    fn schema_after(&self, _before: &Self) -> Result<DFSchemaRef> {
        Ok(Arc::clone(self.input.schema()))
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        names(&self.schema).collect()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": AS OF {}", self.time)
    }
}

impl Tuples {
    fn needed_besides(&self, _input: usize) -> Vec<usize> {
        Vec::new()
    }

    #[expect(clippy::unnecessary_wraps, reason = "others may fail")]
    fn schema_after(&self, _before: &Self) -> Result<DFSchemaRef> {
        Ok(Arc::clone(&self.schema))
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        names(&self.schema).collect()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": {}", names(self.input.schema()).collect::<Vec<_>>().join(", "))
    }
}

impl UnnestJoin {
    fn needed_besides(&self, _input: usize) -> Vec<usize> {
        Vec::new()
    }

    fn schema_after(&self, before: &Self) -> Result<DFSchemaRef> {
        extended(self.input.schema(), added(&before.schema, &before.input))
    }

    fn columns_that_hold_filters(&self) -> HashSet<String> {
        names(&self.schema).skip(self.input.schema().fields().len()).collect()
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_outer { "Left" } else { "Inner" };
        let ordinality = if self.with_ordinality { " WITH ORDINALITY" } else { "" };
        write!(f, ": {kind} {}{ordinality}", self.collection)
    }
}

node!(WindowTable, "WindowTableFunction", [input], [time], [partition]);
node!(TemporalJoin, "TemporalJoin", [left, right], [on, time], []);
node!(UnnestJoin, "UnnestJoin", [input], [collection], []);
node!(Elements, "Unnest", [], [collection], []);
node!(Version, "Version", [input], [time], []);
node!(Tuples, "Tuples", [input], [], []);
node!(StateTtl, "StateTtl", [input], [], []);
