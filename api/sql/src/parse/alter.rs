//! ALTER TABLE of columns, keys and the watermark.

use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::ddl;
use super::query::{error_here, is_word, take_words};
use super::statement::{AlterAction, Name, Place, Redefinition};
use super::statements::{identifier, in_parentheses};

type Result<T> = std::result::Result<T, ParserError>;

/// What follows `ALTER TABLE t`, if it is about that.
pub(super) fn action(parser: &mut Parser<'_>, table: &Name) -> Result<Option<AlterAction>> {
    let is_modify = is_word(parser, 0, "MODIFY");
    if is_modify || is_word(parser, 0, "ADD") {
        parser.advance_token();
        return redefinition(parser, table, is_modify).map(|found| Some(AlterAction::Redefine(Box::new(found))));
    }
    Ok(Some(if take_words(parser, &["DROP", "PRIMARY", "KEY"]) {
        AlterAction::DropPrimaryKey
    } else if take_words(parser, &["DROP", "CONSTRAINT"]) {
        identifier(parser)?;
        AlterAction::DropPrimaryKey
    } else if take_words(parser, &["DROP", "WATERMARK"]) {
        AlterAction::DropWatermark
    } else if is_word(parser, 0, "DROP") && is_word(parser, 1, "PARTITION") {
        return error_here(parser, "DROP PARTITION is not supported: a partition is a folder, which can be deleted");
    } else if take_words(parser, &["DROP"]) {
        AlterAction::DropColumns(match parser.peek_token_ref().token {
            Token::LParen => in_parentheses(parser, identifier)?,
            _ => vec![identifier(parser)?],
        })
    } else if take_words(parser, &["RENAME"]) {
        let from = identifier(parser)?;
        if !take_words(parser, &["TO"]) {
            return parser.expected_ref("TO and the column's new name", parser.peek_token_ref());
        }
        AlterAction::RenameColumn { from, to: identifier(parser)? }
    } else {
        return Ok(None);
    }))
}

/// `(a INT FIRST, b INT AFTER a, PRIMARY KEY …, WATERMARK …)`, or one of these.
fn redefinition(parser: &mut Parser<'_>, table: &Name, is_modify: bool) -> Result<Redefinition> {
    if is_word(parser, 0, "PARTITION") || is_word(parser, 0, "DISTRIBUTION") {
        return error_here(
            parser,
            "ALTER TABLE changes columns, the primary key and the watermark, and no other parts",
        );
    }
    let mut found = Redefinition { is_modify, elements: ddl::empty(table.clone()), places: Vec::new() };
    let is_list = parser.consume_token(&Token::LParen);
    loop {
        let before = found.elements.columns.len();
        ddl::element(parser, &mut found.elements)?;
        if found.elements.columns.len() > before {
            found.places.push(place(parser)?);
        }
        if !is_list || !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    if is_list {
        parser.expect_token(&Token::RParen)?;
    }
    Ok(found)
}

fn place(parser: &mut Parser<'_>) -> Result<Option<Place>> {
    Ok(if take_words(parser, &["FIRST"]) {
        Some(Place::First)
    } else if take_words(parser, &["AFTER"]) {
        Some(Place::After(identifier(parser)?))
    } else {
        None
    })
}
