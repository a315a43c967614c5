//! How values of a Rust type are rows, by serde: what `#[serde(rename)]` and its kin say holds here too.

use std::any::type_name;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};
use flott_core::{Error, Result};
use flott_sql::catalog::suggestion;
use flott_sql::types::{SqlType, array_of, map_of, name_of};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_arrow::schema::{SchemaLike, TracingOptions};
use serde_arrow::utils::{Item, Items};
use serde_arrow::{ArrayBuilder, Deserializer};

/// What a type is to serde.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Fields with names.
    Struct,
    /// Fields in order: columns `f0`, `f1`, …
    Tuple,
    /// One value: the column `f0`.
    Value,
    /// Something else in each row, such as a `serde_json::Value`: its fields are the columns that there are.
    Dynamic,
}

/// The columns that values of a type have.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    form: Form,
    /// What serde takes, by its own names.
    fields: Vec<FieldRef>,
    type_name: &'static str,
}

fn options() -> TracingOptions {
    TracingOptions::default()
        .strings_as_large_utf8(false)
        .bytes_as_large_binary(false)
        .sequence_as_large_list(false)
        .map_as_struct(false)
        .enums_without_data_as_strings(true)
        .allow_null_fields(true)
}

impl Shape {
    /// That of a type.
    ///
    /// # Errors
    /// It has a part that is no type of SQL, such as an enum with data.
    pub(crate) fn of<T: DeserializeOwned>() -> Result<Self> {
        let type_name = type_name::<T>();
        let refused = |reason: String| {
            Error::input(format!(
                "values of the type {type_name} are no rows: {reason}; a row is a struct whose fields are numbers, texts, …"
            ))
        };
        let (form, traced) = match Vec::<FieldRef>::from_type::<T>(options()) {
            Ok(fields)
                if !fields.is_empty()
                    && fields.iter().enumerate().all(|(at, field)| *field.name() == at.to_string()) =>
            {
                (Form::Tuple, fields)
            }
            Ok(fields) => (Form::Struct, fields),
            Err(error) if error.message().contains("non self describing") => (Form::Dynamic, Vec::new()),
            Err(first) => match Vec::<FieldRef>::from_type::<Item<T>>(options()) {
                Ok(fields) => (Form::Value, fields),
                Err(_) => return Err(refused(first.message().to_owned())),
            },
        };
        let fields =
            traced.iter().map(|field| as_sql(field).map(Arc::new)).collect::<Result<_, _>>().map_err(refused)?;
        Ok(Self { form, fields, type_name })
    }

    /// The names that the columns have.
    fn names(&self) -> Vec<String> {
        let name = |(at, field): (usize, &FieldRef)| match self.form {
            Form::Tuple | Form::Value => format!("f{at}"),
            Form::Struct | Form::Dynamic => field.name().clone(),
        };
        self.fields.iter().enumerate().map(name).collect()
    }

    /// The columns, with the types that they have if nobody says otherwise.
    ///
    /// # Errors
    /// It depends on the value which there are.
    pub(crate) fn columns(&self) -> Result<Vec<(String, SqlType)>> {
        if self.form == Form::Dynamic {
            return Err(Error::input(format!(
                "values of the type {} have no columns that are known beforehand: use a struct",
                self.type_name
            )));
        }
        let typed = |(name, field): (String, &FieldRef)| Ok((name, SqlType::from_field(field).map_err(Error::input)?));
        self.names().into_iter().zip(&self.fields).map(typed).collect()
    }

    /// What holds a value as a whole: a row, or what the value is.
    ///
    /// # Errors
    /// As for [`Self::columns`].
    pub(crate) fn data_type(&self) -> Result<DataType> {
        self.columns()?;
        Ok(match self.form {
            Form::Value => self.fields[0].data_type().clone(),
            _ => {
                let named = self.names().into_iter().zip(&self.fields);
                DataType::Struct(named.map(|(name, field)| Arc::new(field.as_ref().clone().with_name(name))).collect())
            }
        })
    }

    /// Makes columns of values: those of `wanted`, each with its type.
    ///
    /// # Errors
    /// The type has no such column.
    pub(crate) fn writer(&self, wanted: &[FieldRef]) -> Result<Writer> {
        let names = self.names();
        let mut fields = Vec::with_capacity(wanted.len());
        let mut places = Vec::with_capacity(wanted.len());
        for field in wanted {
            let at = names.iter().position(|name| name == field.name()).ok_or_else(|| {
                let hint = suggestion(field.name(), &names);
                Error::input(format!("{} has no field '{}'{hint}", self.type_name, field.name()))
            })?;
            let plain = field.as_ref().clone().with_metadata(Default::default());
            fields.push(Arc::new(plain.with_name(self.fields[at].name())));
            places.push(at);
        }
        if self.form == Form::Tuple {
            // Fields of a tuple have no names: all are made, and those that are wanted taken.
            let all = (0..self.fields.len()).map(|at| {
                let chosen = places.iter().position(|place| *place == at);
                chosen.map_or_else(|| Arc::clone(&self.fields[at]), |chosen| Arc::clone(&fields[chosen]))
            });
            fields = all.collect();
        } else {
            places = (0..fields.len()).collect();
        }
        let builder = ArrayBuilder::from_arrow(&fields).map_err(|error| self.unfit(&error))?;
        Ok(Writer { shape: self.clone(), builder, places })
    }

    /// Makes values of the columns of a table.
    ///
    /// # Errors
    /// The table has not the columns that the type wants.
    pub(crate) fn reader(&self, table: &SchemaRef) -> Result<Reader> {
        let columns: Vec<String> = table.fields().iter().map(|field| field.name().clone()).collect();
        let mut fields: Vec<FieldRef> = Vec::new();
        let mut places = Vec::new();
        match self.form {
            Form::Dynamic => {
                fields.extend(table.fields().iter().cloned());
                places.extend(0..columns.len());
            }
            Form::Tuple | Form::Value if columns.len() != self.fields.len() => {
                return Err(Error::input(format!(
                    "the table has the columns ({}), and {} has {} by position",
                    columns.join(", "),
                    self.type_name,
                    self.fields.len()
                )));
            }
            Form::Tuple | Form::Value => {
                for (at, wanted) in self.fields.iter().enumerate() {
                    fields.push(self.read_as(table.field(at), wanted)?);
                    places.push(at);
                }
            }
            Form::Struct => {
                for wanted in &self.fields {
                    match columns.iter().position(|column| column == wanted.name()) {
                        Some(at) => {
                            fields.push(self.read_as(table.field(at), wanted)?);
                            places.push(at);
                        }
                        // The type may have a default for it, which only serde knows; if not, it says so.
                        None if wanted.is_nullable() => {}
                        None => {
                            let hint = suggestion(wanted.name(), &columns);
                            return Err(Error::input(format!(
                                "the table has no column '{}' for the field of {}{hint}",
                                wanted.name(),
                                self.type_name
                            )));
                        }
                    }
                }
            }
        }
        Ok(Reader { shape: self.clone(), fields, places })
    }

    /// A column as serde reads it into a field: exact numbers as the floats that a field wants, and times as integers.
    fn read_as(&self, column: &Field, wanted: &Field) -> Result<FieldRef> {
        let (from, to) = (column.data_type(), wanted.data_type());
        let is_float = |of: &DataType| matches!(of, DataType::Float32 | DataType::Float64);
        let is_int = |of: &DataType| of.is_signed_integer();
        let read = match (from, to) {
            _ if from == to => from.clone(),
            (DataType::Decimal128(..), to) if is_float(to) || is_int(to) => to.clone(),
            (from, to) if is_int(from) && is_float(to) => to.clone(),
            (DataType::Time32(_), DataType::Int32 | DataType::Int64) => DataType::Int32,
            (DataType::Duration(_), DataType::Int64) => DataType::Int64,
            // Serde converts these, and refuses values that do not fit.
            (from, to) if is_int(from) && is_int(to) || is_float(from) && is_float(to) => from.clone(),
            (DataType::Timestamp(..), DataType::Int64 | DataType::Utf8)
            | (DataType::Date32, DataType::Int32 | DataType::Int64 | DataType::Utf8)
            | (DataType::Decimal128(..), DataType::Utf8) => from.clone(),
            (DataType::Struct(_), DataType::Struct(_) | DataType::Map(..))
            | (DataType::List(_), DataType::List(_) | DataType::Binary)
            | (DataType::Map(..), DataType::Map(..) | DataType::Struct(_)) => from.clone(),
            _ => {
                return Err(Error::input(format!(
                    "the column '{}' is of the type {}, and the field of {} of the type {}: CAST the column, or change the field",
                    column.name(),
                    name_of(from),
                    self.type_name,
                    name_of(to)
                )));
            }
        };
        Ok(Arc::new(Field::new(wanted.name(), read, true)))
    }

    fn unfit(&self, error: &serde_arrow::Error) -> Error {
        Error::input(format!("values of the type {}: {}", self.type_name, error.message()))
    }
}

/// From values to columns.
pub(crate) struct Writer {
    shape: Shape,
    builder: ArrayBuilder,
    /// Where each wanted column is among those that are made.
    places: Vec<usize>,
}

impl Writer {
    /// The columns of these values.
    ///
    /// # Errors
    /// A value does not fit into its column.
    pub(crate) fn columns<T: Serialize>(&mut self, rows: &[T]) -> Result<Vec<ArrayRef>> {
        let added = match self.shape.form {
            Form::Value => self.builder.extend(Items(rows)),
            _ => self.builder.extend(rows),
        };
        let made = added.and_then(|()| self.builder.to_arrow()).map_err(|error| self.shape.unfit(&error))?;
        Ok(self.places.iter().map(|&at| Arc::clone(&made[at])).collect())
    }
}

/// From columns to values.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    shape: Shape,
    /// The columns that are read, under serde's names.
    fields: Vec<FieldRef>,
    /// Where they are in the table.
    places: Vec<usize>,
}

impl Reader {
    /// The values of these rows.
    ///
    /// # Errors
    /// A row is not one of the type: it has NULL where the type has none, or a number that is too large.
    pub(crate) fn values<T: DeserializeOwned>(&self, rows: &RecordBatch) -> Result<Vec<T>> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.places.len());
        for (field, &at) in self.fields.iter().zip(&self.places) {
            let column = rows.column(at);
            columns.push(match column.data_type() == field.data_type() {
                true => Arc::clone(column),
                false => cast(column, field.data_type())
                    .map_err(|error| Error::input(format!("'{}': {error}", field.name())))?,
            });
        }
        if columns.is_empty() {
            // Serde cannot see how many rows without columns there are.
            let (field, column) =
                (Field::new("", DataType::Null, true), arrow::array::new_null_array(&DataType::Null, rows.num_rows()));
            return self.read(&[Arc::new(field)], &[column]);
        }
        self.read(&self.fields, &columns)
    }

    fn read<T: DeserializeOwned>(&self, fields: &[FieldRef], columns: &[ArrayRef]) -> Result<Vec<T>> {
        let read = Deserializer::from_arrow(fields, columns).and_then(|rows| match self.shape.form {
            Form::Value => Items::<Vec<T>>::deserialize(rows).map(|Items(values)| values),
            _ => Vec::<T>::deserialize(rows),
        });
        read.map_err(|error| {
            Error::input(format!(
                "a row is no {}: {}; a field that may be NULL is an Option",
                self.shape.type_name,
                error.message()
            ))
        })
    }
}

/// A field as SQL has it: without unsigned numbers and large offsets.
fn as_sql(field: &Field) -> Result<Field, String> {
    let of = sql_type(field.data_type()).map_err(|reason| format!("the field '{}' {reason}", field.name()))?;
    Ok(Field::new(field.name(), of, field.is_nullable()))
}

fn sql_type(of: &DataType) -> Result<DataType, String> {
    Ok(match of {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            array_of(as_sql(element)?)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => map_of(sql_type(pair[0].data_type())?, as_sql(&pair[1])?),
            _ => return Err("is no map of SQL".to_owned()),
        },
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| as_sql(field)).collect::<Result<Fields, _>>()?)
        }
        DataType::Dictionary(_, value) => sql_type(value)?,
        DataType::Union(..) => return Err("is an enum with data, which SQL has not: flatten it into fields".to_owned()),
        DataType::Null => return Err("has no value at all".to_owned()),
        other => {
            SqlType::from_arrow(other)?;
            other.clone()
        }
    })
}
