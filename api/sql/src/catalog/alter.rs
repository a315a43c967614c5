//! From ALTER TABLE to a table.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, visit_expressions};
use flott_core::{Error, Result};

use super::define::complete;
use super::{Column, ColumnKind, Table, suggestion};
use crate::parse::{AlterAction, Place, Redefinition};
use crate::types::SqlType;

/// The table that is left of `table`, whose name is for messages. `type_of` is as for [`super::define::define`].
///
/// # Errors
/// What is changed is not there, is there already, or is needed by something else of the table.
pub fn alter(
    mut table: Table,
    name: &str,
    action: &AlterAction,
    type_of: impl Fn(&Expr, &[Column]) -> Result<SqlType>,
) -> Result<Table> {
    match action {
        AlterAction::Redefine(said) => return redefine(table, name, said, type_of),
        AlterAction::DropColumns(columns) => {
            for column in columns {
                table.columns.remove(place_of(&table, name, column)?);
            }
            for column in columns {
                // What goes along needs nothing any more.
                needed(&table, name, column, true)?;
            }
            if table.columns.is_empty() {
                return Err(Error::input(format!("'{name}' would have no columns")));
            }
        }
        AlterAction::RenameColumn { from, to } => {
            let at = place_of(&table, name, from)?;
            if table.column(to).is_some() {
                return Err(Error::input(format!("'{name}' has a column '{to}' already")));
            }
            needed(&table, name, from, false)?;
            table.columns[at].name.clone_from(to);
            for key in table.primary_key.iter_mut().filter(|key| *key == from) {
                key.clone_from(to);
            }
        }
        AlterAction::DropPrimaryKey if table.primary_key.is_empty() => return none(name, "primary key"),
        AlterAction::DropPrimaryKey => table.primary_key.clear(),
        AlterAction::DropWatermark if table.watermark.is_none() => return none(name, "watermark"),
        AlterAction::DropWatermark => table.watermark = None,
        AlterAction::Rename(_) | AlterAction::Set(_) | AlterAction::Reset(_) => {}
    }
    Ok(table)
}

fn redefine(
    mut table: Table,
    name: &str,
    said: &Redefinition,
    type_of: impl Fn(&Expr, &[Column]) -> Result<SqlType>,
) -> Result<Table> {
    let elements = &said.elements;
    let parts = [
        ("primary key", !elements.primary_key.is_empty(), !table.primary_key.is_empty()),
        ("watermark", elements.watermark.is_some(), table.watermark.is_some()),
    ];
    for (what, is_said, is_there) in parts {
        match is_said {
            true if said.is_modify && !is_there => return none(name, what),
            true if !said.is_modify && is_there => {
                return Err(Error::input(format!("'{name}' has a {what} already: MODIFY or DROP it")));
            }
            _ => {}
        }
    }
    let mut order: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    for (column, place) in elements.columns.iter().zip(&said.places) {
        if said.is_modify {
            table.columns.remove(place_of(&table, name, &column.name)?);
        } else if table.column(&column.name).is_some() {
            return Err(Error::input(format!("'{name}' has a column '{}' already: MODIFY it", column.name)));
        } else {
            order.push(column.name.clone());
        }
        let Some(place) = place else { continue };
        order.retain(|other| *other != column.name);
        let at = match place {
            Place::First => 0,
            Place::After(other) => match order.iter().position(|name| name == other) {
                Some(at) => at + 1,
                None => return Err(no_column(name, other, &order)),
            },
        };
        order.insert(at, column.name.clone());
    }
    let mut table = complete(elements, table, type_of)?;
    table.columns.sort_by_key(|column| order.iter().position(|name| *name == column.name));
    Ok(table)
}

fn none<T>(name: &str, what: &str) -> Result<T> {
    Err(Error::input(format!("'{name}' has no {what}")))
}

fn no_column(name: &str, column: &str, known: &[String]) -> Error {
    Error::input(format!("'{name}' has no column '{column}'{}", suggestion(column, known)))
}

fn place_of(table: &Table, name: &str, column: &str) -> Result<usize> {
    table.columns.iter().position(|found| found.name == column).ok_or_else(|| {
        let known: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        no_column(name, column, &known)
    })
}

/// That nothing of a table refers to a column by its name. A key may, if it can follow.
fn needed(table: &Table, name: &str, column: &str, with_key: bool) -> Result<()> {
    let computed = table.columns.iter().find(|other| match &other.kind {
        ColumnKind::Computed(expr) => names(expr, column),
        _ => false,
    });
    let watermark = table.watermark.as_ref().filter(|of| of.column[0] == column || names(&of.expr, column));
    let by = match (computed, watermark) {
        (Some(other), _) => format!("the computed column '{}'", other.name),
        (_, Some(_)) => "the watermark".to_owned(),
        _ if with_key && table.primary_key.iter().any(|key| key == column) => "the primary key".to_owned(),
        _ if table.partition_keys.iter().any(|key| key == column) => "PARTITIONED BY".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::input(format!("the column '{column}' of '{name}' is needed by {by}")))
}

/// Whether an expression names a column.
fn names(expr: &Expr, column: &str) -> bool {
    let found = visit_expressions(expr, |part| match part {
        Expr::Identifier(name) if name.value == column => ControlFlow::Break(()),
        Expr::CompoundIdentifier(names) if names[0].value == column => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

#[cfg(test)]
mod tests {
    use crate::parse::parse_script;
    use crate::session::Session;

    #[test]
    fn what_is_needed_stays() {
        let mut session = Session::default();
        let mut run = |sql: &str| {
            let statements = parse_script(sql).expect("statements");
            statements.iter().try_for_each(|statement| session.execute(statement).map(|_| ()))
        };
        run("CREATE TABLE t (id INT, n INT, twice AS n * 2, dt STRING, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts) PARTITIONED BY (dt) WITH ('connector' = 'blackhole')")
            .expect("created");
        for (change, message) in [
            ("DROP n", "the column 'n' of 't' is needed by the computed column 'twice'"),
            ("RENAME n TO m", "the column 'n' of 't' is needed by the computed column 'twice'"),
            ("DROP id", "the column 'id' of 't' is needed by the primary key"),
            ("DROP dt", "the column 'dt' of 't' is needed by PARTITIONED BY"),
            ("DROP ts", "the column 'ts' of 't' is needed by the watermark"),
            ("ADD n INT", "'t' has a column 'n' already: MODIFY it"),
            ("MODIFY nn INT", "'t' has no column 'nn'; did you mean 'n'?"),
            ("ADD PRIMARY KEY (n) NOT ENFORCED", "'t' has a primary key already: MODIFY or DROP it"),
        ] {
            let error = run(&format!("ALTER TABLE t {change}")).expect_err("it is refused");
            assert_eq!(error.message, message, "{change}");
        }
        for change in ["DROP (n, twice)", "RENAME id TO k", "DROP PRIMARY KEY", "DROP k", "DROP WATERMARK", "DROP ts"] {
            run(&format!("ALTER TABLE t {change}")).unwrap_or_else(|error| panic!("{change}: {}", error.message));
        }
    }
}
