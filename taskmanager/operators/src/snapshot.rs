//! What a chain contributes to a checkpoint, and what it takes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use flott_checkpoint::assign::ChannelSource;
use flott_checkpoint::{KeyedState, OperatorState, Redistribution};
use flott_core::ids::{CheckpointId, OperatorId};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Data, Error, Result, ResultExt, codec};
use flott_state::{
    Checkpointed, Compatibility, Freeze, GroupState, SnapshotMode, SnapshotReader, SnapshotWriter, StateColumns,
    columns,
};

/// A subtask's part of a checkpoint while it is being collected.
pub struct TaskSnapshot {
    /// What it is taken for.
    pub freeze: Freeze,
    /// The sections of keyed state that have been written.
    pub writer: SnapshotWriter,
    /// Operators that have keyed state.
    pub keyed_operators: BTreeSet<OperatorId>,
    /// Their states, as they were when they were frozen.
    pub keyed_states: Vec<KeyedState>,
    /// The columns of each of `keyed_states`.
    pub columns: Vec<Arc<dyn StateColumns>>,
    /// Operator states.
    pub operator_states: Vec<OperatorState>,
    /// Entries that the next [`Control::Drain`](crate::Control::Drain) may write.
    pub entries_max: usize,
    /// Whether frozen state is left after it.
    pub is_pending: bool,
    /// Whether its barrier goes on in front of what waits in the outputs, where it may.
    pub overtakes: bool,
}

impl TaskSnapshot {
    /// An empty one.
    pub fn new(freeze: Freeze) -> Self {
        Self {
            freeze,
            writer: SnapshotWriter::default(),
            keyed_operators: BTreeSet::new(),
            keyed_states: Vec::new(),
            columns: Vec::new(),
            operator_states: Vec::new(),
            entries_max: 0,
            is_pending: false,
            overtakes: false,
        }
    }

    /// Whether it holds everything.
    pub fn is_full(&self) -> bool {
        self.freeze.mode == SnapshotMode::Full
    }

    /// Bytes of keyed state in memory, estimated.
    pub fn state_bytes(&self) -> u64 {
        self.keyed_states.iter().map(|state| state.bytes).sum()
    }

    /// Adds operator state, one element a value.
    pub fn add_state<T: Data>(
        &mut self,
        operator: OperatorId,
        name: &str,
        redistribution: Redistribution,
        values: &[T],
    ) -> Result<()> {
        let elements = values.iter().map(codec::encode).collect::<Result<_>>()?;
        self.operator_states.push(OperatorState { operator, name: name.to_owned(), redistribution, elements });
        Ok(())
    }

    /// Freezes a keyed state.
    pub fn freeze(&mut self, operator: OperatorId, state: &mut dyn Checkpointed) {
        let columns = state.columns();
        self.keyed_operators.insert(operator);
        self.keyed_states.push(KeyedState {
            operator,
            name: state.name().to_owned(),
            schema: columns.schema().to_owned(),
            rows: state.rows(),
            bytes: state.bytes(),
            table: None,
        });
        self.columns.push(columns);
        self.is_pending = true;
        state.freeze(self.freeze);
    }

    /// Writes more of a frozen keyed state.
    pub fn drain(&mut self, operator: OperatorId, state: &mut dyn Checkpointed) -> Result<()> {
        self.writer.set_operator(operator);
        if !state.drain(self.entries_max, &mut self.writer)? {
            self.is_pending = true;
        }
        Ok(())
    }
}

/// A keyed state that an operator declares.
pub struct DeclaredState {
    /// The operator.
    pub operator: OperatorId,
    /// The state's name.
    pub name: String,
    /// The columns of its entries.
    pub columns: Arc<dyn StateColumns>,
}

/// Keyed state on its way from the subtasks of one generation to those of the next, in the same process.
#[derive(Default)]
pub struct HeldState {
    groups: BTreeMap<(OperatorId, KeyGroup), BTreeMap<String, GroupState>>,
}

impl HeldState {
    /// Whether all states of `operator` are there for this key group.
    pub fn has(&self, operator: OperatorId, group: KeyGroup) -> bool {
        self.groups.contains_key(&(operator, group))
    }

    /// Adds everything that `other` holds.
    pub fn extend(&mut self, other: Self) {
        self.groups.extend(other.groups);
    }

    /// Splits off what belongs to these operators and key groups.
    #[must_use]
    pub fn take(&mut self, operators: &[OperatorId], range: KeyGroupRange) -> Self {
        let is_theirs =
            |(operator, group): &(OperatorId, KeyGroup)| operators.contains(operator) && range.contains(*group);
        Self { groups: self.groups.extract_if(.., |id, _| is_theirs(id)).collect() }
    }

    /// How many key groups it holds, counted once an operator.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Takes the keyed states of a chain back to a checkpoint and collects them.
pub struct ReleasedState {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// What could be taken back to it.
    pub held: HeldState,
}

impl ReleasedState {
    /// Nothing yet.
    pub fn new(checkpoint: CheckpointId) -> Self {
        Self { checkpoint, held: HeldState::default() }
    }

    /// Adds a key group of `operator`, whose states must all be there: a part of them is of no use.
    pub fn add(&mut self, operator: OperatorId, states: Vec<(String, Vec<(KeyGroup, GroupState)>)>) {
        let count = states.len();
        let mut groups: BTreeMap<KeyGroup, BTreeMap<String, GroupState>> = BTreeMap::new();
        for (name, parts) in states {
            for (group, part) in parts {
                groups.entry(group).or_default().insert(name.clone(), part);
            }
        }
        let whole = groups.into_iter().filter(|(_, states)| states.len() == count);
        self.held.groups.extend(whole.map(|(group, states)| ((operator, group), states)));
    }
}

/// The files of one old subtask's keyed state, fetched.
#[derive(Debug, Default)]
pub struct KeyedContents {
    /// The contents of its state files, in order.
    pub files: Vec<Bytes>,
    /// Its states, each with the content of its table if it has one.
    pub states: Vec<(KeyedState, Option<Bytes>)>,
}

/// The file of what was in flight to one old subtask, fetched.
#[derive(Debug)]
pub struct ChannelContents {
    /// Where it came from, and what of it is wanted.
    pub source: ChannelSource,
    /// Its content.
    pub bytes: Bytes,
}

/// What a subtask starts from. Operators take out their share; what nobody takes is an error.
#[derive(Default)]
pub struct RestoredState {
    /// Whether keyed state that an operator does not declare is dropped instead of refused.
    pub allow_non_restored_state: bool,
    /// The checkpoint that it is of, if the subtask is to be able to go back to it.
    pub rewindable_from: Option<CheckpointId>,
    /// What is in memory already.
    pub held: HeldState,
    /// What was in flight: it is processed before anything else.
    pub channels: Vec<ChannelContents>,
    operator_states: Vec<OperatorState>,
    keyed: Vec<KeyedContents>,
}

impl RestoredState {
    /// The fetched files, and the operator states.
    pub fn new(keyed: Vec<KeyedContents>, operator_states: Vec<OperatorState>) -> Self {
        Self { operator_states, keyed, ..Self::default() }
    }

    /// The elements of an operator state.
    pub fn take_state<T: Data>(&mut self, operator: OperatorId, name: &str) -> Result<Vec<T>> {
        let position = self.operator_states.iter().position(|state| state.operator == operator && state.name == name);
        let Some(position) = position else { return Ok(Vec::new()) };
        let state = self.operator_states.swap_remove(position);
        state
            .elements
            .iter()
            .map(|element| codec::decode(element).with_context(|| format!("restoring state '{name}'")))
            .collect()
    }

    /// Fills a keyed state of `operator` with its key groups: those in memory as they are, the others from files.
    pub fn restore_keyed(&mut self, operator: OperatorId, state: &mut dyn Checkpointed) -> Result<()> {
        let name = state.name().to_owned();
        let mut adopted = BTreeSet::new();
        for ((_, group), states) in self.held.groups.iter_mut().filter(|((owner, _), _)| *owner == operator) {
            if let Some(part) = states.remove(&name) {
                state.adopt(*group, part)?;
                adopted.insert(*group);
            }
        }
        for contents in &self.keyed {
            contents.restore(operator, state, &adopted).with_context(|| format!("restoring state '{name}'"))?;
        }
        if let Some(checkpoint) = self.rewindable_from {
            state.rewindable_from(checkpoint);
        }
        Ok(())
    }

    /// Refuses states of `operator` in the checkpoint that it did not declare: `known` are those that it did.
    pub fn check_keyed(&self, operator: OperatorId, name: &str, known: &[String]) -> Result<()> {
        if self.allow_non_restored_state {
            return Ok(());
        }
        for contents in &self.keyed {
            let is_foreign = |id: OperatorId, state: &str| id == operator && !known.iter().any(|known| known == state);
            let mut foreign = contents.states.iter().find(|(state, _)| is_foreign(state.operator, &state.name));
            // An empty state is no loss.
            foreign = foreign.filter(|(state, _)| state.rows > 0);
            if let Some((state, _)) = foreign {
                return Err(undeclared(&state.name, name));
            }
            for file in contents.files.iter().filter(|_| contents.states.is_empty()) {
                let mut reader = SnapshotReader::new(file)?;
                while let Some(section) = reader.next_section()? {
                    if is_foreign(section.operator, section.name) {
                        return Err(undeclared(section.name, name));
                    }
                }
            }
        }
        Ok(())
    }
}

fn undeclared(state: &str, operator: &str) -> Error {
    Error::input(format!(
        "the checkpoint has state '{state}' of operator '{operator}', which the operator does not declare: declare it under its old name, or drop it with -n (--allowNonRestoredState)"
    ))
}

impl KeyedContents {
    fn restore(&self, operator: OperatorId, state: &mut dyn Checkpointed, adopted: &BTreeSet<KeyGroup>) -> Result<()> {
        let described = self.states.iter().find(|(s, _)| s.operator == operator && s.name == state.name());
        if let Some((old, table)) = described {
            check_columns(old, &*state.columns())?;
            if let Some(table) = table {
                for rows in columns::read_table(table.clone())? {
                    state.restore_rows(&old.schema, &rows?, &|group| !adopted.contains(&group))?;
                }
            }
        }
        for file in &self.files {
            let mut reader = SnapshotReader::new(file)?;
            while let Some(section) = reader.next_section()? {
                let is_mine = section.operator == operator && section.name == state.name();
                if is_mine && state.owns(section.group) && !adopted.contains(&section.group) {
                    state.restore(&section)?;
                }
            }
        }
        Ok(())
    }
}

/// A savepoint's rows can be migrated to other columns; a checkpoint's private form cannot.
fn check_columns(old: &KeyedState, columns: &dyn StateColumns) -> Result<()> {
    if old.schema == columns.schema() {
        return Ok(());
    }
    match (columns.compare(&old.schema), &old.table) {
        (Compatibility::Refused(reason), _) => Err(Error::input(reason)),
        (Compatibility::Migrated(changes), None) => Err(Error::input(format!(
            "its type has changed ({}), and a checkpoint cannot be migrated: take a savepoint with the old job, and start the new one from that",
            changes.join(", ")
        ))),
        (Compatibility::Migrated(_) | Compatibility::Same, _) => Ok(()),
    }
}
