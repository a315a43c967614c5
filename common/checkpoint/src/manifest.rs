//! The `_metadata` file: everything that a restore needs, with lengths and hashes.
//!
//! The file is one line `flott-manifest VERSION SHA256`, and then the [`Manifest`] as JSON, which the hash is of. A
//! manifest is the root of all other hashes, and a savepoint's is in no log, so it must vouch for itself.

use flott_core::ids::{CheckpointId, Generation, JobId, OperatorId};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::store::sha256_hex;

/// The name of a manifest in its folder.
pub const METADATA_FILE: &str = "_metadata";

/// The first word of a manifest's file.
const MAGIC: &str = "flott-manifest";

/// The version of the format that this build writes. It reads all versions up to this one.
///
/// 1: keyed state lies in state files only. 2: every keyed state is described, a savepoint's lies in tables, and a
/// checkpoint's may lie in runs.
pub const FORMAT_VERSION: u32 = 2;

/// A file that a task wrote. `path` is relative to the manifest's folder where it lies below it, so
/// that a savepoint can be moved; otherwise it is a full URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileHandle {
    /// Where it is.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

impl FileHandle {
    /// The same file with a full URL, given the folder of the manifest that names it.
    #[must_use]
    pub fn resolve(&self, folder: &str) -> Self {
        if self.path.contains("://") {
            return self.clone();
        }
        Self { path: format!("{}/{}", folder.trim_end_matches('/'), self.path), ..self.clone() }
    }
}

/// How the elements of an operator's state spread over its subtasks after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Redistribution {
    /// Each element goes to one subtask, round robin.
    Split,
    /// Every subtask gets every element.
    Union,
}

/// State of an operator's subtask that belongs to no key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorState {
    /// The operator.
    pub operator: OperatorId,
    /// The state's name.
    pub name: String,
    /// What a restore does with its elements.
    pub redistribution: Redistribution,
    /// Its elements, each encoded by the operator.
    pub elements: Vec<Vec<u8>>,
}

/// One keyed state of a subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedState {
    /// The operator.
    pub operator: OperatorId,
    /// The state's name.
    pub name: String,
    /// The columns of its entries, as the state's own code describes them.
    pub schema: String,
    /// How many entries it has.
    pub rows: u64,
    /// How many bytes they take: in memory for a checkpoint, in its file for a savepoint.
    pub bytes: u64,
    /// The Parquet file that holds them, in a savepoint; a checkpoint has them in the subtask's state files, or in runs.
    pub table: Option<FileHandle>,
    /// The files that hold them, if the subtask had them on disk, the oldest first. Then what its state files say of the
    /// state, from before that, does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<RunHandle>>,
}

impl KeyedState {
    /// The files that hold it and no other state.
    pub fn files(&self) -> impl Iterator<Item = &FileHandle> {
        self.table.iter().chain(self.runs.iter().flatten().map(|run| &run.file))
    }

    /// See [`Self::files`].
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut FileHandle> {
        self.table.iter_mut().chain(self.runs.iter_mut().flatten().map(|run| &mut run.file))
    }
}

/// A file of a state that was on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHandle {
    /// The file. Checkpoints share it as long as the subtask has it.
    pub file: FileHandle,
    /// The key groups whose entries in it do not count any more.
    pub dropped: Vec<KeyGroup>,
}

/// What was sent to a subtask before a barrier that overtook it, and had not been processed when the subtask took its
/// snapshot: part of an unaligned checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelState {
    /// The operator that received it: the first one of the vertex.
    pub operator: OperatorId,
    /// A text that is equal for types whose records look the same in their binary form.
    pub schema: String,
    /// The edges that lead to the subtask, in the order in which the file numbers their channels.
    pub inputs: Vec<ChannelInput>,
    /// How many records it has.
    pub rows: u64,
    /// The file that holds it.
    pub file: FileHandle,
}

/// The channels of one edge that lead to a subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelInput {
    /// The first operator of the vertex that sends.
    pub sender: OperatorId,
    /// Whether records find their subtask by their key.
    pub is_keyed: bool,
    /// How many channels: one a sending subtask that can reach the receiving one.
    pub channels: u32,
}

/// What one subtask contributed to a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskSnapshot {
    /// The files of its keyed state in a checkpoint: a base, then the changes since, in order.
    pub keyed_files: Vec<FileHandle>,
    /// The operators that have keyed state.
    pub keyed_operators: Vec<OperatorId>,
    /// Its keyed states; unknown to version 1 of the format.
    #[serde(default)]
    pub keyed_states: Vec<KeyedState>,
    /// Its operator state.
    pub operator_states: Vec<OperatorState>,
    /// What was in flight to it; unknown to version 1 of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_state: Option<Box<ChannelState>>,
    /// Bytes that this checkpoint added, for the statistics.
    pub bytes_written: u64,
    /// How long the subtask stopped processing for it, in microseconds.
    pub sync_micros: u64,
    /// How long it took from the barrier to the acknowledgement, in microseconds.
    pub total_micros: u64,
    /// How long its inputs were blocked for the barriers of others, in microseconds.
    pub alignment_micros: u64,
}

impl SubtaskSnapshot {
    /// Whether its files hold state of `operator`. An operator may have keyed state without a single key.
    pub fn has_keyed_state(&self, operator: OperatorId) -> bool {
        let has_own_files =
            |state: &KeyedState| state.operator == operator && (state.table.is_some() || state.runs.is_some());
        (!self.keyed_files.is_empty() && self.keyed_operators.contains(&operator))
            || self.keyed_states.iter().any(has_own_files)
    }

    /// Every file that it needs, as written in it.
    pub fn files(&self) -> impl Iterator<Item = &FileHandle> {
        let own = self.keyed_states.iter().flat_map(KeyedState::files);
        let channels = self.channel_state.iter().map(|state| &state.file);
        self.keyed_files.iter().chain(own).chain(channels)
    }

    /// See [`Self::files`].
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut FileHandle> {
        let own = self.keyed_states.iter_mut().flat_map(KeyedState::files_mut);
        let channels = self.channel_state.iter_mut().map(|state| &mut state.file);
        self.keyed_files.iter_mut().chain(own).chain(channels)
    }
}

/// The snapshots of all subtasks of a vertex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexSnapshot {
    /// The vertex's name, for messages.
    pub name: String,
    /// Its operators.
    pub operators: Vec<OperatorId>,
    /// Names of its operators, for messages, in the order of `operators`.
    pub operator_names: Vec<String>,
    /// How many key groups its keyed state is divided into.
    pub max_parallelism: u32,
    /// One snapshot a subtask, by index.
    pub subtasks: Vec<SubtaskSnapshot>,
    /// Splits of its source that no subtask had been given yet.
    pub unassigned_splits: Vec<Vec<u8>>,
    /// Whether the source's splits had been discovered; a restore then does not discover again.
    pub splits_discovered: bool,
}

impl VertexSnapshot {
    /// The key groups of subtask `index`.
    pub fn key_groups(&self, index: u32) -> KeyGroupRange {
        flott_core::key_group::range_of(self.subtasks.len() as u32, index, self.max_parallelism)
    }

    /// Whether a subtask has keyed state of `operator`.
    pub fn has_keyed_state(&self, operator: OperatorId) -> bool {
        self.subtasks.iter().any(|subtask| subtask.has_keyed_state(operator))
    }

    /// Whether records were in flight to `operator`.
    pub fn has_channel_state(&self, operator: OperatorId) -> bool {
        self.subtasks.iter().filter_map(|subtask| subtask.channel_state.as_ref()).any(|s| s.operator == operator)
    }

    /// Whether there is any state of `operator`, which is one of the vertex's.
    pub fn has_state(&self, operator: OperatorId) -> bool {
        // Splits belong to the source, and only the first operator of a vertex can be one.
        let has_splits = self.splits_discovered || !self.unassigned_splits.is_empty();
        let states = |subtask: &SubtaskSnapshot| {
            subtask.operator_states.iter().any(|state| state.operator == operator && !state.elements.is_empty())
        };
        (has_splits && self.operators.first() == Some(&operator))
            || self.has_keyed_state(operator)
            || self.has_channel_state(operator)
            || self.subtasks.iter().any(states)
    }
}

/// A completed checkpoint or savepoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_VERSION`] of the build that wrote it.
    pub version: u32,
    /// The job that it was taken of.
    pub job: JobId,
    /// The job's name.
    pub job_name: String,
    /// The generation that it was taken in.
    pub generation: Generation,
    /// Its number.
    pub checkpoint: CheckpointId,
    /// Whether it is self-contained and belongs to the user.
    pub is_savepoint: bool,
    /// When it was triggered, in milliseconds since 1970.
    pub triggered_ms: i64,
    /// All vertices.
    pub vertices: Vec<VertexSnapshot>,
}

impl Manifest {
    /// The same manifest with the paths of files below `folder`, a normalised URL, relative to it, so
    /// that the folder can be moved.
    #[must_use]
    pub fn relative_to(&self, folder: &str) -> Self {
        let mut manifest = self.clone();
        let subtasks = manifest.vertices.iter_mut().flat_map(|vertex| &mut vertex.subtasks);
        for file in subtasks.flat_map(SubtaskSnapshot::files_mut) {
            if let Some(path) = file.path.strip_prefix(folder).and_then(|path| path.strip_prefix('/')) {
                file.path = path.to_owned();
            }
        }
        manifest
    }

    /// The manifest's file content.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let body = serde_json::to_vec(self).map_err(|error| Error::system(format!("writing a manifest: {error}")))?;
        let mut bytes = format!("{MAGIC} {} {}\n", self.version, sha256_hex(&body)).into_bytes();
        bytes.extend(body);
        Ok(bytes)
    }

    /// Reads a manifest's file content. `place` names it in errors.
    pub fn from_bytes(place: &str, bytes: &[u8]) -> Result<Self> {
        let damaged = |reason: &str| Error::input(format!("{place} is truncated or damaged: {reason}"));
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("its first line does not end"))?;
        let (head, body) = (&bytes[..end], &bytes[end + 1..]);
        let head: Vec<&str> = std::str::from_utf8(head).unwrap_or_default().split(' ').collect();
        let [MAGIC, version, sha256] = head[..] else {
            return Err(damaged("it does not begin as the manifest of a checkpoint does"));
        };
        let version: u32 = version.parse().map_err(|_| damaged("its version is no number"))?;
        if version == 0 {
            return Err(damaged("its version is 0"));
        }
        if version > FORMAT_VERSION {
            return Err(Error::input(format!(
                "{place} has format version {version}, this build reads versions up to {FORMAT_VERSION}: use the build that wrote it, or a newer one"
            )));
        }
        let actual = sha256_hex(body);
        if actual != sha256 {
            return Err(damaged(&format!("the SHA-256 of its content is {actual}, its first line says {sha256}")));
        }
        let manifest: Self = serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
        if manifest.version != version {
            return Err(damaged(&format!(
                "its first line says version {version}, its content version {}",
                manifest.version
            )));
        }
        Ok(manifest)
    }

    /// Every file that it needs besides itself, as written in it.
    pub fn files(&self) -> impl Iterator<Item = &FileHandle> {
        self.vertices.iter().flat_map(|vertex| &vertex.subtasks).flat_map(SubtaskSnapshot::files)
    }

    /// Bytes of state that this checkpoint added.
    pub fn bytes_written(&self) -> u64 {
        self.vertices.iter().flat_map(|vertex| &vertex.subtasks).map(|subtask| subtask.bytes_written).sum()
    }

    /// Bytes of all state that it holds.
    pub fn bytes_total(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn manifest() -> Manifest {
        let file = |path: &str| FileHandle { path: path.to_owned(), bytes: 3, sha256: sha256_hex(b"abc") };
        Manifest {
            version: FORMAT_VERSION,
            job: JobId([1; 16]),
            job_name: "flights".to_owned(),
            generation: 2,
            checkpoint: 7,
            is_savepoint: false,
            triggered_ms: 1_700_000_000_000,
            vertices: vec![VertexSnapshot {
                name: "Window -> Sink".to_owned(),
                operators: vec![OperatorId([2; 16])],
                operator_names: vec!["Window".to_owned()],
                max_parallelism: 128,
                subtasks: vec![SubtaskSnapshot {
                    keyed_files: vec![file("file:///c/chk-6/0-0.state"), file("file:///c/chk-7/0-0.state")],
                    keyed_operators: vec![OperatorId([2; 16])],
                    keyed_states: vec![
                        KeyedState {
                            operator: OperatorId([2; 16]),
                            name: "panes".to_owned(),
                            schema: "[]".to_owned(),
                            rows: 4,
                            bytes: 96,
                            table: Some(file("file:///c/chk-7/Window/panes/0-0.parquet")),
                            runs: None,
                        },
                        KeyedState {
                            operator: OperatorId([2; 16]),
                            name: "timers".to_owned(),
                            schema: "[]".to_owned(),
                            rows: 5,
                            bytes: 80,
                            table: None,
                            runs: Some(vec![
                                RunHandle { file: file("file:///c/chk-6/0-0-timers-3.run"), dropped: vec![7, 9] },
                                RunHandle { file: file("file:///c/chk-7/0-0-timers-4.run"), dropped: vec![] },
                            ]),
                        },
                    ],
                    operator_states: vec![OperatorState {
                        operator: OperatorId([2; 16]),
                        name: "parts".to_owned(),
                        redistribution: Redistribution::Split,
                        elements: vec![vec![1, 2], vec![]],
                    }],
                    channel_state: Some(Box::new(ChannelState {
                        operator: OperatorId([2; 16]),
                        schema: "[]".to_owned(),
                        inputs: vec![ChannelInput { sender: OperatorId([3; 16]), is_keyed: true, channels: 2 }],
                        rows: 6,
                        file: file("file:///c/chk-7/0-0.channels"),
                    })),
                    bytes_written: 5,
                    sync_micros: 1,
                    total_micros: 2,
                    alignment_micros: 3,
                }],
                unassigned_splits: vec![vec![9]],
                splits_discovered: true,
            }],
        }
    }

    #[test]
    fn the_format_is_the_golden_one() {
        let bytes = manifest().relative_to("file:///c/chk-7").to_bytes().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        // Old savepoints must stay readable: a change here needs a new FORMAT_VERSION, and a reader of both.
        expect![[r#"
            flott-manifest 2 74c3dd712da18e26f19fd8d49f2ae3a33decc06223ac4a67110c2926a10901e6
            {"version":2,"job":"01010101010101010101010101010101","job_name":"flights","generation":2,"checkpoint":7,"is_savepoint":false,"triggered_ms":1700000000000,"vertices":[{"name":"Window -> Sink","operators":["02020202020202020202020202020202"],"operator_names":["Window"],"max_parallelism":128,"subtasks":[{"keyed_files":[{"path":"file:///c/chk-6/0-0.state","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},{"path":"0-0.state","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}],"keyed_operators":["02020202020202020202020202020202"],"keyed_states":[{"operator":"02020202020202020202020202020202","name":"panes","schema":"[]","rows":4,"bytes":96,"table":{"path":"Window/panes/0-0.parquet","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}},{"operator":"02020202020202020202020202020202","name":"timers","schema":"[]","rows":5,"bytes":80,"table":null,"runs":[{"file":{"path":"file:///c/chk-6/0-0-timers-3.run","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"dropped":[7,9]},{"file":{"path":"0-0-timers-4.run","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"dropped":[]}]}],"operator_states":[{"operator":"02020202020202020202020202020202","name":"parts","redistribution":"Split","elements":[[1,2],[]]}],"channel_state":{"operator":"02020202020202020202020202020202","schema":"[]","inputs":[{"sender":"03030303030303030303030303030303","is_keyed":true,"channels":2}],"rows":6,"file":{"path":"0-0.channels","bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}},"bytes_written":5,"sync_micros":1,"total_micros":2,"alignment_micros":3}],"unassigned_splits":[[9]],"splits_discovered":true}]}"#]].assert_eq(&text);
        assert_eq!(Manifest::from_bytes("m", text.as_bytes()).unwrap(), manifest().relative_to("file:///c/chk-7"));
    }

    #[test]
    fn version_1_is_still_read() {
        let manifest = Manifest::from_bytes("m", include_bytes!("manifest_v1.golden")).unwrap();
        assert_eq!(manifest.version, 1);
        let subtask = &manifest.vertices[0].subtasks[0];
        assert_eq!((subtask.keyed_files.len(), subtask.keyed_states.len()), (2, 0));
        assert!(subtask.has_keyed_state(OperatorId([2; 16])));
    }

    #[test]
    fn paths_are_relative_below_the_folder_only() {
        let paths = |manifest: &Manifest| manifest.files().map(|file| file.path.clone()).collect::<Vec<_>>();
        let relative = manifest().relative_to("file:///c/chk-7");
        let files = [
            "file:///c/chk-6/0-0.state",
            "0-0.state",
            "Window/panes/0-0.parquet",
            "file:///c/chk-6/0-0-timers-3.run",
            "0-0-timers-4.run",
            "0-0.channels",
        ];
        assert_eq!(paths(&relative), files);
        assert_eq!(paths(&manifest().relative_to("file:///c/chk")), paths(&manifest()));
        let moved: Vec<_> = relative.files().map(|file| file.resolve("s3://b/moved/").path).collect();
        let resolved = files.map(|path| match path.contains("://") {
            true => path.to_owned(),
            false => format!("s3://b/moved/{path}"),
        });
        assert_eq!(moved, resolved);
    }

    #[test]
    fn another_version_is_refused_by_its_number() {
        let text = String::from_utf8(manifest().to_bytes().unwrap()).unwrap();
        let newer = text.replacen("flott-manifest 2 ", "flott-manifest 3 ", 1);
        let error = Manifest::from_bytes("m/_metadata", newer.as_bytes()).unwrap_err();
        assert!(
            error.to_string().starts_with("m/_metadata has format version 3, this build reads versions up to 2"),
            "{error}"
        );
        let older = Manifest { version: 1, ..manifest() }.to_bytes().unwrap();
        let mixed = String::from_utf8(older).unwrap().replacen("flott-manifest 1 ", "flott-manifest 2 ", 1);
        let error = Manifest::from_bytes("m", mixed.as_bytes()).unwrap_err();
        assert!(error.to_string().ends_with("its first line says version 2, its content version 1"), "{error}");
        let error = Manifest::from_bytes("m", b"flott-manifest 0 y\n").unwrap_err();
        assert_eq!(error.message, "m is truncated or damaged: its version is 0");
        for damaged in ["", "\n", "flott-manifest 1", "{}\n{}", "flott-manifest x y\n"] {
            let error = Manifest::from_bytes("m/_metadata", damaged.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("m/_metadata is truncated or damaged: "), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_altered_byte_goes_unseen(at in any::<prop::sample::Index>(), mask in 1..=u8::MAX) {
            let mut bytes = manifest().to_bytes().unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
            prop_assert!(Manifest::from_bytes("m", &bytes).is_err());
            bytes[at] ^= mask;
            prop_assert!(Manifest::from_bytes("m", &bytes[..at]).is_err());
            prop_assert!(Manifest::from_bytes("m", &bytes).is_ok());
        }
    }
}
