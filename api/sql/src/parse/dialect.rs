//! What of Flink's expressions and queries `sqlparser` does not know by itself.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{json, query};

/// Flink's SQL.
///
/// Where `sqlparser` has no syntax tree for something of Flink's, it becomes a call of a function: `MAP[k, v]` of `MAP`,
/// `TABLE t` (an argument of a table function) of `TABLE`, `x IS JSON` of `IS_JSON`, and so on.
#[derive(Debug)]
pub struct FlinkDialect;

impl Dialect for FlinkDialect {
    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_' || c == '$'
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    fn supports_match_recognize(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let [Token::Word(word), next] = parser.peek_tokens_ref().map(|token| &token.token) else { return None };
        if word.quote_style.is_some() {
            return None;
        }
        match (word.value.to_uppercase().as_str(), next) {
            (name @ ("CAST" | "TRY_CAST"), Token::LParen) => Some(query::cast(parser, name == "TRY_CAST")),
            ("TABLE", Token::Word(_)) => Some(query::table_argument(parser)),
            ("MAP", Token::LBracket) => Some(query::map(parser)),
            ("TRIM", Token::LParen) if query::is_bare_trim(parser) => Some(query::bare_trim(parser)),
            (name, Token::LParen) => json::call(parser, name),
            _ => None,
        }
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        query::infix(parser, expr)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        // What Flink does not have as an operator ends an expression: `OVERLAPS` is one, `XOR` a name.
        match &parser.peek_token_ref().token {
            Token::Word(word)
                if matches!(word.keyword, Keyword::XOR | Keyword::RLIKE | Keyword::REGEXP | Keyword::ILIKE) =>
            {
                Some(Ok(self.prec_unknown()))
            }
            // `x NOT BETWEEN SYMMETRIC …` and the like bind as they do without SYMMETRIC.
            Token::Word(word) if word.keyword == Keyword::BETWEEN => Some(Ok(self.prec_value(Precedence::Between))),
            _ => None,
        }
    }
}
