//! Finds out what a type looks like by letting serde read values of it that are made up on the way.
//!
//! A type is read again and again, and each time the tree of what was seen grows, until there is nothing left to
//! learn: another variant of an enum, a sample that a type with rules accepts, and for structs what they do when a field
//! is missing, or when there is one that they do not know. Names that turn out to be one field are aliases.

use std::fmt;

use serde::de::{self, DeserializeOwned};

use super::shape::{Member, Reading, Shape, Variant};

mod probe;

/// How often a type is read until it is given up. A field needs one reading, and a variant needs one.
const READINGS_MAX: usize = 10_000;

/// How many samples of a type are made, at most.
const SAMPLES_MAX: usize = 256;

/// The longest tuple of equal elements that is not taken for an array.
const TUPLE_MAX: usize = 4;

/// A type that was looked at.
pub(super) struct Trace {
    root: Node,
    is_human_readable: bool,
    is_by_number: bool,
}

impl Trace {
    /// Looks at `T`, as serde shows it to people or to programs. There is nothing if serde does not show what it is.
    pub(super) fn of<T: DeserializeOwned>(is_human_readable: bool) -> Option<Self> {
        Self { root: Node::Unseen, is_human_readable, is_by_number: false }.learn::<T>()
    }

    /// Looks at `T` as the codec does, which chooses variants by their numbers. There is nothing also if it has more names
    /// of variants than numbers.
    pub(super) fn by_number<T: DeserializeOwned>() -> Option<Self> {
        Self { root: Node::Unseen, is_human_readable: false, is_by_number: true }.learn::<T>()
    }

    fn learn<T: DeserializeOwned>(self) -> Option<Self> {
        let mut trace = self;
        for _ in 0..READINGS_MAX {
            match trace.read::<T>(Mode::Learn) {
                Ok(_) if trace.root.is_known() => return Some(trace),
                Ok(_) | Err(Failure::Again) => {}
                Err(Failure::Duplicate(_) | Failure::Other) => return None,
            }
        }
        None
    }

    pub(super) fn shape(&self) -> Shape {
        self.root.shape()
    }

    /// Values that have each variant and each optional part, and one without optional parts and elements.
    pub(super) fn samples<T: DeserializeOwned>(&mut self) -> Vec<T> {
        let full = self.root.variants().clamp(1, SAMPLES_MAX);
        let modes = (0..full).map(Mode::Full).chain([Mode::Empty]);
        modes.filter_map(|mode| self.read(mode).ok()).collect()
    }

    fn read<T: DeserializeOwned>(&mut self, mode: Mode) -> Result<T, Failure> {
        let look = Look { mode, is_human_readable: self.is_human_readable, is_by_number: self.is_by_number, depth: 0 };
        T::deserialize(probe::Probe { node: &mut self.root, look })
    }
}

/// What a value that is made up is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To see something new.
    Learn,
    /// To have all parts. Each enum has the variant of this number, counted around.
    Full(usize),
    /// To have nothing that can be left out.
    Empty,
}

#[derive(Clone, Copy)]
struct Look {
    mode: Mode,
    is_human_readable: bool,
    /// Whether variants are chosen by their numbers, or by their names.
    is_by_number: bool,
    depth: u32,
}

/// Why a reading ended early.
#[derive(Debug)]
enum Failure {
    /// It has learnt something: the next one comes further.
    Again,
    /// A struct was given two names of this field.
    Duplicate(&'static str),
    Other,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a made-up value is refused")
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::Other
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Duplicate(field)
    }
}

/// What was seen of a type, or of a part of it.
#[derive(Default)]
enum Node {
    #[default]
    Unseen,
    /// Of the samples for its shape, the one at `sample` is the first that it may accept.
    Leaf {
        shape: Shape,
        sample: usize,
    },
    Option(Box<Node>),
    List(Box<Node>),
    Map(Box<Node>, Box<Node>),
    Tuple {
        elements: Vec<Node>,
        is_array: bool,
    },
    Struct(Record),
    Enum(Vec<Choice>),
}

/// A variant of an enum.
struct Choice {
    name: &'static str,
    is_unit: bool,
    content: Node,
}

struct Record {
    fields: Vec<RecordField>,
    /// How many questions were answered: one for the names, one for each field, one for a field that is unknown.
    answered: usize,
    refuses_others: bool,
}

struct RecordField {
    /// Its name and its aliases.
    names: Vec<&'static str>,
    name: &'static str,
    has_default: bool,
    node: Node,
}

/// What is tried out while a struct is read.
#[derive(Clone, Copy)]
enum Question {
    /// Are these names all different fields?
    Names,
    /// Can this field be left out?
    Without(usize),
    /// May there be fields that it does not know?
    Stranger,
    /// All is known.
    Nothing,
}

impl Node {
    fn or_start(&mut self, start: impl FnOnce() -> Self) -> &mut Self {
        if matches!(self, Self::Unseen) {
            *self = start();
        }
        self
    }

    fn is_known(&self) -> bool {
        match self {
            Self::Unseen => false,
            Self::Leaf { .. } => true,
            Self::Option(inner) | Self::List(inner) => inner.is_known(),
            Self::Map(key, value) => key.is_known() && value.is_known(),
            Self::Tuple { elements, .. } => elements.iter().all(Self::is_known),
            Self::Struct(record) => {
                matches!(record.question(), Question::Nothing)
                    && record.fields.iter().all(|field| field.node.is_known())
            }
            Self::Enum(choices) => choices.iter().all(|choice| choice.content.is_known()),
        }
    }

    /// The most variants that an enum in it has.
    fn variants(&self) -> usize {
        match self {
            Self::Unseen | Self::Leaf { .. } => 0,
            Self::Option(inner) | Self::List(inner) => inner.variants(),
            Self::Map(key, value) => key.variants().max(value.variants()),
            Self::Tuple { elements, .. } => elements.iter().map(Self::variants).max().unwrap_or(0),
            Self::Struct(record) => record.fields.iter().map(|field| field.node.variants()).max().unwrap_or(0),
            Self::Enum(choices) => {
                choices.iter().map(|choice| choice.content.variants()).max().unwrap_or(0).max(choices.len())
            }
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Unseen => Shape::Unknown,
            Self::Leaf { shape, .. } => shape.clone(),
            Self::Option(inner) => Shape::Option(Box::new(inner.shape())),
            Self::List(element) => Shape::List(Box::new(element.shape())),
            Self::Map(key, value) => Shape::Map(Box::new(key.shape()), Box::new(value.shape())),
            Self::Tuple { elements, is_array } => {
                let mut shapes: Vec<Shape> = elements.iter().map(Self::shape).collect();
                let are_equal = shapes.windows(2).all(|pair| pair[0] == pair[1]);
                match shapes.pop() {
                    Some(last) if *is_array && are_equal && shapes.len() >= TUPLE_MAX => {
                        Shape::Array(Box::new(last), shapes.len() + 1)
                    }
                    Some(last) => {
                        shapes.push(last);
                        Shape::Tuple(shapes)
                    }
                    None => Shape::Tuple(shapes),
                }
            }
            Self::Struct(record) => Shape::Struct(record.members()),
            Self::Enum(choices) => {
                let variants = choices.iter().map(|choice| Variant {
                    name: choice.name.to_owned(),
                    content: (!choice.is_unit).then(|| choice.content.shape()),
                });
                Shape::Enum(variants.collect())
            }
        }
    }
}

impl Record {
    fn new(names: &'static [&'static str]) -> Self {
        let field =
            |&name: &&'static str| RecordField { names: vec![name], name, has_default: false, node: Node::Unseen };
        Self { fields: names.iter().map(field).collect(), answered: 0, refuses_others: false }
    }

    fn question(&self) -> Question {
        match self.answered {
            0 => Question::Names,
            next if next <= self.fields.len() => Question::Without(next - 1),
            next if next == self.fields.len() + 1 => Question::Stranger,
            _ => Question::Nothing,
        }
    }

    fn answer(&mut self, question: Question, is_accepted: bool) {
        match question {
            Question::Without(index) => self.fields[index].has_default = is_accepted,
            Question::Stranger => self.refuses_others = !is_accepted,
            Question::Names | Question::Nothing => {}
        }
        self.answered += 1;
    }

    /// The name at `index` was taken for the field `name`, which the one before it is as well: serde lists the names of
    /// a field one after another.
    fn merge(&mut self, index: usize, name: &'static str) -> Failure {
        if index == 0 || index >= self.fields.len() {
            return Failure::Other;
        }
        let alias = self.fields.remove(index);
        let field = &mut self.fields[index - 1];
        field.names.extend(alias.names);
        field.name = name;
        Failure::Again
    }

    fn members(&self) -> Vec<Member> {
        let members = self.fields.iter().map(|field| {
            let aliases = field.names.iter().filter(|&&name| name != field.name).map(|&name| name.to_owned());
            let reading = Reading {
                aliases: aliases.collect(),
                has_default: field.has_default,
                refuses_others: self.refuses_others,
            };
            Member { name: field.name.to_owned(), shape: field.node.shape(), reading }
        });
        members.collect()
    }
}
