//! How a function is defined: what it takes, the type of what it gives, and how a batch is evaluated.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Float64Array, Int64Array, PrimitiveArray,
    StringArray, StringBuilder, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub(crate) use flott_chunk::zone::{Zone, zone_of};

use crate::types::coerce::{is_interval, is_numeric, is_temporal};
use crate::types::name_of;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Bytes,
    /// A text or bytes.
    Data,
    Int,
    Number,
    Bool,
    /// A date, a time or a timestamp.
    Temporal,
    Array,
    Map,
    Any,
}

impl Takes {
    pub(crate) fn accepts(self, of: &DataType) -> bool {
        match self {
            _ if *of == DataType::Null => true,
            Self::Text => *of == DataType::Utf8,
            Self::Bytes => *of == DataType::Binary,
            Self::Data => matches!(of, DataType::Utf8 | DataType::Binary),
            Self::Int => matches!(of, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64),
            Self::Number => is_numeric(of),
            Self::Bool => *of == DataType::Boolean,
            Self::Temporal => is_temporal(of) || is_interval(of),
            Self::Array => matches!(of, DataType::List(_)),
            Self::Map => matches!(of, DataType::Map(..)),
            Self::Any => true,
        }
    }

    /// The type of a NULL that has none.
    fn of_null(self) -> DataType {
        match self {
            Self::Text | Self::Data => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Int => DataType::Int32,
            Self::Number => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Temporal => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::Array | Self::Map | Self::Any => DataType::Null,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "STRING",
            Self::Bytes => "BYTES",
            Self::Data => "STRING or BYTES",
            Self::Int => "an integer",
            Self::Number => "a number",
            Self::Bool => "BOOLEAN",
            Self::Temporal => "a date or time",
            Self::Array => "ARRAY",
            Self::Map => "MAP",
            Self::Any => "any type",
        }
    }
}

/// The arguments as the planner knows them.
pub(crate) struct Types<'a> {
    pub(crate) types: Vec<DataType>,
    pub(crate) constants: &'a [Option<&'a ScalarValue>],
    pub(crate) fields: &'a [FieldRef],
}

impl Types<'_> {
    /// A constant text.
    pub(crate) fn constant(&self, at: usize) -> Option<&str> {
        match self.constants.get(at)? {
            Some(ScalarValue::Utf8(Some(text))) => Some(text),
            _ => None,
        }
    }
}

type Returns = fn(&Types<'_>) -> Option<DataType>;
type Evaluate = fn(&Call<'_>) -> Result<ArrayRef>;

/// A function of Flink.
#[derive(Debug)]
pub(crate) struct Function {
    name: &'static str,
    aliases: Vec<String>,
    takes: &'static [Takes],
    /// How many arguments it needs.
    least: usize,
    /// Whether the last parameter may come again and again.
    is_variadic: bool,
    /// Whether NULL comes only from NULL.
    is_strict: bool,
    /// The same, also from NULL in a field of a row.
    is_strict_within: bool,
    never_null: bool,
    returns: Returns,
    evaluate: Evaluate,
    signature: Signature,
}

impl Function {
    pub(crate) fn new(name: &'static str, takes: &'static [Takes], returns: Returns, evaluate: Evaluate) -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        let (is_variadic, is_strict, is_strict_within, never_null) = (false, false, false, false);
        Self {
            name,
            aliases: Vec::new(),
            takes,
            least: takes.len(),
            is_variadic,
            is_strict,
            is_strict_within,
            never_null,
            returns,
            evaluate,
            signature,
        }
    }

    pub(crate) fn alias(mut self, names: &[&str]) -> Self {
        self.aliases.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    /// Only the first `least` arguments are needed.
    pub(crate) fn least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }

    pub(crate) fn variadic(mut self) -> Self {
        self.is_variadic = true;
        self
    }

    pub(crate) fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    pub(crate) fn strict_within(mut self) -> Self {
        self.is_strict = true;
        self.is_strict_within = true;
        self
    }

    pub(crate) fn never_null(mut self) -> Self {
        self.never_null = true;
        self
    }

    /// Its result is another for each row.
    pub(crate) fn volatile(mut self) -> Self {
        self.signature = Signature::user_defined(Volatility::Volatile);
        self
    }

    pub(crate) fn make(self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(self))
    }

    fn parameter(&self, at: usize) -> Option<Takes> {
        match self.takes.get(at) {
            Some(found) => Some(*found),
            None if self.is_variadic => self.takes.last().copied(),
            None => None,
        }
    }

    /// How it is called, for messages.
    fn usage(&self) -> String {
        let shown: Vec<_> = self.takes.iter().map(|takes| takes.name()).collect();
        let name = self.name.trim_start_matches("flink_").to_uppercase();
        format!("{name}({}{})", shown.join(", "), if self.is_variadic { ", …" } else { "" })
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{}: the type depends on the arguments", self.name)))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let wrong = || DataFusionError::Plan(format!("expected {}", self.usage()));
        if arguments.len() < self.least {
            return Err(wrong());
        }
        let convert = |(at, of): (usize, &DataType)| {
            let takes = self.parameter(at).filter(|takes| takes.accepts(of)).ok_or_else(wrong)?;
            Ok(if *of == DataType::Null { takes.of_null() } else { of.clone() })
        };
        arguments.iter().enumerate().map(convert).collect()
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types = Types {
            types: arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect(),
            constants: arguments.scalar_arguments,
            fields: arguments.arg_fields,
        };
        let found = (self.returns)(&types).ok_or_else(|| {
            let shown: Vec<_> = types.types.iter().map(name_of).collect();
            DataFusionError::Plan(format!("expected {}, found ({})", self.usage(), shown.join(", ")))
        })?;
        let any_null = arguments.arg_fields.iter().any(|field| match self.is_strict_within {
            true => has_null(field),
            false => field.is_nullable(),
        });
        let is_nullable = !self.never_null && (!self.is_strict || any_null);
        Ok(Arc::new(Field::new(self.name, found, is_nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_volatile = self.signature.volatility == Volatility::Volatile;
        let is_constant = !is_volatile && arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let column = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => Ok(Column { array: Arc::clone(array), is_constant: false }),
            ColumnarValue::Scalar(value) => Ok(Column { array: value.to_array()?, is_constant: true }),
        };
        let columns = arguments.args.iter().map(column).collect::<Result<_>>()?;
        let zone = match &arguments.config_options.execution.time_zone {
            Some(name) => zone_of(name).ok_or_else(|| user_error(format!("there is no time zone '{name}'")))?,
            None => Zone::Offset(0),
        };
        let (returns, fields) = (arguments.return_field.data_type(), &arguments.arg_fields[..]);
        let call = Call { columns, rows, returns, fields, zone };
        let mut found = (self.evaluate)(&call)?;
        if found.data_type() != call.returns {
            found = arrow::compute::cast(&found, call.returns)?;
        }
        Ok(if is_constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
        } else {
            ColumnarValue::Array(found)
        })
    }
}

/// Whether NULL may be in a column, or in a field of its rows.
fn has_null(field: &Field) -> bool {
    let is_within = |of: &DataType| matches!(of, DataType::Struct(parts) if parts.iter().any(|part| has_null(part)));
    field.is_nullable() || is_within(field.data_type())
}

/// A mistake in the data or the query.
pub(crate) fn user_error(reason: impl Into<String>) -> DataFusionError {
    DataFusionError::Execution(reason.into())
}

/// An argument's values; a constant has one.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) array: ArrayRef,
    pub(crate) is_constant: bool,
}

/// A batch to evaluate.
pub(crate) struct Call<'a> {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
    pub(crate) returns: &'a DataType,
    /// What is known of the arguments.
    pub(crate) fields: &'a [FieldRef],
    /// The session's.
    pub(crate) zone: Zone,
}

/// Typed values, by row.
pub(crate) struct Values<A> {
    pub(crate) array: A,
    is_constant: bool,
}

impl<A> Values<A> {
    #[inline]
    pub(crate) fn at(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }
}

macro_rules! get {
    ($array:ty, $value:ty) => {
        impl Values<$array> {
            #[inline]
            pub(crate) fn get(&self, row: usize) -> Option<$value> {
                let at = self.at(row);
                self.array.is_valid(at).then(|| self.array.value(at))
            }
        }
    };
}
get!(StringArray, &str);
get!(BinaryArray, &[u8]);
get!(BooleanArray, bool);
get!(Int64Array, i64);
get!(Float64Array, f64);

pub(crate) type Texts = Values<StringArray>;
pub(crate) type Ints = Values<Int64Array>;

/// Arrow's cast, where what does not fit is null.
pub(crate) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(cast_with_options(array, to, &CastOptions { safe: true, ..CastOptions::default() })?)
}

impl Call<'_> {
    pub(crate) fn has(&self, at: usize) -> bool {
        at < self.columns.len()
    }

    pub(crate) fn data_type(&self, at: usize) -> &DataType {
        self.columns[at].array.data_type()
    }

    /// An argument with a value for each row.
    pub(crate) fn array(&self, at: usize) -> Result<ArrayRef> {
        let column = &self.columns[at];
        if !column.is_constant || self.rows == column.array.len() {
            return Ok(Arc::clone(&column.array));
        }
        ScalarValue::try_from_array(&column.array, 0)?.to_array_of_size(self.rows)
    }

    fn values<A: Array + Clone + 'static>(&self, at: usize, to: &DataType) -> Result<Values<A>> {
        let column = &self.columns[at];
        let array = convert(&column.array, to)?;
        let array = array.as_any().downcast_ref::<A>().expect("the array has the type it was cast to").clone();
        Ok(Values { array, is_constant: column.is_constant })
    }

    pub(crate) fn texts(&self, at: usize) -> Result<Texts> {
        self.values(at, &DataType::Utf8)
    }

    pub(crate) fn bytes(&self, at: usize) -> Result<Values<BinaryArray>> {
        self.values(at, &DataType::Binary)
    }

    pub(crate) fn bools(&self, at: usize) -> Result<Values<BooleanArray>> {
        self.values(at, &DataType::Boolean)
    }

    pub(crate) fn ints(&self, at: usize) -> Result<Ints> {
        self.values(at, &DataType::Int64)
    }

    pub(crate) fn doubles(&self, at: usize) -> Result<Values<Float64Array>> {
        self.values(at, &DataType::Float64)
    }

    /// What is evaluated row by row.
    pub(crate) fn make_texts<T: AsRef<str>>(&self, mut of: impl FnMut(usize) -> Option<T>) -> Result<ArrayRef> {
        self.try_texts(|row| Ok(of(row)))
    }

    pub(crate) fn try_texts<T: AsRef<str>>(&self, mut of: impl FnMut(usize) -> Result<Option<T>>) -> Result<ArrayRef> {
        let mut made = StringBuilder::with_capacity(self.rows, self.rows * 16);
        for row in 0..self.rows {
            made.append_option(of(row)?);
        }
        Ok(Arc::new(made.finish()))
    }

    pub(crate) fn make_bytes<T: AsRef<[u8]>>(&self, of: impl FnMut(usize) -> Option<T>) -> Result<ArrayRef> {
        Ok(Arc::new(BinaryArray::from_iter((0..self.rows).map(of))))
    }

    pub(crate) fn make_bools(&self, of: impl FnMut(usize) -> Option<bool>) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::from_iter((0..self.rows).map(of))))
    }

    pub(crate) fn make<T: ArrowPrimitiveType>(&self, of: impl FnMut(usize) -> Option<T::Native>) -> Result<ArrayRef> {
        Ok(Arc::new((0..self.rows).map(of).collect::<PrimitiveArray<T>>()))
    }

    pub(crate) fn nulls(&self) -> Result<ArrayRef> {
        Ok(new_null_array(self.returns, self.rows))
    }
}

/// Types that do not depend on the arguments.
pub(crate) mod is {
    use arrow::datatypes::DataType;

    use super::Types;

    pub(crate) fn text(_: &Types<'_>) -> Option<DataType> {
        Some(DataType::Utf8)
    }
    pub(crate) fn bytes(_: &Types<'_>) -> Option<DataType> {
        Some(DataType::Binary)
    }
    pub(crate) fn int(_: &Types<'_>) -> Option<DataType> {
        Some(DataType::Int32)
    }
    pub(crate) fn long(_: &Types<'_>) -> Option<DataType> {
        Some(DataType::Int64)
    }
    pub(crate) fn double(_: &Types<'_>) -> Option<DataType> {
        Some(DataType::Float64)
    }
    pub(crate) fn boolean(_: &Types<'_>) -> Option<DataType> {
        Some(DataType::Boolean)
    }
    /// That of the first argument.
    pub(crate) fn first(of: &Types<'_>) -> Option<DataType> {
        of.types.first().cloned()
    }
}
