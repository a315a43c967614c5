//! CREATE TABLE.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::query::{data_type, error_here, is_word, take_words};
use super::statement::{
    ColumnDefinition, ColumnDefinitionKind, CreateTable, Like, LikeFeature, LikeMode, Name, Options,
    WatermarkDefinition,
};
use super::statements::{comment, identifier, if_not_exists, in_parentheses, name, options, string};

type Result<T> = std::result::Result<T, ParserError>;

/// What follows `CREATE [TEMPORARY] TABLE`.
pub(super) fn create_table(parser: &mut Parser<'_>, is_temporary: bool) -> Result<CreateTable> {
    let if_not_exists = if_not_exists(parser);
    let mut table = CreateTable { is_temporary, if_not_exists, ..empty(name(parser)?) };
    if parser.consume_token(&Token::LParen) && !parser.consume_token(&Token::RParen) {
        loop {
            element(parser, &mut table)?;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    table.comment = comment(parser)?;
    if take_words(parser, &["DISTRIBUTED"]) || is_word(parser, 0, "DISTRIBUTION") {
        return error_here(parser, "DISTRIBUTED BY is not supported");
    }
    if take_words(parser, &["PARTITIONED", "BY"]) {
        table.partition_keys = in_parentheses(parser, identifier)?;
    }
    if take_words(parser, &["WITH"]) {
        table.options = options(parser)?;
    }
    if take_words(parser, &["LIKE"]) {
        table.like = Some(like(parser)?);
    } else if parser.parse_keyword(Keyword::AS) {
        table.query = Some(parser.parse_query()?);
    }
    Ok(table)
}

/// A table of which nothing is said.
pub(super) fn empty(name: Name) -> CreateTable {
    CreateTable {
        name,
        is_temporary: false,
        if_not_exists: false,
        columns: vec![],
        watermark: None,
        primary_key: vec![],
        comment: None,
        partition_keys: vec![],
        options: Options::new(),
        like: None,
        query: None,
    }
}

pub(super) fn element(parser: &mut Parser<'_>, table: &mut CreateTable) -> Result<()> {
    if take_words(parser, &["WATERMARK", "FOR"]) {
        if table.watermark.is_some() {
            return error_here(parser, "a table has at most one watermark");
        }
        let mut column = vec![identifier(parser)?];
        while parser.consume_token(&Token::Period) {
            column.push(identifier(parser)?);
        }
        parser.expect_keyword_is(Keyword::AS)?;
        table.watermark = Some(WatermarkDefinition { column, expr: parser.parse_expr()? });
        return Ok(());
    }
    if is_word(parser, 0, "CONSTRAINT") && !matches!(parser.peek_nth_token_ref(1).token, Token::Comma | Token::RParen) {
        parser.advance_token();
        identifier(parser)?;
    }
    if take_words(parser, &["PRIMARY", "KEY"]) {
        let columns = in_parentheses(parser, identifier)?;
        return primary_key(parser, table, columns);
    }
    if is_word(parser, 0, "UNIQUE") && parser.peek_nth_token_ref(1).token == Token::LParen {
        return error_here(parser, "UNIQUE is not supported: say PRIMARY KEY (…) NOT ENFORCED");
    }
    let at = parser.peek_token_ref().span.start;
    let name = identifier(parser)?;
    if table.columns.iter().any(|column| column.name == name) {
        return super::query::error_at(at, &format!("the column '{name}' is there twice"));
    }
    let kind = if parser.parse_keyword(Keyword::AS) {
        ColumnDefinitionKind::Computed(parser.parse_expr()?)
    } else {
        let data_type = data_type(parser)?;
        if take_words(parser, &["METADATA"]) {
            let key = if take_words(parser, &["FROM"]) { Some(string(parser)?) } else { None };
            let is_virtual = take_words(parser, &["VIRTUAL"]);
            ColumnDefinitionKind::Metadata { data_type, key, is_virtual }
        } else {
            if is_word(parser, 0, "CONSTRAINT") {
                parser.advance_token();
                identifier(parser)?;
            }
            if take_words(parser, &["PRIMARY", "KEY"]) {
                primary_key(parser, table, vec![name.clone()])?;
            }
            ColumnDefinitionKind::Physical(data_type)
        }
    };
    let comment = comment(parser)?;
    table.columns.push(ColumnDefinition { name, kind, comment });
    Ok(())
}

fn primary_key(parser: &mut Parser<'_>, table: &mut CreateTable, columns: Vec<String>) -> Result<()> {
    if !take_words(parser, &["NOT", "ENFORCED"]) {
        return error_here(parser, "a PRIMARY KEY must be NOT ENFORCED: nothing checks what tables contain");
    }
    if !table.primary_key.is_empty() {
        return error_here(parser, "a table has at most one primary key");
    }
    table.primary_key = columns;
    Ok(())
}

fn like(parser: &mut Parser<'_>) -> Result<Like> {
    let table = name(parser)?;
    let mut found = Vec::new();
    if parser.consume_token(&Token::LParen) {
        const MODES: [(&str, LikeMode); 3] = [
            ("INCLUDING", LikeMode::Including),
            ("EXCLUDING", LikeMode::Excluding),
            ("OVERWRITING", LikeMode::Overwriting),
        ];
        const FEATURES: [(&str, LikeFeature); 8] = [
            ("ALL", LikeFeature::All),
            ("CONSTRAINTS", LikeFeature::Constraints),
            ("DISTRIBUTION", LikeFeature::Distribution),
            ("GENERATED", LikeFeature::Generated),
            ("METADATA", LikeFeature::Metadata),
            ("OPTIONS", LikeFeature::Options),
            ("PARTITIONS", LikeFeature::Partitions),
            ("WATERMARKS", LikeFeature::Watermarks),
        ];
        while let Some((_, mode)) = MODES.into_iter().find(|(word, _)| take_words(parser, &[word])) {
            let Some((_, feature)) = FEATURES.into_iter().find(|(word, _)| take_words(parser, &[word])) else {
                return parser.expected_ref("what LIKE takes over", parser.peek_token_ref());
            };
            found.push((feature, mode));
        }
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Like { table, options: found })
}
