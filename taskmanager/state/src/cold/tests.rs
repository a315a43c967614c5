use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use flott_core::hash::stable_hash;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

type Key = (KeyGroup, u64, Vec<u8>);
type Content = BTreeMap<Key, Vec<u8>>;
type Changes = BTreeMap<Key, Option<Vec<u8>>>;

const GROUPS: [KeyGroup; 3] = [0, 1, 200];
const HASHES: [u64; 5] = [0, 1, 1 << 32, 0x9E37_79B9_7F4A_7C15, u64::MAX];
const KEYS: [&[u8]; 3] = [b"", b"k", b"kk"];

/// Everything small, so that little is needed for many blocks, evictions and merges.
fn small(compress: bool) -> ColdOptions {
    ColdOptions { block_bytes: 40, cache_bytes: 2 << 10, compress, runs_max: 2 }
}

fn disk() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(disk: &TempDir, name: &str, options: ColdOptions) -> ColdStore {
    ColdStore::open(&disk.path().join(name), options).unwrap()
}

fn write(store: &mut ColdStore, changes: &Changes) {
    let mut run = store.new_run(changes.len() as u64).unwrap();
    for ((group, hash, key), value) in changes {
        run.push(*group, *hash, key, value.as_deref()).unwrap();
    }
    store.add_run(run).unwrap();
}

fn merge_all(store: &mut ColdStore) {
    while store.maintain(100).unwrap() {}
}

fn collect(mut scan: Scan) -> Result<Content> {
    let mut content = Content::new();
    while let Some(entry) = scan.next_entry()? {
        let key = (entry.group, entry.hash, entry.key.to_vec());
        assert!(content.last_key_value().is_none_or(|(last, _)| *last < key), "out of order");
        content.insert(key, entry.value.to_vec());
    }
    Ok(content)
}

fn content(scan_group: impl Fn(KeyGroup) -> Result<Scan>) -> Result<Content> {
    let mut all = Content::new();
    for group in GROUPS {
        let content = collect(scan_group(group)?)?;
        assert!(content.keys().all(|key| key.0 == group));
        all.extend(content);
    }
    Ok(all)
}

/// All ways to read agree with the model.
fn check(store: &ColdStore, model: &Content) {
    assert_eq!(&content(|group| store.scan_group(group)).unwrap(), model);
    let mut value = vec![1, 2, 3];
    for group in GROUPS {
        for hash in HASHES {
            let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for key in KEYS {
                let wanted = model.get(&(group, hash, key.to_vec()));
                let lookup = store.get(group, hash, key, &mut value).unwrap();
                assert_eq!((lookup == Lookup::Found).then_some(&value), wanted);
                expected.extend(wanted.map(|value| (key.to_vec(), value.clone())));
            }
            let mut visited = BTreeMap::new();
            let visit = |key: &[u8], value: &[u8]| {
                assert!(visited.insert(key.to_vec(), value.to_vec()).is_none(), "visited twice");
                Ok(())
            };
            store.get_by_hash(group, hash, visit).unwrap();
            assert_eq!(visited, expected);
        }
    }
    assert!(store.entries() >= model.len() as u64);
    assert!(store.get(GROUPS[0], 77, b"k", &mut value).unwrap() == Lookup::Absent);
}

#[derive(Clone, Debug)]
enum Step {
    AddRun(Vec<(usize, usize, usize, Option<Vec<u8>>)>),
    Maintain(u64),
    DropGroup(usize),
    Pin,
    Rewind,
    Reopen(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..8).prop_map(Some),
        1 => (any::<u8>(), 100_usize..400).prop_map(|(byte, length)| Some(vec![byte; length])),
        3 => Just(None::<Vec<u8>>),
    ];
    let change = (0..GROUPS.len(), 0..HASHES.len(), 0..KEYS.len(), value);
    prop_oneof![
        8 => prop::collection::vec(change, 0..30).prop_map(Step::AddRun),
        6 => (0_u64..3000).prop_map(Step::Maintain),
        1 => (0..GROUPS.len()).prop_map(Step::DropGroup),
        2 => Just(Step::Pin),
        1 => Just(Step::Rewind),
        1 => any::<bool>().prop_map(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is written, merged, dropped, pinned, taken back or restored from files: the store has what a map has.
    #[test]
    fn a_store_is_a_map(compress in any::<bool>(), steps in prop::collection::vec(step(), 1..50)) {
        let disk = disk();
        let mut store = open(&disk, "first", small(compress));
        let mut model = Content::new();
        let mut pinned: Option<(Pinned, Content)> = None;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::AddRun(changes) => {
                    let changes: Changes = changes
                        .into_iter()
                        .map(|(group, hash, key, value)| ((GROUPS[group], HASHES[hash], KEYS[key].to_vec()), value))
                        .collect();
                    write(&mut store, &changes);
                    for (key, value) in changes {
                        match value {
                            Some(value) => model.insert(key, value),
                            None => model.remove(&key),
                        };
                    }
                }
                Step::Maintain(budget_bytes) => {
                    store.maintain(budget_bytes).unwrap();
                }
                Step::DropGroup(group) => {
                    store.drop_group(GROUPS[group]);
                    model.retain(|key, _| key.0 != GROUPS[group]);
                }
                Step::Pin => pinned = Some((store.pin(), model.clone())),
                Step::Rewind => {
                    if let Some((pin, content)) = &pinned {
                        store.rewind(pin);
                        model.clone_from(content);
                    }
                }
                Step::Reopen(compress) => {
                    let mut restored = open(&disk, &number.to_string(), small(compress));
                    let files = store.live_files();
                    for file in &files {
                        restored.adopt_run(&file.path, &file.dropped).unwrap();
                    }
                    let lengths = |files: &[RunFile]| files.iter().map(|file| file.length).collect::<Vec<_>>();
                    prop_assert_eq!(lengths(&files), lengths(&restored.live_files()));
                    store = restored;
                    pinned = None;
                }
            }
            check(&store, &model);
            if let Some((pin, expected)) = &pinned {
                let found = content(|group| pin.scan_group(group)).unwrap();
                prop_assert_eq!(&found, expected);
            }
        }
        merge_all(&mut store);
        check(&store, &model);
        let runs = store.live_files().len();
        drop((store, pinned));
        prop_assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0, "files are left behind");
        prop_assert!(runs <= 8, "{} runs are left", runs);
    }
}

fn put(group: KeyGroup, number: u64, value: &[u8]) -> (Key, Option<Vec<u8>>) {
    ((group, stable_hash(&number), number.to_le_bytes().to_vec()), Some(value.to_vec()))
}

fn delete(group: KeyGroup, number: u64) -> (Key, Option<Vec<u8>>) {
    (put(group, number, b"").0, None)
}

fn get(store: &ColdStore, group: KeyGroup, number: u64) -> Result<Option<Vec<u8>>> {
    let ((_, hash, key), _) = put(group, number, b"");
    let mut value = Vec::new();
    Ok((store.get(group, hash, &key, &mut value)? == Lookup::Found).then_some(value))
}

fn files_in(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn tombstones_stay_as_long_as_older_runs_need_them() {
    let disk = disk();
    let mut store = open(&disk, "s", small(false));
    write(&mut store, &(0..100).map(|i| put(1, i, &[1; 100])).collect());
    write(&mut store, &[delete(1, 5)].into());
    write(&mut store, &[put(1, 6, b"new")].into());
    merge_all(&mut store);
    assert_eq!(store.live_files().len(), 2, "the large run takes no part yet");
    assert_eq!(get(&store, 1, 5).unwrap(), None);
    assert_eq!(get(&store, 1, 6).unwrap(), Some(b"new".to_vec()));

    write(&mut store, &(0..100).map(|i| delete(1, i)).collect());
    merge_all(&mut store);
    assert_eq!((store.live_files(), store.entries(), store.disk_bytes()), (Vec::new(), 0, 0));
    assert_eq!(files_in(&disk.path().join("s")), Vec::<PathBuf>::new());
}

#[test]
fn a_run_without_entries_leaves_nothing() {
    let disk = disk();
    let mut store = open(&disk, "s", small(false));
    write(&mut store, &Changes::new());
    assert!(store.live_files().is_empty() && files_in(&disk.path().join("s")).is_empty());
    assert!(!store.maintain(100).unwrap());
    assert!(collect(store.scan_group(1).unwrap()).unwrap().is_empty());
}

#[test]
fn large_values_come_back_and_do_not_burden_their_neighbours() {
    let disk = disk();
    let large: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
    for compress in [false, true] {
        let mut store = open(&disk, "s", ColdOptions { compress, ..ColdOptions::default() });
        let value = |i: u64| if i % 10 == 3 { large.clone() } else { i.to_le_bytes().to_vec() };
        write(&mut store, &(0..40).map(|i| put(1, i, &value(i))).collect());
        for i in (0..40).chain(0..40) {
            assert_eq!(get(&store, 1, i).unwrap(), Some(value(i)));
        }
        assert!(store.memory_bytes() < 10 << 20, "{} bytes in memory", store.memory_bytes());
        assert_eq!(store.disk_bytes() < 1 << 20, compress);
    }
}

#[test]
fn the_cache_stays_within_its_size() {
    let disk = disk();
    let mut store = open(&disk, "s", ColdOptions { block_bytes: 1 << 10, cache_bytes: 64 << 10, ..small(false) });
    write(&mut store, &(0..20_000).map(|i| put(1, i, &[7; 10])).collect());
    let before = store.memory_bytes();
    for i in (0..20_000).chain(0..20_000) {
        assert_eq!(get(&store, 1, i).unwrap(), Some(vec![7; 10]));
    }
    let cached = store.memory_bytes() - before;
    assert!((32 << 10..80 << 10).contains(&cached), "{cached} bytes are cached");
}

#[test]
fn pinned_files_stay_until_nobody_has_them() {
    let disk = disk();
    let dir = disk.path().join("s");
    let mut store = open(&disk, "s", small(false));
    let mut model = Content::new();
    for round in 0..3 {
        let changes: Changes = (0..50).map(|i| put(1, i, &[round; 20])).collect();
        model.extend(changes.iter().map(|(key, value)| (key.clone(), value.clone().unwrap())));
        write(&mut store, &changes);
    }
    let pinned = store.pin();
    let scan = store.scan_group(1).unwrap();
    merge_all(&mut store);
    let files = pinned.files();
    assert_eq!((files.len(), store.live_files().len(), files_in(&dir).len()), (3, 1, 4));
    for file in &files {
        assert_eq!((fs::metadata(&file.path).unwrap().len(), file.entries), (file.length, 50));
        assert!(store.live_files().iter().all(|live| live.id != file.id));
    }
    drop(store);
    assert_eq!(collect(pinned.scan_group(1).unwrap()).unwrap(), model);
    std::thread::spawn(move || drop(pinned)).join().unwrap();
    assert_eq!(files_in(&dir).len(), 3, "the scan has them too");
    assert_eq!(collect(scan).unwrap(), model);
    assert!(!dir.exists());
}

#[test]
fn what_was_dropped_is_noted_and_its_room_given_back() {
    let disk = disk();
    let mut store = open(&disk, "s", small(false));
    write(&mut store, &(0..300).map(|i| put((i % 3) as KeyGroup, i, &[1; 20])).collect());
    store.drop_group(0);
    store.drop_group(77);
    write(&mut store, &(1..=150).map(|i| put(0, 3 * i, b"again")).collect());
    let files = store.live_files();
    assert_eq!((&files[0].dropped, files[0].entries), (&vec![0], 200));
    assert_eq!((&files[1].dropped, files[1].entries), (&vec![], 150));

    let mut restored = open(&disk, "restored", small(false));
    restored.adopt_run(&files[0].path, &[0, 1]).unwrap();
    restored.adopt_run(&files[1].path, &files[1].dropped).unwrap();
    let before = restored.disk_bytes();
    merge_all(&mut restored);
    assert!(restored.disk_bytes() + 10_000 < before, "{} of {before} bytes", restored.disk_bytes());
    assert_eq!(get(&restored, 0, 3).unwrap(), Some(b"again".to_vec()));
    assert_eq!((get(&restored, 0, 0).unwrap(), get(&restored, 1, 1).unwrap()), (None, None));
    assert_eq!(collect(restored.scan_group(2).unwrap()).unwrap().len(), 100);
    let nothing = restored.adopt_run(&files[1].path, &[0]).unwrap();
    assert!(restored.live_files().iter().all(|file| file.id != nothing), "it has nothing else");

    // A group that is dropped while its entries are merged is gone from what comes out.
    store.options.runs_max = 1;
    assert!(store.maintain(1).unwrap());
    store.drop_group(2);
    merge_all(&mut store);
    assert_eq!((store.live_files().len(), store.live_files()[0].entries), (1, 250));
    assert!(collect(store.scan_group(2).unwrap()).unwrap().is_empty());
}

#[test]
fn entries_out_of_order_are_refused_and_the_file_goes() {
    let disk = disk();
    let dir = disk.path().join("s");
    let mut store = open(&disk, "s", small(false));
    for (group, hash, key) in [(1, 5, b"a"), (1, 4, b"c"), (0, 9, b"c"), (1, 5, b"b")] {
        let mut run = store.new_run(2).unwrap();
        run.push(1, 5, b"b", Some(b"")).unwrap();
        let error = run.push(group, hash, key, None).unwrap_err();
        assert!(error.message.contains("out of order"), "{error}");
        assert_eq!(files_in(&dir).len(), 1);
        drop(run);
        assert!(files_in(&dir).is_empty() && store.live_files().is_empty());
    }
}

#[test]
fn a_directory_must_be_empty() {
    let disk = disk();
    fs::write(disk.path().join("precious"), b"x").unwrap();
    let error = ColdStore::open(disk.path(), ColdOptions::default()).err().unwrap();
    assert!(error.message.contains("is not empty") && error.message.contains("io.tmp.dirs"), "{error}");
    let error = ColdStore::open(&disk.path().join("precious/s"), ColdOptions::default()).err().unwrap();
    assert!(error.message.contains("precious/s"), "{error}");
}

/// A disk with some room left.
struct SmallDisk(usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_says_where_and_what_to_do() {
    let disk = disk();
    let directory = Directory::create(&disk.path().join("s")).unwrap();
    for room in [0, 50, 5_000] {
        let location = OwnedFile::new(&directory, 1);
        let written = RunWriter::new(SmallDisk(room), location, &small(false), 100).and_then(|mut run| {
            for hash in 0..100 {
                run.push(1, hash, b"key", Some(b"a value of some length"))?;
            }
            run.end()
        });
        let error = written.unwrap_err();
        assert!(error.message.contains("is full") && error.message.contains("io.tmp.dirs"), "{error}");
        assert!(error.message.contains(disk.path().join("s").to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_merge_that_fails_changes_nothing() {
    let disk = disk();
    let dir = disk.path().join("s");
    let mut store = open(&disk, "s", small(false));
    for round in 0..3 {
        write(&mut store, &(0..50).map(|i| put(1, i, &[round; 20])).collect());
    }
    let files = store.live_files();
    let mut bytes = fs::read(&files[1].path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&files[1].path, bytes).unwrap();
    let error = loop {
        match store.maintain(100) {
            Ok(is_unfinished) => assert!(is_unfinished),
            Err(error) => break error,
        }
    };
    assert!(error.message.contains("00000001.run is damaged at byte"), "{error}");
    assert_eq!((store.live_files(), files_in(&dir).len()), (files, 3));
    assert_eq!(get(&store, 1, 7).unwrap(), Some(vec![2; 20]));
}

/// Restores a file and reads everything.
fn read_all(disk: &TempDir, file: &Path) -> Result<Content> {
    let mut store = open(disk, "altered", small(false));
    store.adopt_run(file, &[])?;
    content(|group| store.scan_group(group))
}

#[test]
fn no_altered_file_is_taken_for_a_good_one() {
    let disk = disk();
    for compress in [false, true] {
        let mut store = open(&disk, "s", ColdOptions { block_bytes: 200, ..small(compress) });
        write(&mut store, &(0..30).map(|i| put((i % 2) as KeyGroup, i, &[b'v'; 30])).collect());
        let good = fs::read(&store.live_files()[0].path).unwrap();
        let file = disk.path().join("file");
        let check = |bytes: &[u8], what: &str| {
            fs::write(&file, bytes).unwrap();
            let error = read_all(&disk, &file).expect_err(what);
            assert!(error.message.contains(".run") && error.message.contains("at byte"), "{what}: {error}");
        };
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            check(&bytes, &format!("byte {at} of {} is altered", good.len()));
        }
        for length in 0..good.len() {
            check(&good[..length], &format!("{length} bytes of {}", good.len()));
        }
        check(&[&good[..], b"x"].concat(), "a byte more");
        fs::write(&file, &good).unwrap();
        assert_eq!(read_all(&disk, &file).unwrap(), content(|group| store.scan_group(group)).unwrap());
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_run_of_another_version_is_refused_by_its_number() {
    let disk = disk();
    let mut store = open(&disk, "s", small(false));
    write(&mut store, &[put(1, 1, b"v")].into());
    let run = store.live_files()[0].path.clone();
    let (file, mut bytes) = (disk.path().join("newer.run"), fs::read(&run).unwrap());
    bytes[7] = b'2';
    fs::write(&file, bytes).unwrap();
    for error in [check_version(&file).unwrap_err(), read_all(&disk, &file).unwrap_err()] {
        assert!(error.message.contains("it has format version 2, this build reads versions up to 1"), "{error}");
        assert_eq!(error.kind, flott_core::ErrorKind::Input, "a restart is no help");
    }
    check_version(&run).unwrap();
}

/// The form of a file never changes silently: files of older builds are restored.
#[test]
fn the_form_of_a_run_is_what_it_was() {
    let golden = concat!(
        "464c4f5454524e31070000000000000007000000000000000200000001000000",
        "03000000010000806178620028a8ca0000000000000080020000000000000079",
        "7a7270225a002020000001001000804000000001000a0000000000c000000008",
        "8000102000030007000000000000000200000023000000230000000500000000",
        "00000000800100000012000000120000003d0000000000000020000000000000",
        "002c000000000000000300000000000000ecbaf6c20d5383a4464c4f5454524e",
        "31",
    );
    let disk = disk();
    let mut store = open(&disk, "s", ColdOptions::default());
    let changes: Changes = [
        ((3, 7, b"a".to_vec()), Some(b"x".to_vec())),
        ((3, 7, b"b".to_vec()), None),
        ((5, 1 << 63, b"".to_vec()), Some(b"yz".to_vec())),
    ]
    .into();
    write(&mut store, &changes);
    let bytes = fs::read(&store.live_files()[0].path).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden);
}

#[test]
fn a_store_goes_to_another_thread_and_a_pin_to_several() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<ColdStore>();
    is_send::<Scan>();
    is_send::<RunWriter>();
    is_send::<Pinned>();
    is_sync::<Pinned>();
}
