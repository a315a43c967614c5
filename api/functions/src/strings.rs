//! Functions of texts. Positions and lengths are characters everywhere.

use std::sync::Arc;

use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{DataType, Int32Type};
use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::cast::Cast;
use crate::define::{Call, Function, Takes, Texts, Types, is};
use crate::types::coerce::common_type;

use Takes::{Any, Bytes, Data, Int, Text};

/// Reads what Java's decoder reads: the padding may be missing.
const READER: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

type Evaluated = Result<arrow::array::ArrayRef>;

/// A function of one text that is a text.
macro_rules! text_of_text {
    ($name:literal, $of:expr) => {
        Function::new($name, &[Text], is::text, |call| {
            let texts = call.texts(0)?;
            call.make_texts(|row| texts.get(row).map($of))
        })
        .strict()
    };
}

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        text_of_text!("flink_upper", str::to_uppercase).alias(&["ucase"]),
        text_of_text!("flink_lower", str::to_lowercase).alias(&["lcase"]),
        text_of_text!("flink_reverse", |text: &str| text.chars().rev().collect::<String>()),
        text_of_text!("flink_initcap", initcap),
        Function::new("flink_trim", &[Text, Text], is::text, |call| trim(call, true, true))
            .least(1)
            .strict()
            .alias(&["flink_btrim"]),
        Function::new("flink_ltrim", &[Text, Text], is::text, |call| trim(call, true, false)).least(1).strict(),
        Function::new("flink_rtrim", &[Text, Text], is::text, |call| trim(call, false, true)).least(1).strict(),
        Function::new("flink_substring", &[Text, Int, Int], is::text, substring).least(2).alias(&["flink_substr"]),
        Function::new("flink_left", &[Text, Int], is::text, |call| end(call, true)).strict(),
        Function::new("flink_right", &[Text, Int], is::text, |call| end(call, false)).strict(),
        Function::new("flink_char_length", &[Text], is::int, char_length)
            .strict()
            .alias(&["flink_character_length", "flink_length"]),
        Function::new("flink_locate", &[Text, Text, Int], is::int, locate).least(2).strict().alias(&["flink_position"]),
        Function::new("flink_instr", &[Text, Text, Int, Int], is::int, instr).least(2).strict(),
        Function::new("flink_replace", &[Text, Text, Text], is::text, |call| {
            let (texts, from, to) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
            call.make_texts(|row| Some(texts.get(row)?.replace(from.get(row)?, to.get(row)?)))
        })
        .strict(),
        Function::new("flink_repeat", &[Text, Int], is::text, |call| {
            let (texts, times) = (call.texts(0)?, call.ints(1)?);
            call.make_texts(|row| Some(texts.get(row)?.repeat(times.get(row)?.max(0) as usize)))
        })
        .strict(),
        Function::new("flink_lpad", &[Text, Int, Text], is::text, |call| pad(call, true)),
        Function::new("flink_rpad", &[Text, Int, Text], is::text, |call| pad(call, false)),
        Function::new("flink_overlay", &[Text, Text, Int, Int], is::text, overlay).least(3).strict(),
        Function::new("flink_concat", &[Any], is_concat, concat).variadic().strict(),
        Function::new("flink_concat_ws", &[Text, Any], is::text, concat_ws).variadic(),
        Function::new("split_index", &[Text, Any, Int], is::text, split_index),
        Function::new("split", &[Text, Text], is_texts, split),
        Function::new("flink_ascii", &[Text], is::int, |call| {
            let texts = call.texts(0)?;
            call.make::<Int32Type>(|row| Some(texts.get(row)?.bytes().next().map_or(0, |byte| i32::from(byte as i8))))
        })
        .strict(),
        Function::new("flink_chr", &[Int], is::text, |call| {
            let codes = call.ints(0)?;
            call.make_texts(|row| {
                let code = codes.get(row)?;
                Some(if code < 0 { String::new() } else { char::from((code & 0xff) as u8).to_string() })
            })
        })
        .strict(),
        Function::new("flink_encode", &[Text, Text], is::bytes, |call| {
            let (texts, charsets) = (call.texts(0)?, call.texts(1)?);
            call.make_bytes(|row| encode(texts.get(row)?, charsets.get(row)?))
        }),
        Function::new("flink_decode", &[Bytes, Text], is::text, |call| {
            let (values, charsets) = (call.bytes(0)?, call.texts(1)?);
            call.make_texts(|row| decode(values.get(row)?, charsets.get(row)?))
        }),
        Function::new("to_base64", &[Data], is::text, |call| {
            let values = call.bytes(0)?;
            call.make_texts(|row| values.get(row).map(|value| STANDARD.encode(value)))
        })
        .strict(),
        Function::new("from_base64", &[Data], is::text, |call| {
            let values = call.bytes(0)?;
            call.make_texts(|row| Some(String::from_utf8_lossy(&READER.decode(values.get(row)?).ok()?).into_owned()))
        }),
        Function::new("startswith", &[Data, Data], is::boolean, |call| {
            let (values, parts) = (call.bytes(0)?, call.bytes(1)?);
            call.make_bools(|row| Some(values.get(row)?.starts_with(parts.get(row)?)))
        })
        .strict(),
        Function::new("endswith", &[Data, Data], is::boolean, |call| {
            let (values, parts) = (call.bytes(0)?, call.bytes(1)?);
            call.make_bools(|row| Some(values.get(row)?.ends_with(parts.get(row)?)))
        })
        .strict(),
        Function::new("flink_translate", &[Text, Text, Text], is::text, |call| {
            let (texts, from, to) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
            call.make_texts(|row| translate(texts.get(row)?, from.get(row).unwrap_or(""), to.get(row).unwrap_or("")))
        }),
        Function::new(
            "elt",
            &[Int, Data],
            |of| common_type(&of.types[1..]),
            |call| {
                let at = call.ints(0)?;
                let choice = |row: usize| at.get(row).map(|at| usize::try_from(at).unwrap_or(usize::MAX));
                crate::conditional::choose(call, 1, |row| choice(row).filter(|at| (1..call.columns.len()).contains(at)))
            },
        )
        .least(2)
        .variadic(),
        Function::new("bin", &[Int], is::text, |call| {
            let values = call.ints(0)?;
            call.make_texts(|row| values.get(row).map(|value| format!("{value:b}")))
        })
        .strict(),
        Function::new(
            "flink_hex",
            &[Any],
            |of| (Data.accepts(&of.types[0]) || Int.accepts(&of.types[0])).then_some(DataType::Utf8),
            hex,
        )
        .strict(),
        Function::new("unhex", &[Text], is::bytes, |call| {
            let texts = call.texts(0)?;
            call.make_bytes(|row| unhex(texts.get(row)?))
        }),
        Function::new("is_decimal", &[Any], is::boolean, |call| {
            check(call, |text| crate::text::read_double(text).is_some() && !text.contains(['N', 'I']))
        })
        .never_null(),
        Function::new("is_digit", &[Any], is::boolean, |call| check(call, |text| text.chars().all(char::is_numeric)))
            .never_null(),
        Function::new("is_alpha", &[Any], is::boolean, |call| {
            check(call, |text| text.chars().all(char::is_alphabetic))
        })
        .never_null(),
    ];
    functions.into_iter().map(Function::make).collect()
}

fn check(call: &Call<'_>, of: impl Fn(&str) -> bool) -> Evaluated {
    let shown = shown(call, 0)?;
    call.make_bools(|row| Some(shown.get(row).is_some_and(|text| !text.is_empty() && of(text))))
}

/// An argument of any type as a text.
pub(crate) fn shown(call: &Call<'_>, at: usize) -> Result<Texts> {
    let cast = Cast { zone: call.zone, is_try: true };
    let mut columns = call.columns.clone();
    columns[at].array = cast.show(&columns[at].array)?;
    Call { columns, ..*call }.texts(at)
}

fn is_texts(_: &Types<'_>) -> Option<DataType> {
    Some(crate::types::array_of(arrow::datatypes::Field::new("element", DataType::Utf8, true)))
}

fn is_concat(of: &Types<'_>) -> Option<DataType> {
    match of.types.iter().all(|of| *of == DataType::Binary) {
        true => Some(DataType::Binary),
        false => Some(DataType::Utf8),
    }
}

fn initcap(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut is_start = true;
    for c in text.chars() {
        match is_start {
            true => made.extend(c.to_uppercase()),
            false => made.extend(c.to_lowercase()),
        }
        is_start = !c.is_alphanumeric();
    }
    made
}

fn trim(call: &Call<'_>, at_start: bool, at_end: bool) -> Evaluated {
    let texts = call.texts(0)?;
    let of = if call.has(1) { Some(call.texts(1)?) } else { None };
    call.make_texts(|row| {
        let mut text = texts.get(row)?;
        let of = of.as_ref().map_or(Some(" "), |of| of.get(row))?;
        if at_start {
            text = text.trim_start_matches(|c| of.contains(c));
        }
        if at_end {
            text = text.trim_end_matches(|c| of.contains(c));
        }
        Some(text)
    })
}

/// The byte at which a character starts.
fn byte_of(text: &str, character: usize) -> usize {
    match text.is_ascii() {
        true => character.min(text.len()),
        false => text.char_indices().nth(character).map_or(text.len(), |(at, _)| at),
    }
}

fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// From a character on, the first being 1; from the end if negative.
fn substring(call: &Call<'_>) -> Evaluated {
    let (texts, starts) = (call.texts(0)?, call.ints(1)?);
    let lengths = if call.has(2) { Some(call.ints(2)?) } else { None };
    call.make_texts(|row| {
        let (text, start) = (texts.get(row)?, starts.get(row)?);
        let most = match &lengths {
            Some(lengths) => usize::try_from(lengths.get(row)?).ok()?,
            None => usize::MAX,
        };
        let start = match start {
            0 => 0,
            1.. => start as usize - 1,
            _ => match length(text).checked_sub(start.unsigned_abs() as usize) {
                Some(start) => start,
                None => return Some(""),
            },
        };
        let rest = &text[byte_of(text, start)..];
        Some(&rest[..byte_of(rest, most)])
    })
}

fn end(call: &Call<'_>, is_left: bool) -> Evaluated {
    let (texts, lengths) = (call.texts(0)?, call.ints(1)?);
    call.make_texts(|row| {
        let (text, most) = (texts.get(row)?, lengths.get(row)?.max(0) as usize);
        Some(match is_left {
            true => &text[..byte_of(text, most)],
            false => &text[byte_of(text, length(text).saturating_sub(most))..],
        })
    })
}

fn char_length(call: &Call<'_>) -> Evaluated {
    let texts = call.texts(0)?;
    call.make::<Int32Type>(|row| texts.get(row).map(|text| length(text) as i32))
}

/// Where a part is found in a text from the place `start` on, both from 1; 0 if it is not there. An empty part is at the
/// very beginning, wherever the search starts, as in Flink.
fn place_of(part: &str, text: &str, start: usize) -> usize {
    if part.is_empty() {
        return 1;
    }
    let from = byte_of(text, start.saturating_sub(1));
    text[from..].find(part).map_or(0, |at| length(&text[..from + at]) + 1)
}

/// The place of the occurrence of that number; they may overlap.
fn place_of_nth(part: &str, text: &str, start: usize, number: i64) -> usize {
    if part.is_empty() {
        return 1;
    }
    let mut from = start;
    for _ in 1..number {
        match place_of(part, text, from) {
            0 => return 0,
            found => from = found + 1,
        }
    }
    place_of(part, text, from)
}

fn locate(call: &Call<'_>) -> Evaluated {
    let (parts, texts) = (call.texts(0)?, call.texts(1)?);
    let starts = if call.has(2) { Some(call.ints(2)?) } else { None };
    call.make::<Int32Type>(|row| {
        let start = starts.as_ref().map_or(Some(1), |starts| starts.get(row))?;
        Some(place_of(parts.get(row)?, texts.get(row)?, start.max(1) as usize) as i32)
    })
}

/// From the end if the start is negative; from nowhere if it is 0.
fn instr(call: &Call<'_>) -> Evaluated {
    let (texts, parts) = (call.texts(0)?, call.texts(1)?);
    let starts = if call.has(2) { Some(call.ints(2)?) } else { None };
    let times = if call.has(3) { Some(call.ints(3)?) } else { None };
    let reversed = |text: &str| text.chars().rev().collect::<String>();
    call.make::<Int32Type>(|row| {
        let (part, text) = (parts.get(row)?, texts.get(row)?);
        let start = starts.as_ref().map_or(Some(1), |starts| starts.get(row))?;
        let times = times.as_ref().map_or(Some(1), |times| times.get(row))?;
        if start == 0 || times < 1 {
            return Some(0);
        }
        let distance = start.unsigned_abs() as usize;
        if start > 0 {
            return Some(place_of_nth(part, text, distance, times) as i32);
        }
        Some(match place_of_nth(&reversed(part), &reversed(text), distance, times) {
            0 => 0,
            found => (length(text) + 2 - found - length(part)) as i32,
        })
    })
}

fn pad(call: &Call<'_>, is_left: bool) -> Evaluated {
    let (texts, lengths, pads) = (call.texts(0)?, call.ints(1)?, call.texts(2)?);
    call.make_texts(|row| {
        let (text, pad) = (texts.get(row)?, pads.get(row)?);
        let wanted = usize::try_from(lengths.get(row)?).ok()?;
        // Even if there is nothing to fill.
        if pad.is_empty() {
            return None;
        }
        let found = length(text);
        if found >= wanted {
            return Some(text[..byte_of(text, wanted)].to_owned());
        }
        let fill: String = pad.chars().cycle().take(wanted - found).collect();
        Some(if is_left { fill + text } else { text.to_owned() + &fill })
    })
}

fn overlay(call: &Call<'_>) -> Evaluated {
    let (texts, news, starts) = (call.texts(0)?, call.texts(1)?, call.ints(2)?);
    let lengths = if call.has(3) { Some(call.ints(3)?) } else { None };
    call.make_texts(|row| {
        let (text, new, start) = (texts.get(row)?, news.get(row)?, starts.get(row)?);
        let count = match &lengths {
            Some(lengths) => lengths.get(row)?,
            None => length(new) as i64,
        };
        if start <= 0 || start > length(text) as i64 {
            return Some(text.to_owned());
        }
        let start = start as usize - 1;
        let end = if count < 0 { length(text) } else { start.saturating_add(count as usize) };
        Some([&text[..byte_of(text, start)], new, &text[byte_of(text, end)..]].concat())
    })
}

fn concat(call: &Call<'_>) -> Evaluated {
    if *call.returns == DataType::Binary {
        let parts = (0..call.columns.len()).map(|at| call.bytes(at)).collect::<Result<Vec<_>>>()?;
        return call.make_bytes(|row| {
            parts.iter().map(|part| part.get(row)).collect::<Option<Vec<_>>>().map(|all| all.concat())
        });
    }
    let parts = (0..call.columns.len()).map(|at| shown(call, at)).collect::<Result<Vec<_>>>()?;
    call.make_texts(|row| parts.iter().map(|part| part.get(row)).collect::<Option<String>>())
}

fn concat_ws(call: &Call<'_>) -> Evaluated {
    let parts = (0..call.columns.len()).map(|at| shown(call, at)).collect::<Result<Vec<_>>>()?;
    call.make_texts(|row| {
        let separator = parts[0].get(row)?;
        Some(parts[1..].iter().filter_map(|part| part.get(row)).collect::<Vec<_>>().join(separator))
    })
}

fn split_index(call: &Call<'_>) -> Evaluated {
    // The separator is a text or the code of a character.
    let texts = call.texts(0)?;
    let at = call.ints(2)?;
    let codes = Int.accepts(call.data_type(1)).then(|| call.ints(1)).transpose()?;
    let separators = shown(call, 1)?;
    call.make_texts(|row| {
        let (text, at) = (texts.get(row)?, usize::try_from(at.get(row)?).ok()?);
        if text.is_empty() {
            return None;
        }
        match &codes {
            Some(codes) => text.split(char::from_u32(codes.get(row)? as u32)?).nth(at),
            None => text.split(separators.get(row)?).nth(at),
        }
    })
}

fn split(call: &Call<'_>) -> Evaluated {
    let (texts, separators) = (call.texts(0)?, call.texts(1)?);
    let mut made = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
    for row in 0..call.rows {
        let (Some(text), Some(separator)) = (texts.get(row), separators.get(row)) else {
            made.append(false);
            continue;
        };
        if separator.is_empty() {
            text.chars().for_each(|c| made.values().append_value(c.to_string()));
        } else if !text.is_empty() {
            // An empty text has no parts.
            text.split(separator).for_each(|part| made.values().append_value(part));
        }
        made.append(true);
    }
    Ok(arrow_cast(&(Arc::new(made.finish()) as arrow::array::ArrayRef), call.returns)?)
}

fn encode(text: &str, charset: &str) -> Option<Vec<u8>> {
    let narrow = |most: u32| text.chars().map(move |c| if u32::from(c) <= most { c as u8 } else { b'?' }).collect();
    Some(match charset.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => text.as_bytes().to_vec(),
        "US-ASCII" | "ASCII" => narrow(127),
        "ISO-8859-1" | "LATIN1" => narrow(255),
        "UTF-16BE" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "UTF-16LE" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "UTF-16" => [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
        _ => return None,
    })
}

fn decode(bytes: &[u8], charset: &str) -> Option<String> {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<_> = bytes.chunks(2).map(|pair| of([pair[0], pair.get(1).copied().unwrap_or(0)])).collect();
        String::from_utf16_lossy(&units)
    };
    Some(match charset.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => String::from_utf8_lossy(bytes).into_owned(),
        "US-ASCII" | "ASCII" => bytes.iter().map(|b| if b.is_ascii() { char::from(*b) } else { '\u{fffd}' }).collect(),
        "ISO-8859-1" | "LATIN1" => bytes.iter().map(|b| char::from(*b)).collect(),
        "UTF-16LE" => wide(u16::from_le_bytes),
        "UTF-16BE" => wide(u16::from_be_bytes),
        "UTF-16" => wide(u16::from_be_bytes).trim_start_matches('\u{feff}').to_owned(),
        _ => return None,
    })
}

fn translate(text: &str, from: &str, to: &str) -> Option<String> {
    let to: Vec<_> = to.chars().collect();
    let one = |c: char| match from.chars().position(|of| of == c) {
        Some(at) => to.get(at).copied(),
        None => Some(c),
    };
    Some(text.chars().filter_map(one).collect())
}

fn hex(call: &Call<'_>) -> Evaluated {
    if Int.accepts(call.data_type(0)) {
        let values = call.ints(0)?;
        return call.make_texts(|row| values.get(row).map(|value| format!("{value:X}")));
    }
    let values = call.bytes(0)?;
    call.make_texts(|row| {
        values.get(row).map(|value| value.iter().map(|byte| format!("{byte:02X}")).collect::<String>())
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let padded = if text.len() % 2 == 1 { format!("0{text}") } else { text.to_owned() };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    padded.as_bytes().chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}
