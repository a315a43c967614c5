//! `PERCENTILE`: of values in their order, with how often each is there.
//!
//! A place between two values has what lies between them, by its distance from both. Values are kept as those that extremes
//! are of, so that they may go again.

use std::collections::BTreeMap;

use crate::row::RowBytes;

/// Bits of NaN, of which there are many.
const NAN: u64 = 0x7ff8 << 48;

/// Bits that compare as the numbers do in Java: -0.0 is before 0.0, and NaN is last.
pub(super) fn order(value: f64) -> u64 {
    let bits = if value.is_nan() { NAN } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The number that a value is kept as.
fn number(value: &RowBytes) -> Option<f64> {
    let order = u64::from_be_bytes(value.as_slice().try_into().ok()?);
    Some(f64::from_bits(if order >> 63 == 1 { order & !(1 << 63) } else { !order }))
}

/// The percentiles of values, from 0 to 1 each; none of nothing.
pub(super) fn of(values: &BTreeMap<RowBytes, i64>, at: &[f64]) -> Option<Vec<f64>> {
    // Those that were taken back before they came are not there.
    let there = values.iter().filter(|(_, times)| **times > 0);
    let last = there.clone().fold(0_i64, |sum, (_, times)| sum.saturating_add(*times)) - 1;
    let mut places: Vec<(f64, usize)> = at.iter().map(|at| at * last as f64 + 1.0).zip(0..).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rest = there.filter_map(|(value, times)| Some((number(value)?, *times))).peekable();
    let (mut value, mut seen) = rest.next()?;
    let mut found = vec![0.0; at.len()];
    for (place, index) in places {
        while (seen as f64) < place.floor() {
            let (next, times) = rest.next()?;
            value = next;
            seen = seen.saturating_add(times);
        }
        found[index] = match rest.peek() {
            Some((next, _)) if (seen as f64) < place.ceil() => {
                (place.ceil() - place) * value + (place - place.floor()) * next
            }
            _ => value,
        };
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(values: &[(f64, i64)], at: &[f64]) -> Option<Vec<f64>> {
        let key = |value: f64| RowBytes::new(&order(value).to_be_bytes());
        of(&values.iter().map(|(value, times)| (key(*value), *times)).collect(), at)
    }

    /// The cases of Flink's own test.
    #[test]
    fn places_between_values_have_what_lies_between_them() {
        let values = [(1.0, 2), (2.0, 1), (4.0, 2), (5.0, 1), (9.0, 1)];
        assert_eq!(percentiles(&values, &[0.5]), Some(vec![4.0]));
        let found = percentiles(&values, &[0.9, 0.7, 0.3, 1.0]);
        assert_eq!(found, Some(vec![6.600000000000001, 4.199999999999999, 1.7999999999999998, 9.0]));
        let counted = [(1.0, 3), (2.0, 4), (4.0, 2), (5.0, 2), (9.0, 3)];
        assert_eq!(percentiles(&counted, &[0.5]), Some(vec![3.0]));
        assert_eq!(percentiles(&counted, &[0.9, 0.7, 0.3, 1.0]), Some(vec![9.0, 5.0, 2.0, 9.0]));
        assert_eq!(percentiles(&[(3.0, 1), (5.0, 1), (9.0, 1)], &[0.1]), Some(vec![3.4000000000000004]));
    }

    #[test]
    fn nothing_has_none() {
        assert_eq!(percentiles(&[], &[0.5]), None);
        assert_eq!(percentiles(&[(1.0, -1)], &[0.5]), None);
        assert_eq!(percentiles(&[(1.0, 1)], &[]), None);
    }

    #[test]
    fn numbers_are_in_the_order_of_java() {
        let values = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY, f64::NAN, -f64::NAN];
        let orders: Vec<u64> = values.iter().map(|value| order(*value)).collect();
        assert!(orders.is_sorted());
        assert_eq!(orders[6], orders[7]);
        let back = |order: &u64| format!("{:?}", number(&RowBytes::new(&order.to_be_bytes())));
        assert_eq!(orders[1..4].iter().map(back).collect::<Vec<_>>(), ["Some(-1.5)", "Some(-0.0)", "Some(0.0)"]);
    }
}
