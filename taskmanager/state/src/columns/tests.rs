use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use arrow::datatypes::DataType;
use bytes::Bytes;
use expect_test::expect;
use flott_core::codec;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Deserializer, Serialize};

use super::rows::TypedColumns;
use super::*;
use crate::TimeWindow;

mod versions;

/// The entries as a table writes them into a section.
fn body<K: Data, N: Data, V: Data>(entries: &[(K, N, V)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (key, namespace, value) in entries {
        body.push(0);
        codec::encode_into(key, &mut body).unwrap();
        codec::encode_into(namespace, &mut body).unwrap();
        codec::encode_into(value, &mut body).unwrap();
    }
    body
}

/// That bytes read by shape are the columns that values of the types make.
fn check_ways<K: Data, N: Data, V: Data>(entries: &[(K, N, V)]) {
    let body = body(entries);
    let count = entries.len() as u64;
    let rows = TypedColumns::<K, N, V>::new().to_rows(7, count, &body).unwrap();
    assert_eq!(rows, TypedColumns::<K, N, V>::by_type().to_rows(7, count, &body).unwrap());
    for column in rows.columns() {
        column.to_data().validate_full().unwrap();
    }
}

/// Takes entries through rows, and through a file, and returns them as they came back.
fn there_and_back<K: Data, N: Data, V: Data>(entries: &[(K, N, V)]) -> Vec<(K, N, V)> {
    let columns = columns_of::<K, N, V>();
    let body = body(entries);
    let count = entries.len() as u64;
    let rows = columns.to_rows(7, count, &body).unwrap();
    assert_eq!(rows.schema(), columns.arrow_schema());
    assert_eq!(group_column(&rows).unwrap().values().to_vec(), vec![7; entries.len()]);
    let direct = read_rows::<K, N, V>(columns.schema(), &rows).unwrap();
    assert_eq!(direct.len(), entries.len());

    let (written, file) = write_table(&*columns, [(7, count, body.as_slice())].into_iter()).unwrap();
    assert_eq!(written, count);
    let batches = read_table(Bytes::from(file)).unwrap();
    batches.flat_map(|rows| read_rows::<K, N, V>(columns.schema(), &rows.unwrap()).unwrap()).collect()
}

/// That entries come back with the same bytes, which also tells one NaN from another.
fn check<K: Data, N: Data, V: Data>(entries: &[(K, N, V)]) {
    check_ways(entries);
    assert_eq!(body(&there_and_back(entries)), body(entries));
}

/// That values come back, from a column of this type.
fn check_value<V: Data + Debug + PartialEq>(values: &[V], is_expected: impl Fn(&DataType) -> bool) {
    let entries: Vec<(u64, (), V)> = values.iter().cloned().zip(0..).map(|(value, key)| (key, (), value)).collect();
    let schema = columns_of::<u64, (), V>().arrow_schema();
    let column = schema.field_with_name("value").unwrap();
    assert!(is_expected(column.data_type()), "{column:?}");
    // What is hashed comes in another order each time.
    if !type_name::<V>().contains("hash") {
        check_ways(&entries);
    }
    assert_eq!(there_and_back(&entries), entries);
}

fn check_binary<V: Data + Debug + PartialEq>(values: &[V]) {
    check_value(values, |column| *column == DataType::LargeBinary);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Kind {
    Open,
    Closed,
    #[serde(rename = "on hold")]
    OnHold,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    name: String,
    weight: Option<f32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Account {
    balance: i64,
    total: u64,
    rate: f64,
    kind: Kind,
    owner: Option<String>,
    raw: Vec<u8>,
    tags: Vec<Option<String>>,
    limits: BTreeMap<String, Option<u32>>,
    place: (i32, char, bool),
    digest: [u8; 6],
    parts: Option<Vec<Part>>,
    kinds: BTreeSet<Kind>,
    #[serde(alias = "former")]
    best: Option<Part>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Named { name: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tree {
    name: String,
    left: Option<Box<Tree>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Nothing {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TwoNames {
    #[serde(rename(serialize = "out", deserialize = "in"))]
    number: u32,
}

/// Is told something else by people than by programs, but only about large numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Sly(u64);

impl<'de> Deserialize<'de> for Sly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_human_readable = deserializer.is_human_readable();
        let number = u64::deserialize(deserializer)?;
        Ok(Self(if is_human_readable && number > 1000 { number + 1 } else { number }))
    }
}

/// An enum whose variants have more names than numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Renamed {
    One,
    #[serde(alias = "Zwei")]
    Two,
    Three,
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Open), Just(Kind::Closed), Just(Kind::OnHold)]
}

fn parts() -> impl Strategy<Value = Part> {
    (any::<String>(), option::of(proptest::num::f32::ANY)).prop_map(|(name, weight)| Part { name, weight })
}

fn accounts() -> impl Strategy<Value = Account> {
    let flat = (
        any::<(i64, u64)>(),
        proptest::num::f64::ANY,
        kinds(),
        option::of(any::<String>()),
        vec(any::<u8>(), 0..9),
        any::<(i32, char, bool)>(),
        any::<[u8; 6]>(),
    );
    let nested = (
        vec(option::of(any::<String>()), 0..4),
        btree_map(any::<String>(), option::of(any::<u32>()), 0..4),
        option::of(vec(parts(), 0..3)),
        proptest::collection::btree_set(kinds(), 0..3),
        option::of(parts()),
    );
    (flat, nested).prop_map(
        |(((balance, total), rate, kind, owner, raw, place, digest), (tags, limits, parts, kinds, best))| Account {
            balance,
            total,
            rate,
            kind,
            owner,
            raw,
            tags,
            limits,
            place,
            digest,
            parts,
            kinds,
            best,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn structs_come_back(values in vec(accounts(), 0..100)) {
        let window = |at: i64| TimeWindow { start: at, end: at + 1 };
        let entries: Vec<_> =
            values.into_iter().zip(0..).map(|(value, at)| ((format!("k{at}"), at as u32), window(at), value)).collect();
        check(&entries);
    }

    #[test]
    fn scalars_come_back(values in vec(any::<(u64, i64)>(), 1..50), text in any::<String>()) {
        let entries: Vec<_> = values.into_iter().map(|(key, time)| (key, time, text.clone())).collect();
        check(&entries);
    }

    #[test]
    fn no_text_causes_a_panic(text in ".*", at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let columns = columns_of::<String, TimeWindow, Account>();
        let rows = columns.to_rows(0, 0, &[]).unwrap();
        let refused = columns.compare(&text);
        prop_assert!(matches!(refused, Compatibility::Refused(_)), "{refused:?}");

        let mut damaged = columns.schema().as_bytes().to_vec();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        let damaged = String::from_utf8_lossy(&damaged);
        let _ = columns.compare(&damaged);
        let _ = read_rows::<String, TimeWindow, Account>(&damaged, &rows);
    }

    #[test]
    fn no_body_causes_a_panic(body in vec(any::<u8>(), 0..200), entries in any::<u64>()) {
        let columns = columns_of::<String, (), Account>();
        let _ = columns.to_rows(0, entries, &body);
        let _ = columns.to_rows(0, entries % 10, &body);
    }
}

/// What the codec reads is what a shape reads, of any bytes.
type Plain = (u8, Option<char>, Vec<String>, [i16; 5], Vec<Kind>, bool, Option<(f32, Vec<u8>)>);

proptest! {
    #[test]
    fn both_ways_read_the_same_bytes(body in vec(prop_oneof![0..4_u8, any::<u8>()], 0..40)) {
        let body = [&[0][..], &body].concat();
        let by_shape = TypedColumns::<u8, (), Plain>::new().to_rows(0, 1, &body);
        let by_type = TypedColumns::<u8, (), Plain>::by_type().to_rows(0, 1, &body);
        prop_assert_eq!(by_shape.ok(), by_type.ok());
    }
}

#[test]
fn extremes_come_back() {
    check(&[(u64::MAX, i64::MIN, u64::MAX), (0, i64::MAX, 0)]);
    check(&[(String::new(), (), f64::NAN), ("ключ 🔑".to_owned(), (), -0.0), ("a".to_owned(), (), f64::INFINITY)]);
    check(&[((), (), 7_u8)]);
    check(&[(1_u8, (), ())]);
    check(&[(Some(1_u8), 1_i64, None::<u64>), (None, 2, Some(u64::MAX))]);
    check(&[(Kind::OnHold, (), vec![Kind::Open, Kind::Closed]), (Kind::Open, (), vec![])]);
    check::<u64, (), Account>(&[]);
}

#[test]
fn types_have_the_columns_that_are_documented() {
    let is_list = |column: &DataType| matches!(column, DataType::LargeList(_));
    let is_struct = |column: &DataType| matches!(column, DataType::Struct(_));
    check_value(&[true, false], |column| *column == DataType::Boolean);
    check_value(&['a', '🔑'], |column| *column == DataType::UInt32);
    check_value(&[i8::MIN, i8::MAX], |column| *column == DataType::Int8);
    check_value(&[0.5_f32], |column| *column == DataType::Float32);
    check_value(&["".to_owned(), "a".to_owned()], |column| *column == DataType::LargeUtf8);
    check_value(&[Kind::Open, Kind::OnHold], |column| *column == DataType::LargeUtf8);
    check_value(&["::1".parse::<IpAddr>().unwrap()], |column| *column == DataType::LargeUtf8);
    check_value(&[vec![1_u8, 255], vec![]], |column| *column == DataType::LargeBinary);
    check_value(&[Some(vec![1_u8]), None], |column| *column == DataType::LargeBinary);
    check_value(&[vec![1_u16], vec![]], is_list);
    check_value(&[vec![vec!["a".to_owned()], vec![]], vec![]], is_list);
    check_value(&[[1_u64; 5], [2; 5]], is_list);
    check_value(&[BTreeSet::from([(1_u8, 'b')])], is_list);
    check_value(&[HashSet::from([1_u64, 2, 3, 4, 5])], is_list);
    check_value(&[(1_u8, 2_u8)], is_struct);
    check_value(&[Duration::from_millis(1500)], is_struct);
    check_value(&[NonZeroU64::MAX], |column| *column == DataType::UInt64);
    check_value(&[BTreeMap::from([(1_u8, "a".to_owned())])], |column| matches!(column, DataType::Map(_, false)));
    let large: HashMap<String, Vec<u32>> = (0..100).map(|number| (number.to_string(), vec![number; 3])).collect();
    check_value(&[large, HashMap::new()], |column| matches!(column, DataType::Map(_, false)));
}

#[test]
fn what_arrow_cannot_hold_is_binary() {
    check_binary(&[Shape::Point, Shape::Circle(1.5), Shape::Named { name: "n".to_owned() }]);
    check_binary(&[None, Some(None), Some(Some(1_u8))]);
    check_binary(&[vec![Some(Some(1_u8)), Some(None)]]);
    check_binary(&[None, Some(())]);
    check_binary(&[u128::MAX]);
    check_binary(&[vec![(); 3], vec![]]);
    check_binary(&[Nothing {}]);
    check_binary(&[BTreeMap::from([(Some(1_u8), 1_u8), (None, 2)])]);
    check_binary(&[TwoNames { number: 7 }]);
    let leaf = Tree { name: "leaf".to_owned(), left: None };
    check_binary(&[Tree { name: "root".to_owned(), left: Some(Box::new(leaf)) }]);
    // Each column for itself.
    let schema = columns_of::<String, (), u128>().arrow_schema();
    assert_eq!(*schema.field_with_name("key").unwrap().data_type(), DataType::LargeUtf8);
}

#[test]
fn what_would_come_back_as_something_else_is_not_written() {
    let columns = columns_of::<u64, (), Sly>();
    let harmless = body(&[(1_u64, (), Sly(1000))]);
    assert_eq!(columns.to_rows(0, 1, &harmless).unwrap().num_rows(), 1);
    let error = columns.to_rows(0, 1, &body(&[(1_u64, (), Sly(1001))])).unwrap_err().to_string();
    assert!(error.contains("column 'value' does not give back what was put into it"), "{error}");
    assert!(error.contains("Sly has a Serialize and a Deserialize that do not match"), "{error}");
}

/// Whether the value's column is made by its shape.
fn is_by_shape<V: Data>() -> bool {
    layout::Plan::of::<u64, (), V>().is_by_shape[2]
}

#[test]
fn what_the_codec_sees_otherwise_is_made_by_type() {
    assert!(is_by_shape::<Account>());
    assert!(is_by_shape::<Option<Vec<Kind>>>());
    assert!(is_by_shape::<HashMap<String, [Duration; 5]>>());
    assert!(!is_by_shape::<IpAddr>());
    assert!(!is_by_shape::<Vec<(u8, IpAddr)>>());
    assert!(!is_by_shape::<Shape>());
    assert!(!is_by_shape::<Renamed>());
    check_value(&[Renamed::Three, Renamed::One, Renamed::Two], |column| *column == DataType::LargeUtf8);
    check_value(&["::1".parse::<IpAddr>().unwrap()], |column| *column == DataType::LargeUtf8);
    assert!(columns_of::<u64, (), Kind>().schema().contains("numbered"));
    assert!(!columns_of::<u64, (), Renamed>().schema().contains("numbered"));
}

#[test]
fn builds_that_did_not_look_at_numbers_saw_the_same_types() {
    let columns = columns_of::<u64, (), Kind>();
    let former = columns.schema().replace("\"numbered\":true,", "");
    assert_eq!(columns.compare(&former), Compatibility::Same);
}

#[test]
fn bytes_of_another_shape_are_refused() {
    fn refused<V: Data>(value: &[u8], reason: &str) {
        let body = [&[0, 9][..], value].concat();
        let error = columns_of::<u8, (), V>().to_rows(3, 1, &body).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    refused::<bool>(&[2], "reading bool: 2 is not a bool");
    refused::<Option<u8>>(&[3], "3 is not the tag of an Option");
    refused::<char>(&[0, 0xd8, 0, 0], "0xd800 is not a char");
    refused::<Kind>(&[3], "variant index 3 of 3 variants");
    refused::<Vec<u64>>(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "0 bytes are left");
    refused::<String>(&[0xff; 20], "more than 64 bits");
    refused::<String>(&[5, b'a'], "needs 5 more bytes or elements, and 1 bytes are left");
    refused::<String>(&[1, 0xff], "non UTF-8 data");
    // The two halves of a character, which would be one if texts were only looked at together.
    refused::<Vec<String>>(&[2, 1, 0xc3, 1, 0xa4], "UTF-8");
    refused::<(u8, u16)>(&[1, 2], "needs 2 more bytes");
}

#[test]
fn the_text_of_a_schema_never_changes() {
    expect![[
        r#"{"format":1,"key":{"form":"arrow","type":"Utf8"},"namespace":{"form":"absent","type":"Unit"},"value":{"form":"arrow","type":"UInt64"}}"#
    ]]
    .assert_eq(columns_of::<String, (), u64>().schema());
    expect![[
        r#"{"format":1,"numbered":true,"key":{"form":"arrow","type":{"Tuple":["Utf8","UInt32"]}},"namespace":{"form":"arrow","type":{"Struct":[{"name":"start","type":"Int64"},{"name":"end","type":"Int64"}]}},"value":{"form":"arrow","type":{"Struct":[{"name":"balance","type":"Int64"},{"name":"total","type":"UInt64"},{"name":"rate","type":"Float64"},{"name":"kind","type":{"Enum":[{"name":"Open"},{"name":"Closed"},{"name":"on hold"}]}},{"name":"owner","type":{"Option":"Utf8"}},{"name":"raw","type":{"List":"UInt8"}},{"name":"tags","type":{"List":{"Option":"Utf8"}}},{"name":"limits","type":{"Map":["Utf8",{"Option":"UInt32"}]}},{"name":"place","type":{"Tuple":["Int32","Char","Boolean"]}},{"name":"digest","type":{"Array":["UInt8",6]}},{"name":"parts","type":{"Option":{"List":{"Struct":[{"name":"name","type":"Utf8"},{"name":"weight","type":{"Option":"Float32"}}]}}}},{"name":"kinds","type":{"List":{"Enum":[{"name":"Open"},{"name":"Closed"},{"name":"on hold"}]}}},{"name":"best","type":{"Option":{"Struct":[{"name":"name","type":"Utf8"},{"name":"weight","type":{"Option":"Float32"}}]}}}]}}}"#
    ]]
    .assert_eq(columns_of::<(String, u32), TimeWindow, Account>().schema());
    expect![[
        r#"{"format":1,"numbered":true,"key":{"form":"arrow","type":"Utf8","bytes":{"Enum":[{"name":"V4","type":{"Tuple":["UInt8","UInt8","UInt8","UInt8"]}},{"name":"V6","type":{"Array":["UInt8",16]}}]}},"namespace":{"form":"arrow","type":"Int64"},"value":{"form":"binary","type":{"Enum":[{"name":"Point"},{"name":"Circle","type":"Float64"},{"name":"Named","type":{"Struct":[{"name":"name","type":"Utf8"}]}}]}}}"#
    ]]
    .assert_eq(columns_of::<IpAddr, i64, Shape>().schema());
    expect![[
        r#"{"format":1,"key":{"form":"binary","type":"Unit"},"namespace":{"form":"absent","type":"Unit"},"value":{"form":"binary","type":"Unknown"}}"#
    ]]
    .assert_eq(columns_of::<(), (), Tree>().schema());
}

#[test]
fn damaged_sections_are_refused() {
    let columns = columns_of::<u64, (), String>();
    let whole = body(&[(1_u64, (), "a".to_owned()), (2, (), "b".to_owned())]);
    let refused = |entries: u64, body: &[u8], reason: &str| {
        let error = columns.to_rows(3, entries, body).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(write_table(&*columns, [(3, entries, body)].into_iter()).is_err());
    };
    refused(1, &whole, "key group 3 has 11 bytes behind its last entry");
    refused(3, &whole, "bytes are left");
    refused(2, &whole[..whole.len() - 1], "bytes are left");
    refused(u64::MAX, &whole, "key group 3 is said to have 18446744073709551615 entries, in 22 bytes");
    let mut removal = whole.clone();
    removal[0] = 1;
    refused(2, &removal, "a removal is among the entries of a whole key group");
}

#[test]
fn files_have_several_row_groups_and_sections() {
    let columns = columns_of::<u64, TimeWindow, String>();
    let window = TimeWindow { start: 0, end: 10 };
    let groups: Vec<Vec<(u64, TimeWindow, String)>> =
        (0..5_u64).map(|group| (0..group * 100).map(|at| (at, window, format!("{group}-{at}"))).collect()).collect();
    let bodies: Vec<Vec<u8>> = groups.iter().map(|entries| body(entries)).collect();
    let sections =
        (0..).zip(&groups).zip(&bodies).map(|((group, entries), body)| (group, entries.len() as u64, &**body));
    let (rows, file) = file::write_row_groups(&*columns, sections, 128).unwrap();
    assert_eq!(rows, 1000);
    let file = Bytes::from(file);

    let reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 8);
    assert_eq!(reader.schema().fields(), columns.arrow_schema().fields());

    let mut back: Vec<Vec<(u64, TimeWindow, String)>> = vec![Vec::new(); 5];
    for rows in read_table(file.clone()).unwrap() {
        let rows = rows.unwrap();
        let entries = read_rows(columns.schema(), &rows).unwrap();
        for (group, entry) in group_column(&rows).unwrap().values().iter().zip(entries) {
            back[usize::from(*group)].push(entry);
        }
    }
    assert_eq!(back, groups);

    for length in [0, 1, 4, 100, file.len() / 2, file.len() - 9, file.len() - 1] {
        let rows = read_table(file.slice(..length)).and_then(|mut rows| rows.try_for_each(|rows| rows.map(drop)));
        let error = rows.unwrap_err().to_string();
        assert!(error.contains("Parquet file"), "{length} bytes: {error}");
    }
}

#[test]
fn sections_larger_than_a_batch_are_whole() {
    let entries: Vec<(u64, (), u64)> = (0..3 * rows::ROWS_MAX as u64 + 5).map(|number| (number, (), !number)).collect();
    check(&entries);
    let columns = columns_of::<u64, (), u64>();
    let mut sizes = Vec::new();
    let body = body(&entries);
    let read = columns.batches(0, entries.len() as u64, &body, &mut |rows| {
        sizes.push(rows.num_rows());
        Ok(())
    });
    read.unwrap();
    assert_eq!(sizes, [rows::ROWS_MAX, rows::ROWS_MAX, rows::ROWS_MAX, 5]);
}

#[test]
fn tables_of_something_else_are_refused() {
    let columns = columns_of::<u64, (), u32>();
    let rows = columns.to_rows(0, 1, &body(&[(1_u64, (), 2_u32)])).unwrap();
    let other = columns_of::<u64, (), String>();
    let error = read_rows::<u64, (), String>(other.schema(), &rows).unwrap_err().to_string();
    assert_eq!(error, "column 'value' of the table has the type UInt32, and its schema says LargeUtf8");
    let windowed = columns_of::<u64, i64, u32>();
    let error = read_rows::<u64, i64, u32>(windowed.schema(), &rows).unwrap_err().to_string();
    assert_eq!(error, "the table has no column 'namespace', which its schema has");
    let values = rows.project(&[1, 2]).unwrap();
    let error = group_column(&values).unwrap_err().to_string();
    assert_eq!(error, "the table has no column 'key_group' of type UInt16: it is not that of a state");
}
