//! Any sequence of checkpoints, failures and listings, over a store in memory: what is referred to or being written stays, and in
//! the end nothing else does.

use proptest::prelude::*;

use super::*;

const JOB: JobId = JobId([0xab; 16]);

/// What is not the job's, or not of its checkpoints.
const OTHERS: [&str; 4] = [
    "s3://c/abababababababababababababababab/notes",
    "s3://c/abababababababababababababababab/g1/notes",
    "s3://c/abababababababababababababababab0/g1/chk-1/0.state",
    "s3://c/cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd/g1/chk-1/0.state",
];

#[derive(Clone, Debug)]
enum Op {
    /// A task writes a file for the checkpoint that is being taken.
    Write,
    /// It becomes durable, and builds on the one before unless it is full.
    Complete { is_full: bool },
    /// It is given up. Later ones may build on what was written for it.
    Abort { is_kept: bool },
    /// The job restarts. What carries over builds on what it has written, all else on the latest checkpoint.
    Restart { carries: bool },
    /// The JobManager dies.
    NewLeader,
    /// A worker that was given up still writes.
    Zombie { generation: u64, checkpoint: u64 },
    /// A savepoint becomes durable, perhaps in the job's own folder.
    Savepoint { is_inside: bool },
    /// The job's folder is listed.
    List,
    /// The listing arrives.
    Found,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Write),
        4 => any::<bool>().prop_map(|is_full| Op::Complete { is_full }),
        2 => any::<bool>().prop_map(|is_kept| Op::Abort { is_kept }),
        1 => any::<bool>().prop_map(|carries| Op::Restart { carries }),
        1 => Just(Op::NewLeader),
        2 => (1_u64..6, 1_u64..12).prop_map(|(generation, checkpoint)| Op::Zombie { generation, checkpoint }),
        1 => any::<bool>().prop_map(|is_inside| Op::Savepoint { is_inside }),
        2 => Just(Op::List),
        2 => Just(Op::Found),
    ]
}

/// A job, its log, and the store.
struct World {
    completed: CompletedCheckpoints,
    retained_max: usize,
    /// What the log keeps, with the files that it refers to.
    log: BTreeMap<CheckpointId, (CompletedCheckpoint, BTreeSet<String>)>,
    /// What the log has dropped.
    dropped: Vec<CompletedCheckpoint>,
    /// All files, and which checkpoint they were written for.
    store: BTreeMap<String, Option<(Generation, CheckpointId)>>,
    generation: Generation,
    next: CheckpointId,
    /// The files of the checkpoint that is being taken.
    pending: BTreeSet<String>,
    /// What the next one builds on.
    chain: BTreeSet<String>,
    listing: Option<Vec<String>>,
    written: u64,
}

impl World {
    fn new(retained_max: usize) -> Self {
        Self {
            completed: CompletedCheckpoints::new(JOB, "s3://c", retained_max),
            retained_max,
            log: BTreeMap::new(),
            dropped: Vec::new(),
            store: OTHERS.iter().map(|file| ((*file).to_owned(), None)).collect(),
            generation: 1,
            next: 1,
            pending: BTreeSet::new(),
            chain: BTreeSet::new(),
            listing: None,
            written: 0,
        }
    }

    fn folder(generation: Generation, checkpoint: CheckpointId) -> String {
        format!("s3://c/{JOB}/g{generation}/chk-{checkpoint}")
    }

    /// A new file that is written for a checkpoint.
    fn write(&mut self, generation: Generation, checkpoint: CheckpointId) -> String {
        self.written += 1;
        let file = format!("{}/{}.state", Self::folder(generation, checkpoint), self.written);
        self.store.insert(file.clone(), Some((generation, checkpoint)));
        file
    }

    fn add(&mut self, location: String, is_savepoint: bool, files: BTreeSet<String>) {
        let checkpoint = CompletedCheckpoint {
            id: self.next,
            generation: self.generation,
            location,
            manifest_sha256: String::new(),
            is_savepoint,
            ends_job: false,
            triggered_ms: 0,
            completed_ms: 0,
            bytes_written: 0,
            bytes_total: 0,
        };
        let origin = (!is_savepoint).then_some((self.generation, self.next));
        self.store.insert(format!("{}/{METADATA_FILE}", checkpoint.location), origin);
        self.log.insert(self.next, (checkpoint.clone(), files.clone()));
        self.completed.add(checkpoint, Some(files));
        self.next += 1;
    }

    fn complete(&mut self, is_full: bool) -> Result<(), TestCaseError> {
        let own = self.write(self.generation, self.next);
        let mut files = std::mem::take(&mut self.pending);
        files.insert(own);
        if !is_full {
            files.append(&mut self.chain);
        }
        self.chain = files.clone();
        self.add(Self::folder(self.generation, self.next), false, files);
        let command = self.completed.sweep();
        self.delete(command)?;
        for id in self.completed.surplus() {
            self.dropped.extend(self.log.remove(&id).map(|(checkpoint, _)| checkpoint));
            prop_assert!(self.completed.drop_checkpoint(id).is_none());
            let command = self.completed.sweep();
            self.delete(command)?;
        }
        Ok(())
    }

    fn give_up(&mut self) {
        self.completed.abandon(self.next, Self::folder(self.generation, self.next));
        self.pending.clear();
        self.next += 1;
    }

    fn latest(&self) -> BTreeSet<String> {
        let latest = self.log.values().rev().find(|(checkpoint, _)| !checkpoint.is_savepoint);
        latest.map(|(_, files)| files.clone()).unwrap_or_default()
    }

    /// All that the next leader knows is in the log, and the manifest that it starts from.
    fn replace_leader(&mut self) {
        self.completed = CompletedCheckpoints::new(JOB, "s3://c", self.retained_max);
        for checkpoint in &self.dropped {
            self.completed.add(checkpoint.clone(), None);
            self.completed.drop_checkpoint(checkpoint.id);
        }
        for (checkpoint, _) in self.log.values() {
            self.completed.add(checkpoint.clone(), None);
        }
        let known = self.log.values().map(|(checkpoint, _)| checkpoint).chain(&self.dropped);
        self.next = known.map(|checkpoint| checkpoint.id + 1).max().unwrap_or(1);
        self.pending.clear();
        self.chain = self.latest();
        if let Some(latest) = self.completed.latest().map(|latest| latest.id) {
            self.completed.set_files(latest, self.chain.clone());
        }
        self.generation += 1;
    }

    fn found(&mut self) -> Result<(), TestCaseError> {
        let Some(listing) = self.listing.take() else { return Ok(()) };
        let command = self.completed.found(listing, false);
        self.delete(command)
    }

    fn delete(&mut self, command: Option<Command>) -> Result<(), TestCaseError> {
        let Some(command) = command else { return Ok(()) };
        let Command::Delete { files, folders } = command else {
            return Err(TestCaseError::fail("that is no deletion"));
        };
        for file in &files {
            self.store.remove(file);
        }
        for folder in &folders {
            let prefix = format!("{folder}/");
            self.store.retain(|file, _| !file.starts_with(&prefix));
        }
        let manifests = self.log.values().map(|(checkpoint, _)| format!("{}/{METADATA_FILE}", checkpoint.location));
        let needed = self.log.values().flat_map(|(_, files)| files).chain(&self.pending).chain(&self.chain);
        let others = OTHERS.iter().map(|file| (*file).to_owned());
        for file in needed.cloned().chain(manifests).chain(others) {
            prop_assert!(self.store.contains_key(&file), "{} is gone with {:?} {:?}", file, files, folders);
        }
        Ok(())
    }

    fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Write => {
                let file = self.write(self.generation, self.next);
                self.pending.insert(file);
            }
            Op::Complete { is_full } => self.complete(is_full)?,
            Op::Abort { is_kept } => {
                if is_kept {
                    self.chain.extend(self.pending.iter().cloned());
                }
                self.give_up();
            }
            Op::Restart { carries } => {
                if carries {
                    self.chain.extend(self.pending.iter().cloned());
                } else {
                    self.chain = self.latest();
                }
                self.give_up();
                self.generation += 1;
            }
            Op::NewLeader => self.replace_leader(),
            Op::Zombie { generation, checkpoint } => {
                if generation < self.generation {
                    self.write(generation, checkpoint);
                }
            }
            Op::Savepoint { is_inside } => {
                let parent = if is_inside { format!("s3://c/{JOB}") } else { "s3://s".to_owned() };
                let location = format!("{parent}/savepoint-{}", self.next);
                let file = format!("{location}/0.parquet");
                self.store.insert(file.clone(), None);
                // It takes its number before what is pending.
                if self.pending.is_empty() {
                    self.add(location, true, [file].into());
                }
            }
            Op::List => self.listing = Some(self.store.keys().cloned().collect()),
            Op::Found => self.found()?,
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_that_is_needed_is_deleted_and_nothing_else_stays(
        retained_max in 1_usize..4,
        ops in prop::collection::vec(op(), 0..80),
    ) {
        let mut world = World::new(retained_max);
        for op in ops {
            world.step(op)?;
        }
        // As soon as all that is kept was taken under this leader, its files are known.
        for _ in 0..=retained_max {
            world.complete(false)?;
        }
        world.step(Op::List)?;
        world.found()?;
        let newest = world.completed.newest().map(|newest| (newest.generation, newest.id));
        let manifests = world.log.values().map(|(checkpoint, _)| format!("{}/{METADATA_FILE}", checkpoint.location));
        let needed = world.log.values().flat_map(|(_, files)| files).cloned();
        let needed: BTreeSet<String> = needed.chain(manifests).collect();
        for (file, origin) in &world.store {
            let is_older = origin.is_some() && *origin < newest;
            prop_assert!(!is_older || needed.contains(file), "{} is left", file);
        }
    }
}
