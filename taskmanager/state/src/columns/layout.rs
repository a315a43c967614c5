//! The columns of a state, and the text that describes them in manifests.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use flott_core::{Data, Error, Result, codec};
use serde::{Deserialize, Serialize};
use serde_arrow::{ArrayBuilder, Deserializer};

use super::arrays::Builder;
use super::shape::Shape;
use super::trace::Trace;

/// The column with the key group of each row.
pub(super) const KEY_GROUP: &str = "key_group";

/// The version of the text.
const FORMAT: u32 = 1;

/// How a column holds its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// In Arrow's types.
    Arrow,
    /// As bytes of the codec.
    Binary,
    /// Not at all: a unit is nothing.
    Absent,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Column {
    pub(super) form: Form,
    /// What its values look like in this form.
    #[serde(rename = "type")]
    pub(super) shape: Shape,
    /// What they look like to the codec, if that is something else. An address is text to people, and bytes to programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<Shape>,
}

/// All columns but that of the key group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    format: u32,
    /// That the variants of its enums are known to stand in the order of their numbers. Those of an enum with other names
    /// for variants (`#[serde(alias)]`) do not. Builds that did not look say nothing, and so does a layout without enums.
    #[serde(default, skip_serializing_if = "is_false")]
    numbered: bool,
    key: Column,
    namespace: Column,
    value: Column,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Column {
    fn of<T: Data>(name: &str, can_be_absent: bool) -> Self {
        let bytes = Trace::of::<T>(false).map_or(Shape::Unknown, |trace| trace.shape());
        if can_be_absent && bytes == Shape::Unit {
            return Self { form: Form::Absent, shape: bytes, bytes: None };
        }
        if let Some(mut trace) = Trace::of::<T>(true) {
            let shape = trace.shape();
            if let Some(field) = shape.field(name)
                && survives::<T>(field, trace.samples())
            {
                let bytes = (bytes != shape).then_some(bytes);
                return Self { form: Form::Arrow, shape, bytes };
            }
        }
        Self { form: Form::Binary, shape: bytes, bytes: None }
    }

    /// What its values look like to the codec.
    pub(super) fn bytes(&self) -> &Shape {
        self.bytes.as_ref().unwrap_or(&self.shape)
    }

    /// Its Arrow field, unless it is absent or a text claims a form that there is not.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        match self.form {
            Form::Arrow => self.shape.field(name),
            Form::Binary => Some(Field::new(name, DataType::LargeBinary, false)),
            Form::Absent => None,
        }
    }

    /// Whether the codec's numbers of variants are those of their names.
    fn is_numbered<T: Data>(&self) -> bool {
        let bytes = self.bytes();
        !bytes.has_variants() || Trace::by_number::<T>().is_some_and(|trace| trace.shape() == *bytes)
    }

    fn is_sound(&self, name: &str) -> bool {
        match self.form {
            Form::Absent => self.shape == Shape::Unit && name != "key",
            Form::Arrow | Form::Binary => self.field(name).is_some(),
        }
    }
}

/// Whether values come back from Arrow as they went, by their bytes in the codec. Those that the codec refuses cannot be
/// in a state.
fn survives<T: Data>(field: Field, samples: Vec<T>) -> bool {
    let samples = with_bytes(samples);
    match there_and_back(&[Arc::new(field)], &samples) {
        Ok((_, again)) if !samples.is_empty() && again.len() == samples.len() => {
            samples.iter().zip(&again).all(|(sample, again)| codec::encode(sample) == codec::encode(again))
        }
        _ => false,
    }
}

fn with_bytes<T: Data>(samples: Vec<T>) -> Vec<(T,)> {
    samples.into_iter().filter(|sample| codec::encode(sample).is_ok()).map(|sample| (sample,)).collect()
}

/// Whether the bytes of values, read by the shape of their column, give the same array as the values do.
fn is_read_by_shape<T: Data>(column: &Column, field: &Field, samples: Vec<T>) -> bool {
    let samples = with_bytes(samples);
    let (Some(mut builder), Ok((arrays, _))) =
        (Builder::new(&column.shape), there_and_back(&[Arc::new(field.clone())], &samples))
    else {
        return false;
    };
    let are_read = samples.iter().all(|(sample,)| {
        codec::encode(sample).is_ok_and(|bytes| {
            let mut rest = &bytes[..];
            builder.push(&mut rest).is_ok() && rest.is_empty()
        })
    });
    are_read && builder.finish(field.data_type()).is_ok_and(|array| [array] == arrays[..])
}

/// Values in Arrow, and back again.
fn there_and_back<T: Data>(
    fields: &[FieldRef],
    samples: &[(T,)],
) -> Result<(Vec<ArrayRef>, Vec<(T,)>), serde_arrow::Error> {
    let mut builder = ArrayBuilder::from_arrow(fields)?;
    for sample in samples {
        builder.push(sample)?;
    }
    let arrays = builder.into_arrow()?;
    let rows = Deserializer::from_arrow(fields, &arrays)?;
    let again = rows.iter().map(Deserialize::deserialize).collect::<Result<_, _>>()?;
    Ok((arrays, again))
}

impl Layout {
    fn of<K: Data, N: Data, V: Data>() -> Self {
        let (key, namespace) = (Column::of::<K>("key", false), Column::of::<N>("namespace", true));
        let mut layout =
            Self { format: FORMAT, numbered: false, key, namespace, value: Column::of::<V>("value", true) };
        layout.numbered = layout.columns().iter().any(|(_, column)| column.bytes().has_variants())
            && layout.key.is_numbered::<K>()
            && layout.namespace.is_numbered::<N>()
            && layout.value.is_numbered::<V>();
        layout
    }

    /// Reads the text of a manifest, of which nothing is taken for granted.
    pub(super) fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = |reason: String| Error::input(format!("the schema of the saved state is damaged: {reason}"));
        let Version { format } = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if format != FORMAT {
            return Err(Error::input(format!(
                "the schema of the saved state has format {format}, and this program knows format {FORMAT}: use a version of Flott that knows it"
            )));
        }
        let layout: Self = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        for (name, column) in layout.columns() {
            if !column.is_sound(name) {
                let Column { form, shape, .. } = column;
                return Err(damaged(format!("column '{name}' cannot have the form {form:?} and the type {shape}")));
            }
        }
        Ok(layout)
    }

    /// The columns in their order.
    pub(super) fn columns(&self) -> [(&'static str, &Column); 3] {
        [("key", &self.key), ("namespace", &self.namespace), ("value", &self.value)]
    }

    /// A text that is equal for the same layouts in each build.
    pub(super) fn text_of_types(&self) -> String {
        serde_json::to_string(&Self { numbered: false, ..self.clone() }).expect("names and types are JSON")
    }

    /// Whether the shapes say how to read the codec's bytes of this column.
    pub(super) fn can_read_bytes_of(&self, column: &Column) -> bool {
        let bytes = column.bytes();
        *bytes != Shape::Unknown && (self.numbered || !bytes.has_variants())
    }

    /// Whether this is another layout, apart from what a build says about it.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.columns() != other.columns()
    }

    fn is_by_shape<T: Data>(&self, name: &str, column: &Column) -> bool {
        column.form == Form::Arrow
            && column.bytes.is_none()
            && self.can_read_bytes_of(column)
            && column.field(name).is_some_and(|field| {
                let samples = Trace::of::<T>(true).map(|mut trace| trace.samples()).unwrap_or_default();
                is_read_by_shape::<T>(column, &field, samples)
            })
    }

    /// The forms of the columns in their order.
    pub(super) fn forms(&self) -> [Form; 3] {
        self.columns().map(|(_, column)| column.form)
    }
}

/// A layout, and what is made of it once for all batches.
pub(super) struct Plan {
    pub(super) layout: Layout,
    pub(super) text: String,
    /// Which columns are made of bytes by their shapes, without a value of their types.
    pub(super) is_by_shape: [bool; 3],
    /// The fields of the columns that are not absent, without the key group.
    pub(super) fields: Vec<FieldRef>,
    pub(super) schema: SchemaRef,
}

/// Looking at types takes a while, so it is done once for each: types do not change while a program runs.
static PLANS: LazyLock<Mutex<HashMap<TypeId, Arc<Plan>>>> = LazyLock::new(Mutex::default);

impl Plan {
    /// The plan for a state of these types.
    pub(super) fn of<K: Data, N: Data, V: Data>() -> Arc<Self> {
        let types = TypeId::of::<(K, N, V)>();
        // What is in the map is whole, whatever a thread that panicked did.
        if let Some(plan) = PLANS.lock().unwrap_or_else(PoisonError::into_inner).get(&types) {
            return Arc::clone(plan);
        }
        // Unlocked, since it runs code of the types.
        let layout = Layout::of::<K, N, V>();
        let by_shape = [
            layout.is_by_shape::<K>("key", &layout.key),
            layout.is_by_shape::<N>("namespace", &layout.namespace),
            layout.is_by_shape::<V>("value", &layout.value),
        ];
        let plan = Arc::new(Self::new(layout, by_shape));
        PLANS.lock().unwrap_or_else(PoisonError::into_inner).insert(types, Arc::clone(&plan));
        plan
    }

    fn new(layout: Layout, is_by_shape: [bool; 3]) -> Self {
        let text = serde_json::to_string(&layout).expect("names and types are JSON");
        let columns = layout.columns();
        let fields: Vec<FieldRef> =
            columns.into_iter().filter_map(|(name, column)| column.field(name)).map(Arc::new).collect();
        let group: FieldRef = Arc::new(Field::new(KEY_GROUP, DataType::UInt16, false));
        let schema = Arc::new(Schema::new([vec![group], fields.clone()].concat()));
        Self { layout, text, is_by_shape, fields, schema }
    }
}
