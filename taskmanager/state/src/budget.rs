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
///
/// Indexes beside the tables take part of it and can be given up by nobody. Tables have what they leave, and at least an
/// eighth of the limit, so that a job whose indexes are too large still has some of its state at hand.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    limit: u64,
    /// What tables take, and what indexes beside them do.
    tables: AtomicU64,
    indexes: AtomicU64,
    /// Whether it was said that indexes take more than the limit.
    has_told: AtomicBool,
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
    /// What an index beside it takes.
    index: AtomicU64,
}

/// What a keyed state took when it was last looked after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateUsage {
    /// How many entries it has; when some are on disk, it may be fewer.
    pub entries: u64,
    /// Bytes in memory, estimated, with the index.
    pub memory_bytes: u64,
    /// Bytes of its index by time, which is always in memory.
    pub index_bytes: u64,
    /// Bytes on local disk.
    pub disk_bytes: u64,
}

/// The part of the limit that tables may take however large indexes are.
const TABLES_PART: u64 = 8;

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Budget {
            limit,
            tables: AtomicU64::new(0),
            indexes: AtomicU64::new(0),
            has_told: AtomicBool::new(false),
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

    /// How many they took when they were last looked at, with their indexes.
    pub fn used(&self) -> u64 {
        self.used_by_tables() + self.0.indexes.load(Ordering::Relaxed)
    }

    fn used_by_tables(&self) -> u64 {
        self.0.tables.load(Ordering::Relaxed)
    }

    /// What tables may take beside the indexes.
    fn room(&self) -> u64 {
        let Budget { limit, indexes, .. } = &*self.0;
        limit.saturating_sub(indexes.load(Ordering::Relaxed)).max(limit / TABLES_PART)
    }

    /// What tables shrink to when they take more than that.
    fn room_after(&self) -> u64 {
        let room = self.room();
        room - room / 10
    }

    pub(crate) fn open_account(&self) -> Account {
        let balance = Arc::new(Balance::default());
        let mut accounts = self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&balance));
        Account { budget: self.clone(), balance }
    }

    /// The largest of the parts that tables take.
    fn largest(&self, part: fn(&Balance) -> &AtomicU64) -> u64 {
        let accounts = self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = accounts.iter().filter_map(Weak::upgrade).map(|balance| part(&balance).load(Ordering::Relaxed));
        parts.max().unwrap_or(0)
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
        self.budget.0.tables.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Says what the index beside the table takes now.
    pub(crate) fn set_index(&self, bytes: u64) {
        let before = self.balance.index.swap(bytes, Ordering::Relaxed);
        self.budget.0.indexes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// What the index beside the table takes.
    pub(crate) fn index(&self) -> u64 {
        self.balance.index.load(Ordering::Relaxed)
    }

    /// What the indexes of all tables take, if that is more than all may and the one beside this table is the largest.
    /// Says so once: it is not to be heard every few milliseconds.
    pub(crate) fn excess_of_indexes(&self) -> Option<u64> {
        let budget = &self.budget.0;
        let indexes = budget.indexes.load(Ordering::Relaxed);
        let is_told = || indexes <= budget.limit || budget.has_told.load(Ordering::Relaxed);
        if is_told() || self.index() < self.budget.largest(|balance| &balance.index) {
            return None;
        }
        (!budget.has_told.swap(true, Ordering::Relaxed)).then_some(indexes)
    }

    /// Whether the tables together take more than they may.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.budget.used_by_tables() > self.budget.room()
    }

    /// By how much the tables together are above what they shrink to.
    pub(crate) fn surplus(&self) -> u64 {
        self.budget.used_by_tables().saturating_sub(self.budget.room_after())
    }

    /// Whether this table is to give up entries. Tables that are much smaller than the largest are left alone: a few
    /// entries of them are no help, and are missed as much.
    pub(crate) fn must_shrink(&self) -> bool {
        let budget = &self.budget.0;
        let used = self.budget.used_by_tables();
        if self.is_exceeded() {
            budget.is_exceeded.store(true, Ordering::Relaxed);
        } else if used <= self.budget.room_after() {
            budget.is_exceeded.store(false, Ordering::Relaxed);
        }
        budget.is_exceeded.load(Ordering::Relaxed)
            && self.balance.entries.load(Ordering::Relaxed).saturating_mul(2)
                >= self.budget.largest(|balance| &balance.entries)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.set(0, 0);
        self.set_index(0);
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
    fn indexes_take_their_part_and_leave_an_eighth() {
        let budget = MemoryBudget::new(1000);
        let [windows, sums] = [budget.open_account(), budget.open_account()];
        windows.set(100, 100);
        windows.set_index(300);
        sums.set(600, 600);
        assert_eq!((budget.used(), sums.must_shrink()), (1000, false));
        windows.set_index(310);
        assert!(sums.is_exceeded() && sums.must_shrink() && !windows.must_shrink());
        assert_eq!((sums.surplus(), sums.excess_of_indexes()), (700 - 621, None));
        windows.set_index(1001);
        windows.set(25, 25);
        sums.set(100, 100);
        assert!(!sums.is_exceeded(), "an eighth is left");
        sums.set(101, 101);
        assert!(sums.is_exceeded() && sums.must_shrink());
        assert_eq!(sums.excess_of_indexes(), None, "it has none");
        assert_eq!(windows.excess_of_indexes(), Some(1001));
        assert_eq!(windows.excess_of_indexes(), None, "once is enough");
        drop(windows);
        assert_eq!(budget.used(), 101);
    }

    #[test]
    fn directories_are_harmless_and_distinct() {
        let backend = StateBackend::new(MemoryBudget::unlimited(), Some("/d".into()), false);
        assert_eq!(backend.table_directory("../a b").unwrap(), Path::new("/d/0----a-b"));
        assert_eq!(backend.clone().table_directory("sums").unwrap(), Path::new("/d/1-sums"));
        assert_eq!(StateBackend::default().table_directory("sums"), None);
    }
}
