use arrow::datatypes::{Field, Schema};
use flott_chunk::display::write_row;
use flott_formats::{Decoded, Decoder};
use proptest::prelude::*;

use super::*;

fn schema() -> SchemaRef {
    let row =
        DataType::Struct(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)].into());
    let entries = DataType::Struct(
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int32, true)].into(),
    );
    let fields = [
        ("k", DataType::Utf8),
        ("v", DataType::Int32),
        ("d", DataType::Decimal128(38, 18)),
        ("t", DataType::Timestamp(TimeUnit::Millisecond, None)),
        ("l", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
        ("f", DataType::Float64),
        ("a", DataType::new_list(DataType::Int32, true)),
        ("m", DataType::Map(Arc::new(Field::new("entries", entries, false)), false)),
        ("r", row),
        ("b", DataType::Binary),
        ("c", DataType::Date32),
    ];
    Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec()))
}

fn decode(input: &str, options: JsonOptions) -> (Vec<String>, Decoded) {
    let mut chunks = Vec::new();
    let decoded = JsonDecoder::new(&schema(), options).unwrap().decode(input.as_bytes(), true, 1, &mut chunks);
    let mut rows = Vec::new();
    for chunk in chunks {
        rows.extend((0..chunk.len()).map(|row| {
            let mut text = String::new();
            write_row(&chunk, row, &mut text);
            text
        }));
    }
    (rows, decoded)
}

#[test]
fn fields_become_columns() {
    let input = concat!(
        r#"{"k":"a\n","v":1,"d":799.929496989092949698,"t":"2024-01-01 00:00:01","l":"2024-01-01 00:00:01Z","f":1E10,"a":[1,null],"m":{"x":1,"y":null},"r":{"y":"é","z":1},"b":"aGk=","c":"2024-02-03"}"#,
        "\n\n",
        r#"{"v":" 2 ","k":{"a": [1, "b c"]},"other":[{}]}"#,
        "\n",
        r#"{"v":1.9}"#
    );
    let (rows, decoded) = decode(input, JsonOptions::default());
    assert_eq!(decoded, Decoded { bytes: input.len(), malformed: None });
    assert_eq!(
        rows,
        [
            "+I[a\n, 1, 799.929496989092949698, 2024-01-01T00:00:01, 2024-01-01T00:00:01Z, 1.0E10, [1, null], {x=1, y=null}, +I[null, é], x'6869', 2024-02-03]",
            r#"+I[{"a":[1,"b c"]}, 2, null, null, null, null, null, null, null, null, null]"#,
            "+I[null, 1, null, null, null, null, null, null, null, null, null]",
        ]
    );
}

#[test]
fn what_is_malformed_says_which_field_and_why() {
    let input = "{\"k\":\"a\",\"v\":1}\n{\"k\":\"b\",\"v\":\"x\"}\n{\"k\":\"c\"";
    let (rows, decoded) = decode(input, JsonOptions::default());
    assert_eq!((rows.len(), decoded.bytes), (1, 16));
    let malformed = decoded.malformed.unwrap();
    assert_eq!((malformed.reason.as_str(), malformed.bytes), ("field 'v': \"x\" is not an INT", 18));
    let (rows, decoded) = decode(input, JsonOptions { ignore_parse_errors: true, ..JsonOptions::default() });
    assert_eq!((rows.len(), decoded.malformed), (2, None));
    assert!(rows[1].starts_with("+I[b, null"), "{}", rows[1]);
    let (_, decoded) = decode("{}", JsonOptions { fail_on_missing_field: true, ..JsonOptions::default() });
    assert_eq!(decoded.malformed.unwrap().reason, "field 'k' is missing");
    assert!(decode("[1]", JsonOptions::default()).1.malformed.is_some());
    assert!(decode("{\"k\":1} x", JsonOptions::default()).1.malformed.is_some());
}

#[test]
fn rows_come_back_from_what_was_written() {
    let input = concat!(
        r#"{"k":"a","v":1,"d":0.000000010000000000,"t":"2024-01-01 00:00:01.5","l":null,"f":0.1,"a":[],"m":{"x":1},"r":{"x":null,"y":"\""},"b":"","c":"1969-12-31"}"#,
        "\n"
    );
    let mut chunks = Vec::new();
    JsonDecoder::new(&schema(), JsonOptions::default()).unwrap().decode(input.as_bytes(), true, 1, &mut chunks);
    let mut out = Vec::new();
    let options = JsonOptions { plain_decimals: true, ..JsonOptions::default() };
    JsonEncoder::new(options).encode(&chunks, true, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), input);
}

/// What Flink 2.3 writes for the same values, of DECIMAL(20, 10) and with `decimal-as-plain-number`.
#[test]
fn decimals_are_written_as_flink_does() {
    let cases: [(i128, &str, &str); 7] = [
        (125_000_000_000, "12.5", "12.5000000000"),
        (0, "0", "0.0000000000"),
        (1000, "1E-7", "0.0000001000"),
        (1_000_000_000_000, "1E+2", "100.0000000000"),
        (12_000_000_000_000, "1.2E+3", "1200.0000000000"),
        (-200_000_000_000, "-2E+1", "-20.0000000000"),
        (-12_000_000_000, "-1.2", "-1.2000000000"),
    ];
    for (value, short, plain) in cases {
        let decimals = Decimal128Array::from(vec![value]).with_precision_and_scale(20, 10).unwrap();
        for (plain_decimals, expected) in [(false, short), (true, plain)] {
            let mut out = String::new();
            write_scalar(&decimals, 0, plain_decimals, &mut out).unwrap();
            assert_eq!(out, expected);
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics(input in r#"[\{\}\[\]",:kvdtrma0-9eE.nul \\\n-]{0,80}"#, ignore in any::<bool>()) {
        let options = JsonOptions { ignore_parse_errors: ignore, ..JsonOptions::default() };
        let (_, decoded) = decode(&input, options);
        prop_assert!(decoded.bytes <= input.len());
    }
}
