//! Keyed state that does not fit into memory: sorted files on local disk.
//!
//! A [`ColdStore`] holds entries of bytes, ordered by key group, hash and key. It is a list of *runs*, each an immutable
//! file: what an older one says of a key is shadowed by a newer one, and a tombstone in a newer one deletes it. Whoever
//! uses the store keeps recent entries in memory and writes many at once as a new run.
//!
//! ```
//! use flott_state::cold::{ColdOptions, ColdStore, Lookup};
//!
//! let disk = tempfile::tempdir().unwrap();
//! let mut store = ColdStore::open(&disk.path().join("counts"), ColdOptions::default()).unwrap();
//! let mut run = store.new_run(2).unwrap();
//! run.push(7, 11, b"apple", Some(b"one")).unwrap();
//! run.push(7, 12, b"pear", Some(b"two")).unwrap();
//! store.add_run(run).unwrap();
//! let mut run = store.new_run(1).unwrap();
//! run.push(7, 11, b"apple", None).unwrap();
//! store.add_run(run).unwrap();
//!
//! let mut value = Vec::new();
//! assert_eq!(store.get(7, 12, b"pear", &mut value).unwrap(), Lookup::Found);
//! assert_eq!(value, b"two");
//! assert_eq!(store.get(7, 11, b"apple", &mut value).unwrap(), Lookup::Deleted);
//! ```
//!
//! **Lookups** ask the filter of each run, newest first, then its index, both in memory, then read one block through a
//! small cache: positional reads, no mapped memory, so that a failing disk is an error and not a signal.
//!
//! **Checkpoints** are lists of files: [`ColdStore::pin`] takes one in time that depends on the number of runs alone. A
//! file never changes, so a checkpoint uploads those that the one before does not have. Key groups that were dropped
//! are not in the files: the checkpoint notes them with each ([`RunFile::dropped`]) and gives them back to
//! [`ColdStore::adopt_run`]. A file is removed when neither the store nor a pin nor a scan has it any more.
//!
//! **Merging** keeps the runs few; `merge.rs` says which are merged and what it costs. It has no thread of its own:
//! who writes calls [`ColdStore::maintain`] with a number of bytes, and that much is done. Slots use all cores already,
//! so a thread would take its time from them anyway, at moments that nobody chose; here the work is paced by the writing
//! that makes it necessary, it is the same in every run of the same job, and there are no locks.
//!
//! # The form of a run
//!
//! ```text
//! file    = "FLOTTRN1" block* filter index footer
//! block   = body crc32(body)
//! body    = hash(u64)* place(u64)* (key value?)*          one each for every entry, perhaps compressed with LZ4
//! place   = end(u32) key-length(u31) is-tombstone(u1)     end: of key and value, from the first key on
//! filter  = (u32 u32 u32 u32 u32 u32 u32 u32)*            see filter.rs
//! index   = (group(u16) first-hash(u64) entries(u32) length(u32) raw-length(u32))*           one for each block
//! footer  = length-of-blocks(u64) length-of-filter(u64) length-of-index(u64) entries(u64)
//!           crc32(filter index) crc32(footer until here) "FLOTTRN1"
//! ```
//!
//! Integers are little-endian. Entries are in the order of (group, hash, key bytes). A block has entries of one key
//! group, about 16 KiB of them; entries with one hash are in one block. `length` is what the body takes in the file and
//! `raw-length` what it takes in memory; the body is compressed if they differ. All lengths are checked against that of
//! the file before anything is allocated, and every byte is under a checksum or compared: an altered file is an error
//! that says where.

use std::cell::RefCell;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flott_core::key_group::KeyGroup;
use flott_core::{Result, ResultExt};

mod block;
mod cache;
mod directory;
mod filter;
mod format;
mod live;
mod merge;
mod run;
mod scan;
mod writer;

#[cfg(test)]
mod tests;

use block::Block;
use cache::BlockCache;
use directory::{Directory, OwnedFile};
use live::{GroupSet, Live};
use merge::Merge;
use run::Run;

pub use live::{Pinned, RunFile};
pub use run::check_version;
pub use scan::{Entry, Scan};
pub use writer::RunWriter;

/// When there are this many times more runs than there should be, adding one waits until they are fewer.
const RUNS_LIMIT_FACTOR: usize = 4;

/// How a store works. The defaults do for most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdOptions {
    /// About how large a block is: what a lookup reads from disk.
    pub block_bytes: usize,
    /// How much memory the cache of blocks may take.
    pub cache_bytes: usize,
    /// Whether blocks are compressed with LZ4. It makes files smaller, and a lookup that misses the cache dearer
    /// unless the disk is slow.
    pub compress: bool,
    /// Runs are merged when there are more.
    pub runs_max: usize,
}

impl Default for ColdOptions {
    fn default() -> Self {
        Self { block_bytes: 16 << 10, cache_bytes: 8 << 20, compress: false, runs_max: 8 }
    }
}

/// What a store knows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It has a value.
    Found,
    /// It had one, perhaps, and was deleted.
    Deleted,
    /// Nothing.
    Absent,
}

/// The entries of one state of one subtask that are on disk.
pub struct ColdStore {
    directory: Arc<Directory>,
    options: ColdOptions,
    /// Oldest first.
    runs: Vec<Live>,
    merge: Option<Merge>,
    cache: RefCell<BlockCache>,
    next_id: u64,
}

impl ColdStore {
    /// An empty store in a directory of its own, which is created, and removed with the last of its files.
    ///
    /// # Errors
    /// The directory cannot be created, or something is in it.
    pub fn open(dir: &Path, options: ColdOptions) -> Result<Self> {
        Ok(Self {
            directory: Directory::create(dir)?,
            cache: RefCell::new(BlockCache::new(options.cache_bytes)),
            options,
            runs: Vec::new(),
            merge: None,
            next_id: 0,
        })
    }

    /// Begins a run. `expected` is about how many entries it will have: by it the filter is sized.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn new_run(&mut self, expected: u64) -> Result<RunWriter> {
        let location = self.new_file();
        RunWriter::create(location, &self.options, expected)
    }

    /// Adds a run as the newest. A run without entries leaves nothing behind.
    ///
    /// # Errors
    /// It cannot be written to its end, for example because the disk is full. The store is as before then, and the
    /// file gone.
    pub fn add_run(&mut self, run: RunWriter) -> Result<()> {
        let runs_limit = self.options.runs_max.max(1).saturating_mul(RUNS_LIMIT_FACTOR);
        while self.runs.len() >= runs_limit && self.maintain(u64::MAX)? {}
        let run = run.finish()?.map(|run| Live::new(run, GroupSet::default()));
        self.runs.extend(run);
        Ok(())
    }

    /// Adds a file that this or another store has written as the newest run; `dropped` is what the checkpoint noted of
    /// it, and key groups that belong to others now. The file is linked, or copied if it is on another disk. Returns
    /// the number under which it is listed from now on, unless all that it has is dropped.
    ///
    /// # Errors
    /// It is not such a file, or damaged. Blocks are only checked when they are read.
    pub fn adopt_run(&mut self, file: &Path, dropped: &[KeyGroup]) -> Result<u64> {
        let location = self.new_file();
        let id = location.id();
        let adopted = if fs::hard_link(file, location.path()).is_ok() {
            Run::open(location)
        } else {
            match fs::copy(file, location.path()) {
                Ok(_) => Run::open(location),
                Err(error) => Err(location.write_error(&error)),
            }
        };
        let run = adopted.with_context(|| format!("taking over {}", file.display()))?;
        let mut live = Live::new(run, GroupSet::default());
        for group in dropped {
            live.drop_group(*group);
        }
        self.runs.push(live);
        self.forget_empty();
        Ok(id)
    }

    fn new_file(&mut self) -> OwnedFile {
        let id = self.next_id;
        self.next_id += 1;
        OwnedFile::new(&self.directory, id)
    }

    /// Looks a key up; if it is found, `value` is set to its value.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged.
    pub fn get(&self, group: KeyGroup, hash: u64, key: &[u8], value: &mut Vec<u8>) -> Result<Lookup> {
        for live in self.runs.iter().rev() {
            let Some(block) = self.block_with(live, group, hash)? else { continue };
            let Some(index) = block.find(block.range_of(hash), key) else { continue };
            let Some(found) = block.entry(index).1 else { return Ok(Lookup::Deleted) };
            value.clear();
            value.extend_from_slice(found);
            return Ok(Lookup::Found);
        }
        Ok(Lookup::Absent)
    }

    /// Gives `visit` the key and value of each live entry with this hash.
    ///
    /// # Errors
    /// Those of [`ColdStore::get`], and of `visit`.
    pub fn get_by_hash(
        &self,
        group: KeyGroup,
        hash: u64,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut newer: Vec<(Arc<Block>, Range<usize>)> = Vec::new();
        for live in self.runs.iter().rev() {
            let Some(block) = self.block_with(live, group, hash)? else { continue };
            let range = block.range_of(hash);
            for index in range.clone() {
                let (key, value) = block.entry(index);
                let is_shadowed = newer.iter().any(|(block, range)| block.find(range.clone(), key).is_some());
                if let Some(value) = value
                    && !is_shadowed
                {
                    visit(key, value)?;
                }
            }
            if !range.is_empty() {
                newer.push((block, range));
            }
        }
        Ok(())
    }

    /// The block of a run in which entries with this hash are, if any are in it.
    #[inline]
    fn block_with(&self, live: &Live, group: KeyGroup, hash: u64) -> Result<Option<Arc<Block>>> {
        if live.dropped.contains(group) {
            return Ok(None);
        }
        let Some(index) = live.run.block_with(group, hash) else { return Ok(None) };
        self.cache.borrow_mut().block(&live.run, index).map(Some)
    }

    /// The live entries of a key group, in order. The scan sees the state as it is now.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged.
    pub fn scan_group(&self, group: KeyGroup) -> Result<Scan> {
        Scan::of_group(&self.runs, group)
    }

    /// Removes all entries of a key group. Runs that are added later may have new ones.
    pub fn drop_group(&mut self, group: KeyGroup) {
        for live in &mut self.runs {
            live.drop_group(group);
        }
        if let Some(merge) = &mut self.merge {
            merge.drop_group(group);
        }
        self.forget_empty();
    }

    /// Gives up runs that have only what was dropped, unless they are being merged.
    fn forget_empty(&mut self) {
        if self.merge.is_none() {
            self.runs.retain(|live| live.entries() > 0);
        }
    }

    /// Merges until about `budget_bytes` are read; true if there is more to do. Ten bytes for each byte that was added
    /// are enough to keep up.
    ///
    /// # Errors
    /// A file is damaged, or the disk full. The runs are as before then.
    pub fn maintain(&mut self, budget_bytes: u64) -> Result<bool> {
        let mut merge = match self.merge.take() {
            Some(merge) => merge,
            None => match self.next_merge()? {
                Some(merge) => merge,
                None => return Ok(false),
            },
        };
        if !merge.advance(budget_bytes)? {
            self.merge = Some(merge);
            return Ok(true);
        }
        let place = merge.place_in(&self.runs);
        let merged = merge.finish()?;
        self.runs.splice(place, merged);
        self.forget_empty();
        Ok(self.plan().is_some())
    }

    fn plan(&self) -> Option<Range<usize>> {
        merge::plan(&merge::sizes(&self.runs, self.options.block_bytes), self.options.runs_max)
    }

    fn next_merge(&mut self) -> Result<Option<Merge>> {
        let Some(range) = self.plan() else { return Ok(None) };
        let location = self.new_file();
        let create = |expected| RunWriter::create(location, &self.options, expected);
        Merge::new(&self.runs[range.clone()], range.start == 0, create).map(Some)
    }

    /// The state as it is now, for a checkpoint.
    pub fn pin(&self) -> Pinned {
        Pinned { runs: self.runs.iter().filter(|live| live.entries() > 0).cloned().collect() }
    }

    /// Takes the state back to where it was when this store was pinned.
    pub fn rewind(&mut self, to: &Pinned) {
        self.merge = None;
        self.runs.clone_from(&to.runs);
    }

    /// The files that the state consists of now, oldest first.
    pub fn live_files(&self) -> Vec<RunFile> {
        self.pin().files()
    }

    /// How many entries there are, at most: what is shadowed or deleted counts until it is merged away.
    pub fn entries(&self) -> u64 {
        self.runs.iter().map(Live::entries).sum()
    }

    /// What the store takes on disk, without what only pins and scans have.
    pub fn disk_bytes(&self) -> u64 {
        let runs: u64 = self.runs.iter().map(|live| live.run.length()).sum();
        runs + self.merge.as_ref().map_or(0, Merge::disk_bytes)
    }

    /// What the store takes in memory: indexes, filters, the cache, and a merge under way.
    pub fn memory_bytes(&self) -> u64 {
        let runs: usize = self.runs.iter().map(|live| live.run.memory_bytes()).sum();
        let merge = self.merge.as_ref().map_or(0, Merge::memory_bytes);
        (runs + self.cache.borrow().memory_bytes()) as u64 + merge
    }
}
