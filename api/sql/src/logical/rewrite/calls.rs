//! Calls: from SQL's names of functions to ours.

use std::ops::ControlFlow;

use datafusion::common::{Result, ScalarValue};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, NullTreatment, Value,
    visit_expressions,
};
use datafusion::sql::sqlparser::tokenizer::Location;
use flott_sql_functions::builtins::refusal;

use super::{Rewriter, plain};
use crate::catalog::{UserFunction, suggestion};
use crate::logical::errors::mistake_at;
use crate::logical::functions::Functions;
use crate::logical::relations;
use crate::logical::special::GROUP_WINDOW;
use crate::parse::{call_of, text_of};

impl Rewriter<'_> {
    /// A call whose arguments are rewritten already; `None` if it stays as it is.
    pub(super) fn function(&mut self, expr: &mut Expr) -> Result<Option<Expr>> {
        let Expr::Function(call) = expr else { return Ok(None) };
        let Some(ident) = call.name.0.last().and_then(|part| part.as_ident().cloned()) else { return Ok(None) };
        let (name, at) = (ident.value.to_lowercase(), ident.span.start);
        if is_grammar(&name, call) {
            return Ok(None);
        }
        clauses(call, at)?;
        if let Some(user) = self.scope.catalog.function(&name) {
            if matches!(user, UserFunction::Table(_)) {
                return Err(mistake_at(
                    format!("{name} is a table function: call it as LATERAL TABLE({name}(…)) in FROM"),
                    at,
                ));
            }
            call.name = plain(&name);
            return Ok(None);
        }
        if let Some(new) = self.special(&name, call, at)? {
            return Ok(Some(new));
        }
        let functions = Functions::all();
        let is_aggregate = functions.aggregate(&name).is_some();
        // FIRST_VALUE and LAST_VALUE are both.
        if functions.window(&name).is_some() && (call.over.is_some() || !is_aggregate) {
            if call.over.is_none() {
                return Err(mistake_at(format!("{} needs an OVER clause", name.to_uppercase()), at));
            }
            self.keep_numbers(call);
            call.name = plain(&name);
        } else if is_aggregate {
            call.name = plain(&name);
        } else if let Some(own) = functions.own_name(&name) {
            if call.over.is_some() {
                return Err(mistake_at(format!("{} is no aggregate: it has no OVER clause", name.to_uppercase()), at));
            }
            if call.filter.is_some() {
                return Err(mistake_at(format!("{} is no aggregate: it has no FILTER", name.to_uppercase()), at));
            }
            call.name = plain(own);
            if let FunctionArguments::None = call.args {
                call.args = call_of("", vec![]).args;
            }
        } else if let Some(reason) = refusal(&name) {
            return Err(mistake_at(reason, at));
        } else {
            let users = self.scope.catalog.function_names();
            let known = functions.names().chain(users).map(str::to_uppercase);
            let hint = suggestion(&name, known);
            return Err(mistake_at(format!("there is no function '{}'{hint}", ident.value), at));
        }
        Ok(None)
    }

    /// Functions whose arguments are not what they are called with.
    fn special(&mut self, name: &str, call: &mut Function, at: Location) -> Result<Option<Expr>> {
        let wrong = |usage: &str| Err(mistake_at(format!("expected {usage}"), at));
        match name {
            "count" => {
                // COUNT(*) counts something that is never null.
                if let FunctionArguments::List(list) = &mut call.args
                    && let [FunctionArg::Unnamed(argument @ FunctionArgExpr::Wildcard)] = &mut list.args[..]
                {
                    *argument = FunctionArgExpr::Expr(Expr::Value(Value::Number("1".to_owned(), true).into()));
                }
                Ok(None)
            }
            "map" => Ok(Some(renamed("flink_map", call))),
            "row" => Ok(Some(renamed("flink_row", call))),
            "array" => Ok(Some(renamed("flink_array", call))),
            "round" | "truncate" => {
                // The type depends on how many digits there are.
                if let Some(Expr::Value(value)) = arguments(call).into_iter().nth(1)
                    && let Some(ScalarValue::Int32(Some(digits))) = self.constant_of(&Expr::Value(value.clone()))
                {
                    value.value = Value::Number(digits.to_string(), true);
                }
                Ok(None)
            }
            "current_database" => {
                let all = taken(call);
                if !all.is_empty() {
                    return wrong("CURRENT_DATABASE()");
                }
                Ok(Some(text_of(self.scope.catalog.current().1)))
            }
            "timestampadd" | "timestampdiff" => {
                let mut all = arguments(call);
                let [Expr::Identifier(unit), _, _] = &mut all[..] else {
                    return wrong(&format!("{}(DAY, …, …)", name.to_uppercase()));
                };
                let unit = unit.value.to_uppercase();
                let unit = unit.strip_prefix("SQL_TSI_").unwrap_or(&unit);
                *all[0] = text_of(unit);
                Ok(None)
            }
            "grouping" | "grouping_id" => {
                let made = renamed("grouping", call);
                Ok(Some(Expr::Function(call_of("flink_cast", vec![made, text_of("BIGINT")]))))
            }
            "json_value" => {
                let mut all = taken(call);
                let [_, _, of, on_empty, empty, on_error, error] = &mut all[..] else {
                    return wrong("JSON_VALUE(document, path)");
                };
                let of = text_value(of).unwrap_or_default();
                let is_returned = matches!(of.as_str(), "STRING" | "BOOLEAN" | "INT" | "DOUBLE");
                if !is_returned && !of.starts_with("VARCHAR") {
                    let reason = format!("JSON_VALUE returns STRING, BOOLEAN, INT or DOUBLE: CAST its result to {of}");
                    return Err(mistake_at(reason, at));
                }
                let (mut defaults, mut fails) = (Vec::new(), [false; 2]);
                for (at, (on, default)) in [(on_empty, empty), (on_error, error)].into_iter().enumerate() {
                    let on = text_value(on).unwrap_or_default();
                    fails[at] = on == "ERROR";
                    defaults.push(match on.as_str() {
                        "DEFAULT" => cast_to("STRING", default.clone()),
                        _ => Expr::Value(Value::Null.into()),
                    });
                }
                let fails = match fails {
                    [true, true] => Some("BOTH"),
                    [true, false] => Some("EMPTY"),
                    [false, true] => Some("ERROR"),
                    _ => None,
                };
                all.truncate(2);
                let is_plain = fails.is_none() && defaults.iter().all(|default| matches!(default, Expr::Value(_)));
                // ON ERROR is for what is no value of the type, too. Where that is NULL, so is the cast, but for a number as BOOLEAN.
                let is_told = of == "BOOLEAN" || (!is_plain && matches!(of.as_str(), "INT" | "DOUBLE"));
                if is_told || !is_plain {
                    all.extend(defaults);
                    all.extend(fails.or(is_told.then_some("NONE")).map(text_of));
                    all.extend(is_told.then(|| text_of(&of)));
                }
                let value = Expr::Function(call_of("json_value", all));
                Ok(Some(match of.as_str() {
                    "STRING" => value,
                    of => Expr::Function(call_of("flink_try_cast", vec![value, text_of(of)])),
                }))
            }
            "json_query" => {
                let mut all = taken(call);
                let [_, _, of, ..] = &all[..] else { return wrong("JSON_QUERY(document, path)") };
                if text_value(of).as_deref() != Some("STRING") {
                    return Err(mistake_at("JSON_QUERY returns STRING: RETURNING another type is not supported", at));
                }
                all.remove(2);
                Ok(Some(Expr::Function(call_of("json_query", all))))
            }
            "json_object" | "json_array" => {
                let mut all = taken(call);
                if all.len() < 2 {
                    return wrong(&format!("{}(…)", name.to_uppercase()));
                }
                let flags = text_value(&all[1]).unwrap_or_default();
                let is_null_kept = text_value(&all[0]).as_deref() == Some("NULL");
                all.drain(..2);
                let values = if name == "json_object" { 2 } else { 1 };
                for (value, flag) in all.iter_mut().skip(values - 1).step_by(values).zip(flags.chars()) {
                    // What another constructor has made is JSON already.
                    let is_made = matches!(&*value, Expr::Function(call) if call.name.to_string() != "json");
                    if flag == 'j' && is_made {
                        let made = std::mem::replace(value, Expr::Value(Value::Null.into()));
                        *value = Expr::Function(call_of("json", vec![made]));
                    }
                }
                all.insert(0, Expr::Value(Value::Boolean(is_null_kept).into()));
                Ok(Some(Expr::Function(call_of(name, all))))
            }
            "json_objectagg" | "json_arrayagg" => {
                let mut all = taken(call);
                let on_null = all.pop().and_then(|on| text_value(&on)).unwrap_or_default();
                let own = format!("{name}_{}_on_null", on_null.to_lowercase());
                let mut made = call_of(&own, all);
                made.filter = call.filter.take();
                made.over = call.over.take();
                Ok(Some(Expr::Function(made)))
            }
            "tumble" | "hop" | "session" => Ok(Some(group_window(name, call))),
            "nth_value" => Err(mistake_at("NTH_VALUE is not supported", at)),
            _ => Ok(of_group_window(name).map(|(window, column)| {
                let window = group_window(window, call);
                Expr::Function(call_of("flink_get_field", vec![window, text_of(column)]))
            })),
        }
    }

    /// Constant numbers that the planner reads.
    fn keep_numbers(&self, call: &mut Function) {
        let is_offset = call.name.0.last().is_some_and(|name| {
            let name = name.to_string().to_lowercase();
            name == "lag" || name == "lead"
        });
        for (at, argument) in arguments(call).into_iter().enumerate() {
            // The first is the value, the third has its type.
            if is_offset && at != 1 {
                continue;
            }
            if let Some(ScalarValue::Int32(Some(number))) = self.constant_of(argument) {
                *argument = Expr::Value(Value::Number(number.to_string(), true).into());
            }
        }
    }
}

/// What only looks like a call.
fn is_grammar(name: &str, call: &Function) -> bool {
    match name {
        "table" | "descriptor" => true,
        _ if relations::is_window(name) => {
            // In a table function there is a table; elsewhere it is a window of GROUP BY.
            let is_table = |expr: &Expr| matches!(expr, Expr::Function(call) if matches!(call.name.to_string().to_lowercase().as_str(), "table" | "descriptor"));
            let found = visit_expressions(&call.args, |expr| {
                if is_table(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            found.is_break()
        }
        _ => false,
    }
}

/// Says the same in DataFusion's grammar, or refuses it.
fn clauses(call: &mut Function, at: Location) -> Result<()> {
    let within = std::mem::take(&mut call.within_group);
    if let FunctionArguments::List(list) = &mut call.args {
        if !within.is_empty() {
            list.clauses.push(FunctionArgumentClause::OrderBy(within));
        }
        // IGNORE NULLS may stand in the parentheses, and behind them.
        if let Some(found) =
            list.clauses.iter().position(|clause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)))
            && let FunctionArgumentClause::IgnoreOrRespectNulls(nulls) = list.clauses.remove(found)
        {
            call.null_treatment = Some(nulls);
        }
    }
    if call.null_treatment == Some(NullTreatment::RespectNulls) {
        call.null_treatment = None;
    }
    if !matches!(call.parameters, FunctionArguments::None) {
        return Err(mistake_at(format!("'{}' is called with parameters, which no function has", call.name), at));
    }
    Ok(())
}

/// `TUMBLE(ts, size)` of GROUP BY.
fn group_window(window: &str, call: &mut Function) -> Expr {
    let arguments = std::iter::once(text_of(window)).chain(taken(call)).collect();
    Expr::Function(call_of(GROUP_WINDOW, arguments))
}

/// What `TUMBLE_START` and its kin are of a window of GROUP BY.
fn of_group_window(name: &str) -> Option<(&str, &'static str)> {
    let (window, part) = name.split_once('_')?;
    let column = match part {
        "start" => "window_start",
        "end" => "window_end",
        "rowtime" | "proctime" => "window_time",
        _ => return None,
    };
    matches!(window, "tumble" | "hop" | "session").then_some((window, column))
}

/// The arguments that are expressions.
fn arguments(call: &mut Function) -> Vec<&mut Expr> {
    let FunctionArguments::List(list) = &mut call.args else { return Vec::new() };
    fn expr(argument: &mut FunctionArg) -> Option<&mut Expr> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
            | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. } => Some(expr),
            _ => None,
        }
    }
    list.args.iter_mut().filter_map(expr).collect()
}

/// The same, taken out of it.
pub(super) fn taken(call: &mut Function) -> Vec<Expr> {
    let null = || Expr::Value(Value::Null.into());
    arguments(call).into_iter().map(|argument| std::mem::replace(argument, null())).collect()
}

fn renamed(name: &str, call: &mut Function) -> Expr {
    Expr::Function(call_of(name, taken(call)))
}

fn text_value(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    }
}

fn cast_to(of: &str, expr: Expr) -> Expr {
    Expr::Function(call_of("flink_cast", vec![expr, text_of(of)]))
}
