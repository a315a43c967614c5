//! What statements say.

use std::collections::BTreeMap;
use std::fmt;

use datafusion::sql::sqlparser::ast::{Expr, Query};
use datafusion::sql::sqlparser::tokenizer::Location;

use flott_sql_runtime::spec::ConflictStrategy;

use crate::types::SqlType;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `SELECT …`, `WITH …`, `VALUES …`.
    Query(Box<Query>),
    /// `INSERT INTO …`.
    Insert(Insert),
    /// `EXECUTE STATEMENT SET BEGIN … END`.
    StatementSet(Vec<Insert>),
    /// `CREATE TABLE …`.
    CreateTable(Box<CreateTable>),
    /// `CREATE VIEW …`, `ALTER VIEW … AS`.
    CreateView(CreateView),
    /// `CREATE FUNCTION …`.
    CreateFunction(CreateFunction),
    /// `CREATE CATALOG …`.
    CreateCatalog(CreateSpace),
    /// `CREATE DATABASE …`.
    CreateDatabase(CreateSpace),
    /// `DROP …`.
    Drop(Drop),
    /// `ALTER TABLE …`, `ALTER VIEW … RENAME`.
    AlterTable(AlterTable),
    /// `USE CATALOG c`.
    UseCatalog(Name),
    /// `USE d`, `USE c.d`.
    UseDatabase(Name),
    /// `SET 'key' = 'value'`; `SET` shows all.
    Set(Option<(String, String)>),
    /// `RESET 'key'`; `RESET` for all.
    Reset(Option<String>),
    /// `SHOW …`.
    Show(Show),
    /// `DESCRIBE t`.
    Describe(Name),
    /// `EXPLAIN …`.
    Explain {
        /// What is wanted besides the plan.
        details: Vec<ExplainDetail>,
        /// Of what.
        statement: Box<Statement>,
    },
}

/// A name of one to three parts, and where it stands.
#[derive(Clone)]
pub struct Name {
    /// Its parts.
    pub parts: Vec<String>,
    /// Where it begins.
    pub start: Location,
    /// Where it ends.
    pub end: Location,
}

impl Name {
    /// A name that stands nowhere.
    pub fn new(parts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { parts: parts.into_iter().map(Into::into).collect(), start: Location::empty(), end: Location::empty() }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("."))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `WITH ('key' = 'value', …)`.
pub type Options = BTreeMap<String, String>;

/// `INSERT INTO t PARTITION (p = v) (a, b) query ON CONFLICT DO …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: Name,
    /// Options that hints set.
    pub hints: Options,
    /// Constants of partition columns.
    pub partition: Vec<(String, Expr)>,
    /// The columns that the query gives, all if there are none.
    pub columns: Vec<String>,
    /// Whether what is there goes: `INSERT OVERWRITE`.
    pub is_overwrite: bool,
    /// The rows.
    pub query: Box<Query>,
    /// `ON CONFLICT DO …`.
    pub on_conflict: Option<ConflictStrategy>,
}

/// `CREATE TABLE t (…) COMMENT … PARTITIONED BY … WITH (…) LIKE … AS …`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// Its name.
    pub name: Name,
    /// Whether only the session knows it.
    pub is_temporary: bool,
    /// Whether it is no mistake if it exists.
    pub if_not_exists: bool,
    /// The columns.
    pub columns: Vec<ColumnDefinition>,
    /// `WATERMARK FOR a.b AS e`.
    pub watermark: Option<WatermarkDefinition>,
    /// `PRIMARY KEY (a, b) NOT ENFORCED`.
    pub primary_key: Vec<String>,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
    /// `PARTITIONED BY (a, b)`.
    pub partition_keys: Vec<String>,
    /// `WITH (…)`.
    pub options: Options,
    /// `LIKE t (…)`.
    pub like: Option<Like>,
    /// `AS query`.
    pub query: Option<Box<Query>>,
}

/// A column of CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Where its values come from.
    pub kind: ColumnDefinitionKind,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a table has few columns")]
pub enum ColumnDefinitionKind {
    /// From the rows: `a INT`.
    Physical(SqlType),
    /// From around the rows: `a INT METADATA FROM 'k' VIRTUAL`.
    Metadata {
        /// The type.
        data_type: SqlType,
        /// What it is called there; the column's name if it is not said.
        key: Option<String>,
        /// Whether it is not written.
        is_virtual: bool,
    },
    /// From other columns: `a AS e`.
    Computed(Expr),
}

/// `WATERMARK FOR a.b AS e`.
#[derive(Clone, Debug, PartialEq)]
pub struct WatermarkDefinition {
    /// The column, and the fields in it.
    pub column: Vec<String>,
    /// The watermark.
    pub expr: Expr,
}

/// `LIKE t (INCLUDING OPTIONS …)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    /// The table.
    pub table: Name,
    /// What is taken over, later ones first.
    pub options: Vec<(LikeFeature, LikeMode)>,
}

/// What LIKE may take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeFeature {
    /// Everything.
    All,
    /// Primary keys.
    Constraints,
    /// How it is distributed.
    Distribution,
    /// Computed columns.
    Generated,
    /// Metadata columns.
    Metadata,
    /// `WITH (…)`.
    Options,
    /// Partition keys.
    Partitions,
    /// Watermarks.
    Watermarks,
}

/// How LIKE takes it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeMode {
    /// It must not be in both.
    Including,
    /// Not at all.
    Excluding,
    /// What the new table says counts.
    Overwriting,
}

/// `CREATE VIEW v (a, b) AS query`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// Its name.
    pub name: Name,
    /// Whether only the session knows it.
    pub is_temporary: bool,
    /// Whether it is no mistake if it exists.
    pub if_not_exists: bool,
    /// Whether it must exist and is replaced: `ALTER VIEW`.
    pub is_alter: bool,
    /// Names of its columns, the query's if there are none.
    pub columns: Vec<String>,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
    /// The query.
    pub query: Box<Query>,
}

/// `CREATE FUNCTION f AS 'identifier' LANGUAGE l`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    /// Its name.
    pub name: Name,
    /// Whether only the session knows it.
    pub is_temporary: bool,
    /// Whether it is known in every database.
    pub is_system: bool,
    /// Whether it is no mistake if it exists.
    pub if_not_exists: bool,
    /// What it is.
    pub identifier: String,
    /// In which language; `None` for Flink's default.
    pub language: Option<String>,
}

/// `CREATE CATALOG c WITH (…)`, `CREATE DATABASE d WITH (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSpace {
    /// Its name.
    pub name: Name,
    /// Whether it is no mistake if it exists.
    pub if_not_exists: bool,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
    /// `WITH (…)`.
    pub options: Options,
}

/// `DROP … IF EXISTS n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    /// What kind of thing.
    pub object: Object,
    /// Its name.
    pub name: Name,
    /// Whether only the session's is meant.
    pub is_temporary: bool,
    /// Whether it is no mistake if there is none.
    pub if_exists: bool,
    /// Whether what is in it goes too.
    pub is_cascade: bool,
}

/// What can be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A table.
    Table,
    /// A view.
    View,
    /// A function.
    Function,
    /// A catalog.
    Catalog,
    /// A database.
    Database,
}

/// `ALTER TABLE t …`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table or view.
    pub name: Name,
    /// Whether a view is meant.
    pub is_view: bool,
    /// Whether it is no mistake if there is none.
    pub if_exists: bool,
    /// What changes.
    pub action: AlterAction,
}

/// What ALTER TABLE changes.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// `RENAME TO n`.
    Rename(Name),
    /// `SET (…)`.
    Set(Options),
    /// `RESET ('key', …)`.
    Reset(Vec<String>),
    /// `ADD (…)`, `MODIFY (…)`.
    Redefine(Box<Redefinition>),
    /// `DROP (a, b)`.
    DropColumns(Vec<String>),
    /// `DROP PRIMARY KEY`, `DROP CONSTRAINT k`.
    DropPrimaryKey,
    /// `DROP WATERMARK`.
    DropWatermark,
    /// `RENAME a TO b`.
    RenameColumn {
        /// The column.
        from: String,
        /// Its new name.
        to: String,
    },
}

/// What ALTER TABLE adds, or says anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Redefinition {
    /// Whether all of it must be there already.
    pub is_modify: bool,
    /// Columns, the primary key, the watermark; nothing else.
    pub elements: CreateTable,
    /// Where each of the columns comes, if that is said.
    pub places: Vec<Option<Place>>,
}

/// Where a column comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before all others.
    First,
    /// Behind another one.
    After(String),
}

/// `SHOW …`.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    /// `SHOW CATALOGS`.
    Catalogs,
    /// `SHOW CURRENT CATALOG`.
    CurrentCatalog,
    /// `SHOW DATABASES`.
    Databases,
    /// `SHOW CURRENT DATABASE`.
    CurrentDatabase,
    /// `SHOW TABLES [FROM d] [[NOT] LIKE p]`.
    Tables(ShowFilter),
    /// `SHOW VIEWS`.
    Views(ShowFilter),
    /// `SHOW [USER] FUNCTIONS`.
    Functions {
        /// Whether without Flink's own.
        is_user_only: bool,
        /// Which.
        filter: ShowFilter,
    },
    /// `SHOW COLUMNS FROM t`.
    Columns(Name, ShowFilter),
    /// `SHOW CREATE TABLE t`.
    CreateTable(Name),
    /// `SHOW CREATE VIEW v`.
    CreateView(Name),
    /// `SHOW JOBS`.
    Jobs,
    /// `SHOW MODULES`.
    Modules,
}

/// What SHOW is limited to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowFilter {
    /// `FROM d`.
    pub from: Option<Name>,
    /// `LIKE p`.
    pub like: Option<String>,
    /// `NOT LIKE p`.
    pub is_negated: bool,
}

/// What EXPLAIN shows besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainDetail {
    /// `ESTIMATED_COST`
    EstimatedCost,
    /// `CHANGELOG_MODE`
    ChangelogMode,
    /// `JSON_EXECUTION_PLAN`
    JsonExecutionPlan,
    /// `PLAN_ADVICE`
    PlanAdvice,
}
