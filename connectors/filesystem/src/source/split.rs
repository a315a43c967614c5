//! Byte ranges of files.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::source::input::Compression;
use crate::system::FilePath;

/// A smaller range is not worth a reader's while.
const SPLIT_BYTES_MIN: u64 = 1 << 20;

/// A part of a file that one reader reads: the lines that start in a byte range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSplit {
    /// The file.
    pub(crate) file: FilePath,
    /// Its length when it was listed. What is appended later is not read.
    pub(crate) bytes: u64,
    /// Where the range begins, and where it ends: the first byte behind it. A compressed file is one range that ends
    /// when the file does, wherever that is.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The byte behind the last record that was read, or `start`; in a compressed file counted without compression.
    pub(crate) position: u64,
}

impl FileSplit {
    /// The file that it is a part of.
    pub fn file(&self) -> &FilePath {
        &self.file
    }
}

/// A file and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) file: FilePath,
    pub(crate) bytes: u64,
}

/// How large splits are, so that every reader has at least two to keep all of them busy to the end.
fn bytes_max(files: &[Listed], split_bytes: u64, parallelism: u32) -> u64 {
    let bytes_total: u64 = files.iter().map(|file| file.bytes).sum();
    let share = bytes_total / (2 * u64::from(parallelism.max(1)));
    split_bytes.min(share.max(SPLIT_BYTES_MIN)).max(1)
}

/// Cuts files into ranges of about `split_bytes`, or less, of files that may be cut anywhere.
pub(crate) fn ranges(files: Vec<Listed>, split_bytes: u64, parallelism: u32) -> Vec<(FilePath, u64, Range<u64>)> {
    let bytes_max = bytes_max(&files, split_bytes, parallelism);
    let mut ranges = Vec::new();
    for Listed { file, bytes } in files {
        let length = bytes.div_ceil(bytes.div_ceil(bytes_max).max(1)).max(1);
        for start in (0..bytes.max(1)).step_by(usize::try_from(length).unwrap_or(usize::MAX)) {
            // An empty file has a range too: its format says what is wrong with it.
            ranges.push((file.clone(), bytes, start..(start + length).min(bytes.max(1))));
        }
    }
    ranges
}

/// Cuts files into splits of about `split_bytes`, or less.
pub(crate) fn plan(files: Vec<Listed>, split_bytes: u64, parallelism: u32, whole_files: bool) -> Vec<FileSplit> {
    let bytes_max = bytes_max(&files, split_bytes, parallelism);
    let mut splits = Vec::new();
    for Listed { file, bytes } in files {
        if Compression::of(&file) != Compression::None {
            splits.push(FileSplit { file, bytes, start: 0, end: u64::MAX, position: 0 });
            continue;
        }
        let count = if whole_files { 1 } else { bytes.div_ceil(bytes_max).max(1) };
        let length = bytes.div_ceil(count);
        let mut start = 0;
        while start < bytes {
            let end = (start + length).min(bytes);
            splits.push(FileSplit { file: file.clone(), bytes, start, end, position: start });
            start = end;
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ranges(name: &str, bytes: u64, split_bytes: u64, parallelism: u32, whole_files: bool) -> Vec<(u64, u64)> {
        let file = Listed { file: FilePath::Local(name.into()), bytes };
        plan(vec![file], split_bytes, parallelism, whole_files).iter().map(|split| (split.start, split.end)).collect()
    }

    #[test]
    fn ranges_are_neither_too_large_nor_too_small() {
        assert_eq!(ranges("a", 10, 64 * MIB, 4, false), [(0, 10)]);
        assert_eq!(ranges("a", 4 * MIB, 64 * MIB, 2, false).len(), 4);
        assert_eq!(ranges("a", 4 * MIB, 64 * MIB, 100, false).len(), 4);
        assert_eq!(ranges("a", 1000 * MIB, 64 * MIB, 1, false).len(), 16);
        assert_eq!(ranges("a", 10, 4, 1, false), [(0, 4), (4, 8), (8, 10)]);
        assert_eq!(ranges("a", 0, 4, 1, false), []);
    }

    #[test]
    fn what_cannot_be_cut_stays_whole() {
        assert_eq!(ranges("a", 1000 * MIB, 64 * MIB, 8, true), [(0, 1000 * MIB)]);
        assert_eq!(ranges("a.gz", 1000 * MIB, 64 * MIB, 8, false), [(0, u64::MAX)]);
        assert_eq!(ranges("a.zst", 0, 64 * MIB, 8, false), [(0, u64::MAX)]);
    }
}
