//! From CREATE TABLE to a table.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast::Expr;
use flott_core::{Error, Result};

use super::{Column, ColumnKind, Table, Watermark, suggestion};
use crate::parse::{ColumnDefinition, ColumnDefinitionKind, CreateTable, Like, LikeFeature, LikeMode};
use crate::types::{Kind, SqlType};

/// The table that a statement defines. `like` is the one that LIKE names; `type_of` says of which type an expression over the
/// columns that are no computed ones is.
///
/// # Errors
/// Columns that keys, partitions or the watermark name are not there, or of a type that cannot be that.
pub fn define(
    create: &CreateTable,
    like: Option<&Table>,
    type_of: impl Fn(&Expr, &[Column]) -> Result<SqlType>,
) -> Result<Table> {
    let base = match (&create.like, like) {
        (Some(how), Some(like)) => Merge { create, how }.base(like)?,
        _ => Table::default(),
    };
    complete(create, base, type_of)
}

/// The table that `CREATE TABLE … AS` defines: what the statement says, and the columns of the query, which come last.
///
/// # Errors
/// As for [`define`]; or a column is in both.
pub fn define_as(
    create: &CreateTable,
    queried: &[Column],
    type_of: impl Fn(&Expr, &[Column]) -> Result<SqlType>,
) -> Result<Table> {
    let mut create = create.clone();
    let physical = |column: &ColumnDefinition| matches!(column.kind, ColumnDefinitionKind::Physical(_));
    if let Some(column) = create.columns.iter().find(|column| physical(column)) {
        let is_queried = queried.iter().any(|queried| queried.name == column.name);
        let why = if is_queried { "comes from the query" } else { "is not in the query" };
        return Err(Error::input(format!(
            "the column '{}' of '{}' {why}: CREATE TABLE … AS takes its physical columns from the query, and a CAST there changes types",
            column.name, create.name
        )));
    }
    create.columns.extend(queried.iter().map(|column| ColumnDefinition {
        name: column.name.clone(),
        kind: ColumnDefinitionKind::Physical(column.data_type.clone()),
        comment: None,
    }));
    complete(&create, Table::default(), type_of)
}

/// `table` with what a statement says of it.
pub(super) fn complete(
    create: &CreateTable,
    mut table: Table,
    type_of: impl Fn(&Expr, &[Column]) -> Result<SqlType>,
) -> Result<Table> {
    for column in &create.columns {
        add_column(&mut table, column, create)?;
    }
    if let Some(watermark) = &create.watermark {
        table.watermark = Some(Watermark { column: watermark.column.clone(), expr: watermark.expr.clone() });
    }
    if !create.primary_key.is_empty() {
        table.primary_key.clone_from(&create.primary_key);
    }
    if !create.partition_keys.is_empty() {
        table.partition_keys.clone_from(&create.partition_keys);
    }
    table.options.extend(create.options.clone());
    if create.comment.is_some() {
        table.comment.clone_from(&create.comment);
    }
    let name = create.name.to_string();
    type_computed_columns(&mut table, &name, &type_of)?;
    check(&mut table, &name)?;
    if let Some(watermark) = table.watermark.as_ref().filter(|watermark| !watermark.is_of_source()) {
        // Its type is of no interest: this finds mistakes where they are made.
        type_of(&watermark.expr, &table.columns)
            .map_err(|error| Error { message: format!("the watermark of '{name}': {}", error.message), ..error })?;
    }
    Ok(table)
}

fn add_column(table: &mut Table, column: &ColumnDefinition, create: &CreateTable) -> Result<()> {
    let (data_type, kind) = match &column.kind {
        ColumnDefinitionKind::Physical(data_type) => (data_type.clone(), ColumnKind::Physical),
        ColumnDefinitionKind::Metadata { data_type, key, is_virtual } => {
            let key = key.clone().unwrap_or_else(|| column.name.clone());
            (data_type.clone(), ColumnKind::Metadata { key, is_virtual: *is_virtual })
        }
        // Its type is found out when all columns that it can name are there.
        ColumnDefinitionKind::Computed(expr) => (Kind::string().nullable(), ColumnKind::Computed(expr.clone())),
    };
    let new = Column { name: column.name.clone(), data_type, kind, comment: column.comment.clone() };
    let Some(old) = table.columns.iter_mut().find(|old| old.name == new.name) else {
        table.columns.push(new);
        return Ok(());
    };
    let feature = match (&old.kind, &new.kind) {
        (ColumnKind::Computed(_), ColumnKind::Computed(_)) => LikeFeature::Generated,
        (ColumnKind::Metadata { .. }, ColumnKind::Metadata { .. }) => LikeFeature::Metadata,
        _ => return Err(Error::input(format!("the column '{}' of '{}' is in both tables", new.name, create.name))),
    };
    match create.like.as_ref().map(|like| mode(like, feature)) {
        Some(LikeMode::Overwriting) => {
            *old = new;
            Ok(())
        }
        _ => Err(Error::input(format!(
            "the column '{}' of '{}' is in both tables: OVERWRITING {} would take the new one",
            new.name,
            create.name,
            if feature == LikeFeature::Generated { "GENERATED" } else { "METADATA" }
        ))),
    }
}

/// How a feature is taken over: what is said of it, or of all, or else Flink's default.
fn mode(like: &Like, feature: LikeFeature) -> LikeMode {
    let said = |wanted: LikeFeature| like.options.iter().rev().find(|(feature, _)| *feature == wanted);
    match said(feature).or_else(|| said(LikeFeature::All)) {
        // INCLUDING ALL includes options without a conflict being a mistake, as without any word.
        Some((LikeFeature::All, LikeMode::Including)) | None if feature == LikeFeature::Options => {
            LikeMode::Overwriting
        }
        Some((_, mode)) => *mode,
        None => LikeMode::Including,
    }
}

/// What is taken over from the table that LIKE names.
struct Merge<'a> {
    create: &'a CreateTable,
    how: &'a Like,
}

impl Merge<'_> {
    fn takes(&self, feature: LikeFeature, is_in_both: bool, what: &str) -> Result<bool> {
        match mode(self.how, feature) {
            LikeMode::Excluding => Ok(false),
            LikeMode::Including if is_in_both => Err(Error::input(format!(
                "both '{}' and the table '{}' that it is LIKE have {what}: say EXCLUDING or OVERWRITING",
                self.create.name, self.how.table
            ))),
            LikeMode::Including | LikeMode::Overwriting => Ok(true),
        }
    }

    fn base(&self, like: &Table) -> Result<Table> {
        let mut table = Table { comment: like.comment.clone(), ..Table::default() };
        for column in &like.columns {
            let is_taken = match column.kind {
                ColumnKind::Physical => true,
                ColumnKind::Metadata { .. } => mode(self.how, LikeFeature::Metadata) != LikeMode::Excluding,
                ColumnKind::Computed(_) => mode(self.how, LikeFeature::Generated) != LikeMode::Excluding,
            };
            if is_taken {
                table.columns.push(column.clone());
            }
        }
        let create = self.create;
        let both = !create.primary_key.is_empty() && !like.primary_key.is_empty();
        if self.takes(LikeFeature::Constraints, both, "a primary key")? {
            table.primary_key.clone_from(&like.primary_key);
        }
        let both = create.watermark.is_some() && like.watermark.is_some();
        if self.takes(LikeFeature::Watermarks, both, "a watermark")? {
            table.watermark.clone_from(&like.watermark);
        }
        let both = !create.partition_keys.is_empty() && !like.partition_keys.is_empty();
        if self.takes(LikeFeature::Partitions, both, "partitions")? {
            table.partition_keys.clone_from(&like.partition_keys);
        }
        let twice = create.options.keys().find(|key| like.options.contains_key(*key));
        let what = twice.map(|key| format!("the option '{key}'")).unwrap_or_default();
        if self.takes(LikeFeature::Options, twice.is_some(), &what)? {
            table.options.clone_from(&like.options);
        }
        Ok(table)
    }
}

fn type_computed_columns(
    table: &mut Table,
    name: &str,
    type_of: &impl Fn(&Expr, &[Column]) -> Result<SqlType>,
) -> Result<()> {
    let over: Vec<Column> = table.source_columns().cloned().collect();
    for column in &mut table.columns {
        let ColumnKind::Computed(expr) = &column.kind else { continue };
        column.data_type = type_of(expr, &over).map_err(|error| Error {
            message: format!("the computed column '{}' of '{name}': {}", column.name, error.message),
            ..error
        })?;
    }
    Ok(())
}

fn check(table: &mut Table, name: &str) -> Result<()> {
    if table.columns.is_empty() {
        return Err(Error::input(format!("the table '{name}' has no columns")));
    }
    let places: BTreeMap<String, usize> =
        table.columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect();
    let find = |what: &str, column: &String| {
        places.get(column).copied().ok_or_else(|| {
            let hint = suggestion(column, places.keys());
            Error::input(format!("the {what} of '{name}' names '{column}', which is no column of it{hint}"))
        })
    };
    let mut seen = Vec::new();
    for column in &table.primary_key {
        let at = find("primary key", column)?;
        if seen.contains(&at) {
            return Err(Error::input(format!("the primary key of '{name}' names '{column}' twice")));
        }
        seen.push(at);
        let column = &mut table.columns[at];
        if !matches!(column.kind, ColumnKind::Physical) {
            return Err(Error::input(format!(
                "the primary key of '{name}' has '{}', which is no physical column",
                column.name
            )));
        }
        // As in Flink, to be in a key is to be NOT NULL.
        column.data_type = column.data_type.clone().not_null();
    }
    for column in &table.partition_keys {
        let at = find("PARTITIONED BY", column)?;
        if !matches!(table.columns[at].kind, ColumnKind::Physical) {
            return Err(Error::input(format!("'{name}' is partitioned by '{column}', which is no physical column")));
        }
    }
    let Some(watermark) = &table.watermark else { return Ok(()) };
    let [column] = watermark.column.as_slice() else {
        return Err(Error::input(format!(
            "the watermark of '{name}' is for '{}': a field of a row cannot be event time; add a computed column of it",
            watermark.column.join(".")
        )));
    };
    let found = &table.columns[find("watermark", column)?].data_type;
    match found.kind {
        Kind::Timestamp(precision) | Kind::TimestampLtz(precision) if precision <= 3 => Ok(()),
        _ => Err(Error::input(format!(
            "the watermark of '{name}' is for '{column}', which is of type {found}: event time is a TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p from 0 to 3"
        ))),
    }
}
