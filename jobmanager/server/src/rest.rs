//! The REST API, in the shapes of Flink's: its paths, its field names, its asynchronous operations.
//!
//! Handlers look at the cluster through the leader and print what they see; each module below is one
//! group of paths.

mod artifacts;
mod body;
mod checkpoints;
mod cluster;
mod error;
mod guard;
mod job_details;
mod jobs;
mod metrics;
mod operations;
mod requirements;
mod rows;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};
use flott_checkpoint::Store;
use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::{Error, Result};
use flott_jobmanager_core::view::JobView;
use tokio::net::TcpListener;

use crate::artifacts::ArtifactStore;
use crate::leader::LeaderClient;
use crate::rows::RowsHub;
use error::ApiError;
use operations::Operations;

/// The largest body of an ordinary request, and of a job's description, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
const JOB_BYTES_MAX: usize = 64 << 20;

/// What handlers work with.
pub(crate) struct Rest {
    pub(crate) leader: LeaderClient,
    pub(crate) artifacts: ArtifactStore,
    pub(crate) store: Store,
    pub(crate) config: Configuration,
    pub(crate) address: SocketAddr,
    pub(crate) rows: RowsHub,
    pub(crate) operations: Operations,
}

type AppState = axum::extract::State<Arc<Rest>>;

impl Rest {
    pub(crate) fn new(
        leader: LeaderClient,
        artifacts: ArtifactStore,
        store: Store,
        config: Configuration,
        address: SocketAddr,
        rows: RowsHub,
    ) -> Self {
        Self { leader, artifacts, store, config, address, rows, operations: Operations::default() }
    }

    /// The job that a path names.
    async fn job(&self, id: JobId) -> Result<JobView, ApiError> {
        let view = self.leader.view(move |cluster| cluster.job(id)).await?;
        view.ok_or_else(|| ApiError::not_found(format!("Job {id} not found")))
    }
}

/// Serves until its future is dropped.
pub(crate) async fn serve(listener: TcpListener, rest: Arc<Rest>) -> Result<()> {
    let served = axum::serve(listener, router(rest)).await;
    served.map_err(|error| Error::system(format!("the REST server ended: {error}")))
}

fn router(rest: Arc<Rest>) -> Router {
    Router::new()
        .route("/overview", get(cluster::overview))
        .route("/config", get(cluster::config))
        .route("/jobmanager/config", get(cluster::job_manager_config))
        .route("/taskmanagers", get(cluster::task_managers))
        .route("/taskmanagers/{id}", get(cluster::task_manager))
        .route("/jobs", get(jobs::list).post(jobs::submit).layer(DefaultBodyLimit::max(JOB_BYTES_MAX)))
        .route("/jobs/overview", get(jobs::overview))
        .route("/jobs/{job}", get(job_details::job).patch(jobs::cancel))
        .route("/jobs/{job}/config", get(job_details::config))
        .route("/jobs/{job}/exceptions", get(job_details::exceptions))
        .route("/jobs/{job}/plan", get(job_details::plan))
        .route("/jobs/{job}/vertices/{vertex}", get(job_details::vertex))
        .route("/jobs/{job}/checkpoints", get(checkpoints::list).post(operations::trigger_checkpoint))
        .route("/jobs/{job}/checkpoints/details/{checkpoint}", get(checkpoints::details))
        .route("/jobs/{job}/checkpoints/{trigger}", get(operations::checkpoint_status))
        .route("/jobs/{job}/savepoints", post(operations::trigger_savepoint))
        .route("/jobs/{job}/savepoints/{trigger}", get(operations::savepoint_status))
        .route("/jobs/{job}/stop", post(operations::stop))
        .route("/jobs/{job}/restart", post(jobs::restart))
        .route("/jobs/{job}/rows", post(rows::ask))
        .route("/jobs/{job}/resource-requirements", get(requirements::get).put(requirements::put))
        .route("/artifacts/{sha256}", put(artifacts::upload).get(artifacts::exists))
        .route("/metrics", get(metrics::metrics))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(rest.clone(), guard::check))
        .with_state(rest)
}

async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("Not found: {}", uri.path()))
}

async fn unknown_method(uri: Uri) -> ApiError {
    ApiError::method_not_allowed(format!("Method not allowed: {}", uri.path()))
}
