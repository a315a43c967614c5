//! Expressions: each becomes a call of the function that does it.

use datafusion::common::{Result, ScalarValue};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CeilFloorKind, DataType, DateTimeField, Expr, Subscript, TrimWhereField,
    UnaryOperator, Value,
};

use super::{Rewriter, constants, select};
use crate::logical::errors::{mistake, mistake_at};
use crate::logical::operators::{DISTINCT, NOT_DISTINCT};
use crate::logical::special::{CASE, IN, NOT_IN};
use crate::parse::{call_of, text_of};

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(call_of(name, arguments))
}

fn not(is_negated: bool, expr: Expr) -> Expr {
    match is_negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) },
        false => expr,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

/// Takes an expression out of the tree.
fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, null())
}

fn take_all(all: &mut Vec<Expr>) -> Vec<Expr> {
    std::mem::take(all)
}

impl Rewriter<'_> {
    /// An expression whose parts are rewritten already.
    pub(super) fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        let new = match expr {
            Expr::Value(value) => {
                let at = value.span.start;
                match &value.value {
                    Value::Number(_, true) => None,
                    Value::Number(digits, false) => {
                        let found = constants::number(digits).map_err(|error| mistake_at(error_text(&error), at))?;
                        Some(self.constant(found))
                    }
                    Value::UnicodeStringLiteral(text) | Value::NationalStringLiteral(text) => Some(text_of(text)),
                    Value::DoubleQuotedString(name) => {
                        return Err(mistake_at(
                            format!("texts stand in single quotes, names in backticks: '{name}' or `{name}`"),
                            at,
                        ));
                    }
                    _ => None,
                }
            }
            Expr::TypedString(typed) => {
                let value = constants::typed(typed)?;
                Some(self.constant(value))
            }
            Expr::Interval(interval) if interval.leading_field.is_some() => {
                let value = constants::interval(interval)?;
                Some(self.constant(value))
            }
            Expr::Interval(interval) if interval.last_field.is_some() => {
                constants::interval(interval)?;
                None
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(self.minus(expr)),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => Some(take(expr)),
            Expr::Cast { kind, expr, data_type, .. } => {
                let name = if matches!(kind, CastKind::Cast) { "flink_cast" } else { "flink_try_cast" };
                Some(call(name, vec![take(expr), text_of(&type_name(data_type))]))
            }
            Expr::Extract { field, expr, .. } => {
                Some(call("flink_extract", vec![text_of(&field.to_string().to_uppercase()), take(expr)]))
            }
            Expr::Ceil { expr, field } => Some(rounded("flink_ceil", expr, field)?),
            Expr::Floor { expr, field } => Some(rounded("flink_floor", expr, field)?),
            Expr::Position { expr, r#in } => Some(call("flink_position", vec![take(expr), take(r#in)])),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut arguments = vec![take(expr)];
                match substring_from {
                    Some(from) => arguments.push(take(from)),
                    None => arguments.push(self.constant(ScalarValue::Int32(Some(1)))),
                }
                arguments.extend(substring_for.as_mut().map(|length| take(length)));
                Some(call("flink_substring", arguments))
            }
            Expr::Trim { trim_where, trim_what, expr, .. } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "flink_ltrim",
                    Some(TrimWhereField::Trailing) => "flink_rtrim",
                    _ => "flink_trim",
                };
                let mut arguments = vec![take(expr)];
                arguments.extend(trim_what.as_mut().map(|what| take(what)));
                Some(call(name, arguments))
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments = vec![take(expr), take(overlay_what), take(overlay_from)];
                arguments.extend(overlay_for.as_mut().map(|length| take(length)));
                Some(call("flink_overlay", arguments))
            }
            Expr::Array(array) => Some(call("flink_array", take_all(&mut array.elem))),
            Expr::Tuple(all) => Some(call("flink_row", take_all(all))),
            Expr::CompoundFieldAccess { root, access_chain } => {
                let mut found = take(root);
                for access in access_chain.drain(..) {
                    found = match access {
                        AccessExpr::Subscript(Subscript::Index { index }) => call("flink_item", vec![found, index]),
                        AccessExpr::Dot(Expr::Identifier(name)) => {
                            call("flink_get_field", vec![found, text_of(&name.value)])
                        }
                        other => return Err(mistake(format!("'{other}' is not supported behind an expression"))),
                    };
                }
                Some(found)
            }
            Expr::Like { negated, any, expr, pattern, escape_char } => {
                if *any {
                    return Err(mistake("LIKE ANY is not supported: join the patterns with OR"));
                }
                let pattern = like_pattern(take(pattern), escape_char.as_ref())?;
                let (expr, pattern) = (Box::new(take(expr)), Box::new(pattern));
                Some(Expr::Like { negated: *negated, any: false, expr, pattern, escape_char: None })
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                let mut arguments = vec![take(expr), take(pattern)];
                arguments.extend(escape_char.as_ref().map(|value| Expr::Value(value.clone())));
                Some(not(*negated, call("similar_to", arguments)))
            }
            Expr::Between { expr, negated, low, high } => {
                let (value, low, high) = (take(expr), take(low), take(high));
                let above = binary(value.clone(), BinaryOperator::GtEq, low);
                let below = binary(value, BinaryOperator::LtEq, high);
                Some(not(*negated, nested(binary(above, BinaryOperator::And, below))))
            }
            Expr::InList { expr, list, negated } => {
                let arguments = std::iter::once(take(expr)).chain(take_all(list)).collect();
                Some(call(if *negated { NOT_IN } else { IN }, arguments))
            }
            Expr::InSubquery { expr, subquery, .. } => {
                if is_row(expr) {
                    select::tuples(subquery)?;
                }
                None
            }
            Expr::AnyOp { left, compare_op, right, .. } => quantified(left, compare_op, right, false)?,
            Expr::AllOp { left, compare_op, right } => quantified(left, compare_op, right, true)?,
            Expr::Case { operand, conditions, else_result, .. } => {
                let mut arguments = Vec::new();
                for case in conditions.drain(..) {
                    arguments.push(match operand.as_ref() {
                        Some(operand) => {
                            nested(binary(operand.as_ref().clone(), BinaryOperator::Eq, nested(case.condition)))
                        }
                        None => case.condition,
                    });
                    arguments.push(case.result);
                }
                arguments.push(else_result.as_mut().map_or_else(null, |value| take(value)));
                Some(call(CASE, arguments))
            }
            Expr::IsDistinctFrom(left, right) => {
                Some(nested(binary(take(left), BinaryOperator::Custom(DISTINCT.to_owned()), take(right))))
            }
            Expr::IsNotDistinctFrom(left, right) => {
                Some(nested(binary(take(left), BinaryOperator::Custom(NOT_DISTINCT.to_owned()), take(right))))
            }
            Expr::AtTimeZone { .. } => return Err(mistake("AT TIME ZONE is not supported: use CONVERT_TZ")),
            Expr::ILike { .. } => return Err(mistake("ILIKE is not supported: compare LOWER(…) by LIKE")),
            Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => Some(overlaps(left, right)?),
            Expr::Function(_) => self.function(expr)?,
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
        }
        Ok(())
    }

    fn minus(&mut self, expr: &mut Expr) -> Expr {
        // A number that DataFusion reads itself has its sign read with it.
        if let Expr::Value(value) = expr
            && let Value::Number(digits, true) = &value.value
        {
            return Expr::Value(Value::Number(format!("-{digits}"), true).into());
        }
        match self.constant_of(expr).and_then(constants::negated) {
            Some(value) => self.constant(value),
            None => call("flink_negate", vec![take(expr)]),
        }
    }
}

/// Whether an expression that is rewritten already is a row: `(a, b)`.
fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_row(inner),
        Expr::Function(call) => call.name.to_string() == "flink_row",
        _ => false,
    }
}

/// `= ANY (SELECT …)` is IN, `<> ALL (SELECT …)` is NOT IN; others stay.
fn quantified(left: &mut Expr, op: &BinaryOperator, right: &mut Expr, is_all: bool) -> Result<Option<Expr>> {
    let Expr::Subquery(subquery) = right else {
        return Err(mistake("ANY, SOME and ALL compare with a query: IN compares with a list"));
    };
    if *op != (if is_all { BinaryOperator::NotEq } else { BinaryOperator::Eq }) {
        return Ok(None);
    }
    if is_row(left) {
        select::tuples(subquery)?;
    }
    Ok(Some(Expr::InSubquery { expr: Box::new(take(left)), subquery: subquery.clone(), negated: is_all }))
}

/// `(a, b) OVERLAPS (c, d)`, whose sides are rows already.
fn overlaps(left: &mut Expr, right: &mut Expr) -> Result<Expr> {
    let mut bounds = Vec::new();
    for side in [left, right] {
        let of_side = match side {
            Expr::Function(row) if row.name.to_string() == "flink_row" => super::calls::taken(row),
            _ => Vec::new(),
        };
        if of_side.len() != 2 {
            return Err(mistake("OVERLAPS compares two pairs: (start, end) OVERLAPS (start, end)"));
        }
        bounds.extend(of_side);
    }
    Ok(call("flink_overlaps", bounds))
}

fn error_text(error: &datafusion::common::DataFusionError) -> String {
    crate::logical::errors::shown(error, None).message
}

/// The parser has put Flink's name for a type in the tree.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Custom(name, _) => match &name.0[..] {
            [part] => part.as_ident().map_or_else(|| data_type.to_string(), |name| name.value.clone()),
            _ => data_type.to_string(),
        },
        other => other.to_string(),
    }
}

fn rounded(name: &str, expr: &mut Expr, to: &CeilFloorKind) -> Result<Expr> {
    match to {
        CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(call(name, vec![take(expr)])),
        CeilFloorKind::DateTimeField(unit) => {
            Ok(call(name, vec![take(expr), text_of(&unit.to_string().to_uppercase())]))
        }
        CeilFloorKind::Scale(_) => Err(mistake("FLOOR and CEIL take no number of digits: use ROUND or TRUNCATE")),
    }
}

/// A pattern as DataFusion reads it: a backslash escapes there, in Flink what ESCAPE says, or nothing.
fn like_pattern(pattern: Expr, escape: Option<&datafusion::sql::sqlparser::ast::ValueWithSpan>) -> Result<Expr> {
    let escape = match escape {
        None => None,
        Some(value) => {
            let text = value.value.clone().into_string().unwrap_or_default();
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(escape), None) => Some(escape),
                _ => return Err(mistake_at(format!("ESCAPE '{text}' is not one character"), value.span.start)),
            }
        }
    };
    let constant = match &pattern {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some((text.clone(), value.span.start)),
            _ => None,
        },
        _ => None,
    };
    let Some((text, at)) = constant else {
        if escape.is_some() {
            return Err(mistake("LIKE … ESCAPE needs a constant pattern"));
        }
        return Ok(call("flink_replace", vec![pattern, text_of("\\"), text_of("\\\\")]));
    };
    let mut read = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            _ if Some(next) == escape => match chars.next() {
                Some(escaped @ ('%' | '_')) => read.extend(['\\', escaped]),
                Some('\\') => read.push_str("\\\\"),
                Some(escaped) if Some(escaped) == escape => read.push(escaped),
                _ => {
                    let reason = format!("in the pattern '{text}' nothing that can be escaped is behind '{next}'");
                    return Err(mistake_at(reason, at));
                }
            },
            '\\' => read.push_str("\\\\"),
            other => read.push(other),
        }
    }
    Ok(text_of(&read))
}
