//! What is wrong with a query: in our words, with its place.

use std::fmt;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::tokenizer::Location;
use flott_core::Error;

use crate::catalog::suggestion;
use crate::parse::located;

/// A mistake in a query, on its way through DataFusion.
#[derive(Debug)]
struct Mistake {
    reason: String,
    at: Option<Location>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Mistake {}

/// A mistake somewhere.
pub(super) fn mistake(reason: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(Mistake { reason: reason.into(), at: None }))
}

/// A mistake at a place; lines are from 1.
pub(super) fn mistake_at(reason: impl Into<String>, at: Location) -> DataFusionError {
    let at = (at.line > 0).then_some(at);
    DataFusionError::External(Box::new(Mistake { reason: reason.into(), at }))
}

/// What Flott itself says is wrong.
pub(super) fn ours(error: &Error) -> DataFusionError {
    mistake(error.message.clone())
}

/// In our words, with the line of the script if it is known where.
pub(super) fn shown(error: &DataFusionError, script: Option<&str>) -> Error {
    let (reason, at) = reason_of(error);
    match (at, script) {
        (Some(at), Some(script)) => located(script, "error", &reason, at),
        _ => Error::input(reason),
    }
}

fn reason_of(error: &DataFusionError) -> (String, Option<Location>) {
    match error {
        DataFusionError::Context(_, inner) => reason_of(inner),
        DataFusionError::Shared(inner) => reason_of(inner),
        DataFusionError::Collection(all) if !all.is_empty() => reason_of(&all[0]),
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let (reason, at) = reason_of(inner);
            let span = diagnostic.span.map(|span| Location::new(span.start.line, span.start.column));
            (reason, at.or(span))
        }
        DataFusionError::External(inner) => match inner.downcast_ref::<Mistake>() {
            Some(mistake) => (mistake.reason.clone(), mistake.at),
            None => (inner.to_string(), None),
        },
        DataFusionError::SchemaError(inner, _) => of_schema(inner),
        DataFusionError::Plan(reason)
        | DataFusionError::NotImplemented(reason)
        | DataFusionError::Execution(reason) => (translated(without_backtrace(reason)), None),
        other => (translated(&other.strip_backtrace()), None),
    }
}

fn of_schema(error: &SchemaError) -> (String, Option<Location>) {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let at = field.spans.first().map(|span| Location::new(span.start.line, span.start.column));
            let hint = suggestion(&field.name, valid_fields.iter().map(|valid| valid.name.as_str()));
            let reason = match &field.relation {
                Some(relation) if valid_fields.iter().any(|valid| valid.relation.as_ref() == Some(relation)) => {
                    format!("there is no column '{}' in '{relation}'{hint}", field.name)
                }
                Some(relation) => format!("there is no column '{relation}.{}'{hint}", field.name),
                None => format!("there is no column '{}'{hint}", field.name),
            };
            (reason, at)
        }
        SchemaError::AmbiguousReference { field } => {
            let reason = format!("'{}' is a column of several tables: say of which, as in t.{0}", field.name);
            let at = field.spans.first().map(|span| Location::new(span.start.line, span.start.column));
            (reason, at)
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            (format!("there are two columns '{name}': give one another name with AS"), None)
        }
    }
}

fn without_backtrace(reason: &str) -> &str {
    reason.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or(reason)
}

/// DataFusion's message without what only its authors know. Messages that are told apart by their text are all in the tests of
/// errors, which fail when it changes.
fn translated(message: &str) -> String {
    const PREFIXES: [&str; 6] = [
        "Error during planning: ",
        "This feature is not implemented: ",
        "Schema error: ",
        "Execution error: ",
        "Arrow error: ",
        "Optimizer rule ",
    ];
    let mut reason = message;
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| reason.strip_prefix(prefix)) {
        reason = rest;
    }
    if let Some(found) = wrong_arguments(reason).or_else(|| wrong_condition(reason)) {
        return found;
    }
    if let Some(parts) = reason.strip_prefix("could not parse compound identifier from ") {
        let name: Vec<_> = parts.split('"').skip(1).step_by(2).collect();
        return format!("there is no column or field '{}'", name.join("."));
    }
    if let Some((subject, _)) = reason.split_once(" must appear in the GROUP BY clause") {
        let what = subject.strip_prefix("HAVING clause references: ").or_else(|| subject.split('"').nth(1));
        let what = what.unwrap_or(subject);
        return format!("'{what}' is neither in GROUP BY nor in an aggregate: add it to GROUP BY, or aggregate it");
    }
    reason.to_owned()
}

/// `Function 'flink_upper' user-defined coercion failed with: … expected UPPER(STRING). No function matches the given name
/// and argument types 'flink_upper(Int64)'. …`
fn wrong_arguments(reason: &str) -> Option<String> {
    let (_, rest) = reason.split_once("user-defined coercion failed with: ")?;
    let (_, rest) = rest.split_once("expected ")?;
    let (usage, rest) = rest.split_once(". No function matches")?;
    let (_, found) = rest.split_once("argument types '")?;
    let found = found.split_once('(')?.1.split_once(")'")?.0;
    let found: Vec<_> = found.split(", ").map(of_arrow).collect();
    Some(format!("expected {usage}, found ({})", found.join(", ")))
}

/// `Cannot create filter with non-boolean predicate 'bid.channel' returning Utf8`
fn wrong_condition(reason: &str) -> Option<String> {
    let rest = reason.strip_prefix("Cannot create filter with non-boolean predicate '")?;
    let (condition, found) = rest.split_once("' returning ")?;
    Some(format!("the condition '{condition}' is {}, not BOOLEAN", of_arrow(found)))
}

/// Flink's name of a type that is known by Arrow's.
fn of_arrow(name: &str) -> &str {
    match name {
        "Boolean" => "BOOLEAN",
        "Int8" => "TINYINT",
        "Int16" => "SMALLINT",
        "Int32" => "INT",
        "Int64" => "BIGINT",
        "Float32" => "FLOAT",
        "Float64" => "DOUBLE",
        "Utf8" => "STRING",
        "Binary" => "BYTES",
        "Date32" => "DATE",
        "Null" => "NULL",
        other => other,
    }
}
