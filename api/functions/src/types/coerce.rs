//! Which type the result of an operator has, and which type takes values of several.

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};

use super::{MAX_PRECISION, array_of, map_of};

/// The digits of an exact number: all, and those behind the point.
pub fn decimal_of(of: &DataType) -> Option<(u8, u8)> {
    match of {
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Decimal128(precision, scale) => Some((*precision, u8::try_from(*scale).ok()?)),
        _ => None,
    }
}

/// Whether it is FLOAT or DOUBLE.
pub fn is_approximate(of: &DataType) -> bool {
    matches!(of, DataType::Float32 | DataType::Float64)
}

/// Whether it is a number.
pub fn is_numeric(of: &DataType) -> bool {
    is_approximate(of) || decimal_of(of).is_some()
}

/// Whether it is a whole number.
pub fn is_integer(of: &DataType) -> bool {
    matches!(of, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
}

/// Whether it is an interval.
pub fn is_interval(of: &DataType) -> bool {
    matches!(of, DataType::Interval(_) | DataType::Duration(_))
}

/// Whether it is a date, a time of day or a timestamp.
pub fn is_temporal(of: &DataType) -> bool {
    matches!(of, DataType::Date32 | DataType::Time32(_) | DataType::Timestamp(_, _))
}

/// The type that values of all these fit into: of CASE, COALESCE, UNION, VALUES, an array. Flink's "least restrictive".
pub fn common_type<'a>(all: impl IntoIterator<Item = &'a DataType>) -> Option<DataType> {
    let mut all = all.into_iter();
    let first = all.next()?.clone();
    all.try_fold(first, |found, next| common_of_two(&found, next))
}

fn common_of_two(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType::{Float64, List, Map, Null, Struct, Timestamp};
    Some(match (left, right) {
        _ if left == right => left.clone(),
        (Null, other) | (other, Null) => other.clone(),
        _ if is_integer(left) && is_integer(right) => {
            if decimal_of(left) >= decimal_of(right) {
                left.clone()
            } else {
                right.clone()
            }
        }
        // Flink gives FLOAT and DOUBLE the same precision, so the first one stays.
        _ if is_approximate(left) && is_approximate(right) => left.clone(),
        _ if is_numeric(left) && is_numeric(right) => match (decimal_of(left), decimal_of(right)) {
            (Some((p1, s1)), Some((p2, s2))) => {
                let digits = (p1 - s1).max(p2 - s2).min(MAX_PRECISION);
                let scale = s1.max(s2).min(MAX_PRECISION - digits);
                DataType::Decimal128(digits + scale, scale as i8)
            }
            // An approximate number and an exact one.
            _ if matches!(left, DataType::Decimal128(..)) || matches!(right, DataType::Decimal128(..)) => Float64,
            _ if is_approximate(left) => left.clone(),
            _ => right.clone(),
        },
        // The zone of the first, the precision of the finer.
        (Timestamp(left, zone), Timestamp(right, _)) => Timestamp(finer(*left, *right), zone.clone()),
        (List(left), List(right)) => array_of(common_field(left, right)?),
        (Map(left, _), Map(right, _)) => match (left.data_type(), right.data_type()) {
            (Struct(left), Struct(right)) => {
                map_of(common_of_two(left[0].data_type(), right[0].data_type())?, common_field(&left[1], &right[1])?)
            }
            _ => return None,
        },
        (Struct(left), Struct(right)) if left.len() == right.len() => {
            Struct(left.iter().zip(right).map(|(left, right)| common_field(left, right)).collect::<Option<Fields>>()?)
        }
        _ => return None,
    })
}

fn common_field(left: &Field, right: &Field) -> Option<Field> {
    let data_type = common_of_two(left.data_type(), right.data_type())?;
    Some(left.clone().with_data_type(data_type).with_nullable(left.is_nullable() || right.is_nullable()))
}

fn finer(left: TimeUnit, right: TimeUnit) -> TimeUnit {
    left.max(right)
}

/// An operator of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// The type of `left operator right`; `None` if Flink has no such operation.
pub fn arithmetic_type(operator: Arithmetic, left: &DataType, right: &DataType) -> Option<DataType> {
    use Arithmetic::{Add, Divide, Modulo, Multiply, Subtract};
    if is_interval(left) || is_interval(right) {
        return match operator {
            Add | Subtract if is_interval(left) && is_interval(right) => (left == right).then(|| left.clone()),
            Add | Subtract if is_interval(right) => is_temporal(left).then(|| left.clone()),
            Add => is_temporal(right).then(|| right.clone()),
            Multiply if is_numeric(left) => Some(right.clone()),
            Multiply | Divide if is_numeric(right) => Some(left.clone()),
            _ => None,
        };
    }
    if !is_numeric(left) || !is_numeric(right) {
        return None;
    }
    if is_approximate(left) || is_approximate(right) {
        return (operator != Modulo).then(|| common_of_two(left, right))?;
    }
    if is_integer(left) && is_integer(right) {
        // The remainder is not larger than the divisor.
        return if operator == Modulo { Some(right.clone()) } else { common_of_two(left, right) };
    }
    let ((p1, s1), (p2, s2)) = (decimal_of(left)?, decimal_of(right)?);
    let (p1, s1, p2, s2) = (i32::from(p1), i32::from(s1), i32::from(p2), i32::from(s2));
    let (precision, scale) = match operator {
        Add | Subtract => {
            let scale = s1.max(s2);
            ((p1 - s1).max(p2 - s2) + scale + 1, scale)
        }
        Multiply => (p1 + p2 + 1, s1 + s2),
        Divide => {
            let scale = 6.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        Modulo => {
            let scale = s1.max(s2);
            ((p1 - s1).min(p2 - s2) + scale, scale)
        }
    };
    Some(adjusted(precision, scale))
}

/// Digits behind the point give way to those before it, down to six.
fn adjusted(precision: i32, scale: i32) -> DataType {
    let most = i32::from(MAX_PRECISION);
    if precision <= most {
        return DataType::Decimal128(precision as u8, scale as i8);
    }
    let scale = (most - (precision - scale)).max(scale.min(6));
    DataType::Decimal128(MAX_PRECISION, scale as i8)
}

/// The type of SUM.
pub fn sum_type(of: &DataType) -> Option<DataType> {
    match of {
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(MAX_PRECISION, *scale)),
        _ => is_numeric(of).then(|| of.clone()),
    }
}

/// The type of AVG, STDDEV and VAR.
pub fn average_type(of: &DataType) -> Option<DataType> {
    match of {
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(MAX_PRECISION, (*scale).max(6))),
        _ => is_numeric(of).then(|| of.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{name_of, parse};
    use super::*;

    fn arrow(name: &str) -> DataType {
        parse(name).expect("a type").to_arrow()
    }

    fn shown(found: Option<DataType>) -> String {
        found.map_or_else(|| "none".to_owned(), |found| name_of(&found))
    }

    /// All of these are what Flink 2.3 says.
    #[test]
    fn operators_have_flinks_types() {
        use Arithmetic::{Add, Divide, Modulo, Multiply, Subtract};
        for (left, operator, right, expected) in [
            ("TINYINT", Add, "TINYINT", "TINYINT"),
            ("TINYINT", Add, "SMALLINT", "SMALLINT"),
            ("INT", Add, "FLOAT", "FLOAT"),
            ("BIGINT", Add, "FLOAT", "FLOAT"),
            ("FLOAT", Add, "DOUBLE", "FLOAT"),
            ("DECIMAL(10, 2)", Add, "INT", "DECIMAL(13, 2)"),
            ("DECIMAL(10, 2)", Add, "BIGINT", "DECIMAL(22, 2)"),
            ("DECIMAL(10, 2)", Add, "FLOAT", "DOUBLE"),
            ("DECIMAL(10, 2)", Add, "DECIMAL(10, 2)", "DECIMAL(11, 2)"),
            ("DECIMAL(10, 2)", Multiply, "DECIMAL(10, 2)", "DECIMAL(21, 4)"),
            ("DECIMAL(10, 2)", Divide, "DECIMAL(10, 2)", "DECIMAL(23, 13)"),
            ("DECIMAL(10, 2)", Divide, "INT", "DECIMAL(21, 13)"),
            ("DECIMAL(3, 3)", Multiply, "BIGINT", "DECIMAL(23, 3)"),
            ("INT", Divide, "INT", "INT"),
            ("INT", Divide, "DOUBLE", "DOUBLE"),
            ("INT", Modulo, "BIGINT", "BIGINT"),
            ("BIGINT", Modulo, "INT", "INT"),
            ("DECIMAL(10, 2)", Modulo, "INT", "DECIMAL(10, 2)"),
            ("FLOAT", Modulo, "INT", "none"),
            ("DECIMAL(38, 18)", Multiply, "DECIMAL(38, 18)", "DECIMAL(38, 6)"),
            ("DECIMAL(38, 18)", Divide, "DECIMAL(38, 18)", "DECIMAL(38, 6)"),
            ("DECIMAL(38, 18)", Add, "DECIMAL(10, 2)", "DECIMAL(38, 17)"),
            ("STRING", Add, "INT", "none"),
            ("TIMESTAMP(3)", Subtract, "TIMESTAMP(3)", "none"),
            ("TIMESTAMP(6)", Subtract, "INTERVAL MONTH", "TIMESTAMP(6)"),
            ("INTERVAL DAY", Add, "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)"),
            ("DATE", Add, "INTERVAL HOUR", "DATE"),
            ("INT", Multiply, "INTERVAL DAY", "INTERVAL DAY TO SECOND(3)"),
        ] {
            let found = arithmetic_type(operator, &arrow(left), &arrow(right));
            assert_eq!(shown(found), expected, "{left} {operator:?} {right}");
        }
    }

    #[test]
    fn several_types_have_flinks_common_one() {
        for (all, expected) in [
            (&["TINYINT", "BIGINT"][..], "BIGINT"),
            (&["INT", "DECIMAL(10, 2)"], "DECIMAL(12, 2)"),
            (&["FLOAT", "DECIMAL(10, 2)"], "DOUBLE"),
            (&["FLOAT", "INT"], "FLOAT"),
            (&["DOUBLE", "FLOAT"], "DOUBLE"),
            (&["TIMESTAMP(3)", "TIMESTAMP(6)"], "TIMESTAMP(6)"),
            (&["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"], "TIMESTAMP(3)"),
            (&["DECIMAL(10, 2)", "DECIMAL(38, 18)"], "DECIMAL(38, 18)"),
            (&["INT", "STRING"], "none"),
            (&["DATE", "TIMESTAMP(3)"], "none"),
            (&["NULL", "INT", "NULL"], "INT"),
            (&["ARRAY<INT>", "ARRAY<BIGINT>"], "ARRAY<BIGINT>"),
        ] {
            let all: Vec<_> = all.iter().map(|name| arrow(name)).collect();
            assert_eq!(shown(common_type(&all)), expected, "{all:?}");
        }
    }
}
