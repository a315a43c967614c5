//! Relations that DataFusion does not know: windows, collections, versions of tables, hints.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode, Values,
};
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TableFactor,
};
use datafusion::sql::sqlparser::tokenizer::Location;
use flott_core::time::parse_duration;
use flott_sql_functions::builtins::refusal;
use flott_sql_runtime::spec::WindowSpec;

use super::coerce::converted;
use super::errors::{mistake, mistake_at};
use super::membership::{TUPLES, tuples};
use super::multiplicity::{EXCEPT, INTERSECT, counted};
use super::nodes::{Elements, StateTtl, Version, WindowTable, extended};
use super::operators::constant;
use super::scope::{Scope, parts_of};
use super::special::unified;
use crate::catalog::UserFunction;
use crate::parse::{STATE_TTL, table_hints};
use crate::types::{is_multiset, name_of};

/// The name that `t FOR SYSTEM_TIME AS OF time` has while a query is planned.
pub(super) const VERSIONED: &str = "__versioned";

/// The name that VALUES has while a query is planned. Its arguments are the rows.
pub(super) const VALUES: &str = "__values";

/// Whether windows are made by a function of this name.
pub(super) fn is_window(name: &str) -> bool {
    matches!(name, "tumble" | "hop" | "cumulate" | "session")
}

/// Plans relations.
#[derive(Debug)]
pub(super) struct Relations {
    pub scope: Arc<Scope>,
    pub constants: Arc<Vec<ScalarValue>>,
}

/// A logical plan of a node of ours.
pub(super) fn extension(node: impl UserDefinedLogicalNode + 'static) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

fn planned(plan: LogicalPlan, alias: Option<ast::TableAlias>) -> RelationPlanning {
    RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias)))
}

impl RelationPlanner for Relations {
    fn plan_relation(&self, relation: TableFactor, cx: &mut dyn RelationPlannerContext) -> Result<RelationPlanning> {
        let mut relation = relation;
        if let Some(columns) = columns_of(&mut relation) {
            // DataFusion would look for the old names in lower case.
            let alias = alias_of(&mut relation).and_then(Option::take);
            let plan = cx.plan(relation)?;
            return Ok(planned(renamed(plan, &columns)?, alias));
        }
        match relation {
            TableFactor::Table { name, alias, args: None, with_hints, version: None, .. } if !with_hints.is_empty() => {
                Ok(planned(self.hinted(name, &with_hints, cx)?, alias))
            }
            TableFactor::Table { name, alias, args: Some(args), .. } => self.function(&name, &args.args, alias, cx),
            TableFactor::TableFunction { .. } => Err(mistake("TABLE(…) has a function in it")),
            TableFactor::Function { name, args, alias, .. } => self.function(&name, &args, alias, cx),
            TableFactor::UNNEST { alias, mut array_exprs, with_offset: false, with_ordinality, .. } => {
                if array_exprs.len() != 1 {
                    return Err(mistake("UNNEST takes one collection"));
                }
                let collection = collection(array_exprs.remove(0), cx)?;
                Ok(planned(elements(collection, with_ordinality, "UNNEST")?, alias))
            }
            TableFactor::MatchRecognize { .. } => Err(mistake("MATCH_RECOGNIZE is not supported")),
            TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => {
                Err(mistake("PIVOT and UNPIVOT are not supported: use aggregates with FILTER, and UNION ALL"))
            }
            other => Ok(RelationPlanning::Original(Box::new(other))),
        }
    }
}

impl Relations {
    /// A table with hints.
    fn hinted(
        &self,
        name: ObjectName,
        with_hints: &[ast::Expr],
        cx: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let (ttls, options): (Vec<_>, Vec<_>) = table_hints(with_hints).partition(|(key, _)| key == STATE_TTL);
        let input = match options.is_empty() {
            true => cx.plan(factor_of(name, Vec::new()))?,
            false => {
                let table = cx.object_name_to_table_reference(name)?;
                let source = self.scope.source(&parts_of(&table), &options)?;
                LogicalPlanBuilder::scan(table, source, None)?.build()?
            }
        };
        let Some((_, ttl)) = ttls.last() else { return Ok(input) };
        let ttl = parse_duration(ttl).map_err(|error| mistake(format!("{STATE_TTL}: {error}")))?;
        let schema = Arc::clone(input.schema());
        Ok(extension(StateTtl { input, ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX), schema }))
    }
}

fn alias_of(relation: &mut TableFactor) -> Option<&mut Option<ast::TableAlias>> {
    match relation {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => Some(alias),
        _ => None,
    }
}

/// Takes the columns out of `AS t (a, b)`.
fn columns_of(relation: &mut TableFactor) -> Option<Vec<Ident>> {
    let alias = alias_of(relation)?.as_mut()?;
    let columns: Vec<_> = std::mem::take(&mut alias.columns).into_iter().map(|column| column.name).collect();
    (!columns.is_empty()).then_some(columns)
}

/// The same columns by other names.
fn renamed(plan: LogicalPlan, names: &[Ident]) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    if columns.len() != names.len() {
        let at = names.first().map_or_else(Location::empty, |name| name.span.start);
        let (has, named) = (columns.len(), names.len());
        return Err(mistake_at(format!("there are {has} columns, and {named} names for them"), at));
    }
    let named = columns.into_iter().zip(names).map(|(column, name)| Expr::Column(column).alias(&name.value));
    LogicalPlanBuilder::from(plan).project(named.collect::<Vec<_>>())?.build()
}

impl Relations {
    fn function(
        &self,
        name: &ObjectName,
        arguments: &[FunctionArg],
        alias: Option<ast::TableAlias>,
        cx: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let ident = name.0.last().and_then(|part| part.as_ident().cloned()).unwrap_or_else(|| Ident::new(""));
        let (lower, at) = (ident.value.to_lowercase(), ident.span.start);
        if lower == VERSIONED {
            return Ok(planned(version(arguments, cx)?, alias));
        }
        if lower == VALUES {
            return Ok(planned(values(expressions(arguments)?, cx)?, alias));
        }
        if lower == TUPLES {
            let [query] = &expressions(arguments)?[..] else { return Err(mistake("IN has one query")) };
            let Some((input, _)) = table(query, cx)? else { return Err(mistake("IN has one query")) };
            return Ok(planned(tuples(input)?, alias));
        }
        if lower == INTERSECT || lower == EXCEPT {
            let [left, right] = &expressions(arguments)?[..] else { return Err(mistake("two queries are compared")) };
            let (Some((left, _)), Some((right, _))) = (table(left, cx)?, table(right, cx)?) else {
                return Err(mistake("two queries are compared"));
            };
            return Ok(planned(counted(&lower, left, right)?, alias));
        }
        if is_window(&lower) {
            return Ok(planned(self.window(&lower, at, arguments, cx)?, alias));
        }
        match self.scope.catalog.function(&lower) {
            Some(UserFunction::Table(_)) => {
                let call = ast::Expr::Function(crate::parse::call_of(&lower, expressions(arguments)?));
                let collection = cx.sql_to_expr(call, &DFSchema::empty())?;
                Ok(planned(elements(collection, false, &lower)?, alias))
            }
            Some(_) => Err(mistake_at(format!("{lower} gives one value: it is no table function"), at)),
            None => {
                if let Some(reason) = refusal(&lower) {
                    return Err(mistake_at(reason, at));
                }
                let known = ["tumble", "hop", "cumulate", "session", "unnest"].into_iter();
                let known = known.chain(self.scope.catalog.function_names()).map(str::to_uppercase);
                let hint = crate::catalog::suggestion(&lower, known);
                Err(mistake_at(format!("there is no table function '{}'{hint}", ident.value), at))
            }
        }
    }

    /// `TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)` and its kin.
    fn window(
        &self,
        name: &str,
        at: Location,
        arguments: &[FunctionArg],
        cx: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let (names, usage): (&[&str], _) = match name {
            "tumble" => (&["DATA", "TIMECOL", "SIZE", "OFFSET"], "TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset])"),
            "hop" => (
                &["DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"],
                "HOP(TABLE t, DESCRIPTOR(ts), slide, size [, offset])",
            ),
            "cumulate" => (
                &["DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"],
                "CUMULATE(TABLE t, DESCRIPTOR(ts), step, size [, offset])",
            ),
            _ => (&["DATA", "TIMECOL", "GAP"], "SESSION(TABLE t [PARTITION BY k], DESCRIPTOR(ts), gap)"),
        };
        let wrong = || mistake_at(format!("expected {usage}"), at);
        let mut found: Vec<Option<&ast::Expr>> = vec![None; names.len()];
        for (position, argument) in arguments.iter().enumerate() {
            let (place, expr) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (Some(position), expr),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                    (names.iter().position(|known| known.eq_ignore_ascii_case(&name.value)), expr)
                }
                _ => return Err(wrong()),
            };
            match place.and_then(|place| found.get_mut(place)) {
                Some(slot) if slot.is_none() => *slot = Some(expr),
                _ => return Err(wrong()),
            }
        }
        let (Some(data), Some(time)) = (found[0], found[1]) else { return Err(wrong()) };
        let (input, partition) = table(data, cx)?.ok_or_else(wrong)?;
        let time = match time {
            ast::Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("descriptor") => {
                match &expressions_of(call)?[..] {
                    [column] => cx.sql_to_expr(column.clone(), input.schema())?,
                    _ => return Err(wrong()),
                }
            }
            _ => return Err(wrong()),
        };
        let partition =
            partition.into_iter().map(|key| cx.sql_to_expr(key, input.schema())).collect::<Result<Vec<_>>>()?;
        if !partition.is_empty() && name != "session" {
            return Err(mistake_at("PARTITION BY is for SESSION windows: GROUP BY the columns in others", at));
        }
        let length = |index: usize| -> Result<Option<i64>> {
            let Some(expr) = found.get(index).copied().flatten() else { return Ok(None) };
            match constant_of(expr, &self.constants) {
                Some(ScalarValue::DurationMillisecond(Some(millis))) => Ok(Some(*millis)),
                _ => Err(mistake_at(
                    format!(
                        "{} of {} is an INTERVAL of a fixed length, such as INTERVAL '10' MINUTE",
                        names[index],
                        name.to_uppercase()
                    ),
                    at,
                )),
            }
        };
        let positive = |index: usize| match length(index)? {
            Some(millis) if millis > 0 => Ok(millis),
            Some(_) => {
                Err(mistake_at(format!("{} of {} must be longer than 0", names[index], name.to_uppercase()), at))
            }
            None => Err(wrong()),
        };
        let window = match name {
            "tumble" => WindowSpec::Tumble { size_ms: positive(2)?, offset_ms: length(3)?.unwrap_or(0) },
            "hop" => {
                let (slide_ms, size_ms) = (positive(2)?, positive(3)?);
                WindowSpec::Hop { slide_ms, size_ms, offset_ms: length(4)?.unwrap_or(0) }
            }
            "cumulate" => {
                let (step_ms, size_ms) = (positive(2)?, positive(3)?);
                if size_ms % step_ms != 0 {
                    return Err(mistake_at("the size of CUMULATE must be a multiple of its step", at));
                }
                WindowSpec::Cumulate { step_ms, size_ms, offset_ms: length(4)?.unwrap_or(0) }
            }
            _ => WindowSpec::Session { gap_ms: positive(2)? },
        };
        windowed(input, window, time, partition)
    }
}

/// Rows with their windows.
pub(super) fn windowed(
    input: LogicalPlan,
    window: WindowSpec,
    time: Expr,
    partition: Vec<Expr>,
) -> Result<LogicalPlan> {
    let of = time.get_type(input.schema())?;
    let DataType::Timestamp(_, zone) = &of else {
        return Err(mistake(format!(
            "windows are made by a TIMESTAMP or TIMESTAMP_LTZ, and '{time}' is {}",
            name_of(&of)
        )));
    };
    let plain = DataType::Timestamp(TimeUnit::Millisecond, None);
    let zoned = DataType::Timestamp(TimeUnit::Millisecond, zone.clone());
    let mut added = Vec::new();
    for (name, of) in [("window_start", &plain), ("window_end", &plain), ("window_time", &zoned)] {
        let is_known = |name: &str| input.schema().fields().iter().any(|field| field.name() == name);
        let numbered = (0..).map(|number| format!("{name}{number}"));
        let unique = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_known(name));
        added.push((None, Arc::new(Field::new(unique.unwrap_or_default(), of.clone(), false))));
    }
    let schema = extended(input.schema(), added)?;
    Ok(extension(WindowTable { input, window, time, partition, schema }))
}

fn constant_of<'a>(expr: &ast::Expr, constants: &'a [ScalarValue]) -> Option<&'a ScalarValue> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(id) => constant(constants, id),
            _ => None,
        },
        ast::Expr::Nested(inner) => constant_of(inner, constants),
        _ => None,
    }
}

fn expressions(arguments: &[FunctionArg]) -> Result<Vec<ast::Expr>> {
    let expr = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr.clone()),
        other => Err(mistake(format!("'{other}' is no argument of a table function"))),
    };
    arguments.iter().map(expr).collect()
}

fn expressions_of(call: &ast::Function) -> Result<Vec<ast::Expr>> {
    match &call.args {
        FunctionArguments::List(list) => expressions(&list.args),
        _ => Ok(Vec::new()),
    }
}

/// `TABLE t PARTITION BY k` or `(SELECT …)`: the plan, and the keys.
fn table(
    argument: &ast::Expr,
    cx: &mut dyn RelationPlannerContext,
) -> Result<Option<(LogicalPlan, Vec<ast::Expr>)>, DataFusionError> {
    match argument {
        ast::Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("table") => {
            let name = match &expressions_of(call)?[..] {
                [ast::Expr::CompoundIdentifier(parts)] => parts.clone(),
                [ast::Expr::Identifier(name)] => vec![name.clone()],
                _ => return Ok(None),
            };
            let keys = match &call.parameters {
                FunctionArguments::List(list) => expressions(&list.args)?,
                _ => Vec::new(),
            };
            let plan = cx.plan(factor(name, Vec::new()))?;
            Ok(Some((plan, keys)))
        }
        ast::Expr::Subquery(query) => {
            let subquery = query.clone();
            let plan = cx.plan(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })?;
            Ok(Some((plan, Vec::new())))
        }
        ast::Expr::Nested(inner) => table(inner, cx),
        _ => Ok(None),
    }
}

fn factor(name: Vec<Ident>, with_hints: Vec<ast::Expr>) -> TableFactor {
    factor_of(ObjectName::from(name), with_hints)
}

fn factor_of(name: ObjectName, with_hints: Vec<ast::Expr>) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}

/// The version of a table at a time of the row that it is joined with.
fn version(arguments: &[FunctionArg], cx: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let all = expressions(arguments)?;
    let [ast::Expr::Function(name), time, hints @ ..] = &all[..] else {
        return Err(mistake("FOR SYSTEM_TIME AS OF needs a table and a time"));
    };
    let name = match &expressions_of(name)?[..] {
        [ast::Expr::CompoundIdentifier(parts)] => parts.clone(),
        _ => return Err(mistake("FOR SYSTEM_TIME AS OF needs a table")),
    };
    let time = cx.sql_to_expr(time.clone(), &DFSchema::empty())?;
    let input = cx.plan(factor(name, hints.to_vec()))?;
    let schema = Arc::clone(input.schema());
    Ok(extension(Version { input, time, schema }))
}

/// Rows of values, whose columns have the types that the values of all rows fit into.
fn values(rows: Vec<ast::Expr>, cx: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let none = DFSchema::empty();
    let mut table: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
    for row in rows {
        let cells = if let ast::Expr::Tuple(cells) = row { cells } else { vec![row] };
        let cells = cells.into_iter().map(|cell| cx.sql_to_expr(cell, &none)).collect::<Result<Vec<_>>>()?;
        table.push(cells);
    }
    let width = table.first().map_or(0, Vec::len);
    if let Some(at) = table.iter().position(|row| row.len() != width) {
        let (number, has) = (at + 1, table[at].len());
        return Err(mistake(format!("row {number} of VALUES has {has} columns, and the first has {width}")));
    }
    let mut fields = Vec::with_capacity(width);
    for column in 0..width {
        let types = table.iter().map(|row| row[column].get_type(&none)).collect::<Result<Vec<_>>>()?;
        let common = unified(&format!("column {} of VALUES", column + 1), &types.iter().collect::<Vec<_>>())?;
        for (row, of) in table.iter_mut().zip(&types) {
            row[column] = converted(std::mem::take(&mut row[column]), of, &common)?;
        }
        fields.push(Field::new(format!("column{}", column + 1), common, true));
    }
    let schema = Arc::new(DFSchema::from_unqualified_fields(fields.into(), Default::default())?);
    Ok(LogicalPlan::Values(Values { schema, values: table }))
}

/// What UNNEST is of. The fields of a row that is beside it DataFusion does not find by a name of several parts.
fn collection(expr: ast::Expr, cx: &mut dyn RelationPlannerContext) -> Result<Expr> {
    let ast::Expr::CompoundIdentifier(parts) = &expr else { return cx.sql_to_expr(expr, &DFSchema::empty()) };
    let mut outcome = cx.sql_to_expr(expr.clone(), &DFSchema::empty());
    for length in (1..parts.len()).rev() {
        if outcome.is_ok() {
            break;
        }
        let row = match &parts[..length] {
            [name] => ast::Expr::Identifier(name.clone()),
            several => ast::Expr::CompoundIdentifier(several.to_vec()),
        };
        let field = |row: ast::Expr, name: &Ident| {
            ast::Expr::Function(crate::parse::call_of("flink_get_field", vec![row, crate::parse::text_of(&name.value)]))
        };
        if let Ok(found) = cx.sql_to_expr(parts[length..].iter().fold(row, field), &DFSchema::empty()) {
            outcome = Ok(found);
        }
    }
    outcome
}

/// The elements of a collection: columns `f0`, `f1`, … but for rows, whose fields have names.
fn elements(collection: Expr, with_ordinality: bool, what: &str) -> Result<LogicalPlan> {
    let field = collection.to_field(&DFSchema::empty())?.1;
    let of = field.data_type().clone();
    let of_element = |element: &Field| match element.data_type() {
        DataType::Struct(fields) => fields.iter().map(|field| field.as_ref().clone()).collect(),
        _ => vec![element.clone().with_name("EXPR$0")],
    };
    let mut fields: Vec<Field> = match &of {
        DataType::List(element) => of_element(element),
        DataType::Map(entries, _) if is_multiset(&field) => match entries.data_type() {
            DataType::Struct(pair) if !pair.is_empty() => of_element(&pair[0]),
            _ => Vec::new(),
        },
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields
                .iter()
                .zip(["KEY", "VALUE"])
                .map(|(field, name)| field.as_ref().clone().with_name(name))
                .collect(),
            _ => Vec::new(),
        },
        other => {
            return Err(mistake(format!("{what} needs an ARRAY, a MAP or a MULTISET, found {}", name_of(other))));
        }
    };
    if with_ordinality {
        fields.push(Field::new("ORDINALITY", DataType::Int32, false));
    }
    let fields = fields.into_iter().map(|field| (None, Arc::new(field))).collect();
    let schema = Arc::new(DFSchema::new_with_metadata(fields, Default::default())?);
    Ok(extension(Elements { collection, with_ordinality, schema }))
}
