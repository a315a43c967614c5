//! Expressions that ship: DataFusion's physical expressions in their binary form.
//!
//! They are compiled once, when the operator is made, against the schema of its input. Functions are found by name in
//! [`Functions`], which every process of a job has alike.

mod asynchronous;
mod parts;
#[cfg(test)]
mod tests;
mod watermark;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::Schema;
use datafusion::common::DataFusionError;
use datafusion::common::cast::as_boolean_array;
use datafusion::execution::TaskContext as DfContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;
use datafusion_proto::physical_plan::from_proto::parse_physical_expr;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr;
use datafusion_proto::protobuf::PhysicalExprNode;
use flott_core::{Error, Result};
use prost::Message;
use serde::{Deserialize, Serialize};

pub use asynchronous::Asynchronous;
pub use parts::Parts;
pub use watermark::CurrentWatermark;

use crate::aggregates::user::{UserAggregate, UserAggregates};
use crate::operators::async_calc::{AsyncFunction, is_async};

/// The functions that expressions and operators may call.
#[derive(Clone)]
pub struct Functions {
    context: Arc<DfContext>,
    aggregates: Arc<UserAggregates>,
    asyncs: Arc<HashMap<String, Arc<dyn AsyncFunction>>>,
}

impl Functions {
    /// These functions, and no others.
    pub fn new(functions: impl IntoIterator<Item = Arc<ScalarUDF>>) -> Self {
        let scalars = functions.into_iter().map(|function| (function.name().to_owned(), function)).collect();
        let context = context_of(scalars, DfContext::default().session_config().clone());
        Self { context, aggregates: Arc::default(), asyncs: Arc::default() }
    }

    /// The same functions, and another scalar one.
    #[must_use]
    pub fn with_scalar(&self, function: Arc<ScalarUDF>) -> Self {
        let mut scalars = self.context.scalar_functions().clone();
        scalars.insert(function.name().to_owned(), function);
        Self { context: context_of(scalars, self.context.session_config().clone()), ..self.clone() }
    }

    /// The same functions, and another aggregate function of the program.
    #[must_use]
    pub fn with_aggregate(&self, name: &str, function: Arc<dyn UserAggregate>) -> Self {
        let mut aggregates = self.aggregates.as_ref().clone();
        aggregates.insert(name.to_owned(), function);
        Self { aggregates: Arc::new(aggregates), ..self.clone() }
    }

    /// An aggregate function of the program.
    pub fn aggregate(&self, name: &str) -> Option<Arc<dyn UserAggregate>> {
        self.aggregates.get(name).cloned()
    }

    /// The same functions, and another one whose results come later. `planned` is what expressions call.
    #[must_use]
    pub fn with_async(&self, planned: Arc<ScalarUDF>, function: Arc<dyn AsyncFunction>) -> Self {
        let mut asyncs = self.asyncs.as_ref().clone();
        asyncs.insert(planned.name().to_owned(), function);
        Self { asyncs: Arc::new(asyncs), ..self.with_scalar(planned) }
    }

    /// Whether results of any come later.
    pub(crate) fn has_async(&self) -> bool {
        !self.asyncs.is_empty()
    }

    /// A function whose results come later.
    pub(crate) fn async_function(&self, name: &str) -> Option<Arc<dyn AsyncFunction>> {
        self.asyncs.get(name).cloned()
    }

    /// The same functions in a time zone, the session's: `table.local-time-zone`. The functions say if there is no such zone.
    pub fn in_zone(&self, zone: &str) -> Self {
        let mut config = self.context.session_config().clone();
        config.options_mut().execution.time_zone = Some(zone.to_owned());
        Self { context: context_of(self.context.scalar_functions().clone(), config), ..self.clone() }
    }
}

fn context_of(scalars: HashMap<String, Arc<ScalarUDF>>, config: SessionConfig) -> Arc<DfContext> {
    let runtime = DfContext::default().runtime_env();
    Arc::new(DfContext::new(
        None,
        String::new(),
        config,
        scalars,
        Default::default(),
        Default::default(),
        Default::default(),
        runtime,
    ))
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Functions")
    }
}

/// An expression over the columns of one schema, by their positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExprSpec {
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// How it reads, for EXPLAIN and messages.
    pub text: String,
}

impl ExprSpec {
    /// The form of `expr` that ships.
    pub fn new(expr: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let node = serialize_physical_expr(expr, &DefaultPhysicalExtensionCodec {})
            .map_err(|error| Error::system(format!("'{expr}' cannot be shipped: {error}")))?;
        Ok(Self { bytes: node.encode_to_vec(), text: expr.to_string() })
    }

    /// A column, as it is.
    pub fn column(name: &str, index: usize) -> Result<Self> {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, index));
        Self::new(&column)
    }

    /// Makes it ready for batches of `schema`. Where it asks for the watermark, evaluating it fails.
    pub fn compile(&self, schema: &Schema, functions: &Functions) -> Result<Compiled> {
        let expr = self.read(schema, functions)?;
        if is_async(&expr, functions) {
            return Err(Error::input(format!(
                "'{}' calls an asynchronous function, whose results come later: call it in SELECT or WHERE of a query, and use its result here",
                self.text
            )));
        }
        Ok(Compiled::of(expr, &self.text))
    }

    /// The expression itself, whatever it calls.
    pub(crate) fn physical(&self, schema: &Schema, functions: &Functions) -> Result<Arc<dyn PhysicalExpr>> {
        self.read(schema, functions)
    }

    /// The same for an operator that keeps `watermark` as it is. Also says whether the expression asks for it.
    pub fn compile_with_watermark(
        &self,
        schema: &Schema,
        functions: &Functions,
        watermark: &CurrentWatermark,
    ) -> Result<(Compiled, bool)> {
        let mut compiled = self.compile(schema, functions)?;
        let (expr, is_asking) = watermark.bind(compiled.expr).map_err(|error| self.broken(&error.to_string()))?;
        compiled.expr = expr;
        Ok((compiled, is_asking))
    }

    fn broken(&self, reason: &str) -> Error {
        Error::system(format!("the expression '{}' cannot be used: {reason}", self.text))
    }

    fn read(&self, schema: &Schema, functions: &Functions) -> Result<Arc<dyn PhysicalExpr>> {
        let node = PhysicalExprNode::decode(&self.bytes[..]).map_err(|error| self.broken(&error.to_string()))?;
        parse_physical_expr(&node, &functions.context, schema, &DefaultPhysicalExtensionCodec {})
            .map_err(|error| self.broken(&error.to_string()))
    }
}

/// An expression that is ready.
#[derive(Clone, Debug)]
pub struct Compiled {
    expr: Arc<dyn PhysicalExpr>,
    /// If it is a column and nothing else: it passes through untouched.
    column: Option<usize>,
    text: Arc<str>,
}

impl Compiled {
    /// An expression that is ready already.
    pub(crate) fn of(expr: Arc<dyn PhysicalExpr>, text: &str) -> Self {
        let column = expr.downcast_ref::<Column>().map(Column::index);
        Self { expr, column, text: text.into() }
    }

    /// Its value for each row.
    ///
    /// # Errors
    /// A function failed: the message names the expression.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        if let Some(column) = self.column {
            return Ok(Arc::clone(batch.column(column)));
        }
        let value = self.expr.evaluate(batch).and_then(|value| value.into_array(batch.num_rows()));
        value.map_err(|error| self.failed(&error))
    }

    /// For which rows it is true; null is false.
    pub fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let value = self.evaluate(batch)?;
        let mask = as_boolean_array(&value).map_err(|error| self.failed(&error))?;
        Ok(match mask.null_count() {
            0 => mask.clone(),
            _ => arrow::compute::prep_null_mask_filter(mask),
        })
    }

    /// The column that it is, if it is nothing else.
    pub fn as_column(&self) -> Option<usize> {
        self.column
    }

    /// The columns that it reads.
    pub fn columns(&self) -> BTreeSet<usize> {
        collect_columns(&self.expr).iter().map(Column::index).collect()
    }

    /// What is evaluated.
    pub fn physical(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }

    fn failed(&self, error: &DataFusionError) -> Error {
        Error::input(format!("evaluating '{}': {}", self.text, error.strip_backtrace()))
    }
}
