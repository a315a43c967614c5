use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::{self, Debug, Display};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};

use super::*;
use crate::error::ErrorKind;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    id: u64,
    name: String,
    score: f64,
    flags: (bool, i8, char),
    tags: Vec<Option<String>>,
    counts: BTreeMap<String, (u16, i128)>,
    shapes: Vec<Shape>,
    next: Option<Box<Record>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f32),
    Box(u8, u128),
    Named { name: String, inner: Option<Box<Shape>> },
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Meters(i32);

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, bytes: &[u8]) {
    assert_eq!(encode(value).unwrap(), bytes, "{value:?}");
    assert_eq!(&decode::<T>(bytes).unwrap(), value);
}

#[test]
fn the_form_is_as_documented() {
    check(&true, &[1]);
    check(&-2_i16, &[0xfe, 0xff]);
    check(&1_u64, &[1, 0, 0, 0, 0, 0, 0, 0]);
    check(&1.0_f32, &[0, 0, 0x80, 0x3f]);
    check(&'ä', &[0xe4, 0, 0, 0]);
    check(&"hi".to_owned(), &[2, b'h', b'i']);
    check(&vec![1_u8, 2, 3], &[3, 1, 2, 3]);
    check(&BTreeMap::from([(1_u8, 2_u8)]), &[1, 1, 2]);
    check(&None::<u8>, &[0]);
    check(&Some(7_u8), &[1, 7]);
    check(&(1_u8, [2_u8, 3]), &[1, 2, 3]);
    check(&Meters(1), &[1, 0, 0, 0]);
    check(&(Unit, ()), &[]);
    check(&Shape::Point, &[0]);
    check(&Shape::Circle(0.0), &[1, 0, 0, 0, 0]);
    check(&Shape::Named { name: "n".to_owned(), inner: None }, &[3, 1, b'n', 0]);
    assert_eq!(&encode(&"x".repeat(300)).unwrap()[..2], &[0xac, 0x02]);
}

#[test]
fn elements_without_content_are_counted() {
    check(&vec![(); 5], &[5]);
    check(&vec![(); ZERO_SIZED_ELEMENTS_MAX], &[0x80, 0x20]);
    let error = encode(&vec![(); ZERO_SIZED_ELEMENTS_MAX + 1]).unwrap_err();
    assert!(error.to_string().contains("4097 elements without content"), "{error}");
    let error = decode::<Vec<()>>(&[0x81, 0x20]).unwrap_err();
    assert!(error.to_string().contains("0 bytes are left"), "{error}");
    // The claim that elements have no content must hold.
    let error = decode::<Vec<u8>>(&[200, 1, 1, 1]).unwrap_err();
    assert!(error.to_string().contains("bytes are left"), "{error}");
}

/// What iterators and `#[serde(flatten)]` write: the length comes last.
struct Unannounced(usize);

impl Serialize for Unannounced {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for index in 0..self.0 {
            seq.serialize_element(&(index as u32))?;
        }
        seq.end()
    }
}

#[test]
fn sequences_may_announce_no_length() {
    for length in [0, 1, 127, 128, 20_000] {
        let expected: Vec<u32> = (0..length as u32).collect();
        let bytes = encode(&(Unannounced(length), 9_u8)).unwrap();
        assert_eq!(bytes, encode(&(&expected, 9_u8)).unwrap());
        assert_eq!(decode::<(Vec<u32>, u8)>(&bytes).unwrap(), (expected, 9));
    }
}

#[test]
fn a_wrongly_announced_length_is_refused() {
    struct Liar;
    impl Serialize for Liar {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry(&1, &1)?;
            map.end()
        }
    }
    let mut out = vec![42];
    let error = encode_into(&Liar, &mut out).unwrap_err();
    assert!(error.to_string().contains("announced 2 elements and has 1"), "{error}");
    assert_eq!(out, [42]);
}

#[test]
fn displayed_text_is_a_string() {
    struct Shown(usize);
    impl Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (0..self.0).try_for_each(|_| f.write_str("ab"))
        }
    }
    impl Serialize for Shown {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
    for length in [0, 1, 63, 64, 9000] {
        assert_eq!(encode(&(Shown(length), 1_u8)).unwrap(), encode(&("ab".repeat(length), 1_u8)).unwrap());
    }
}

#[test]
fn nesting_is_limited_the_same_in_both_directions() {
    let chain = |length: usize| {
        (1..length).fold(Record::default(), |next, _| Record { next: Some(Box::new(next)), ..Record::default() })
    };
    let deepest = chain(DEPTH_MAX as usize);
    let bytes = encode(&deepest).unwrap();
    assert_eq!(decode::<Record>(&bytes).unwrap(), deepest);
    let error = encode(&chain(DEPTH_MAX as usize + 2)).unwrap_err();
    assert!(error.to_string().contains("levels deep"), "{error}");

    #[derive(Debug, Deserialize)]
    struct List {
        _next: Option<Box<List>>,
    }
    let error = decode::<List>(&[1; 100_000]).unwrap_err();
    assert!(error.to_string().contains("levels deep"), "{error}");
}

#[test]
fn damage_is_named() {
    fn refused<T: DeserializeOwned + Debug>(bytes: &[u8], reason: &str) {
        let error = decode::<T>(bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::System, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    refused::<bool>(&[2], "decoding bool at byte 0: 2 is not a bool");
    refused::<char>(&[0, 0xd8, 0, 0], "0xd800 is not a char");
    refused::<Option<u8>>(&[3], "3 is not the tag of an Option");
    refused::<String>(&[1, 0xff], "text is not UTF-8");
    refused::<String>(&[5, b'a'], "needs 5 more bytes or elements, and 1 bytes are left");
    refused::<Vec<u64>>(&[0xff; 9], "needs");
    refused::<String>(&[0xff; 20], "more than 64 bits");
    refused::<u32>(&[1, 2], "needs 4 more bytes");
    refused::<u8>(&[1, 2], "1 bytes are left over");
    refused::<Shape>(&[9], "variant index");
    refused::<Vec<u8>>(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "0 bytes are left");
}

#[test]
fn what_needs_a_description_is_refused() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Number(u32),
    }
    let bytes = encode(&Untagged::Number(1)).unwrap();
    let error = decode::<Untagged>(&bytes).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(error.to_string().contains("untagged enums"), "{error}");

    let error = decode::<serde_json::Value>(&bytes).unwrap_err();
    assert!(error.to_string().contains("serde_json::Value"), "{error}");

    #[derive(Serialize)]
    struct Skips {
        #[serde(skip_serializing_if = "Option::is_none")]
        maybe: Option<u8>,
    }
    let error = encode(&Skips { maybe: None }).unwrap_err();
    assert!(error.to_string().contains("field 'maybe'"), "{error}");
}

#[test]
fn text_is_borrowed() {
    let mut bytes = Vec::new();
    for text in ["a", "", "ccc"] {
        encode_into(text, &mut bytes).unwrap();
    }
    let mut decoder = Decoder::new(&bytes);
    assert_eq!(decoder.read::<&str>().unwrap(), "a");
    assert_eq!(decoder.read::<&str>().unwrap(), "");
    assert_eq!(decoder.remaining(), 4);
    assert_eq!(decoder.read::<&str>().unwrap(), "ccc");
    assert!(decoder.is_empty());
    assert!(decoder.read::<u8>().is_err());
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Point),
        any::<f32>().prop_map(Shape::Circle),
        any::<(u8, u128)>().prop_map(|(side, id)| Shape::Box(side, id)),
    ];
    leaf.prop_recursive(4, 8, 1, |inner| {
        (".{0,5}", proptest::option::of(inner.prop_map(Box::new)))
            .prop_map(|(name, inner)| Shape::Named { name, inner })
    })
}

fn records() -> impl Strategy<Value = Record> {
    let flat = (
        any::<(u64, String, f64, (bool, i8, char))>(),
        vec(any::<Option<String>>(), 0..4),
        btree_map(any::<String>(), any::<(u16, i128)>(), 0..4),
        vec(shapes(), 0..4),
    )
        .prop_map(|((id, name, score, flags), tags, counts, shapes)| Record {
            id,
            name,
            score,
            flags,
            tags,
            counts,
            shapes,
            next: None,
        });
    flat.prop_recursive(3, 4, 1, |inner| {
        inner.prop_map(|next| Record { next: Some(Box::new(next)), ..Record::default() })
    })
}

proptest! {
    #[test]
    fn records_survive(record in records()) {
        let bytes = encode(&record).unwrap();
        prop_assert_eq!(decode::<Record>(&bytes).unwrap(), record);
    }

    #[test]
    fn every_truncation_is_refused(record in records()) {
        let bytes = encode(&record).unwrap();
        for length in 0..bytes.len() {
            prop_assert!(decode::<Record>(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode::<Record>(&bytes);
        let _ = decode::<Vec<Shape>>(&bytes);
        let _ = decode::<HashMap<String, VecDeque<(u8, Option<()>)>>>(&bytes);
        let _ = decode::<Vec<Vec<()>>>(&bytes);
        let _ = decode::<Vec<[u64; 32]>>(&bytes);
        let _ = decode::<BTreeMap<(), ()>>(&bytes);
    }

    #[test]
    fn flipped_bits_cause_no_panic(record in records(), at in any::<proptest::sample::Index>(), bit in 0..8) {
        let mut bytes = encode(&record).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let _ = decode::<Record>(&bytes);
    }
}
