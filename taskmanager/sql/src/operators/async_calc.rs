//! `AsyncCalc`: a `Calc` whose expressions call functions whose results come later, such as those of a service.
//!
//! Calls of several chunks are under way at a time: see `under_way`. A chunk with updates or deletes is waited for, so that it
//! never moves to another subtask apart from the changes that follow it.

use std::pin::Pin;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{conjunction_opt, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use flott_chunk::{Chunk, batch_of};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot};

use super::under_way::{Bounds, Request, UnderWay};
use crate::expr::{Compiled, Functions};
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::spec::ExprSpec;

/// Functions bound how many calls run at a time themselves.
const BOUNDS: Bounds = Bounds { rows: 8192, requests: usize::MAX };

/// The results of a batch of calls, later.
pub type Later = Pin<Box<dyn Future<Output = Result<ArrayRef>> + Send>>;

/// A function whose results come later.
pub trait AsyncFunction: Send + Sync {
    /// Calls it for each of so many rows. It bounds how many calls run at a time, and how long each takes.
    ///
    /// # Errors
    /// The arguments cannot be read.
    fn call(&self, arguments: &[ArrayRef], rows: usize) -> Result<Later>;
}

/// A function that is called.
struct Call {
    name: String,
    function: Arc<dyn AsyncFunction>,
    arguments: Vec<Compiled>,
}

/// See the module's documentation.
pub struct AsyncCalc {
    /// Which rows it is called for at all.
    filter: Option<Compiled>,
    calls: Vec<Call>,
    outcome: Outcome,
    under_way: UnderWay<(), ArrayRef>,
}

/// What is made of rows and the results of their calls.
struct Outcome {
    condition: Option<Compiled>,
    projection: Vec<Compiled>,
    /// The input's columns, and behind them the results of the calls.
    extended: SchemaRef,
    output: SchemaRef,
}

/// Whether an expression calls a function whose results come later.
pub(crate) fn is_async(expr: &Arc<dyn PhysicalExpr>, functions: &Functions) -> bool {
    functions.has_async() && expr.exists(|expr| Ok(called(expr, functions).is_some())).unwrap_or(false)
}

fn called<'a>(
    expr: &'a Arc<dyn PhysicalExpr>,
    functions: &Functions,
) -> Option<(&'a ScalarFunctionExpr, Arc<dyn AsyncFunction>)> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    Some((call, functions.async_function(call.fun().name())?))
}

/// Expressions, with columns in place of what comes later.
struct Parts<'a> {
    functions: &'a Functions,
    input: &'a SchemaRef,
    calls: Vec<(Arc<dyn PhysicalExpr>, Call)>,
    fields: Vec<Field>,
}

impl Parts<'_> {
    fn replaced(&mut self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let mut failure = None;
        let width = self.input.fields().len();
        let replaced = expr.transform_down(|expr| {
            let Some((call, function)) = called(&expr, self.functions) else { return Ok(Transformed::no(expr)) };
            let name = call.fun().name().to_owned();
            if call.args().iter().any(|argument| is_async(argument, self.functions)) {
                failure = Some(Error::input(format!(
                    "{name} is called with the result of another asynchronous function: call that one in a subquery"
                )));
                return Ok(Transformed::no(expr));
            }
            let known = self.calls.iter().position(|(known, _)| known.eq(&expr));
            let at = known.unwrap_or_else(|| {
                let field = Field::new(format!("$async{}", self.calls.len()), call.return_type().clone(), true);
                let compiled =
                    |argument: &Arc<dyn PhysicalExpr>| Compiled::of(Arc::clone(argument), &argument.to_string());
                let arguments = call.args().iter().map(compiled).collect();
                self.fields.push(field);
                self.calls.push((Arc::clone(&expr), Call { name, function, arguments }));
                self.calls.len() - 1
            });
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(self.fields[at].name(), width + at));
            Ok(Transformed::yes(column))
        });
        match failure {
            Some(failure) => Err(failure),
            None => replaced.map(|replaced| replaced.data).map_err(|error| Error::system(error.to_string())),
        }
    }
}

impl AsyncCalc {
    /// Finds the calls in its expressions.
    ///
    /// # Errors
    /// A call has the result of another one as an argument.
    pub fn new(condition: Option<&ExprSpec>, projection: &[ExprSpec], cx: &OperatorContext<'_>) -> Result<Self> {
        let input = &cx.inputs[0];
        let mut parts = Parts { functions: cx.functions, input, calls: Vec::new(), fields: Vec::new() };
        let (mut filter, mut later) = (None, None);
        if let Some(condition) = condition {
            let whole = condition.physical(input, cx.functions)?;
            // What can be known at once is not asked for.
            let (asking, plain): (Vec<_>, Vec<_>) =
                split_conjunction(&whole).into_iter().cloned().partition(|part| is_async(part, cx.functions));
            filter = conjunction_opt(plain).map(|expr| Compiled::of(expr, &condition.text));
            later = conjunction_opt(asking).map(|expr| parts.replaced(expr)).transpose()?;
        }
        let projected = projection.iter().map(|spec| {
            let expr = parts.replaced(spec.physical(input, cx.functions)?)?;
            Ok(Compiled::of(expr, &spec.text))
        });
        let projection = projected.collect::<Result<Vec<_>>>()?;
        let Parts { calls, fields, .. } = parts;
        let extended = input.fields().iter().map(|field| field.as_ref().clone()).chain(fields);
        let outcome = Outcome {
            condition: later.map(|expr| Compiled::of(expr, condition.map_or("", |condition| &condition.text))),
            projection,
            extended: Arc::new(Schema::new(extended.collect::<Vec<_>>())),
            output: SchemaRef::clone(cx.output),
        };
        Ok(Self {
            filter,
            calls: calls.into_iter().map(|(_, call)| call).collect(),
            outcome,
            under_way: UnderWay::new(cx.task.io.clone(), cx.task.waker.clone()),
        })
    }

    /// Calls the functions for the rows of a chunk.
    fn start(&mut self, chunk: Chunk, split: u32) -> Result<()> {
        let requests = self.calls.iter().map(|call| {
            let arguments: Vec<ArrayRef> =
                call.arguments.iter().map(|argument| argument.evaluate(&chunk.batch)).collect::<Result<_>>()?;
            let later = call.function.call(&arguments, chunk.len()).map_err(|error| error.context(&call.name))?;
            Ok(Request { name: call.name.clone(), later })
        });
        let requests = requests.collect::<Result<Vec<_>>>()?;
        self.under_way.push(chunk, split, (), requests);
        Ok(())
    }

    fn start_restored(&mut self) -> Result<()> {
        for (split, chunk) in self.under_way.take_restored() {
            self.start(chunk, split)?;
        }
        Ok(())
    }

    /// Sends what has come; waits until no more than `most` is under way.
    fn release(&mut self, most: Bounds, out: &mut Emit<'_>) -> Result<()> {
        let outcome = &self.outcome;
        self.under_way.release(most, out, |chunk, (), results, out| outcome.send(chunk, results, out))
    }
}

impl Outcome {
    fn send(&self, chunk: Chunk, results: Vec<ArrayRef>, out: &mut Emit<'_>) -> Result<()> {
        let columns = [chunk.batch.columns(), &results].concat();
        let mut chunk = chunk.with_batch(batch_of(&self.extended, columns, chunk.len())?);
        if let Some(condition) = &self.condition {
            chunk = chunk.filter(&condition.mask(&chunk.batch)?)?;
            if chunk.is_empty() {
                return Ok(());
            }
        }
        let columns: Vec<ArrayRef> =
            self.projection.iter().map(|expr| expr.evaluate(&chunk.batch)).collect::<Result<_>>()?;
        out.emit(chunk.with_batch(batch_of(&self.output, columns, chunk.len())?))
    }
}

impl TableOperator for AsyncCalc {
    fn process(&mut self, mut chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        if let Some(filter) = &self.filter {
            chunk = chunk.filter(&filter.mask(&chunk.batch)?)?;
        }
        if !chunk.is_empty() {
            let is_insert_only = chunk.is_insert_only();
            self.start(chunk, out.split())?;
            if !is_insert_only {
                return self.release(Bounds::NONE, out);
            }
        }
        self.release(BOUNDS, out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.under_way.open(cx)
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.release(BOUNDS, out)?;
        self.under_way.hold(watermark);
        Ok(())
    }

    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        self.under_way.outgoing(watermark)
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        self.start_restored()?;
        self.release(BOUNDS, out)?;
        Ok(self.under_way.next_time(now))
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.release(Bounds::NONE, out)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.under_way.snapshot(snapshot)
    }
}
