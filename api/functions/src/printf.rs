//! PRINTF: formats as Java's `Formatter` has them. What Java refuses is NULL.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::cast::Cast;
use crate::define::{Call, Column, Function, Takes, is, user_error};
use crate::types::coerce::is_integer;

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    vec![Function::new("printf", &[Takes::Text, Takes::Any], is::text, printf).least(1).variadic().make()]
}

fn printf(call: &Call<'_>) -> Result<ArrayRef> {
    let formats = call.texts(0)?;
    let cast = Cast { zone: call.zone, is_try: true };
    let columns = call.columns[1..].iter().map(|column| Source::new(column, cast)).collect::<Result<Vec<_>>>()?;
    // A constant format is taken apart once a batch.
    let mut known: Option<(&str, Option<Vec<Piece<'_>>>)> = None;
    call.try_texts(|row| {
        let Some(format) = formats.get(row) else { return Ok(None) };
        let pieces = match &mut known {
            Some((text, pieces)) if *text == format => pieces,
            _ => &mut known.insert((format, pieces_of(format))).1,
        };
        match pieces {
            Some(pieces) => write_all(pieces, &columns, row),
            None => Ok(None),
        }
    })
}

/// The values of an argument.
struct Source {
    is_constant: bool,
    array: ArrayRef,
    /// As texts.
    shown: ArrayRef,
}

/// A value to be formatted.
enum Value {
    Null,
    /// A number, and how many bits its type has.
    Whole(i64, u32),
    Double(f64),
    /// Digits, and how many of them are behind the point.
    Decimal(i128, u8),
    Bool(bool),
    Other,
}

impl Source {
    fn new(column: &Column, cast: Cast) -> Result<Self> {
        let array = match column.array.data_type() {
            of if is_integer(of) => Arc::clone(&column.array),
            DataType::Float32 => arrow_cast(&cast.show(&column.array)?, &DataType::Float64)?,
            _ => Arc::clone(&column.array),
        };
        Ok(Self { is_constant: column.is_constant, array, shown: cast.show(&column.array)? })
    }

    fn at(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }

    fn text(&self, row: usize) -> &str {
        self.shown.as_string::<i32>().value(self.at(row))
    }

    fn value(&self, row: usize) -> Value {
        let at = self.at(row);
        if self.array.is_null(at) {
            return Value::Null;
        }
        match self.array.data_type() {
            DataType::Int8 => Value::Whole(self.array.as_primitive::<arrow::datatypes::Int8Type>().value(at).into(), 8),
            DataType::Int16 => {
                Value::Whole(self.array.as_primitive::<arrow::datatypes::Int16Type>().value(at).into(), 16)
            }
            DataType::Int32 => {
                Value::Whole(self.array.as_primitive::<arrow::datatypes::Int32Type>().value(at).into(), 32)
            }
            DataType::Int64 => Value::Whole(self.array.as_primitive::<Int64Type>().value(at), 64),
            DataType::Float64 => Value::Double(self.array.as_primitive::<Float64Type>().value(at)),
            DataType::Decimal128(_, scale) => {
                Value::Decimal(self.array.as_primitive::<Decimal128Type>().value(at), *scale as u8)
            }
            DataType::Boolean => Value::Bool(self.array.as_boolean().value(at)),
            _ => Value::Other,
        }
    }
}

/// Which argument.
enum Which {
    Next,
    Last,
    At(usize),
}

enum Piece<'a> {
    Literal(&'a str),
    Argument(Which, Layout),
    /// `%%` and `%n`.
    Fixed(char, Layout),
}

/// `%[flags][width][.precision]conversion`
#[derive(Default)]
struct Layout {
    flags: Vec<char>,
    width: Option<usize>,
    precision: Option<usize>,
    conversion: char,
}

impl Layout {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether Java takes these flags, and a precision, with the conversion.
    fn is_sound(&self) -> bool {
        let allowed = match self.conversion.to_ascii_lowercase() {
            'd' => "-+ 0,(",
            'x' | 'o' => "-#0",
            'e' => "-#+ 0(",
            'f' => "-#+ 0,(",
            'g' => "-+ 0,(",
            'n' => "",
            _ => "-",
        };
        let has_precision = matches!(self.conversion.to_ascii_lowercase(), 's' | 'b' | 'h' | 'e' | 'f' | 'g' | 'a');
        let is_upper_allowed = !self.conversion.is_ascii_uppercase() || "BHSCXEGAT".contains(self.conversion);
        "bhscdoxefgat%n".contains(self.conversion.to_ascii_lowercase())
            && is_upper_allowed
            && self.flags.iter().all(|flag| allowed.contains(*flag))
            && self.flags.iter().enumerate().all(|(at, flag)| !self.flags[..at].contains(flag))
            && (self.precision.is_none() || has_precision)
            && (self.width.is_some() || !(self.has('-') || self.has('0')))
            && !(self.has('-') && self.has('0'))
            && !(self.has('+') && self.has(' '))
            && !(self.conversion == 'n' && self.width.is_some())
    }
}

/// `None` if Java does not take it.
fn pieces_of(format: &str) -> Option<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some((literal, after)) = rest.split_once('%') {
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        let mut which = Which::Next;
        let mut after = after;
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if after[digits..].starts_with('$') {
            which = Which::At(after[..digits].parse::<usize>().ok()?.checked_sub(1)?);
            after = &after[digits + 1..];
        } else if let Some(next) = after.strip_prefix('<') {
            which = Which::Last;
            after = next;
        }
        let mut layout = Layout::default();
        let flags = after.bytes().take_while(|byte| b"-#+ 0,(".contains(byte)).count();
        layout.flags.extend(after[..flags].chars());
        after = &after[flags..];
        let number = |text: &str| -> Option<(Option<usize>, usize)> {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Some((None, 0));
            }
            // What is wider than this is a mistake.
            let found = text[..digits].parse::<usize>().ok().filter(|found| *found <= 1 << 16)?;
            Some((Some(found), digits))
        };
        let (width, digits) = number(after)?;
        layout.width = width;
        after = &after[digits..];
        if let Some(behind) = after.strip_prefix('.') {
            let (precision, digits) = number(behind)?;
            layout.precision = Some(precision?);
            after = &behind[digits..];
        }
        layout.conversion = after.chars().next()?;
        if !layout.is_sound() {
            return None;
        }
        rest = &after[layout.conversion.len_utf8()..];
        pieces.push(match layout.conversion {
            '%' => Piece::Fixed('%', layout),
            'n' => Piece::Fixed('\n', layout),
            _ => Piece::Argument(which, layout),
        });
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    Some(pieces)
}

fn write_all(pieces: &[Piece<'_>], columns: &[Source], row: usize) -> Result<Option<String>> {
    let (mut made, mut next, mut last) = (String::new(), 0, None);
    for piece in pieces {
        match piece {
            Piece::Literal(text) => made.push_str(text),
            Piece::Fixed(what, layout) => pad(&what.to_string(), layout, &mut made),
            Piece::Argument(which, layout) => {
                let at = match which {
                    Which::At(at) => Some(*at),
                    Which::Last => last,
                    Which::Next => {
                        next += 1;
                        Some(next - 1)
                    }
                };
                last = at;
                let Some(source) = at.and_then(|at| columns.get(at)) else { return Ok(None) };
                let Some(shown) = show(source, row, layout)? else { return Ok(None) };
                let is_upper = layout.conversion.is_ascii_uppercase();
                pad(&if is_upper { shown.to_uppercase() } else { shown }, layout, &mut made);
            }
        }
    }
    Ok(Some(made))
}

/// To the width, with spaces.
fn pad(text: &str, layout: &Layout, out: &mut String) {
    let missing = layout.width.unwrap_or(0).saturating_sub(text.chars().count());
    let spaces = |out: &mut String| out.extend(std::iter::repeat_n(' ', missing));
    if !layout.has('-') {
        spaces(out);
    }
    out.push_str(text);
    if layout.has('-') {
        spaces(out);
    }
}

fn show(source: &Source, row: usize, layout: &Layout) -> Result<Option<String>> {
    let value = source.value(row);
    let cut = |text: &str| match layout.precision {
        Some(most) => text.chars().take(most).collect(),
        None => text.to_owned(),
    };
    let conversion = layout.conversion.to_ascii_lowercase();
    Ok(Some(match (conversion, value) {
        ('h' | 'a' | 't', _) => {
            return Err(user_error(format!(
                "PRINTF has no %{} here; there are %s, %d, %x, %o, %f, %e, %g, %c, %b, %n and %%",
                layout.conversion
            )));
        }
        ('b', Value::Null) => cut("false"),
        ('b', Value::Bool(value)) => cut(if value { "true" } else { "false" }),
        ('b', _) => cut("true"),
        (_, Value::Null) => cut("null"),
        ('s', Value::Bool(value)) => cut(if value { "true" } else { "false" }),
        ('s', _) => cut(source.text(row)),
        ('c', Value::Whole(code, ..=32)) => match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(found) => found.to_string(),
            None => return Ok(None),
        },
        ('d', Value::Whole(value, _)) => signed(value < 0, value.unsigned_abs().to_string(), layout),
        ('x' | 'o', Value::Whole(value, bits)) => {
            let bits = value as u64 & (u64::MAX >> (64 - bits));
            let (digits, prefix) =
                if conversion == 'x' { (format!("{bits:x}"), "0x") } else { (format!("{bits:o}"), "0") };
            let prefix = if layout.has('#') { prefix } else { "" };
            let wanted = if layout.has('0') { layout.width.unwrap_or(0) } else { 0 };
            let zeros = wanted.saturating_sub(prefix.len() + digits.len());
            format!("{prefix}{}{digits}", "0".repeat(zeros))
        }
        ('f' | 'e' | 'g', Value::Double(value)) if !value.is_finite() => {
            let sign = if value.is_nan() || value > 0.0 { "" } else { "-" };
            let plus = if value > 0.0 && layout.has('+') { "+" } else { sign };
            let shown = if value.is_nan() { "NaN" } else { "Infinity" };
            if value < 0.0 && layout.has('(') { format!("({shown})") } else { format!("{plus}{shown}") }
        }
        ('f' | 'e' | 'g', Value::Double(value)) => {
            signed(value.is_sign_negative(), number(Digits::of_double(value.abs()), layout), layout)
        }
        ('f' | 'e' | 'g', Value::Decimal(value, scale)) => {
            let digits = Digits::new(value.unsigned_abs().to_string(), i32::from(scale));
            signed(value < 0, number(digits, layout), layout)
        }
        _ => return Ok(None),
    }))
}

/// Digits without a sign, with what the flags say.
fn signed(is_negative: bool, mut digits: String, layout: &Layout) -> String {
    if layout.has(',') {
        let (whole, rest) = digits.split_at(digits.find(['.', 'e']).unwrap_or(digits.len()));
        let mut grouped = String::with_capacity(digits.len() + whole.len() / 3);
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        digits = grouped + rest;
    }
    let (before, after) = match is_negative {
        true if layout.has('(') => ("(", ")"),
        true => ("-", ""),
        false if layout.has('+') => ("+", ""),
        false if layout.has(' ') => (" ", ""),
        false => ("", ""),
    };
    let wanted = if layout.has('0') { layout.width.unwrap_or(0) } else { 0 };
    let zeros = wanted.saturating_sub(before.len() + digits.len() + after.len());
    format!("{before}{}{digits}{after}", "0".repeat(zeros))
}

/// A number as `0.d₁d₂… · 10^exponent`.
struct Digits {
    digits: Vec<u8>,
    exponent: i32,
}

impl Digits {
    /// Digits of which `scale` are behind the point.
    fn new(digits: String, scale: i32) -> Self {
        let zeros = digits.bytes().take_while(|digit| *digit == b'0').count();
        let digits: Vec<_> = digits.bytes().skip(zeros).map(|digit| digit - b'0').collect();
        let exponent = if digits.is_empty() { 0 } else { digits.len() as i32 - scale };
        Self { digits, exponent }
    }

    /// The shortest that say it, as in Java.
    fn of_double(value: f64) -> Self {
        let shown = format!("{value:e}");
        let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let behind = digits.len() as i32 - 1 - exponent.parse::<i32>().unwrap_or(0);
        Self::new(digits, behind)
    }

    /// With the first `kept` digits only; a half is rounded up.
    fn round(&mut self, kept: i32) {
        let Ok(kept) = usize::try_from(kept) else {
            self.digits.clear();
            return;
        };
        let Some(first) = self.digits.get(kept) else { return };
        let is_up = *first >= 5;
        self.digits.truncate(kept);
        if !is_up {
            return;
        }
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.exponent += 1;
    }

    fn digit(&self, at: i32) -> char {
        let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0);
        char::from(b'0' + digit)
    }
}

fn number(mut digits: Digits, layout: &Layout) -> String {
    let precision = layout.precision.unwrap_or(6) as i32;
    match layout.conversion.to_ascii_lowercase() {
        'f' => fixed(digits, precision, layout.has('#')),
        'e' => scientific(digits, precision, layout.has('#')),
        _ => {
            let precision = precision.max(1);
            digits.round(precision);
            if digits.digits.is_empty() {
                return fixed(digits, precision - 1, false);
            }
            // From 10^-4 up to 10^precision.
            match digits.exponent {
                -3.. if digits.exponent <= precision => {
                    let behind = precision - digits.exponent;
                    fixed(digits, behind, false)
                }
                _ => scientific(digits, precision - 1, false),
            }
        }
    }
}

fn fixed(mut digits: Digits, behind: i32, has_point: bool) -> String {
    digits.round(digits.exponent + behind);
    let mut made = String::new();
    match digits.exponent {
        1.. => made.extend((0..digits.exponent).map(|at| digits.digit(at))),
        _ => made.push('0'),
    }
    if behind > 0 || has_point {
        made.push('.');
    }
    made.extend((0..behind).map(|at| digits.digit(digits.exponent + at)));
    made
}

fn scientific(mut digits: Digits, behind: i32, has_point: bool) -> String {
    digits.round(behind + 1);
    let mut made = String::new();
    made.push(digits.digit(0));
    if behind > 0 || has_point {
        made.push('.');
    }
    made.extend((1..=behind).map(|at| digits.digit(at)));
    let exponent = if digits.digits.is_empty() { 0 } else { digits.exponent - 1 };
    let _ = write!(made, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    made
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the standard library, which is exact; halves are where Java rounds the shortest digits instead.
        #[test]
        fn fixed_is_near(value in -1e9f64..1e9, behind in 0i32..9) {
            let shown = fixed(Digits::of_double(value.abs()), behind, false);
            let found: f64 = shown.parse().expect("a number");
            prop_assert!((found - value.abs()).abs() <= 0.5 * 10f64.powi(-behind) + 1e-6, "{value}: {shown}");
            prop_assert_eq!(shown.split_once('.').map_or(0, |(_, rest)| rest.len()) as i32, behind);
        }

        #[test]
        fn no_format_panics(format in "[%$<.0-9a-zA-Z#+, (-]{0,12}") {
            let _ = pieces_of(&format);
        }
    }
}
