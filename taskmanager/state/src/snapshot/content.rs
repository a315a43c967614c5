//! The sections of a snapshot: in memory, or in a file when they are many, since state takes its memory once already.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flott_core::ids::OperatorId;
use flott_core::key_group::KeyGroup;
use flott_core::{Error, Result, ResultExt};

use super::{MAGIC, SectionKind, SectionVisitor, SnapshotReader};

/// How much stays in memory.
const MEMORY_MAX: usize = 16 << 20;

/// A file that goes when this does.
#[derive(Debug)]
pub struct ScratchFile {
    path: PathBuf,
    length: u64,
}

impl ScratchFile {
    /// Owns a file that exists.
    pub fn new(path: PathBuf, length: u64) -> Self {
        Self { path, length }
    }

    /// The same file, now that it has this length.
    #[must_use]
    pub fn with_length(mut self, length: u64) -> Self {
        self.length = length;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // Somebody may have taken it away.
        let _ = fs::remove_file(&self.path);
    }
}

/// What a [`SnapshotWriter`](super::SnapshotWriter) collected.
#[derive(Debug)]
pub enum SnapshotContent {
    /// It was little.
    Memory(Vec<u8>),
    /// It was much.
    File(ScratchFile),
}

impl SnapshotContent {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.length,
        }
    }

    /// Whether it has no section.
    pub fn is_empty(&self) -> bool {
        self.length() <= MAGIC.len() as u64
    }

    /// Gives `visit` key group, number of entries and entries of the sections of a state, all of which must be bases.
    pub fn sections(&self, operator: OperatorId, name: &str, visit: SectionVisitor<'_>) -> Result<()> {
        let check = |kind| match kind {
            SectionKind::Base => Ok(()),
            SectionKind::Change => Err(Error::system(format!("the snapshot of state '{name}' is not whole"))),
        };
        match self {
            Self::Memory(bytes) => {
                let mut reader = SnapshotReader::new(bytes)?;
                while let Some(section) = reader.next_section()? {
                    if section.operator == operator && section.name == name {
                        check(section.kind)?;
                        visit(section.group, section.entries, section.body)?;
                    }
                }
            }
            Self::File(file) => {
                let mut reader = FileReader::open(file)?;
                let mut body = Vec::new();
                while let Some(head) = reader.next_head()? {
                    if head.operator == operator && head.name == name.as_bytes() {
                        check(head.kind)?;
                        reader.body(&head, &mut body)?;
                        visit(head.group, head.entries, &body)?;
                    } else {
                        reader.skip(&head)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The file of a writer, once it has one.
#[derive(Debug)]
pub(super) struct Overflow {
    path: PathBuf,
    file: Option<(File, ScratchFile)>,
}

impl Overflow {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.file.is_none()
    }

    /// Whether so many bytes in memory are too many.
    pub(super) fn is_wanted(&self, bytes: usize) -> bool {
        bytes > MEMORY_MAX
    }

    /// Writes `bytes`, which are empty then, and `body`.
    pub(super) fn write(&mut self, bytes: &mut Vec<u8>, body: &[u8]) -> Result<()> {
        let written = self.append(bytes).and_then(|()| self.append(body));
        written
            .with_context(|| format!("writing a snapshot through {}, a place in 'io.tmp.dirs'", self.path.display()))?;
        *bytes = Vec::new();
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let file = OpenOptions::new().write(true).create_new(true).open(&self.path)?;
            self.file = Some((file, ScratchFile::new(self.path.clone(), 0)));
        }
        if let Some((file, scratch)) = &mut self.file {
            file.write_all(bytes)?;
            scratch.length += bytes.len() as u64;
        }
        Ok(())
    }

    /// The file, with what is in memory still.
    pub(super) fn finish(mut self, bytes: &mut Vec<u8>) -> Result<ScratchFile> {
        self.write(bytes, &[])?;
        let file = self.file.take();
        file.map(|(_, file)| file).ok_or_else(|| Error::system("a snapshot has no file"))
    }
}

/// What stands in front of a section's body.
struct Head {
    operator: OperatorId,
    name: Vec<u8>,
    group: KeyGroup,
    kind: SectionKind,
    entries: u64,
    length: u64,
}

/// Reads a file section by section. We have just written it, but disks fail, so no length is believed.
struct FileReader<'a> {
    reader: BufReader<File>,
    left: u64,
    path: &'a Path,
}

impl<'a> FileReader<'a> {
    fn open(file: &'a ScratchFile) -> Result<Self> {
        let path = file.path();
        let opened = File::open(path).with_context(|| format!("reading {}", path.display()))?;
        let mut reader = Self { reader: BufReader::new(opened), left: file.length, path };
        match reader.take::<8>()? == *MAGIC {
            true => Ok(reader),
            false => Err(reader.damaged()),
        }
    }

    fn damaged(&self) -> Error {
        Error::system(format!("{} is not what was written to it: check the disk", self.path.display()))
    }

    fn claim(&mut self, length: u64) -> Result<()> {
        self.left = self.left.checked_sub(length).ok_or_else(|| self.damaged())?;
        Ok(())
    }

    fn fill(&mut self, length: u64, buffer: &mut Vec<u8>) -> Result<()> {
        self.claim(length)?;
        buffer.clear();
        buffer.resize(length as usize, 0);
        self.reader.read_exact(buffer).with_context(|| format!("reading {}", self.path.display()))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.claim(N as u64)?;
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).with_context(|| format!("reading {}", self.path.display()))?;
        Ok(bytes)
    }

    fn next_head(&mut self) -> Result<Option<Head>> {
        if self.left == 0 {
            return Ok(None);
        }
        let operator = OperatorId(self.take()?);
        let mut name_length = 0_u64;
        for shift in (0_u32..).step_by(7) {
            let [byte] = self.take::<1>()?;
            name_length |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                return Err(self.damaged());
            }
        }
        let mut name = Vec::new();
        self.fill(name_length, &mut name)?;
        let group = KeyGroup::from_le_bytes(self.take()?);
        let kind = if self.take::<1>()? == [0] { SectionKind::Base } else { SectionKind::Change };
        let entries = u64::from_le_bytes(self.take()?);
        let length = u64::from_le_bytes(self.take()?);
        Ok(Some(Head { operator, name, group, kind, entries, length }))
    }

    fn body(&mut self, head: &Head, body: &mut Vec<u8>) -> Result<()> {
        self.fill(head.length, body)
    }

    fn skip(&mut self, head: &Head) -> Result<()> {
        self.claim(head.length)?;
        let length = i64::try_from(head.length).map_err(|_| self.damaged())?;
        self.reader.seek_relative(length).with_context(|| format!("reading {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::SnapshotWriter;
    use super::*;

    const OPERATORS: [OperatorId; 2] = [OperatorId([1; 16]), OperatorId([2; 16])];

    type Found = Vec<(KeyGroup, u64, usize, u8)>;

    fn write(mut writer: SnapshotWriter, body: &[u8]) -> SnapshotWriter {
        for operator in OPERATORS {
            writer.set_operator(operator);
            for (group, name) in [(0, "a"), (0, "b"), (1, "a"), (2, "a")] {
                writer.section(name, group, SectionKind::Base, u64::from(group) + 5, body).unwrap();
            }
        }
        writer
    }

    fn found(content: &SnapshotContent, operator: OperatorId, name: &str) -> Found {
        let mut found = Found::new();
        let visited = content.sections(operator, name, &mut |group, entries, body| {
            found.push((group, entries, body.len(), body.last().copied().unwrap_or(0)));
            Ok(())
        });
        visited.unwrap();
        found
    }

    #[test]
    fn a_large_snapshot_is_the_same_in_a_file() {
        let disk = tempfile::tempdir().unwrap();
        let path = disk.path().join("new/chk-1.sections");
        let body = vec![7; MEMORY_MAX / 3];
        let in_memory = write(SnapshotWriter::default(), &body).into_bytes();
        let (content, runs) = write(SnapshotWriter::overflowing_to(path.clone()), &body).finish().unwrap();
        assert!(runs.is_empty() && matches!(content, SnapshotContent::File(_)));
        assert_eq!(content.length(), in_memory.len() as u64);
        assert!(fs::read(&path).unwrap() == in_memory);
        let plain = SnapshotContent::Memory(in_memory);
        for operator in OPERATORS {
            for name in ["a", "b", "c"] {
                assert_eq!(found(&content, operator, name), found(&plain, operator, name));
            }
        }
        assert_eq!(found(&content, OPERATORS[1], "a").len(), 3);
        drop(content);
        assert!(!path.exists());
    }

    #[test]
    fn a_small_snapshot_makes_no_file() {
        let disk = tempfile::tempdir().unwrap();
        let path = disk.path().join("chk-1.sections");
        let writer = SnapshotWriter::overflowing_to(path.clone());
        assert!(writer.is_empty());
        let (content, _) = write(writer, &[1, 2]).finish().unwrap();
        assert!(!content.is_empty() && !path.exists());
        assert_eq!(found(&content, OPERATORS[0], "b"), [(0, 5, 2, 2)]);
    }

    #[test]
    fn a_disk_that_fails_costs_the_snapshot_alone() {
        let disk = tempfile::tempdir().unwrap();
        fs::write(disk.path().join("file"), "x").unwrap();
        let writer = SnapshotWriter::overflowing_to(disk.path().join("file/chk-1.sections"));
        let error = write(writer, &vec![7; MEMORY_MAX]).finish().unwrap_err();
        assert!(error.message.contains("chk-1.sections") && error.message.contains("io.tmp.dirs"), "{error}");
    }

    #[test]
    fn a_file_that_was_cut_or_altered_is_no_snapshot() {
        let disk = tempfile::tempdir().unwrap();
        let path = disk.path().join("chk-1.sections");
        let bytes = write(SnapshotWriter::default(), &[7; 10]).into_bytes();
        for length in [0, 5, 8, 20, bytes.len() - 1] {
            fs::write(&path, &bytes[..length]).unwrap();
            let content = SnapshotContent::File(ScratchFile::new(path.clone(), bytes.len() as u64));
            assert!(content.sections(OPERATORS[1], "a", &mut |_, _, _| Ok(())).is_err(), "{length} bytes");
        }
        let mut altered = bytes.clone();
        altered[8 + 16 + 2 + 2 + 1 + 8 + 5] = 1;
        fs::write(&path, &altered).unwrap();
        let content = SnapshotContent::File(ScratchFile::new(path.clone(), bytes.len() as u64));
        let error = content.sections(OPERATORS[0], "a", &mut |_, _, _| Ok(())).unwrap_err();
        assert!(error.message.contains("not what was written"), "{error}");
    }
}
