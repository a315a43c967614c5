//! Statements, but for those of CREATE TABLE.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use flott_sql_runtime::spec::ConflictStrategy;

use super::ddl;
use super::query::{error_here, is_word, take_words};
use super::statement::{
    AlterAction, AlterTable, CreateFunction, CreateSpace, CreateView, Drop, ExplainDetail, Insert, Name, Object,
    Options, Show, ShowFilter, Statement,
};

type Result<T> = std::result::Result<T, ParserError>;

/// Statements that Flink has and we do not.
const REFUSED: [(&[&str], &str); 22] = [
    (
        &["ADD", "JAR"],
        "functions and connectors are written in Rust, and registered by the program that runs the script",
    ),
    (&["REMOVE", "JAR"], "there are no JARs"),
    (&["SHOW", "JARS"], "there are no JARs"),
    (&["SHOW", "PARTITIONS"], "SELECT DISTINCT of the columns that the table is PARTITIONED BY shows them"),
    (&["SHOW", "CREATE", "CATALOG"], "all catalogs are in memory, without options"),
    (&["LOAD", "MODULE"], "all built-in functions are always there"),
    (&["UNLOAD", "MODULE"], "all built-in functions are always there"),
    (&["USE", "MODULES"], "all built-in functions are always there"),
    (&["COMPILE", "PLAN"], "`flott sql` compiles the script by itself"),
    (&["EXECUTE", "PLAN"], "`flott sql` compiles the script by itself"),
    (&["COMPILE", "AND", "EXECUTE"], "`flott sql` compiles the script by itself"),
    (&["ANALYZE", "TABLE"], "plans do not depend on statistics"),
    (&["STOP", "JOB"], "use `flott stop`"),
    (&["UPDATE"], "tables change by INSERT INTO"),
    (&["DELETE"], "tables change by INSERT INTO"),
    (&["TRUNCATE"], "tables change by INSERT INTO"),
    (&["CALL"], "there are no procedures"),
    (&["CREATE", "MODEL"], "there are no models"),
    (&["CREATE", "MATERIALIZED"], "use CREATE TABLE and INSERT INTO"),
    (&["ALTER", "DATABASE"], "drop it and create it anew"),
    (&["ALTER", "CATALOG"], "drop it and create it anew"),
    (&["ALTER", "FUNCTION"], "drop it and create it anew"),
];

/// What statements begin with.
const BEGINNINGS: [&str; 20] = [
    "SELECT", "WITH", "VALUES", "INSERT", "CREATE", "DROP", "ALTER", "USE", "SET", "RESET", "SHOW", "DESCRIBE", "DESC",
    "EXPLAIN", "EXECUTE", "BEGIN", "TABLE", "ADD", "LOAD", "CALL",
];

pub(super) fn statement(parser: &mut Parser<'_>) -> Result<Statement> {
    for (words, reason) in REFUSED {
        if words.iter().enumerate().all(|(ahead, word)| is_word(parser, ahead, word)) {
            return error_here(parser, &format!("{} is not supported: {reason}", words.join(" ")));
        }
    }
    let Token::Word(first) = parser.peek_token_ref().token.clone() else {
        return match parser.peek_token_ref().token {
            Token::LParen => Ok(Statement::Query(parser.parse_query()?)),
            _ => parser.expected_ref("a statement", parser.peek_token_ref()),
        };
    };
    match first.value.to_uppercase().as_str() {
        "SELECT" | "WITH" | "VALUES" | "TABLE" => Ok(Statement::Query(parser.parse_query()?)),
        "INSERT" => insert(parser).map(Statement::Insert),
        "CREATE" => create(parser),
        "DROP" => drop_object(parser),
        "ALTER" => alter(parser),
        "USE" => use_space(parser),
        "SET" => set(parser),
        "RESET" => {
            parser.advance_token();
            Ok(Statement::Reset(if at_end(parser) { None } else { Some(key(parser)?) }))
        }
        "SHOW" => show(parser),
        "DESCRIBE" | "DESC" => {
            parser.advance_token();
            take_words(parser, &["EXTENDED"]);
            Ok(Statement::Describe(name(parser)?))
        }
        "EXPLAIN" => explain(parser),
        "EXECUTE" if is_word(parser, 1, "STATEMENT") => statement_set(parser),
        "EXECUTE" => {
            // `EXECUTE INSERT …` is the same as `INSERT …`.
            parser.advance_token();
            statement(parser)
        }
        "BEGIN" => statement_set(parser),
        word => {
            let near = super::super::catalog::nearest(word, BEGINNINGS);
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            error_here(parser, &format!("'{}' begins no statement{hint}", first.value))
        }
    }
}

fn at_end(parser: &Parser<'_>) -> bool {
    parser.peek_token_ref().token == Token::EOF
}

pub(super) fn name(parser: &mut Parser<'_>) -> Result<Name> {
    let mut found = Name::new(Vec::<String>::new());
    loop {
        let token = parser.next_token();
        let Token::Word(word) = token.token else { return parser.expected("a name", token) };
        if found.parts.is_empty() {
            found.start = token.span.start;
        }
        found.end = token.span.end;
        found.parts.push(word.value);
        if !parser.consume_token(&Token::Period) {
            break;
        }
    }
    if found.parts.len() > 3 {
        return super::query::error_at(found.start, "a name has at most three parts: catalog, database, object");
    }
    Ok(found)
}

pub(super) fn identifier(parser: &mut Parser<'_>) -> Result<String> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        _ => parser.expected("a name", token),
    }
}

pub(super) fn string(parser: &mut Parser<'_>) -> Result<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) => Ok(text),
        _ => parser.expected("a text in single quotes", token),
    }
}

pub(super) fn in_parentheses<T>(
    parser: &mut Parser<'_>,
    item: impl FnMut(&mut Parser<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    parser.expect_token(&Token::LParen)?;
    let items = parser.parse_comma_separated(item)?;
    parser.expect_token(&Token::RParen)?;
    Ok(items)
}

/// `('key' = 'value', …)`.
pub(super) fn options(parser: &mut Parser<'_>) -> Result<Options> {
    parser.expect_token(&Token::LParen)?;
    let mut found = Options::new();
    while parser.peek_token_ref().token != Token::RParen {
        let at = parser.peek_token_ref().span.start;
        let key = string(parser)?;
        parser.expect_token(&Token::Eq)?;
        let value = string(parser)?;
        if found.insert(key.clone(), value).is_some() {
            return super::query::error_at(at, &format!("the option '{key}' is there twice"));
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(found)
}

pub(super) fn comment(parser: &mut Parser<'_>) -> Result<Option<String>> {
    if take_words(parser, &["COMMENT"]) { string(parser).map(Some) } else { Ok(None) }
}

pub(super) fn if_not_exists(parser: &mut Parser<'_>) -> bool {
    parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS])
}

fn if_exists(parser: &mut Parser<'_>) -> bool {
    parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS])
}

pub(super) fn insert(parser: &mut Parser<'_>) -> Result<Insert> {
    parser.expect_keyword_is(Keyword::INSERT)?;
    let is_overwrite = parser.parse_keyword(Keyword::OVERWRITE);
    if !is_overwrite {
        parser.expect_keyword_is(Keyword::INTO)?;
    }
    take_words(parser, &["TABLE"]);
    let table = name(parser)?;
    let mut partition = Vec::new();
    if parser.parse_keyword(Keyword::PARTITION) {
        partition = in_parentheses(parser, |parser| {
            let column = identifier(parser)?;
            parser.expect_token(&Token::Eq)?;
            Ok((column, parser.parse_expr()?))
        })?;
    }
    let mut columns = Vec::new();
    let is_query = ["SELECT", "WITH", "VALUES"].iter().any(|word| is_word(parser, 1, word));
    if parser.peek_token_ref().token == Token::LParen
        && !is_query
        && parser.peek_nth_token_ref(1).token != Token::LParen
    {
        columns = in_parentheses(parser, identifier)?;
    }
    let query = parser.parse_query()?;
    let on_conflict = if take_words(parser, &["ON", "CONFLICT", "DO"]) { Some(conflict(parser)?) } else { None };
    Ok(Insert { table, hints: Options::new(), partition, columns, is_overwrite, query, on_conflict })
}

/// `DEDUPLICATE`, `ERROR`, `NOTHING`.
fn conflict(parser: &mut Parser<'_>) -> Result<ConflictStrategy> {
    const STRATEGIES: [(&str, ConflictStrategy); 3] = [
        ("DEDUPLICATE", ConflictStrategy::Deduplicate),
        ("ERROR", ConflictStrategy::Error),
        ("NOTHING", ConflictStrategy::Nothing),
    ];
    match STRATEGIES.iter().find(|(word, _)| take_words(parser, &[word])) {
        Some((_, strategy)) => Ok(*strategy),
        None => parser.expected_ref("DEDUPLICATE, ERROR or NOTHING", parser.peek_token_ref()),
    }
}

/// `EXECUTE STATEMENT SET BEGIN …; END`, `BEGIN STATEMENT SET; …; END`.
fn statement_set(parser: &mut Parser<'_>) -> Result<Statement> {
    take_words(parser, &["EXECUTE"]);
    if take_words(parser, &["BEGIN", "STATEMENT", "SET"]) {
        parser.expect_token(&Token::SemiColon)?;
    } else if !take_words(parser, &["STATEMENT", "SET", "BEGIN"]) {
        return parser.expected_ref("STATEMENT SET BEGIN", parser.peek_token_ref());
    }
    let mut inserts = Vec::new();
    while !take_words(parser, &["END"]) {
        if !is_word(parser, 0, "INSERT") {
            return parser.expected_ref("INSERT or END in a statement set", parser.peek_token_ref());
        }
        inserts.push(insert(parser)?);
        parser.expect_token(&Token::SemiColon)?;
    }
    if inserts.is_empty() {
        return error_here(parser, "a statement set has at least one INSERT");
    }
    Ok(Statement::StatementSet(inserts))
}

fn create(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    if take_words(parser, &["OR", "REPLACE"]) {
        return error_here(parser, "CREATE OR REPLACE is not supported: DROP it first");
    }
    let is_temporary = take_words(parser, &["TEMPORARY"]);
    let is_system = is_temporary && take_words(parser, &["SYSTEM"]);
    if take_words(parser, &["FUNCTION"]) {
        return create_function(parser, is_temporary, is_system).map(Statement::CreateFunction);
    }
    if is_system {
        return parser.expected_ref("FUNCTION", parser.peek_token_ref());
    }
    if take_words(parser, &["TABLE"]) {
        return ddl::create_table(parser, is_temporary).map(|table| Statement::CreateTable(Box::new(table)));
    }
    if take_words(parser, &["VIEW"]) {
        let if_not_exists = if_not_exists(parser);
        let name = name(parser)?;
        let mut columns = Vec::new();
        if parser.peek_token_ref().token == Token::LParen {
            columns = in_parentheses(parser, |parser| {
                let column = identifier(parser)?;
                comment(parser)?;
                Ok(column)
            })?;
        }
        let comment = comment(parser)?;
        parser.expect_keyword_is(Keyword::AS)?;
        let query = parser.parse_query()?;
        let view = CreateView { name, is_temporary, if_not_exists, is_alter: false, columns, comment, query };
        return Ok(Statement::CreateView(view));
    }
    let is_catalog = take_words(parser, &["CATALOG"]);
    if is_temporary || !(is_catalog || take_words(parser, &["DATABASE"])) {
        return parser.expected_ref("TABLE, VIEW, FUNCTION, CATALOG or DATABASE", parser.peek_token_ref());
    }
    let (if_not_exists, name, comment) = (if_not_exists(parser), name(parser)?, comment(parser)?);
    let options = if take_words(parser, &["WITH"]) { options(parser)? } else { Options::new() };
    let space = CreateSpace { name, if_not_exists, comment, options };
    Ok(if is_catalog { Statement::CreateCatalog(space) } else { Statement::CreateDatabase(space) })
}

fn create_function(parser: &mut Parser<'_>, is_temporary: bool, is_system: bool) -> Result<CreateFunction> {
    let (if_not_exists, name) = (if_not_exists(parser), name(parser)?);
    parser.expect_keyword_is(Keyword::AS)?;
    let identifier = string(parser)?;
    let language =
        if take_words(parser, &["LANGUAGE"]) { Some(self::identifier(parser)?.to_uppercase()) } else { None };
    if take_words(parser, &["USING"]) {
        return error_here(parser, "CREATE FUNCTION … USING JAR is not supported: functions are written in Rust");
    }
    Ok(CreateFunction { name, is_temporary, is_system, if_not_exists, identifier, language })
}

fn drop_object(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    let is_temporary = take_words(parser, &["TEMPORARY"]);
    take_words(parser, &["SYSTEM"]);
    const OBJECTS: [(&str, Object); 5] = [
        ("TABLE", Object::Table),
        ("VIEW", Object::View),
        ("FUNCTION", Object::Function),
        ("CATALOG", Object::Catalog),
        ("DATABASE", Object::Database),
    ];
    let Some((_, object)) = OBJECTS.into_iter().find(|(word, _)| take_words(parser, &[word])) else {
        return parser.expected_ref("TABLE, VIEW, FUNCTION, CATALOG or DATABASE", parser.peek_token_ref());
    };
    let (if_exists, name) = (if_exists(parser), name(parser)?);
    let is_cascade = take_words(parser, &["CASCADE"]);
    if !is_cascade {
        take_words(parser, &["RESTRICT"]);
    }
    Ok(Statement::Drop(Drop { object, name, is_temporary, if_exists, is_cascade }))
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    let is_view = take_words(parser, &["VIEW"]);
    if !is_view && !take_words(parser, &["TABLE"]) {
        return parser.expected_ref("TABLE or VIEW", parser.peek_token_ref());
    }
    let (if_exists, name) = (if_exists(parser), name(parser)?);
    let action = if take_words(parser, &["RENAME", "TO"]) {
        AlterAction::Rename(self::name(parser)?)
    } else if !is_view && take_words(parser, &["SET"]) {
        AlterAction::Set(options(parser)?)
    } else if !is_view && take_words(parser, &["RESET"]) {
        AlterAction::Reset(in_parentheses(parser, string)?)
    } else if is_view && parser.parse_keyword(Keyword::AS) {
        let query = parser.parse_query()?;
        let (columns, comment) = (vec![], None);
        let (is_temporary, if_not_exists) = (false, false);
        let view = CreateView { name, is_temporary, if_not_exists, is_alter: true, columns, comment, query };
        return Ok(Statement::CreateView(view));
    } else if is_view {
        return parser.expected_ref("RENAME TO or AS", parser.peek_token_ref());
    } else if let Some(action) = super::alter::action(parser, &name)? {
        action
    } else {
        return parser.expected_ref("RENAME, SET, RESET, ADD, MODIFY or DROP", parser.peek_token_ref());
    };
    Ok(Statement::AlterTable(AlterTable { name, is_view, if_exists, action }))
}

fn use_space(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    if take_words(parser, &["CATALOG"]) {
        return name(parser).map(Statement::UseCatalog);
    }
    name(parser).map(Statement::UseDatabase)
}

/// `'table.exec.state.ttl'`, or the same without quotes.
fn key(parser: &mut Parser<'_>) -> Result<String> {
    let mut found = String::new();
    loop {
        match parser.next_token() {
            token if matches!(token.token, Token::SingleQuotedString(_)) && found.is_empty() => {
                let Token::SingleQuotedString(text) = token.token else { unreachable!("it was just matched") };
                return Ok(text);
            }
            token => match token.token {
                Token::Word(word) => found.push_str(&word.value),
                _ => return parser.expected("a key", token),
            },
        }
        match parser.peek_token_ref().token {
            Token::Period => found.push('.'),
            Token::Minus => found.push('-'),
            _ => return Ok(found),
        }
        parser.advance_token();
    }
}

fn set(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    if at_end(parser) {
        return Ok(Statement::Set(None));
    }
    let key = key(parser)?;
    parser.expect_token(&Token::Eq)?;
    // Older clients take the value without quotes.
    let mut value = String::new();
    while !at_end(parser) {
        match parser.next_token().token {
            Token::SingleQuotedString(text) => value.push_str(&text),
            token => value.push_str(&token.to_string()),
        }
    }
    Ok(Statement::Set(Some((key, value))))
}

fn show(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    let show = if take_words(parser, &["CATALOGS"]) {
        Show::Catalogs
    } else if take_words(parser, &["CURRENT", "CATALOG"]) {
        Show::CurrentCatalog
    } else if take_words(parser, &["DATABASES"]) {
        Show::Databases
    } else if take_words(parser, &["CURRENT", "DATABASE"]) {
        Show::CurrentDatabase
    } else if take_words(parser, &["TABLES"]) {
        Show::Tables(filter(parser)?)
    } else if take_words(parser, &["VIEWS"]) {
        Show::Views(filter(parser)?)
    } else if take_words(parser, &["USER", "FUNCTIONS"]) {
        Show::Functions { is_user_only: true, filter: filter(parser)? }
    } else if take_words(parser, &["FUNCTIONS"]) {
        Show::Functions { is_user_only: false, filter: filter(parser)? }
    } else if take_words(parser, &["COLUMNS"]) {
        let mut filter = filter(parser)?;
        match filter.from.take() {
            Some(table) => Show::Columns(table, filter),
            None => return parser.expected_ref("FROM and a table", parser.peek_token_ref()),
        }
    } else if take_words(parser, &["CREATE", "TABLE"]) {
        Show::CreateTable(name(parser)?)
    } else if take_words(parser, &["CREATE", "VIEW"]) {
        Show::CreateView(name(parser)?)
    } else if take_words(parser, &["JOBS"]) {
        Show::Jobs
    } else if take_words(parser, &["FULL", "MODULES"]) || take_words(parser, &["MODULES"]) {
        Show::Modules
    } else {
        let known =
            "CATALOGS, DATABASES, TABLES, VIEWS, FUNCTIONS, COLUMNS, CREATE TABLE, CREATE VIEW, JOBS or MODULES";
        return parser.expected_ref(known, parser.peek_token_ref());
    };
    Ok(Statement::Show(show))
}

fn filter(parser: &mut Parser<'_>) -> Result<ShowFilter> {
    let mut found = ShowFilter::default();
    if take_words(parser, &["FROM"]) || take_words(parser, &["IN"]) {
        found.from = Some(name(parser)?);
    }
    found.is_negated = take_words(parser, &["NOT"]);
    if take_words(parser, &["LIKE"]) {
        found.like = Some(string(parser)?);
    } else if found.is_negated {
        return parser.expected_ref("LIKE", parser.peek_token_ref());
    }
    Ok(found)
}

fn explain(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    let mut details = Vec::new();
    if !take_words(parser, &["PLAN", "FOR"]) {
        const DETAILS: [(&str, ExplainDetail); 4] = [
            ("ESTIMATED_COST", ExplainDetail::EstimatedCost),
            ("CHANGELOG_MODE", ExplainDetail::ChangelogMode),
            ("JSON_EXECUTION_PLAN", ExplainDetail::JsonExecutionPlan),
            ("PLAN_ADVICE", ExplainDetail::PlanAdvice),
        ];
        while let Some((_, detail)) = DETAILS.into_iter().find(|(word, _)| take_words(parser, &[word])) {
            details.push(detail);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
    }
    let is_set = is_word(parser, 0, "STATEMENT") || is_word(parser, 0, "EXECUTE");
    let statement = match is_set {
        true => statement_set(parser)?,
        false if is_word(parser, 0, "INSERT") => Statement::Insert(insert(parser)?),
        false => Statement::Query(parser.parse_query()?),
    };
    Ok(Statement::Explain { details, statement: Box::new(statement) })
}
