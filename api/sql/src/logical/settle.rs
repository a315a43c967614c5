//! What stood for something else while types were found becomes that, and what must have one type has it.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, Union, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};

use super::coerce::{compared_as, converted, converted_in};
use super::correlate;
use super::errors::mistake;
use super::operators::{compare, constant};
use super::special::{CASE, IN, NOT_IN, unified, values_of_case};
use super::{group_windows, grouping_sets, membership, quantified};
use crate::types::name_of;

/// A plan as DataFusion's rules and the planner know it.
pub(super) fn settled(plan: LogicalPlan, constants: &[ScalarValue]) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| Ok(Transformed::yes(node(plan, constants)?)))?.data;
    correlate::alone(plan)
}

/// The same for an expression over `schema`.
pub(super) fn settled_expr(expr: Expr, schema: &DFSchema, constants: &[ScalarValue]) -> Result<Expr> {
    Ok(expr.transform_up(|expr| Ok(Transformed::yes(expression(expr, schema, constants)?)))?.data)
}

fn node(plan: LogicalPlan, constants: &[ScalarValue]) -> Result<LogicalPlan> {
    let plan = match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let computed = grouping_sets::computed(&aggregate);
            LogicalPlan::Aggregate(if computed.is_empty() {
                aggregate
            } else {
                let input = node(grouping_sets::below(&aggregate, &computed)?, constants)?;
                grouping_sets::above(aggregate, input, &computed)?
            })
        }
        other => other,
    };
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let is_condition = matches!(plan, LogicalPlan::Filter(_));
    let plan = plan.map_expressions(|expr| {
        let is_set = matches!(expr, Expr::GroupingSet(_));
        let name = names.save(&expr);
        let new = membership::resolved(settled_expr(expr, &schema, constants)?, &schema, is_condition)?;
        Ok(Transformed::yes(if is_set { new } else { name.restore(new) }))
    })?;
    let plan = match plan.data {
        LogicalPlan::Filter(filter) => {
            LogicalPlan::Filter(Filter::try_new(truth(filter.predicate, &schema, "WHERE")?, filter.input)?)
        }
        LogicalPlan::Join(join) => correlate::join(of_one_type(join, &schema)?)?,
        LogicalPlan::Union(union) => with_common_types(union)?,
        LogicalPlan::Aggregate(aggregate) => group_windows::aggregate(aggregate)?,
        other => other,
    };
    quantified::joined(plan)?.recompute_schema()
}

fn truth(expr: Expr, schema: &DFSchema, clause: &str) -> Result<Expr> {
    match expr.get_type(schema)? {
        DataType::Boolean => Ok(expr),
        DataType::Null => converted(expr, &DataType::Null, &DataType::Boolean),
        other => Err(mistake(format!("the condition of {clause} is {}, not BOOLEAN", name_of(&other)))),
    }
}

/// The columns that USING and INTERSECT compare.
fn of_one_type(mut join: Join, schema: &DFSchema) -> Result<Join> {
    if let Some(filter) = join.filter.take() {
        join.filter = Some(truth(filter, schema, "ON")?);
    }
    let (left_schema, right_schema) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let mut on = Vec::new();
    for (left, right) in std::mem::take(&mut join.on) {
        let (left_type, right_type) = (left.get_type(&left_schema)?, right.get_type(&right_schema)?);
        let common = compared_as(&left_type, &right_type).ok_or_else(|| {
            let (left_name, right_name) = (name_of(&left_type), name_of(&right_type));
            mistake(format!("'{left}' is {left_name} and '{right}' is {right_name}: they cannot be compared"))
        })?;
        on.push((converted(left, &left_type, &common)?, converted(right, &right_type, &common)?));
    }
    join.on = on;
    Ok(join)
}

/// All queries of a UNION give the types that values of all of them fit into.
fn with_common_types(union: Union) -> Result<LogicalPlan> {
    let width = union.schema.fields().len();
    let mut types = Vec::with_capacity(width);
    for at in 0..width {
        let all: Vec<&DataType> = union.inputs.iter().map(|input| input.schema().field(at).data_type()).collect();
        types.push(unified(&format!("column {} of UNION", at + 1), &all)?);
    }
    let mut inputs = Vec::new();
    for input in &union.inputs {
        let is_typed = input.schema().fields().iter().zip(&types).all(|(field, of)| field.data_type() == of);
        if is_typed {
            inputs.push(Arc::clone(input));
            continue;
        }
        let columns = input.schema().columns().into_iter().zip(input.schema().fields()).zip(&types);
        let columns = columns.map(|((column, field), of)| {
            let name = column.name.clone();
            Ok(converted(Expr::Column(column), field.data_type(), of)?.alias(name))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        inputs.push(Arc::new(LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?));
    }
    let fields = union.schema.iter().zip(&types).enumerate().map(|(at, ((qualifier, field), of))| {
        let is_nullable = inputs.iter().any(|input| input.schema().field(at).is_nullable());
        let field = field.as_ref().clone().with_data_type(of.clone()).with_nullable(is_nullable);
        (qualifier.cloned(), Arc::new(field))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone())?;
    Ok(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) }))
}

fn expression(expr: Expr, schema: &DFSchema, constants: &[ScalarValue]) -> Result<Expr> {
    match expr {
        Expr::Placeholder(placeholder) => match constant(constants, &placeholder.id) {
            Some(value) => Ok(Expr::Literal(value.clone(), None)),
            None => Err(mistake(format!("'{}' is no value: there are no parameters", placeholder.id))),
        },
        Expr::ScalarFunction(call) => match call.func.name() {
            CASE => case(call.args, schema),
            IN => in_list(call.args, false, schema),
            NOT_IN => in_list(call.args, true, schema),
            // Only the value that counts is computed.
            "flink_if" if call.args.len() == 3 => case(call.args, schema),
            "flink_get_field" => match group_windows::bound(&call) {
                Some(column) => Ok(column),
                None => arguments(call, schema),
            },
            _ => arguments(call, schema),
        },
        Expr::InSubquery(found) if membership::is_of_tuples(&found) => Ok(Expr::InSubquery(found)),
        Expr::InSubquery(found) => in_subquery(found, schema),
        Expr::SetComparison(found) => quantified::typed(found, schema),
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            for argument in &mut params.args {
                if argument.get_type(schema)? == DataType::Null {
                    return Err(mistake(format!("{} of a NULL without a type: CAST it", func.name().to_uppercase())));
                }
            }
            if let Some(filter) = params.filter.take() {
                params.filter = Some(Box::new(truth(*filter, schema, "FILTER")?));
            }
            params.args = as_taken(std::mem::take(&mut params.args), func.as_ref(), schema)?;
            Ok(Expr::AggregateFunction(AggregateFunction { func, params }))
        }
        Expr::WindowFunction(mut call) => {
            call.params.window_frame = frame(&call.params.window_frame)?;
            if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun {
                let arguments = std::mem::take(&mut call.params.args);
                call.params.args = as_taken(arguments, function.as_ref(), schema)?;
            }
            // The default of LAG and LEAD has the type of the value.
            if let [value, _, default] = &mut call.params.args[..] {
                let of = value.get_type(schema)?;
                *default = converted_in(default.clone(), schema, &of)?;
            }
            Ok(Expr::WindowFunction(call))
        }
        Expr::Like(like) => {
            for side in [&like.expr, &like.pattern] {
                let of = side.get_type(schema)?;
                if !matches!(of, DataType::Utf8 | DataType::Null) {
                    return Err(mistake(format!("LIKE compares STRINGs, found {}", name_of(&of))));
                }
            }
            Ok(Expr::Like(like))
        }
        Expr::Not(inner) => Ok(Expr::Not(Box::new(truth(*inner, schema, "NOT")?))),
        other => Ok(other),
    }
}

/// A range in milliseconds.
fn frame(frame: &WindowFrame) -> Result<WindowFrame> {
    if frame.units != WindowFrameUnits::Range {
        return Ok(frame.clone());
    }
    let millis = |value: &ScalarValue| match value {
        ScalarValue::Utf8(Some(text)) => match text.parse() {
            Ok(millis) => Ok(ScalarValue::DurationMillisecond(Some(millis))),
            Err(_) => Err(mistake(format!("'{text}' is no RANGE of a window: use an INTERVAL"))),
        },
        other => Ok(other.clone()),
    };
    let bound = |bound: &WindowFrameBound| {
        Ok::<_, datafusion::common::DataFusionError>(match bound {
            WindowFrameBound::Preceding(value) => WindowFrameBound::Preceding(millis(value)?),
            WindowFrameBound::Following(value) => WindowFrameBound::Following(millis(value)?),
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        })
    };
    Ok(WindowFrame::new_bounds(frame.units, bound(&frame.start_bound)?, bound(&frame.end_bound)?))
}

/// Conditions and values in turn, and the value of ELSE.
fn case(arguments: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let types = arguments.iter().map(|argument| argument.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let to = unified("CASE", &values_of_case(&types))?;
    let last = arguments.len().saturating_sub(1);
    let mut conditions = Vec::new();
    let (mut branches, mut otherwise) = (Vec::new(), None);
    for (at, (argument, of)) in arguments.into_iter().zip(&types).enumerate() {
        if at == last {
            otherwise = Some(Box::new(converted(argument, of, &to)?));
        } else if at % 2 == 0 {
            conditions.push(Box::new(converted(argument, of, &DataType::Boolean)?));
        } else {
            branches.push(Box::new(converted(argument, of, &to)?));
        }
    }
    Ok(Expr::Case(Case::new(None, conditions.into_iter().zip(branches).collect(), otherwise)))
}

fn in_list(arguments: Vec<Expr>, negated: bool, schema: &DFSchema) -> Result<Expr> {
    let types = arguments.iter().map(|argument| argument.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let mut common = types[0].clone();
    for of in &types[1..] {
        common = compared_as(&common, of).ok_or_else(|| {
            mistake(format!("IN compares {} with {}: CAST one of them", name_of(&types[0]), name_of(of)))
        })?;
    }
    let mut converted = arguments
        .into_iter()
        .zip(&types)
        .map(|(argument, of)| converted(argument, of, &common))
        .collect::<Result<Vec<_>>>()?;
    let expr = converted.remove(0);
    if !matches!(
        common,
        DataType::Float32 | DataType::Float64 | DataType::Struct(_) | DataType::List(_) | DataType::Map(..)
    ) {
        return Ok(Expr::InList(InList::new(Box::new(expr), converted, negated)));
    }
    let mut any: Option<Expr> = None;
    for value in converted {
        let is_same = compare(Operator::Eq, expr.clone(), value, &common)?;
        any = Some(match any {
            Some(any) => any.or(is_same),
            None => is_same,
        });
    }
    let any = any.ok_or_else(|| mistake("IN () has nothing in it"))?;
    Ok(if negated { Expr::Not(Box::new(any)) } else { any })
}

fn in_subquery(found: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let [(_, field)] = found.subquery.subquery.schema().iter().collect::<Vec<_>>()[..] else {
        return Err(mistake("a value is compared with a query of one column: two of (a, b) IN (SELECT x, y …)"));
    };
    let (left, right) = (found.expr.get_type(schema)?, field.data_type().clone());
    if left == right {
        return Ok(Expr::InSubquery(found));
    }
    let common = compared_as(&left, &right)
        .ok_or_else(|| mistake(format!("IN compares {} with {}: CAST one of them", name_of(&left), name_of(&right))))?;
    let subquery = query_as(&found.subquery, &common)?;
    let expr = Box::new(converted(*found.expr, &left, &common)?);
    Ok(Expr::InSubquery(InSubquery::new(expr, subquery, found.negated)))
}

/// A query of one column with that in the type `to`.
pub(super) fn query_as(query: &Subquery, to: &DataType) -> Result<Subquery> {
    let plan = &query.subquery;
    let from = plan.schema().field(0).data_type();
    if from == to {
        return Ok(query.clone());
    }
    let column = plan.schema().columns().remove(0);
    let name = column.name.clone();
    let column = converted(Expr::Column(column), from, to)?.alias(name);
    let plan = LogicalPlanBuilder::from(plan.as_ref().clone()).project([column])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..query.clone() })
}

/// A NULL that has no type has that of the parameter; so have values that a function takes otherwise.
fn arguments(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let arguments = as_taken(call.args, call.func.as_ref(), schema)?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(call.func, arguments)))
}

/// Arguments as a function takes them.
fn as_taken<F: UDFCoercionExt>(arguments: Vec<Expr>, function: &F, schema: &DFSchema) -> Result<Vec<Expr>> {
    if arguments.is_empty() {
        return Ok(arguments);
    }
    let fields =
        arguments.iter().map(|argument| Ok(argument.to_field(schema)?.1)).collect::<Result<Vec<FieldRef>>>()?;
    let wanted = fields_with_udf(&fields, function)?;
    let pairs = arguments.into_iter().zip(fields.iter().zip(&wanted));
    pairs.map(|(argument, (field, wanted))| converted(argument, field.data_type(), wanted.data_type())).collect()
}
