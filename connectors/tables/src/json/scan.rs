//! The fields of plain objects, found in one pass.
//!
//! A plain object has no nested values and no escapes, as most rows have none. What is not plain, or not JSON at all, is left to
//! the parser, which reads everything and says what is wrong.

use super::Fields;

/// Puts the fields of a plain object, which is all of `text`, in their places. `place` says where a name belongs; it is told the
/// place of the name before, since names often come in the same order. Returns whether it is plain: if not, `fields` has some of
/// them.
pub(super) fn plain<'a>(
    text: &'a str,
    place: impl Fn(&str, Option<usize>) -> Option<usize>,
    fields: &mut Fields<'a>,
) -> bool {
    let bytes = text.as_bytes();
    let Some(mut at) = expect(bytes, 0, b'{') else { return false };
    if bytes.get(at) == Some(&b'}') {
        return at + 1 == bytes.len();
    }
    let mut before = None;
    loop {
        if bytes.get(at) != Some(&b'"') {
            return false;
        }
        let Some(end) = string_end(bytes, at + 1) else { return false };
        let name = &text[at + 1..end];
        let Some(start) = expect(bytes, blanks(bytes, end + 1), b':') else { return false };
        let Some(end) = value_end(bytes, start) else { return false };
        if let Some(found) = place(name, before) {
            // Of a name that comes twice the last counts, as in Jackson.
            fields[found] = Some(&text[start..end]);
            before = Some(found);
        }
        at = blanks(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = blanks(bytes, at + 1),
            Some(b'}') => return at + 1 == bytes.len(),
            _ => return false,
        }
    }
}

/// The first byte from `at` that is not blank.
#[inline]
fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where it goes on behind a byte and blanks.
#[inline]
fn expect(bytes: &[u8], at: usize, byte: u8) -> Option<usize> {
    (bytes.get(at) == Some(&byte)).then(|| blanks(bytes, at + 1))
}

/// Where the quote is that ends a string from `start`, if that has no escapes, and nothing that should be one.
#[inline]
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let inner = &bytes[start..start + memchr::memchr(b'"', &bytes[start..])?];
    // Without a way out of the loop, many bytes are compared at once.
    let is_odd = inner.iter().fold(false, |is_odd, byte| is_odd | (*byte == b'\\') | (*byte < b' '));
    (!is_odd).then_some(start + inner.len())
}

/// Where a value ends that is neither an object nor an array.
#[inline]
fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start)? {
        b'"' => string_end(bytes, start + 1).map(|end| end + 1),
        b'-' | b'0'..=b'9' => number_end(bytes, start),
        b't' => literal_end(bytes, start, b"true"),
        b'f' => literal_end(bytes, start, b"false"),
        b'n' => literal_end(bytes, start, b"null"),
        _ => None,
    }
}

fn literal_end(bytes: &[u8], start: usize, literal: &[u8]) -> Option<usize> {
    bytes[start..].starts_with(literal).then_some(start + literal.len())
}

fn number_end(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = start + usize::from(bytes[start] == b'-');
    let mut end = digits(whole);
    if end == whole || (bytes[whole] == b'0' && end > whole + 1) {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = digits(fraction);
        if end == fraction {
            return None;
        }
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let exponent = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if exponent > bytes.len() {
            return None;
        }
        end = digits(exponent);
        if end == exponent {
            return None;
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::smallvec;

    use super::*;
    use crate::json::members;

    const NAMES: [&str; 3] = ["a", "b", "é"];

    fn place(name: &str) -> Option<usize> {
        NAMES.iter().position(|known| *known == name)
    }

    fn scan(text: &str) -> Option<Fields<'_>> {
        let mut fields: Fields<'_> = smallvec![None; NAMES.len()];
        plain(text, |name, _| place(name), &mut fields).then_some(fields)
    }

    #[test]
    fn plain_objects_are_found_and_others_are_not() {
        let found = scan(r#"{"a":-1.5e+3, "x" : "y\u0041"}"#);
        assert!(found.is_none());
        let found = scan(r#"{"a":-1.5e+3, "x" : true ,"é": "ü" }"#).unwrap();
        assert_eq!(found.as_slice(), [Some("-1.5e+3"), None, Some("\"ü\"")]);
        assert_eq!(scan("{ }").unwrap().as_slice(), [None; 3]);
        for other in [
            "",
            "{",
            "{}x",
            "[1]",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":1e}",
            "{\"a\":-}",
            "{\"a\":tru}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{\"a\":\"x}",
            "{\"a\":{}}",
            "{\"a\":\"\t\"}",
            "{\"a\":1e+",
            "{\"a\":",
        ] {
            assert!(scan(other).is_none(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_is_plain_is_what_the_parser_finds(text in r#"\{("[abé]" ?: ?("[^"]{0,3}"|-?[0-9.eE+-]{1,5}|true|null|\{\}|[a-z0-9]{0,2}),? ?){0,3}\}?"#) {
            if let Some(found) = scan(&text) {
                prop_assert_eq!(members(text.as_bytes(), &place, NAMES.len()), Ok(found));
            }
        }
    }
}
