//! The binary form of a subtask's keyed state: a sequence of sections, one a state and key group.
//!
//! ```text
//! file    = "FLOTTST1" section*
//! section = operator(16) name(varint length, UTF-8) group(u16) kind(u8) entries(u64) length(u64) body
//! body    = entry*       entry = 0 key namespace value | 1 key namespace
//! ```
//!
//! Integers are little-endian; keys, namespaces and values are in the form of
//! [`flott_core::codec`]. A base section replaces what is known of its key group, a change section
//! is applied to it in order. The file's length and SHA-256 stand in the checkpoint's manifest.
//!
//! A state that has gone to disk has no sections: its part of a snapshot are its runs, which are files already
//! ([`crate::cold`]). What they have is given as sections where a table wants them ([`StateRuns::sections`]).

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use flott_core::codec::{self, Decoder};
use flott_core::ids::{CheckpointId, OperatorId};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Error, Result, magic};

use crate::budget::StateUsage;
use crate::cold::Pinned;
use crate::columns::StateColumns;

mod content;

use content::Overflow;
pub use content::{ScratchFile, SnapshotContent};

const MAGIC: &[u8; 8] = b"FLOTTST1";

/// How much a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotMode {
    /// Everything; later changes build on it.
    Full,
    /// What changed since the last snapshot that was not detached.
    Incremental,
    /// Everything, and the state keeps no trace of it: what is noted for the next snapshot and for the way back to the last
    /// one stays as it is.
    Detached,
}

/// What a snapshot is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// How much it holds.
    pub mode: SnapshotMode,
    /// Whether what changes from here on is remembered, so that the state can be taken back to this point. Not to that of a
    /// detached snapshot, whatever this says.
    pub is_rewindable: bool,
}

/// The entries of one key group, on their way from one table to another in the same process. Only a table with
/// the same types can take them.
pub type GroupState = Box<dyn Any + Send>;

/// A run of a checkpoint, as a file on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRun {
    /// The file. It is linked or copied, so it may go afterwards.
    pub path: PathBuf,
    /// The key groups that it has and that do not count.
    pub dropped: Vec<KeyGroup>,
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// All entries of the key group.
    Base,
    /// Changes to be applied in order.
    Change,
}

/// State that can be snapshotted while it is used.
pub trait Checkpointed: Send {
    /// The state's name, unique in its operator.
    fn name(&self) -> &str;

    /// Starts a snapshot of the state as it is now, in time that does not depend on its size. The one before must
    /// have been drained.
    fn freeze(&mut self, freeze: Freeze);

    /// Writes about `entries_max` entries of the frozen state; true when all are written. What only concerns the
    /// snapshot, such as a full disk, is told to `out` and fails that alone.
    fn drain(&mut self, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool>;

    /// To be called every few milliseconds, between records: says what the state takes, and does a little of what
    /// there is to do so that it keeps to its memory. True if there is more.
    fn maintain(&mut self) -> Result<bool>;

    /// The checkpoint is durable: the state will never be taken back to a point before it.
    fn confirm(&mut self, checkpoint: CheckpointId);

    /// Adds what an earlier snapshot held for one of its key groups.
    fn restore(&mut self, section: &Section<'_>) -> Result<()>;

    /// Takes over the runs of one old subtask, the oldest first, for those of its own key groups that `is_wanted` accepts.
    /// Returns the numbers under which its snapshots list them from now on.
    fn restore_runs(&mut self, runs: &[LocalRun], is_wanted: &dyn Fn(KeyGroup) -> bool) -> Result<Vec<u64>>;

    /// Like [`Self::restore`], of a section that another version of the job wrote under `schema`: its values are read as
    /// those of the types that they have now. No later snapshot builds on it.
    fn restore_old(&mut self, schema: &str, section: &Section<'_>) -> Result<()>;

    /// Like [`Self::restore_old`], of the runs of one old subtask. They are read, and not taken over.
    fn restore_old_runs(&mut self, schema: &str, runs: &[LocalRun], is_wanted: &dyn Fn(KeyGroup) -> bool)
    -> Result<()>;

    /// Adds rows of a savepoint's table, which were written under `schema`; those of key groups that `is_wanted`
    /// refuses, or that it does not own, are passed over.
    fn restore_rows(&mut self, schema: &str, rows: &RecordBatch, is_wanted: &dyn Fn(KeyGroup) -> bool) -> Result<()>;

    /// Everything that it had at `checkpoint` is restored: what changes from here on is remembered, so that the state
    /// can be taken back to it. Called before anything changes.
    fn rewindable_from(&mut self, checkpoint: CheckpointId);

    /// Takes the state back to where it was at `checkpoint`, and gives it away by key group. Key groups of which that
    /// is not known any more are left out. The state is empty afterwards.
    fn release(&mut self, checkpoint: CheckpointId) -> Vec<(KeyGroup, GroupState)>;

    /// Takes the entries of one of its key groups that another table of the same state released.
    fn adopt(&mut self, group: KeyGroup, entries: GroupState) -> Result<()>;

    /// The columns of its entries.
    fn columns(&self) -> Arc<dyn StateColumns>;

    /// How many entries it has; when some are on disk, it may be fewer.
    fn rows(&self) -> u64;

    /// Whether it owns this key group.
    fn owns(&self, group: KeyGroup) -> bool;

    /// Bytes in memory, without an index. What keys and values hold on the heap is estimated.
    fn bytes(&self) -> u64;

    /// What it took when [`Checkpointed::maintain`] last looked.
    fn usage(&self) -> StateUsage;

    /// What the indexes by time of all states take that share its memory, if that alone is more than there is, and the
    /// largest of them is its own. Says so once.
    fn excess_of_indexes(&self) -> Option<u64>;
}

/// The runs of one state in a snapshot. The files stay as long as this does.
#[derive(Clone, Debug)]
pub struct StateRuns {
    /// The operator that it belongs to.
    pub operator: OperatorId,
    /// The state's name.
    pub name: String,
    /// The key groups of the subtask.
    pub range: KeyGroupRange,
    /// The files.
    pub pinned: Pinned,
}

/// Visits key group, number of entries and entries of sections.
pub type SectionVisitor<'a> = &'a mut dyn FnMut(KeyGroup, u64, &[u8]) -> Result<()>;

/// A group on disk may be larger than memory, so it is given in parts of about this size.
const PART_BYTES: usize = 4 << 20;

impl StateRuns {
    /// Gives `visit` key group, number of entries and entries of base sections that together are the state. A key group
    /// may have several.
    pub fn sections(&self, visit: SectionVisitor<'_>) -> Result<()> {
        let mut body = Vec::new();
        for group in self.range.start..self.range.end {
            let group = group as KeyGroup;
            let mut scan = self.pinned.scan_group(group)?;
            let mut entries = 0;
            while let Some(entry) = scan.next_entry()? {
                body.push(0);
                body.extend_from_slice(entry.key);
                body.extend_from_slice(entry.value);
                entries += 1;
                if body.len() >= PART_BYTES {
                    visit(group, entries, &body)?;
                    entries = 0;
                    body.clear();
                }
            }
            if entries > 0 {
                visit(group, entries, &body)?;
                body.clear();
            }
        }
        Ok(())
    }
}

/// Collects a snapshot: sections, and runs.
#[derive(Debug)]
pub struct SnapshotWriter {
    bytes: Vec<u8>,
    operator: OperatorId,
    overflow: Option<Overflow>,
    runs: Vec<StateRuns>,
    failure: Option<Error>,
}

impl Default for SnapshotWriter {
    fn default() -> Self {
        Self { bytes: MAGIC.to_vec(), operator: OperatorId([0; 16]), overflow: None, runs: Vec::new(), failure: None }
    }
}

impl SnapshotWriter {
    /// A writer that puts sections into this file, which must not exist, when they become many.
    pub fn overflowing_to(path: PathBuf) -> Self {
        Self { overflow: Some(Overflow::new(path)), ..Self::default() }
    }

    /// The sections that follow belong to this operator.
    pub fn set_operator(&mut self, operator: OperatorId) {
        self.operator = operator;
    }

    /// Adds one section.
    pub fn section(&mut self, name: &str, group: KeyGroup, kind: SectionKind, entries: u64, body: &[u8]) -> Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        self.bytes.extend_from_slice(&self.operator.0);
        codec::encode_into(name, &mut self.bytes)?;
        self.bytes.extend_from_slice(&group.to_le_bytes());
        self.bytes.push(u8::from(kind == SectionKind::Change));
        self.bytes.extend_from_slice(&entries.to_le_bytes());
        self.bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        match &mut self.overflow {
            Some(overflow) if overflow.is_wanted(self.bytes.len() + body.len()) => {
                if let Err(error) = overflow.write(&mut self.bytes, body) {
                    self.fail(error);
                }
            }
            _ => self.bytes.extend_from_slice(body),
        }
        Ok(())
    }

    /// Adds the runs of a state.
    pub fn runs(&mut self, name: &str, range: KeyGroupRange, pinned: Pinned) {
        self.runs.push(StateRuns { operator: self.operator, name: name.to_owned(), range, pinned });
    }

    /// Says that the snapshot cannot be completed, for a reason that does not concern the state itself.
    pub fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// Whether the snapshot cannot be completed.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Says in front of the reason whose state it was.
    pub fn name_failure(&mut self, whose: impl FnOnce() -> String) {
        self.failure = self.failure.take().map(|error| error.context(whose()));
    }

    /// Whether no section was added.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == MAGIC.len() && self.overflow.as_ref().is_none_or(Overflow::is_empty)
    }

    /// What was added.
    ///
    /// # Errors
    /// The snapshot could not be completed.
    pub fn finish(mut self) -> Result<(SnapshotContent, Vec<StateRuns>)> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let content = match self.overflow.filter(|overflow| !overflow.is_empty()) {
            Some(overflow) => SnapshotContent::File(overflow.finish(&mut self.bytes)?),
            None => SnapshotContent::Memory(self.bytes),
        };
        Ok((content, self.runs))
    }

    /// The sections' file, of a writer without a place for it to overflow to.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// One state's entries of one key group.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The operator that it belongs to.
    pub operator: OperatorId,
    /// The state's name.
    pub name: &'a str,
    /// The key group.
    pub group: KeyGroup,
    /// Whether it replaces or changes.
    pub kind: SectionKind,
    /// How many entries `body` has.
    pub entries: u64,
    /// The entries.
    pub body: &'a [u8],
}

/// Reads the sections of a snapshot file in order.
#[derive(Debug)]
pub struct SnapshotReader<'a> {
    rest: Decoder<'a>,
}

impl<'a> SnapshotReader<'a> {
    /// Starts reading a file's content.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        match bytes.split_at_checked(MAGIC.len()) {
            Some((first, rest)) if first == MAGIC => Ok(Self { rest: Decoder::new(rest) }),
            _ => Err(magic::other_version(MAGIC, bytes)
                .unwrap_or_else(|| Error::input("it is no state file: its first bytes are not FLOTTST1"))),
        }
    }

    /// The next section, or none at the end.
    pub fn next_section(&mut self) -> Result<Option<Section<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let operator = OperatorId(self.rest.read()?);
        let name = self.rest.read()?;
        let group = self.rest.read()?;
        let kind = if self.rest.read::<bool>()? { SectionKind::Change } else { SectionKind::Base };
        let entries = self.rest.read()?;
        let length: u64 = self.rest.read()?;
        let body = self.rest.take(length)?;
        Ok(Some(Section { operator, name, group, kind, entries, body }))
    }
}
