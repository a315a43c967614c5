//! Which rows of a batch have the same key.

use flott_chunk::{Chunk, RowKind};
use flott_state::{Namespace, TimeWindow};
use hashbrown::HashTable;

use crate::row::Keys;

/// Numbers the keys of a batch in the order in which they come. Reuses its memory.
#[derive(Debug, Default)]
pub struct Grouping {
    numbers: HashTable<u32>,
    /// The group of each row.
    pub groups: Vec<u32>,
    /// The first row of each group.
    pub firsts: Vec<u32>,
}

impl Grouping {
    /// Numbers the keys of these rows.
    pub fn assign(&mut self, keys: &Keys) {
        self.assign_by(keys, |_| TimeWindow { start: 0, end: 0 });
    }

    /// The same, where rows of one key belong together only if they are in the same window, too.
    pub fn assign_by(&mut self, keys: &Keys, window: impl Fn(usize) -> TimeWindow) {
        self.numbers.clear();
        self.groups.clear();
        self.firsts.clear();
        for row in 0..keys.rows.len() {
            let (hash, key) = (keys.hashes[row], keys.rows.get(row));
            // Rows of one key often follow each other.
            if let Some(&last) = self.groups.last()
                && keys.hashes[row - 1] == hash
                && keys.rows.get(row - 1) == key
                && window(row - 1) == window(row)
            {
                self.groups.push(last);
                continue;
            }
            let firsts = &mut self.firsts;
            let is_same = |group: &u32| {
                let first = firsts[*group as usize] as usize;
                keys.hashes[first] == hash && keys.rows.get(first) == key && window(first) == window(row)
            };
            let mixed = |row: usize| window(row).mix(keys.hashes[row]);
            let group = match self.numbers.find(mixed(row), is_same) {
                Some(group) => *group,
                None => {
                    let group = firsts.len() as u32;
                    firsts.push(row as u32);
                    self.numbers.insert_unique(mixed(row), group, |group| mixed(firsts[*group as usize] as usize));
                    group
                }
            };
            self.groups.push(group);
        }
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }
}

/// For each row, whether it comes or goes, and counts it among the rows of its group. What goes from a group that has no rows
/// was never there, and does not count. `None` if all rows come.
pub fn signs(chunk: &Chunk, groups: &[u32], rows: &mut [i64]) -> Option<Vec<i8>> {
    signs_if(chunk, groups, rows, |rows| rows > 0)
}

/// The same where these are not all rows of their groups: what goes may have come in another chunk, or to another subtask. So it
/// counts.
pub fn signs_of_part(chunk: &Chunk, groups: &[u32], rows: &mut [i64]) -> Option<Vec<i8>> {
    signs_if(chunk, groups, rows, |_| true)
}

/// `may_go` says whether a row may go from a group with so many.
fn signs_if(chunk: &Chunk, groups: &[u32], rows: &mut [i64], may_go: impl Fn(i64) -> bool) -> Option<Vec<i8>> {
    let Some(kinds) = chunk.kinds() else {
        groups.iter().for_each(|group| rows[*group as usize] += 1);
        return None;
    };
    let sign = |(kind, group): (&RowKind, &u32)| {
        let rows = &mut rows[*group as usize];
        let sign = if kind.is_addition() { 1 } else { -i8::from(may_go(*rows)) };
        *rows += i64::from(sign);
        sign
    };
    Some(kinds.iter().zip(groups).map(sign).collect())
}
