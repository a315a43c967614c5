//! `AsyncCalc`: a `Calc` whose expressions call functions whose results come later, such as those of a service.
//!
//! Calls of several chunks are under way at a time. Chunks leave in the order in which they came, and watermarks keep their
//! place among them. What is under way at a barrier is state: it is called again after a restore, so a function may be called
//! twice for a row, and its result counts once. A chunk with updates or deletes is waited for, so that it never moves to
//! another subtask apart from the changes that follow it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{conjunction_opt, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use flott_checkpoint::Redistribution;
use flott_chunk::{Chunk, batch_of};
use flott_connector_spi::{IoHandle, Waker};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot};
use flott_operators::push::Control;

use crate::expr::{Compiled, Functions};
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::spec::ExprSpec;

/// The name of the operator state with the rows that are under way.
const PENDING: &str = "pending";

/// How many rows may be under way before one waits for the first of them.
const ROWS_MAX: usize = 8192;

/// How soon the operator asks whether something has come, should nobody wake it.
const PAUSE_MS: i64 = 20;

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
    condition: Option<Compiled>,
    projection: Vec<Compiled>,
    /// The input's columns, and behind them the results of the calls.
    extended: SchemaRef,
    output: SchemaRef,
    io: IoHandle,
    waker: Waker,
    queue: VecDeque<Entry>,
    /// How many rows are under way.
    rows: usize,
    /// Rows that were under way at a checkpoint, with their splits.
    restored: Vec<(u32, Chunk)>,
    /// Whether the watermark at hand waits in the queue.
    is_held: bool,
}

enum Entry {
    Rows { chunk: Chunk, split: u32, results: Arc<Results> },
    Watermark(Timestamp),
}

/// Where the results of a chunk come in.
#[derive(Default)]
struct Results {
    arrived: Mutex<Vec<Option<Result<ArrayRef>>>>,
    all: Condvar,
}

impl Results {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Result<ArrayRef>>>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, at: usize, result: Result<ArrayRef>) {
        self.lock()[at] = Some(result);
        self.all.notify_all();
    }

    /// All results, if they are there, or when they are.
    fn take(&self, waits: bool) -> Option<Result<Vec<ArrayRef>>> {
        let mut arrived = self.lock();
        while arrived.iter().any(Option::is_none) {
            if !waits {
                return None;
            }
            arrived = self.all.wait(arrived).unwrap_or_else(PoisonError::into_inner);
        }
        Some(arrived.drain(..).flatten().collect())
    }
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
        Ok(Self {
            filter,
            calls: calls.into_iter().map(|(_, call)| call).collect(),
            condition: later.map(|expr| Compiled::of(expr, condition.map_or("", |condition| &condition.text))),
            projection,
            extended: Arc::new(Schema::new(extended.collect::<Vec<_>>())),
            output: SchemaRef::clone(cx.output),
            io: cx.task.io.clone(),
            waker: cx.task.waker.clone(),
            queue: VecDeque::new(),
            rows: 0,
            restored: Vec::new(),
            is_held: false,
        })
    }

    /// Calls the functions for the rows of a chunk.
    fn start(&mut self, chunk: Chunk, split: u32) -> Result<()> {
        let results = Arc::new(Results::default());
        results.lock().resize_with(self.calls.len(), || None);
        for (at, call) in self.calls.iter().enumerate() {
            let arguments: Vec<ArrayRef> =
                call.arguments.iter().map(|argument| argument.evaluate(&chunk.batch)).collect::<Result<_>>()?;
            let later = call.function.call(&arguments, chunk.len()).map_err(|error| error.context(&call.name))?;
            let (results, waker, name) = (Arc::clone(&results), self.waker.clone(), call.name.clone());
            // Whatever becomes of the call, something is put in its place.
            let guard = Guard { results, waker, name, at };
            flott_env::spawn_on(&self.io, async move {
                let result = later.await;
                guard.done(result);
            });
        }
        self.rows += chunk.len();
        self.queue.push_back(Entry::Rows { chunk, split, results });
        Ok(())
    }

    fn start_restored(&mut self) -> Result<()> {
        for (split, chunk) in std::mem::take(&mut self.restored) {
            self.start(chunk, split)?;
        }
        Ok(())
    }

    /// Sends what has come, from the front on; waits until so few rows are under way.
    fn release(&mut self, rows_max: usize, out: &mut Emit<'_>) -> Result<()> {
        let own = out.split();
        while let Some(entry) = self.queue.front() {
            match entry {
                Entry::Watermark(watermark) => {
                    let watermark = *watermark;
                    self.queue.pop_front();
                    out.control(&mut Control::Watermark(watermark))?;
                }
                Entry::Rows { results, .. } => {
                    let Some(results) = results.take(self.rows > rows_max) else { break };
                    let Some(Entry::Rows { chunk, split, .. }) = self.queue.pop_front() else { break };
                    self.rows -= chunk.len();
                    out.set_split(split);
                    let sent = self.finish(chunk, results?, out);
                    out.set_split(own);
                    sent?;
                }
            }
        }
        Ok(())
    }

    fn finish(&self, chunk: Chunk, results: Vec<ArrayRef>, out: &mut Emit<'_>) -> Result<()> {
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

/// Says that a call has failed if its task ends without a result.
struct Guard {
    results: Arc<Results>,
    waker: Waker,
    name: String,
    at: usize,
}

impl Guard {
    fn done(self, result: Result<ArrayRef>) {
        self.results.put(self.at, result.map_err(|error| error.context(&self.name)));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut arrived = self.results.lock();
        // What was taken already has no place any more.
        if let Some(place) = arrived.get_mut(self.at)
            && place.is_none()
        {
            *place = Some(Err(Error::user_code(format!("{}: the call panicked, or was cancelled", self.name))));
        }
        drop(arrived);
        self.results.all.notify_all();
        self.waker.wake();
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
                return self.release(0, out);
            }
        }
        self.release(ROWS_MAX, out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.restored = cx.restored.take_state(cx.operator, PENDING)?;
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.release(ROWS_MAX, out)?;
        self.is_held = !self.queue.is_empty();
        if self.is_held {
            self.queue.push_back(Entry::Watermark(watermark));
        }
        Ok(())
    }

    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        (!std::mem::take(&mut self.is_held)).then_some(watermark)
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        self.start_restored()?;
        self.release(ROWS_MAX, out)?;
        Ok(if self.queue.is_empty() { Timestamp::MAX } else { now.saturating_add(PAUSE_MS) })
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        self.start_restored()?;
        self.release(0, out)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        let under_way = self.queue.iter().filter_map(|entry| match entry {
            Entry::Rows { chunk, split, .. } => Some((*split, chunk.clone())),
            Entry::Watermark(_) => None,
        });
        let all: Vec<(u32, Chunk)> = under_way.chain(self.restored.iter().cloned()).collect();
        snapshot.add(PENDING, Redistribution::Split, &all)
    }
}
