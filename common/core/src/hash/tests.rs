use std::collections::BTreeMap;

use expect_test::expect;
use proptest::prelude::*;
use serde::Serializer;
use serde::ser::{Error as _, SerializeSeq};

use super::*;
use crate::key_group::group_of;

#[derive(Serialize)]
struct Newtype<T>(T);

#[derive(Serialize)]
struct Pair {
    name: &'static str,
    count: u8,
}

#[derive(Serialize)]
enum Choice {
    A,
    B(i32),
    C { name: &'static str },
}

#[test]
fn hashes_are_the_same_forever() {
    let lines = [
        ("0_u64", stable_hash(&0_u64)),
        ("1_u64", stable_hash(&1_u64)),
        ("-1_i32", stable_hash(&-1_i32)),
        ("1_u128 << 64", stable_hash(&(1_u128 << 64))),
        ("true", stable_hash(&true)),
        ("'a'", stable_hash(&'a')),
        ("1.5_f32", stable_hash(&1.5_f32)),
        ("''", stable_hash("")),
        ("'user-17'", stable_hash("user-17")),
        ("'x' * 300", stable_hash(&"x".repeat(300))),
        ("()", stable_hash(&())),
        ("None", stable_hash(&None::<u8>)),
        ("Some('a')", stable_hash(&Some("a"))),
        ("('a', 1)", stable_hash(&("a", 1))),
        ("[1, 2]", stable_hash(&vec![1, 2])),
        ("{'a': 1}", stable_hash(&BTreeMap::from([("a", 1)]))),
        ("B(7)", stable_hash(&Choice::B(7))),
    ];
    let text: String = lines.iter().map(|(key, hash)| format!("{hash:#018x} {key}\n")).collect();
    // State is partitioned by these values: if this test fails, the change is wrong.
    expect![[r#"
        0xfe39e39d11ee1259 0_u64
        0xbde0b4dbaeac875f 1_u64
        0xaccdc274ea171994 -1_i32
        0xeaa6a973a6baf6a5 1_u128 << 64
        0xbde0b4dbaeac875f true
        0xac69aec71d90e5de 'a'
        0x4f2f0632547f724a 1.5_f32
        0xb5550793ba2ab5c8 ''
        0x283d7affb97e739e 'user-17'
        0x1f31d9305c98dcc2 'x' * 300
        0xffba301b01eb5ad1 ()
        0xfe39e39d11ee1259 None
        0x7e84793ae9ee8fe6 Some('a')
        0xc1d9703df6784e35 ('a', 1)
        0x141d64190ca67288 [1, 2]
        0x02370b03e34e3a67 {'a': 1}
        0xb8ff35083b3daad6 B(7)
    "#]]
    .assert_eq(&text);
}

#[test]
fn what_serde_sees_alike_hashes_alike() {
    assert_eq!(stable_hash(&5_u8), stable_hash(&5_u64));
    assert_eq!(stable_hash(&-5_i8), stable_hash(&-5_i64));
    assert_eq!(stable_hash("key"), stable_hash(&"key".to_owned()));
    assert_eq!(stable_hash(&Some("key")), stable_hash(&Some("key".to_owned())));
    assert_eq!(stable_hash(&Newtype("key")), stable_hash("key"));
    assert_eq!(stable_hash(&Pair { name: "a", count: 1 }), stable_hash(&("a", 1_u64)));
    assert_eq!(stable_hash(&[1, 2]), stable_hash(&(1, 2)));
    assert_eq!(stable_hash(&vec![1, 2]), stable_hash(&[1, 2][..]));
    assert_eq!(stable_hash(&0.0_f64), stable_hash(&-0.0_f64));
    assert_eq!(stable_hash(&f64::NAN), stable_hash(&-f64::NAN));
    assert_eq!(stable_hash(&0.25_f32), stable_hash(&0.25_f64));
}

#[test]
fn structure_counts() {
    assert_ne!(stable_hash(&("ab", "c")), stable_hash(&("a", "bc")));
    assert_ne!(stable_hash(&(vec![1], vec![2, 3])), stable_hash(&(vec![1, 2], vec![3])));
    assert_ne!(stable_hash(&Some(0)), stable_hash(&None::<i32>));
    assert_ne!(stable_hash(&Choice::A), stable_hash(&Choice::C { name: "" }));
    assert_ne!(stable_hash(&1_u128), stable_hash(&(1_u128 << 64)));
}

#[test]
fn displayed_keys_and_sequences_of_unknown_length_agree_with_plain_ones() {
    struct Shown(&'static str);
    impl Serialize for Shown {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&format_args!("{}-{}", self.0, self.0))
        }
    }
    struct Unannounced;
    impl Serialize for Unannounced {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut seq = serializer.serialize_seq(None)?;
            seq.serialize_element(&1)?;
            seq.serialize_element(&2)?;
            seq.end()
        }
    }
    assert_eq!(stable_hash(&(7, Shown("ab"))), stable_hash(&(7, "ab-ab")));
    assert_eq!(stable_hash(&Unannounced), stable_hash(&vec![1, 2]));
}

#[test]
fn a_key_that_fails_still_has_a_hash() {
    struct Broken;
    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("broken"))
        }
    }
    assert_eq!(stable_hash(&("a", Broken)), stable_hash("a"));
}

/// Every key group must get its share within a fifth, and so must the bits that hash tables use.
fn check_spread(hashes: impl Iterator<Item = u64>) {
    const KEYS: usize = 1 << 17;
    let mut counts = [[0_usize; 128]; 3];
    for hash in hashes.take(KEYS) {
        counts[0][usize::from(group_of(hash, 128))] += 1;
        counts[1][(hash >> 57) as usize] += 1;
        counts[2][(hash & 127) as usize] += 1;
    }
    let share = KEYS / 128;
    for (bits, counts) in ["group", "high", "low"].iter().zip(counts) {
        for (value, count) in counts.into_iter().enumerate() {
            assert!((share * 4 / 5..=share * 6 / 5).contains(&count), "{bits} {value}: {count} of {share}");
        }
    }
}

#[test]
fn keys_spread_evenly() {
    check_spread((0_u64..).map(|i| stable_hash(&i)));
    check_spread((0_i64..).map(|i| stable_hash(&-i)));
    check_spread((0_u64..).map(|i| stable_hash(&(i * 1000))));
    check_spread((0_u64..).map(|i| stable_hash(&(i << 44))));
    check_spread((0_u32..).map(|i| stable_hash(&f64::from(i))));
    check_spread((0_u64..).map(|i| stable_hash(&(i % 1024, i / 1024))));
    check_spread((0_u64..).map(|i| stable_hash(&format!("user-{i}"))));
}

proptest! {
    #[test]
    fn text_hashes_alike_in_every_form(text in ".{0,400}") {
        struct Shown<'a>(&'a str);
        impl Serialize for Shown<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self.0)
            }
        }
        prop_assert_eq!(stable_hash(&text), stable_hash(text.as_str()));
        prop_assert_eq!(stable_hash(&text), stable_hash(&Shown(&text)));
    }
}
