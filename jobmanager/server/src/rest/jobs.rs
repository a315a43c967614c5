//! Lists of jobs, submission and cancellation.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::time::Timestamp;
use flott_jobmanager_core::Request;
use flott_jobmanager_core::view::JobView;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::Body;
use super::error::ApiError;
use super::job_details::task_counts;
use super::{AppState, Rest};
use crate::submission;

/// `GET /jobs`
pub(super) async fn list(State(rest): AppState) -> Result<Json<Value>, ApiError> {
    let jobs = rest.leader.view(|cluster| cluster.jobs()).await?;
    let list: Vec<Value> =
        jobs.iter().map(|job| json!({ "id": job.id.to_string(), "status": job.status.name() })).collect();
    Ok(Json(json!({ "jobs": list })))
}

/// `GET /jobs/overview`
pub(super) async fn overview(State(rest): AppState) -> Result<Json<Value>, ApiError> {
    let jobs = rest.leader.view(|cluster| cluster.jobs()).await?;
    let now_ms = flott_env::now_ms();
    let list: Vec<Value> = jobs.iter().map(|job| summary(job, now_ms)).collect();
    Ok(Json(json!({ "jobs": list })))
}

fn summary(job: &JobView, now_ms: Timestamp) -> Value {
    let mut tasks = task_counts(job.vertices.iter().flat_map(|vertex| &vertex.subtasks), str::to_lowercase);
    let total: usize = job.vertices.iter().map(|vertex| vertex.subtasks.len()).sum();
    tasks.insert("total".into(), total.into());
    json!({
        "jid": job.id.to_string(),
        "name": job.spec.graph.name,
        "state": job.status.name(),
        "start-time": job.submitted_ms,
        "end-time": job.ended_ms.unwrap_or(-1),
        "duration": job.ended_ms.unwrap_or(now_ms) - job.submitted_ms,
        "last-modification": job.status_times.last().map_or(job.submitted_ms, |(_, at_ms)| *at_ms),
        "tasks": tasks,
        "waiting-for": job.waiting_for,
    })
}

/// The query of [`submit`] and [`restart`].
#[derive(Deserialize)]
pub(super) struct Submission {
    jobid: Option<String>,
}

/// `POST /jobs?jobid=ID`: the body is a [`JobSpec`].
pub(super) async fn submit(
    State(rest): AppState,
    query: Query<Submission>,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    let spec: JobSpec = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("the body is not a job description: {error}")))?;
    accept(&rest, &query, spec).await
}

/// Refuses a job that cannot run, or makes it durable under the client's id or a new one. A client that repeats a
/// submission with its own id means the same one: what was accepted is not looked at again.
async fn accept(rest: &Rest, query: &Submission, spec: JobSpec) -> Result<Json<Value>, ApiError> {
    if spec.artifact.is_none() {
        return Err(ApiError::bad_request(
            "the job names no binary: upload it with PUT /artifacts/:sha256, and name it in 'artifact'",
        ));
    }
    let job = match &query.jobid {
        Some(id) => id.parse()?,
        None => JobId(flott_env::random_id()),
    };
    if rest.leader.view(move |cluster| cluster.job(job)).await?.is_none() {
        submission::check(&spec, &rest.artifacts, &rest.store).await?;
    }
    rest.leader.request(Request::Submit { job, spec: Box::new(spec) }).await?;
    Ok(Json(json!({ "jobid": job.to_string() })))
}

/// The body of [`restart`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RestartBody {
    savepoint_path: String,
    #[serde(default)]
    allow_non_restored_state: bool,
}

/// `POST /jobs/:id/restart?jobid=ID`: a job that has ended runs again under a new id, as it was, from a savepoint. Flink
/// has no such call; it is the way back of an upgrade, whose client does not have the old binary.
pub(super) async fn restart(
    State(rest): AppState,
    Path(id): Path<String>,
    query: Query<Submission>,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    let body: RestartBody = serde_json::from_slice(&body).map_err(|error| {
        ApiError::bad_request(format!("the body is not as expected: {error}; write {{\"savepointPath\": \"...\"}}"))
    })?;
    let job = rest.job(id.parse()?).await?;
    if !job.status.is_terminal() {
        return Err(ApiError::conflict(format!("job {} has not ended: it is {}", job.id, job.status)));
    }
    let spec = JobSpec {
        savepoint: Some(body.savepoint_path),
        allow_non_restored_state: body.allow_non_restored_state,
        claim_mode: ClaimMode::NoClaim,
        ..job.spec
    };
    accept(&rest, &query, spec).await
}

/// The query of [`cancel`].
#[derive(Deserialize)]
pub(super) struct Termination {
    mode: Option<String>,
    unless: Option<String>,
}

/// `PATCH /jobs/:id?mode=cancel`, and with `unless=checkpoint` only if the job has not completed one.
pub(super) async fn cancel(
    State(rest): AppState,
    Path(id): Path<String>,
    query: Query<Termination>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let job: JobId = id.parse()?;
    match query.mode.as_deref() {
        None | Some("cancel") => {}
        Some(mode) => {
            return Err(ApiError::bad_request(format!(
                "mode '{mode}' is unknown: use mode=cancel, or POST /jobs/:id/stop to stop with a savepoint"
            )));
        }
    }
    let request = match query.unless.as_deref() {
        None => Request::Cancel { job },
        Some("checkpoint") => Request::Withdraw { job },
        Some(unless) => {
            return Err(ApiError::bad_request(format!("unless '{unless}' is unknown: use unless=checkpoint")));
        }
    };
    let view = rest.job(job).await?;
    if view.status.is_terminal() {
        return Err(ApiError::conflict(format!("job {job} has already ended: it is {}", view.status)));
    }
    rest.leader.request(request).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({}))))
}
