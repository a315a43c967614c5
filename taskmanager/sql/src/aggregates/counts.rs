//! How often the values of groups are there, as map state: what a change costs does not depend on how many values a group has.
//!
//! Each value of a group is an entry of its own, so a change writes that alone, and a checkpoint has what changed. Where values
//! may go, or are ordered, those of each group are in memory besides, made of the entries when they are restored.

use std::collections::BTreeMap;

use flott_core::Result;
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use hashbrown::HashMap;

use super::rich::count;
use crate::program::OperatorContext;
use crate::row::RowBytes;

/// About what a value takes in the index.
const BYTES_A_VALUE: u64 = 64;

/// See the module's documentation.
pub struct ValueCounts {
    /// By the key of the group, and the value.
    table: KeyedTable<RowBytes, RowBytes, i64>,
    /// The same by group, in order.
    index: Option<HashMap<RowBytes, BTreeMap<RowBytes, i64>>>,
    /// How many values are in it.
    indexed: u64,
    value: RowBytes,
}

impl std::fmt::Debug for ValueCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueCounts").field("indexed", &self.indexed).finish_non_exhaustive()
    }
}

impl ValueCounts {
    /// None yet, in the state `name`. With an index, values may go and are in order; without, they only come, and it counts
    /// which are there.
    pub(super) fn new(name: &str, has_index: bool, cx: &OperatorContext<'_>) -> Self {
        let index = has_index.then(HashMap::default);
        Self { table: cx.task.table(name), index, indexed: 0, value: RowBytes::default() }
    }

    /// A value of a group comes (1) or goes (-1). Returns whether that makes it the first or was the last of its kind. What is
    /// taken back before it came is remembered.
    pub(super) fn step(&mut self, (hash, key): (u64, &RowBytes), value: &[u8], by: i64) -> bool {
        self.value.set(value);
        let Some(index) = &mut self.index else {
            if self.table.get(hash, key, &self.value).is_some() {
                return false;
            }
            self.table.put(hash, key, self.value.clone(), by);
            return true;
        };
        let values = index.entry_ref(key).or_default();
        let (before, known) = (values.get(&self.value).copied().unwrap_or(0), values.len());
        let after = before + by;
        count(values, self.value.clone(), by);
        self.indexed = self.indexed + values.len() as u64 - known as u64;
        if values.is_empty() {
            index.remove(key);
        }
        if after == 0 {
            self.table.remove(hash, key, &self.value);
        } else {
            self.table.put(hash, key, self.value.clone(), after);
        }
        (before > 0) != (after > 0)
    }

    /// A value of a group comes to some [views](super::seen). Returns those to which it is new. In place of how often it is there,
    /// its entry says which have seen it.
    pub(super) fn see(&mut self, (hash, key): (u64, &RowBytes), value: &[u8], views: u64) -> u64 {
        self.value.set(value);
        let seen = self.table.get(hash, key, &self.value).map_or(0, |seen| *seen as u64);
        let new = views & !seen;
        if new == 0 {
            return 0;
        }
        let seen = (seen | new) as i64;
        self.table.put(hash, key, self.value.clone(), seen);
        if let Some(index) = &mut self.index
            && index.entry_ref(key).or_default().insert(self.value.clone(), seen).is_none()
        {
            self.indexed += 1;
        }
        new
    }

    /// The values of a group in order, with how often each is there.
    pub(super) fn ordered(&self, key: &RowBytes) -> Option<&BTreeMap<RowBytes, i64>> {
        self.index.as_ref()?.get(key)
    }

    /// The greatest or least value of a group that is there.
    pub(super) fn extreme(&self, key: &RowBytes, is_max: bool) -> Option<&[u8]> {
        let values = self.index.as_ref()?.get(key)?;
        // Those that were taken back before they came are not there.
        let mut there = values.iter().filter(|(_, count)| **count > 0).map(|(value, _)| value.as_slice());
        if is_max { there.next_back() } else { there.next() }
    }

    /// A group goes.
    pub(super) fn remove(&mut self, hash: u64, key: &RowBytes) {
        for value in self.index.as_mut().and_then(|index| index.remove(key)).into_iter().flatten() {
            self.table.remove(hash, key, &value.0);
            self.indexed -= 1;
        }
    }

    /// All groups go.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.index.iter_mut().for_each(HashMap::clear);
        self.indexed = 0;
        self.table.take_all(|_, _, _| Ok(()))
    }

    /// Shows them as keyed state.
    pub(super) fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.indexed * BYTES_A_VALUE);
        visit(&mut self.table)
    }

    /// The state has been restored.
    pub(super) fn restored(&mut self) -> Result<()> {
        let Some(index) = &mut self.index else { return Ok(()) };
        index.clear();
        self.indexed = 0;
        self.table.visit(|key, value, count| {
            index.entry_ref(key).or_default().insert(value.clone(), *count);
            self.indexed += 1;
            Ok(())
        })
    }
}

/// What the groups at hand are called, for their values.
#[derive(Debug, Default)]
pub(super) struct Names {
    keys: Vec<(u64, RowBytes)>,
}

impl Names {
    pub(super) fn push(&mut self, hash: u64, key: &RowBytes) {
        self.keys.push((hash, key.clone()));
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
    }

    pub(super) fn get(&self, group: usize) -> (u64, &RowBytes) {
        let (hash, key) = &self.keys[group];
        (*hash, key)
    }
}
