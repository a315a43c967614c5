//! A query's syntax tree, with Flink's grammar as calls of our functions, before DataFusion plans it.
//!
//! Constants are put aside with Flink's types, and placeholders stand for them: DataFusion would give them its own.

mod calls;
mod constants;
mod expr;
mod select;

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, TableFactor, Value, VisitMut, VisitorMut, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowSpec, WindowType,
};

use super::errors::{mistake, mistake_at};
use super::scope::Scope;

/// What is left of a query's expressions.
pub(super) struct Rewritten<T> {
    pub tree: T,
    /// What `$1`, `$2`, … stand for.
    pub constants: Vec<ScalarValue>,
}

/// Rewrites a query or an expression.
pub(super) fn rewritten<T: VisitMut>(mut tree: T, scope: &Scope) -> Result<Rewritten<T>, DataFusionError> {
    let mut rewriter = Rewriter { scope, constants: Vec::new() };
    match tree.visit(&mut rewriter) {
        ControlFlow::Continue(()) => Ok(Rewritten { tree, constants: rewriter.constants }),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Rewriter<'a> {
    scope: &'a Scope,
    constants: Vec<ScalarValue>,
}

/// A Result as the visitor wants it.
fn flow<T>(result: Result<T, DataFusionError>) -> ControlFlow<DataFusionError, T> {
    match result {
        Ok(value) => ControlFlow::Continue(value),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        flow(select::query(query))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        flow(select::values(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        flow(self.select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        flow(select::table_function(factor))
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        flow(select::table(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if let Expr::Function(call) = expr
            && let Some(WindowType::WindowSpec(window)) = &mut call.over
        {
            return flow(frame(window));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        flow(self.expr(expr))
    }
}

impl Rewriter<'_> {
    /// A placeholder for a constant.
    fn constant(&mut self, value: ScalarValue) -> Expr {
        let known = self.constants.iter().position(|known| *known == value && known.data_type() == value.data_type());
        let at = known.unwrap_or_else(|| {
            self.constants.push(value);
            self.constants.len() - 1
        });
        Expr::Value(Value::Placeholder(format!("${}", at + 1)).into())
    }

    /// The constant that an expression is a placeholder for.
    fn constant_of(&self, expr: &Expr) -> Option<&ScalarValue> {
        match expr {
            Expr::Value(value) => match &value.value {
                Value::Placeholder(id) => super::operators::constant(&self.constants, id),
                _ => None,
            },
            Expr::Nested(inner) => self.constant_of(inner),
            _ => None,
        }
    }
}

/// The bounds of a window, as DataFusion reads them: ROWS as numbers, RANGE in milliseconds.
fn frame(window: &mut WindowSpec) -> Result<(), DataFusionError> {
    let Some(WindowFrame { units, start_bound, end_bound }) = &mut window.window_frame else { return Ok(()) };
    for bound in std::iter::once(start_bound).chain(end_bound) {
        let (WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset))) = bound else {
            continue;
        };
        let number = match (offset.as_ref(), &units) {
            (Expr::Interval(interval), WindowFrameUnits::Range) => match constants::interval(interval)? {
                ScalarValue::DurationMillisecond(Some(millis)) => millis.to_string(),
                _ => return Err(mistake("a RANGE of months has no fixed length: say it in days")),
            },
            (Expr::Value(value), WindowFrameUnits::Rows) => match &value.value {
                Value::Number(digits, _) => digits.clone(),
                _ => return Err(mistake_at("ROWS are counted by a number", value.span.start)),
            },
            (_, WindowFrameUnits::Rows) => return Err(mistake("ROWS are counted by a number")),
            _ => return Err(mistake("a RANGE is an INTERVAL, such as INTERVAL '1' HOUR")),
        };
        // An interval without a unit: only these are like that, and they are left as they are.
        **offset = Expr::Interval(datafusion::sql::sqlparser::ast::Interval {
            value: Box::new(Expr::Value(Value::SingleQuotedString(number).into())),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        });
    }
    Ok(())
}

/// A name of one part.
fn plain(name: &str) -> ObjectName {
    ObjectName::from(vec![Ident::new(name)])
}
