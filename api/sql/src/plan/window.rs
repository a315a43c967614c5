//! Window table functions, and rows of collections.

use arrow::datatypes::{DataType, FieldRef};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{OperatorSpec, TimeSpec, WindowColumn, WindowSpec};

use super::Planner;
use super::calc::Needed;
use super::expr::{PExpr, as_column, column, physical, refused};
use super::rel::{Id, Op, Time, Windows, field, fields_of};
use crate::logical::nodes::{UnnestJoin, WindowTable};

/// What tells windows of local time in a zone from others.
pub(super) fn of_zone(zone: Option<&String>) -> String {
    zone.map(|zone| format!(" {zone}")).unwrap_or_default()
}

impl Planner<'_> {
    /// `TABLE(TUMBLE(…))`.
    pub(super) fn windowed(&mut self, window: &WindowTable) -> Result<Id> {
        let input = self.convert(&window.input, false)?;
        let schema = window.input.schema();
        let width = self.width(input);
        let mut needed = Needed::all(self.fields(input));
        let mut place = |expr: PExpr| -> Result<usize> {
            let data_type = expr.data_type(schema.as_arrow()).map_err(refused)?;
            Ok(needed.position(expr, |index| field(format!("$f{index}"), data_type)))
        };
        let time = place(physical(&window.time, schema)?)?;
        let partition =
            window.partition.iter().map(|expr| place(physical(expr, schema)?)).collect::<Result<Vec<_>>>()?;
        let extended = needed.exprs.len();
        let input = self.calc(input, Vec::new(), needed.exprs, needed.fields)?;
        let time = match (self.props(input).times[time], self.settings.is_batch) {
            (Some(Time::Processing), _) => TimeSpec::Processing,
            (Some(Time::Event), _) | (_, true) => TimeSpec::Event(time),
            (None, false) => {
                return Err(Error::input(format!(
                    "windows of a stream are made by a time attribute, and '{}' is none: use the column of the table's WATERMARK, or PROCTIME()",
                    self.schema(input).field(time).name()
                )));
            }
        };
        let fields = fields_of(window.schema.fields());
        let windowed = self.window_table(input, window.window, time, partition, &fields[width..])?;
        let columns = (0..width).chain(extended..extended + 3).map(column).collect();
        self.calc(windowed, Vec::new(), columns, fields)
    }

    pub(super) fn window_table(
        &mut self,
        input: Id,
        window: WindowSpec,
        time: TimeSpec,
        partition: Vec<usize>,
        window_fields: &[FieldRef],
    ) -> Result<Id> {
        let is_instant = matches!(window_fields[2].data_type(), DataType::Timestamp(_, Some(_)));
        let zone = if is_instant { self.settings.zone()? } else { None };
        let below = self.props(input).clone();
        let mut fields = self.fields(input);
        let width = fields.len();
        fields.extend_from_slice(window_fields);
        let mut props = below.widened(3);
        // The window's time is the attribute from now on.
        let is_processing = time == TimeSpec::Processing;
        props.times[..width].iter_mut().filter(|time| **time == Some(Time::Event)).for_each(|time| *time = None);
        props.times[width + 2] = Some(if is_processing { Time::Processing } else { Time::Event });
        props.trends.fill(None);
        let columns = [WindowColumn::Start, WindowColumn::End, WindowColumn::Time].map(Some);
        let columns = std::iter::repeat_n(None, width).chain(columns).collect();
        props.windows = Some(Windows { spec: window, zone: zone.clone(), is_processing, columns });
        for key in &mut props.keys {
            key.extend([width, width + 1]);
        }
        let what = format!("WindowTable {window:?} {time:?} {partition:?}{}", of_zone(zone.as_ref()));
        let op = OperatorSpec::WindowTable { window, time, partition, zone };
        Ok(self.add(Op::Spec(op), &[input], fields, props, &what))
    }

    /// `JOIN UNNEST(…)`.
    pub(super) fn unnest(&mut self, unnest: &UnnestJoin) -> Result<Id> {
        let input = self.convert(&unnest.input, false)?;
        let schema = unnest.input.schema();
        let width = self.width(input);
        let mut needed = Needed::all(self.fields(input));
        let expr = physical(&unnest.collection, schema)?;
        let name = as_column(&expr).map(|index| schema.field(index).name().clone());
        let data_type = expr.data_type(schema.as_arrow()).map_err(refused)?;
        let collection = needed.position(expr, |index| field(name.unwrap_or_else(|| format!("$f{index}")), data_type));
        let extended = needed.exprs.len();
        let input = self.calc(input, Vec::new(), needed.exprs, needed.fields)?;
        let fields = fields_of(unnest.schema.fields());
        let elements = &fields[width..];
        let joined = self.elements(input, (collection, true), unnest.is_outer, unnest.with_ordinality, elements);
        let columns = (0..width).chain(extended..extended + elements.len()).map(column).collect();
        self.calc(joined, Vec::new(), columns, fields)
    }

    /// Each row once for each element of a collection: of a column, and whether that stays.
    pub(super) fn elements(
        &mut self,
        input: Id,
        (collection, passes_collection): (usize, bool),
        is_outer: bool,
        with_ordinality: bool,
        elements: &[FieldRef],
    ) -> Id {
        let mut fields = self.fields(input);
        fields.extend_from_slice(elements);
        let mut props = self.props(input).widened(elements.len());
        props.trends.fill(None);
        props.keys = Vec::new();
        // An updated collection may have less.
        props.kinds.delete |= props.kinds.update;
        if with_ordinality {
            let ordinal = fields.len() - 1;
            let with = |key: &Vec<usize>| key.iter().copied().chain([ordinal]).collect();
            props.keys = self.props(input).keys.iter().map(with).collect();
        }
        if !passes_collection {
            fields.remove(collection);
            let rest = (0..props.times.len()).filter(|index| *index != collection).map(column);
            props = props.project(&rest.collect::<Vec<_>>());
        }
        let what = format!("Unnest {collection} {passes_collection} {is_outer} {with_ordinality}");
        let op = OperatorSpec::Unnest { column: collection, passes_collection, is_outer, with_ordinality };
        self.add(Op::Spec(op), &[input], fields, props, &what)
    }
}
