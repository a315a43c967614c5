//! SELECTs and tables: names of columns, what LIMIT and ORDER BY count, versions of tables.

use std::collections::HashSet;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, LimitClause, NamedWindowExpr,
    OrderByKind, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor, TableVersion,
    TableWithJoins, Value,
};

use super::{Rewriter, frame, plain};
use crate::logical::errors::{mistake, ours};
use crate::logical::membership::TUPLES;
use crate::logical::multiplicity::{EXCEPT, INTERSECT};
use crate::logical::relations::{VALUES, VERSIONED};
use crate::parse::{call_of, parse_query};

/// What LIMIT, OFFSET, FETCH and ORDER BY count by numbers are no constants.
pub(super) fn query(query: &mut Query) -> Result<()> {
    if let Some(fetch) = query.fetch.take() {
        if fetch.percent || fetch.with_ties {
            return Err(mistake("FETCH counts rows: PERCENT and WITH TIES are not supported"));
        }
        let rows = fetch.quantity.unwrap_or_else(|| Expr::Value(Value::Number("1".to_owned(), true).into()));
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(rows),
            None => {
                query.limit_clause =
                    Some(LimitClause::LimitOffset { limit: Some(rows), offset: None, limit_by: vec![] });
            }
            Some(_) => return Err(mistake("LIMIT and FETCH say the same: leave one out")),
        }
    }
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if !limit_by.is_empty() {
                return Err(mistake("LIMIT … BY is not supported: use ROW_NUMBER() OVER (PARTITION BY …)"));
            }
            limit.iter_mut().for_each(keep_number);
            offset.iter_mut().for_each(|offset| keep_number(&mut offset.value));
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            keep_number(offset);
            keep_number(limit);
        }
        None => {}
    }
    if let Some(order) = &mut query.order_by {
        match &mut order.kind {
            OrderByKind::Expressions(all) => all.iter_mut().for_each(|order| keep_number(&mut order.expr)),
            OrderByKind::All(_) => return Err(mistake("ORDER BY ALL is not supported: name the columns")),
        }
    }
    if query.with.as_ref().is_some_and(|with| with.recursive) {
        return Err(mistake("WITH RECURSIVE is not supported"));
    }
    sets(&mut query.body)
}

/// Says of a number that it is no constant: DataFusion reads it itself.
pub(super) fn keep_number(expr: &mut Expr) {
    if let Expr::Value(value) = expr
        && let Value::Number(_, is_kept) = &mut value.value
    {
        *is_kept = true;
    }
}

/// INTERSECT ALL and EXCEPT ALL are functions of two queries.
fn sets(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return Ok(()) };
    sets(left)?;
    sets(right)?;
    if !matches!(set_quantifier, SetQuantifier::All) || *op == SetOperator::Union {
        return Ok(());
    }
    let name = if *op == SetOperator::Intersect { INTERSECT } else { EXCEPT };
    let mut all = query_of("SELECT *")?;
    let mut args = Vec::new();
    for side in [left, right] {
        let mut query = query_of("SELECT *")?;
        std::mem::swap(&mut query.body, side);
        args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(Box::new(query)))));
    }
    if let SetExpr::Select(select) = all.body.as_mut() {
        let relation =
            TableFactor::Function { lateral: false, name: plain(name), args, with_ordinality: false, alias: None };
        select.from = vec![TableWithJoins { relation, joins: vec![] }];
    }
    std::mem::swap(body, all.body.as_mut());
    Ok(())
}

fn query_of(text: &str) -> Result<Query> {
    parse_query(text).map_err(|error| ours(&error))
}

impl Rewriter<'_> {
    /// Gives columns Flink's names, and looks at windows before their frames are taken for expressions.
    pub(super) fn select(&self, select: &mut Select) -> Result<()> {
        for window in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &mut window.1 {
                frame(window)?;
            }
        }
        if let GroupByExpr::All(_) = select.group_by {
            return Err(mistake("GROUP BY ALL is not supported: name the columns"));
        }
        name_columns(&mut select.projection)
    }
}

/// `EXPR$n` where a column has no name. Behind a `*` it is not known how many there are: then `EXPR$?n`, and who knows the
/// whole result gives it its name.
fn name_columns(items: &mut [SelectItem]) -> Result<()> {
    let mut names: HashSet<String> = HashSet::new();
    let mut is_counted = true;
    for (at, item) in items.iter_mut().enumerate() {
        match item {
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => is_counted = false,
            SelectItem::ExprWithAlias { alias, .. } => {
                names.insert(alias.value.clone());
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(mistake("a column has one name: AS (a, b) is for tables"));
            }
            SelectItem::UnnamedExpr(expr) => {
                let (name, is_named) = match &*expr {
                    Expr::Identifier(name) => (name.value.clone(), true),
                    Expr::CompoundIdentifier(parts) => (parts.last().map_or("", |last| &last.value).to_owned(), true),
                    _ if is_counted => (format!("EXPR${at}"), false),
                    _ => (format!("EXPR$?{at}"), false),
                };
                let mut unique = name.clone();
                let mut number = 0;
                while names.contains(&unique) {
                    unique = format!("{name}{number}");
                    number += 1;
                }
                if !is_named || unique != name {
                    let expr = expr.clone();
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::new(unique.clone()) };
                }
                names.insert(unique);
            }
        }
    }
    Ok(())
}

/// `VALUES` is a table function of rows: DataFusion would find types for its columns that are not Flink's.
pub(super) fn values(query: &mut Query) -> Result<()> {
    let SetExpr::Values(values) = query.body.as_mut() else { return Ok(()) };
    let rows = std::mem::take(&mut values.rows).into_iter();
    let rows = rows.map(|row| FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(row.content)))).collect();
    let mut select = query_of("SELECT * FROM t")?;
    if let SetExpr::Select(select) = select.body.as_mut()
        && let [from] = &mut select.from[..]
    {
        from.relation = TableFactor::Function {
            lateral: false,
            name: plain(VALUES),
            args: rows,
            with_ordinality: false,
            alias: None,
        };
    }
    query.body = select.body;
    Ok(())
}

/// The query of `(a, b) IN (SELECT x, y …)` is a table function of it, which has one column: DataFusion takes no more.
pub(super) fn tuples(query: &mut Query) -> Result<()> {
    let mut select = query_of("SELECT * FROM t")?;
    std::mem::swap(query, &mut select);
    let args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(Box::new(select))))];
    if let SetExpr::Select(select) = query.body.as_mut()
        && let [from] = &mut select.from[..]
    {
        from.relation =
            TableFactor::Function { lateral: false, name: plain(TUPLES), args, with_ordinality: false, alias: None };
    }
    Ok(())
}

/// `TABLE(f(x))` and `LATERAL TABLE(f(x))` are `f(x)`: the call is no expression, but what it is called with is.
pub(super) fn table_function(factor: &mut TableFactor) -> Result<(), DataFusionError> {
    let (lateral, call, alias) = match factor {
        TableFactor::TableFunction { expr: Expr::Function(call), alias } => (false, call, alias),
        TableFactor::Function { lateral, name, args, alias, .. } if name.to_string().eq_ignore_ascii_case("table") => {
            match &mut args[..] {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call)))] => (*lateral, call, alias),
                _ => return Err(mistake("TABLE(…) has a function in it")),
            }
        }
        _ => return Ok(()),
    };
    let FunctionArguments::List(list) = &mut call.args else {
        return Err(mistake("TABLE(…) has a function in it"));
    };
    *factor = TableFactor::Function {
        lateral,
        name: call.name.clone(),
        args: std::mem::take(&mut list.args),
        with_ordinality: false,
        alias: alias.take(),
    };
    Ok(())
}

/// `UNNEST(c)` and `t FOR SYSTEM_TIME AS OF time` depend on the row that they are joined with.
pub(super) fn table(factor: &mut TableFactor) -> Result<(), DataFusionError> {
    if let TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } = factor
        && name.to_string().eq_ignore_ascii_case("unnest")
    {
        let mut array_exprs = Vec::new();
        for argument in &args.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => array_exprs.push(expr.clone()),
                other => return Err(mistake(format!("UNNEST takes a collection, found '{other}'"))),
            }
        }
        *factor = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
        return Ok(());
    }
    if let TableFactor::Table { name, alias, with_hints, version: Some(version), .. } = factor {
        let TableVersion::ForSystemTimeAsOf(time) = version else {
            return Err(mistake(format!("'{version}' is not supported: FOR SYSTEM_TIME AS OF is")));
        };
        let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let own_name = parts.last().cloned().unwrap_or_else(|| Ident::new(""));
        let table = Expr::Function(call_of("TABLE", vec![Expr::CompoundIdentifier(parts)]));
        let arguments = [table, time.clone()].into_iter().chain(with_hints.drain(..));
        let args = arguments.map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
        let alias = alias.clone().unwrap_or(TableAlias { explicit: true, name: own_name, columns: vec![], at: None });
        *factor = TableFactor::Function {
            lateral: true,
            name: plain(VERSIONED),
            args,
            with_ordinality: false,
            alias: Some(alias),
        };
    }
    Ok(())
}
