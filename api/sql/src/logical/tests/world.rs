//! The tables that tests query.

use std::collections::BTreeMap;
use std::sync::Arc;

use flott_core::Result;
use flott_sql_runtime::spec::{SinkSpec, SourceSpec};

use crate::catalog::{Catalog, Column, ColumnKind, Relation, Table, Watermark};
use crate::logical::{Connectors, Queries, Readable};
use crate::parse::{ColumnDefinitionKind, CreateTable, Insert, Statement, parse_query, parse_script};
use crate::plan::{Changelog, Planned, Settings, SinkQuery, plan};
use crate::types::SqlType;

/// Tables are what their options say.
struct Said;

fn changelog(options: &BTreeMap<String, String>) -> Changelog {
    match options.get("changelog").map(String::as_str) {
        Some("upsert") => Changelog::Upsert,
        Some("all") => Changelog::All,
        _ => Changelog::InsertOnly,
    }
}

impl Connectors for Said {
    fn source(&self, spec: &SourceSpec) -> Result<Readable> {
        let is_lookup = spec.options.contains_key("lookup");
        let changelog = changelog(&spec.options);
        Ok(Readable { changelog, is_lookup, is_scan: true, has_watermarks: false, takes_limit: true })
    }

    fn sink(&self, spec: &SinkSpec) -> Result<Changelog> {
        Ok(changelog(&spec.options))
    }
}

const TABLES: &str = "
CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, `dateTime` TIMESTAMP(3),
  extra STRING, WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem');
CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3),
  expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem');
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  pt AS PROCTIME(), WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem');
CREATE TABLE side_input (key BIGINT, `value` STRING) WITH ('connector' = 'filesystem', 'lookup' = 'true');
CREATE TABLE rates (
  currency STRING, rate DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'changelog' = 'all');
CREATE TABLE orders (
  id INT, tags ARRAY<STRING>, r ROW<a INT, b STRING>, m MAP<STRING, INT>, price DOUBLE, amount DECIMAL(10, 2), day DATE,
  text STRING, flag BOOLEAN
) WITH ('connector' = 'filesystem');
CREATE TABLE sink (a BIGINT, b STRING, c DECIMAL(10, 2)) WITH ('connector' = 'blackhole');
CREATE TABLE keyed (a BIGINT NOT NULL, b STRING, PRIMARY KEY (a) NOT ENFORCED)
  WITH ('connector' = 'blackhole', 'changelog' = 'upsert');
CREATE VIEW cheap (item, cost) AS SELECT auction, price FROM bid WHERE price < 100;
";

pub(super) fn settings() -> Settings {
    Settings::new(&BTreeMap::new()).expect("settings")
}

fn create(catalog: &mut Catalog, table: &CreateTable) {
    let types = |columns: &[Column]| Table { columns: columns.to_vec(), ..Table::default() }.schema();
    let mut columns: Vec<Column> = Vec::new();
    for definition in &table.columns {
        let (data_type, kind) = match &definition.kind {
            ColumnDefinitionKind::Physical(of) => (of.clone(), ColumnKind::Physical),
            ColumnDefinitionKind::Metadata { data_type, key, is_virtual } => {
                let key = key.clone().unwrap_or_else(|| definition.name.clone());
                (data_type.clone(), ColumnKind::Metadata { key, is_virtual: *is_virtual })
            }
            ColumnDefinitionKind::Computed(expr) => {
                let queries = Queries::new(catalog, &settings());
                let field = queries.column(&definition.name, expr, &types(&columns)).expect("a computed column");
                (SqlType::from_field(&field).expect("a type"), ColumnKind::Computed(expr.clone()))
            }
        };
        columns.push(Column { name: definition.name.clone(), data_type, kind, comment: None });
    }
    let watermark =
        table.watermark.clone().map(|watermark| Watermark { column: watermark.column, expr: watermark.expr });
    let made = Table {
        columns,
        watermark,
        primary_key: table.primary_key.clone(),
        partition_keys: table.partition_keys.clone(),
        options: table.options.clone(),
        comment: None,
    };
    let path = catalog.resolve(&table.name.parts).expect("a name");
    catalog.create(path, Relation::Table(Arc::new(made)), false, false).expect("a new table");
}

pub(super) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for statement in parse_script(TABLES).expect("statements") {
        match statement {
            Statement::CreateTable(table) => create(&mut catalog, &table),
            Statement::CreateView(view) => catalog.create_view(&view).expect("a new view"),
            other => panic!("{other:?}"),
        }
    }
    catalog
}

pub(super) fn queries<'a>(catalog: &Catalog, settings: &Settings, script: &'a str) -> Queries<'a> {
    Queries::new(catalog, settings).with_connectors(Arc::new(Said)).with_script(script)
}

/// The plan of a query or INSERT, or why there is none.
pub(super) fn made(sql: &str, settings: &Settings) -> Result<SinkQuery> {
    let catalog = catalog();
    let queries = queries(&catalog, settings, sql);
    match parse_script(sql)?.remove(0) {
        Statement::Query(query) => queries.select(&query),
        Statement::Insert(insert) => queries.insert(&insert),
        other => panic!("{other:?}"),
    }
}

fn insert(sql: &str) -> Insert {
    match parse_script(sql).expect("a statement").remove(0) {
        Statement::Insert(insert) => insert,
        other => panic!("{other:?}"),
    }
}

/// The optimised logical plan.
pub(super) fn logical(sql: &str) -> String {
    match made(sql, &settings()) {
        Ok(query) => format!("{}\n", query.plan.display_indent()),
        Err(error) => format!("error: {error}\n"),
    }
}

/// The operators.
pub(super) fn planned(sql: &str) -> String {
    planned_with(sql, &settings())
}

pub(super) fn planned_with(sql: &str, settings: &Settings) -> String {
    match made(sql, settings).and_then(|query| plan(&[query], settings)) {
        Ok(planned) => shown(&planned),
        Err(error) => format!("error: {error}\n"),
    }
}

/// The plan of a query that there is one of.
pub(super) fn plan_of(sql: &str) -> flott_sql_runtime::spec::CompiledPlan {
    let settings = settings();
    plan(&[made(sql, &settings).expect("a query")], &settings).expect("a plan").plan
}

fn shown(planned: &Planned) -> String {
    let bytes = planned.plan.encode().expect("a form that ships");
    let again = flott_sql_runtime::spec::CompiledPlan::decode(&bytes).expect("the same");
    assert_eq!(again.nodes.len(), planned.plan.nodes.len());
    planned.to_string()
}

/// The columns of a query with Flink's types, or what is wrong with it.
pub(super) fn columns(sql: &str) -> String {
    let (catalog, settings) = (catalog(), settings());
    let found = parse_query(sql).and_then(|query| queries(&catalog, &settings, sql).schema(&query));
    match found {
        Ok(schema) => {
            let column = |field: &arrow::datatypes::FieldRef| {
                format!("{} {}", field.name(), SqlType::from_field(field).expect("a type of Flink"))
            };
            schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
        }
        Err(error) => format!("error: {error}"),
    }
}

/// The sink of an INSERT.
pub(super) fn sink(sql: &str) -> crate::plan::SinkTable {
    let (catalog, settings) = (catalog(), settings());
    queries(&catalog, &settings, sql).insert(&insert(sql)).expect("an INSERT").sink
}
