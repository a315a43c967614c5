//! Expressions of Flink's own.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

use super::FlinkDialect;
use crate::types::{Lexeme, SqlType, parse_lexemes};

/// A call of a function.
pub(crate) fn function(name: &str, args: Vec<Expr>) -> Function {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    }
}

/// A constant text.
pub(crate) fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

/// Whether the next tokens are these words, in any case, and takes them if they are.
pub(super) fn take_words(parser: &mut Parser<'_>, words: &[&str]) -> bool {
    let are_there = words.iter().enumerate().all(|(ahead, word)| is_word(parser, ahead, word));
    if are_there {
        words.iter().for_each(|_| parser.advance_token());
    }
    are_there
}

/// Whether the token that is so far ahead is this word.
pub(super) fn is_word(parser: &Parser<'_>, ahead: usize, word: &str) -> bool {
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    }
}

/// An error at the next token.
pub(super) fn error_here<T>(parser: &Parser<'_>, reason: &str) -> Result<T, ParserError> {
    error_at(parser.peek_token_ref().span.start, reason)
}

/// An error at a place.
pub(super) fn error_at<T>(at: Location, reason: &str) -> Result<T, ParserError> {
    Err(ParserError::ParserError(format!("{reason}{at}")))
}

/// A type.
pub(super) fn data_type(parser: &mut Parser<'_>) -> Result<SqlType, ParserError> {
    let (mut lexemes, mut ends) = (Vec::new(), Vec::new());
    for ahead in 0.. {
        let token = &parser.peek_nth_token_ref(ahead).token;
        let lexeme = match token {
            Token::Word(word) if word.quote_style.is_some() => Lexeme::Quoted(word.value.clone()),
            Token::Word(word) => Lexeme::Word(word.value.clone()),
            Token::Number(digits, _) => Lexeme::Number(digits.clone()),
            Token::SingleQuotedString(text) => Lexeme::Text(text.clone()),
            Token::Lt => Lexeme::Sign('<'),
            Token::Gt => Lexeme::Sign('>'),
            Token::LParen => Lexeme::Sign('('),
            Token::RParen => Lexeme::Sign(')'),
            Token::Comma => Lexeme::Sign(','),
            Token::ShiftRight => {
                lexemes.push(Lexeme::Sign('>'));
                ends.push(ahead);
                Lexeme::Sign('>')
            }
            Token::Neq => {
                // `ROW<>`.
                lexemes.push(Lexeme::Sign('<'));
                ends.push(ahead);
                Lexeme::Sign('>')
            }
            _ => break,
        };
        lexemes.push(lexeme);
        ends.push(ahead + 1);
    }
    match parse_lexemes(&lexemes) {
        Ok((found, used)) => {
            (0..ends[used - 1]).for_each(|_| parser.advance_token());
            Ok(found)
        }
        Err(reason) => error_here(parser, &reason),
    }
}

/// `CAST(x AS type)`. The type stands in the tree by Flink's name for it.
pub(super) fn cast(parser: &mut Parser<'_>, is_try: bool) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword_is(Keyword::AS)?;
    let to = data_type(parser)?;
    parser.expect_token(&Token::RParen)?;
    let kind = if is_try { CastKind::TryCast } else { CastKind::Cast };
    let data_type = DataType::Custom(ObjectName::from(vec![Ident::new(to.to_string())]), vec![]);
    Ok(Expr::Cast { kind, expr, data_type, array: false, format: None })
}

/// Whether the next tokens are `TRIM(LEADING FROM`, or with another side: nothing says there what is trimmed.
pub(super) fn is_bare_trim(parser: &Parser<'_>) -> bool {
    ["LEADING", "TRAILING", "BOTH"].iter().any(|side| is_word(parser, 2, side)) && is_word(parser, 3, "FROM")
}

/// `TRIM(LEADING FROM x)`: spaces are trimmed.
pub(super) fn bare_trim(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let trim_where = Some(parser.parse_trim_where()?);
    parser.expect_keyword_is(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { expr, trim_where, trim_what: None, trim_characters: None })
}

/// `TABLE t [PARTITION BY …]`: an argument of a table function. The partition stands in the call's parameters.
pub(super) fn table_argument(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    let name = parser.parse_object_name(true)?;
    let parts = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    let mut call = function("TABLE", vec![Expr::CompoundIdentifier(parts)]);
    if parser.parse_keywords(&[Keyword::PARTITION, Keyword::BY]) {
        let in_parentheses = parser.consume_token(&Token::LParen);
        // Without them there is one: what comes behind it is the next argument.
        let keys = match in_parentheses {
            true => parser.parse_comma_separated(Parser::parse_expr)?,
            false => vec![parser.parse_expr()?],
        };
        if in_parentheses {
            parser.expect_token(&Token::RParen)?;
        }
        call.parameters = function("", keys).args;
    }
    Ok(Expr::Function(call))
}

/// `MAP[k, v, …]`.
pub(super) fn map(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LBracket)?;
    let entries = match parser.peek_token_ref().token {
        Token::RBracket => vec![],
        _ => parser.parse_comma_separated(Parser::parse_expr)?,
    };
    if entries.len() % 2 == 1 {
        return error_here(parser, "a MAP needs a value for each key");
    }
    parser.expect_token(&Token::RBracket)?;
    Ok(Expr::Function(function("MAP", entries)))
}

/// `x IS [NOT] JSON …`, `x [NOT] BETWEEN [A]SYMMETRIC a AND b`.
pub(super) fn infix(parser: &mut Parser<'_>, expr: &Expr) -> Option<Result<Expr, ParserError>> {
    if is_word(parser, 0, "IS") {
        let negated = is_word(parser, 1, "NOT");
        if !is_word(parser, 1 + usize::from(negated), "JSON") {
            return None;
        }
        (0..2 + usize::from(negated)).for_each(|_| parser.advance_token());
        let kind = ["VALUE", "SCALAR", "ARRAY", "OBJECT"].into_iter().find(|kind| take_words(parser, &[kind]));
        let test = Expr::Function(function("IS_JSON", vec![expr.clone(), text(kind.unwrap_or("VALUE"))]));
        return Some(Ok(negate_if(negated, test)));
    }
    let negated = is_word(parser, 0, "NOT");
    let between = usize::from(negated);
    let is_symmetric = is_word(parser, between + 1, "SYMMETRIC");
    if !is_word(parser, between, "BETWEEN") || !(is_symmetric || is_word(parser, between + 1, "ASYMMETRIC")) {
        return None;
    }
    (0..between + 2).for_each(|_| parser.advance_token());
    Some(bounds(parser).map(|(low, high)| {
        let within = |low: &Expr, high: &Expr| Expr::Between {
            expr: Box::new(expr.clone()),
            negated: false,
            low: Box::new(low.clone()),
            high: Box::new(high.clone()),
        };
        let mut test = within(&low, &high);
        if is_symmetric {
            let (left, right) = (Box::new(test), Box::new(within(&high, &low)));
            test = Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Or, right }));
        }
        negate_if(negated, test)
    }))
}

fn bounds(parser: &mut Parser<'_>) -> Result<(Expr, Expr), ParserError> {
    let precedence = FlinkDialect.prec_value(Precedence::Between);
    let low = parser.parse_subexpr(precedence)?;
    parser.expect_keyword_is(Keyword::AND)?;
    Ok((low, parser.parse_subexpr(precedence)?))
}

fn negate_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) } } else { expr }
}
