//! `JSON_VALUE`, `JSON_OBJECT` and the like, whose arguments have a grammar of their own.
//!
//! They become plain calls: what is said in words is a constant argument, always there, always at the same place.

use datafusion::sql::sqlparser::ast::{Expr, Value};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::query::{data_type, error_here, function, take_words, text};

/// Parses the call of `name`, if it is one of those.
pub(super) fn call(parser: &mut Parser<'_>, name: &str) -> Option<Result<Expr, ParserError>> {
    let arguments: fn(&mut Parser<'_>) -> Result<Vec<Expr>, ParserError> = match name {
        "JSON_VALUE" => value,
        "JSON_QUERY" => query,
        "JSON_EXISTS" => exists,
        "JSON_OBJECT" => object,
        "JSON_ARRAY" => array,
        "JSON_OBJECTAGG" => object_aggregate,
        "JSON_ARRAYAGG" => array_aggregate,
        _ => return None,
    };
    Some(parse(parser, name, arguments))
}

fn parse(
    parser: &mut Parser<'_>,
    name: &str,
    arguments: fn(&mut Parser<'_>) -> Result<Vec<Expr>, ParserError>,
) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let mut call = function(name, arguments(parser)?);
    parser.expect_token(&Token::RParen)?;
    if name.ends_with("AGG") && parser.parse_keyword(Keyword::FILTER) {
        parser.expect_token(&Token::LParen)?;
        parser.expect_keyword_is(Keyword::WHERE)?;
        call.filter = Some(Box::new(parser.parse_expr()?));
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Expr::Function(call))
}

fn document_and_path(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let document = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    Ok(vec![document, parser.parse_expr()?])
}

fn returning(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    if !take_words(parser, &["RETURNING"]) {
        return Ok(text("STRING"));
    }
    data_type(parser).map(|found| text(&found.to_string()))
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

/// `JSON_VALUE(document, path, type, on empty, its default, on error, its default)`.
fn value(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let mut arguments = document_and_path(parser)?;
    arguments.push(returning(parser)?);
    let (mut on_empty, mut on_error) = ([text("NULL"), null()], [text("NULL"), null()]);
    loop {
        let behaviour = if take_words(parser, &["NULL"]) {
            [text("NULL"), null()]
        } else if take_words(parser, &["ERROR"]) {
            [text("ERROR"), null()]
        } else if take_words(parser, &["DEFAULT"]) {
            [text("DEFAULT"), parser.parse_expr()?]
        } else {
            arguments.extend(on_empty);
            arguments.extend(on_error);
            return Ok(arguments);
        };
        match on(parser)? {
            Case::Empty => on_empty = behaviour,
            Case::Error => on_error = behaviour,
        }
    }
}

enum Case {
    Empty,
    Error,
}

fn on(parser: &mut Parser<'_>) -> Result<Case, ParserError> {
    if take_words(parser, &["ON", "EMPTY"]) {
        Ok(Case::Empty)
    } else if take_words(parser, &["ON", "ERROR"]) {
        Ok(Case::Error)
    } else {
        parser.expected_ref("ON EMPTY or ON ERROR", parser.peek_token_ref())
    }
}

/// `JSON_QUERY(document, path, type, wrapper, on empty, on error)`.
fn query(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let mut arguments = document_and_path(parser)?;
    arguments.push(returning(parser)?);
    let wrapper = if take_words(parser, &["WITHOUT"]) {
        "WITHOUT"
    } else if take_words(parser, &["WITH", "CONDITIONAL"]) {
        "CONDITIONAL"
    } else if take_words(parser, &["WITH", "UNCONDITIONAL"]) || take_words(parser, &["WITH"]) {
        "UNCONDITIONAL"
    } else {
        ""
    };
    if !wrapper.is_empty() {
        take_words(parser, &["ARRAY"]);
        if !take_words(parser, &["WRAPPER"]) {
            return parser.expected_ref("WRAPPER", parser.peek_token_ref());
        }
    }
    arguments.push(text(if wrapper.is_empty() { "WITHOUT" } else { wrapper }));
    let (mut on_empty, mut on_error) = ("NULL", "NULL");
    const BEHAVIOURS: [(&[&str], &str); 5] = [
        (&["NULL"], "NULL"),
        (&["ERROR"], "ERROR"),
        (&["EMPTY", "ARRAY"], "EMPTY ARRAY"),
        (&["EMPTY", "OBJECT"], "EMPTY OBJECT"),
        (&["EMPTY"], "EMPTY ARRAY"),
    ];
    while let Some((_, behaviour)) = BEHAVIOURS.iter().find(|(words, _)| take_words(parser, words)) {
        match on(parser)? {
            Case::Empty => on_empty = behaviour,
            Case::Error => on_error = behaviour,
        }
    }
    arguments.extend([text(on_empty), text(on_error)]);
    Ok(arguments)
}

/// `JSON_EXISTS(document, path, on error)`.
fn exists(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let mut arguments = document_and_path(parser)?;
    let behaviour = ["TRUE", "FALSE", "UNKNOWN", "ERROR"].into_iter().find(|word| take_words(parser, &[word]));
    if behaviour.is_some() && !take_words(parser, &["ON", "ERROR"]) {
        return parser.expected_ref("ON ERROR", parser.peek_token_ref());
    }
    arguments.push(text(behaviour.unwrap_or("FALSE")));
    Ok(arguments)
}

fn on_null(parser: &mut Parser<'_>, default: &'static str) -> Expr {
    let said = ["NULL", "ABSENT"].into_iter().find(|word| take_words(parser, &[word, "ON", "NULL"]));
    text(said.unwrap_or(default))
}

/// `KEY k VALUE v`, `k VALUE v`, `k : v`.
fn pair(parser: &mut Parser<'_>) -> Result<[Expr; 2], ParserError> {
    // KEY is also a name: it is the word if something other than VALUE follows.
    let is_word = super::query::is_word(parser, 0, "KEY")
        && !super::query::is_word(parser, 1, "VALUE")
        && parser.peek_nth_token_ref(1).token != Token::Colon;
    if is_word {
        parser.advance_token();
    }
    let key = match parser.peek_token_ref().token.clone() {
        // `'a' : 1` would be read as an access into JSON.
        Token::SingleQuotedString(key) => {
            parser.advance_token();
            text(&key)
        }
        _ => parser.parse_expr()?,
    };
    if !parser.consume_token(&Token::Colon) && !take_words(parser, &["VALUE"]) {
        return error_here(parser, "expected VALUE and a value behind a key of JSON");
    }
    Ok([key, parser.parse_expr()?])
}

/// Which values are JSON already, so that they are not quoted: one letter each, `j` for these and `v` for others.
fn flag(value: &Expr) -> char {
    let Expr::Function(call) = value else { return 'v' };
    let name = call.name.to_string().to_uppercase();
    let is_json = matches!(name.as_str(), "JSON_OBJECT" | "JSON_ARRAY" | "JSON_OBJECTAGG" | "JSON_ARRAYAGG" | "JSON");
    if is_json { 'j' } else { 'v' }
}

/// `JSON_OBJECT(on null, flags, key, value, …)`.
fn object(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let mut pairs = Vec::new();
    while parser.peek_token_ref().token != Token::RParen {
        if !pairs.is_empty() && !parser.consume_token(&Token::Comma) {
            break;
        }
        pairs.push(pair(parser)?);
    }
    let flags: String = pairs.iter().map(|[_, value]| flag(value)).collect();
    let mut arguments = vec![on_null(parser, "NULL"), text(&flags)];
    arguments.extend(pairs.into_iter().flatten());
    Ok(arguments)
}

/// `JSON_ARRAY(on null, flags, value, …)`.
fn array(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let mut values: Vec<Expr> = Vec::new();
    while parser.peek_token_ref().token != Token::RParen {
        let only_clause = super::query::is_word(parser, 1, "ON") && values.is_empty();
        if only_clause || (!values.is_empty() && !parser.consume_token(&Token::Comma)) {
            break;
        }
        values.push(parser.parse_expr()?);
    }
    let flags: String = values.iter().map(flag).collect();
    let mut arguments = vec![on_null(parser, "ABSENT"), text(&flags)];
    arguments.extend(values);
    Ok(arguments)
}

/// `JSON_OBJECTAGG(key, value, on null)`.
fn object_aggregate(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let [key, value] = pair(parser)?;
    Ok(vec![key, value, on_null(parser, "NULL")])
}

/// `JSON_ARRAYAGG(value, on null)`.
fn array_aggregate(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    let value = parser.parse_expr()?;
    Ok(vec![value, on_null(parser, "ABSENT")])
}
