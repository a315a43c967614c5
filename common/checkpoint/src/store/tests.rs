use std::fs;
use std::path::Path as FilePath;

use flott_core::ErrorKind;
use flott_core::ids::{JobId, OperatorId};
use tempfile::TempDir;

use super::*;
use crate::manifest::{FORMAT_VERSION, SubtaskSnapshot, VertexSnapshot};

fn url(folder: &TempDir, name: &str) -> String {
    format!("file://{}/{name}", folder.path().display())
}

fn alter(path: &FilePath) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn truncate(path: &FilePath) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
}

fn refused<T>(result: Result<T>, kind: ErrorKind, reasons: &[&str]) {
    let Err(error) = result else { panic!("must be refused: {reasons:?}") };
    assert_eq!(error.kind, kind, "{error}");
    for reason in reasons {
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn files_come_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    for content in [Bytes::new(), Bytes::from_static(b"abc"), Bytes::from(vec![7; 3 * PART_BYTES + 1])] {
        // Written twice, as when the first answer was lost.
        store.put(&url(&folder, "a/b"), content.clone()).await.unwrap();
        let handle = store.put(&url(&folder, "a//b"), content.clone()).await.unwrap();
        assert_eq!(handle.path, url(&folder, "a/b"));
        assert_eq!(handle.bytes, content.len() as u64);
        assert_eq!(store.get_verified(&handle).await.unwrap(), content);
        assert_eq!(store.get(&handle.path, handle.bytes).await.unwrap(), content);
        let (client, path) = store.open(&handle.path).unwrap();
        assert_eq!(client.get(&path).await.unwrap().bytes().await.unwrap(), content);
    }
    refused(store.get(&url(&folder, "a/b"), 10).await, ErrorKind::Input, &["a/b has", "the most that is read is 10"]);
}

#[tokio::test]
async fn large_files_go_through_local_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    for length in [0, 3, 3 * PART_BYTES + 1] {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        fs::write(&source, &content).unwrap();
        let handle = store.put_file(&url(&folder, "a//b"), &source).await.unwrap();
        let same = store.put(&url(&folder, "c"), content.clone().into()).await.unwrap();
        assert_eq!((handle.bytes, &handle.sha256, &handle.path), (same.bytes, &same.sha256, &url(&folder, "a/b")));
        store.get_file(&handle, &target).await.unwrap();
        assert!(fs::read(&target).unwrap() == content);
    }
    let handle = store.put(&url(&folder, "state"), Bytes::from_static(b"content")).await.unwrap();
    alter(&folder.path().join("state"));
    refused(store.get_file(&handle, &target).await, ErrorKind::Input, &["is damaged", &handle.sha256]);
    truncate(&folder.path().join("state"));
    refused(store.get_file(&handle, &target).await, ErrorKind::Input, &["is truncated"]);
    fs::remove_file(folder.path().join("state")).unwrap();
    refused(store.get_file(&handle, &target).await, ErrorKind::Input, &[&handle.path, "does not exist"]);
    let nowhere = folder.path().join("none/target");
    refused(store.get_file(&handle, &nowhere).await, ErrorKind::System, &["none/target"]);
}

#[test]
fn plain_paths_name_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("x/../y").display().to_string();
    assert_eq!(Store::normalize(&plain).unwrap(), url(&folder, "y"));
}

#[tokio::test]
async fn damage_is_seen_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    let path = folder.path().join("state");
    let handle = store.put(&url(&folder, "state"), Bytes::from_static(b"content")).await.unwrap();
    alter(&path);
    refused(store.get_verified(&handle).await, ErrorKind::Input, &[&handle.path, "is damaged", &handle.sha256]);
    truncate(&path);
    refused(
        store.get_verified(&handle).await,
        ErrorKind::Input,
        &[&handle.path, "is truncated: it has 6 bytes, the manifest says 7"],
    );
    fs::write(&path, "longer content").unwrap();
    refused(store.get_verified(&handle).await, ErrorKind::Input, &[&handle.path, "has 14 bytes"]);
    fs::remove_file(&path).unwrap();
    refused(store.get_verified(&handle).await, ErrorKind::Input, &[&handle.path, "does not exist"]);
}

#[tokio::test]
async fn a_disk_that_refuses_is_a_failure_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    fs::write(folder.path().join("file"), "x").unwrap();
    let below = url(&folder, "file/below");
    refused(store.put(&below, Bytes::new()).await, ErrorKind::System, &["writing ", &below, "os error"]);
    assert_eq!(store.list(&url(&folder, ""), 9).await.unwrap(), [url(&folder, "file")]);
}

fn manifest(files: Vec<FileHandle>) -> Manifest {
    Manifest {
        version: FORMAT_VERSION,
        job: JobId([1; 16]),
        job_name: "job".to_owned(),
        generation: 1,
        checkpoint: 1,
        is_savepoint: true,
        triggered_ms: 0,
        vertices: vec![VertexSnapshot {
            name: "Window".to_owned(),
            operators: vec![OperatorId([2; 16])],
            operator_names: vec!["Window".to_owned()],
            max_parallelism: 128,
            subtasks: vec![SubtaskSnapshot {
                keyed_files: files,
                keyed_operators: vec![OperatorId([2; 16])],
                ..SubtaskSnapshot::default()
            }],
            unassigned_splits: Vec::new(),
            splits_discovered: false,
        }],
    }
}

/// A savepoint of one file in `sp`, and its manifest's hash.
async fn savepoint(store: &Store, folder: &TempDir) -> (Manifest, String) {
    let file = store.put(&url(folder, "sp/0-0.state"), Bytes::from_static(b"state")).await.unwrap();
    let manifest = manifest(vec![file]);
    let sha256 = store.write_manifest(&url(folder, "sp"), &manifest).await.unwrap();
    (manifest, sha256)
}

#[tokio::test]
async fn a_savepoint_can_be_moved() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    let (written, sha256) = savepoint(&store, &folder).await;
    fs::rename(folder.path().join("sp"), folder.path().join("moved")).unwrap();
    let plain = folder.path().join("moved").display().to_string();
    for place in [plain.clone(), format!("{plain}/"), format!("{plain}/_metadata"), url(&folder, "moved")] {
        let (location, read) = store.load_manifest(&place, Some(&sha256)).await.unwrap();
        assert_eq!(location, url(&folder, "moved"));
        assert_eq!(read, written.relative_to(&url(&folder, "sp")));
        let file = read.files().next().unwrap().resolve(&location);
        assert_eq!(store.get_verified(&file).await.unwrap(), "state");
    }
}

#[tokio::test]
async fn a_savepoint_that_is_not_whole_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    let (_, sha256) = savepoint(&store, &folder).await;
    let place = url(&folder, "sp");
    let load = |sha256| store.load_manifest(&place, sha256);
    let state = folder.path().join("sp/0-0.state");
    let metadata = folder.path().join("sp/_metadata");

    refused(load(Some("00")).await, ErrorKind::Input, &["_metadata is not the manifest", &sha256, "the log says 00"]);
    truncate(&state);
    refused(load(None).await, ErrorKind::Input, &["0-0.state is truncated: it has 4 bytes, the manifest says 5"]);
    fs::remove_file(&state).unwrap();
    refused(load(None).await, ErrorKind::Input, &["0-0.state does not exist"]);
    alter(&metadata);
    refused(load(None).await, ErrorKind::Input, &["sp/_metadata is truncated or damaged"]);
    fs::write(&metadata, "").unwrap();
    refused(load(None).await, ErrorKind::Input, &["sp/_metadata is truncated or damaged"]);
    fs::remove_file(&metadata).unwrap();
    refused(load(None).await, ErrorKind::Input, &["no checkpoint or savepoint", &place, "does not exist"]);
    let none = store.load_manifest("ftp://host/sp", None).await;
    refused(none, ErrorKind::Input, &["unknown scheme 'ftp'", "s3://"]);
}

#[tokio::test]
async fn deleting_is_repeatable_and_exact() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    for name in ["c/chk-1/a", "c/chk-1/b", "c/chk-10/a"] {
        store.put(&url(&folder, name), Bytes::from_static(b"xyz")).await.unwrap();
    }
    fs::write(folder.path().join("c/chk-10/.a-0123.part"), "of a writer that died").unwrap();
    let names = async |name: &str| {
        let mut files = store.list(&url(&folder, name), 9).await.unwrap();
        files.sort();
        files.iter().map(|file| file.rsplit_once("/c/").unwrap().1.to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(names("c").await, ["chk-1/a", "chk-1/b", "chk-10/.a-0123.part", "chk-10/a"]);
    assert_eq!(names("c/chk-1").await, ["chk-1/a", "chk-1/b"]);
    assert_eq!(store.list(&url(&folder, "c"), 3).await.unwrap().len(), 3);
    for _ in 0..2 {
        let urls = [url(&folder, "c/chk-1/a"), url(&folder, "c/chk-10/.a-0123.part"), url(&folder, "c/none")];
        store.delete_files(&urls).await.unwrap();
        assert_eq!(names("c").await, ["chk-1/b", "chk-10/a"]);
    }
    for _ in 0..2 {
        store.delete_folder(&url(&folder, "c/chk-1")).await.unwrap();
        assert_eq!(names("c").await, ["chk-10/a"]);
        assert!(!folder.path().join("c/chk-1").exists());
    }
    assert!(names("c/none").await.is_empty());
    refused(store.delete_folder("file:///").await, ErrorKind::Input, &["is a root"]);
}
