//! From the aggregates of a compiled plan to what runs.

use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use flott_core::{Error, Result};

use super::counts::ValueCounts;
use super::input::{Argument, Bound, Form, Values, filter_of};
use super::seen::Seen;
use super::state::Arena;
use super::user::{self, Named};
use crate::expr::Functions;
use crate::program::OperatorContext;
use crate::row::{RowDecoder, RowEncoder};
use crate::spec::{AggregateFunction, AggregateSpec};

/// What an aggregate does, and with what.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// How many rows, of which no argument is null.
    Count,
    /// The sum. Of nothing, null or zero.
    Sum { is_zero: bool },
    /// The mean.
    Mean,
    /// A variance, or its root.
    Spread { is_sample: bool, is_root: bool },
    /// The greatest or least of what only comes, of fixed size.
    Best { is_max: bool },
    /// The same, of texts or bytes.
    BestBlob { is_max: bool },
    /// The greatest or least of what may go again.
    Ordered { is_max: bool },
    /// Values at some places among all, from 0 to 1.
    Percentile { at: Vec<f64> },
    /// The first or last that is not null.
    Edge { is_first: bool },
    /// Texts one after the other. The separator, unless it is a second argument.
    Text { separator: Option<String> },
    /// Values and how often.
    Bag,
    /// Values in order.
    Array,
    /// Distinct values, estimated.
    Approximate,
    /// The only row.
    Only,
    /// A JSON object.
    JsonObject { absent_on_null: bool },
    /// A JSON array.
    JsonArray { absent_on_null: bool },
    /// A function of the program.
    User(Named),
}

/// One aggregate.
#[derive(Debug)]
pub(super) struct Aggregate {
    pub(super) kind: Kind,
    /// Among the arguments. None for COUNT(*).
    pub(super) argument: Option<usize>,
    /// The form of that.
    pub(super) form: Form,
    /// The types of its columns.
    pub(super) types: Vec<DataType>,
    pub(super) result: DataType,
    /// Among the filters.
    pub(super) filter: Option<usize>,
    /// Among the sets of distinct values, and its view of that.
    pub(super) set: Option<View>,
    /// Where its words begin.
    pub(super) word: usize,
    /// Which of the states without fixed size is its own.
    pub(super) rich: usize,
    /// Reads what it keeps.
    pub(super) decoder: Option<RowDecoder>,
    /// Reads what is put together of that.
    pub(super) result_decoder: RowDecoder,
    pub(super) text: String,
}

/// Which distinct values an aggregate is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) set: usize,
    /// Among the set's filters.
    pub(super) view: usize,
}

/// Distinct values that some aggregates are of.
#[derive(Debug)]
pub(super) struct DistinctSet {
    pub(super) columns: Vec<usize>,
    pub(super) argument: usize,
    /// The filter of each view of it. Where values may go again, there is one.
    pub(super) filters: Vec<Option<usize>>,
    pub(super) rich: usize,
    pub(super) decoder: RowDecoder,
}

impl DistinctSet {
    /// Whether several aggregates have a view of it. Then values are kept with the views that have seen them, else with how
    /// often they are there.
    pub(super) fn is_shared(&self) -> bool {
        self.filters.len() > 1
    }
}

/// The aggregates of an operator.
#[derive(Debug)]
pub struct Aggregates {
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) sets: Vec<DistinctSet>,
    pub(super) arguments: Vec<Argument>,
    filters: Vec<usize>,
    words: usize,
    riches: usize,
    pub(super) retracts: bool,
    pub(super) input: SchemaRef,
}

impl Aggregates {
    /// For rows of `input`, without functions of the program. `retracts` says whether rows may be taken back.
    ///
    /// # Errors
    /// A function does not work on its arguments, or is not there.
    pub fn new(specs: &[AggregateSpec], input: &SchemaRef, retracts: bool) -> Result<Self> {
        Self::with(specs, input, retracts, &Functions::new([]))
    }

    /// The same with the program's functions.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with(specs: &[AggregateSpec], input: &SchemaRef, retracts: bool, functions: &Functions) -> Result<Self> {
        let mut new = Self {
            aggregates: Vec::new(),
            sets: Vec::new(),
            arguments: Vec::new(),
            filters: Vec::new(),
            words: 0,
            riches: 0,
            retracts,
            input: Arc::clone(input),
        };
        for spec in specs {
            let aggregate = new.aggregate(spec, functions)?;
            new.aggregates.push(aggregate);
        }
        Ok(new)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.aggregates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.aggregates.is_empty()
    }

    /// An arena for groups of these.
    pub fn arena(&self) -> Arena {
        Arena::new(self.words, self.riches)
    }

    /// An arena for groups of these that have keys: distinct values, and those that extremes and percentiles are of, are entries
    /// of keyed state by themselves, so that a change costs the same however many there are. `may_go` says whether groups may go
    /// that still have rows.
    pub fn named_arena(&self, may_go: bool, cx: &OperatorContext<'_>) -> Arena {
        let mut arena = self.arena();
        let mut counts: Vec<Option<ValueCounts>> = (0..self.riches).map(|_| None).collect();
        for (number, set) in self.sets.iter().enumerate() {
            // Which filters have seen a value is another state than how often it is there.
            let form = if set.filters.len() > 1 { "seen" } else { "distinct" };
            counts[set.rich] = Some(ValueCounts::new(&format!("{form}{number}"), self.retracts || may_go, cx));
        }
        for (number, aggregate) in self.aggregates.iter().enumerate() {
            if matches!(aggregate.kind, Kind::Ordered { .. } | Kind::Percentile { .. }) {
                counts[aggregate.rich] = Some(ValueCounts::new(&format!("ordered{number}"), true, cx));
            }
        }
        if counts.iter().any(Option::is_some) {
            arena.counts = counts;
        }
        arena
    }

    /// Resolves the arguments of a batch.
    pub fn bind(&self, batch: &RecordBatch) -> Result<Bound> {
        let values = self.arguments.iter().map(|argument| argument.resolve(batch.columns(), batch.num_rows()));
        Ok(Bound {
            rows: batch.num_rows(),
            values: values.collect::<Result<_>>()?,
            filters: self.filters.iter().map(|column| filter_of(batch, *column)).collect::<Result<_>>()?,
        })
    }

    /// The same of values of a set, all of which count.
    pub(super) fn bind_values(&self, set: usize, columns: &[ArrayRef], rows: usize) -> Result<Bound> {
        let nothing: ArrayRef = Arc::new(NullArray::new(rows));
        let mut all: Vec<ArrayRef> = self.input.fields().iter().map(|_| ArrayRef::clone(&nothing)).collect();
        for (place, column) in self.sets[set].columns.iter().zip(columns) {
            all[*place] = ArrayRef::clone(column);
        }
        let empty = || Values::Validity(None);
        let mut values: Vec<Values> = self.arguments.iter().map(|_| empty()).collect();
        for aggregate in self.aggregates.iter().filter(|aggregate| aggregate.set.is_some_and(|view| view.set == set)) {
            if let Some(argument) = aggregate.argument {
                values[argument] = self.arguments[argument].resolve(&all, rows)?;
            }
        }
        Ok(Bound { rows, values, filters: self.filters.iter().map(|_| vec![true; rows]).collect() })
    }

    fn aggregate(&mut self, spec: &AggregateSpec, functions: &Functions) -> Result<Aggregate> {
        if !spec.order.is_empty() {
            return Err(refused(spec, "WITHIN GROUP is not there yet: leave it out"));
        }
        let types: Vec<DataType> =
            spec.arguments.iter().map(|column| self.input.field(*column).data_type().clone()).collect();
        let (kind, form) = match user::of(spec, functions)? {
            Some(function) => (Kind::User(function), Form::Columns),
            None => self.kind_of(spec, &types)?,
        };
        let (words, is_rich) = match &kind {
            Kind::Count => (1, false),
            Kind::Sum { .. } | Kind::Mean if form == Form::Decimals => (5, false),
            Kind::Sum { .. } | Kind::Mean => (2, false),
            Kind::Spread { .. } => (3, false),
            Kind::Best { .. } if form == Form::Decimals => (3, false),
            Kind::Best { .. } => (2, false),
            _ => (0, true),
        };
        let filter = spec
            .filter
            .map(|column| position(&mut self.filters, |known| *known == column, || Ok(column)))
            .transpose()?;
        let argument = match spec.arguments.is_empty() {
            true => None,
            false => Some(self.argument(&spec.arguments, form)?),
        };
        let set =
            (spec.is_distinct && !spec.arguments.is_empty()).then(|| self.set(spec, filter, &types)).transpose()?;
        let new = Aggregate {
            kind,
            argument,
            form,
            decoder: if form == Form::Rows { Some(RowDecoder::new(&types)?) } else { None },
            result_decoder: RowDecoder::new(std::slice::from_ref(&spec.result))?,
            types,
            result: spec.result.clone(),
            filter,
            set,
            word: self.words,
            rich: self.riches,
            text: spec.text.clone(),
        };
        self.words += words;
        self.riches += usize::from(is_rich);
        Ok(new)
    }

    fn argument(&mut self, columns: &[usize], form: Form) -> Result<usize> {
        let types: Vec<DataType> = columns.iter().map(|column| self.input.field(*column).data_type().clone()).collect();
        position(
            &mut self.arguments,
            |known| known.columns == columns && known.form == form,
            || {
                let encoder = if form == Form::Rows { Some(RowEncoder::new(&types)?) } else { None };
                Ok(Argument { columns: columns.to_vec(), form, encoder })
            },
        )
    }

    fn set(&mut self, spec: &AggregateSpec, filter: Option<usize>, types: &[DataType]) -> Result<View> {
        let argument = self.argument(&spec.arguments, Form::Rows)?;
        let retracts = self.retracts;
        let has_room = |known: &DistinctSet| {
            known.filters.contains(&filter) || (!retracts && known.filters.len() < Seen::VIEWS_MAX)
        };
        let rich = self.riches;
        let sets = self.sets.len();
        let set = position(
            &mut self.sets,
            |known| known.argument == argument && has_room(known),
            || {
                let decoder = RowDecoder::new(types)?;
                Ok(DistinctSet { columns: spec.arguments.clone(), argument, filters: Vec::new(), rich, decoder })
            },
        )?;
        self.riches += self.sets.len() - sets;
        let view = position(&mut self.sets[set].filters, |known| *known == filter, || Ok(filter))?;
        Ok(View { set, view })
    }

    fn kind_of(&self, spec: &AggregateSpec, types: &[DataType]) -> Result<(Kind, Form)> {
        let only = match types {
            [only] => Some(only),
            _ => None,
        };
        let one = || only.ok_or_else(|| refused(spec, &format!("it has {} arguments", types.len())));
        let number = || match Form::of(one()?) {
            Some(form @ (Form::Ints | Form::Floats | Form::Doubles | Form::Decimals))
                if one()?.is_numeric() || matches!(one()?, DataType::Duration(_)) =>
            {
                Ok(form)
            }
            _ => Err(refused(spec, &format!("its argument is of the type {}, which is no number", one()?))),
        };
        let extreme = |is_max| match Form::of(one()?) {
            None => Err(refused(spec, &format!("values of the type {} have no order", one()?))),
            Some(form) if self.retracts => Ok((Kind::Ordered { is_max }, form)),
            Some(Form::Blobs) => Ok((Kind::BestBlob { is_max }, Form::Blobs)),
            Some(form) => Ok((Kind::Best { is_max }, form)),
        };
        let spread = |is_sample, is_root| {
            let form = if number()? == Form::Decimals { Form::Decimals } else { Form::Doubles };
            Ok((Kind::Spread { is_sample, is_root }, form))
        };
        let rows = |kind| Ok((kind, Form::Rows));
        match &spec.function {
            AggregateFunction::Count => Ok((Kind::Count, Form::Validity)),
            AggregateFunction::Sum => Ok((Kind::Sum { is_zero: false }, number()?)),
            AggregateFunction::Sum0 => Ok((Kind::Sum { is_zero: true }, number()?)),
            AggregateFunction::Avg => match number()? {
                Form::Floats => Ok((Kind::Mean, Form::Doubles)),
                form => Ok((Kind::Mean, form)),
            },
            AggregateFunction::Min => extreme(false),
            AggregateFunction::Max => extreme(true),
            AggregateFunction::Percentile { at } => {
                let form = match types {
                    [value] if value.is_numeric() => Form::Doubles,
                    [value, times] if value.is_numeric() && times.is_signed_integer() => Form::Weighted,
                    _ => return Err(refused(spec, "its arguments are a number, and how often that counts")),
                };
                Ok((Kind::Percentile { at: at.iter().map(|bits| f64::from_bits(*bits)).collect() }, form))
            }
            AggregateFunction::FirstValue | AggregateFunction::LastValue => {
                one()?;
                rows(Kind::Edge { is_first: spec.function == AggregateFunction::FirstValue })
            }
            AggregateFunction::ListAgg { separator } => {
                let wanted = if separator.is_some() { 1 } else { 2 };
                if types.len() != wanted || types.iter().any(|data_type| *data_type != DataType::Utf8) {
                    return Err(refused(spec, "its arguments must be of the type STRING: CAST them"));
                }
                rows(Kind::Text { separator: separator.clone() })
            }
            AggregateFunction::Collect => match (&spec.result, one()?) {
                (DataType::Map(..), _) => rows(Kind::Bag),
                (other, _) => Err(refused(spec, &format!("its result is a multiset, not {other}"))),
            },
            AggregateFunction::ArrayAgg => match (&spec.result, one()?) {
                (DataType::List(_), _) => rows(Kind::Array),
                (other, _) => Err(refused(spec, &format!("its result is an array, not {other}"))),
            },
            AggregateFunction::StddevPop => spread(false, true),
            AggregateFunction::StddevSamp => spread(true, true),
            AggregateFunction::VarPop => spread(false, false),
            AggregateFunction::VarSamp => spread(true, false),
            AggregateFunction::ApproxCountDistinct if self.retracts => {
                Err(refused(spec, "it cannot take rows back, and its input may be updated: use COUNT(DISTINCT …)"))
            }
            AggregateFunction::ApproxCountDistinct => {
                one()?;
                rows(Kind::Approximate)
            }
            AggregateFunction::SingleValue => {
                one()?;
                rows(Kind::Only)
            }
            AggregateFunction::JsonObjectAgg { absent_on_null } => {
                match types {
                    [DataType::Utf8, value] => super::json::check(value).map_err(|reason| refused(spec, &reason))?,
                    _ => return Err(refused(spec, "its arguments are a key of the type STRING and a value")),
                }
                rows(Kind::JsonObject { absent_on_null: *absent_on_null })
            }
            AggregateFunction::JsonArrayAgg { absent_on_null } => {
                super::json::check(one()?).map_err(|reason| refused(spec, &reason))?;
                rows(Kind::JsonArray { absent_on_null: *absent_on_null })
            }
            AggregateFunction::RowNumber
            | AggregateFunction::Rank
            | AggregateFunction::DenseRank
            | AggregateFunction::PercentRank
            | AggregateFunction::CumeDist
            | AggregateFunction::Lag { .. }
            | AggregateFunction::Lead { .. }
            | AggregateFunction::Ntile { .. } => Err(refused(spec, "it needs an OVER window")),
            AggregateFunction::User(name) => Err(Error::system(format!("'{name}' is a function of the program"))),
        }
    }
}

fn refused(spec: &AggregateSpec, reason: &str) -> Error {
    Error::input(format!("{} cannot be computed: {reason}", spec.text))
}

/// Where something is among others; it is added if it is not there.
fn position<T>(all: &mut Vec<T>, is_same: impl Fn(&T) -> bool, make: impl FnOnce() -> Result<T>) -> Result<usize> {
    if let Some(found) = all.iter().position(is_same) {
        return Ok(found);
    }
    all.push(make()?);
    Ok(all.len() - 1)
}
