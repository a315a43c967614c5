//! Relations: what a query computes, by column position, with what is known of each result.
//!
//! They are in an arena, inputs before what reads them, and equal ones are one: that shares common sub-plans.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use flott_core::hash::stable_hash;
use flott_sql_runtime::spec::{OperatorSpec, OverSpec, WindowColumn, WindowSpec};

use super::expr::{PExpr, as_column, columns_of, is_proctime};
use super::table::{SinkTable, TableInfo};
use super::{Planner, Settings};

/// A relation's place in the arena.
pub(super) type Id = usize;

/// A relation.
#[derive(Clone, Debug)]
pub(super) struct Rel {
    pub op: Op,
    pub inputs: Vec<Id>,
    pub schema: SchemaRef,
    pub props: Props,
    /// Says what it computes, and so does an operator's uid. It has no names of columns, no positions in the plan and no
    /// settings.
    pub digest: u64,
}

/// How a relation is computed.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Reads a table.
    Scan(Scan),
    /// Chooses rows, then computes columns.
    Calc(Calc),
    /// All rows of all inputs.
    Union,
    /// Aggregates OVER; with why a stream cannot have them, if nothing above makes a Top-N of them.
    Over(OverSpec, Option<String>),
    /// An operator, complete but for what is decided about changelogs.
    Spec(OperatorSpec),
    /// Writes a table.
    Sink(SinkTable),
}

/// Columns of a table.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub table: Arc<TableInfo>,
    /// The positions of declared columns.
    pub columns: Vec<usize>,
    /// How many rows are enough.
    pub limit: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Calc {
    pub condition: Vec<PExpr>,
    pub projection: Vec<PExpr>,
}

/// What is known of a relation.
#[derive(Clone, Debug, Default)]
pub(super) struct Props {
    /// Which changes there are besides insertions.
    pub kinds: Kinds,
    /// For each column, whether it is a time attribute.
    pub times: Vec<Option<Time>>,
    /// The windows that rows are in.
    pub windows: Option<Windows>,
    /// Sets of columns of which each is unique at any time, and by which changes are in order. An empty set: at most one
    /// row.
    pub keys: Vec<Vec<usize>>,
    /// For each column, how updates of a row change it.
    pub trends: Vec<Option<Trend>>,
}

/// Changes besides insertions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    pub update: bool,
    pub delete: bool,
}

impl Kinds {
    pub(super) const ALL: Self = Self { update: true, delete: true };

    pub(super) fn is_insert_only(self) -> bool {
        !self.update && !self.delete
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { update: self.update || other.update, delete: self.delete || other.delete }
    }
}

/// A time attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Event,
    Processing,
}

/// How updates of a row change a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    Constant,
    Increasing,
    Decreasing,
}

/// Windows that rows are in.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub spec: WindowSpec,
    /// The zone of the local time that they are in, if rows have instants.
    pub zone: Option<String>,
    /// Whether they are of processing time.
    pub is_processing: bool,
    /// Which columns are of the window.
    pub columns: Vec<Option<WindowColumn>>,
}

impl Props {
    /// Insertions of `width` columns of which nothing is known.
    pub(super) fn plain(width: usize) -> Self {
        Self { times: vec![None; width], trends: vec![None; width], ..Self::default() }
    }

    /// With these changes.
    pub(super) fn changing(mut self, kinds: Kinds) -> Self {
        self.kinds = kinds;
        self
    }

    /// With one more key.
    pub(super) fn keyed(mut self, key: Vec<usize>) -> Self {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
        self
    }

    /// What is known after columns were computed.
    pub(super) fn project(&self, projection: &[PExpr]) -> Self {
        let from: Vec<Option<usize>> = projection.iter().map(as_column).collect();
        let to = |column: &usize| from.iter().position(|from| *from == Some(*column));
        let mut props = Self {
            kinds: self.kinds,
            times: from.iter().map(|column| self.times[(*column)?]).collect(),
            windows: self.windows.as_ref().map(|windows| Windows {
                spec: windows.spec,
                zone: windows.zone.clone(),
                is_processing: windows.is_processing,
                columns: from.iter().map(|column| windows.columns[(*column)?]).collect(),
            }),
            keys: self.keys.iter().filter_map(|key| key.iter().map(to).collect()).collect(),
            trends: from.iter().map(|column| self.trends[(*column)?]).collect(),
        };
        for (time, expr) in props.times.iter_mut().zip(projection) {
            if is_proctime(expr) {
                *time = Some(Time::Processing);
            }
        }
        props
    }

    /// What is known with columns behind of which nothing is.
    pub(super) fn widened(&self, by: usize) -> Self {
        let mut props = self.clone();
        let width = props.times.len() + by;
        props.times.resize(width, None);
        props.trends.resize(width, None);
        if let Some(windows) = &mut props.windows {
            windows.columns.resize(width, None);
        }
        props
    }

    /// The keys that are still good after rows were sent by `partition`: two versions of a row that go to different
    /// subtasks are in no order any more.
    pub(super) fn keys_after(&self, partition: &[usize]) -> Vec<Vec<usize>> {
        let is_kept =
            |key: &&Vec<usize>| self.kinds.is_insert_only() || partition.iter().all(|column| key.contains(column));
        self.keys.iter().filter(is_kept).cloned().collect()
    }

    /// Whether the conditions are about columns of a key alone: then a row is chosen for as long as it is there.
    pub(super) fn is_chosen_by_key(&self, condition: &[PExpr]) -> bool {
        let is_about =
            |key: &Vec<usize>| condition.iter().all(|expr| columns_of(expr).iter().all(|column| key.contains(column)));
        condition.is_empty() || self.keys.iter().any(is_about)
    }

    /// Whether some of these columns are unique.
    pub(super) fn is_unique_within(&self, columns: &[usize]) -> bool {
        self.keys.iter().any(|key| key.iter().all(|column| columns.contains(column)))
    }
}

/// Fields as plans have them: all may be null, since an operator's results may be.
pub(super) fn fields_of<'a>(fields: impl IntoIterator<Item = &'a FieldRef>) -> Vec<FieldRef> {
    let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    fields.into_iter().map(nullable).collect()
}

/// Each name once: others have a number behind them, as in Flink.
fn unique_names(fields: &[FieldRef]) -> Vec<FieldRef> {
    let mut names = HashSet::new();
    let unique = |field: &FieldRef| {
        let numbered = (0..).map(|number| format!("{}{number}", field.name()));
        let name = std::iter::once(field.name().clone()).chain(numbered).find(|name| !names.contains(name));
        let name = name.unwrap_or_else(|| field.name().clone());
        names.insert(name.clone());
        if name == *field.name() { Arc::clone(field) } else { Arc::new(field.as_ref().clone().with_name(name)) }
    };
    fields.iter().map(unique).collect()
}

/// A column of a plan.
pub(super) fn field(name: impl Into<String>, data_type: arrow::datatypes::DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type, true))
}

impl<'a> Planner<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self { settings, rels: Vec::new(), known: HashMap::new(), volatile: 0 }
    }

    pub(super) fn props(&self, id: Id) -> &Props {
        &self.rels[id].props
    }

    pub(super) fn schema(&self, id: Id) -> SchemaRef {
        Arc::clone(&self.rels[id].schema)
    }

    pub(super) fn width(&self, id: Id) -> usize {
        self.rels[id].schema.fields().len()
    }

    pub(super) fn fields(&self, id: Id) -> Vec<FieldRef> {
        self.rels[id].schema.fields().iter().cloned().collect()
    }

    /// The relation that computes `what` from `inputs`: `op` in words that have no names of columns.
    pub(super) fn add(&mut self, op: Op, inputs: &[Id], fields: Vec<FieldRef>, props: Props, what: &str) -> Id {
        self.add_distinct(op, inputs, fields, props, what, "")
    }

    /// The same, told from others that compute the same by `identity`.
    pub(super) fn add_distinct(
        &mut self,
        op: Op,
        inputs: &[Id],
        fields: Vec<FieldRef>,
        props: Props,
        what: &str,
        identity: &str,
    ) -> Id {
        debug_assert_eq!(fields.len(), props.times.len());
        let key = (format!("{what}\n{identity}"), inputs.to_vec());
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let digests: Vec<u64> = inputs.iter().map(|&input| self.rels[input].digest).collect();
        let digest = stable_hash(&(what, digests));
        let schema = Arc::new(Schema::new(unique_names(&fields)));
        self.rels.push(Rel { op, inputs: inputs.to_vec(), schema, props, digest });
        self.known.insert(key, self.rels.len() - 1);
        self.rels.len() - 1
    }

    /// Gives a relation's columns other names, if nobody reads it yet.
    pub(super) fn rename(&mut self, id: Id, fields: &[FieldRef]) {
        if id + 1 == self.rels.len() && !matches!(self.rels[id].op, Op::Scan(_)) {
            let old = self.rels[id].schema.fields();
            let named = old.iter().zip(fields).map(|(old, new)| Arc::new(old.as_ref().clone().with_name(new.name())));
            self.rels[id].schema = Arc::new(Schema::new(unique_names(&named.collect::<Vec<_>>())));
        }
    }
}
