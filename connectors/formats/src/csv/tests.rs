use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flight {
    origin: String,
    delay: Option<i32>,
}

fn flight(origin: &str, delay: impl Into<Option<i32>>) -> Flight {
    Flight { origin: origin.into(), delay: delay.into() }
}

fn check(options: &CsvOptions, header: &[u8], input: &[u8], expected: &[Flight]) {
    let mut decoder = CsvDecoder::<Flight>::new(options);
    decoder.header(header).unwrap();
    let mut rows = Vec::new();
    let decoded = decoder.decode(input, true, 100, &mut rows);
    assert_eq!(decoded, Decoded { bytes: input.len(), malformed: None });
    assert_eq!(rows, expected);
}

fn malformed(options: &CsvOptions, input: &[u8]) -> (usize, Malformed) {
    let mut decoder = CsvDecoder::<Flight>::new(options);
    decoder.header(b"origin,delay\n").unwrap();
    let decoded = decoder.decode(input, true, 100, &mut Vec::new());
    (decoded.bytes, decoded.malformed.expect("a malformed record"))
}

#[test]
fn columns_are_matched_by_name() {
    let options = CsvOptions::default();
    let input = b"1,x,JFK\n\r\n\n,y,\"E \"\"W\"\", R\"\r\n-3,,LGA";
    check(
        &options,
        b"delay,other,origin\r\n",
        input,
        &[flight("JFK", 1), flight("E \"W\", R", None), flight("LGA", -3)],
    );
    check(&options, b"\xef\xbb\xbforigin,delay", b"", &[]);
}

#[test]
fn line_ends_of_every_kind() {
    let expected = [flight("JFK", 1), flight("EWR", 2)];
    for input in ["JFK,1\nEWR,2\n", "JFK,1\r\nEWR,2\r\n", "JFK,\"1\"\r\nEWR,\"2\"\r\n", "JFK,1\r\nEWR,2"] {
        for is_multiline in [false, true] {
            let options = CsvOptions { is_multiline, ..CsvOptions::default() };
            check(&options, b"origin,delay\r\n", input.as_bytes(), &expected);
        }
    }
}

#[test]
fn without_a_header_columns_are_matched_by_place() {
    let mut decoder = CsvDecoder::<(String, u8)>::new(&CsvOptions { delimiter: b';', ..CsvOptions::default() });
    let mut rows = Vec::new();
    let decoded = decoder.decode(b"a;1\nb;300\n", true, 100, &mut rows);
    assert_eq!(rows, [("a".to_owned(), 1)]);
    let reason = decoded.malformed.unwrap().reason;
    assert!(reason.starts_with("column 2: ") && reason.ends_with(", found '300'"), "{reason}");
}

#[test]
fn a_null_literal_is_an_empty_field() {
    let options = CsvOptions { null_literal: Some("NA".into()), ..CsvOptions::default() };
    check(&options, b"origin,delay\n", b"JFK,NA\nNA,1\n", &[flight("JFK", None), flight("", 1)]);
}

#[test]
fn malformed_rows_say_why() {
    let options = CsvOptions::default();
    let (bytes, bad) = malformed(&options, b"JFK,1\nEWR,soon\nLGA,2\n");
    assert_eq!((bytes, bad.bytes), (6, 9));
    assert!(
        bad.reason.starts_with("field 'delay' (column 2): ") && bad.reason.ends_with("found 'soon'"),
        "{}",
        bad.reason
    );
    assert_eq!(malformed(&options, b"JFK\n").1.reason, "the row has 1 fields, the header has 2");
    assert!(malformed(&options, b"J\xffK,1\n").1.reason.starts_with("field 'origin' (column 1): "));
}

#[test]
fn an_unclosed_quote_costs_one_line_unless_fields_span_lines() {
    let input = b"\"JFK,1\nEWR,2\n";
    let (bytes, bad) = malformed(&CsvOptions::default(), input);
    assert_eq!((bytes, bad.bytes), (0, 7));
    assert!(bad.reason.contains("whole_files"));
    let options = CsvOptions { is_multiline: true, ..CsvOptions::default() };
    let (bytes, bad) = malformed(&options, input);
    assert_eq!((bytes, bad.bytes, bad.reason.as_str()), (0, 13, "a quoted field is never closed"));
}

#[test]
fn headers_that_cannot_be() {
    let mut decoder = CsvDecoder::<Flight>::new(&CsvOptions::default());
    assert!(decoder.header(b"\r\n").unwrap_err().to_string().contains("header is empty"));
    assert!(decoder.header(b"\"a,b\n").unwrap_err().to_string().contains("does not end"));
}

#[test]
fn records_larger_than_the_first_buffers() {
    let wide: Vec<String> = (0..500).map(|i| format!("field-{i}-{}", "x".repeat(i))).collect();
    let mut decoder = CsvDecoder::<Vec<String>>::new(&CsvOptions::default());
    let mut rows = Vec::new();
    let input = format!("{}\n", wide.join(","));
    assert_eq!(decoder.decode(input.as_bytes(), false, 10, &mut rows).bytes, input.len());
    assert_eq!(rows, [wide]);
}

#[test]
fn the_header_is_written_once_a_file() {
    let mut encoder = CsvEncoder::new(b',', true);
    let mut out = Vec::new();
    encoder.encode(&[flight("a,b", 1)], true, &mut out).unwrap();
    encoder.encode(&[flight("c", None)], false, &mut out).unwrap();
    assert_eq!(out, b"origin,delay\n\"a,b\",1\nc,\n");
}

proptest! {
    /// Whatever is written is read again, however the bytes are cut into calls.
    #[test]
    fn round_trip(
        rows in proptest::collection::vec(("[a-z,\"\n\ré]{1,6}", proptest::option::of(any::<i32>())), 0..20),
        cut in 1usize..40,
    ) {
        let rows: Vec<Flight> = rows.into_iter().map(|(origin, delay)| Flight { origin, delay }).collect();
        let mut bytes = Vec::new();
        CsvEncoder::new(b',', false).encode(&rows, true, &mut bytes).unwrap();
        let options = CsvOptions { is_multiline: true, ..CsvOptions::default() };
        let mut decoder = CsvDecoder::<Flight>::new(&options);
        decoder.header(b"origin,delay\n").unwrap();

        let (mut read, mut at, mut given) = (Vec::new(), 0, 0);
        while at < bytes.len() {
            given = (given + cut).min(bytes.len());
            let decoded = decoder.decode(&bytes[at..given], given == bytes.len(), 7, &mut read);
            prop_assert_eq!(decoded.malformed, None);
            at += decoded.bytes;
        }
        prop_assert_eq!(read, rows);
    }
}
