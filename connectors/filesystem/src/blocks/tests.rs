use std::fs;
use std::ops::Range;
use std::path::Path;

use flott_connector_spi::conformance::{check_source, read_until_error};
use flott_core::ErrorKind;
use flott_formats::{BlockReader, FileBytes};

use super::*;

/// Blocks of so many numbers, a byte each, which are read in portions of two.
const BLOCK: u64 = 5;

struct Numbers;

struct NumbersReader {
    file: Arc<dyn FileBytes>,
    end: u64,
    position: Position,
}

impl BlockFormat<Vec<u8>> for Numbers {
    fn open(
        &self,
        file: Arc<dyn FileBytes>,
        range: Range<u64>,
        from: Option<Position>,
    ) -> Result<Box<dyn BlockReader<Vec<u8>>>> {
        let position = from.unwrap_or(Position { block: range.start.div_ceil(BLOCK), row: 0 });
        Ok(Box::new(NumbersReader { file, end: range.end.div_ceil(BLOCK), position }))
    }
}

impl BlockReader<Vec<u8>> for NumbersReader {
    fn next(&mut self) -> Result<Option<(Vec<u8>, Position)>> {
        if self.position.row == BLOCK {
            self.position = Position { block: self.position.block + 1, row: 0 };
        }
        let Position { block, row } = self.position;
        let start = block * BLOCK + row;
        if block >= self.end || start >= self.file.length() {
            return Ok(None);
        }
        let end = (start + 2).min((block + 1) * BLOCK).min(self.file.length());
        let numbers = self.file.read_at(start..end)?.to_vec();
        if numbers.contains(&99) {
            return Err(Error::input(format!("{}, block {block}: 99 is not allowed", self.file.name())));
        }
        self.position.row += end - start;
        Ok(Some((numbers, self.position)))
    }
}

fn source(folder: &Path) -> BlockSource<Vec<u8>> {
    BlockSource::new(folder.to_str().unwrap(), |_| Ok(Box::new(Numbers)))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn every_block_is_read_once_whatever_happens() {
    let folder = tempfile::tempdir().unwrap();
    let numbers: Vec<u8> = (0..23).collect();
    fs::write(folder.path().join("a"), &numbers).unwrap();
    fs::write(folder.path().join("b"), [50, 51, 52]).unwrap();
    let mut expected: Vec<Vec<u8>> =
        numbers.chunks(BLOCK as usize).flat_map(|block| block.chunks(2)).map(<[u8]>::to_vec).collect();
    expected.extend([vec![50, 51], vec![52]]);
    let runtime = runtime();
    for split_bytes in [1, 4, 7, 100] {
        check_source(&source(folder.path()).split_bytes(split_bytes), runtime.handle(), &expected);
    }
}

#[test]
fn files_are_chosen_and_errors_name_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), [1]).unwrap();
    fs::write(folder.path().join("b"), [2, 3, 99]).unwrap();
    let runtime = runtime();
    let only_a = source(folder.path()).choose(|file| Ok(file.to_string().ends_with("/a")));
    check_source(&only_a, runtime.handle(), &[vec![1]]);
    let (rows, error) = read_until_error(&source(folder.path()), runtime.handle());
    assert_eq!(rows, [vec![1], vec![2, 3]]);
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(error.message.ends_with("/b, block 0: 99 is not allowed"), "{error}");
    let refusing = source(folder.path()).choose(|file| Err(Error::input(format!("{file} is refused"))));
    assert!(read_until_error(&refusing, runtime.handle()).1.message.ends_with("/a is refused"));
}
