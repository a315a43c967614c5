//! What goes into the machines and what comes out.

use std::collections::BTreeMap;

use flott_checkpoint::Manifest;
use flott_control::{CompletedCheckpoint, Down, Fact, JobSpec, Up};
use flott_core::ids::{CheckpointId, Generation, JobId, VertexId};
use flott_core::{Error, Result};

/// A connection of a TaskManager or worker, numbered by the server.
pub type SessionId = u64;

/// A client's request that waits for its reply, numbered by the server.
pub type RequestId = u64;

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passed; see [`crate::Cluster::next_deadline`].
    Tick,
    /// A process said something. The first message of a session registers it.
    Message {
        /// Its session.
        session: SessionId,
        /// What it said.
        message: Up,
    },
    /// A connection ended.
    SessionClosed {
        /// Its session.
        session: SessionId,
    },
    /// A client asks for something.
    Request {
        /// To be named in the reply.
        id: RequestId,
        /// What it asks for.
        request: Request,
    },
    /// A proposed fact is durable. Facts become durable in the order in which they were proposed. After a start of the
    /// JobManager, all facts of its log arrive this way first, then [`Event::Recovered`].
    Committed(Fact),
    /// The whole log has been replayed; jobs that have not ended are to be restarted.
    Recovered,
    /// The end of [`Command::WriteManifest`]: the finished description, or why not.
    ManifestWritten {
        /// The job.
        job: JobId,
        /// Its generation.
        generation: Generation,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// What to log.
        result: Result<CompletedCheckpoint>,
    },
    /// The end of [`Command::LoadManifest`].
    ManifestLoaded {
        /// The job.
        job: JobId,
        /// The generation that it was loaded for.
        generation: Generation,
        /// Where it was loaded from (normalised folder URL), and what it says.
        result: Result<(String, Box<Manifest>)>,
    },
    /// The end of [`Command::ListFiles`].
    FilesListed {
        /// The job.
        job: JobId,
        /// Full URLs of what was there.
        result: Result<Vec<String>>,
    },
}

/// What a client can ask for.
#[derive(Clone, Debug)]
pub enum Request {
    /// Run a job under this new id. The same again is the same submission: a client whose answer was lost repeats it.
    Submit {
        /// The id, made by the server or the client.
        job: JobId,
        /// The job.
        spec: Box<JobSpec>,
    },
    /// Stop a job without a savepoint.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// Cancel a job unless it has completed a checkpoint: then what it wrote counts, and nobody may write it again.
    Withdraw {
        /// The job.
        job: JobId,
    },
    /// Take a savepoint; with `stop`, end the job with it.
    Savepoint {
        /// The job.
        job: JobId,
        /// The folder to put it under; `None`: `execution.checkpointing.savepoint-dir`.
        target: Option<String>,
        /// Whether sources stop after it.
        stop: bool,
        /// Whether all windows fire first.
        drain: bool,
        /// A random suffix for its folder, made by the server.
        suffix: String,
    },
    /// Take a checkpoint now.
    Checkpoint {
        /// The job.
        job: JobId,
    },
    /// Give a running job another parallelism. Its processes stay.
    Rescale {
        /// The job.
        job: JobId,
        /// Which.
        parallelism: Parallelism,
    },
}

/// How many subtasks the vertices of a job should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// So many for every vertex that had the job's highest parallelism when it was submitted. Whoever wrote the job gave
    /// the others fewer on purpose: they keep what they have.
    All(u32),
    /// So many for these vertices; the others keep what they have.
    Vertices(BTreeMap<VertexId, u32>),
}

/// The answer to a request. A submission is answered when it is durable, a savepoint when it is complete, a
/// cancellation when it is accepted, a stop when the job has ended, a rescale when all subtasks run.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The job is durable.
    Submitted,
    /// The job will be cancelled.
    Cancelling,
    /// The savepoint or checkpoint is complete; its folder.
    Completed(String),
    /// The job runs with this parallelism, by vertex.
    Rescaled(Vec<u32>),
}

/// A checkpoint to write: see [`Command::WriteManifest`].
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The folder, as a URL.
    pub location: String,
    /// The content.
    pub manifest: Box<Manifest>,
}

/// Something to do. Commands are carried out in order; the results of those that take time come back as events.
#[derive(Clone, Debug)]
pub enum Command {
    /// Send a message.
    Send {
        /// To which session; it may be gone.
        session: SessionId,
        /// What.
        message: Down,
    },
    /// End a session after what was sent.
    Close {
        /// Which.
        session: SessionId,
    },
    /// Make a fact durable: [`Event::Committed`] follows. If that fails, the leader ends.
    Propose(Fact),
    /// Answer a client.
    Reply {
        /// Its request.
        id: RequestId,
        /// The answer.
        reply: Result<Reply, Error>,
    },
    /// Write a manifest: [`Event::ManifestWritten`] follows.
    WriteManifest(Checkpoint),
    /// Read a manifest and check the length of each of its files: [`Event::ManifestLoaded`] follows.
    LoadManifest {
        /// The job.
        job: JobId,
        /// The generation that is to start from it; 0 if only its files are to be known.
        generation: Generation,
        /// A folder or `_metadata` file, as a path or URL.
        location: String,
        /// The hash that the log has for it; `None` for a savepoint given by a user.
        sha256: Option<String>,
    },
    /// List everything below the folder of a job's checkpoints: [`Event::FilesListed`] follows. What exists is never decided by
    /// that, only what may be deleted, so a listing that is old or not complete does no harm.
    ListFiles {
        /// The job.
        job: JobId,
        /// The folder, as a URL.
        folder: String,
    },
    /// Delete these files and folders, as URLs. Failures are logged and forgotten.
    Delete {
        /// Full URLs of files.
        files: Vec<String>,
        /// Folders to remove with everything below them.
        folders: Vec<String>,
    },
}
