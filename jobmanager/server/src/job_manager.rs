//! Puts the parts together, and the handle on the whole.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use flott_checkpoint::Store;
use flott_control::JobSpec;
use flott_core::config::{Configuration, options};
use flott_core::ids::JobId;
use flott_core::{Error, Result, ResultExt};
use flott_jobmanager_core::view::{JobView, TaskManagerView};
use flott_jobmanager_core::{Cluster, Reply, Request};
use flott_proto::rows::RowsOffer;
use flott_proto::server::Acceptor;
use flott_proto::{ServerSession, Session};
use flott_raft::FactLog;
use tokio::task::AbortHandle;

use crate::artifacts::ArtifactStore;
use crate::bind::{Endpoint, bind};
use crate::leader::{Leader, LeaderClient};
use crate::rest::Rest;
use crate::rows::RowsHub;
use crate::{rest, submission};

/// What a JobManager is started with.
pub struct JobManagerOptions {
    /// The cluster's configuration. Jobs put theirs over it.
    pub config: Configuration,
    /// The folder for job binaries, and for checkpoints if `execution.checkpointing.dir` is empty.
    pub dir: PathBuf,
    /// Where its facts are durable.
    pub log: Box<dyn FactLog>,
    /// Whether other processes can register over the network; otherwise only [`JobManagerHandle::connect_embedded`] can.
    pub listen: bool,
    /// Whether it serves REST.
    pub rest: bool,
}

/// A JobManager of the current process.
pub struct JobManager;

impl JobManager {
    /// Starts a JobManager on the current tokio runtime. Jobs of the log that have not ended are restarted as soon
    /// as there are TaskManagers.
    ///
    /// # Errors
    /// The configuration is wrong, a port is in use or not on loopback, the folder cannot be written, or the log
    /// cannot be read.
    pub async fn start(options: JobManagerOptions) -> Result<JobManagerHandle> {
        let JobManagerOptions { mut config, dir, log, listen, rest } = options;
        let dir = std::path::absolute(&dir).with_context(|| format!("resolving {}", dir.display()))?;
        if config.get(options::CHECKPOINT_DIR)?.is_empty() {
            let url = Store::normalize(&dir.join("checkpoints").to_string_lossy())?;
            config.set(options::CHECKPOINT_DIR.key, &url)?;
        }
        let (interval, timeout) = (config.get(options::HEARTBEAT_INTERVAL)?, config.get(options::HEARTBEAT_TIMEOUT)?);
        if timeout <= interval {
            return Err(Error::input(format!(
                "{} ({timeout:?}) must be longer than {} ({interval:?}): every process would be given up between two signs of life",
                options::HEARTBEAT_TIMEOUT.key,
                options::HEARTBEAT_INTERVAL.key
            )));
        }
        let artifacts = ArtifactStore::open(dir.join("artifacts"))?;
        let store = Store::default();

        // Sockets first: when one cannot be had, nothing has been done yet.
        let rpc = if listen { Some(bind(&config, RPC).await?) } else { None };
        let web = if rest { Some(bind(&config, REST).await?) } else { None };

        let lease = config.get(options::CLIENT_HEARTBEAT_TIMEOUT)?;
        let leader = Leader::start(Cluster::new(config.clone()), log, store.clone()).await?;
        let rows = RowsHub::new(leader.clone(), lease);
        let mut handle = JobManagerHandle {
            leader: leader.clone(),
            artifacts: artifacts.clone(),
            store: store.clone(),
            rpc_address: None,
            rest_address: None,
            servers: Vec::new(),
        };
        if let Some((listener, address)) = rpc {
            let host = Host { leader: leader.clone(), artifacts: artifacts.clone(), rows: rows.clone() };
            handle.rpc_address = Some(address);
            handle.serve(flott_proto::server::serve(listener, host));
            tracing::info!(%address, "TaskManagers can register");
        }
        if let Some((listener, address)) = web {
            let rest = Arc::new(Rest::new(leader, artifacts, store, config, address, rows));
            handle.rest_address = Some(address);
            handle.serve(rest::serve(listener, rest));
            tracing::info!(%address, "REST API is up");
        }
        Ok(handle)
    }
}

const RPC: Endpoint =
    Endpoint { what: "the JobManager", host: options::JOBMANAGER_BIND_HOST, port: options::JOBMANAGER_RPC_PORT };

const REST: Endpoint = Endpoint { what: "the REST API", host: options::REST_BIND_ADDRESS, port: options::REST_PORT };

/// What the RPC server needs.
struct Host {
    leader: LeaderClient,
    artifacts: ArtifactStore,
    rows: RowsHub,
}

impl Acceptor for Host {
    fn accept(&self, session: ServerSession) {
        self.leader.accept(session);
    }

    fn offer(&self, offer: RowsOffer) {
        self.rows.accept(offer);
    }

    fn artifact(&self, sha256: &str) -> Option<PathBuf> {
        self.artifacts.path(sha256)
    }
}

/// A running JobManager. Dropping it ends it, [`JobManagerHandle::shutdown`] also waits for that.
///
/// Every method fails once the JobManager has ended, with the reason.
pub struct JobManagerHandle {
    leader: LeaderClient,
    artifacts: ArtifactStore,
    store: Store,
    rpc_address: Option<SocketAddr>,
    rest_address: Option<SocketAddr>,
    servers: Vec<AbortHandle>,
}

impl JobManagerHandle {
    /// Where TaskManagers register, if it listens.
    pub fn rpc_address(&self) -> Option<SocketAddr> {
        self.rpc_address
    }

    /// Where REST is served, if it is.
    pub fn rest_address(&self) -> Option<SocketAddr> {
        self.rest_address
    }

    /// Opens the session of a TaskManager or worker in this process. Its first message registers it.
    pub async fn connect_embedded(&self) -> Session {
        self.leader.connect().await
    }

    /// Runs a job; returns when it is durable.
    ///
    /// # Errors
    /// The job could not run: its graph, its binary or its savepoint is refused.
    pub async fn submit(&self, mut spec: JobSpec) -> Result<JobId> {
        spec.savepoint = from_here(spec.savepoint)?;
        submission::check(&spec, &self.artifacts, &self.store).await?;
        let job = JobId(flott_env::random_id());
        self.leader.request(Request::Submit { job, spec: Box::new(spec) }).await?;
        Ok(job)
    }

    /// Stops a job without a savepoint; returns when that is under way.
    pub async fn cancel(&self, job: JobId) -> Result<()> {
        self.leader.request(Request::Cancel { job }).await.map(drop)
    }

    /// Takes a savepoint under `target`, or under `execution.checkpointing.savepoint-dir`; returns its folder
    /// when it is complete.
    pub async fn savepoint(&self, job: JobId, target: Option<String>) -> Result<String> {
        self.take_savepoint(job, target, false, false).await
    }

    /// Ends a job with a savepoint; returns its folder when the job has ended. With `drain` all windows
    /// fire first.
    pub async fn stop(&self, job: JobId, target: Option<String>, drain: bool) -> Result<String> {
        self.take_savepoint(job, target, true, drain).await
    }

    async fn take_savepoint(&self, job: JobId, target: Option<String>, stop: bool, drain: bool) -> Result<String> {
        let request = submission::savepoint(job, from_here(target)?, stop, drain)?;
        match self.leader.request(request).await? {
            Reply::Completed(location) => Ok(location),
            other => Err(Error::system(format!("the leader answered {other:?} to a savepoint"))),
        }
    }

    /// All jobs that the log knows.
    pub async fn jobs(&self) -> Result<Vec<JobView>> {
        self.leader.view(|cluster| cluster.jobs()).await
    }

    /// One job.
    pub async fn job(&self, job: JobId) -> Result<Option<JobView>> {
        self.leader.view(move |cluster| cluster.job(job)).await
    }

    /// The TaskManagers that are registered.
    pub async fn task_managers(&self) -> Result<Vec<TaskManagerView>> {
        self.leader.view(|cluster| cluster.task_managers()).await
    }

    /// Waits for the end of a job, and returns what it came to.
    ///
    /// # Errors
    /// There is no such job.
    pub async fn wait(&self, job: JobId) -> Result<JobView> {
        self.leader.wait(job).await?;
        self.job(job).await?.ok_or_else(|| Error::input(format!("there is no job {job}")))
    }

    /// Waits until the JobManager has ended.
    ///
    /// # Errors
    /// It did not end because it was told to: the log failed.
    pub async fn ended(&self) -> Result<()> {
        self.leader.ended().await
    }

    /// Ends the JobManager. Jobs are not told: they go on, or restart, under the next one. Returns when its log
    /// is closed, with the error of a leader that had failed before.
    pub async fn shutdown(self) -> Result<()> {
        self.leader.shutdown().await;
        self.leader.ended().await
    }

    fn serve(&mut self, server: impl Future<Output = Result<()>> + Send + 'static) {
        let served = async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "a server of the JobManager ended");
            }
        };
        self.servers.push(flott_env::spawn(served).abort_handle());
    }
}

/// Resolves a relative path: the caller is in this process, so it means the same for both.
fn from_here(place: Option<String>) -> Result<Option<String>> {
    place.map(|place| Store::normalize(&place)).transpose()
}

impl Drop for JobManagerHandle {
    fn drop(&mut self) {
        self.servers.iter().for_each(AbortHandle::abort);
        self.leader.shutdown_soon();
    }
}
