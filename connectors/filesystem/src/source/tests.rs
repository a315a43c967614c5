use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use flott_connector_spi::conformance::{Execution, check_source, read_until_error};
use flott_core::ErrorKind;
use flott_formats::{Decoded, FileInfo};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flight {
    origin: String,
    delay: Option<i32>,
}

/// A folder and a runtime to read it with.
struct Place {
    folder: TempDir,
    runtime: Runtime,
}

impl Place {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { folder: tempfile::tempdir().unwrap(), runtime }
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn check<T: Data + PartialEq + std::fmt::Debug>(&self, source: &FileSource<T>, expected: &[T]) {
        check_source(source, self.runtime.handle(), expected);
    }

    /// All rows of one reader, and how many records it skipped.
    fn read<T: Data>(&self, source: &FileSource<T>) -> (Vec<T>, u64) {
        let mut execution = Execution::start(source, self.runtime.handle(), 1).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = execution.next_batch().unwrap() {
            rows.extend(batch.rows);
        }
        (rows, execution.skipped())
    }

    fn error<T: Data>(&self, source: &FileSource<T>) -> String {
        let (_, error) = read_until_error(source, self.runtime.handle());
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        error.message
    }
}

fn text(path: &Path) -> FileSource<String> {
    FileSource::text(path.to_str().unwrap())
}

fn csv(path: &Path) -> FileSource<Flight> {
    FileSource::csv(path.to_str().unwrap())
}

/// The source with ranges and chunks of so many bytes.
fn cut<T: Data>(source: FileSource<T>, split_bytes: u64, chunk_bytes: usize) -> FileSource<T> {
    let mut source = source.split_bytes(split_bytes);
    source.options.chunk_bytes = chunk_bytes;
    source
}

fn lines(content: &str) -> Vec<String> {
    content.lines().map(str::to_owned).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ::zstd::stream::encode_all(content, 1).unwrap()
}

#[test]
fn text_survives_restarts_and_rescaling() {
    let place = Place::new();
    let content = "one\n\nthree\r\nvier mit Umlaut: ä\n\n\n7\n8\n9 and a longer line at the end\n10";
    let path = place.write("a.txt", content);
    for split_bytes in [1, 7, 1000] {
        place.check(&cut(text(&path), split_bytes, 5), &lines(content));
    }
    place.write("b.txt", "from b\n");
    place.write("c.txt", "");
    place.check(&cut(text(place.folder.path()), 16, 64), &lines(&format!("{content}\nfrom b\n")));
}

#[test]
fn csv_and_json_survive_restarts_and_rescaling() {
    let place = Place::new();
    let rows: Vec<Flight> =
        (0..10).map(|i| Flight { origin: format!("A{i}"), delay: (i % 3 > 0).then_some(i) }).collect();
    let mut content = "delay,unused,origin\n".to_owned();
    for Flight { origin, delay } in &rows {
        content += &format!("{},x,{origin}\n", delay.map(|delay| delay.to_string()).unwrap_or_default());
    }
    let path = place.write("a.csv", &content);
    for split_bytes in [3, 25, 1000] {
        place.check(&cut(csv(&path), split_bytes, 10), &rows);
    }
    let headless = place.write("headless.csv", "A0;NA\nA1;1\n");
    place.check(&csv(&headless).has_header(false).delimiter(b';').null_literal("NA"), &rows[..2]);

    let content: String = rows.iter().map(|row| serde_json::to_string(row).unwrap() + "\n").collect();
    let path = place.write("a.json", content);
    place.check(&cut(FileSource::<Flight>::json(path.to_str().unwrap()), 30, 10), &rows);
}

/// Gives what it was told of its file, once a line.
struct Told(Option<FileInfo>);

impl Decoder<String> for Told {
    fn opened(&mut self, info: FileInfo) -> Result<()> {
        self.0 = Some(info);
        Ok(())
    }

    fn decode(&mut self, input: &[u8], _: bool, _: usize, rows: &mut Vec<String>) -> Decoded {
        let bytes = input.iter().position(|byte| *byte == b'\n').map_or(input.len(), |at| at + 1);
        rows.push(self.0.map_or_else(|| "nothing".to_owned(), |info| format!("{} {}", info.bytes, info.modified_ms)));
        Decoded { bytes, malformed: None }
    }
}

#[test]
fn decoders_are_told_of_their_files_if_they_want() {
    let place = Place::new();
    let (plain, packed) = (place.write("a.txt", "1\n2\n3\n"), place.write("b.txt.gz", gzip(b"1\n2\n")));
    let packed_bytes = fs::metadata(&packed).unwrap().len();
    for (path, ms) in [(&plain, 1_700_000_000_123), (&packed, 7)] {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(ms)).unwrap();
    }
    let source = || {
        let told = |_: &FilePath| Ok(Box::new(Told(None)) as Box<dyn Decoder<String>>);
        FileSource::with_decoder(place.folder.path().to_str().unwrap(), told)
    };
    let (of_plain, of_packed) = ("6 1700000000123".to_owned(), format!("{packed_bytes} 7"));
    let mut expected = vec![of_plain; 3];
    expected.extend(vec![of_packed; 2]);
    place.check(&cut(source().file_info(true), 3, 2), &expected);
    assert_eq!(place.read(&source()).0, vec!["nothing"; 5]);
}

#[test]
fn compressed_files_survive_restarts() {
    let place = Place::new();
    let content = "origin,delay\nJFK,1\nEWR,2\nLGA,\nJFK,4\nEWR,5\n";
    let rows = |delays: &[(&str, Option<i32>)]| -> Vec<Flight> {
        delays.iter().map(|(origin, delay)| Flight { origin: (*origin).into(), delay: *delay }).collect()
    };
    let expected = rows(&[("JFK", Some(1)), ("EWR", Some(2)), ("LGA", None), ("JFK", Some(4)), ("EWR", Some(5))]);
    let (head, tail) = content.as_bytes().split_at(20);
    for (name, compressed) in [
        ("a.csv.gz", gzip(content.as_bytes())),
        ("b.csv.zst", zstd(content.as_bytes())),
        ("members.csv.gz", [gzip(head), gzip(tail)].concat()),
        ("frames.csv.zst", [zstd(head), zstd(tail)].concat()),
    ] {
        let path = place.write(name, compressed);
        place.check(&cut(csv(&path), 4, 8), &expected);
    }
}

#[test]
fn truncated_and_damaged_compression_is_an_error() {
    let place = Place::new();
    let content: String = (0..5000).map(|i| format!("line {}\n", i * 7919)).collect();
    for (name, compressed) in [("a.gz", gzip(content.as_bytes())), ("a.zst", zstd(content.as_bytes()))] {
        for length in [compressed.len() - 1, compressed.len() / 2, 5] {
            let path = place.write(name, &compressed[..length]);
            let error = place.error(&text(&path));
            assert!(error.contains(name) && error.contains("truncated or damaged"), "{name}, {length}: {error}");
        }
    }
    let path = place.write("text.gz", "this is no gzip\n");
    assert!(place.error(&text(&path)).contains("text.gz"));
    let path = place.write("empty.gz", "");
    assert!(place.error(&text(&path)).contains("truncated or damaged"));
}

#[test]
fn malformed_records_are_found_by_file_and_line() {
    let place = Place::new();
    let mut content = "origin,delay\n".to_owned();
    (2..30).for_each(|line| content += &format!("L{line},{line}\n"));
    content += "L30,soon\nL31,31\n";
    let path = place.write("a.csv", &content);
    let expected = format!("{}, line 30: field 'delay' (column 2): ", path.display());
    for split_bytes in [1 << 20, 50] {
        let error = place.error(&cut(csv(&path), split_bytes, 16));
        assert!(error.starts_with(&expected) && error.ends_with("found 'soon'"), "{error}");
    }
    let compressed = place.write("a.csv.gz", gzip(content.as_bytes()));
    assert!(place.error(&csv(&compressed)).contains("a.csv.gz, line 30: "));

    let (rows, skipped) = place.read(&cut(csv(&path).on_error(OnError::Skip), 50, 16));
    assert_eq!((rows.len(), skipped), (29, 1));
    assert_eq!(rows[28], Flight { origin: "L31".into(), delay: Some(31) });

    let path = place.write("a.txt", b"good\nb\xffd\n");
    assert!(place.error(&text(&path)).ends_with("a.txt, line 2: byte 2 of the line is not valid UTF-8"));
    let path = place.write("a.json", "{\"origin\":\"JFK\",\"delay\":1}\n\n{\n");
    assert!(place.error(&FileSource::<Flight>::json(path.to_str().unwrap())).contains("a.json, line 3: column "));
}

#[test]
fn fields_with_line_breaks_need_whole_files() {
    let place = Place::new();
    let content = "origin,delay\n\"a\nb\",1\nc,2\n\"d\n\n\",3\n";
    let path = place.write("a.csv", content);
    let error = place.error(&csv(&path));
    assert!(error.contains("line 2: ") && error.contains("whole_files"), "{error}");
    let expected: Vec<Flight> = [("a\nb", 1), ("c", 2), ("d\n\n", 3)]
        .map(|(origin, delay)| Flight { origin: origin.into(), delay: Some(delay) })
        .into();
    for chunk_bytes in [1, 5, 100] {
        place.check(&cut(csv(&path).whole_files(true), 4, chunk_bytes), &expected);
    }
    let path = place.write("b.csv", "origin,delay\na,1\n\"b,2\nc,3\n");
    assert!(place.error(&csv(&path).whole_files(true)).contains("line 3: a quoted field is never closed"));
}

#[test]
fn files_that_changed() {
    let place = Place::new();
    let path = place.write("a.txt", "one\ntwo\nthree\n");
    let source = text(&path);
    let io = place.runtime.handle();

    let mut execution = Execution::start(&source, io, 1).unwrap();
    place.write("a.txt", "one\ntwo\nthree\nfour\n");
    assert_eq!(execution.next_batch().unwrap().unwrap().rows, ["one", "two", "three"]);
    assert!(execution.next_batch().unwrap().is_none());

    let mut execution = Execution::start(&source, io, 1).unwrap();
    place.write("a.txt", "one\n");
    let error = execution.next_batch().unwrap_err();
    assert!(
        error.message.contains("a.txt became shorter: it had 19 bytes when it was listed, and ends at 4"),
        "{error}"
    );

    let mut execution = Execution::start(&source, io, 1).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(execution.next_batch().unwrap_err().message.contains("a.txt does not exist"));
}

#[test]
fn missing_files_are_named() {
    let place = Place::new();
    assert!(place.error(&text(&place.folder.path().join("none.txt"))).contains("none.txt does not exist"));
    assert!(place.error(&text(&place.folder.path().join("*.txt"))).contains("no file matches"));
    let path = place.write("a.csv", "\na,1\n");
    assert!(place.error(&csv(&path)).contains("a.csv: line 1: the header is empty"));
}

#[test]
fn a_reader_that_is_dropped_stops_its_thread() {
    let place = Place::new();
    let path = place.write("a.txt", "line\n".repeat(100_000));
    let source = cut(text(&path), 1 << 30, 100);
    let mut execution = Execution::start(&source, place.runtime.handle(), 1).unwrap();
    assert_eq!(execution.next_batch().unwrap().unwrap().rows.len(), 3);
    drop(execution);
    // Dropping a runtime waits for its blocking threads.
    drop(place.runtime);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Wherever a file is cut, every line is read once, in order.
    #[test]
    fn every_line_once(
        content in "([a-cäß]{0,5}(\n|\r\n)){0,12}[a-cäß]{0,5}",
        split_bytes in 1u64..40,
        chunk_bytes in 1usize..20,
        is_compressed: bool,
    ) {
        let place = Place::new();
        let path = if is_compressed {
            place.write("a.txt.gz", gzip(content.as_bytes()))
        } else {
            place.write("a.txt", &content)
        };
        let (rows, _) = place.read(&cut(text(&path), split_bytes, chunk_bytes));
        prop_assert_eq!(rows, lines(&content));
    }
}
