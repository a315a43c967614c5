//! What a chain contributes to a checkpoint, and what it takes back.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use flott_checkpoint::assign::ChannelSource;
use flott_checkpoint::{FileHandle, KeyedState, OperatorState, Redistribution};
use flott_core::ids::{CheckpointId, OperatorId};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Data, Error, Result, ResultExt, codec};
use flott_state::{
    Checkpointed, Compatibility, Freeze, GroupState, LocalRun, ScratchFile, SnapshotMode, SnapshotReader,
    SnapshotWriter, StateColumns, columns,
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
        self.freeze.mode != SnapshotMode::Incremental
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
            runs: None,
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
    /// Its states.
    pub states: Vec<StateContents>,
}

/// One state of an old subtask, fetched.
#[derive(Debug)]
pub struct StateContents {
    /// What is known of it.
    pub state: KeyedState,
    /// Its table, in a savepoint.
    pub table: Option<TableContents>,
    /// Its runs, if it was on disk. Then the state files say nothing of it that still counts.
    pub runs: Option<RunContents>,
}

/// The content of a table.
#[derive(Clone, Debug)]
pub enum TableContents {
    /// It is small.
    Memory(Bytes),
    /// It is large, and may be of several subtasks.
    File(Arc<ScratchFile>),
}

/// The runs of a state, as files on this machine.
#[derive(Debug)]
pub struct RunContents {
    /// The key groups of the old subtask.
    pub range: KeyGroupRange,
    /// The oldest first, each with the file of the checkpoint that it is.
    pub runs: Vec<(LocalRun, FileHandle)>,
    /// Whoever keeps the files there.
    pub owners: Vec<Arc<dyn Any + Send + Sync>>,
}

/// A run that a state took over from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptedRun {
    /// The state's operator.
    pub operator: OperatorId,
    /// The state's name.
    pub state: String,
    /// The number under which the state's snapshots list it.
    pub id: u64,
    /// The checkpoint's file.
    pub file: FileHandle,
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
    /// Which subtask of how many it is for.
    pub place: (u32, u32),
    /// What is in memory already.
    pub held: HeldState,
    /// What was in flight: it is processed before anything else.
    pub channels: Vec<ChannelContents>,
    /// The folder of the job's own checkpoints: later ones may refer to files in it.
    pub own_folder: Option<String>,
    /// The runs that states have taken over.
    pub adopted_runs: Vec<AdoptedRun>,
    /// Whether a keyed state was read as that of another version of the job. Later checkpoints must not build on its files,
    /// which their readers would take for this version's.
    pub is_migrated: bool,
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
            let runs = contents.restore(operator, state, &adopted, &mut self.is_migrated);
            let runs = runs.with_context(|| format!("restoring state '{name}'"))?;
            let adopted_run = |(id, file)| AdoptedRun { operator, state: name.clone(), id, file };
            self.adopted_runs.extend(runs.into_iter().map(adopted_run));
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
            let mut states = contents.states.iter().map(|contents| &contents.state);
            // An empty state is no loss.
            let foreign = states.find(|state| is_foreign(state.operator, &state.name) && state.rows > 0);
            if let Some(state) = foreign {
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
    /// Returns the runs that the state took over, by the numbers that it has for them now.
    fn restore(
        &self,
        operator: OperatorId,
        state: &mut dyn Checkpointed,
        adopted: &BTreeSet<KeyGroup>,
        is_migrated: &mut bool,
    ) -> Result<Vec<(u64, FileHandle)>> {
        let is_described = |old: &&StateContents| old.state.operator == operator && old.state.name == state.name();
        let mut old_schema = None;
        if let Some(StateContents { state: old, table, runs }) = self.states.iter().find(is_described) {
            if needs_migration(old, &*state.columns())? {
                old_schema = Some(&old.schema);
                *is_migrated = true;
            }
            if let Some(RunContents { range, runs, .. }) = runs {
                let files: Vec<LocalRun> = runs.iter().map(|(run, _)| run.clone()).collect();
                let is_wanted = |group| range.contains(group) && !adopted.contains(&group);
                if let Some(schema) = old_schema {
                    state.restore_old_runs(schema, &files, &is_wanted)?;
                    return Ok(Vec::new());
                }
                let ids = state.restore_runs(&files, &is_wanted)?;
                return Ok(ids.into_iter().zip(runs.iter().map(|(_, file)| file.clone())).collect());
            }
            match table {
                Some(TableContents::Memory(bytes)) => {
                    restore_table(columns::read_table(bytes.clone())?, state, &old.schema, adopted)?;
                }
                Some(TableContents::File(scratch)) => {
                    let path = scratch.path();
                    let file = File::open(path).with_context(|| format!("reading {}", path.display()))?;
                    restore_table(columns::read_table(file)?, state, &old.schema, adopted)?;
                }
                None => {}
            }
        }
        for file in &self.files {
            let mut reader = SnapshotReader::new(file)?;
            while let Some(section) = reader.next_section()? {
                let is_mine = section.operator == operator && section.name == state.name();
                if !is_mine || !state.owns(section.group) || adopted.contains(&section.group) {
                    continue;
                }
                match old_schema {
                    Some(schema) => state.restore_old(schema, &section)?,
                    None => state.restore(&section)?,
                }
            }
        }
        Ok(Vec::new())
    }
}

fn restore_table(
    batches: impl Iterator<Item = Result<columns::RecordBatch>>,
    state: &mut dyn Checkpointed,
    schema: &str,
    adopted: &BTreeSet<KeyGroup>,
) -> Result<()> {
    for rows in batches {
        state.restore_rows(schema, &rows?, &|group| !adopted.contains(&group))?;
    }
    Ok(())
}

/// Whether the state's entries must be read as those of another version of its types.
fn needs_migration(old: &KeyedState, columns: &dyn StateColumns) -> Result<bool> {
    if old.schema == columns.schema() {
        return Ok(false);
    }
    let compatibility = match old.table {
        Some(_) => columns.compare(&old.schema),
        None => columns.compare_entries(&old.schema),
    };
    match compatibility {
        Compatibility::Refused(reason) => Err(Error::input(reason)),
        Compatibility::Migrated(_) => Ok(true),
        Compatibility::Same => Ok(false),
    }
}
