//! Rows of one version of a type, read by another.

use flott_core::codec::Decoder;

use super::*;

fn migrate<Old: Data, New: Data>(values: &[Old]) -> (Compatibility, Result<Vec<New>>) {
    let old = columns_of::<u64, (), Old>();
    let entries: Vec<(u64, (), Old)> = values.iter().cloned().zip(0..).map(|(value, key)| (key, (), value)).collect();
    let rows = old.to_rows(0, entries.len() as u64, &body(&entries)).unwrap();
    let read = read_rows::<u64, (), New>(old.schema(), &rows);
    let values = read.map(|entries| entries.into_iter().map(|(_, _, value)| value).collect());
    (columns_of::<u64, (), New>().compare(old.schema()), values)
}

/// The same from entries in the codec's form.
fn migrate_entries<Old: Data, New: Data>(values: &[Old]) -> (Compatibility, Result<Vec<New>>) {
    let schema = columns_of::<u64, (), Old>().schema().to_owned();
    let bytes: Vec<u8> = values.iter().flat_map(|value| codec::encode(value).unwrap()).collect();
    let read = || {
        let old: OldValues<New> = OldValues::new::<u64, ()>(&schema)?;
        let mut rest = Decoder::new(&bytes);
        let read = values.iter().map(|_| old.read(&mut rest)).collect::<Result<Vec<New>>>()?;
        assert!(rest.is_empty(), "{} bytes are left", rest.remaining());
        Ok(read)
    };
    (columns_of::<u64, (), New>().compare_entries(&schema), read())
}

/// That entries of `old` are read as `new`, with these notes.
#[track_caller]
fn entries_accepted<Old: Data, New: Data + Debug + PartialEq>(old: &[Old], new: &[New], notes: &[&str]) {
    let (compatibility, values) = migrate_entries::<Old, New>(old);
    let notes: Vec<String> = notes.iter().map(|&note| note.to_owned()).collect();
    assert_eq!(compatibility, Compatibility::Migrated(notes));
    assert_eq!(values.unwrap(), new);
}

#[track_caller]
fn entries_refused<Old: Data, New: Data>(reason: &str) {
    let (compatibility, values) = migrate_entries::<Old, New>(&[]);
    assert_eq!(compatibility, Compatibility::Refused(reason.to_owned()));
    assert_eq!(values.err().unwrap().to_string(), reason);
}

/// That `old` is read as `new`, with these notes, from rows and from entries.
#[track_caller]
fn accepted<Old: Data, New: Data + Debug + PartialEq>(old: &[Old], new: &[New], notes: &[&str]) {
    rows_accepted(old, new, notes);
    entries_accepted(old, new, notes);
}

/// That rows and entries of `Old` are refused before and when they are read.
#[track_caller]
fn refused<Old: Data, New: Data>(reason: &str) {
    rows_refused::<Old, New>(reason);
    entries_refused::<Old, New>(reason);
}

/// That rows of `old` are read as `new`, with these notes.
#[track_caller]
fn rows_accepted<Old: Data, New: Data + Debug + PartialEq>(old: &[Old], new: &[New], notes: &[&str]) {
    let (compatibility, values) = migrate::<Old, New>(old);
    let notes: Vec<String> = notes.iter().map(|&note| note.to_owned()).collect();
    assert_eq!(compatibility, Compatibility::Migrated(notes));
    assert_eq!(values.unwrap(), new);
}

/// That rows of `Old` are refused before and when they are read.
#[track_caller]
fn rows_refused<Old: Data, New: Data>(reason: &str) {
    let (compatibility, values) = migrate::<Old, New>(&[]);
    assert_eq!(compatibility, Compatibility::Refused(reason.to_owned()));
    assert_eq!(values.err().unwrap().to_string(), reason);
}

/// A type with one field, to change its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Has<T> {
    n: T,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct First {
    count: i32,
    old: String,
    total: u16,
    label: String,
}

#[test]
fn the_same_type_is_the_same() {
    let columns = columns_of::<String, TimeWindow, Account>();
    assert_eq!(columns.compare(columns.schema()), Compatibility::Same);
    assert_eq!(columns.compare_entries(columns.schema()), Compatibility::Same);
    let columns = columns_of::<String, (), super::Shape>();
    assert_eq!(columns.compare(columns.schema()), Compatibility::Same);
    assert_eq!(columns.compare_entries(columns.schema()), Compatibility::Same);
}

#[test]
fn fields_are_matched_by_their_names() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Second {
        label: String,
        #[serde(alias = "total")]
        sum: u32,
        count: Option<i64>,
        #[serde(default = "unnamed")]
        tag: String,
        extra: Option<u8>,
    }
    fn unnamed() -> String {
        "unnamed".to_owned()
    }
    let first = First { count: -1, old: "x".to_owned(), total: u16::MAX, label: "l".to_owned() };
    let second = Second { label: "l".to_owned(), sum: 65535, count: Some(-1), tag: unnamed(), extra: None };
    let notes = [
        "field 'value.total' renamed to 'value.sum'",
        "field 'value.sum' widened from UInt16 to UInt32",
        "field 'value.count' made optional",
        "field 'value.count' widened from Int32 to Int64",
        "field 'value.tag' added with its default",
        "field 'value.extra' added with its default",
        "field 'value.old' removed",
        "fields of 'value' reordered",
    ];
    accepted(&[first], &[second], &notes);
}

#[test]
fn an_order_of_fields_is_not_the_same() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Point {
        x: f32,
        y: f32,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Turned {
        y: f32,
        x: f32,
    }
    // It matters to the private form, which has no names.
    accepted(&[Point { x: 1.0, y: 2.0 }], &[Turned { y: 2.0, x: 1.0 }], &["fields of 'value' reordered"]);
}

#[test]
fn nested_values_widen() {
    let floats = "field 'value.n.element.value' widened from Int32 to Float64";
    accepted(
        &[Has { n: vec![BTreeMap::from([(1_u8, -7_i32)]), BTreeMap::new()] }],
        &[Has { n: vec![BTreeMap::from([(1_i64, -7.0)]), BTreeMap::new()] }],
        &["field 'value.n.element.key' widened from UInt8 to Int64", floats],
    );
    accepted(
        &[Has { n: Some((1_u32, 0.1_f32)) }, Has { n: None }],
        &[Has { n: Some((Some(1.0_f64), f64::from(0.1_f32))) }, Has { n: None }],
        &[
            "field 'value.n.0' made optional",
            "field 'value.n.0' widened from UInt32 to Float64",
            "field 'value.n.1' widened from Float32 to Float64",
        ],
    );
    accepted(
        &[Has { n: Has { n: [u8::MAX; 5] } }],
        &[Has { n: Has { n: [255.0_f64; 5] } }],
        &["field 'value.n.n.element' widened from UInt8 to Float64"],
    );
    accepted(&[vec![1_u8, 255]], &[vec![1_i16, 255]], &["field 'value.element' widened from UInt8 to Int16"]);
    accepted(&[7_u32], &[7_i64], &["field 'value' widened from UInt32 to Int64"]);
    accepted(&["a".to_owned()], &[Some("a".to_owned())], &["field 'value' made optional"]);
}

#[test]
fn what_could_lose_values_is_refused() {
    let way_out =
        "values would be lost or misread; keep its type, or keep the field and add another one with #[serde(default)]";
    refused::<Has<i64>, Has<i32>>(&format!("field 'value.n' was Int64 and is now Int32: {way_out}"));
    refused::<Has<i64>, Has<f64>>(&format!("field 'value.n' was Int64 and is now Float64: {way_out}"));
    refused::<Has<u64>, Has<i64>>(&format!("field 'value.n' was UInt64 and is now Int64: {way_out}"));
    refused::<Has<i8>, Has<u64>>(&format!("field 'value.n' was Int8 and is now UInt64: {way_out}"));
    refused::<Has<f64>, Has<f32>>(&format!("field 'value.n' was Float64 and is now Float32: {way_out}"));
    refused::<Has<bool>, Has<u8>>(&format!("field 'value.n' was Boolean and is now UInt8: {way_out}"));
    refused::<Has<String>, Has<u64>>(&format!("field 'value.n' was Utf8 and is now UInt64: {way_out}"));
    refused::<Has<Kind>, Has<String>>(&format!(
        "field 'value.n' was Enum<Open, Closed, on hold> and is now Utf8: {way_out}"
    ));
    refused::<Has<Vec<u32>>, Has<u32>>(&format!("field 'value.n' was List<UInt32> and is now UInt32: {way_out}"));
    refused::<Has<Vec<u8>>, Has<Vec<f64>>>(&format!(
        "field 'value.n' was List<UInt8> and is now List<Float64>: {way_out}"
    ));
    refused::<Has<[u32; 5]>, Has<[u32; 6]>>(&format!(
        "field 'value.n' was Array<UInt32, 5> and is now Array<UInt32, 6>: {way_out}"
    ));
    refused::<Has<BTreeMap<(u8, u8), u8>>, Has<BTreeMap<(u8, u16), u8>>>(&format!(
        "field 'value.n.key' was Tuple<UInt8, UInt8> and is now Tuple<UInt8, UInt16>: {way_out}"
    ));
    refused::<Has<Option<u8>>, Has<u8>>(
        "field 'value.n' was optional and is now required: rows without it could not be read; keep it an Option",
    );
}

#[test]
fn fields_without_a_default_are_refused() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Renamed {
        count: i32,
        old: String,
        sum: u16,
        label: String,
    }
    refused::<First, Renamed>(
        "field 'value.sum' is new and has no default: the rows do not have it; add #[serde(default)], or #[serde(alias = \"total\")] if it was called that",
    );
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Grown {
        n: u8,
        more: u8,
    }
    refused::<Has<u8>, Grown>(
        "field 'value.more' is new and has no default: the rows do not have it; add #[serde(default)], or #[serde(alias = \"…\")] with the name that it had",
    );
}

#[test]
fn structs_can_be_strict() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        count: i32,
        total: u16,
        label: String,
    }
    refused::<First, Strict>(
        "field 'value.old' removed: its struct has #[serde(deny_unknown_fields)], and the rows have the field; take that attribute away",
    );
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Merged {
        count: i32,
        #[serde(alias = "old")]
        label: String,
        total: u16,
    }
    refused::<First, Merged>(
        "fields 'value.old' and 'value.label' would both become 'value.label': one of them would be lost; take the alias away",
    );
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Lenient {
        more: Vec<String>,
        n: u8,
    }
    let lenient = Lenient { more: vec![], n: 3 };
    accepted(&[Has { n: 3_u8 }], &[lenient], &["field 'value.more' added with its default"]);
}

#[test]
fn variants_are_matched_by_their_names() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Fewer {
        Closed,
        Open,
        #[serde(alias = "Waiting")]
        Pending,
    }
    let notes = [
        "variant 'on hold' of field 'value.n' removed: rows that have it are refused",
        "variant 'Pending' of field 'value.n' added",
        "variant 'Waiting' of field 'value.n' added",
        "variants of field 'value.n' reordered",
    ];
    accepted(
        &[Has { n: Kind::Open }, Has { n: Kind::Closed }],
        &[Has { n: Fewer::Open }, Has { n: Fewer::Closed }],
        &notes,
    );
    let (_, values) = migrate::<Has<Kind>, Has<Fewer>>(&[Has { n: Kind::Open }, Has { n: Kind::OnHold }]);
    let error = values.unwrap_err().to_string();
    let reason = "row 1 of the table does not fit the types of the program: unknown variant `on hold`, expected one of";
    assert!(error.starts_with(reason), "{error}");
    assert!(error.contains("$.value.n"), "{error}");
    let (_, values) = migrate_entries::<Has<Kind>, Has<Fewer>>(&[Has { n: Kind::Open }, Has { n: Kind::OnHold }]);
    let error = values.unwrap_err().to_string();
    assert!(error.starts_with("reading a value of another version of flott_state::"), "{error}");
    assert!(error.contains("unknown variant `on hold`, expected one of"), "{error}");
}

#[test]
fn binary_columns_do_not_change() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Turned {
        Circle(f64),
        Point,
        Named { name: String },
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Other {
        Point,
        Circle(f32),
        Named { name: String },
    }
    let way_out = "column 'value' is binary, and bytes cannot be converted; keep the type, or give the state a new name, which starts it empty";
    rows_refused::<super::Shape, Turned>(&format!("variants of field 'value' reordered: {way_out}"));
    rows_refused::<super::Shape, Other>(&format!("field 'value.Circle' was Float64 and is now Float32: {way_out}"));
    rows_refused::<u64, u128>(
        "column 'value' was UInt64 and is now binary (UInt128): one cannot be converted into the other; keep the type, or give the state a new name, which starts it empty",
    );
    rows_refused::<(), u8>(
        "column 'value' was absent and is now UInt8: one cannot be converted into the other; keep the type, or give the state a new name, which starts it empty",
    );
    // What its bytes look like is known, so that entries can be read.
    let shapes = [super::Shape::Point, super::Shape::Named { name: "n".to_owned() }, super::Shape::Circle(0.5)];
    let turned = [Turned::Point, Turned::Named { name: "n".to_owned() }, Turned::Circle(0.5)];
    entries_accepted(&shapes, &turned, &["variants of field 'value' reordered"]);
    let lost =
        "values would be lost or misread; keep its type, or keep the field and add another one with #[serde(default)]";
    entries_refused::<super::Shape, Other>(&format!("field 'value.Circle' was Float64 and is now Float32: {lost}"));
    entries_refused::<u64, u128>(&format!("field 'value' was UInt64 and is now UInt128: {lost}"));
    entries_refused::<(), u8>(&format!("field 'value' was Unit and is now UInt8: {lost}"));
    let tree = Tree { name: "t".to_owned(), left: None };
    let unchecked =
        "column 'value' is binary: its type cannot be checked, and rows of another one are refused or misread";
    accepted(std::slice::from_ref(&tree), std::slice::from_ref(&tree), &[unchecked]);
}

#[test]
fn texts_that_mean_something_else_are_not_the_same() {
    let address: IpAddr = "10.0.0.1".parse().unwrap();
    rows_accepted(&["10.0.0.1".to_owned()], &[address], &["a type changed in a way that rows do not show"]);
    let (compatibility, _) = migrate_entries::<String, IpAddr>(&[]);
    assert!(matches!(compatibility, Compatibility::Refused(_)), "{compatibility:?}");
    // Its bytes are something else than its text, and can be read as well.
    let widened = "field 'value.n.1' widened from UInt8 to UInt16";
    accepted(&[Has { n: (address, 7_u8) }], &[Has { n: (address, 7_u16) }], &[widened]);
    let (_, values) = migrate::<String, IpAddr>(&["nowhere".to_owned()]);
    let error = values.unwrap_err().to_string();
    assert!(error.starts_with("row 0 of the table does not fit the types of the program"), "{error}");
}

#[test]
fn keys_and_namespaces_never_change() {
    let refused = |old: Arc<dyn StateColumns>, new: Arc<dyn StateColumns>, reason: &str| {
        assert_eq!(new.compare(old.schema()), Compatibility::Refused(reason.to_owned()));
        assert_eq!(new.compare_entries(old.schema()), Compatibility::Refused(reason.to_owned()));
    };
    let reason = "keys would hash to other key groups, or not be found; keep the type of the key, or give the state a new name, which starts it empty";
    refused(
        columns_of::<u32, (), u8>(),
        columns_of::<u64, (), u8>(),
        &format!("field 'key' widened from UInt32 to UInt64: {reason}"),
    );
    refused(
        columns_of::<Has<u8>, (), u8>(),
        columns_of::<Has<String>, (), u8>(),
        &format!("field 'key.n' was UInt8 and is now Utf8: {reason}"),
    );
    refused(
        columns_of::<String, (), u8>(),
        columns_of::<IpAddr, (), u8>(),
        &format!("the type of the key changed: {reason}"),
    );
    let reason = "what is stored under it would not be found; keep the type of the namespace, or give the state a new name, which starts it empty";
    refused(
        columns_of::<u32, i64, u8>(),
        columns_of::<u32, TimeWindow, u8>(),
        &format!("field 'namespace' was Int64 and is now Struct<start, end>: {reason}"),
    );
    refused(
        columns_of::<u32, (), u8>(),
        columns_of::<u32, TimeWindow, u8>(),
        &format!("column 'namespace' was absent and is now Struct<start, end>: {reason}"),
    );
}

#[test]
fn damaged_schemas_are_refused() {
    let columns = columns_of::<u64, (), u64>();
    let refused = |text: &str, reason: &str| match columns.compare(text) {
        Compatibility::Refused(actual) => assert!(actual.contains(reason), "{actual}"),
        other => panic!("{text}: {other:?}"),
    };
    let column = r#""key":{"form":"arrow","type":"UInt64"},"namespace":{"form":"absent","type":"Unit"}"#;
    let text = |value: &str| format!(r#"{{"format":1,{column},"value":{value}}}"#);
    refused("", "the schema of the saved state is damaged: EOF while parsing");
    refused(r#"{"format":2}"#, "has format 2, and this program knows format 1");
    refused(&text("7"), "the schema of the saved state is damaged");
    refused(&text(r#"{"form":"arrow","type":"Fish"}"#), "unknown variant `Fish`");
    let reason = "column 'value' cannot have the form Arrow and the type";
    refused(&text(r#"{"form":"arrow","type":"Int128"}"#), reason);
    refused(&text(r#"{"form":"arrow","type":{"Option":{"Option":"Int8"}}}"#), reason);
    let twice = r#"{"form":"arrow","type":{"Struct":[{"name":"a","type":"Int8"},{"name":"a","type":"Int8"}]}}"#;
    refused(&text(twice), reason);
    refused(&text(r#"{"form":"absent","type":"Int8"}"#), "cannot have the form Absent");
    let deep = format!(r#"{{"form":"arrow","type":{}"Int8"{}}}"#, r#"{"List":"#.repeat(500), "}".repeat(500));
    refused(&text(&deep), "recursion limit");
}

/// What became of an account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Later {
    place: (i64, char, bool),
    #[serde(alias = "best")]
    first: Option<LaterPart>,
    limits: BTreeMap<String, Option<u64>>,
    opened: Option<i64>,
    kinds: Vec<LaterKind>,
    parts: Option<Vec<LaterPart>>,
    balance: i64,
    owner: Option<String>,
    digest: [u16; 6],
    raw: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct LaterPart {
    weight: Option<f64>,
    price: u128,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum LaterKind {
    New(u8),
    #[serde(rename = "on hold")]
    Waiting,
    Closed,
    Open,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn entries_are_read_as_they_are_by_name(values in vec(accounts(), 0..20)) {
        let later = |part: &Part| LaterPart { weight: part.weight.map(f64::from), price: 0 };
        let expected = values.iter().map(|account| Later {
            place: (account.place.0.into(), account.place.1, account.place.2),
            first: account.best.as_ref().map(later),
            limits: account.limits.iter().map(|(name, limit)| (name.clone(), limit.map(u64::from))).collect(),
            opened: None,
            kinds: account.kinds.iter().map(|kind| match kind {
                Kind::Open => LaterKind::Open,
                Kind::Closed => LaterKind::Closed,
                Kind::OnHold => LaterKind::Waiting,
            }).collect(),
            parts: account.parts.as_ref().map(|parts| parts.iter().map(later).collect()),
            balance: account.balance,
            owner: account.owner.clone(),
            digest: account.digest.map(u16::from),
            raw: account.raw.clone(),
        });
        let (compatibility, read) = migrate_entries::<Account, Later>(&values);
        prop_assert!(matches!(compatibility, Compatibility::Migrated(_)), "{compatibility:?}");
        // One NaN is not another one, but has the same bytes.
        prop_assert_eq!(codec::encode(&read.unwrap()), codec::encode(&expected.collect::<Vec<_>>()));
    }

    #[test]
    fn no_entry_causes_a_panic(bytes in vec(any::<u8>(), 0..200), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let schema = columns_of::<u64, (), Account>().schema().to_owned();
        let read = |schema: &str| OldValues::<Later>::new::<u64, ()>(schema)?.read(&mut Decoder::new(&bytes));
        let _ = read(&schema);
        let mut damaged = schema.into_bytes();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        let _ = read(&String::from_utf8_lossy(&damaged));
    }
}

#[test]
fn numbers_of_variants_must_be_known() {
    let refused = |schema: &str| match columns_of::<u64, (), Has<LaterKind>>().compare_entries(schema) {
        Compatibility::Refused(reason) => {
            assert!(reason.contains("take a savepoint with the old job, and start the new one from that"), "{reason}");
        }
        other => panic!("{other:?}"),
    };
    let (named, now) = (columns_of::<u64, (), Has<Kind>>(), columns_of::<u64, (), Has<LaterKind>>());
    assert!(matches!(now.compare_entries(named.schema()), Compatibility::Migrated(_)));
    // A build that did not look, and an enum of which names and numbers differ.
    refused(&named.schema().replace("\"numbered\":true,", ""));
    refused(columns_of::<u64, (), Has<Renamed>>().schema());
}

#[test]
fn work_is_bounded_by_the_bytes() {
    // An array without bytes, of more elements than anybody could count, in a field that nobody wants.
    let text = columns_of::<u64, (), Has<(u8, [u8; 5])>>().schema().replace("\"n\"", "\"gone\"");
    let hostile =
        text.replace("{\"Array\":[\"UInt8\",5]}", "{\"Array\":[{\"Array\":[\"UInt8\",0]},18446744073709551615]}");
    assert_ne!(text, hostile);
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Empty {
        more: u8,
    }
    let old = OldValues::<Empty>::new::<u64, ()>(&hostile).unwrap();
    assert_eq!(old.read(&mut Decoder::new(&[1])).unwrap(), Empty::default());
    let text = columns_of::<u64, (), Has<Vec<u32>>>().schema().to_owned();
    let old = OldValues::<Has<Vec<u64>>>::new::<u64, ()>(&text).unwrap();
    let error = old.read(&mut Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0x7f, 1])).unwrap_err().to_string();
    assert!(error.contains("bytes are left"), "{error}");
    let error = old.read(&mut Decoder::new(&[0x80, 0x20, 1])).unwrap_err().to_string();
    assert!(error.contains("bytes are left"), "{error}");
}
