use std::fs;
use std::path::Path;

use flott_connector_spi::IoHandle;
use flott_connector_spi::conformance::check_sink;
use flott_core::ids::{Generation, JobId};
use flott_core::{Batch, ErrorKind};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::sink::part::ClosedPart;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn context(io: &IoHandle, generation: Generation) -> SinkContext {
    SinkContext {
        io: io.clone(),
        job: JobId([7; 16]),
        generation,
        subtask: 0,
        parallelism: 1,
        outlet: Default::default(),
    }
}

/// The names of all files below `folder`.
fn files(folder: &Path) -> Vec<String> {
    fn collect(folder: &Path, root: &Path, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, names);
            } else {
                names.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut names = Vec::new();
    collect(folder, folder, &mut names);
    names.sort();
    names
}

/// What readers see below `folder`: `bucket: line`.
fn visible(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for name in files(folder) {
        let (bucket, file) = name.rsplit_once('/').unwrap_or(("", &name));
        if !is_hidden(file) {
            let content = fs::read_to_string(folder.join(&name)).unwrap();
            assert!(!content.is_empty(), "{name} is empty");
            lines.extend(content.lines().map(|line| format!("{bucket}: {line}")));
        }
    }
    lines
}

/// A sink into a folder of its own.
struct Place<T> {
    folder: TempDir,
    sink: FileSink<T>,
}

impl Place<u32> {
    fn new(change: impl Fn(FileSink<u32>) -> FileSink<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sink = change(FileSink::text(folder.path().join("out").to_str().unwrap()));
        Self { folder, sink }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("out")
    }
}

impl<T: Data> Sink<T> for Place<T> {
    fn writer(&self, cx: SinkContext, restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<T>>> {
        self.sink.writer(cx, restored)
    }
}

fn write(writer: &mut dyn SinkWriter<u32>, rows: impl IntoIterator<Item = u32>) -> Result<()> {
    writer.write(&mut Batch::from_rows(rows.into_iter().collect()))
}

#[test]
fn local_parts_are_visible_exactly_once() {
    let runtime = runtime();
    let rows: Vec<u32> = (0..19).collect();
    check_sink(
        runtime.handle(),
        &rows,
        || Place::new(|sink| sink.bucket_by(|row| if row % 3 == 0 { String::new() } else { format!("b/{}", row % 3) })),
        |place| if place.path().exists() { visible(&place.path()) } else { Vec::new() },
        |row| if row % 3 == 0 { format!(": {row}") } else { format!("b/{}: {row}", row % 3) },
    );
}

/// A sink into an object store of its own.
struct Objects {
    objects: Arc<InMemory>,
    sink: FileSink<u32>,
}

impl Sink<u32> for Objects {
    fn writer(&self, cx: SinkContext, _restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<u32>>> {
        let folder = ObjectFolder::new(cx.io.clone(), self.objects.clone(), "s3://bucket".to_owned(), "/out/", &cx);
        Ok(Box::new(self.sink.new_writer(Box::new(folder), self.sink.names(&cx)?)))
    }
}

async fn visible_objects(objects: &InMemory) -> Vec<String> {
    let mut lines = Vec::new();
    let listed: Vec<_> = objects.list(None).try_collect().await.unwrap();
    for object in listed {
        if !object.location.as_ref().contains("/_staging/") {
            assert!(object.location.as_ref().starts_with("out/part-"), "{}", object.location);
            let content = objects.get(&object.location).await.unwrap().bytes().await.unwrap();
            lines.extend(std::str::from_utf8(&content).unwrap().lines().map(str::to_owned));
        }
    }
    lines
}

#[test]
fn objects_are_visible_exactly_once() {
    let runtime = runtime();
    let rows: Vec<u32> = (0..19).collect();
    check_sink(
        runtime.handle(),
        &rows,
        || Objects { objects: Arc::new(InMemory::new()), sink: FileSink::text("s3://bucket/out") },
        |sink| runtime.block_on(visible_objects(&sink.objects)),
        u32::to_string,
    );
}

#[test]
fn objects_larger_than_a_piece() {
    let runtime = runtime();
    let sink = Objects { objects: Arc::new(InMemory::new()), sink: FileSink::text("s3://bucket/out") };
    let mut writer = sink.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    let rows = 2_000_000;
    for start in (0..rows).step_by(1000) {
        write(&mut *writer, start..start + 1000).unwrap();
    }
    let prepared = writer.prepare(false).unwrap();
    writer.commit(1, prepared).unwrap();
    let lines = runtime.block_on(visible_objects(&sink.objects));
    assert!(lines.iter().map(|line| line.parse::<u32>().unwrap()).eq(0..rows));
}

#[derive(Clone, Serialize, Deserialize)]
struct Row {
    name: String,
    count: u32,
}

#[test]
fn every_csv_part_has_a_header() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let sink = FileSink::csv(folder.path().to_str().unwrap()).bucket_by(|row: &Row| row.name.clone()).delimiter(b';');
    let mut writer = sink.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    let row = |name: &str, count| Row { name: name.into(), count };
    writer.write(&mut Batch::from_rows(vec![row("a", 1), row("a", 2), row("b", 3), row("a", 4)])).unwrap();
    let prepared = writer.prepare(true).unwrap();
    writer.commit(1, prepared).unwrap();
    assert_eq!(visible(folder.path()), ["a: name;count", "a: a;1", "a: a;2", "a: a;4", "b: name;count", "b: b;3"]);
}

#[test]
fn parts_roll_by_bytes_and_by_time() {
    let runtime = runtime();
    let policy =
        RollingPolicy { bytes_max: 10, duration_max: Duration::from_secs(60), inactivity_max: Duration::from_secs(10) };
    let place = Place::new(|sink| sink.rolling(policy));
    let mut writer = place.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    assert_eq!(writer.deadline(), None);
    write(&mut *writer, 100..103).unwrap();
    assert_eq!(writer.deadline(), None, "12 bytes are a part of their own");
    write(&mut *writer, [1]).unwrap();
    let deadline = writer.deadline().unwrap();
    let wait_ms = deadline - flott_env::now_ms();
    assert!((0..=10_000).contains(&wait_ms), "{wait_ms}");
    writer.on_time(deadline - 1).unwrap();
    assert!(writer.deadline().is_some());
    writer.on_time(deadline).unwrap();
    assert_eq!(writer.deadline(), None);
    assert_eq!(visible(&place.path()), Vec::<String>::new());
    assert_eq!(writer.prepare(false).unwrap().len(), 2);
    assert_eq!(writer.prepare(false).unwrap().len(), 0, "there are no empty parts");
}

#[test]
fn many_buckets_do_not_need_many_open_files() {
    let runtime = runtime();
    let place = Place::new(|sink| sink.bucket_by(|row| format!("bucket-{row}")));
    let mut writer = place.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    write(&mut *writer, 0..300).unwrap();
    let in_progress = files(&place.path()).iter().filter(|name| name.ends_with(".inprogress")).count();
    assert_eq!(in_progress, 256);
    let prepared = writer.prepare(false).unwrap();
    assert_eq!(prepared.len(), 300);
    writer.commit(1, prepared).unwrap();
    assert_eq!(visible(&place.path()).len(), 300);
}

#[test]
fn commits_that_cannot_be() {
    let runtime = runtime();
    let place = Place::new(|sink| sink);
    let mut writer = place.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    let mut part = |row| {
        write(&mut *writer, [row]).unwrap();
        let prepared = writer.prepare(false).unwrap();
        let closed = ClosedPart::decode(&prepared[0]).unwrap();
        (prepared, closed.staged.to_string(), closed.target.to_string())
    };
    let (kept, ..) = part(0);
    let (lost, staged, _) = part(1);
    fs::remove_file(staged).unwrap();
    let (taken, _, target) = part(2);
    fs::write(target, "mine").unwrap();
    let (changed, staged, _) = part(3);
    fs::write(staged, "other content").unwrap();

    writer.commit(1, kept.clone()).unwrap();
    writer.commit(1, kept).unwrap();
    for (committables, reason) in
        [(lost, "its records are lost"), (taken, "exists already"), (changed, "was changed or damaged")]
    {
        let error = writer.commit(1, committables).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.message.contains(reason) && error.message.contains("/out/"), "{error}");
    }
    assert!(writer.commit(1, vec![b"{}".to_vec()]).unwrap_err().message.contains("damaged"));
}

#[test]
fn what_the_dead_left_behind() {
    let runtime = runtime();
    let place = Place::new(|sink| sink.bucket_by(|row| format!("b{row}")));
    let mut dead = place.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    write(&mut *dead, [1]).unwrap();
    let prepared = dead.prepare(false).unwrap();
    write(&mut *dead, [2]).unwrap();
    std::mem::forget(dead);
    fs::write(place.path().join(".part-0-0-g1-other.txt.inprogress"), "another job's").unwrap();
    assert_eq!(files(&place.path()).len(), 3);

    let mut writer = place.writer(context(runtime.handle(), 2), Vec::new()).unwrap();
    assert_eq!(files(&place.path()).len(), 2, "the part that was never closed is gone");
    writer.commit(1, prepared).unwrap();
    assert_eq!(visible(&place.path()), ["b1: 1"]);

    write(&mut *writer, [3]).unwrap();
    drop(writer);
    assert_eq!(files(&place.path()).len(), 2, "a writer that ends in peace leaves nothing unfinished");
}

#[test]
fn names_that_cannot_be() {
    let runtime = runtime();
    let place = Place::new(|sink| sink.bucket_by(|_| "../elsewhere".to_owned()));
    let mut writer = place.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    let error = write(&mut *writer, [1]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UserCode);
    assert!(error.message.contains("\"../elsewhere\""), "{error}");

    for prefix in ["", ".part", "_part", "a/b"] {
        let place = Place::new(|sink| sink.prefix(prefix));
        let Err(error) = place.writer(context(runtime.handle(), 1), Vec::new()) else { panic!("{prefix}") };
        assert!(error.message.contains("cannot be called"), "{error}");
    }
    let place = Place::new(|sink| sink);
    fs::write(place.path(), "a file").unwrap();
    let mut writer = place.writer(context(runtime.handle(), 1), Vec::new()).unwrap();
    assert!(write(&mut *writer, [1]).unwrap_err().message.contains("/out"));
}
