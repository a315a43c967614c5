//! Operators as Flink shows them.

use arrow::datatypes::SchemaRef;
use flott_sql_runtime::program::kind_of;
use flott_sql_runtime::spec::{
    AggregateSpec, ExprSpec, JoinKind, OperatorSpec, OverFrame, SortColumn, TimeSpec, TopNInput, WindowColumn,
    WindowSpec,
};

/// How `op` is shown: `GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])`.
pub(super) fn name(op: &OperatorSpec, inputs: &[SchemaRef], output: &SchemaRef) -> String {
    let first = inputs.first();
    let column = |index: usize| match first {
        Some(schema) if index < schema.fields().len() => schema.field(index).name().as_str(),
        _ => "?",
    };
    let columns = |list: &[usize]| list.iter().map(|&index| column(index)).collect::<Vec<_>>().join(", ");
    let right = |list: &[usize]| match inputs.get(1) {
        Some(schema) => list.iter().map(|&index| schema.field(index).name().clone()).collect::<Vec<_>>(),
        None => Vec::new(),
    };
    let out = |index: usize| output.field(index).name().as_str();
    let fields = || output.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
    let order = |order: &[SortColumn]| {
        order.iter().map(|sort| sorted(column(sort.column), sort)).collect::<Vec<_>>().join(", ")
    };
    let aggregates = |list: &[AggregateSpec], from: usize| -> Vec<String> {
        list.iter().enumerate().map(|(index, aggregate)| renamed(&aggregate.text, out(from + index))).collect()
    };
    let groups = |keys: &[usize]| match keys.is_empty() {
        true => String::new(),
        false => format!("groupBy=[{}], ", columns(keys)),
    };
    let equal = |left: &[usize], of_right: &[usize], rest: Option<&ExprSpec>| {
        let mut all: Vec<String> =
            left.iter().zip(right(of_right)).map(|(left, right)| format!("{} = {right}", column(*left))).collect();
        all.extend(rest.map(|expr| expr.text.clone()));
        if all.is_empty() { "true".to_owned() } else { all.join(" AND ") }
    };
    let kind = kind_of(op);
    match op {
        OperatorSpec::Source(source) => {
            let mut more = String::new();
            if !source.filters.is_empty() {
                let filters: Vec<&str> = source.filters.iter().map(|filter| filter.text.as_str()).collect();
                more.push_str(&format!(", filter=[{}]", filters.join(" AND ")));
            }
            if let Some(limit) = source.limit {
                more.push_str(&format!(", limit=[{limit}]"));
            }
            format!("{kind}(table=[[{}{more}]], fields=[{}])", source.table.replace('.', ", "), fields())
        }
        OperatorSpec::Commit(sink) => format!("{kind}(table=[{}])", sink.table),
        OperatorSpec::Sink(sink) => format!("{kind}(table=[{}], fields=[{}])", sink.table, fields()),
        OperatorSpec::Watermark(watermark) => {
            format!("{kind}(rowtime=[{}], watermark=[{}])", column(watermark.column), watermark.watermark.text)
        }
        OperatorSpec::Calc { condition, projection } => {
            let select: Vec<String> =
                projection.iter().enumerate().map(|(index, expr)| renamed(&plain(expr), out(index))).collect();
            let condition = condition.as_ref().map(|expr| format!(", where=[{}]", expr.text)).unwrap_or_default();
            format!("{kind}(select=[{}]{condition})", select.join(", "))
        }
        OperatorSpec::Expand { projections } => {
            let row = |row: &Vec<ExprSpec>| {
                let row: Vec<String> =
                    row.iter().enumerate().map(|(index, expr)| renamed(&plain(expr), out(index))).collect();
                format!("{{{}}}", row.join(", "))
            };
            format!("{kind}(projects=[{}])", projections.iter().map(row).collect::<Vec<_>>().join(", "))
        }
        OperatorSpec::WindowTable { window, time, partition, .. } => {
            let partition =
                if partition.is_empty() { String::new() } else { format!(", partition keys=[{}]", columns(partition)) };
            format!("{kind}(window=[{}]{partition})", window_text(*window, &time_text(time, &column)))
        }
        OperatorSpec::GroupAggregate(group) => {
            let mut select: Vec<String> = group.keys.iter().map(|&key| column(key).to_owned()).collect();
            select.extend(aggregates(&group.aggregates, group.keys.len()));
            let phase = if group.has_partials { "Global" } else { "" };
            format!("{phase}{kind}({}select=[{}])", groups(&group.keys), select.join(", "))
        }
        OperatorSpec::LocalAggregate(local) => {
            let mut select: Vec<String> = local.keys.iter().map(|&key| column(key).to_owned()).collect();
            select.extend(local.aggregates.iter().map(|aggregate| aggregate.text.clone()));
            let shown = |(window, time): &(WindowSpec, TimeSpec)| {
                format!("window=[{}], ", window_text(*window, &time_text(time, &column)))
            };
            let windows = local.windows.as_ref().map(shown).unwrap_or_default();
            format!("{kind}({}{windows}select=[{}])", groups(&local.keys), select.join(", "))
        }
        OperatorSpec::WindowAggregate(window) => {
            let mut select: Vec<String> = window.keys.iter().map(|&key| column(key).to_owned()).collect();
            select.extend(aggregates(&window.aggregates, window.keys.len()));
            for (index, what) in window.window_columns.iter().enumerate() {
                let what = match what {
                    WindowColumn::Start => "start('w$)",
                    WindowColumn::End => "end('w$)",
                    WindowColumn::Time => "rowtime('w$)",
                };
                select.push(renamed(what, out(window.keys.len() + window.aggregates.len() + index)));
            }
            let shown = window_text(window.window, &time_text(&window.time, &column));
            let phase = if window.has_partials { "Global" } else { "" };
            format!("{phase}{kind}({}window=[{shown}], select=[{}])", groups(&window.keys), select.join(", "))
        }
        OperatorSpec::Over(over) => {
            let (unit, before) = match over.frame {
                OverFrame::Rows(rows) => ("ROWS", rows.map(|rows| rows.to_string())),
                OverFrame::Range(range) => ("RANGE", range.map(|range| range.to_string())),
            };
            let before = match before.as_deref() {
                None => "UNBOUNDED PRECEDING".to_owned(),
                Some("0") => "CURRENT ROW".to_owned(),
                Some(before) => format!("{before} PRECEDING"),
            };
            let width = output.fields().len() - over.aggregates.len();
            let mut select: Vec<String> = (0..width).map(|index| column(index).to_owned()).collect();
            select.extend(aggregates(&over.aggregates, width));
            let partition = match over.partition.is_empty() {
                true => String::new(),
                false => format!("partitionBy=[{}], ", columns(&over.partition)),
            };
            format!(
                "{kind}({partition}orderBy=[{}], window=[{unit} BETWEEN {before} AND CURRENT ROW], select=[{}])",
                order(&over.order),
                select.join(", ")
            )
        }
        OperatorSpec::TopN(top) => {
            let strategy = match &top.input {
                TopNInput::InsertOnly => "AppendFastStrategy".to_owned(),
                TopNInput::Improving(key) => {
                    let key: Vec<String> = key.iter().map(ToString::to_string).collect();
                    format!("UpdateFastStrategy[{}]", key.join(","))
                }
                TopNInput::Retract => "RetractStrategy".to_owned(),
            };
            format!(
                "{kind}(strategy=[{strategy}], rankType=[ROW_NUMBER], rankRange=[rankStart={}, rankEnd={}], partitionBy=[{}], orderBy=[{}], select=[{}])",
                top.from,
                top.to,
                columns(&top.partition),
                order(&top.order),
                fields()
            )
        }
        OperatorSpec::Deduplicate(deduplicate) => {
            let keep = if deduplicate.keeps_last { "LastRow" } else { "FirstRow" };
            let time = match &deduplicate.time {
                TimeSpec::Event(time) => format!("ROWTIME {}", column(*time)),
                _ => "PROCTIME".to_owned(),
            };
            format!("{kind}(keep=[{keep}], key=[{}], order=[{time}])", columns(&deduplicate.partition))
        }
        OperatorSpec::WindowTopN(top) => format!(
            "{kind}(window=[win_end=[{}]], rankType=[ROW_NUMBER], rankRange=[rankStart={}, rankEnd={}], partitionBy=[{}], orderBy=[{}], select=[{}])",
            column(top.window_end),
            top.from,
            top.to,
            columns(&top.partition),
            order(&top.order),
            fields()
        ),
        OperatorSpec::Join(join) => format!(
            "{kind}(joinType=[{}], where=[{}], select=[{}], leftInputSpec=[{}], rightInputSpec=[{}])",
            join_text(join.kind),
            equal(&join.left.keys, &join.right.keys, join.condition.as_ref()),
            fields(),
            side(&join.left),
            side(&join.right)
        ),
        OperatorSpec::IntervalJoin(join) => format!(
            "{kind}(joinType=[{}], windowBounds=[isRowTime={}, leftLowerBound={}, leftUpperBound={}], where=[{}], select=[{}])",
            join_text(join.kind),
            join.left_time != TimeSpec::Processing,
            join.lower_ms,
            join.upper_ms,
            equal(&join.left_keys, &join.right_keys, join.condition.as_ref()),
            fields()
        ),
        OperatorSpec::WindowJoin(join) => format!(
            "{kind}(leftWindow=[win_end=[{}]], rightWindow=[win_end=[{}]], joinType=[{}], where=[{}], select=[{}])",
            column(join.left_window_end),
            right(&[join.right_window_end]).join(""),
            join_text(join.kind),
            equal(&join.left_keys, &join.right_keys, join.condition.as_ref()),
            fields()
        ),
        OperatorSpec::TemporalJoin(join) => format!(
            "{kind}(joinType=[{}], where=[{}], leftTime=[{}], select=[{}])",
            outer(join.is_left_outer),
            equal(&join.left_keys, &join.right_keys, join.condition.as_ref()),
            time_text(&join.left_time, &column),
            fields()
        ),
        OperatorSpec::LookupJoin(join) => {
            let schema = &join.table.table_schema;
            let lookup: Vec<String> = join
                .left_keys
                .iter()
                .zip(&join.right_keys)
                .map(|(left, right)| format!("{}={}", schema.field(*right).name(), column(*left)))
                .collect();
            let rest = join.condition.as_ref().map(|expr| format!(", where=[{}]", expr.text)).unwrap_or_default();
            format!(
                "{kind}(table=[{}], joinType=[{}], lookup=[{}]{rest}, select=[{}])",
                join.table.table,
                outer(join.is_left_outer),
                lookup.join(", "),
                fields()
            )
        }
        OperatorSpec::Unnest { column: collection, is_outer, .. } => format!(
            "{kind}(correlate=[UNNEST({})], joinType=[{}], select=[{}])",
            column(*collection),
            if *is_outer { "LEFT" } else { "INNER" },
            fields()
        ),
        OperatorSpec::ChangelogNormalize { key, .. } => format!("{kind}(key=[{}])", columns(key)),
        OperatorSpec::DropUpdateBefore => kind.to_owned(),
        OperatorSpec::TemporalSort { order: by, is_processing: false } => format!("{kind}(orderBy=[{}])", order(by)),
        OperatorSpec::TemporalSort { order: by, .. } => format!("{kind}(orderBy=[PROCTIME(), {}])", order(by)),
        OperatorSpec::Sort { order: by, offset, limit, .. } => {
            let limit = limit.map(|limit| format!(", offset=[{offset}], fetch=[{limit}]")).unwrap_or_default();
            format!("{kind}(orderBy=[{}]{limit})", order(by))
        }
        OperatorSpec::Limit { offset, limit, .. } => {
            let limit = if *limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() };
            format!("{kind}(offset=[{offset}], fetch=[{limit}])")
        }
        OperatorSpec::Values { rows } => {
            let row = |row: &Vec<ExprSpec>| format!("{{ {} }}", row.iter().map(plain).collect::<Vec<_>>().join(", "));
            match rows.len() {
                0..=5 => format!("{kind}(tuples=[{}])", rows.iter().map(row).collect::<Vec<_>>().join(", ")),
                many => format!("{kind}(tuples=[{many}])"),
            }
        }
        OperatorSpec::SinkMaterialize(materialize) => {
            format!("{kind}(key=[{}], conflict=[{:?}])", columns(&materialize.key), materialize.conflict)
        }
    }
}

/// A time as it is compared with others: `10 s`.
pub(super) fn duration(ms: i64) -> String {
    for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")] {
        if ms != 0 && ms % unit == 0 {
            return format!("{} {name}", ms / unit);
        }
    }
    format!("{ms} ms")
}

fn window_text(window: WindowSpec, time: &str) -> String {
    let offset = |offset: i64| match offset {
        0 => String::new(),
        offset => format!(", offset=[{}]", duration(offset)),
    };
    match window {
        WindowSpec::Tumble { size_ms, offset_ms } => {
            format!("TUMBLE({time}, size=[{}]{})", duration(size_ms), offset(offset_ms))
        }
        WindowSpec::Hop { slide_ms, size_ms, offset_ms } => {
            format!("HOP({time}, size=[{}], slide=[{}]{})", duration(size_ms), duration(slide_ms), offset(offset_ms))
        }
        WindowSpec::Cumulate { step_ms, size_ms, offset_ms } => {
            format!(
                "CUMULATE({time}, max_size=[{}], step=[{}]{})",
                duration(size_ms),
                duration(step_ms),
                offset(offset_ms)
            )
        }
        WindowSpec::Session { gap_ms } => format!("SESSION({time}, gap=[{}])", duration(gap_ms)),
    }
}

fn time_text<'a>(time: &TimeSpec, column: &dyn Fn(usize) -> &'a str) -> String {
    match time {
        TimeSpec::Event(time) => format!("time_col=[{}]", column(*time)),
        TimeSpec::Processing => "time_col=[PROCTIME()]".to_owned(),
        TimeSpec::Window { start, end } => format!("win_start=[{}], win_end=[{}]", column(*start), column(*end)),
    }
}

fn side(input: &flott_sql_runtime::spec::JoinInput) -> &'static str {
    match &input.unique_key {
        None => "NoUniqueKey",
        Some(key) if key.iter().all(|column| input.keys.contains(column)) => "JoinKeyContainsUniqueKey",
        Some(_) => "HasUniqueKey",
    }
}

fn join_text(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "InnerJoin",
        JoinKind::Left => "LeftOuterJoin",
        JoinKind::Right => "RightOuterJoin",
        JoinKind::Full => "FullOuterJoin",
        JoinKind::Semi => "LeftSemiJoin",
        JoinKind::Anti => "LeftAntiJoin",
    }
}

fn outer(is_left_outer: bool) -> &'static str {
    if is_left_outer { "LeftOuterJoin" } else { "InnerJoin" }
}

fn sorted(column: &str, sort: &SortColumn) -> String {
    let nulls = match (sort.is_descending, sort.nulls_first) {
        // Nulls are lowest unless said otherwise.
        (false, true) | (true, false) => "",
        (false, false) => " NULLS LAST",
        (true, true) => " NULLS FIRST",
    };
    format!("{column} {}{nulls}", if sort.is_descending { "DESC" } else { "ASC" })
}

fn renamed(what: &str, name: &str) -> String {
    if what == name { what.to_owned() } else { format!("{what} AS {name}") }
}

fn plain(expr: &ExprSpec) -> String {
    expr.text.clone()
}
