//! What a chain contributes to a checkpoint, and what it takes back.

use std::collections::BTreeSet;

use flott_checkpoint::{OperatorState, Redistribution};
use flott_core::codec;
use flott_core::ids::OperatorId;
use flott_core::{Data, Error, Result};
use flott_state::{Checkpointed, SnapshotMode, SnapshotReader, SnapshotWriter};

/// A subtask's part of a checkpoint while it is being collected.
pub struct TaskSnapshot {
    /// Whether it builds on the one before.
    pub mode: SnapshotMode,
    /// The sections of keyed state that have been written.
    pub writer: SnapshotWriter,
    /// Operators that have keyed state.
    pub keyed_operators: BTreeSet<OperatorId>,
    /// Operator states.
    pub operator_states: Vec<OperatorState>,
    /// Entries that the next [`Control::Drain`](crate::Control::Drain) may write.
    pub entries_max: usize,
    /// Whether frozen state is left after it.
    pub is_pending: bool,
    /// Bytes of keyed state in memory, estimated.
    pub state_bytes: u64,
}

impl TaskSnapshot {
    /// An empty one.
    pub fn new(mode: SnapshotMode) -> Self {
        Self {
            mode,
            writer: SnapshotWriter::default(),
            keyed_operators: BTreeSet::new(),
            operator_states: Vec::new(),
            entries_max: 0,
            is_pending: false,
            state_bytes: 0,
        }
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
        self.keyed_operators.insert(operator);
        self.is_pending = true;
        self.state_bytes += state.bytes();
        state.freeze(self.mode);
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

/// What a subtask starts from. Operators take out their share; what nobody takes is an error.
#[derive(Debug, Default)]
pub struct RestoredState {
    /// Whether keyed state that an operator does not declare is dropped instead of refused.
    pub allow_non_restored_state: bool,
    operator_states: Vec<OperatorState>,
    keyed_files: Vec<Vec<u8>>,
}

impl RestoredState {
    /// The contents of the state files in order, and the operator states.
    pub fn new(keyed_files: Vec<Vec<u8>>, operator_states: Vec<OperatorState>) -> Self {
        Self { allow_non_restored_state: false, operator_states, keyed_files }
    }

    /// The elements of an operator state.
    pub fn take_state<T: Data>(&mut self, operator: OperatorId, name: &str) -> Result<Vec<T>> {
        let position = self.operator_states.iter().position(|state| state.operator == operator && state.name == name);
        let Some(position) = position else { return Ok(Vec::new()) };
        let state = self.operator_states.swap_remove(position);
        state
            .elements
            .iter()
            .map(|element| codec::decode(element).map_err(|error| error.context(format!("restoring state '{name}'"))))
            .collect()
    }

    /// Fills a keyed state of `operator` with the sections of its key groups.
    pub fn restore_keyed(&self, operator: OperatorId, state: &mut dyn Checkpointed) -> Result<()> {
        for file in &self.keyed_files {
            let mut reader = SnapshotReader::new(file)?;
            while let Some(section) = reader.next_section()? {
                if section.operator == operator && section.name == state.name() && state.owns(section.group) {
                    state
                        .restore(&section)
                        .map_err(|error| error.context(format!("restoring state '{}'", section.name)))?;
                }
            }
        }
        Ok(())
    }

    /// Refuses states of `operator` in the checkpoint that it did not declare: `known` are those that it did.
    pub fn check_keyed(&self, operator: OperatorId, name: &str, known: &[String]) -> Result<()> {
        for file in self.keyed_files.iter().filter(|_| !self.allow_non_restored_state) {
            let mut reader = SnapshotReader::new(file)?;
            while let Some(section) = reader.next_section()? {
                if section.operator == operator && !known.iter().any(|known| known == section.name) {
                    return Err(Error::input(format!(
                        "the checkpoint has state '{}' of operator '{name}', which the operator does not declare: declare it under its old name, or drop it with -n (--allowNonRestoredState)",
                        section.name
                    )));
                }
            }
        }
        Ok(())
    }
}
