//! The tables that tests query, and the way from a text to a plan.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, DataFusionError, TableReference};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::functions_window::all_default_window_functions;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, Expr, Extension, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF,
    TableSource, Volatility, WindowUDF, binary_expr, cast, col, create_udf, lit,
};
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::optimizer::{Optimizer, OptimizerContext};
use datafusion::scalar::ScalarValue;
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::spec::{ExprSpec, JoinKind, OperatorSpec, WindowSpec};

use crate::logical::nodes::{TemporalJoin, UnnestJoin, WindowTable};
use crate::plan::{
    COLLECT, Changelog, ColumnKind, Planned, Settings, SinkQuery, SinkTable, TableColumn, TableInfo, plan,
};

pub(super) const TIME: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);

pub(super) fn proctime() -> Expr {
    proctime_function().call(Vec::new())
}

fn proctime_function() -> Arc<ScalarUDF> {
    let zone: Arc<str> = "UTC".into();
    let value = ScalarValue::TimestampMillisecond(Some(0), Some(Arc::clone(&zone)));
    let make = Arc::new(move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(value.clone())));
    let data_type = DataType::Timestamp(TimeUnit::Millisecond, Some(zone));
    Arc::new(create_udf("proctime", Vec::new(), data_type, Volatility::Stable, make))
}

fn minus(column: &str, seconds: i64) -> Expr {
    let span = ScalarValue::DurationMillisecond(Some(seconds * 1000));
    binary_expr(col(column), Operator::Minus, Expr::Literal(span, None))
}

/// A table of these columns: its types are told by their names' ends.
pub(super) fn table(name: &str, columns: &[(&str, DataType)]) -> TableInfo {
    let column = |(name, data_type): &(&str, DataType)| TableColumn {
        field: Arc::new(Field::new(*name, data_type.clone(), true)),
        kind: ColumnKind::Physical,
    };
    TableInfo {
        name: name.to_owned(),
        columns: columns.iter().map(column).collect(),
        options: BTreeMap::from([("connector".to_owned(), "filesystem".to_owned())]),
        watermark: None,
        primary_key: Vec::new(),
        partition_keys: Vec::new(),
        changelog: Changelog::InsertOnly,
        is_lookup: false,
        is_scan: true,
        takes_limit: true,
    }
}

pub(super) fn tables() -> Vec<TableInfo> {
    use DataType::{Int64, Utf8};
    let mut bid = table(
        "bid",
        &[("auction", Int64), ("bidder", Int64), ("price", Int64), ("channel", Utf8), ("extra", Utf8), ("ts", TIME)],
    );
    bid.watermark = Some((5, Some(minus("ts", 4))));
    let computed = |name: &str, data_type: DataType, expr: Expr| TableColumn {
        field: Arc::new(Field::new(name, data_type, true)),
        kind: ColumnKind::Computed(expr),
    };
    bid.columns.push(computed("pt", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), proctime()));
    let mut auction = table(
        "auction",
        &[("id", Int64), ("item", Utf8), ("seller", Int64), ("category", Int64), ("ts", TIME), ("expires", TIME)],
    );
    auction.watermark = Some((4, Some(minus("ts", 4))));
    let mut person = table("person", &[("id", Int64), ("name", Utf8), ("city", Utf8), ("state", Utf8)]);
    // Its time is computed from a text, and it has a column of metadata.
    let mut at = computed("ts", TIME, cast(col("at"), TIME));
    std::mem::swap(&mut at, &mut person.columns[2]);
    person.columns.push(at);
    person.columns.push(TableColumn {
        field: Arc::new(Field::new("at", Utf8, true)),
        kind: ColumnKind::Metadata("timestamp".to_owned()),
    });
    person.watermark = Some((2, Some(col("ts"))));
    // A change log with -U, one without, a table to look up, a plain one.
    let mut rates = table("rates", &[("currency", Utf8), ("rate", Int64), ("ts", TIME)]);
    rates.watermark = Some((2, Some(col("ts"))));
    rates.primary_key = vec![0];
    rates.changelog = Changelog::All;
    let mut upserts = table("upserts", &[("id", Int64), ("v", Int64), ("w", Int64)]);
    upserts.primary_key = vec![0];
    upserts.changelog = Changelog::Upsert;
    let mut changes = table("changes", &[("id", Int64), ("v", Int64), ("w", Int64)]);
    changes.primary_key = vec![0];
    changes.changelog = Changelog::All;
    let mut side = table("side", &[("key", Int64), ("value", Utf8), ("kind", Int64)]);
    side.is_lookup = true;
    let orders = table(
        "orders",
        &[("id", Int64), ("tags", DataType::List(Arc::new(Field::new("element", Utf8, true)))), ("price", Int64)],
    );
    vec![bid, auction, person, rates, upserts, changes, side, orders]
}

/// A view.
struct View(LogicalPlan);

impl TableSource for View {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.schema().inner())
    }

    fn get_logical_plan(&'_ self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.0))
    }
}

fn scan(name: &str, tables: &[TableInfo]) -> LogicalPlanBuilder {
    let table = tables.iter().find(|table| table.name == name).expect("a table of the test");
    LogicalPlanBuilder::scan(name, Arc::new(table.clone()), None).expect("a scan")
}

fn extension(node: impl datafusion::logical_expr::UserDefinedLogicalNode + 'static) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

fn widened(schema: &DFSchema, fields: Vec<Field>) -> Arc<DFSchema> {
    let more = DFSchema::try_from(Schema::new(fields)).expect("a schema");
    Arc::new(schema.join(&more).expect("different names"))
}

fn windowed(tables: &[TableInfo], table: &str, time: &str, window: WindowSpec, partition: &[&str]) -> LogicalPlan {
    let input = scan(table, tables).build().expect("a plan");
    let schema = widened(
        input.schema(),
        ["window_start", "window_end", "window_time"].map(|name| Field::new(name, TIME, true)).to_vec(),
    );
    let partition = partition.iter().map(|name| col(*name)).collect();
    extension(WindowTable { input, window, time: col(time), partition, schema })
}

fn temporal(
    tables: &[TableInfo],
    left: &str,
    right: LogicalPlan,
    on: Expr,
    time: &str,
    is_left_outer: bool,
) -> LogicalPlan {
    let left = scan(left, tables).build().expect("a plan");
    let schema = Arc::new(left.schema().join(right.schema()).expect("different names"));
    let join = extension(TemporalJoin { left, right, on, time: col(time), is_left_outer, schema });
    let names = join.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let columns = join.schema().columns().into_iter().enumerate();
    // A view has each name once.
    let all = columns.filter(|(index, column)| !names[..*index].contains(&column.name)).map(|(_, column)| col(column));
    LogicalPlanBuilder::from(join).project(all).expect("columns").build().expect("a plan")
}

fn views(tables: &[TableInfo]) -> Vec<(&'static str, LogicalPlan)> {
    let tumble = WindowSpec::Tumble { size_ms: 10_000, offset_ms: 0 };
    let session = WindowSpec::Session { gap_ms: 5000 };
    let rates = || scan("rates", tables).build().expect("a plan");
    let side =
        || scan("side", tables).filter(col("side.kind").gt(lit(1_i64))).expect("a filter").build().expect("a plan");
    let orders = scan("orders", tables).build().expect("a plan");
    let schema = widened(orders.schema(), vec![Field::new("tag", DataType::Utf8, true)]);
    let unnest = UnnestJoin { collection: col("tags"), input: orders, is_outer: true, with_ordinality: false, schema };
    vec![
        ("bid10", windowed(tables, "bid", "bid.ts", tumble, &[])),
        ("auction10", windowed(tables, "auction", "auction.ts", tumble, &[])),
        (
            "bid_hop",
            windowed(tables, "bid", "bid.ts", WindowSpec::Hop { slide_ms: 2000, size_ms: 10_000, offset_ms: 0 }, &[]),
        ),
        ("bid_session", windowed(tables, "bid", "bid.ts", session, &["bid.bidder"])),
        ("bid_pt10", windowed(tables, "bid", "bid.pt", tumble, &[])),
        ("bid_at", windowed(tables, "bid", "bid.price", tumble, &[])),
        ("converted", temporal(tables, "bid", rates(), col("bid.channel").eq(col("rates.currency")), "bid.ts", true)),
        (
            "converted_now",
            temporal(tables, "bid", rates(), col("bid.channel").eq(col("rates.currency")), "bid.pt", false),
        ),
        ("looked_up", temporal(tables, "bid", side(), col("bid.auction").eq(col("side.key")), "bid.pt", true)),
        (
            "converted_well",
            temporal(
                tables,
                "bid",
                LogicalPlanBuilder::from(rates())
                    .filter(col("rates.rate").gt(lit(3_i64)))
                    .expect("a filter")
                    .build()
                    .expect("a plan"),
                col("bid.channel").eq(col("rates.currency")),
                "bid.ts",
                false,
            ),
        ),
        ("badly_converted", temporal(tables, "bid", rates(), col("bid.price").eq(col("rates.rate")), "bid.ts", true)),
        ("tagged", extension(unnest)),
    ]
}

struct Context {
    options: ConfigOptions,
    tables: Vec<TableInfo>,
    planners: Vec<Arc<dyn ExprPlanner>>,
}

impl ContextProvider for Context {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>, DataFusionError> {
        if let Some((_, view)) = views(&self.tables).into_iter().find(|(view, _)| *view == name.table()) {
            return Ok(Arc::new(View(view)));
        }
        let table = self.tables.iter().find(|table| table.name == name.table());
        let table = table.ok_or_else(|| DataFusionError::Plan(format!("no table {name}")))?;
        Ok(Arc::new(table.clone()))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        datafusion::functions::all_default_functions().into_iter().find(|function| function.name() == name)
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        all_default_aggregate_functions().into_iter().find(|function| function.name() == name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        all_default_window_functions().into_iter().find(|function| function.name() == name)
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The query, optimised, over tables of which these replace those of the same name.
pub(super) fn query_over(sql: &str, changed: &[TableInfo]) -> LogicalPlan {
    let statement = Parser::parse_sql(&GenericDialect {}, sql).expect("a query").remove(0);
    let mut all = tables();
    for table in changed {
        all.retain(|old| old.name != table.name);
        all.push(table.clone());
    }
    let planners: Vec<Arc<dyn ExprPlanner>> = vec![
        Arc::new(datafusion::functions_aggregate::planner::AggregateFunctionPlanner),
        Arc::new(datafusion::functions_window::planner::WindowFunctionPlanner),
    ];
    let mut options = ConfigOptions::default();
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    let context = Context { options, tables: all, planners };
    let plan = SqlToRel::new(&context).sql_statement_to_plan(statement).expect("a plan");
    let plan = Analyzer::new().execute_and_check(plan, &context.options, |_, _| {}).expect("an analysed plan");
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| !matches!(rule.name(), "single_distinct_aggregation_to_group_by" | "filter_null_join_keys"));
    let config = OptimizerContext::new_with_config_options(Arc::new(context.options.clone()));
    Optimizer::with_rules(rules).optimize(plan, &config, |_, _| {}).expect("an optimised plan")
}

pub(super) fn query(sql: &str) -> LogicalPlan {
    query_over(sql, &[])
}

/// A sink for the result of `plan`.
pub(super) fn sink(plan: &LogicalPlan, name: &str, changelog: Changelog, primary_key: &[usize]) -> SinkTable {
    SinkTable {
        name: name.to_owned(),
        options: BTreeMap::from([("connector".to_owned(), COLLECT.to_owned())]),
        schema: Arc::clone(plan.schema().inner()),
        metadata: BTreeMap::new(),
        partition_keys: Vec::new(),
        primary_key: primary_key.to_vec(),
        changelog,
        is_overwrite: false,
        on_conflict: None,
    }
}

pub(super) fn select(sql: &str) -> SinkQuery {
    let plan = query(sql);
    let sink = sink(&plan, "out", Changelog::All, &[]);
    SinkQuery { plan, sink }
}

pub(super) fn settings() -> Settings {
    Settings::new(&BTreeMap::new()).expect("settings")
}

pub(super) fn batch() -> Settings {
    Settings { is_batch: true, ..settings() }
}

/// The plan of a SELECT, in short.
pub(super) fn planned(sql: &str) -> String {
    planned_with(sql, &settings())
}

pub(super) fn planned_with(sql: &str, settings: &Settings) -> String {
    let planned = plan(&[select(sql)], settings).unwrap_or_else(|error| panic!("{sql}: {error}"));
    check(&planned);
    planned.to_string()
}

/// Why a SELECT cannot be planned.
pub(super) fn refused(sql: &str) -> String {
    match plan(&[select(sql)], &settings()) {
        Ok(planned) => panic!("{sql} was planned:\n{planned}"),
        Err(error) => error.to_string(),
    }
}

/// What holds for every plan: edges lead forward and to columns that are there, uids differ, expressions compile, and it
/// survives shipping.
pub(super) fn check(planned: &Planned) {
    use flott_sql_runtime::spec::{CompiledPlan, Exchange};
    let plan = &planned.plan;
    let mut uids: Vec<&str> = plan.nodes.iter().map(|node| node.uid.as_str()).collect();
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), plan.nodes.len(), "two operators have the same uid");
    for edge in &plan.edges {
        assert!(edge.source < edge.target);
        let (source, target) = (&plan.nodes[edge.source], &plan.nodes[edge.target]);
        match &edge.exchange {
            Exchange::Hash(columns) => assert!(columns.iter().all(|column| *column < source.schema.fields().len())),
            Exchange::Forward => assert_eq!(source.parallelism, target.parallelism, "{planned}"),
            _ => {}
        }
    }
    let functions =
        Functions::new(datafusion::functions::all_default_functions().into_iter().chain([proctime_function()]));
    for (index, node) in plan.nodes.iter().enumerate() {
        let inputs = plan.edges.iter().filter(|edge| edge.target == index);
        let mut schemas: BTreeMap<u8, SchemaRef> = BTreeMap::new();
        for edge in inputs {
            let source = &plan.nodes[edge.source].schema;
            let types = |schema: &SchemaRef| schema.fields().iter().map(|f| f.data_type().clone()).collect::<Vec<_>>();
            let first = schemas.entry(edge.input).or_insert_with(|| Arc::clone(source));
            assert_eq!(types(first), types(source), "a union of different columns: {planned}");
        }
        let fields: Vec<_> = schemas.values().flat_map(|schema| schema.fields().iter().cloned()).collect();
        let both = Arc::new(Schema::new(fields));
        let empty = RecordBatch::new_empty(Arc::clone(&both));
        let type_of = |expr: &ExprSpec| {
            let compiled = expr.compile(&both, &functions).expect("an expression that compiles");
            compiled.evaluate(&empty).expect("no rows").data_type().clone()
        };
        let check_columns = |projection: &[ExprSpec]| {
            let types: Vec<_> = projection.iter().map(type_of).collect();
            let fields: Vec<_> = node.schema.fields().iter().map(|field| field.data_type().clone()).collect();
            assert_eq!(types, fields, "{}", node.name);
        };
        let conditions = match &node.operator {
            OperatorSpec::Calc { condition, projection } => {
                check_columns(projection);
                condition.iter().collect()
            }
            OperatorSpec::Expand { projections } => {
                projections.iter().for_each(|projection| check_columns(projection));
                Vec::new()
            }
            OperatorSpec::Join(join) => join.condition.iter().collect(),
            OperatorSpec::IntervalJoin(join) => join.condition.iter().collect(),
            OperatorSpec::WindowJoin(join) => join.condition.iter().collect(),
            OperatorSpec::TemporalJoin(join) => join.condition.iter().collect(),
            _ => Vec::new(),
        };
        conditions.into_iter().for_each(|condition| assert_eq!(type_of(condition), DataType::Boolean));
        let width = match &node.operator {
            OperatorSpec::GroupAggregate(group) => group.keys.len() + group.aggregates.len(),
            OperatorSpec::WindowAggregate(window) => {
                window.keys.len() + window.aggregates.len() + window.window_columns.len()
            }
            OperatorSpec::Over(over) => both.fields().len() + over.aggregates.len(),
            OperatorSpec::TopN(top) => both.fields().len() + usize::from(top.with_rank),
            OperatorSpec::WindowTopN(top) => both.fields().len() + usize::from(top.with_rank),
            OperatorSpec::WindowTable { .. } => both.fields().len() + 3,
            OperatorSpec::Join(join) if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) => {
                schemas[&0].fields().len()
            }
            OperatorSpec::Join(_) | OperatorSpec::IntervalJoin(_) | OperatorSpec::WindowJoin(_) => both.fields().len(),
            OperatorSpec::LookupJoin(join) => both.fields().len() + join.table.projection.len(),
            OperatorSpec::Source(source) => source.projection.len(),
            _ => node.schema.fields().len(),
        };
        assert_eq!(width, node.schema.fields().len(), "{}", node.name);
    }
    let bytes = plan.encode().expect("a form that ships");
    assert_eq!(CompiledPlan::decode(&bytes).expect("the same").nodes.len(), plan.nodes.len());
}
