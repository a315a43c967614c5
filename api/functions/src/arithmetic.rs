//! `+ - * / %` and the sign.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast as arrow_cast;
use arrow::compute::kernels::arity::{binary, try_binary};
use arrow::datatypes::{
    ArrowNativeTypeOp, DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalUnit, IntervalYearMonthType,
};
use arrow::error::ArrowError;
use chrono::{Months, NaiveDateTime, TimeDelta};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use crate::decimal;
use crate::define::{Function, Takes, Types, convert, is};
use crate::moment::{Moments, from_nanos};
use crate::types::coerce::{
    Arithmetic, arithmetic_type, is_approximate, is_integer, is_interval, is_numeric, is_temporal,
};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    use Arithmetic::{Add, Divide, Modulo, Multiply, Subtract};
    const BOTH: &[Takes] = &[Takes::Any, Takes::Any];
    macro_rules! operator {
        ($name:literal, $operator:expr) => {
            Function::new(
                $name,
                BOTH,
                |of: &Types<'_>| arithmetic_type($operator, &of.types[0], &of.types[1]),
                |call| apply($operator, &call.array(0)?, &call.array(1)?, call.returns),
            )
        };
    }
    let negatable = |of: &Types<'_>| is::first(of).filter(|of| is_numeric(of) || is_interval(of));
    vec![
        operator!("flink_add", Add).make(),
        operator!("flink_subtract", Subtract).make(),
        operator!("flink_multiply", Multiply).make(),
        operator!("flink_divide", Divide).make(),
        operator!("flink_mod", Modulo).make(),
        Function::new("flink_negate", &[Takes::Any], negatable, |call| negate(&call.array(0)?)).strict().make(),
    ]
}

fn negate(of: &ArrayRef) -> Result<ArrayRef> {
    Ok(match of.data_type() {
        DataType::Decimal128(precision, scale) => {
            let made = of.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(|value| -value);
            Arc::new(made.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Duration(_) => {
            let longs = arrow_cast(of, &DataType::Int64)?;
            arrow_cast(&arrow::compute::kernels::numeric::neg_wrapping(&longs)?, of.data_type())?
        }
        DataType::Interval(_) => {
            Arc::new(of.as_primitive::<IntervalYearMonthType>().unary::<_, IntervalYearMonthType>(i32::wrapping_neg))
        }
        _ => arrow::compute::kernels::numeric::neg_wrapping(of)?,
    })
}

/// `left operator right` of this type.
pub(crate) fn apply(operator: Arithmetic, left: &ArrayRef, right: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if is_interval(left.data_type()) || is_interval(right.data_type()) {
        return intervals(operator, left, right, to);
    }
    if let DataType::Decimal128(..) = to {
        return decimal::arithmetic(operator, left, right, to);
    }
    if is_approximate(to) {
        let wide =
            [left, right].iter().any(|of| matches!(of.data_type(), DataType::Float64 | DataType::Decimal128(..)));
        // FLOAT with DOUBLE is a FLOAT, but is computed as DOUBLE.
        let by = if wide { DataType::Float64 } else { DataType::Float32 };
        let (left, right) = (approximate(left, &by)?, approximate(right, &by)?);
        let made = if wide {
            floats::<Float64Type>(operator, &left, &right)?
        } else {
            floats::<Float32Type>(operator, &left, &right)?
        };
        return convert(&made, to);
    }
    // The remainder has the divisor's type, and the dividend may be larger.
    let by = match operator {
        Arithmetic::Modulo if is_integer(left.data_type()) => DataType::Int64,
        _ => to.clone(),
    };
    let (left, right) = (convert(left, &by)?, convert(right, &by)?);
    let made = match by {
        DataType::Int8 => integers::<Int8Type>(operator, &left, &right)?,
        DataType::Int16 => integers::<Int16Type>(operator, &left, &right)?,
        DataType::Int32 => integers::<Int32Type>(operator, &left, &right)?,
        DataType::Int64 => integers::<Int64Type>(operator, &left, &right)?,
        other => return Err(DataFusionError::Internal(format!("no arithmetic with {other}"))),
    };
    convert(&made, to)
}

fn approximate(of: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match of.data_type() {
        DataType::Decimal128(..) => {
            let cast = crate::cast::Cast { zone: crate::define::Zone::Offset(0), is_try: true };
            cast.cast(of, to)
        }
        _ => convert(of, to),
    }
}

fn integers<T: ArrowPrimitiveType>(operator: Arithmetic, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef>
where
    T::Native: ArrowNativeTypeOp,
{
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    let by_zero = |by: T::Native| match by.is_zero() {
        true => Err(ArrowError::ComputeError("division by zero".to_owned())),
        false => Ok(()),
    };
    let made: PrimitiveArray<T> = match operator {
        Arithmetic::Add => binary(left, right, |a, b| a.add_wrapping(b))?,
        Arithmetic::Subtract => binary(left, right, |a, b| a.sub_wrapping(b))?,
        Arithmetic::Multiply => binary(left, right, |a, b| a.mul_wrapping(b))?,
        Arithmetic::Divide => try_binary(left, right, |a, b| by_zero(b).map(|()| a.div_wrapping(b)))?,
        Arithmetic::Modulo => try_binary(left, right, |a, b| by_zero(b).map(|()| a.mod_wrapping(b)))?,
    };
    Ok(Arc::new(made))
}

fn floats<T: ArrowPrimitiveType>(operator: Arithmetic, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef>
where
    T::Native: ArrowNativeTypeOp,
{
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    let made: PrimitiveArray<T> = match operator {
        Arithmetic::Add => binary(left, right, |a, b| a.add_wrapping(b))?,
        Arithmetic::Subtract => binary(left, right, |a, b| a.sub_wrapping(b))?,
        Arithmetic::Multiply => binary(left, right, |a, b| a.mul_wrapping(b))?,
        Arithmetic::Divide => binary(left, right, |a, b| a.div_wrapping(b))?,
        Arithmetic::Modulo => binary(left, right, |a, b| a.mod_wrapping(b))?,
    };
    Ok(Arc::new(made))
}

fn intervals(operator: Arithmetic, left: &ArrayRef, right: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let sign = if operator == Arithmetic::Subtract { -1 } else { 1 };
    let (temporal, interval) = if is_temporal(left.data_type()) { (left, right) } else { (right, left) };
    if is_temporal(temporal.data_type()) {
        return shift(temporal, interval, sign, to);
    }
    // Intervals with one another, or with a number.
    let as_number = |of: &ArrayRef| -> Result<ArrayRef> {
        Ok(match of.data_type() {
            DataType::Interval(_) => {
                Arc::new(of.as_primitive::<IntervalYearMonthType>().unary::<_, Int64Type>(i64::from)) as ArrayRef
            }
            DataType::Duration(_) => arrow_cast(of, &DataType::Int64)?,
            _ => Arc::clone(of),
        })
    };
    let (left, right) = (as_number(left)?, as_number(right)?);
    let by =
        if is_integer(left.data_type()) && is_integer(right.data_type()) { DataType::Int64 } else { DataType::Float64 };
    let made = apply(operator, &approximate(&left, &by)?, &approximate(&right, &by)?, &by)?;
    let made = convert(&made, &DataType::Int64)?;
    Ok(match to {
        DataType::Interval(_) => {
            let months = convert(&made, &DataType::Int32)?;
            Arc::new(months.as_primitive::<Int32Type>().unary::<_, IntervalYearMonthType>(|value| value))
        }
        _ => arrow_cast(&made, to)?,
    })
}

/// A date or time, moved by an interval.
fn shift(of: &ArrayRef, interval: &ArrayRef, sign: i64, to: &DataType) -> Result<ArrayRef> {
    let moments = Moments::new(of)?;
    if let DataType::Interval(IntervalUnit::YearMonth) = interval.data_type() {
        let months = interval.as_primitive::<IntervalYearMonthType>();
        return from_nanos(of.len(), to, |row| {
            let at = moments.get(row)?;
            months.is_valid(row).then(|| plus_months(at, sign * i64::from(months.value(row)))).flatten()
        });
    }
    let millis = arrow_cast(interval, &DataType::Int64)?;
    let millis = millis.as_primitive::<Int64Type>();
    // A date moves by whole days.
    let unit = if *of.data_type() == DataType::Date32 { 86_400_000 } else { 1 };
    from_nanos(of.len(), to, |row| {
        let at = moments.get(row)?;
        millis
            .is_valid(row)
            .then(|| at.checked_add_signed(TimeDelta::milliseconds(sign * (millis.value(row) / unit * unit))))?
    })
}

/// The same day of another month, or its last one.
pub(crate) fn plus_months(at: NaiveDateTime, months: i64) -> Option<NaiveDateTime> {
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months < 0 { at.checked_sub_months(by) } else { at.checked_add_months(by) }
}
