//! `/*+ OPTIONS('k' = 'v') */` behind the name of a table, `/*+ STATE_TTL('t' = '1 d') */` behind SELECT.
//!
//! To the parser hints are comments. They are taken from the tokens, and given to the table that stands before them, or that
//! they name.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, Spanned, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::dialect::FlinkDialect;
use super::query::text;
use super::statement::{Insert, Statement};

/// The hint of a table that says for how long a join or an aggregation keeps unused rows of it.
pub const STATE_TTL: &str = "STATE_TTL";

/// A hint and the end of the token before it.
#[derive(Debug)]
pub(super) struct Hint {
    behind: Location,
    at: Location,
    text: String,
}

/// The tokens that count, and the hints between them.
pub(super) fn take(tokens: &[TokenWithSpan]) -> (Vec<TokenWithSpan>, Vec<Hint>) {
    let (mut others, mut hints) = (Vec::with_capacity(tokens.len()), Vec::new());
    let mut behind = Location::empty();
    for token in tokens {
        match &token.token {
            Token::Whitespace(Whitespace::MultiLineComment(comment)) => {
                if let Some(text) = comment.strip_prefix('+') {
                    hints.push(Hint { behind, at: token.span.start, text: text.to_owned() });
                }
            }
            Token::Whitespace(_) => {}
            _ => {
                behind = token.span.end;
                others.push(token.clone());
            }
        }
    }
    (others, hints)
}

/// What may have hints in it.
pub(super) trait TakesHints {
    fn queries(&mut self, visit: &mut Tables) -> ControlFlow<()>;
}

impl TakesHints for Expr {
    fn queries(&mut self, tables: &mut Tables) -> ControlFlow<()> {
        self.visit(tables)
    }
}

impl TakesHints for Box<Query> {
    fn queries(&mut self, tables: &mut Tables) -> ControlFlow<()> {
        self.visit(tables)
    }
}

impl TakesHints for Insert {
    fn queries(&mut self, tables: &mut Tables) -> ControlFlow<()> {
        if let Some(options) = tables.options(self.table.end)? {
            self.hints.extend(options);
        }
        self.query.visit(tables)
    }
}

impl TakesHints for Statement {
    fn queries(&mut self, tables: &mut Tables) -> ControlFlow<()> {
        match self {
            Self::Query(query) => query.queries(tables),
            Self::Insert(insert) => insert.queries(tables),
            Self::StatementSet(inserts) => inserts.iter_mut().try_for_each(|insert| insert.queries(tables)),
            Self::CreateView(view) => view.query.queries(tables),
            Self::CreateTable(table) => table.query.iter_mut().try_for_each(|query| query.queries(tables)),
            Self::Explain { statement, .. } => statement.queries(tables),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Looks for the tables that hints stand behind.
pub(super) struct Tables {
    hints: Vec<Hint>,
    failed: Option<(String, Location)>,
}

impl Tables {
    /// The options of the hint behind a place.
    fn options(&mut self, behind: Location) -> ControlFlow<(), Option<Vec<(String, String)>>> {
        let Some(found) = self.hints.iter().position(|hint| hint.behind == behind) else {
            return ControlFlow::Continue(None);
        };
        let hint = self.hints.remove(found);
        match options(&hint.text) {
            Ok(options) => ControlFlow::Continue(Some(options)),
            Err(reason) => {
                self.failed = Some((reason, hint.at));
                ControlFlow::Break(())
            }
        }
    }
}

impl Tables {
    /// The hints behind SELECT.
    fn of_select(&mut self, select: &mut Select) -> Result<(), (String, Location)> {
        let behind = select.select_token.0.span.end;
        while let Some(found) = self.hints.iter().position(|hint| hint.behind == behind) {
            let hint = self.hints.remove(found);
            for (key, value) in state_ttl(&hint.text).map_err(|reason| (reason, hint.at))? {
                if flott_core::time::parse_duration(&value).is_err() {
                    let reason = format!("{STATE_TTL} of '{key}' is '{value}', which is no duration such as '1 d'");
                    return Err((reason, hint.at));
                }
                let mut tables = select.from.iter_mut();
                match tables.find_map(|tables| named(tables, &key)) {
                    Some(TableFactor::Table { with_hints, .. }) => with_hints.push(setting(STATE_TTL, &value)),
                    Some(_) => {
                        let reason = format!(
                            "{STATE_TTL} names '{key}', which is not a table or a view by itself: make the subquery a view, or use WITH"
                        );
                        return Err((reason, hint.at));
                    }
                    None => {
                        let reason =
                            format!("{STATE_TTL} names '{key}', which is no table of this FROM, or has an alias");
                        return Err((reason, hint.at));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The factor with this name: its alias, if it has one.
fn named<'a>(tables: &'a mut TableWithJoins, wanted: &str) -> Option<&'a mut TableFactor> {
    let factors = std::iter::once(&mut tables.relation).chain(tables.joins.iter_mut().map(|join| &mut join.relation));
    for factor in factors {
        let is_wanted = match &*factor {
            TableFactor::Table { name, alias: None, .. } => {
                let parts = name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str());
                let parts: Vec<&str> = parts.collect();
                parts.last() == Some(&wanted) || parts.join(".") == wanted
            }
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::TableFunction { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => alias.name.value == wanted,
            _ => false,
        };
        match factor {
            factor if is_wanted => return Some(factor),
            TableFactor::NestedJoin { table_with_joins, .. } => {
                if let Some(found) = named(table_with_joins, wanted) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

/// `'key' = 'value'`, as tables have hints.
fn setting(key: &str, value: &str) -> Expr {
    Expr::BinaryOp { left: Box::new(text(key)), op: BinaryOperator::Eq, right: Box::new(text(value)) }
}

impl VisitorMut for Tables {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        match self.of_select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failed) => {
                self.failed = Some(failed);
                ControlFlow::Break(())
            }
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, with_hints, .. } = factor {
            let ends = [Some(name.span().end), alias.as_ref().map(|alias| alias.name.span.end)];
            for end in ends.into_iter().flatten() {
                for (key, value) in self.options(end)?.unwrap_or_default() {
                    with_hints.push(setting(&key, &value));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Gives the hints to the tables that they stand behind, or that [`STATE_TTL`] names. Others (behind SELECT: how to join) may
/// be left out without changing a result.
pub(super) fn give(parsed: &mut impl TakesHints, hints: Vec<Hint>) -> Result<(), (String, Location)> {
    if hints.is_empty() {
        return Ok(());
    }
    let mut tables = Tables { hints, failed: None };
    match parsed.queries(&mut tables) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(tables.failed.unwrap_or((String::new(), Location::empty()))),
    }
}

/// The options that a table's hints set.
pub fn table_hints(hints: &[Expr]) -> impl Iterator<Item = (String, String)> + '_ {
    let text = |expr: &Expr| match expr {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    hints.iter().filter_map(move |hint| match hint {
        Expr::BinaryOp { left, right, .. } => Some((text(left)?, text(right)?)),
        _ => None,
    })
}

/// `OPTIONS('k' = 'v', …)`, among other hints.
fn options(hint: &str) -> Result<Vec<(String, String)>, String> {
    let broken = || format!("the hint '/*+{hint}*/' is not of the form /*+ OPTIONS('key' = 'value') */");
    let tokens = Tokenizer::new(&FlinkDialect, hint).tokenize_with_location().map_err(|_| broken())?;
    let mut parser = Parser::new(&FlinkDialect).with_tokens_with_locations(tokens);
    let mut found = Vec::new();
    while parser.peek_token_ref().token != Token::EOF {
        let name = parser.parse_identifier().map_err(|_| broken())?;
        if name.value.eq_ignore_ascii_case("OPTIONS") {
            found.extend(super::statements::options(&mut parser).map_err(|_| broken())?);
        } else {
            return Err(format!("the hint {} is not known behind a table: OPTIONS is", name.value));
        }
        if !parser.consume_token(&Token::Comma) && parser.peek_token_ref().token == Token::EOF {
            break;
        }
    }
    Ok(found)
}

/// `STATE_TTL('t' = '1 d', …)` among the hints behind SELECT. What others say is skipped.
fn state_ttl(hint: &str) -> Result<Vec<(String, String)>, String> {
    let broken = || format!("the hint '/*+{hint}*/' is not of the form /*+ {STATE_TTL}('table' = '1 d') */");
    let tokens = Tokenizer::new(&FlinkDialect, hint).tokenize_with_location().map_err(|_| broken())?;
    let mut parser = Parser::new(&FlinkDialect).with_tokens_with_locations(tokens);
    let mut found = Vec::new();
    while parser.peek_token_ref().token != Token::EOF {
        let token = parser.next_token();
        if matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case(STATE_TTL)) {
            found.extend(super::statements::options(&mut parser).map_err(|_| broken())?);
        }
    }
    Ok(found)
}
