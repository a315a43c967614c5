//! Expressions, their types and what Flink 2.3 prints for them (functions.tsv), through the functions themselves.
//! Lines behind `# ` are where the results differ on purpose, or where the planner makes other calls of the expression.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CeilFloorKind, DateTimeField, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Subscript, TrimWhereField, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use flott_sql_functions::types::name_of;

type Found = Result<ScalarValue, String>;

struct Evaluator {
    functions: HashMap<String, Arc<ScalarUDF>>,
    options: Arc<ConfigOptions>,
}

impl Evaluator {
    fn new(zone: &str) -> Self {
        let mut by_name = HashMap::new();
        for function in flott_sql_functions::all() {
            for name in std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str)) {
                by_name.insert(name.trim_start_matches("flink_").to_owned(), Arc::clone(&function));
            }
        }
        let mut options = ConfigOptions::default();
        options.execution.time_zone = Some(zone.to_owned());
        Self { functions: by_name, options: Arc::new(options) }
    }

    fn call(&self, name: &str, arguments: Vec<ScalarValue>) -> Found {
        let function = self.functions.get(name).ok_or_else(|| format!("missing: {name}"))?;
        let field = |value: &ScalarValue| Arc::new(Field::new("", value.data_type(), value.is_null()));
        let fields: Vec<_> = arguments.iter().map(field).collect();
        let shown = |error: datafusion::common::DataFusionError| error.to_string();
        let fields =
            if fields.is_empty() { fields } else { fields_with_udf(&fields, function.as_ref()).map_err(shown)? };
        let arguments = arguments.iter().zip(&fields).map(|(value, field)| value.cast_to(field.data_type()));
        let arguments = arguments.collect::<Result<Vec<_>, _>>().map_err(shown)?;
        let constants: Vec<_> = arguments.iter().map(Some).collect();
        let types = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &constants };
        let return_field = function.return_field_from_args(types).map_err(shown)?;
        let values = |is_column: bool| {
            let one = |value: &ScalarValue| match is_column {
                true => Ok(ColumnarValue::Array(value.to_array_of_size(2)?)),
                false => Ok(ColumnarValue::Scalar(value.clone())),
            };
            let call = ScalarFunctionArgs {
                args: arguments.iter().map(one).collect::<datafusion::common::Result<_>>()?,
                arg_fields: fields.clone(),
                number_rows: 2,
                return_field: Arc::clone(&return_field),
                config_options: Arc::clone(&self.options),
            };
            let array = function.invoke_with_args(call)?.into_array(2)?;
            ScalarValue::try_from_array(&array, 1)
        };
        let constant = values(false).map_err(shown)?;
        let of_columns = values(true).map_err(shown)?;
        if constant != of_columns {
            return Err(format!("{name}: {constant} of constants, {of_columns} of columns"));
        }
        if constant.data_type() != *return_field.data_type() || (constant.is_null() && !return_field.is_nullable()) {
            return Err(format!("{name}: {constant:?} is no {return_field}"));
        }
        Ok(constant)
    }

    fn all<'a>(&self, of: impl IntoIterator<Item = &'a Expr>) -> Result<Vec<ScalarValue>, String> {
        of.into_iter().map(|expr| self.value(expr)).collect()
    }

    fn rounded(&self, name: &str, expr: &Expr, to: &CeilFloorKind) -> Found {
        let value = self.value(expr)?;
        match to {
            CeilFloorKind::DateTimeField(unit) if *unit != DateTimeField::NoDateTime => {
                self.call(name, vec![value, ScalarValue::from(unit.to_string().as_str())])
            }
            _ => self.call(name, vec![value]),
        }
    }

    fn value(&self, expr: &Expr) -> Found {
        let text = |text: &str| ScalarValue::from(text);
        match expr {
            Expr::Nested(inner) => self.value(inner),
            Expr::Value(value) => literal(&value.value),
            Expr::SimilarTo { negated: false, expr, pattern, escape_char } => {
                let mut arguments = vec![self.value(expr)?, self.value(pattern)?];
                if let Some(escape) = escape_char {
                    arguments.push(literal(&escape.value)?);
                }
                self.call("similar_to", arguments)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => match (left.as_ref(), right.as_ref()) {
                (Expr::Tuple(left), Expr::Tuple(right)) => self.call("overlaps", self.all(left.iter().chain(right))?),
                _ => Err(format!("cannot read {expr}")),
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => self.call("negate", vec![self.value(expr)?]),
            Expr::BinaryOp { left, op, right } => {
                let sides = vec![self.value(left)?, self.value(right)?];
                match op {
                    BinaryOperator::Plus => self.call("add", sides),
                    BinaryOperator::Minus => self.call("subtract", sides),
                    BinaryOperator::Multiply => self.call("multiply", sides),
                    BinaryOperator::Divide => self.call("divide", sides),
                    BinaryOperator::Modulo => self.call("mod", sides),
                    BinaryOperator::StringConcat => self.call("concat", sides),
                    BinaryOperator::Eq => self.call("equal", sides),
                    BinaryOperator::Lt => self.call("less", sides),
                    other => Err(format!("no operator {other}")),
                }
            }
            Expr::Cast { kind, expr, data_type, .. } => {
                let name = if *kind == CastKind::Cast { "cast" } else { "try_cast" };
                self.call(name, vec![self.value(expr)?, text(&data_type.to_string())])
            }
            Expr::TypedString(typed) => {
                let value = typed.value.value.clone().into_string().ok_or("no text")?;
                let of = match typed.data_type.to_string().as_str() {
                    "TIMESTAMP" => {
                        format!("TIMESTAMP({})", value.split_once('.').map_or(0, |(_, fraction)| fraction.len()))
                    }
                    other => other.to_owned(),
                };
                self.call("cast", vec![text(&value), text(&of)])
            }
            Expr::Interval(interval) => {
                let shown = self.value(&interval.value)?.to_string();
                let (sign, shown) = shown.strip_prefix('-').map_or((1, shown.as_str()), |rest| (-1, rest));
                let leading = interval.leading_field.as_ref().map(ToString::to_string).unwrap_or_default();
                let numbers =
                    shown.split(['-', ' ', ':']).map(|part| part.parse::<i64>().map_err(|error| error.to_string()));
                let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
                let units = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
                let sizes = [12, 1, 86_400_000, 3_600_000, 60_000, 1000];
                let first = units.iter().position(|unit| *unit == leading).ok_or("no unit")?;
                let sum: i64 = numbers.iter().zip(&sizes[first..]).map(|(number, size)| number * size).sum();
                Ok(match first {
                    0 | 1 => ScalarValue::IntervalYearMonth(Some((sign * sum) as i32)),
                    _ => ScalarValue::DurationMillisecond(Some(sign * sum)),
                })
            }
            Expr::Extract { field, expr, .. } => {
                self.call("extract", vec![text(&field.to_string()), self.value(expr)?])
            }
            Expr::Ceil { expr, field } => self.rounded("ceil", expr, field),
            Expr::Floor { expr, field } => self.rounded("floor", expr, field),
            Expr::Position { expr, r#in } => self.call("position", self.all([expr.as_ref(), r#in.as_ref()])?),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let parts = [Some(expr), substring_from.as_ref(), substring_for.as_ref()];
                self.call("substring", self.all(parts.into_iter().flatten().map(AsRef::as_ref))?)
            }
            Expr::Trim { trim_where, trim_what, expr, .. } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "trim",
                };
                self.call(name, self.all([Some(expr), trim_what.as_ref()].into_iter().flatten().map(AsRef::as_ref))?)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let parts = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                self.call("overlay", self.all(parts.into_iter().flatten().map(AsRef::as_ref))?)
            }
            Expr::Array(array) => self.call("array", self.all(&array.elem)?),
            Expr::Tuple(all) => self.call("row", self.all(all)?),
            Expr::CompoundFieldAccess { root, access_chain } => match &access_chain[..] {
                [AccessExpr::Subscript(Subscript::Index { index })] => {
                    let root = match root.as_ref() {
                        Expr::Identifier(name) if name.value == "MAP" => return Err(format!("no map [{index}]")),
                        root => self.value(root)?,
                    };
                    self.call("item", vec![root, self.value(index)?])
                }
                _ => Err(format!("cannot read {expr}")),
            },
            Expr::Function(function) => {
                let FunctionArguments::List(list) = &function.args else { return Err(format!("cannot read {expr}")) };
                if !list.clauses.is_empty() {
                    return Err(format!("cannot read {expr}"));
                }
                let one = |argument: &FunctionArg| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => Ok(text(&name.value)),
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.value(expr),
                    other => Err(format!("cannot read {other}")),
                };
                let arguments = list.args.iter().map(one).collect::<Result<_, _>>()?;
                self.call(&function.name.to_string().to_lowercase(), arguments)
            }
            _ => Err(format!("cannot read {expr}")),
        }
    }
}

fn literal(value: &Value) -> Found {
    Ok(match value {
        Value::Number(digits, _) if digits.contains(['e', 'E']) => ScalarValue::Float64(digits.parse().ok()),
        Value::Number(digits, _) => match digits.split_once('.') {
            Some((whole, fraction)) => {
                let all = format!("{whole}{fraction}");
                let precision = all.trim_start_matches('0').len().max(fraction.len()).max(1);
                ScalarValue::Decimal128(all.parse().ok(), precision as u8, fraction.len() as i8)
            }
            None => match digits.parse::<i32>() {
                Ok(small) => ScalarValue::Int32(Some(small)),
                Err(_) => ScalarValue::Int64(digits.parse().ok()),
            },
        },
        Value::SingleQuotedString(text) => ScalarValue::from(text.as_str()),
        Value::HexStringLiteral(digits) => {
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or(0);
            ScalarValue::Binary(Some((0..digits.len() / 2).map(|at| byte(at * 2)).collect()))
        }
        Value::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Value::Null => ScalarValue::Null,
        other => return Err(format!("cannot read {other}")),
    })
}

/// `MAP[…]` as a call, since the parser of tests reads it in another way.
fn without_map_brackets(text: &str) -> String {
    let (mut made, mut open, mut is_text) = (String::new(), Vec::new(), false);
    for c in text.chars() {
        match c {
            '\'' => is_text = !is_text,
            '[' if !is_text => {
                let is_map = made.ends_with("MAP");
                open.push(is_map);
                made.push(if is_map { '(' } else { '[' });
                continue;
            }
            ']' if !is_text => {
                made.push(if open.pop() == Some(true) { ')' } else { ']' });
                continue;
            }
            _ => {}
        }
        made.push(c);
    }
    made
}

/// A type's name without what Arrow does not know.
fn plain(name: &str) -> String {
    let mut made = name.replace(" NOT NULL", "");
    for kind in ["VARCHAR(", "CHAR(", "VARBINARY(", "BINARY("] {
        while let Some(start) = made.find(kind) {
            let end = made[start..].find(')').map_or(made.len(), |end| start + end + 1);
            made.replace_range(start..end, if kind.contains("CHAR") { "STRING" } else { "BYTES" });
        }
    }
    let made = made.replace("TIME(3)", "TIME(0)");
    made.replace("INTERVAL YEAR TO MONTH", "INTERVAL MONTH").replace("INTERVAL DAY TO SECOND(3)", "INTERVAL SECOND(3)")
}

/// Fails if an expression has another value or type here than its line says.
fn check(zone: &str, lines: &str) {
    let evaluator = Evaluator::new(zone);
    let (mut wrong, mut unread, mut right) = (Vec::new(), Vec::new(), 0);
    for line in lines.lines().filter(|line| !line.starts_with("# ")) {
        let [text, of, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line}")
        };
        let parsed = Parser::new(&GenericDialect)
            .try_with_sql(&without_map_brackets(text))
            .and_then(|mut parser| parser.parse_expr());
        let found = parsed.map_err(|error| format!("cannot read: {error}")).and_then(|expr| evaluator.value(&expr));
        let (of_found, shown) = match found {
            Ok(value) => {
                let shown = evaluator.call("cast", vec![value.clone(), ScalarValue::from("STRING")]);
                let shown = match shown {
                    Ok(ScalarValue::Utf8(Some(shown))) => {
                        shown.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
                    }
                    other => other.map_or_else(|error| error, |_| "NULL".to_owned()),
                };
                (name_of(&value.data_type()), shown)
            }
            Err(reason) if reason.starts_with("cannot read") || reason.starts_with("missing") => {
                unread.push(format!("{text}: {reason}"));
                continue;
            }
            Err(reason) if of == "ERROR" && (!reason.contains("expected") || reason.contains(", found (")) => {
                ("ERROR".to_owned(), String::new())
            }
            Err(reason) => ("ERROR".to_owned(), reason),
        };
        if plain(&of_found) == plain(of) && shown == expected {
            right += 1;
        } else {
            wrong.push(format!("{text}\n  Flink: {of} {expected}\n  here:  {of_found} {shown}"));
        }
    }
    println!("not evaluated here:\n{}", unread.join("\n"));
    assert!(wrong.is_empty(), "{right} right, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn expressions_give_what_flink_gives() {
    check("UTC", include_str!("functions.tsv"));
}

#[test]
fn zones_count_as_in_flink() {
    check("Europe/Berlin", include_str!("zones.tsv"));
}

#[test]
fn names_are_distinct() {
    let mut names: Vec<_> = flott_sql_functions::all().iter().map(|function| function.name().to_owned()).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}
