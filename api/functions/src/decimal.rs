//! Arithmetic of DECIMAL: exact, rounded half up to the scale of the result; what has too many digits is NULL.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{DataType, Decimal128Type, i256};
use datafusion::common::Result;

use crate::cast::decimals;
use crate::define::user_error;
use crate::types::coerce::{Arithmetic, decimal_of};

fn power(exponent: u32) -> Option<i256> {
    i256::from_i128(10).checked_pow(exponent)
}

fn divide(value: i256, by: i256) -> Option<i256> {
    let (whole, rest) = (value.checked_div(by)?, value.checked_rem(by)?);
    let is_up = rest.wrapping_abs().checked_mul(i256::from_i128(2))? >= by.wrapping_abs();
    let one = if (value < i256::ZERO) == (by < i256::ZERO) { i256::ONE } else { i256::MINUS_ONE };
    if is_up { whole.checked_add(one) } else { Some(whole) }
}

fn wide(value: i256, from: i32, to: i32) -> Option<i128> {
    let found = if to >= from {
        value.checked_mul(power((to - from) as u32)?)?
    } else {
        power((from - to) as u32).map_or(Some(i256::ZERO), |by| divide(value, by))?
    };
    found.to_i128()
}

/// The same number with another scale.
pub(crate) fn scaled(value: i128, from: i32, to: i32) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    wide(i256::from_i128(value), from, to)
}

/// The number nearest to a DOUBLE's exact value.
pub(crate) fn from_double(value: f64, scale: u8) -> Option<i128> {
    if !value.is_finite() || value.abs() >= 1e38 {
        return None;
    }
    let (whole, scale_of) = crate::text::read_decimal(&format!("{value}"))?;
    scaled(whole, scale_of, scale.into())
}

/// An exact number as one of another scale.
pub(crate) fn rescale(from: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let values = exact(from)?;
    let values = values.as_primitive::<Decimal128Type>();
    let (from, to_scale) = (scale_of(values.data_type()), scale_of(to));
    decimals(values.len(), to, |row| values.is_valid(row).then(|| scaled(values.value(row), from, to_scale)).flatten())
}

fn scale_of(of: &DataType) -> i32 {
    decimal_of(of).map_or(0, |(_, scale)| scale.into())
}

/// An integer as a decimal.
pub(crate) fn exact(from: &ArrayRef) -> Result<ArrayRef> {
    Ok(match from.data_type() {
        DataType::Decimal128(..) => from.clone(),
        of => {
            let (precision, scale) = decimal_of(of).unwrap_or((38, 0));
            arrow_cast(from, &DataType::Decimal128(precision, scale as i8))?
        }
    })
}

/// `left operator right`, each a decimal of any scale.
pub(crate) fn arithmetic(operator: Arithmetic, left: &ArrayRef, right: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (left, right) = (exact(left)?, exact(right)?);
    let (left, right) = (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
    let (s1, s2, scale) = (scale_of(left.data_type()), scale_of(right.data_type()), scale_of(to));
    let common = s1.max(s2);
    let is_division = matches!(operator, Arithmetic::Divide | Arithmetic::Modulo);
    if is_division && (0..right.len()).any(|row| left.is_valid(row) && right.is_valid(row) && right.value(row) == 0) {
        return Err(user_error("division by zero"));
    }
    let (raise_left, raise_right) = (power((common - s1) as u32), power((common - s2) as u32));
    decimals(left.len(), to, |row| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let (a, b) = (i256::from_i128(left.value(row)), i256::from_i128(right.value(row)));
        match operator {
            Arithmetic::Multiply => wide(a.checked_mul(b)?, s1 + s2, scale),
            Arithmetic::Divide => {
                let raise = scale + s2 - s1;
                let (a, b) = match raise {
                    0.. => (a.checked_mul(power(raise as u32)?)?, b),
                    _ => (a, b.checked_mul(power(raise.unsigned_abs())?)?),
                };
                divide(a, b)?.to_i128()
            }
            _ => {
                let (a, b) = (a.checked_mul(raise_left?)?, b.checked_mul(raise_right?)?);
                let found = match operator {
                    Arithmetic::Add => a.checked_add(b)?,
                    Arithmetic::Subtract => a.checked_sub(b)?,
                    _ => a.checked_rem(b)?,
                };
                wide(found, common, scale)
            }
        }
    })
}
