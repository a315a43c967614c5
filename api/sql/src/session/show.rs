//! SHOW and DESCRIBE.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, visit_expressions_mut};
use flott_core::{Error, Result};

use super::Session;
use crate::catalog::{Column, ColumnKind, Relation, Table};
use crate::parse::{Name, Options, Show, ShowFilter};
use crate::types::Kind;

/// One column of texts.
pub(super) fn texts<T: AsRef<str>>(name: &str, rows: impl IntoIterator<Item = T>) -> Result<RecordBatch> {
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(rows));
    batch([(name, column)])
}

fn batch<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(columns).map_err(|error| Error::system(error.to_string()))
}

pub(super) fn show(session: &Session, show: &Show) -> Result<RecordBatch> {
    let catalog = &session.catalog;
    let (current, database) = catalog.current();
    match show {
        Show::Catalogs => texts("catalog name", catalog.catalog_names()),
        Show::CurrentCatalog => texts("current catalog name", [current]),
        Show::Databases => texts("database name", catalog.database_names(current)?),
        Show::CurrentDatabase => texts("current database name", [database]),
        Show::Tables(filter) => relations(session, filter, "table name", |_| true),
        Show::Views(filter) => {
            relations(session, filter, "view name", |relation| matches!(relation, Relation::View(_)))
        }
        Show::Functions { is_user_only, filter } => {
            let own = flott_sql_functions::all();
            let mut names: Vec<String> = catalog.function_names().map(str::to_owned).collect();
            if !is_user_only {
                names.extend(own.iter().map(|function| function.name().to_owned()));
            }
            names.retain(|name| passes(filter, name));
            names.sort();
            names.dedup();
            texts("function name", names)
        }
        Show::Columns(name, filter) => describe(session, name, filter),
        Show::CreateTable(name) => {
            let path = catalog.resolve(&name.parts)?;
            texts("result", [create_table(&path.to_string(), catalog.table(&path)?)])
        }
        Show::CreateView(name) => {
            let path = catalog.resolve(&name.parts)?;
            let Relation::View(view) = catalog.relation(&path)? else {
                return Err(Error::input(format!("'{path}' is a table: say SHOW CREATE TABLE")));
            };
            let (columns, _) = session.columns(name)?;
            let names: Vec<String> = columns.iter().map(|column| format!("  {}", quoted(&column.name))).collect();
            let query = &view.query;
            texts(
                "result",
                [format!("CREATE VIEW {} (\n{}\n)\nAS {query}\n", whole(&path.to_string()), names.join(",\n"))],
            )
        }
        Show::Jobs => Err(Error::input("SHOW JOBS is not supported here: `flott list` shows a cluster's jobs")),
        Show::Modules => texts("module name", ["core"]),
    }
}

fn relations(
    session: &Session,
    filter: &ShowFilter,
    column: &str,
    wanted: impl Fn(&Relation) -> bool,
) -> Result<RecordBatch> {
    let (current, database) = session.catalog.current();
    let from = filter.from.as_ref().map(|name| name.parts.as_slice());
    let (catalog, database) = match from {
        None => (current, database),
        Some([database]) => (current, database.as_str()),
        Some([catalog, database]) => (catalog.as_str(), database.as_str()),
        Some(parts) => return Err(Error::input(format!("'{}' is no database's name", parts.join(".")))),
    };
    let found = session.catalog.relations(catalog, database)?;
    // Tables of programs that have no name of their own are called so, as in Flink.
    let is_named = |name: &str| !(name.starts_with("*anonymous_") && name.ends_with('*'));
    let found = found.into_iter().filter(|(name, relation)| is_named(name) && wanted(relation) && passes(filter, name));
    texts(column, found.map(|(name, _)| name))
}

fn passes(filter: &ShowFilter, name: &str) -> bool {
    filter.like.as_deref().is_none_or(|pattern| is_like(name, pattern) != filter.is_negated)
}

/// LIKE, without escapes.
fn is_like(text: &str, pattern: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('%') => {
            let rest = &pattern[1..];
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_like(&text[at..], rest))
        }
        Some(wanted) => text.chars().next().is_some_and(|found| {
            (wanted == '_' || wanted == found) && is_like(&text[found.len_utf8()..], &pattern[wanted.len_utf8()..])
        }),
    }
}

/// `DESCRIBE t`: name, type, whether it may be null, keys, what else it is, the watermark.
pub(super) fn describe(session: &Session, name: &Name, filter: &ShowFilter) -> Result<RecordBatch> {
    let (columns, table) = session.columns(name)?;
    let table = table.as_deref();
    let shown: Vec<&Column> = columns.iter().filter(|column| passes(filter, &column.name)).collect();
    let each = |text: &dyn Fn(&Column) -> Option<String>| -> ArrayRef {
        Arc::new(shown.iter().map(|column| text(column)).collect::<StringArray>())
    };
    let nulls: BooleanArray = shown.iter().map(|column| Some(column.data_type.is_nullable)).collect();
    let mut rows = vec![
        ("name", each(&|column| Some(column.name.clone()))),
        ("type", each(&|column| Some(type_text(column, table)))),
        ("null", Arc::new(nulls)),
        ("key", each(&|column| key_of(table?, column))),
        ("extras", each(&extras)),
        ("watermark", each(&|column| watermark_of(table?, column))),
    ];
    if columns.iter().any(|column| column.comment.is_some()) {
        rows.push(("comment", each(&|column| column.comment.clone())));
    }
    batch(rows)
}

fn type_text(column: &Column, table: Option<&Table>) -> String {
    let text = column.data_type.clone().kind.nullable().to_string();
    let is_time =
        table.and_then(|table| table.watermark.as_ref()).is_some_and(|of| of.column == [column.name.as_str()]);
    match (&column.kind, &column.data_type.kind) {
        _ if is_time => format!("{text} *ROWTIME*"),
        (ColumnKind::Computed(expr), Kind::TimestampLtz(3)) if expr.to_string().eq_ignore_ascii_case("PROCTIME()") => {
            format!("{text} *PROCTIME*")
        }
        _ => text,
    }
}

fn key_of(table: &Table, column: &Column) -> Option<String> {
    table.primary_key.contains(&column.name).then(|| format!("PRI({})", table.primary_key.join(", ")))
}

fn extras(column: &Column) -> Option<String> {
    match &column.kind {
        ColumnKind::Physical => None,
        ColumnKind::Metadata { key, is_virtual } => {
            let from = if *key == column.name { String::new() } else { format!(" FROM '{key}'") };
            Some(format!("METADATA{from}{}", if *is_virtual { " VIRTUAL" } else { "" }))
        }
        ColumnKind::Computed(expr) => Some(format!("AS {}", with_quotes(expr))),
    }
}

fn watermark_of(table: &Table, column: &Column) -> Option<String> {
    let watermark = table.watermark.as_ref()?;
    (watermark.column == [column.name.as_str()]).then(|| with_quotes(&watermark.expr))
}

/// An expression with its names quoted, as Flink shows it.
fn with_quotes(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let _ = visit_expressions_mut(&mut expr, |part| {
        match part {
            Expr::Identifier(name) => name.quote_style = Some('`'),
            Expr::CompoundIdentifier(names) => names.iter_mut().for_each(|name| name.quote_style = Some('`')),
            // The unit of TIMESTAMPADD and TIMESTAMPDIFF only looks like a name. Arguments come before their call.
            Expr::Function(call) if call.name.to_string().to_uppercase().starts_with("TIMESTAMP") => {
                if let FunctionArguments::List(list) = &mut call.args
                    && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(unit)))) =
                        list.args.first_mut()
                {
                    unit.quote_style = None;
                }
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A path, each part quoted.
fn whole(path: &str) -> String {
    path.splitn(3, '.').map(quoted).collect::<Vec<_>>().join(".")
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn create_table(path: &str, table: &Table) -> String {
    let mut parts: Vec<String> = table.columns.iter().map(definition).collect();
    if let Some(watermark) = &table.watermark {
        let column: Vec<String> = watermark.column.iter().map(|part| quoted(part)).collect();
        parts.push(format!("WATERMARK FOR {} AS {}", column.join("."), with_quotes(&watermark.expr)));
    }
    let names = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    if !table.primary_key.is_empty() {
        let name = quoted(&format!("PK_{}", table.primary_key.join("_")));
        parts.push(format!("CONSTRAINT {name} PRIMARY KEY ({}) NOT ENFORCED", names(&table.primary_key)));
    }
    let mut out = format!("CREATE TABLE {} (\n  {}\n)\n", whole(path), parts.join(",\n  "));
    if let Some(comment) = &table.comment {
        let _ = writeln!(out, "COMMENT {}", text(comment));
    }
    if !table.partition_keys.is_empty() {
        let _ = writeln!(out, "PARTITIONED BY ({})", names(&table.partition_keys));
    }
    out + &with(&table.options)
}

fn with(options: &Options) -> String {
    let pairs: Vec<String> =
        options.iter().map(|(key, value)| format!("  {} = {}", text(key), shown(key, value))).collect();
    format!("WITH (\n{}\n)\n", pairs.join(",\n"))
}

/// A value, unless its key says that it is secret.
fn shown(key: &str, value: &str) -> String {
    const SECRETS: [&str; 8] =
        ["password", "secret", "token", "access-key", "access.key", "credential", "apikey", "api-key"];
    let key = key.to_lowercase();
    if SECRETS.iter().any(|secret| key.contains(secret)) { "'******'".to_owned() } else { text(value) }
}

fn definition(column: &Column) -> String {
    let name = quoted(&column.name);
    let body = match &column.kind {
        ColumnKind::Physical => format!("{:#}", column.data_type),
        ColumnKind::Computed(expr) => format!("AS {}", with_quotes(expr)),
        ColumnKind::Metadata { .. } => format!("{:#} {}", column.data_type, extras(column).unwrap_or_default()),
    };
    let comment = column.comment.as_ref().map(|comment| format!(" COMMENT {}", text(comment)));
    format!("{name} {body}{}", comment.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::parse::FlinkDialect;

    #[test]
    fn names_are_quoted_and_units_are_not() {
        let shown = |text: &str| {
            let mut parser = Parser::new(&FlinkDialect).try_with_sql(text).expect("tokens");
            with_quotes(&parser.parse_expr().expect("an expression"))
        };
        assert_eq!(shown("ts - INTERVAL '5' SECOND"), "`ts` - INTERVAL '5' SECOND");
        assert_eq!(shown("UPPER(r.a)"), "UPPER(`r`.`a`)");
        assert_eq!(shown("TIMESTAMPADD(DAY, n, ts)"), "TIMESTAMPADD(DAY, `n`, `ts`)");
    }

    #[test]
    fn like_has_two_wildcards() {
        assert!(
            is_like("orders", "or%") && is_like("orders", "%") && is_like("orders", "%d_rs") && is_like("äb", "_b")
        );
        assert!(!is_like("orders", "or") && !is_like("orders", "_rder") && is_like("", "%"));
    }
}
