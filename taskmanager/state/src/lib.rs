//! Keyed state in memory and on disk, and how it becomes a checkpoint without stopping the stream.
//!
//! State lives in [`KeyedTable`]s: native Rust values in one hash table a key group, with no
//! serialisation on access. What memory has no room for goes to files on local disk and comes back when it is needed. A table notes which entries changed since the last checkpoint. At a
//! barrier [`Checkpointed::freeze`] turns that note into a frozen set in constant time; the entries
//! themselves are written by [`Checkpointed::drain`] between batches, and an entry that is about to
//! change before its turn is written first. So the synchronous part of a checkpoint does not
//! depend on how much state there is.
//!
//! ```
//! use flott_core::hash::stable_hash;
//! use flott_core::key_group::range_of;
//! use flott_state::{Checkpointed, Freeze, KeyedTable, SnapshotMode, SnapshotWriter};
//!
//! let mut counts: KeyedTable<String, (), u64> = KeyedTable::new("counts", range_of(1, 0, 128), 128);
//! let key = "apple".to_owned();
//! *counts.get_or_insert_with(stable_hash(&key), &key, (), || 0) += 1;
//!
//! let mut snapshot = SnapshotWriter::default();
//! counts.freeze(Freeze { checkpoint: 1, mode: SnapshotMode::Full, is_rewindable: true });
//! *counts.get_mut(stable_hash(&key), &key, &()).unwrap() += 1; // after the barrier
//! while !counts.drain(1000, &mut snapshot).unwrap() {}
//! ```
//!
//! - [`table`]: the table and its change tracking
//! - [`budget`]: how much memory tables may take, and where the rest goes
//! - [`cold`]: entries on disk, for state that does not fit into memory
//! - [`columns`]: its entries as rows of a table, for savepoints
//! - [`snapshot`]: the binary form of a subtask's keyed state
//! - [`time_index`]: which entries are due when
//! - [`registry`]: the states of a user's function, by name

pub mod budget;
pub mod cold;
pub mod columns;
pub mod registry;
pub mod snapshot;
pub mod table;
pub mod time_index;
mod window;

pub use budget::{MemoryBudget, StateBackend, StateUsage};
pub use columns::{Compatibility, StateColumns};
pub use registry::{Keyed, KeyedStates, ListState, MapState, ValueState};
pub use snapshot::{
    Checkpointed, Freeze, GroupState, LocalRun, ScratchFile, Section, SectionKind, SnapshotContent, SnapshotMode,
    SnapshotReader, SnapshotWriter, StateRuns,
};
pub use table::{KeyedTable, Namespace};
pub use time_index::TimeIndex;
pub use window::TimeWindow;
