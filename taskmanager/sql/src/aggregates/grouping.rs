//! Which rows of a batch have the same key.

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
        self.numbers.clear();
        self.groups.clear();
        self.firsts.clear();
        for row in 0..keys.rows.len() {
            let (hash, key) = (keys.hashes[row], keys.rows.get(row));
            // Rows of one key often follow each other.
            if let Some(&last) = self.groups.last()
                && keys.hashes[row - 1] == hash
                && keys.rows.get(row - 1) == key
            {
                self.groups.push(last);
                continue;
            }
            let firsts = &mut self.firsts;
            let is_same = |group: &u32| {
                let first = firsts[*group as usize] as usize;
                keys.hashes[first] == hash && keys.rows.get(first) == key
            };
            let group = match self.numbers.find(hash, is_same) {
                Some(group) => *group,
                None => {
                    let group = firsts.len() as u32;
                    firsts.push(row as u32);
                    self.numbers.insert_unique(hash, group, |group| keys.hashes[firsts[*group as usize] as usize]);
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
