use std::any::Any;

use flott_checkpoint::assign::ChannelSource;
use flott_core::ids::{OperatorId, SubtaskId};
use flott_core::key_group::range_of;
use flott_operators::ReleasedState;
use flott_state::GroupState;
use tempfile::TempDir;

use super::*;

const OPERATOR: OperatorId = OperatorId([7; 16]);

const GROUPS: u32 = 128;

/// A checkpoint of two subtasks.
struct Saved {
    folder: TempDir,
    store: Store,
    keyed: Vec<KeyedSource>,
    channels: Vec<ChannelSource>,
}

impl Saved {
    /// Each has a base of 1000 bytes and changes of 100, and what was in flight to it in 10.
    async fn in_memory() -> Self {
        let mut saved = Self::empty();
        for index in 0..2 {
            let base = saved.write(&format!("{index}-base.state"), b"FLOTTST1", 1000).await;
            let changes = saved.write(&format!("{index}-changes.state"), b"FLOTTST1", 100).await;
            saved.add(index, vec![base, changes], None);
            let file = saved.write(&format!("{index}.channels"), b"FLOTTCH1", 10).await;
            let source = ChannelSource { file, schema: String::new(), is_whole: false, has_others: false };
            saved.channels.push(source);
        }
        saved
    }

    /// Each has two runs of 1000 bytes.
    async fn on_disk() -> Self {
        let mut saved = Self::empty();
        for index in 0..2 {
            let mut runs = Vec::new();
            for run in 0..2 {
                let file = saved.write(&format!("{index}-{run}.run"), b"FLOTTRN1", 1000).await;
                runs.push(RunHandle { file, dropped: Vec::new() });
            }
            saved.add(index, Vec::new(), Some(runs));
        }
        saved
    }

    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, store: Store::default(), keyed: Vec::new(), channels: Vec::new() }
    }

    async fn write(&self, name: &str, magic: &[u8], length: usize) -> FileHandle {
        // Files of the same length differ.
        let mut content = [magic, name.as_bytes()].concat();
        content.resize(length.max(content.len()), 0);
        content.truncate(length);
        let url = format!("file://{}/{name}", self.folder.path().display());
        self.store.put(&url, content.into()).await.unwrap()
    }

    fn add(&mut self, index: u32, files: Vec<FileHandle>, runs: Option<Vec<RunHandle>>) {
        let (name, schema) = ("counts".to_owned(), "[]".to_owned());
        let state = KeyedState { operator: OPERATOR, name, schema, rows: 1, bytes: 1, table: None, runs };
        self.keyed.push(KeyedSource { range: range_of(2, index, GROUPS), files, states: vec![state] });
    }

    /// A worker's, of the execution `generation`.
    fn fetcher(&self, generation: u64, local: LocalRuns) -> Fetcher {
        Fetcher::new(self.store.clone(), local, self.folder.path().join(format!("{generation}-fetched")))
    }

    /// Four subtasks start from it on one worker, which has these key groups in memory. Returns what was fetched.
    async fn restore(&self, files: &Fetcher, mut held: HeldState) -> Vec<Fetched> {
        let mut fetches = Vec::new();
        for index in 0..4 {
            let range = range_of(4, index, GROUPS);
            let held = held.take(&[OPERATOR], range);
            let keyed = self.keyed.iter().filter(|source| source.range.overlaps(range)).cloned().collect();
            let restore =
                TaskRestore { checkpoint: 1, keyed, channels: self.channels.clone(), ..TaskRestore::default() };
            expect(files, &restore, range, &held);
            fetches.push(async move { fetch(files, &restore, range, held).await.unwrap() });
        }
        let fetched = futures::future::join_all(fetches).await;
        assert_eq!(files.files(), 0, "nothing is kept that nobody waits for");
        fetched
    }
}

/// These key groups, as they come from tables of the execution before.
fn held(groups: impl IntoIterator<Item = u32>) -> HeldState {
    let mut released = ReleasedState::new(1);
    let groups = groups.into_iter().map(|group| (group as KeyGroup, Box::new(()) as GroupState)).collect();
    released.add(OPERATOR, vec![("counts".to_owned(), groups)]);
    released.held
}

#[tokio::test]
async fn a_file_is_fetched_once_however_many_subtasks_need_it() {
    let saved = Saved::in_memory().await;
    let files = saved.fetcher(2, LocalRuns::default());
    saved.restore(&files, HeldState::default()).await;
    assert_eq!(files.fetched_bytes(), 2 * (1000 + 100 + 10));
}

#[tokio::test]
async fn what_is_in_memory_is_not_fetched() {
    let saved = Saved::in_memory().await;
    let in_flight = 2 * 10;
    for (groups, expected) in [
        ((0..GROUPS).collect::<Vec<u32>>(), 0),
        // One key group of the last subtask was lost, one of each of the last two, and one of the first and the last.
        ((0..GROUPS).filter(|group| *group != 127).collect(), 1100),
        ((0..GROUPS).filter(|group| ![70, 127].contains(group)).collect(), 1100),
        ((0..GROUPS).filter(|group| ![0, 127].contains(group)).collect(), 2200),
        // The worker of the second old subtask is gone.
        ((0..GROUPS / 2).collect(), 1100),
    ] {
        let files = saved.fetcher(2, LocalRuns::default());
        let fetched = saved.restore(&files, held(groups.clone())).await;
        assert_eq!(files.fetched_bytes(), in_flight + expected, "held: {groups:?}");
        let kept: usize = fetched.iter().map(|fetched| fetched.restored.held.len()).sum();
        assert_eq!(kept, groups.len(), "what is held is handed on");
    }
}

#[tokio::test]
async fn runs_are_fetched_once_unless_they_are_here() {
    let saved = Saved::on_disk().await;
    let files = saved.fetcher(2, LocalRuns::default());
    let fetched = saved.restore(&files, HeldState::default()).await;
    assert_eq!(files.fetched_bytes(), 4 * 1000);
    let copies: Vec<&LocalCopy> = fetched.iter().flat_map(|fetched| &fetched.runs).collect();
    assert_eq!(copies.len(), 8);
    assert_eq!(copies[0].path, copies[2].path, "the first two subtasks share the files of the first old one");
    assert!(copies.iter().all(|copy| copy.path.exists()));
    let path = copies[0].path.clone();

    // What the first of them has fetched is here for the next execution.
    let mut local = LocalRuns::default();
    local.add(1, SubtaskId { vertex: 1, index: 0 }, fetched[0].runs.clone());
    drop(fetched);
    let files = saved.fetcher(3, local);
    let fetched = saved.restore(&files, HeldState::default()).await;
    assert_eq!(files.fetched_bytes(), 2 * 1000);
    drop((fetched, files));
    assert!(!path.exists(), "nobody needs it any more");
}

#[tokio::test]
async fn a_file_that_is_damaged_fails_all_who_need_it() {
    let saved = Saved::in_memory().await;
    let base = saved.folder.path().join("0-base.state");
    std::fs::write(&base, "cut").unwrap();
    let files = saved.fetcher(2, LocalRuns::default());
    let handle = &saved.keyed[0].files[0];
    files.expect_read(handle);
    files.expect_read(handle);
    let (first, second) = futures::future::join(files.read(handle), files.read(handle)).await;
    for error in [first.unwrap_err(), second.unwrap_err()] {
        assert!(error.message.contains("0-base.state is truncated"), "{error}");
    }
    assert_eq!(files.fetched_bytes(), 0);
}

/// The copies of a run stay as long as somebody has one.
#[tokio::test]
async fn a_copy_goes_with_the_last_who_has_it() {
    let saved = Saved::on_disk().await;
    let handle = &saved.keyed[0].states[0].runs.as_ref().unwrap()[0].file;
    let files = saved.fetcher(2, LocalRuns::default());
    files.expect_copy(handle);
    files.expect_copy(handle);
    let first = files.run(handle).await.unwrap();
    let path = first.path.clone();
    drop(first);
    assert!(path.exists(), "one more is expected");
    let owner: Arc<dyn Any + Send + Sync> = files.run(handle).await.unwrap().owner;
    assert!(path.exists() && files.files() == 0);
    drop(owner);
    assert!(!path.exists());
}
