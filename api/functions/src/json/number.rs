//! Numbers as Java's `BigDecimal` shows them.

/// A number as JSON has it. Whole ones stay; others keep their digits, with an exponent if that is far from zero.
pub(super) fn write(text: &str, out: &mut String) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(mantissa, e)| (mantissa, Some(e)));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let Some(exponent) = exponent else {
        match mantissa.split_once('.') {
            None => {
                out.push_str(if mantissa == "0" { "" } else { sign });
                out.push_str(mantissa);
                return;
            }
            Some((whole, fraction)) => return show(sign, whole, fraction, 0, out),
        }
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // An exponent that no number has is left as it is.
    match exponent.parse::<i32>() {
        Ok(exponent) if exponent.abs() < 100_000_000 => show(sign, whole, fraction, exponent, out),
        _ => out.push_str(text),
    }
}

fn show(sign: &str, whole: &str, fraction: &str, exponent: i32, out: &mut String) {
    let digits = format!("{whole}{fraction}");
    let digits = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let scale = fraction.len() as i32 - exponent;
    let adjusted = digits.len() as i32 - 1 - scale;
    if digits != "0" {
        out.push_str(sign);
    }
    if scale == 0 {
        out.push_str(digits);
    } else if scale > 0 && adjusted >= -6 {
        let point = digits.len() as i32 - scale;
        match usize::try_from(point) {
            Ok(point @ 1..) => {
                out.push_str(&digits[..point]);
                out.push('.');
                out.push_str(&digits[point..]);
            }
            _ => {
                out.push_str("0.");
                out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
                out.push_str(digits);
            }
        }
    } else {
        out.push_str(&digits[..1]);
        if digits.len() > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        out.push_str(&format!("E{adjusted:+}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_java() {
        for (text, expected) in [
            ("1.50", "1.50"),
            ("1e3", "1E+3"),
            ("1.0E10", "1.0E+10"),
            ("1.0E20", "1.0E+20"),
            ("1.0E-7", "1.0E-7"),
            ("0.0000001", "1E-7"),
            ("0.000001", "0.000001"),
            ("-0.05", "-0.05"),
            ("12.5e1", "125"),
            ("12.5e2", "1.25E+3"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("-0", "0"),
            ("0.0", "0.0"),
            ("0e5", "0E+5"),
            ("1e999999999999", "1e999999999999"),
        ] {
            let mut made = String::new();
            write(text, &mut made);
            assert_eq!(made, expected, "{text}");
        }
    }
}
