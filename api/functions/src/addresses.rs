//! Addresses of the internet, as texts and as numbers.

use std::sync::Arc;

use arrow::datatypes::Int64Type;
use datafusion::logical_expr::ScalarUDF;

use crate::define::{Function, Takes, is};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        Function::new("inet_aton", &[Takes::Text], is::long, |call| {
            let texts = call.texts(0)?;
            call.make::<Int64Type>(|row| number_of(texts.get(row)?))
        }),
        Function::new("inet_ntoa", &[Takes::Int], is::text, |call| {
            let numbers = call.ints(0)?;
            call.make_texts(|row| {
                let [a, b, c, d] = u32::try_from(numbers.get(row)?).ok()?.to_be_bytes();
                Some(format!("{a}.{b}.{c}.{d}"))
            })
        }),
    ];
    functions.into_iter().map(Function::make).collect()
}

/// `a.b.c.d`; with fewer parts, the last one stands at the end and zeros before it.
fn number_of(text: &str) -> Option<i64> {
    let mut bytes = [0i64; 4];
    let parts: Vec<_> = text.split('.').collect();
    let (last, first) = parts.split_last()?;
    let read = |part: &str| -> Option<i64> {
        let is_number = !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    };
    if first.len() > 3 {
        return None;
    }
    for (byte, part) in bytes.iter_mut().zip(first) {
        *byte = read(part).filter(|part| *part <= 255)?;
    }
    let most = 1i64 << (8 * (4 - first.len()));
    let last = read(last).filter(|last| *last < most)?;
    Some(bytes.iter().fold(0, |all, byte| all << 8 | byte) + last)
}
