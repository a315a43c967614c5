//! What reading rows or entries of another version of a type would do. It is decided from what the types look like, before a row is
//! read, and says what serde will do: it matches fields by name.

use super::Compatibility;
use super::layout::{Column, Form, Layout};
use super::shape::{Member, Shape, Variant};

/// Why rows cannot be read.
struct Refusal {
    change: String,
    reason: String,
    way_out: String,
}

impl Refusal {
    fn new(change: String, reason: &str, way_out: impl Into<String>) -> Self {
        Self { change, reason: reason.to_owned(), way_out: way_out.into() }
    }

    fn into_text(self) -> String {
        format!("{}: {}; {}", self.change, self.reason, self.way_out)
    }
}

/// What a program of the `new` layout can do with rows of the `old` one.
pub(super) fn compare(old: &Layout, new: &Layout) -> Compatibility {
    let mut notes = Vec::new();
    for ((name, old), (_, new)) in old.columns().into_iter().zip(new.columns()) {
        let result = match name {
            "value" => column(name, old, new, &mut notes),
            _ => fixed_column(name, old, new, &mut notes),
        };
        if let Err(refusal) = result {
            return Compatibility::Refused(refusal.into_text());
        }
    }
    if notes.is_empty() && old.differs(new) {
        // For instance a text that became an address: the rows look the same, the private form does not.
        notes.push("a type changed in a way that rows do not show".to_owned());
    }
    if notes.is_empty() { Compatibility::Same } else { Compatibility::Migrated(notes) }
}

/// What a program of the `new` layout can do with entries in the codec's form that one of the `old` layout wrote. What did
/// not change is read by its type, which needs no look at it.
pub(super) fn compare_entries(old: &Layout, new: &Layout) -> Compatibility {
    if !old.differs(new) {
        return compare(old, new);
    }
    let mut notes = Vec::new();
    for ((name, column), (_, now)) in old.columns().into_iter().zip(new.columns()) {
        let result = match name {
            "value" if column != now => entry_value(old, column, now, &mut notes),
            "value" => Ok(()),
            _ => fixed_column(name, column, now, &mut notes),
        };
        if let Err(refusal) = result {
            return Compatibility::Refused(refusal.into_text());
        }
    }
    if notes.is_empty() {
        notes.push("a type changed in a way that its bytes do not show".to_owned());
    }
    Compatibility::Migrated(notes)
}

/// The value in entries, of which each part must be known in both versions.
fn entry_value(layout: &Layout, old: &Column, new: &Column, notes: &mut Vec<String>) -> Result<(), Refusal> {
    if layout.can_read_bytes_of(old) && *new.bytes() != Shape::Unknown {
        return evolve("value", old.bytes(), new.bytes(), notes);
    }
    let change = match column("value", old, new, &mut Vec::new()) {
        Ok(()) => "the type of the value changed".to_owned(),
        Err(refusal) => refusal.change,
    };
    let reason = "a checkpoint does not tell what its bytes mean";
    Err(Refusal::new(change, reason, "take a savepoint with the old job, and start the new one from that"))
}

/// A column that state is found by. It must not change at all: what was written would be there, and never found.
fn fixed_column(name: &str, old: &Column, new: &Column, notes: &mut Vec<String>) -> Result<(), Refusal> {
    let mut changes = Vec::new();
    let change = match column(name, old, new, &mut changes) {
        Ok(()) if old == new => {
            notes.append(&mut changes);
            return Ok(());
        }
        Ok(()) => changes.into_iter().next().unwrap_or_else(|| format!("the type of the {name} changed")),
        Err(refusal) => refusal.change,
    };
    let reason = match name {
        "key" => "keys would hash to other key groups, or not be found",
        _ => "what is stored under it would not be found",
    };
    let way_out = format!("keep the type of the {name}, or give the state a new name, which starts it empty");
    Err(Refusal::new(change, reason, way_out))
}

fn column(name: &str, old: &Column, new: &Column, notes: &mut Vec<String>) -> Result<(), Refusal> {
    match (old.form, new.form) {
        (Form::Arrow, Form::Arrow) => evolve(name, &old.shape, &new.shape, notes),
        (Form::Absent, Form::Absent) => Ok(()),
        (Form::Binary, Form::Binary) if old.shape == Shape::Unknown || new.shape == Shape::Unknown => {
            notes.push(format!(
                "column '{name}' is binary: its type cannot be checked, and rows of another one are refused or misread"
            ));
            Ok(())
        }
        (Form::Binary, Form::Binary) if old.shape == new.shape => Ok(()),
        (Form::Binary, Form::Binary) => {
            let mut changes = Vec::new();
            let change = match evolve(name, &old.shape, &new.shape, &mut changes) {
                Ok(()) => changes.into_iter().next().unwrap_or_else(|| format!("the type of '{name}' changed")),
                Err(refusal) => refusal.change,
            };
            let reason = format!("column '{name}' is binary, and bytes cannot be converted");
            Err(Refusal::new(change, &reason, "keep the type, or give the state a new name, which starts it empty"))
        }
        _ => Err(Refusal::new(
            format!("column '{name}' was {} and is now {}", describe(old), describe(new)),
            "one cannot be converted into the other",
            "keep the type, or give the state a new name, which starts it empty",
        )),
    }
}

fn describe(column: &Column) -> String {
    match column.form {
        Form::Arrow => column.shape.to_string(),
        Form::Binary => format!("binary ({})", column.shape),
        Form::Absent => "absent".to_owned(),
    }
}

fn evolve(path: &str, old: &Shape, new: &Shape, notes: &mut Vec<String>) -> Result<(), Refusal> {
    match (old, new) {
        (Shape::Option(old), Shape::Option(new)) => evolve(path, old, new, notes),
        (Shape::Option(_), _) => Err(Refusal::new(
            format!("field '{path}' was optional and is now required"),
            "rows without it could not be read",
            "keep it an Option",
        )),
        (_, Shape::Option(new)) => {
            notes.push(format!("field '{path}' made optional"));
            evolve(path, old, new, notes)
        }
        (Shape::Struct(old), Shape::Struct(new)) => evolve_struct(path, old, new, notes),
        // A list of bytes is a binary column, from which only integers can be read.
        (Shape::List(old), Shape::List(new)) if **old != Shape::UInt8 || new.integer().is_some() => {
            evolve(&format!("{path}.element"), old, new, notes)
        }
        (Shape::Array(old, length), Shape::Array(new, new_length)) if length == new_length => {
            evolve(&format!("{path}.element"), old, new, notes)
        }
        (Shape::Map(old_key, old), Shape::Map(new_key, new)) => {
            evolve_map_key(&format!("{path}.key"), old_key, new_key, notes)?;
            evolve(&format!("{path}.value"), old, new, notes)
        }
        (Shape::Tuple(old), Shape::Tuple(new)) if old.len() == new.len() => {
            let mut parts = old.iter().zip(new).enumerate();
            parts.try_for_each(|(index, (old, new))| evolve(&format!("{path}.{index}"), old, new, notes))
        }
        (Shape::Enum(old_variants), Shape::Enum(new_variants)) => evolve_enum(path, old_variants, new_variants, notes),
        _ if old == new => Ok(()),
        _ if widens(old, new) => {
            notes.push(format!("field '{path}' widened from {old} to {new}"));
            Ok(())
        }
        _ => Err(changed_type(path, old, new)),
    }
}

fn changed_type(path: &str, old: &Shape, new: &Shape) -> Refusal {
    Refusal::new(
        format!("field '{path}' was {old} and is now {new}"),
        "values would be lost or misread",
        "keep its type, or keep the field and add another one with #[serde(default)]",
    )
}

/// Whether each value of `old` is one of `new`, and no two become the same.
fn widens(old: &Shape, new: &Shape) -> bool {
    match (old.integer(), new.integer()) {
        (Some((old_signed, old_bits)), Some((new_signed, new_bits))) => {
            old_bits < new_bits && (new_signed || !old_signed)
        }
        (Some((_, bits)), None) => *new == Shape::Float64 && bits <= 32,
        _ => *old == Shape::Float32 && *new == Shape::Float64,
    }
}

/// Entries must not fall together, as they would if the key lost a field.
fn evolve_map_key(path: &str, old: &Shape, new: &Shape, notes: &mut Vec<String>) -> Result<(), Refusal> {
    let has_parts =
        matches!(old, Shape::Struct(_) | Shape::Tuple(_) | Shape::List(_) | Shape::Array(..) | Shape::Map(..));
    if !has_parts {
        return evolve(path, old, new, notes);
    }
    if old == new { Ok(()) } else { Err(changed_type(path, old, new)) }
}

fn evolve_struct(path: &str, old: &[Member], new: &[Member], notes: &mut Vec<String>) -> Result<(), Refusal> {
    let mut last = 0;
    let mut is_reordered = false;
    for member in new {
        let field = format!("{path}.{}", member.name);
        let mut matching = old.iter().enumerate().filter(|(_, old)| member.answers_to(&old.name));
        match (matching.next(), matching.next()) {
            (None, _) if member.reading.has_default => notes.push(format!("field '{field}' added with its default")),
            (None, _) => return Err(without_default(path, member, old, new)),
            (Some((index, old)), None) => {
                is_reordered |= index < last;
                last = index;
                if old.name != member.name {
                    notes.push(format!("field '{path}.{}' renamed to '{field}'", old.name));
                }
                evolve(&field, &old.shape, &member.shape, notes)?;
            }
            (Some((_, one)), Some((_, other))) => {
                return Err(Refusal::new(
                    format!("fields '{path}.{}' and '{path}.{}' would both become '{field}'", one.name, other.name),
                    "one of them would be lost",
                    "take the alias away",
                ));
            }
        }
    }
    let refuses_others = new.iter().any(|member| member.reading.refuses_others);
    for gone in old.iter().filter(|old| !new.iter().any(|member| member.answers_to(&old.name))) {
        let change = format!("field '{path}.{}' removed", gone.name);
        if refuses_others {
            return Err(Refusal::new(
                change,
                "its struct has #[serde(deny_unknown_fields)], and the rows have the field",
                "take that attribute away",
            ));
        }
        notes.push(change);
    }
    if is_reordered {
        notes.push(format!("fields of '{path}' reordered"));
    }
    Ok(())
}

fn without_default(path: &str, member: &Member, old: &[Member], new: &[Member]) -> Refusal {
    let is_gone = |old: &&Member| !new.iter().any(|member| member.answers_to(&old.name));
    let mut former = old.iter().filter(is_gone).filter(|old| old.shape == member.shape);
    let alias = match former.next() {
        Some(former) => format!("#[serde(alias = \"{}\")] if it was called that", former.name),
        None => "#[serde(alias = \"…\")] with the name that it had".to_owned(),
    };
    Refusal::new(
        format!("field '{path}.{}' is new and has no default", member.name),
        "the rows do not have it",
        format!("add #[serde(default)], or {alias}"),
    )
}

/// Variants are read by their names. One that is gone may be in no row, so that is found out when they are read.
fn evolve_enum(path: &str, old: &[Variant], new: &[Variant], notes: &mut Vec<String>) -> Result<(), Refusal> {
    let mut last = 0;
    let mut is_reordered = false;
    for variant in old {
        let Some(index) = new.iter().position(|new| new.name == variant.name) else {
            notes.push(format!("variant '{}' of field '{path}' removed: rows that have it are refused", variant.name));
            continue;
        };
        is_reordered |= index < last;
        last = index;
        let path = format!("{path}.{}", variant.name);
        match (&variant.content, &new[index].content) {
            (None, None) => {}
            (Some(old), Some(new)) => evolve(&path, old, new, notes)?,
            (old, new) => {
                let content = |shape: &Option<Shape>| shape.as_ref().map_or("empty".to_owned(), Shape::to_string);
                return Err(Refusal::new(
                    format!("variant '{path}' was {} and is now {}", content(old), content(new)),
                    "values would be lost or misread",
                    "keep its content",
                ));
            }
        }
    }
    for variant in new.iter().filter(|new| !old.iter().any(|old| old.name == new.name)) {
        notes.push(format!("variant '{}' of field '{path}' added", variant.name));
    }
    if is_reordered {
        notes.push(format!("variants of field '{path}' reordered"));
    }
    Ok(())
}

/// The shape in which rows of `old` must be to be read as `new`: integers that become floats must be floats already. Only
/// for what [`compare`] has accepted.
pub(super) fn read_as(old: &Shape, new: &Shape) -> Shape {
    match (old, new) {
        (Shape::Option(old), Shape::Option(new)) => Shape::Option(Box::new(read_as(old, new))),
        (_, Shape::Option(new)) => read_as(old, new),
        (Shape::List(old), Shape::List(new)) => Shape::List(Box::new(read_as(old, new))),
        (Shape::Array(old, length), Shape::Array(new, _)) => Shape::Array(Box::new(read_as(old, new)), *length),
        (Shape::Map(old_key, old), Shape::Map(new_key, new)) => {
            Shape::Map(Box::new(read_as(old_key, new_key)), Box::new(read_as(old, new)))
        }
        (Shape::Tuple(old), Shape::Tuple(new)) => {
            Shape::Tuple(old.iter().zip(new).map(|(old, new)| read_as(old, new)).collect())
        }
        (Shape::Struct(old), Shape::Struct(new)) => {
            let members = old.iter().map(|member| {
                let reader = new.iter().find(|reader| reader.answers_to(&member.name));
                let shape = reader.map_or_else(|| member.shape.clone(), |reader| read_as(&member.shape, &reader.shape));
                Member { name: member.name.clone(), shape, reading: member.reading.clone() }
            });
            Shape::Struct(members.collect())
        }
        (_, Shape::Float64) if old.integer().is_some() => Shape::Float64,
        _ => old.clone(),
    }
}
