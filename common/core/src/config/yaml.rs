//! Reads `config.yaml`: plain YAML, nested or dotted keys, and nothing silently lost.
//!
//! Two things need care. A value must keep its text: `1.50` may be a password. And an error must name
//! its line, which serde_yaml_ng tells for errors only. So the text is walked twice: once for its
//! *shape*, since only `deserialize_any` tells a scalar from a map, and once for its keys and values, of which
//! scalars are then read as text. The line of a setting is found by walking once more and failing at its key.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{Error, Result};

/// One key with a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The whole key, dotted.
    pub(super) key: String,
    /// The value's text; a list's elements are joined by `;`.
    pub(super) value: String,
    /// How many keys stand before it.
    ordinal: usize,
}

impl Setting {
    /// The line that its key stands in, from 1; `text` is what it was read from.
    pub(super) fn line(&self, text: &str) -> usize {
        line_of(text, self.ordinal)
    }
}

/// All settings of `text` in order. A key given twice is refused with both lines.
pub(super) fn flatten(file: &str, text: &str) -> Result<Vec<Setting>> {
    let walk = Walk::of(text, None).map_err(|error| Error::input(format!("{file}: {error}")))?;
    match walk.problem {
        None => Ok(walk.settings),
        Some(Problem::Twice { key, first, second }) => Err(Error::input(format!(
            "{file}:{}: '{key}' is given twice, first in line {}: remove one",
            line_of(text, second),
            line_of(text, first)
        ))),
        Some(Problem::NoValue { key, ordinal }) => Err(Error::input(format!(
            "{file}:{}: '{key}' has no value: write one, or remove the line",
            line_of(text, ordinal)
        ))),
    }
}

fn line_of(text: &str, ordinal: usize) -> usize {
    // An earlier walk passed this key, so this one can only fail at it.
    let failure = Walk::of(text, Some(ordinal)).err();
    failure.and_then(|error| error.location()).map_or(0, |location| location.line())
}

/// What a node is, apart from its text.
enum Shape {
    Null,
    Scalar,
    List(Vec<Shape>),
    /// The values in order.
    Map(Vec<Shape>),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

macro_rules! scalars {
    ($($method:ident $type:ty),*) => {$(
        fn $method<E>(self, _value: $type) -> Result<Shape, E> {
            Ok(Shape::Scalar)
        }
    )*};
}

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or nested settings")
    }

    scalars! {
        visit_bool bool, visit_i64 i64, visit_i128 i128, visit_u64 u64, visit_u128 u128, visit_f64 f64, visit_str &str
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_none<E>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Shape::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut values = Vec::new();
        while let Some((IgnoredAny, value)) = map.next_entry()? {
            values.push(value);
        }
        Ok(Shape::Map(values))
    }
}

/// The second walk, and what it has found so far.
#[derive(Default)]
struct Walk {
    settings: Vec<Setting>,
    /// Every whole key that has a value, with its ordinal.
    seen: BTreeMap<String, usize>,
    /// The first thing that is wrong.
    problem: Option<Problem>,
    keys: usize,
    fail_at: Option<usize>,
}

enum Problem {
    Twice { key: String, first: usize, second: usize },
    NoValue { key: String, ordinal: usize },
}

impl Walk {
    fn of(text: &str, fail_at: Option<usize>) -> serde_yaml_ng::Result<Self> {
        let shape = Shape::deserialize(serde_yaml_ng::Deserializer::from_str(text))?;
        let mut walk = Self { fail_at, ..Self::default() };
        match shape {
            Shape::Null => {} // an empty file
            Shape::Map(shapes) => {
                let entries = Entries { walk: &mut walk, prefix: "", shapes: &shapes };
                entries.deserialize(serde_yaml_ng::Deserializer::from_str(text))?;
            }
            Shape::Scalar | Shape::List(_) => {
                return Err(serde_yaml_ng::Error::custom("expected settings, one 'key: value' a line"));
            }
        }
        Ok(walk)
    }
}

/// Reads the entries of a map.
struct Entries<'a> {
    walk: &'a mut Walk,
    prefix: &'a str,
    shapes: &'a [Shape],
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A nested group must be given once in its map too, although its settings may differ.
        let mut names = BTreeMap::new();
        for shape in self.shapes {
            let ordinal = self.walk.keys;
            self.walk.keys += 1;
            let name = Text { expected: "a key", refuse: self.walk.fail_at == Some(ordinal) };
            let Some(name) = map.next_key_seed(name)? else { break };
            let key = if self.prefix.is_empty() { name } else { format!("{}.{name}", self.prefix) };

            let mut earlier = names.insert(key.clone(), ordinal);
            if !matches!(shape, Shape::Map(_)) {
                earlier = self.walk.seen.insert(key.clone(), ordinal).or(earlier);
            }
            if let Some(first) = earlier {
                self.walk.problem.get_or_insert(Problem::Twice { key: key.clone(), first, second: ordinal });
            }

            let value = match shape {
                Shape::Map(shapes) => {
                    map.next_value_seed(Entries { walk: &mut *self.walk, prefix: &key, shapes })?;
                    continue;
                }
                Shape::Null => {
                    map.next_value::<IgnoredAny>()?;
                    self.walk.problem.get_or_insert(Problem::NoValue { key, ordinal });
                    continue;
                }
                Shape::Scalar => map.next_value_seed(Text { expected: "a value", refuse: false })?,
                Shape::List(shapes) => map.next_value_seed(List(shapes))?,
            };
            self.walk.settings.push(Setting { key, value, ordinal });
        }
        Ok(())
    }
}

/// Reads a scalar as it is written, whatever it looks like; or fails at it, to learn where it is.
struct Text {
    expected: &'static str,
    refuse: bool,
}

impl<'de> DeserializeSeed<'de> for Text {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
        if self.refuse { Err(E::custom("here")) } else { Ok(text.to_owned()) }
    }
}

/// Reads a list of scalars and joins them by `;`, as Flink writes a list in one line.
struct List<'a>(&'a [Shape]);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of plain values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<String, A::Error> {
        let mut elements: Vec<String> = Vec::new();
        for shape in self.0 {
            if !matches!(shape, Shape::Scalar) {
                return Err(A::Error::custom("a list can hold plain values only"));
            }
            let element = seq.next_element_seed(Text { expected: "a value", refuse: false })?;
            elements.extend(element);
        }
        Ok(elements.join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Vec<(usize, String, String)> {
        let settings = flatten("config.yaml", text).unwrap();
        settings.into_iter().map(|setting| (setting.line(text), setting.key, setting.value)).collect()
    }

    fn check(text: &str, expected: &[(usize, &str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(line, key, value)| (*line, (*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(flat(text), expected, "{text}");
    }

    fn refused(text: &str, reason: &str) {
        let error = flatten("config.yaml", text).unwrap_err().to_string();
        assert!(error.starts_with("config.yaml:") && error.contains(reason), "{text}\n{error}");
    }

    #[test]
    fn keys_may_be_nested_or_dotted() {
        let text = "# top\nrest:\n  port: 8081 # free\n\n  bind-address: 0.0.0.0\nstate.backend.incremental: true\n";
        check(
            text,
            &[(3, "rest.port", "8081"), (5, "rest.bind-address", "0.0.0.0"), (6, "state.backend.incremental", "true")],
        );
        check("a: {b: {c: 1}, d.e: 2}", &[(1, "a.b.c", "1"), (1, "a.d.e", "2")]);
        check("a: {\n  b: 1,\n  c: 2\n}\n", &[(2, "a.b", "1"), (3, "a.c", "2")]);
    }

    #[test]
    fn a_hash_starts_a_comment_only_after_a_space() {
        check("a.b: x#y", &[(1, "a.b", "x#y")]);
        check("a.b: x #y", &[(1, "a.b", "x")]);
        check("a.b: 'x #y'", &[(1, "a.b", "x #y")]);
        check("a.b: \"x #y\" # z", &[(1, "a.b", "x #y")]);
    }

    #[test]
    fn values_keep_their_text() {
        for value in ["1.50", "007", "0x1F", "1e3", "TRUE", "-5", "10 s", "file:///tmp/x:y", ".inf", "1_000"] {
            check(&format!("a: {value}"), &[(1, "a", value)]);
        }
        check("a: 'null'\nb: \"\"", &[(1, "a", "null"), (2, "b", "")]);
        check("a: |\n  two\n  lines\nb: 1", &[(1, "a", "two\nlines\n"), (4, "b", "1")]);
        check("a: &x 1.0\nb: *x", &[(1, "a", "1.0"), (2, "b", "1.0")]);
    }

    #[test]
    fn lists_are_joined() {
        check("a: [x, 2, 'y z']\nb:\n  - 1\n  - 2\nc: []", &[(1, "a", "x;2;y z"), (2, "b", "1;2"), (5, "c", "")]);
        refused("a:\n  - b: 1", "plain values only");
    }

    #[test]
    fn nothing_is_no_setting() {
        check("", &[]);
        check("# only a comment\n", &[]);
        check("---\n", &[]);
        refused("a: 1\nb:\nc: 2", "config.yaml:2: 'b' has no value");
        refused("a:\n  # b: 1\n", "config.yaml:1: 'a' has no value");
        refused("a: ~", "no value");
    }

    #[test]
    fn a_key_given_twice_is_refused_with_both_lines() {
        refused("a.b: 1\nc: 2\na.b: 1\n", "config.yaml:3: 'a.b' is given twice, first in line 1");
        refused("a.b: 1\n\na:\n  b: 2\n", "config.yaml:4: 'a.b' is given twice, first in line 1");
        refused("a:\n  b: 1\na:\n  c: 2\n", "config.yaml:3: 'a' is given twice, first in line 1");
        refused("a: 1\na:\n  c: 2\n", "config.yaml:2: 'a' is given twice, first in line 1");
        check("a: 1\na.b: 2", &[(1, "a", "1"), (2, "a.b", "2")]);
    }

    #[test]
    fn what_is_no_yaml_is_refused_with_its_place() {
        refused("a: 1\n b: 2", "line 2");
        refused("a: 'x", "line");
        refused("just text", "expected settings");
        refused("- a\n- b", "expected settings");
        refused("a: 1\n---\nb: 2", "more than one document");
        refused("[a]: 1", "a key");
        refused("a: !secret x", "line 1");
    }
}
