//! What a type looks like to serde, and the Arrow type that holds its values.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use serde::{Deserialize, Serialize};

/// A type without its name. It stands in manifests, so that what is here can only be added to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Shape {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    Float32,
    Float64,
    Char,
    Utf8,
    Binary,
    Unit,
    Option(Box<Shape>),
    List(Box<Shape>),
    /// A tuple that must be an array: equal elements, and more of them than a tuple would have.
    Array(Box<Shape>, usize),
    Map(Box<Shape>, Box<Shape>),
    Tuple(Vec<Shape>),
    Struct(Vec<Member>),
    Enum(Vec<Variant>),
    /// Serde does not show what it is.
    Unknown,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) shape: Shape,
    #[serde(skip)]
    pub(super) reading: Reading,
}

/// What a program accepts when it reads a field. It says nothing about what it writes, so it is in no manifest, and
/// makes no difference between fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) aliases: Vec<String>,
    pub(super) has_default: bool,
    /// The struct refuses fields that it does not know.
    pub(super) refuses_others: bool,
}

impl PartialEq for Reading {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A variant of an enum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Variant {
    pub(super) name: String,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Shape>,
}

impl Member {
    /// Whether it is read from a field of this name.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.reading.aliases.iter().any(|alias| alias == name)
    }
}

impl Shape {
    /// The Arrow field for values of this shape, if there is one that holds each of them and no two in the same way.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        match self {
            // An Option in an Option has two ways to have no value, a column has one.
            Self::Option(inner) => Some(Field::new(name, inner.data_type()?, true)),
            _ => Some(Field::new(name, self.data_type()?, false)),
        }
    }

    fn data_type(&self) -> Option<DataType> {
        Some(match self {
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 | Self::Char => DataType::UInt32,
            Self::UInt64 => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Utf8 => DataType::LargeUtf8,
            Self::Binary => DataType::LargeBinary,
            Self::List(element) if **element == Self::UInt8 => DataType::LargeBinary,
            Self::List(element) | Self::Array(element, _) => DataType::LargeList(Arc::new(element.field("element")?)),
            Self::Map(key, value) => {
                let key = key.field("key").filter(|key| !key.is_nullable())?;
                let entry = DataType::Struct(Fields::from(vec![key, value.field("value")?]));
                DataType::Map(Arc::new(Field::new("key_value", entry, false)), false)
            }
            Self::Tuple(elements) => {
                let fields = elements.iter().enumerate().map(|(index, element)| element.field(&index.to_string()));
                structure(fields)?
            }
            Self::Struct(members) => {
                let names: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
                if names.len() < members.len() {
                    return None;
                }
                structure(members.iter().map(|member| member.shape.field(&member.name)))?
            }
            Self::Enum(variants) if variants.iter().all(|variant| variant.content.is_none()) => DataType::LargeUtf8,
            Self::Int128 | Self::UInt128 | Self::Unit | Self::Option(_) | Self::Enum(_) | Self::Unknown => return None,
        })
    }

    /// Whether it is signed, and its bits, if it is an integer.
    pub(super) fn integer(&self) -> Option<(bool, u32)> {
        Some(match self {
            Self::Int8 => (true, 8),
            Self::Int16 => (true, 16),
            Self::Int32 => (true, 32),
            Self::Int64 => (true, 64),
            Self::UInt8 => (false, 8),
            Self::UInt16 => (false, 16),
            Self::UInt32 => (false, 32),
            Self::UInt64 => (false, 64),
            _ => return None,
        })
    }

    /// Whether values may come back in another order, as those of a `HashMap` or `HashSet` do.
    pub(super) fn has_elements(&self) -> bool {
        match self {
            Self::List(_) | Self::Map(..) | Self::Unknown => true,
            Self::Option(inner) | Self::Array(inner, _) => inner.has_elements(),
            Self::Tuple(elements) => elements.iter().any(Self::has_elements),
            Self::Struct(members) => members.iter().any(|member| member.shape.has_elements()),
            Self::Enum(variants) => {
                variants.iter().filter_map(|variant| variant.content.as_ref()).any(Self::has_elements)
            }
            _ => false,
        }
    }

    /// Whether an enum is in it.
    pub(super) fn has_variants(&self) -> bool {
        match self {
            Self::Enum(_) => true,
            Self::Option(inner) | Self::List(inner) | Self::Array(inner, _) => inner.has_variants(),
            Self::Map(key, value) => key.has_variants() || value.has_variants(),
            Self::Tuple(elements) => elements.iter().any(Self::has_variants),
            Self::Struct(members) => members.iter().any(|member| member.shape.has_variants()),
            _ => false,
        }
    }
}

/// A struct of these fields. Parquet has none without fields.
fn structure(fields: impl Iterator<Item = Option<Field>>) -> Option<DataType> {
    let fields: Vec<Field> = fields.collect::<Option<_>>()?;
    (!fields.is_empty()).then(|| DataType::Struct(Fields::from(fields)))
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(inner) => write!(f, "Option<{inner}>"),
            Self::List(element) => write!(f, "List<{element}>"),
            Self::Array(element, length) => write!(f, "Array<{element}, {length}>"),
            Self::Map(key, value) => write!(f, "Map<{key}, {value}>"),
            Self::Tuple(elements) => names(f, "Tuple", elements.iter()),
            Self::Struct(members) => names(f, "Struct", members.iter().map(|member| &member.name)),
            Self::Enum(variants) => names(f, "Enum", variants.iter().map(|variant| &variant.name)),
            // All that is left has nothing in it, and is called as it is here.
            _ => write!(f, "{self:?}"),
        }
    }
}

fn names<T: fmt::Display>(f: &mut fmt::Formatter<'_>, kind: &str, parts: impl Iterator<Item = T>) -> fmt::Result {
    write!(f, "{kind}<")?;
    for (index, part) in parts.enumerate() {
        write!(f, "{}{part}", if index == 0 { "" } else { ", " })?;
    }
    write!(f, ">")
}
