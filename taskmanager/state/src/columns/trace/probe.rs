//! Answers whatever serde asks for while it reads a value, and notes the questions.

use std::slice;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::{Choice, Failure, Look, Mode, Node, Question, Record};
use crate::columns::shape::Shape;

/// How deeply types may be nested. Recursive types have no bottom, and this is where they are given up; it is also less
/// than JSON can nest.
const DEPTH_MAX: u32 = 32;

/// Texts to try on types that read themselves from text: times, identifiers, addresses.
const TEXTS: [&str; 11] = [
    "",
    "0",
    "1970-01-01T00:00:00Z",
    "1970-01-01T00:00:00",
    "1970-01-01",
    "00:00:00",
    "00000000-0000-0000-0000-000000000000",
    "127.0.0.1",
    "::1",
    "127.0.0.1:80",
    "[::1]:80",
];

/// Bytes to try on types that read themselves from bytes.
const BYTES: [&[u8]; 3] = [&[], &[0; 16], &[0; 32]];

/// Makes up one value, and notes what was asked for.
pub(super) struct Probe<'a> {
    pub(super) node: &'a mut Node,
    pub(super) look: Look,
}

impl Probe<'_> {
    fn deeper(&self) -> Result<Look, Failure> {
        match self.look.depth {
            DEPTH_MAX => Err(Failure::Other),
            depth => Ok(Look { depth: depth + 1, ..self.look }),
        }
    }

    /// A value without parts, of which there are `samples`.
    fn leaf<T>(
        self,
        shape: Shape,
        samples: usize,
        visit: impl FnOnce(usize) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Node::Leaf { shape: seen, sample } = self.node.or_start(|| Node::Leaf { shape: shape.clone(), sample: 0 })
        else {
            return Err(Failure::Other);
        };
        if *seen != shape {
            return Err(Failure::Other);
        }
        visit(*sample).map_err(|failure| {
            if *sample + 1 == samples {
                return failure;
            }
            *sample += 1;
            Failure::Again
        })
    }

    fn tuple<'de, V: Visitor<'de>>(self, length: usize, is_array: bool, visitor: V) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        let start = || Node::Tuple { elements: (0..length).map(|_| Node::Unseen).collect(), is_array };
        let Node::Tuple { elements, .. } = self.node.or_start(start) else { return Err(Failure::Other) };
        visitor.visit_seq(Elements { nodes: elements.iter_mut(), look })
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $shape:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            // One comes first: types with rules, such as `NonZeroU64`, accept it.
            self.leaf(Shape::$shape, 2, |sample| visitor.$visit(if sample == 0 { 1 } else { 0 }))
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Failure;

    integers! {
        deserialize_i8 visit_i8 Int8, deserialize_i16 visit_i16 Int16, deserialize_i32 visit_i32 Int32,
        deserialize_i64 visit_i64 Int64, deserialize_i128 visit_i128 Int128,
        deserialize_u8 visit_u8 UInt8, deserialize_u16 visit_u16 UInt16, deserialize_u32 visit_u32 UInt32,
        deserialize_u64 visit_u64 UInt64, deserialize_u128 visit_u128 UInt128
    }

    /// The type takes what the data says that it is, so it says nothing itself.
    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Failure> {
        Err(Failure::Other)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Failure> {
        Err(Failure::Other)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Boolean, 2, |sample| visitor.visit_bool(sample == 0))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Float32, 2, |sample| visitor.visit_f32(if sample == 0 { 0.5 } else { 1.0 }))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Float64, 2, |sample| visitor.visit_f64(if sample == 0 { 0.5 } else { 1.0 }))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Char, 1, |_| visitor.visit_char('a'))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Utf8, TEXTS.len(), |sample| visitor.visit_borrowed_str(TEXTS[sample]))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Binary, BYTES.len(), |sample| visitor.visit_borrowed_bytes(BYTES[sample]))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        let Node::Option(inner) = self.node.or_start(|| Node::Option(Box::default())) else {
            return Err(Failure::Other);
        };
        match look.mode {
            Mode::Empty => visitor.visit_none(),
            _ => visitor.visit_some(Probe { node: inner, look }),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.leaf(Shape::Unit, 1, |_| visitor.visit_unit())
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        visitor.visit_newtype_struct(Probe { node: self.node, look })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        let Node::List(element) = self.node.or_start(|| Node::List(Box::default())) else {
            return Err(Failure::Other);
        };
        let elements: &mut [Node] = match look.mode {
            Mode::Empty => &mut [],
            _ => slice::from_mut(&mut **element),
        };
        visitor.visit_seq(Elements { nodes: elements.iter_mut(), look })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Failure> {
        self.tuple(length, true, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.tuple(length, false, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        let Node::Map(key, value) = self.node.or_start(|| Node::Map(Box::default(), Box::default())) else {
            return Err(Failure::Other);
        };
        let key: Option<&mut Node> = match look.mode {
            Mode::Empty => None,
            _ => Some(&mut **key),
        };
        visitor.visit_map(OneEntry { key, value, look })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        let Node::Struct(record) = self.node.or_start(|| Node::Struct(Record::new(fields))) else {
            return Err(Failure::Other);
        };
        let question = if look.mode == Mode::Learn { record.question() } else { Question::Nothing };
        let mut parts = RecordParts { record, question, look, next: 0, current: None };
        let result = visitor.visit_map(&mut parts);
        let RecordParts { record, current, .. } = parts;
        match (question, result) {
            (Question::Nothing, result) => result,
            (_, Err(Failure::Again)) => Err(Failure::Again),
            (Question::Names, Err(Failure::Duplicate(name))) => Err(record.merge(current.unwrap_or(0), name)),
            (Question::Names, Err(failure)) => Err(failure),
            (question, result) => {
                record.answer(question, result.is_ok());
                result.map_err(|_| Failure::Again)
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let look = self.deeper()?;
        let choice = |&name: &&'static str| Choice { name, is_unit: false, content: Node::Unseen };
        let start = || Node::Enum(variants.iter().map(choice).collect());
        let Node::Enum(choices) = self.node.or_start(start) else { return Err(Failure::Other) };
        let index = match look.mode {
            Mode::Learn => choices.iter().position(|choice| !choice.content.is_known()).unwrap_or(0),
            Mode::Full(round) => round.checked_rem(choices.len()).unwrap_or(0),
            Mode::Empty => 0,
        };
        let choice = choices.get_mut(index).ok_or(Failure::Other)?;
        visitor.visit_enum(Chosen { choice, number: index as u32, look })
    }

    fn is_human_readable(&self) -> bool {
        self.look.is_human_readable
    }
}

struct Elements<'a> {
    nodes: slice::IterMut<'a, Node>,
    look: Look,
}

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        match self.nodes.next() {
            Some(node) => seed.deserialize(Probe { node, look: self.look }).map(Some),
            None => Ok(None),
        }
    }
}

/// A map with one entry, or with none if there is no key.
struct OneEntry<'a> {
    key: Option<&'a mut Node>,
    value: &'a mut Node,
    look: Look,
}

impl<'de> de::MapAccess<'de> for OneEntry<'_> {
    type Error = Failure;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        match self.key.take() {
            Some(node) => seed.deserialize(Probe { node, look: self.look }).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(Probe { node: self.value, look: self.look })
    }
}

/// The fields of a struct, as `question` wants them.
struct RecordParts<'a> {
    record: &'a mut Record,
    question: Question,
    look: Look,
    next: usize,
    /// The field whose value comes next. There is none for the stranger, which comes last.
    current: Option<usize>,
}

impl<'de> de::MapAccess<'de> for RecordParts<'_> {
    type Error = Failure;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if matches!(self.question, Question::Without(left_out) if left_out == self.next) {
            self.next += 1;
        }
        let index = self.next;
        self.next += 1;
        let name = match self.record.fields.get(index) {
            Some(field) => field.names[0],
            None if index == self.record.fields.len() && matches!(self.question, Question::Stranger) => {
                "a field that no struct has"
            }
            None => return Ok(None),
        };
        self.current = (index < self.record.fields.len()).then_some(index);
        seed.deserialize(IntoDeserializer::<Failure>::into_deserializer(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        match self.current.and_then(|index| self.record.fields.get_mut(index)) {
            Some(field) => seed.deserialize(Probe { node: &mut field.node, look: self.look }),
            None => seed.deserialize(IntoDeserializer::<Failure>::into_deserializer(())),
        }
    }
}

/// A variant that was chosen.
struct Chosen<'a> {
    choice: &'a mut Choice,
    number: u32,
    look: Look,
}

impl<'a> Chosen<'a> {
    fn content(self) -> Probe<'a> {
        Probe { node: &mut self.choice.content, look: self.look }
    }
}

impl<'de> de::EnumAccess<'de> for Chosen<'_> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Failure> {
        let variant = match self.look.is_by_number {
            true => seed.deserialize(IntoDeserializer::<Failure>::into_deserializer(self.number))?,
            false => seed.deserialize(IntoDeserializer::<Failure>::into_deserializer(self.choice.name))?,
        };
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Chosen<'_> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        self.choice.is_unit = true;
        self.content().leaf(Shape::Unit, 1, |_| Ok(()))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(self.content())
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Failure> {
        self.content().tuple(length, false, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Failure> {
        self.content().deserialize_struct("", fields, visitor)
    }
}
