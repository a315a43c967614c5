//! Constants of SQL with Flink's types.

use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::sql::sqlparser::ast::{DateTimeField, Expr, Interval, TypedString, Value};

use crate::logical::coerce::call;
use crate::logical::errors::{mistake, mistake_at};
use crate::logical::fold::fold;
use crate::types::MAX_PRECISION;

/// The one number that is a BIGINT with its sign only.
const LEAST_BIGINT: &str = "9223372036854775808";

/// `1`, `1.50`, `1e3`.
pub(super) fn number(digits: &str) -> Result<ScalarValue> {
    let wrong = || mistake(format!("the number {digits} is out of range: DECIMAL has {MAX_PRECISION} digits"));
    if digits.contains(['e', 'E']) {
        return digits.parse().map(|value| ScalarValue::Float64(Some(value))).map_err(|_| wrong());
    }
    let Some((whole, fraction)) = digits.split_once('.') else {
        if let Ok(small) = digits.parse::<i32>() {
            return Ok(ScalarValue::Int32(Some(small)));
        }
        if digits == LEAST_BIGINT {
            return Ok(ScalarValue::Decimal128(Some(-i128::from(i64::MIN)), 19, 0));
        }
        // As in Flink, a whole number is no DECIMAL.
        return digits.parse().map(|value| ScalarValue::Int64(Some(value))).map_err(|_| {
            mistake(format!("the number {digits} is out of range: BIGINT ends at {}; write {digits}.0", i64::MAX))
        });
    };
    let all = format!("{whole}{fraction}");
    let precision = all.trim_start_matches('0').len().max(fraction.len()).max(1);
    let value = all.parse::<i128>().map_err(|_| wrong())?;
    match u8::try_from(precision) {
        Ok(precision) if precision <= MAX_PRECISION => {
            Ok(ScalarValue::Decimal128(Some(value), precision, fraction.len() as i8))
        }
        _ => Err(wrong()),
    }
}

/// `DATE '2024-01-01'`, `TIME '12:00:00'`, `TIMESTAMP '2024-01-01 12:00:00.123'`.
pub(super) fn typed(typed: &TypedString) -> Result<ScalarValue> {
    let at = typed.value.span.start;
    let wrong = |reason: String| if at.line > 0 { mistake_at(reason, at) } else { mistake(reason) };
    let Some(text) = typed.value.value.clone().into_string() else {
        return Err(wrong(format!("{} needs a text behind it", typed.data_type)));
    };
    let name = typed.data_type.to_string().to_uppercase();
    let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end().len().min(9));
    let of = match name.as_str() {
        "DATE" => "DATE".to_owned(),
        "TIME" => format!("TIME({})", digits.min(3)),
        "TIMESTAMP" => format!("TIMESTAMP({digits})"),
        _ => return Err(wrong(format!("there are no constants of the type {name}: CAST a text"))),
    };
    let text_of = |text: &str| datafusion::logical_expr::lit(text);
    let value = fold(&call("flink_try_cast", vec![text_of(&text), text_of(&of)])?)?;
    if value.is_null() {
        return Err(wrong(format!("'{text}' is no {name}")));
    }
    Ok(value)
}

const UNITS: [(DateTimeField, i64); 6] = [
    (DateTimeField::Year, 12),
    (DateTimeField::Month, 1),
    (DateTimeField::Day, 86_400_000),
    (DateTimeField::Hour, 3_600_000),
    (DateTimeField::Minute, 60_000),
    (DateTimeField::Second, 1000),
];

/// `INTERVAL '1 02:03' DAY TO MINUTE`, `INTERVAL '-5' MONTH`.
pub(super) fn interval(interval: &Interval) -> Result<ScalarValue> {
    let shown = interval.to_string();
    let wrong = || {
        mistake(format!(
            "{shown} is no interval: write it as INTERVAL '10' MINUTE or INTERVAL '1 02:03:04' DAY TO SECOND"
        ))
    };
    let (text, at) = match interval.value.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => (text.trim().to_owned(), value.span.start),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let wrong = || -> DataFusionError {
        let error =
            format!("{shown} is no interval: write it as INTERVAL '10' MINUTE or INTERVAL '1 02:03:04' DAY TO SECOND");
        if at.line > 0 { mistake_at(error, at) } else { mistake(error) }
    };
    let place = |field: &DateTimeField| {
        let singular = match field {
            DateTimeField::Years => DateTimeField::Year,
            DateTimeField::Months => DateTimeField::Month,
            DateTimeField::Days => DateTimeField::Day,
            DateTimeField::Hours => DateTimeField::Hour,
            DateTimeField::Minutes => DateTimeField::Minute,
            DateTimeField::Seconds => DateTimeField::Second,
            other => other.clone(),
        };
        UNITS.iter().position(|(unit, _)| *unit == singular)
    };
    let (leading, weeks) = match &interval.leading_field {
        Some(DateTimeField::Week(None) | DateTimeField::Weeks) => (Some(2), 7),
        Some(DateTimeField::Quarter) => (Some(1), 3),
        Some(field) => (place(field), 1),
        None => (None, 1),
    };
    let first = leading.ok_or_else(wrong)?;
    let last = interval.last_field.as_ref().map_or(Some(first), place).ok_or_else(wrong)?;
    if last < first || (first < 2) != (last < 2) {
        return Err(wrong());
    }
    let (sign, text) = match text.split_at_checked(1) {
        Some(("-", rest)) => (-1, rest.to_owned()),
        Some(("+", rest)) => (1, rest.to_owned()),
        _ => (1, text),
    };
    let parts: Vec<&str> = text.split(['-', ' ', ':']).collect();
    if parts.len() != last - first + 1 {
        return Err(wrong());
    }
    let mut sum: i64 = 0;
    for (part, (unit, size)) in parts.iter().zip(&UNITS[first..]) {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        if !fraction.is_empty() && *unit != DateTimeField::Second {
            return Err(wrong());
        }
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !(fraction.is_empty() || digits(fraction)) {
            return Err(wrong());
        }
        let number: i64 = whole.parse().map_err(|_| wrong())?;
        let millis: i64 = format!("{fraction:0<3}")[..3].parse().unwrap_or(0);
        let size = size.checked_mul(weeks).ok_or_else(wrong)?;
        let value =
            number.checked_mul(size).and_then(|value| value.checked_add(if fraction.is_empty() { 0 } else { millis }));
        sum = value.and_then(|value| sum.checked_add(value)).ok_or_else(wrong)?;
    }
    match first < 2 {
        true => {
            i32::try_from(sign * sum).map(|months| ScalarValue::IntervalYearMonth(Some(months))).map_err(|_| wrong())
        }
        false => Ok(ScalarValue::DurationMillisecond(Some(sign * sum))),
    }
}

/// The same with the other sign.
pub(super) fn negated(value: &ScalarValue) -> Option<ScalarValue> {
    Some(match value {
        ScalarValue::Int32(Some(value)) => ScalarValue::Int32(Some(value.checked_neg()?)),
        // The one number that is an INT with its sign only.
        ScalarValue::Int64(Some(value)) if *value == -i64::from(i32::MIN) => ScalarValue::Int32(Some(i32::MIN)),
        ScalarValue::Int64(Some(value)) => ScalarValue::Int64(Some(value.checked_neg()?)),
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(-value)),
        ScalarValue::Decimal128(Some(value), 19, 0) if -value == i128::from(i64::MIN) => {
            ScalarValue::Int64(Some(i64::MIN))
        }
        ScalarValue::Decimal128(Some(value), precision, scale) => {
            ScalarValue::Decimal128(Some(-value), *precision, *scale)
        }
        ScalarValue::DurationMillisecond(Some(value)) => ScalarValue::DurationMillisecond(Some(value.checked_neg()?)),
        ScalarValue::IntervalYearMonth(Some(value)) => ScalarValue::IntervalYearMonth(Some(value.checked_neg()?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expr;

    fn read(text: &str) -> String {
        let value = match parse_expr(text).expect("an expression") {
            Expr::Interval(found) => interval(&found),
            Expr::TypedString(found) => typed(&found),
            Expr::Value(value) => match value.value {
                Value::Number(digits, _) => number(&digits),
                other => panic!("{other}"),
            },
            other => panic!("{other}"),
        };
        value.map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
    }

    #[test]
    fn constants_have_flinks_types() {
        for (text, expected) in [
            ("1", "Int32(1)"),
            ("2147483648", "Int64(2147483648)"),
            ("1.50", "Decimal128(Some(150),3,2)"),
            ("0.05", "Decimal128(Some(5),2,2)"),
            ("1e3", "Float64(1000)"),
            ("INTERVAL '1' DAY", "DurationMillisecond(\"86400000\")"),
            ("INTERVAL '1-2' YEAR TO MONTH", "IntervalYearMonth(\"14\")"),
            ("INTERVAL '1 02:03:04.567' DAY TO SECOND", "DurationMillisecond(\"93784567\")"),
            ("INTERVAL '-90' SECOND", "DurationMillisecond(\"-90000\")"),
            ("DATE '2024-02-29'", "Date32(\"2024-02-29\")"),
            ("TIMESTAMP '2024-02-29 12:34:56.789'", "TimestampMillisecond(1709210096789, None)"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for (text, expected) in [
            ("99999999999999999999", "is out of range: BIGINT"),
            ("INTERVAL '1 2' DAY", "is no interval"),
            ("INTERVAL '1' DAY TO MONTH", "is no interval"),
            ("DATE 'today'", "'today' is no DATE"),
        ] {
            let found = read(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
