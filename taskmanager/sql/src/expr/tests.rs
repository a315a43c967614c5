use std::sync::Mutex;

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit, TimestampMillisecondType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::ScalarFunctionExpr;
use flott_chunk::Chunk;
use flott_core::Batch;
use flott_core::ids::{JobId, SubtaskId};
use flott_operators::TaskContext;
use flott_operators::push::{Control, Output, Push, SideOutputs};

use super::*;
use crate::operator::{Emit, TableOperator};
use crate::operators::calc::Calc;
use crate::program::OperatorContext;

/// Gives the session's time zone, or fails.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    returns: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        match self.name {
            "zone" => Ok(ColumnarValue::Scalar(ScalarValue::Utf8(call.config_options.execution.time_zone.clone()))),
            name => Err(DataFusionError::Execution(format!("{name} has no value"))),
        }
    }
}

fn function(name: &'static str, returns: DataType) -> Arc<ScalarUDF> {
    let signature = Signature::variadic_any(Volatility::Volatile);
    Arc::new(ScalarUDF::new_from_impl(Function { name, returns, signature }))
}

fn schema() -> SchemaRef {
    let local = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("ts", local, true)]))
}

fn batch() -> RecordBatch {
    let times = arrow::array::TimestampMillisecondArray::from(vec![1, 2]).with_timezone("UTC");
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(times)]).unwrap()
}

/// A call, as it ships.
fn call(function: &Arc<ScalarUDF>, arguments: Vec<Arc<dyn PhysicalExpr>>, returns: DataType) -> ExprSpec {
    let field = Arc::new(Field::new("f", returns, true));
    let options = Arc::new(ConfigOptions::default());
    let expr: Arc<dyn PhysicalExpr> =
        Arc::new(ScalarFunctionExpr::new(function.name(), Arc::clone(function), arguments, field, options));
    ExprSpec::new(&expr).unwrap()
}

fn watermark_call(function: &Arc<ScalarUDF>) -> ExprSpec {
    let ts: Arc<dyn PhysicalExpr> = Arc::new(Column::new("ts", 1));
    call(function, vec![ts], schema().field(1).data_type().clone())
}

#[test]
fn functions_work_in_the_zone_of_the_session() {
    let zone = function("zone", DataType::Utf8);
    let spec = call(&zone, vec![Arc::new(Column::new("a", 0))], DataType::Utf8);
    let here = Functions::new([zone]);
    let there = here.in_zone("Europe/Berlin");
    let found = spec.compile(&schema(), &there).unwrap().evaluate(&batch()).unwrap();
    assert_eq!(found.as_string::<i32>().value(1), "Europe/Berlin");
    let found = spec.compile(&schema(), &here).unwrap().evaluate(&batch()).unwrap();
    assert!(found.is_null(0));
}

#[test]
fn without_an_operator_that_has_it_the_watermark_is_no_value() {
    let function = function("current_watermark", schema().field(1).data_type().clone());
    let spec = watermark_call(&function);
    let error = spec.compile(&schema(), &Functions::new([function])).unwrap().evaluate(&batch()).unwrap_err();
    assert!(error.to_string().contains("current_watermark has no value"), "{error}");
}

struct Last(Arc<Mutex<Option<RecordBatch>>>);

impl Push<Chunk> for Last {
    fn push(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        *self.0.lock().unwrap() = batch.rows.drain(..).next_back().map(|chunk| chunk.batch);
        Ok(())
    }

    fn control(&mut self, _: &mut Control<'_>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_projection_sees_the_watermark_of_its_operator() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let function = function("current_watermark", schema().field(1).data_type().clone());
    let projection = [ExprSpec::column("a", 0).unwrap(), watermark_call(&function)];
    let task = TaskContext {
        job: JobId([1; 16]),
        generation: 1,
        subtask: SubtaskId { vertex: 0, index: 0 },
        name: "Calc".to_owned(),
        parallelism: 1,
        max_parallelism: 16,
        config: Default::default(),
        counters: Default::default(),
        io: runtime.handle().clone(),
        waker: flott_connector_spi::Waker::noop(),
        woken: Default::default(),
        outlet: Default::default(),
        splits: Default::default(),
        state: Default::default(),
    };
    let (inputs, output, functions) = ([schema()], schema(), Functions::new([function]));
    let cx = OperatorContext { task: &task, functions: &functions, inputs: &inputs, output: &output };
    let mut calc = Calc::new(None, &projection, &cx).unwrap();
    let last = Arc::default();
    let mut out = Output::new(vec![Box::new(Last(Arc::clone(&last))) as Box<dyn Push<Chunk>>], SideOutputs::default());
    let mut buffer = Batch::default();
    let mut emit = Emit::new(&mut out, &mut buffer);
    let seen = |calc: &mut Calc, emit: &mut Emit<'_>| {
        calc.process(Chunk::inserts(batch()), emit).unwrap();
        let found = last.lock().unwrap().take().unwrap();
        let column = found.column(1).as_primitive::<TimestampMillisecondType>().clone();
        column.is_valid(1).then(|| column.value(1))
    };
    assert_eq!(seen(&mut calc, &mut emit), None);
    calc.on_watermark(1500, &mut emit).unwrap();
    assert_eq!(seen(&mut calc, &mut emit), Some(1500));
    calc.on_watermark(2500, &mut emit).unwrap();
    assert_eq!(seen(&mut calc, &mut emit), Some(2500));
}
