//! Aggregate functions.

use std::any::type_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use flott_core::{Data, Error, Result, codec};
use flott_sql_runtime::aggregates::user::{UserAggregate, UserRow};

use super::scalar::{nulls_of, parameter};
use super::udf::converted;
use super::value::{Argument, Returned, SqlValue};
use super::{Function, Kind};

/// A function of many rows. What it keeps of a group is its accumulator, which is state: it is in checkpoints and moves
/// with its key.
///
/// A row with NULL for a parameter that is no `Option` is left out.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::functions::{AggregateFunction, aggregate};
/// use flott_table::prelude::*;
///
/// /// The mean of values, each as often as its weight says.
/// struct WeightedMean;
///
/// impl AggregateFunction for WeightedMean {
///     type Input = (f64, i64);
///     type Accumulator = (f64, i64);
///     type Output = Option<f64>;
///
///     fn create_accumulator(&self) -> (f64, i64) {
///         (0.0, 0)
///     }
///
///     fn accumulate(&self, sum: &mut (f64, i64), (value, weight): (f64, i64)) {
///         sum.0 += value * weight as f64;
///         sum.1 += weight;
///     }
///
///     const RETRACTS: bool = true;
///
///     fn retract(&self, sum: &mut (f64, i64), (value, weight): (f64, i64)) {
///         self.accumulate(sum, (value, -weight));
///     }
///
///     fn get_value(&self, sum: &(f64, i64)) -> Option<f64> {
///         (sum.1 != 0).then(|| sum.0 / sum.1 as f64)
///     }
/// }
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.create_temporary_system_function("weighted_mean", aggregate(WeightedMean))?;
/// tables.set("execution.runtime-mode", "batch")?;
/// let query = "SELECT k, weighted_mean(v, w) FROM (VALUES ('a', 1.0, 1), ('a', 4.0, 2)) AS t (k, v, w) GROUP BY k";
/// let means: Vec<(String, Option<f64>)> = tables.execute_sql(query)?.collect()?;
/// assert_eq!(means, [("a".to_owned(), Some(3.0))]);
/// # Ok(()) }
/// ```
pub trait AggregateFunction: Send + Sync + 'static {
    /// Its parameters: a tuple, of one for one.
    type Input: Parameters;
    /// What it keeps of a group.
    type Accumulator: Data;
    /// Its result.
    type Output: Returned;

    /// Whether [`retract`](Self::retract) is there. Rows are taken back where the input is updated, and by OVER windows with a
    /// bound.
    const RETRACTS: bool = false;
    /// Whether [`merge`](Self::merge) is there. HOP, CUMULATE and SESSION windows put groups together.
    const MERGES: bool = false;

    /// The accumulator of a group without rows.
    fn create_accumulator(&self) -> Self::Accumulator;

    /// A row comes.
    fn accumulate(&self, accumulator: &mut Self::Accumulator, input: Self::Input);

    /// A row goes that came before. Called only if [`RETRACTS`](Self::RETRACTS) says so.
    fn retract(&self, accumulator: &mut Self::Accumulator, input: Self::Input) {
        let _ = (accumulator, input);
    }

    /// All rows of another group come, later than those that are there. Called only if [`MERGES`](Self::MERGES) says so.
    fn merge(&self, accumulator: &mut Self::Accumulator, later: Self::Accumulator) {
        let _ = (accumulator, later);
    }

    /// The result of a group.
    fn get_value(&self, accumulator: &Self::Accumulator) -> Self::Output;
}

/// The parameters of an aggregate function: a tuple of up to eight [`Argument`]s.
pub trait Parameters: Sized + Send {
    /// Columns that they are read from.
    type Columns;

    /// Their types.
    ///
    /// # Errors
    /// SQL has no such type.
    fn types() -> Result<Vec<DataType>>;

    /// The columns, ready to be read, and which rows are left out.
    ///
    /// # Errors
    /// They are of other types.
    fn columns(arrays: &[ArrayRef]) -> Result<(Self::Columns, Option<NullBuffer>)>;

    /// Those of a row.
    ///
    /// # Errors
    /// A value cannot be read.
    fn get(arrays: &[ArrayRef], columns: &mut Self::Columns, row: usize) -> Result<Self>;
}

macro_rules! parameters {
    ($($($name:ident $at:tt),+;)*) => {$(
        impl<$($name: Argument),+> Parameters for ($($name,)+) {
            type Columns = ($(<$name::Value as SqlValue>::Column,)+);

            fn types() -> Result<Vec<DataType>> {
                Ok(vec![$($name::Value::data_type()?),+])
            }

            fn columns(arrays: &[ArrayRef]) -> Result<(Self::Columns, Option<NullBuffer>)> {
                let nulls: Option<NullBuffer> = None;
                $(let nulls = NullBuffer::union(nulls.as_ref(), nulls_of::<$name>(&arrays[$at]).as_ref());)+
                Ok((($($name::Value::column(&arrays[$at])?,)+), nulls))
            }

            fn get(arrays: &[ArrayRef], columns: &mut Self::Columns, row: usize) -> Result<Self> {
                Ok(($(parameter::<$name>(&arrays[$at], &mut columns.$at, row)?,)+))
            }
        }
    )*};
}

parameters! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

/// An aggregate function, to be registered.
pub fn aggregate<F: AggregateFunction>(function: F) -> Function {
    let planned = || {
        let (arguments, result) = (F::Input::types()?, <F::Output as Returned>::Value::data_type()?);
        let running = Running { function, result: result.clone() };
        Ok(Kind::Aggregate(Planned { arguments, result }, Arc::new(running)))
    };
    Function::new(planned())
}

/// What the planner knows of an aggregate function.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub arguments: Vec<DataType>,
    pub result: DataType,
}

/// The same under a name.
pub(super) struct Udaf {
    name: String,
    planned: Planned,
    signature: Signature,
}

impl Udaf {
    pub(super) fn new(name: &str, planned: Planned) -> Self {
        Self { name: name.to_lowercase(), planned, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl fmt::Debug for Udaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udaf").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Udaf {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Udaf {}

impl Hash for Udaf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AggregateUDFImpl for Udaf {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> datafusion::common::Result<DataType> {
        converted(&self.name, &self.planned.arguments, given)?;
        Ok(self.planned.result.clone())
    }

    fn coerce_types(&self, given: &[DataType]) -> datafusion::common::Result<Vec<DataType>> {
        converted(&self.name, &self.planned.arguments, given)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> datafusion::common::Result<Box<dyn Accumulator>> {
        Err(DataFusionError::Plan(format!("{} is computed by operators", self.name)))
    }
}

/// An aggregate function as operators call it.
struct Running<F> {
    function: F,
    result: DataType,
}

impl<F: AggregateFunction> Running<F> {
    fn accumulator(&self, kept: &[u8]) -> Result<F::Accumulator> {
        match kept {
            [] => Ok(self.function.create_accumulator()),
            kept => codec::decode(kept).map_err(|error| {
                Error::input(format!(
                    "what is kept by an aggregate function is no {}: {}; a type of accumulators cannot change",
                    type_name::<F::Accumulator>(),
                    error.message
                ))
            }),
        }
    }
}

impl<F: AggregateFunction> UserAggregate for Running<F> {
    fn result(&self) -> DataType {
        self.result.clone()
    }

    fn can_retract(&self) -> bool {
        F::RETRACTS
    }

    fn can_merge(&self) -> bool {
        F::MERGES
    }

    fn update(&self, arguments: &[ArrayRef], rows: &[UserRow], groups: &mut [Vec<u8>]) -> Result<()> {
        let mut accumulators = groups.iter().map(|kept| self.accumulator(kept)).collect::<Result<Vec<_>>>()?;
        let (mut columns, nulls) = F::Input::columns(arguments)?;
        for row in rows {
            let at = row.row as usize;
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                continue;
            }
            let input = F::Input::get(arguments, &mut columns, at)?;
            let accumulator = &mut accumulators[row.group as usize];
            match row.is_addition {
                true => self.function.accumulate(accumulator, input),
                false => self.function.retract(accumulator, input),
            }
        }
        for (kept, accumulator) in groups.iter_mut().zip(&accumulators) {
            *kept = codec::encode(accumulator)?;
        }
        Ok(())
    }

    fn merge(&self, group: &mut Vec<u8>, later: &[u8]) -> Result<()> {
        let mut accumulator = self.accumulator(group)?;
        self.function.merge(&mut accumulator, self.accumulator(later)?);
        *group = codec::encode(&accumulator)?;
        Ok(())
    }

    fn results(&self, groups: &[Vec<u8>]) -> Result<ArrayRef> {
        type Value<F> = <<F as AggregateFunction>::Output as Returned>::Value;
        let mut results = Value::<F>::builder(groups.len())?;
        for kept in groups {
            let value = self.function.get_value(&self.accumulator(kept)?).value()?;
            Value::<F>::append(&mut results, value)?;
        }
        Value::<F>::finish(results)
    }
}
