//! Functions of numbers.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::cast::decimals;
use crate::decimal;
use crate::define::{Call, Function, Takes, Types, Values, convert, is};

use Takes::{Any, Int, Number, Text};

macro_rules! double {
    ($name:literal, $of:expr) => {
        Function::new($name, &[Number], is::double, |call| {
            let values = call.doubles(0)?;
            call.make::<Float64Type>(|row| values.get(row).map($of))
        })
        .strict()
    };
}

macro_rules! doubles {
    ($name:literal, $of:expr) => {
        Function::new($name, &[Number, Number], is::double, |call| {
            let (left, right) = (call.doubles(0)?, call.doubles(1)?);
            call.make::<Float64Type>(|row| Some($of(left.get(row)?, right.get(row)?)))
        })
        .strict()
    };
}

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        double!("flink_sqrt", f64::sqrt),
        double!("flink_ln", f64::ln),
        double!("flink_log2", f64::log2),
        double!("flink_log10", f64::log10),
        double!("flink_exp", f64::exp),
        double!("flink_sin", f64::sin),
        double!("flink_cos", f64::cos),
        double!("flink_tan", f64::tan),
        double!("flink_cot", |value: f64| 1.0 / value.tan()),
        double!("flink_asin", f64::asin),
        double!("flink_acos", f64::acos),
        double!("flink_atan", f64::atan),
        double!("flink_sinh", f64::sinh),
        double!("flink_cosh", f64::cosh),
        double!("flink_tanh", f64::tanh),
        double!("flink_degrees", f64::to_degrees),
        double!("flink_radians", |value: f64| value / 180.0 * std::f64::consts::PI),
        doubles!("flink_power", f64::powf),
        doubles!("flink_atan2", f64::atan2),
        Function::new("flink_log", &[Number, Number], is::double, |call| {
            let first = call.doubles(0)?;
            let second = if call.has(1) { Some(call.doubles(1)?) } else { None };
            call.make::<Float64Type>(|row| match &second {
                Some(second) => Some(second.get(row)?.ln() / first.get(row)?.ln()),
                None => first.get(row).map(f64::ln),
            })
        })
        .least(1)
        .strict(),
        Function::new("flink_pi", &[], is::double, |call| call.make::<Float64Type>(|_| Some(std::f64::consts::PI)))
            .never_null(),
        Function::new("e", &[], is::double, |call| call.make::<Float64Type>(|_| Some(std::f64::consts::E)))
            .never_null(),
        Function::new("flink_abs", &[Number], is::first, |call| {
            map(call, |value| value.wrapping_abs(), |value, _| value.abs(), f64::abs)
        })
        .strict(),
        Function::new("flink_sign", &[Number], is::first, |call| {
            map(
                call,
                i64::signum,
                |value, unit| value.signum() * unit,
                |value| if value == 0.0 || value.is_nan() { value } else { value.signum() },
            )
        })
        .strict(),
        Function::new("flink_ceil", &[Any, Text], whole, |call| round_to_whole(call, true))
            .least(1)
            .strict()
            .alias(&["ceiling"]),
        Function::new("flink_floor", &[Any, Text], whole, |call| round_to_whole(call, false)).least(1).strict(),
        Function::new("flink_round", &[Number, Int], rounded, |call| round(call, true)).least(1).strict(),
        Function::new("truncate", &[Number, Int], rounded, |call| round(call, false)).least(1).strict(),
        Function::new("rand", &[Int], is::double, |call| {
            let seeds = if call.has(0) { Some(call.ints(0)?) } else { None };
            let mut random = seeds.and_then(|seeds| seeds.get(0)).map(Random::new);
            call.make::<Float64Type>(|_| {
                Some(match &mut random {
                    Some(random) => random.double(),
                    None => (flott_env::random_u64() >> 11) as f64 / (1u64 << 53) as f64,
                })
            })
        })
        .least(0)
        .volatile()
        .never_null(),
        Function::new("rand_integer", &[Int, Int], is::int, |call| {
            let most = call.ints(call.columns.len() - 1)?;
            let seeds = if call.has(1) { Some(call.ints(0)?) } else { None };
            let mut random = seeds.and_then(|seeds| seeds.get(0)).map(Random::new);
            call.make::<Int32Type>(|row| {
                let most = u64::try_from(most.get(row)?).ok().filter(|most| *most > 0)?;
                let found =
                    random.as_mut().map_or_else(flott_env::random_u64, |random| (random.double() * most as f64) as u64);
                Some((found % most) as i32)
            })
        })
        .least(1)
        .volatile(),
    ];
    functions.into_iter().map(Function::make).collect()
}

/// Java's generator, so that a seed gives Flink's numbers.
struct Random(u64);

impl Random {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> Self {
        Self((seed as u64 ^ Self::MULTIPLIER) & Self::MASK)
    }

    fn next(&mut self, bits: u32) -> u64 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB) & Self::MASK;
        self.0 >> (48 - bits)
    }

    fn double(&mut self) -> f64 {
        ((self.next(26) << 27) + self.next(27)) as f64 / (1u64 << 53) as f64
    }
}

/// For each kind of number one function.
fn map(
    call: &Call<'_>,
    of_long: impl Fn(i64) -> i64,
    of_decimal: impl Fn(i128, i128) -> i128,
    of_double: impl Fn(f64) -> f64,
) -> Result<ArrayRef> {
    let array = call.array(0)?;
    match array.data_type() {
        DataType::Decimal128(precision, scale) => {
            let unit = 10i128.pow(*scale as u32);
            let made =
                array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(|value| of_decimal(value, unit));
            Ok(Arc::new(made.with_precision_and_scale(*precision, *scale)?))
        }
        DataType::Float32 | DataType::Float64 => {
            let values = call.doubles(0)?;
            convert(&call.make::<Float64Type>(|row| values.get(row).map(&of_double))?, call.returns)
        }
        _ => {
            let values: Values<_> = call.ints(0)?;
            let made = call.make::<arrow::datatypes::Int64Type>(|row| values.get(row).map(&of_long))?;
            // ABS(-128) stays -128.
            crate::cast::Cast { zone: call.zone, is_try: true }.cast(&made, call.returns)
        }
    }
}

/// Of a number, or of a date or time and a unit.
fn whole(of: &Types<'_>) -> Option<DataType> {
    let takes = if of.types.len() == 1 { Number } else { Takes::Temporal };
    Some(match of.types.first().filter(|of| takes.accepts(of))? {
        DataType::Decimal128(precision, _) => DataType::Decimal128(*precision, 0),
        other => other.clone(),
    })
}

fn round_to_whole(call: &Call<'_>, is_up: bool) -> Result<ArrayRef> {
    if call.has(1) {
        return crate::temporal::to_unit(call, is_up);
    }
    if let DataType::Decimal128(_, scale) = call.data_type(0) {
        let unit = 10i128.pow(*scale as u32);
        let array = call.array(0)?;
        let values = array.as_primitive::<Decimal128Type>();
        let one = |value: i128| if is_up { -(-value).div_euclid(unit) } else { value.div_euclid(unit) };
        return decimals(call.rows, call.returns, |row| {
            arrow::array::Array::is_valid(values, row).then(|| one(values.value(row)))
        });
    }
    map(call, |value| value, |value, _| value, if is_up { f64::ceil } else { f64::floor })
}

/// DECIMAL(p, s) keeps the digits that a constant says; without one, none behind the point.
fn rounded(of: &Types<'_>) -> Option<DataType> {
    let DataType::Decimal128(precision, scale) = of.types[0] else { return is::first(of) };
    let digits = match of.constants.get(1).copied().flatten() {
        Some(value) => match value.cast_to(&DataType::Int64).ok()? {
            datafusion::common::ScalarValue::Int64(Some(digits)) => digits,
            _ => return is::first(of),
        },
        None if of.types.len() == 1 => 0,
        None => return is::first(of),
    };
    if digits >= i64::from(scale) {
        return is::first(of);
    }
    if digits < 0 {
        return Some(DataType::Decimal128((precision - scale as u8 + 1).min(38), 0));
    }
    Some(DataType::Decimal128((precision - scale as u8 + 1 + digits as u8).min(38), digits as i8))
}

fn round(call: &Call<'_>, is_nearest: bool) -> Result<ArrayRef> {
    let digits = if call.has(1) { Some(call.ints(1)?) } else { None };
    let digits = |row: usize| {
        digits.as_ref().map_or(Some(0), |digits| digits.get(row)).map(|digits| digits.clamp(-38, 38) as i32)
    };
    // A decimal of `scale` digits behind the point, with `digits` of them.
    let exact = |value: i128, scale: i32, digits: i32| -> Option<i128> {
        if digits >= scale {
            return Some(value);
        }
        if is_nearest {
            return decimal::scaled(value, scale, digits);
        }
        Some(10i128.checked_pow((scale - digits) as u32).map_or(0, |unit| value / unit))
    };
    let array = call.array(0)?;
    let is_valid = |row: usize| arrow::array::Array::is_valid(array.as_ref(), row);
    match array.data_type() {
        DataType::Decimal128(_, scale) => {
            let values = array.as_primitive::<Decimal128Type>();
            let scale = i32::from(*scale);
            let to = match call.returns {
                DataType::Decimal128(_, to) => i32::from(*to),
                _ => 0,
            };
            decimals(call.rows, call.returns, |row| {
                let digits = digits(row)?;
                let made = is_valid(row).then(|| exact(values.value(row), scale, digits)).flatten()?;
                decimal::scaled(made, digits.min(scale), to)
            })
        }
        DataType::Float32 | DataType::Float64 => {
            let is_float = *array.data_type() == DataType::Float32;
            let values = call.doubles(0)?;
            let made = call.make::<Float64Type>(|row| {
                let (value, digits) = (values.get(row)?, digits(row)?);
                // The shortest digits that say the number are what is rounded, as in Java's BigDecimal.valueOf.
                let shown = if is_float { (value as f32).to_string() } else { value.to_string() };
                match crate::text::read_decimal(&shown) {
                    Some((whole, scale)) if value.is_finite() && digits < scale => {
                        let made = exact(whole, scale, digits)?;
                        format!("{made}e{}", -digits).parse().ok()
                    }
                    _ => Some(value),
                }
            })?;
            convert(&made, call.returns)
        }
        _ => {
            let values = call.ints(0)?;
            let made = call.make::<arrow::datatypes::Int64Type>(|row| {
                let digits = digits(row)?.min(0);
                let made = exact(values.get(row)?.into(), 0, digits)?;
                Some(made.checked_mul(10i128.checked_pow(digits.unsigned_abs())?)? as i64)
            })?;
            crate::cast::Cast { zone: call.zone, is_try: true }.cast(&made, call.returns)
        }
    }
}
