use arrow::datatypes::{Field, Schema};
use flott_chunk::display::write_row;
use flott_formats::{Decoded, Decoder};
use proptest::prelude::*;

use super::*;

fn schema() -> SchemaRef {
    let row =
        DataType::Struct(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)].into());
    let fields = [("id", DataType::Int32), ("s", DataType::Utf8), ("r", row)];
    Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec()))
}

fn options(format: ChangeFormat, options: &[(&str, &str)]) -> ChangeOptions {
    let options = options.iter().map(|(key, value)| (format!("{}.{key}", format.name()), (*value).to_owned()));
    let options = Options::new("t", options);
    let read = ChangeOptions::read(&options, format).unwrap();
    options.finish().unwrap();
    read
}

fn chunks_of(schema: &SchemaRef, input: &str, options: ChangeOptions) -> (Vec<Chunk>, Decoded) {
    let mut chunks = Vec::new();
    let decoded = ChangeDecoder::new(schema, options).unwrap().decode(input.as_bytes(), true, 1, &mut chunks);
    (chunks, decoded)
}

fn decode(input: &str, options: ChangeOptions) -> (Vec<String>, Decoded) {
    let (chunks, decoded) = chunks_of(&schema(), input, options);
    let shown = |chunk: &Chunk, row| {
        let mut text = String::new();
        write_row(chunk, row, &mut text);
        text
    };
    (chunks.iter().flat_map(|chunk| (0..chunk.len()).map(move |row| shown(chunk, row))).collect(), decoded)
}

/// The rows of lines all of which can be read or left out.
fn rows(input: &str, options: ChangeOptions) -> Vec<String> {
    let (rows, decoded) = decode(input, options);
    assert_eq!(decoded, Decoded { bytes: input.len(), malformed: None });
    rows
}

fn reason(input: &str, options: ChangeOptions) -> String {
    decode(input, options).1.malformed.expect("it is malformed").reason
}

const CHANGES: &str = concat!(
    r#"{"before":null,"after":{"id":1,"s":"a\"é","r":{"x":1,"y":"z"}},"op":"r","source":{"x":[1]},"ts_ms":1}"#,
    "\n",
    r#"{"after":{"id":2,"s":null},"op":"c"}"#,
    "\n\n",
    r#"{"before":{"id":1,"s":"a"},"after":{"id":1,"s":"b"},"op":"u"}"#,
    "\n",
    r#"{"op":"d","before":{"id":2},"after":null}"#,
);

#[test]
fn debezium_becomes_changes() {
    let changes =
        ["+I[1, a\"é, +I[1, z]]", "+I[2, null, null]", "-U[1, a, null]", "+U[1, b, null]", "-D[2, null, null]"];
    assert_eq!(rows(CHANGES, options(ChangeFormat::Debezium, &[])), changes);
    let with_schema = r#"{"schema":{"type":"struct"},"payload":{"before":null,"after":{"id":1,"s":"p"},"op":"c"}}"#;
    let include = options(ChangeFormat::Debezium, &[("schema-include", "true")]);
    assert_eq!(rows(with_schema, include.clone()), ["+I[1, p, null]"]);
    assert!(include.check_sink("t").unwrap_err().to_string().contains("debezium-json.schema-include"));
    // Only how many rows there are is asked for.
    let none: SchemaRef = Arc::new(Schema::empty());
    let (chunks, _) = chunks_of(&none, CHANGES, options(ChangeFormat::Debezium, &[]));
    assert_eq!((chunks[0].len(), chunks[0].kind(4)), (5, RowKind::Delete));
}

/// As Flink, but that of canal's messages nothing is left.
#[test]
fn what_is_malformed_is_left_out_as_a_whole() {
    let input = r#"{"before":null,"after":{"id":1,"s":"a"},"op":"c"}
{"before":null,"after":{"id":1,"s":"b"},"op":"u"}
{"before":null,"after":null,"op":"d"}
{"before":{"id":1},"after":5,"op":"u"}
{"before":{"id":1},"after":null,"op":"u"}
{"before":null,"after":{"id":3},"op":"t"}
{"before":null,"after":{"id":4}}
{"before":null,"after":{"id":"x","s":"bad id"},"op":"c"}
not json
{"before":null,"after":null,"op":"c"}
{"before":{"id":1,"s":"a"},"after":{"id":1,"s":"c"},"op":"u"}
"#;
    let ignore = [("ignore-parse-errors", "true")];
    let expected = ["+I[1, a, null]", "+I[null, bad id, null]", "-U[1, a, null]", "+U[1, c, null]"];
    assert_eq!(rows(input, options(ChangeFormat::Debezium, &ignore)), expected);
    let input = r#"{"data":null,"type":"INSERT"}
{"data":[{"id":"1"},5],"type":"INSERT"}
{"data":[{"id":"1"},null],"type":"INSERT"}
{"data":[{"id":"1"},{"id":"2"}],"old":[{"id":"3"}],"type":"UPDATE"}
{"data":[{"id":"1"}],"old":null,"type":"UPDATE"}
{"data":[{"id":"7"}],"type":"TRUNCATE"}
{"data":[{"id":"8"}],"type":"insert"}
"#;
    assert!(rows(input, options(ChangeFormat::Canal, &ignore)).is_empty());
}

#[test]
fn what_is_malformed_says_why() {
    let debezium = || options(ChangeFormat::Debezium, &[]);
    for (op, kind) in [("u", "an UPDATE"), ("d", "a DELETE")] {
        let reason = reason(&format!(r#"{{"before":null,"after":{{"id":1}},"op":"{op}"}}"#), debezium());
        assert!(reason.contains(kind) && reason.contains("REPLICA IDENTITY"), "{reason}");
    }
    assert_eq!(reason(r#"{"after":{"id":1},"op":"t"}"#, debezium()), "'op' is \"t\", which is none of c, r, u and d");
    assert!(reason(r#"{"schema":null,"payload":{}}"#, debezium()).contains("schema-include"));
    assert_eq!(reason(r#"{"op":"c"}"#, debezium()), "'after' is null or missing");
    assert!(reason(r#"{"before":{"id":1},"after":5,"op":"u"}"#, debezium()).starts_with("'after': "));
    let maxwell = |input: &str| reason(input, options(ChangeFormat::Maxwell, &[]));
    assert_eq!(maxwell(r#"{"data":{"id":1},"type":"update"}"#), "'old' is null or missing");
    assert!(maxwell(r#"{"data":{"id":1},"type":"bootstrap-start"}"#).contains("bootstrap-start"));
    let canal = |input: &str| reason(input, options(ChangeFormat::Canal, &[("table.include", "t")]));
    assert!(canal(r#"{"data":[],"type":"INSERT"}"#).contains("table.include"));
    assert_eq!(canal(r#"{"data":[{}],"old":[],"type":"UPDATE","table":"t"}"#), "'data' has 1 rows and 'old' has 0");
}

/// The second row of an update is wrong in a field that comes behind others that are right: neither row is there, and those of
/// the lines before it are.
#[test]
fn half_an_update_leaves_nothing_behind() {
    let first = r#"{"before":{"id":1,"s":"a"},"after":{"id":1,"s":"b"},"op":"u"}"#;
    let second = r#"{"before":{"id":1,"s":"b"},"after":{"id":1,"s":"c","r":7},"op":"u"}"#;
    let input = format!("{first}\n{second}\n{first}\n");
    let (rows, decoded) = decode(&input, options(ChangeFormat::Debezium, &[]));
    assert_eq!(rows, ["-U[1, a, null]", "+U[1, b, null]"]);
    assert_eq!(decoded.bytes, first.len() + 1);
    let malformed = decoded.malformed.unwrap();
    assert_eq!((malformed.bytes, malformed.reason.as_str()), (second.len() + 1, "field 'r': 7 is not a ROW"));
}

/// As Flink, but for the third line: there Flink takes a field that was different in one row for different in both, and gives
/// `-U[null, null]` and `-U[2, null]`.
#[test]
fn canal_becomes_changes() {
    let input = r#"{"data":[{"id":"1","s":"a"},{"id":"2","s":"b"}],"old":null,"type":"INSERT","database":"db","table":"t1","es":1}
{"data":[{"id":"1","s":"x"},{"id":"2","s":null}],"old":[{"s":"a"},{"s":"b"}],"type":"UPDATE","database":"db","table":"t1"}
{"data":[{"id":"3","s":"x"},{"id":"4","s":"y"}],"old":[{"s":null},{"id":"2"}],"type":"UPDATE","database":"db","table":"t1"}
{"data":[{"id":"1","s":"x"}],"old":null,"type":"DELETE","database":"db","table":"t1"}
{"data":[{"id":"9","s":"x"}],"old":null,"type":"INSERT","database":"db2","table":"t1"}
{"data":[{"id":"8","s":"x"}],"old":null,"type":"INSERT","database":"db","table":"u1"}
{"data":null,"old":null,"type":"CREATE","database":"db","table":"t1"}
"#;
    let only = options(ChangeFormat::Canal, &[("database.include", "db"), ("table.include", "^t.*")]);
    let expected = [
        "+I[1, a, null]",
        "+I[2, b, null]",
        "-U[1, a, null]",
        "+U[1, x, null]",
        "-U[2, b, null]",
        "+U[2, null, null]",
        "-U[3, null, null]",
        "+U[3, x, null]",
        "-U[2, y, null]",
        "+U[4, y, null]",
        "-D[1, x, null]",
    ];
    assert_eq!(rows(input, only), expected);
    let all = rows(input, options(ChangeFormat::Canal, &[]));
    assert_eq!(all[expected.len()..], ["+I[9, x, null]", "+I[8, x, null]"]);
    let wrong = Options::new("t", [("canal-json.table.include", "(")]);
    let reason = ChangeOptions::read(&wrong, ChangeFormat::Canal).unwrap_err().to_string();
    assert!(reason.contains("'canal-json.table.include' is '('"), "{reason}");
}

#[test]
fn maxwell_becomes_changes() {
    let input = r#"{"database":"d","table":"t","type":"insert","data":{"id":1,"s":"a"}}
{"type":"update","data":{"id":1,"s":"b"},"old":{"s":"a"}}
{"type":"update","data":{"id":1,"s":"c"},"old":{"s":null,"id":7}}
{"type":"delete","data":{"id":1,"s":"c"}}
"#;
    let expected =
        ["+I[1, a, null]", "-U[1, a, null]", "+U[1, b, null]", "-U[7, null, null]", "+U[1, c, null]", "-D[1, c, null]"];
    assert_eq!(rows(input, options(ChangeFormat::Maxwell, &[])), expected);
}

fn written(options: ChangeOptions) -> String {
    let (chunks, _) = chunks_of(&schema(), CHANGES, self::options(ChangeFormat::Debezium, &[]));
    let mut out = Vec::new();
    ChangeEncoder::new(options).encode(&chunks, true, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What Flink 2.3 writes for the same rows.
#[test]
fn changes_are_written_as_flink_does() {
    let expected = r#"{"before":null,"after":{"id":1,"s":"a\"é","r":{"x":1,"y":"z"}},"op":"c"}
{"before":null,"after":{"id":2,"s":null,"r":null},"op":"c"}
{"before":{"id":1,"s":"a","r":null},"after":null,"op":"d"}
{"before":null,"after":{"id":1,"s":"b","r":null},"op":"c"}
{"before":{"id":2,"s":null,"r":null},"after":null,"op":"d"}
"#;
    assert_eq!(written(options(ChangeFormat::Debezium, &[])), expected);
    let expected = r#"{"after":{"id":1,"s":"a\"é","r":{"x":1,"y":"z"}},"op":"c"}
{"after":{"id":2},"op":"c"}
{"before":{"id":1,"s":"a"},"op":"d"}
{"after":{"id":1,"s":"b"},"op":"c"}
{"before":{"id":2},"op":"d"}
"#;
    assert_eq!(written(options(ChangeFormat::Debezium, &[("encode.ignore-null-fields", "true")])), expected);
    let expected = r#"{"data":[{"id":1,"s":"a\"é","r":{"x":1,"y":"z"}}],"type":"INSERT"}
{"data":[{"id":2,"s":null,"r":null}],"type":"INSERT"}
{"data":[{"id":1,"s":"a","r":null}],"type":"DELETE"}
{"data":[{"id":1,"s":"b","r":null}],"type":"INSERT"}
{"data":[{"id":2,"s":null,"r":null}],"type":"DELETE"}
"#;
    assert_eq!(written(options(ChangeFormat::Canal, &[])), expected);
    let expected = expected.replace(['[', ']'], "").replace("INSERT", "insert").replace("DELETE", "delete");
    assert_eq!(written(options(ChangeFormat::Maxwell, &[])), expected);
}

#[test]
fn options_that_are_not_there_are_refused() {
    for name in ["debezium-json", "canal-json", "maxwell-json"] {
        for key in ["fail-on-missing-field", "map-null-key.literal"] {
            let key = format!("{name}.{key}");
            let options = Options::new("t", [(key.as_str(), "true")]);
            ChangeOptions::read(&options, ChangeFormat::of(name).unwrap()).unwrap();
            assert!(options.finish().unwrap_err().to_string().contains(&format!("'{key}'")));
        }
        let key = format!("{name}.map-null-key.mode");
        let drop = Options::new("t", [(key.as_str(), "DROP")]);
        let reason = ChangeOptions::read(&drop, ChangeFormat::of(name).unwrap()).unwrap_err().to_string();
        assert!(reason.contains(&format!("'{key}' is 'DROP'")), "{reason}");
    }
    assert_eq!(ChangeFormat::of("json"), None);
}

proptest! {
    /// What is written is read again, in each format, wherever the input is cut.
    #[test]
    fn changes_come_back(
        changes in prop::collection::vec((any::<bool>(), any::<Option<i32>>(), any::<Option<String>>()), 0..20),
        at in any::<prop::sample::Index>(),
    ) {
        use arrow::array::{ArrayRef, Int32Array, StringArray};
        let ids: ArrayRef = Arc::new(changes.iter().map(|change| change.1).collect::<Int32Array>());
        let texts: ArrayRef = Arc::new(changes.iter().map(|change| change.2.as_deref()).collect::<StringArray>());
        let schema: SchemaRef = Arc::new(schema().project(&[0, 1]).unwrap());
        let kinds = changes.iter().map(|change| if change.0 { RowKind::Insert } else { RowKind::Delete }).collect();
        let chunk = Chunk::of_columns(&schema, vec![ids, texts], changes.len(), kinds).unwrap();
        for format in [ChangeFormat::Debezium, ChangeFormat::Canal, ChangeFormat::Maxwell] {
            let mut out = Vec::new();
            ChangeEncoder::new(options(format, &[])).encode(std::slice::from_ref(&chunk), true, &mut out).unwrap();
            let mut decoder = ChangeDecoder::new(&schema, options(format, &[])).unwrap();
            let mut chunks = Vec::new();
            let first = decoder.decode(&out[..at.index(out.len() + 1)], false, 1, &mut chunks);
            let second = decoder.decode(&out[first.bytes..], true, 1, &mut chunks);
            prop_assert_eq!((first.malformed, second.malformed), (None, None));
            prop_assert_eq!(first.bytes + second.bytes, out.len());
            match chunks.is_empty() {
                true => prop_assert!(changes.is_empty()),
                false => prop_assert_eq!(&Chunk::concat(&chunks).unwrap(), &chunk),
            }
        }
    }

    #[test]
    fn nothing_panics(input in r#"([\{\}\[\]",: 0a\\\n]|"(before|after|op|data|old|type|id|r)":|"(c|u|d|INSERT|UPDATE|update)"|null){0,30}"#, ignore in any::<bool>()) {
        for format in [ChangeFormat::Debezium, ChangeFormat::Canal, ChangeFormat::Maxwell] {
            let ignore = if ignore { "true" } else { "false" };
            let (_, decoded) = decode(&input, options(format, &[("ignore-parse-errors", ignore)]));
            prop_assert!(decoded.bytes <= input.len());
        }
    }
}

/// Counts and sums over the changes that scripts are tested with, by hand, against what Flink made of them.
#[test]
fn changes_add_up_to_what_flink_has() {
    use arrow::datatypes::Int32Type;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sql");
    let input = std::fs::read_to_string(format!("{folder}/data/accounts.json")).unwrap();
    let fields = [("branch", DataType::Utf8), ("amount", DataType::Int32)];
    let schema = Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec()));
    let (chunks, decoded) = chunks_of(&schema, &input, options(ChangeFormat::Debezium, &[]));
    assert_eq!(decoded.malformed, None);
    let mut branches: std::collections::BTreeMap<String, [i32; 3]> = Default::default();
    for chunk in &chunks {
        for row in 0..chunk.len() {
            let amounts = chunk.column(1).as_primitive::<Int32Type>();
            let amount = amounts.is_valid(row).then(|| amounts.value(row));
            let sign = if chunk.kind(row).is_addition() { 1 } else { -1 };
            let branch = branches.entry(chunk.column(0).as_string::<i32>().value(row).to_owned()).or_default();
            for (total, value) in branch.iter_mut().zip([1, i32::from(amount.is_some()), amount.unwrap_or(0)]) {
                *total += sign * value;
            }
        }
    }
    branches.retain(|_, [rows, ..]| *rows > 0);
    let number = |text: &str| if text == "null" { 0 } else { text.parse::<i32>().unwrap() };
    let expected = std::fs::read_to_string(format!("{folder}/aggregates/retractions.expected")).unwrap();
    let expected = expected.lines().map(|line| {
        let values: Vec<&str> = line.split('\t').collect();
        (values[0].to_owned(), [number(values[1]), number(values[2]), number(values[3])])
    });
    assert_eq!(branches, expected.collect());
}
