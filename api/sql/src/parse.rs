//! From a script to statements.
//!
//! A script is cut into pieces at its semicolons ([`split`]), and each piece is parsed when its turn comes
//! ([`Piece::statement`]), so that a mistake further down does not stop what stands above it. Queries and expressions are
//! parsed by `sqlparser` with [`FlinkDialect`]; statements by us, since Flink's are its own.

mod alter;
mod ddl;
mod dialect;
mod hints;
mod json;
mod query;
mod statement;
mod statements;

pub use dialect::FlinkDialect;
pub use hints::{STATE_TTL, table_hints};
pub(crate) use query::{function as call_of, text as text_of};
pub use statement::*;

use datafusion::sql::sqlparser::ast::{Expr, Query};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use flott_core::{Error, Result};

use crate::types::SqlType;

/// A statement's text, not parsed yet.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// The whole script: positions are in it.
    script: &'a str,
    /// The statement, without the semicolon.
    pub text: &'a str,
    /// The line that it begins in, from 1.
    pub line: u64,
    tokens: Vec<TokenWithSpan>,
}

/// Cuts a script at its semicolons: not at those in texts, names, comments and statement sets.
///
/// # Errors
/// A text, name or comment does not end.
pub fn split(script: &str) -> Result<Vec<Piece<'_>>> {
    let tokens = Tokenizer::new(&FlinkDialect, script)
        .tokenize_with_location()
        .map_err(|error| syntax_error(script, &error.message, (error.location.line > 0).then_some(error.location)))?;
    let lines = line_starts(script);
    let mut pieces = Vec::new();
    let mut now: Vec<TokenWithSpan> = Vec::new();
    let mut block = Block::default();
    for token in tokens {
        if token.token == Token::SemiColon && !block.holds(&now) {
            push_piece(script, &lines, std::mem::take(&mut now), &mut pieces);
            block = Block::default();
        } else {
            now.push(token);
        }
    }
    push_piece(script, &lines, now, &mut pieces);
    Ok(pieces)
}

/// Whether a statement set has not ended yet.
#[derive(Default)]
struct Block {
    /// Where, in the statement's tokens, the part behind the last semicolon begins.
    part: usize,
    is_open: bool,
}

impl Block {
    /// Whether the semicolon behind `tokens` belongs to them.
    fn holds(&mut self, tokens: &[TokenWithSpan]) -> bool {
        if self.part == 0 {
            let words: Vec<_> = words(tokens).take(8).collect();
            let set = words.windows(2).position(|pair| pair == ["STATEMENT", "SET"]);
            self.is_open = match (words.first().map(String::as_str), set) {
                (Some("BEGIN"), Some(1)) => true,
                (Some("EXECUTE" | "EXPLAIN" | "COMPILE"), Some(at)) => {
                    words.get(at + 2).is_some_and(|word| word == "BEGIN")
                }
                _ => false,
            };
        } else if words(&tokens[self.part..]).next().is_some_and(|word| word == "END") {
            self.is_open = false;
        }
        self.part = tokens.len() + 1;
        self.is_open
    }
}

fn words(tokens: &[TokenWithSpan]) -> impl Iterator<Item = String> + '_ {
    let significant = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    significant.map_while(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
        Token::SemiColon => Some(";".to_owned()),
        _ => None,
    })
}

fn push_piece<'a>(script: &'a str, lines: &[usize], tokens: Vec<TokenWithSpan>, pieces: &mut Vec<Piece<'a>>) {
    let significant = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_) | Token::EOF);
    let (Some(first), Some(last)) = (tokens.iter().find(significant), tokens.iter().rfind(significant)) else { return };
    let (start, end) = (offset(script, lines, first.span.start), offset(script, lines, last.span.end));
    let line = first.span.start.line;
    pieces.push(Piece { script, text: script[start..end.max(start)].trim_end(), line, tokens });
}

impl Piece<'_> {
    /// Parses it.
    ///
    /// # Errors
    /// It is no statement that Flink has: the message has the place and shows it.
    pub fn statement(&self) -> Result<Statement> {
        self.parse(statements::statement)
    }

    fn parse<T>(&self, parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>) -> Result<T>
    where
        T: hints::TakesHints,
    {
        let (tokens, hints) = hints::take(&self.tokens);
        let mut parser = Parser::new(&FlinkDialect).with_tokens_with_locations(tokens);
        let mut parsed = parse(&mut parser)
            .and_then(|parsed| match parser.peek_token_ref() {
                TokenWithSpan { token: Token::EOF, .. } => Ok(parsed),
                token => parser.expected_ref("the end of the statement", token),
            })
            .map_err(|error| self.syntax_error(error))?;
        hints::give(&mut parsed, hints).map_err(|(reason, at)| syntax_error(self.script, &reason, Some(at)))?;
        Ok(parsed)
    }

    fn syntax_error(&self, error: ParserError) -> Error {
        let message = match error {
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
            ParserError::RecursionLimitExceeded => "expressions or queries are nested too deeply".to_owned(),
        };
        let (reason, at) = place_of(&message);
        let end = || self.tokens.iter().rfind(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        let reason = reason.replace("found: EOF", "found the end of the statement").replace("found: ", "found ");
        let reason = reason.replacen("Expected: ", "expected ", 1);
        syntax_error(self.script, &reason, at.or_else(|| end().map(|token| token.span.end)))
    }
}

/// Parses all statements of a script.
///
/// # Errors
/// See [`split`] and [`Piece::statement`].
pub fn parse_script(script: &str) -> Result<Vec<Statement>> {
    split(script)?.iter().map(Piece::statement).collect()
}

/// Parses a query.
///
/// # Errors
/// It is none.
pub fn parse_query(text: &str) -> Result<Query> {
    whole(text)?.parse(|parser| parser.parse_query()).map(|query| *query)
}

/// Parses an expression.
///
/// # Errors
/// It is none.
pub fn parse_expr(text: &str) -> Result<Expr> {
    whole(text)?.parse(|parser| parser.parse_expr())
}

/// Parses a type.
///
/// # Errors
/// It is none.
pub fn parse_type(text: &str) -> Result<SqlType> {
    crate::types::parse(text).map_err(|reason| Error::input(format!("the type '{text}': {reason}")))
}

fn whole(text: &str) -> Result<Piece<'_>> {
    let mut pieces = split(text)?;
    match pieces.len() {
        1 => Ok(pieces.remove(0)),
        0 => Err(Error::input("the text is empty")),
        _ => Err(syntax_error(text, "more than one statement", None)),
    }
}

/// Separates `sqlparser`'s message from the place at its end.
fn place_of(message: &str) -> (&str, Option<Location>) {
    let place = message.rsplit_once(" at Line: ").and_then(|(reason, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((reason, Location::new(line.trim().parse().ok()?, column.trim().parse().ok()?)))
    });
    place.map_or((message, None), |(reason, at)| (reason, Some(at)))
}

/// The reason, the place, and the line with a caret below it.
fn syntax_error(script: &str, reason: &str, at: Option<Location>) -> Error {
    match at {
        Some(at) => located(script, "syntax error", reason, at),
        None => Error::input(format!("syntax error: {reason}")),
    }
}

/// What is wrong, for which reason, where, and the line with a caret below it.
pub(crate) fn located(script: &str, what: &str, reason: &str, at: Location) -> Error {
    let line = script.lines().nth(at.line as usize - 1).unwrap_or_default();
    // Long lines are shown from near the place on: a caret is of no use out of sight.
    let column = at.column.max(1) as usize - 1;
    let skipped = if column > 100 { column - 60 } else { 0 };
    let shown: String = line.chars().skip(skipped).take(140).map(|c| if c == '\t' { ' ' } else { c }).collect();
    let caret = " ".repeat(column - skipped);
    Error::input(format!("{what} at line {}, column {}: {reason}\n  {shown}\n  {caret}^", at.line, at.column))
}

fn line_starts(script: &str) -> Vec<usize> {
    std::iter::once(0).chain(script.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// Columns count characters; texts are cut by bytes.
fn offset(script: &str, lines: &[usize], at: Location) -> usize {
    let start = lines.get(at.line.max(1) as usize - 1).copied().unwrap_or(script.len());
    let in_line = script[start..].char_indices().nth(at.column.max(1) as usize - 1);
    in_line.map_or(script.len(), |(bytes, _)| start + bytes)
}

#[cfg(test)]
mod tests;
