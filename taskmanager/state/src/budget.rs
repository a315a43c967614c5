//! How much memory keyed state may take, and where it goes when that is not enough.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

// The numbers are written by the thread of a slot and read by others for figures: nothing else is published through
// them, so relaxed ordering is enough.

/// The memory that the keyed tables of one slot share. Clones are the same budget.
///
/// Each table says now and then what it takes ([`MemoryBudget::used`] is their sum). When that is more than the limit,
/// the largest ones give up entries until a tenth of the limit is free again. So the limit can be exceeded by what comes
/// between two looks, never for long.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    limit: u64,
    used: AtomicU64,
    /// Whether the limit was exceeded and nobody has made room yet.
    is_exceeded: AtomicBool,
    accounts: Mutex<Vec<Weak<Balance>>>,
}

/// What one table takes.
#[derive(Debug, Default)]
struct Balance {
    bytes: AtomicU64,
    /// The part of it that entries take: only they can be given up.
    entries: AtomicU64,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Budget {
            limit,
            used: AtomicU64::new(0),
            is_exceeded: AtomicBool::new(false),
            accounts: Mutex::default(),
        }))
    }

    /// A budget that is never exceeded.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// How many bytes the tables may take together.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// How many they took when they were last looked at.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    pub(crate) fn open_account(&self) -> Account {
        let balance = Arc::new(Balance::default());
        let mut accounts = self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&balance));
        Account { budget: self.clone(), balance }
    }

    /// The most that the entries of one table take.
    fn largest(&self) -> u64 {
        let accounts = self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = accounts.iter().filter_map(Weak::upgrade).map(|balance| balance.entries.load(Ordering::Relaxed));
        entries.max().unwrap_or(0)
    }
}

/// What one table takes of a budget. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Account {
    budget: MemoryBudget,
    balance: Arc<Balance>,
}

impl Account {
    /// Says what the table takes now, and how much of it its entries do.
    pub(crate) fn set(&self, bytes: u64, entries: u64) {
        let before = self.balance.bytes.swap(bytes, Ordering::Relaxed);
        self.balance.entries.store(entries, Ordering::Relaxed);
        // Wrapping, so that a table that became smaller takes its difference off.
        self.budget.0.used.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether the tables together take more than they may.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.budget.used() > self.budget.limit()
    }

    /// By how much the tables together are above what they shrink to.
    pub(crate) fn surplus(&self) -> u64 {
        let limit = self.budget.limit();
        self.budget.used().saturating_sub(limit - limit / 10)
    }

    /// Whether this table is to give up entries. Tables that are much smaller than the largest are left alone: a few
    /// entries of them are no help, and are missed as much.
    pub(crate) fn must_shrink(&self) -> bool {
        let budget = &self.budget.0;
        let used = self.budget.used();
        if used > budget.limit {
            budget.is_exceeded.store(true, Ordering::Relaxed);
        } else if used <= budget.limit - budget.limit / 10 {
            budget.is_exceeded.store(false, Ordering::Relaxed);
        }
        budget.is_exceeded.load(Ordering::Relaxed)
            && self.balance.entries.load(Ordering::Relaxed).saturating_mul(2) >= self.budget.largest()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}

/// Where the keyed tables of a subtask keep their entries. The default is memory, as much as they want.
#[derive(Clone, Debug)]
pub struct StateBackend {
    budget: MemoryBudget,
    directory: Option<PathBuf>,
    is_disk: bool,
    /// How many tables have gone to disk: each has a directory of its own.
    tables: Arc<AtomicU64>,
}

impl Default for StateBackend {
    fn default() -> Self {
        Self::new(MemoryBudget::unlimited(), None, false)
    }
}

impl StateBackend {
    /// Tables share `budget`. Entries for which it has no room go into `directory`; without one the budget is only
    /// accounted. With `is_disk` the tables count on the disk from the start, so that each checkpoint only has new files.
    pub fn new(budget: MemoryBudget, directory: Option<PathBuf>, is_disk: bool) -> Self {
        Self { budget, directory, is_disk, tables: Arc::default() }
    }

    /// The memory that they share.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Where large files that are only needed for a while can be written; none if there is no such place.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Whether tables are on disk from the start.
    pub(crate) fn is_disk(&self) -> bool {
        self.is_disk && self.directory.is_some()
    }

    /// A directory of its own for the state `name`, which nobody has created yet.
    pub(crate) fn table_directory(&self, name: &str) -> Option<PathBuf> {
        let number = self.tables.fetch_add(1, Ordering::Relaxed);
        let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(60);
        Some(self.directory.as_ref()?.join(format!("{number}-{}", plain.collect::<String>())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_share_a_budget_and_the_largest_give_way() {
        let budget = MemoryBudget::new(1000);
        let [large, small] = [budget.open_account(), budget.open_account()];
        large.set(700, 650);
        small.set(300, 300);
        assert_eq!(budget.used(), 1000);
        assert!(!large.must_shrink() && !small.must_shrink());
        small.set(320, 320);
        assert!(large.must_shrink() && !small.must_shrink() && large.is_exceeded());
        large.set(600, 550);
        assert!(large.must_shrink() && small.must_shrink() && !large.is_exceeded(), "until a tenth is free");
        large.set(500, 20);
        assert!(!small.must_shrink() && !large.must_shrink());
        drop(large);
        assert_eq!(budget.used(), 320);
    }

    #[test]
    fn what_cannot_be_given_up_does_not_hold_others_back() {
        let budget = MemoryBudget::new(1000);
        let [fixed, entries] = [budget.open_account(), budget.open_account()];
        fixed.set(900, 10);
        entries.set(200, 150);
        assert!(entries.must_shrink() && !fixed.must_shrink());
    }

    #[test]
    fn directories_are_harmless_and_distinct() {
        let backend = StateBackend::new(MemoryBudget::unlimited(), Some("/d".into()), false);
        assert_eq!(backend.table_directory("../a b").unwrap(), Path::new("/d/0----a-b"));
        assert_eq!(backend.clone().table_directory("sums").unwrap(), Path::new("/d/1-sums"));
        assert_eq!(StateBackend::default().table_directory("sums"), None);
    }
}
