//! What Flink's queries have and DataFusion's do not: logical nodes of our own.

use std::cmp::Ordering;
use std::fmt;

use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use flott_sql_runtime::spec::WindowSpec;

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
    /// Whether the ordinal is there.
    pub with_ordinality: bool,
    /// The input's columns, then the element's.
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
                let mut all = vec![$(self.$expr.clone()),*];
                $(all.extend(self.$list.iter().cloned());)*
                all
            }

            fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }

            fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
                let mut new = self.clone();
                let mut exprs = exprs.into_iter();
                let mut inputs = inputs.into_iter();
                $(if let Some(expr) = exprs.next() { new.$expr = expr; })*
                $(new.$list = exprs.by_ref().collect();)*
                $(if let Some(input) = inputs.next() { new.$input = input; })*
                new.with_schema_of_inputs()
            }

            fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
                // What goes below a window or a version decides on other rows than it does above.
                self.schema.fields().iter().map(|field| field.name().clone()).collect()
            }
        }
    };
}

impl WindowTable {
    fn with_schema_of_inputs(self) -> Result<Self> {
        Ok(self)
    }
}

impl TemporalJoin {
    fn with_schema_of_inputs(self) -> Result<Self> {
        Ok(self)
    }
}

impl UnnestJoin {
    fn with_schema_of_inputs(self) -> Result<Self> {
        Ok(self)
    }
}

node!(WindowTable, "WindowTableFunction", [input], [time], [partition]);
node!(TemporalJoin, "TemporalJoin", [left, right], [on, time], []);
node!(UnnestJoin, "UnnestJoin", [input], [collection], []);
