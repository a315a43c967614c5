//! The checkpoints of a job: counts, statistics, history.

use axum::Json;
use axum::extract::{Path, State};
use flott_jobmanager_core::view::{CheckpointView, PendingView};
use serde_json::{Value, json};

use super::AppState;
use super::error::ApiError;

/// `GET /jobs/:id/checkpoints`
pub(super) async fn list(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let view = &job.checkpoints;
    let latest = |checkpoint: Option<&CheckpointView>| checkpoint.map(describe);
    let restored = view.latest_restored.as_ref().map(|checkpoint| {
        json!({
            "id": checkpoint.id,
            "restore_timestamp": checkpoint.completed_ms,
            "is_savepoint": checkpoint.is_savepoint,
            "external_path": checkpoint.location,
        })
    });
    let history: Vec<Value> =
        view.in_progress.iter().map(describe_pending).chain(view.history.iter().map(describe)).collect();
    Ok(Json(json!({
        "counts": {
            "restored": view.restored,
            "total": view.triggered,
            "in_progress": view.in_progress.len(),
            "completed": view.completed,
            "failed": view.failed,
        },
        "summary": {
            "checkpointed_size": statistics(&view.history, |c| c.outcome.as_ref().ok().map(|done| done.bytes_written)),
            "state_size": statistics(&view.history, |c| c.outcome.as_ref().ok().map(|done| done.bytes_total)),
            "end_to_end_duration":
                statistics(&view.history, |c| c.outcome.is_ok().then(|| duration_ms(c).max(0).unsigned_abs())),
            "alignment_buffered": statistics(&[], |_| None),
            "processed_data": statistics(&[], |_| None),
            "persisted_data": statistics(&view.history, |c| c.outcome.is_ok().then_some(c.persisted_bytes)),
        },
        "latest": {
            "completed": latest(view.latest_completed.as_ref()),
            "savepoint": latest(view.latest_savepoint.as_ref()),
            "failed": latest(view.latest_failed.as_ref()),
            "restored": restored,
        },
        "history": history,
    })))
}

/// `GET /jobs/:id/checkpoints/details/:checkpoint`
pub(super) async fn details(
    State(rest): AppState,
    Path((id, checkpoint)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let number: u64 = checkpoint
        .parse()
        .map_err(|_| ApiError::bad_request(format!("'{checkpoint}' is not the number of a checkpoint")))?;
    let ended = job.checkpoints.history.iter().find(|c| c.id == number).map(describe);
    let pending = || job.checkpoints.in_progress.iter().find(|c| c.id == number).map(describe_pending);
    let description = ended.or_else(pending);
    description
        .map(Json)
        .ok_or_else(|| ApiError::not_found(format!("job {} has no checkpoint {number} among the recent ones", job.id)))
}

fn duration_ms(checkpoint: &CheckpointView) -> i64 {
    checkpoint.ended_ms - checkpoint.triggered_ms
}

fn checkpoint_type(is_savepoint: bool) -> &'static str {
    if is_savepoint { "SAVEPOINT" } else { "CHECKPOINT" }
}

fn describe(checkpoint: &CheckpointView) -> Value {
    let (bytes_written, bytes_total, acknowledged) = match &checkpoint.outcome {
        Ok(done) => (done.bytes_written, done.bytes_total, checkpoint.subtasks),
        Err(_) => (0, 0, 0),
    };
    let mut description = json!({
        "id": checkpoint.id,
        "is_savepoint": checkpoint.is_savepoint,
        "savepointFormat": checkpoint.is_savepoint.then_some("NATIVE"),
        "trigger_timestamp": checkpoint.triggered_ms,
        "latest_ack_timestamp": checkpoint.ended_ms,
        "checkpointed_size": bytes_written,
        "state_size": bytes_total,
        "end_to_end_duration": duration_ms(checkpoint),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": checkpoint.persisted_bytes,
        "num_subtasks": checkpoint.subtasks,
        "num_acknowledged_subtasks": acknowledged,
        "checkpoint_type": checkpoint_type(checkpoint.is_savepoint),
        "tasks": {},
        "sync_micros_max": checkpoint.sync_micros_max,
        "alignment_micros_max": checkpoint.alignment_micros_max,
    });
    match &checkpoint.outcome {
        Ok(done) => {
            description["className"] = "completed".into();
            description["status"] = "COMPLETED".into();
            description["external_path"] = done.location.as_str().into();
            description["discarded"] = false.into();
            if done.is_savepoint {
                description["ends_job"] = done.ends_job.into();
            }
        }
        Err(reason) => {
            description["className"] = "failed".into();
            description["status"] = "FAILED".into();
            description["failure_timestamp"] = checkpoint.ended_ms.into();
            description["failure_message"] = reason.as_str().into();
        }
    }
    description
}

fn describe_pending(checkpoint: &PendingView) -> Value {
    json!({
        "className": "in_progress",
        "id": checkpoint.id,
        "status": "IN_PROGRESS",
        "is_savepoint": checkpoint.is_savepoint,
        "savepointFormat": checkpoint.is_savepoint.then_some("NATIVE"),
        "trigger_timestamp": checkpoint.triggered_ms,
        "latest_ack_timestamp": -1,
        "checkpointed_size": 0,
        "state_size": 0,
        "end_to_end_duration": flott_env::now_ms() - checkpoint.triggered_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": checkpoint.subtasks,
        "num_acknowledged_subtasks": checkpoint.acknowledged,
        "checkpoint_type": checkpoint_type(checkpoint.is_savepoint),
        "tasks": {},
    })
}

/// Flink's summary of a figure over the recent checkpoints.
fn statistics(history: &[CheckpointView], figure: impl Fn(&CheckpointView) -> Option<u64>) -> Value {
    let mut values: Vec<u64> = history.iter().filter_map(figure).collect();
    values.sort_unstable();
    let quantile = |thousandths: usize| {
        let rank = (values.len() * thousandths).div_ceil(1000);
        values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    json!({
        "min": values.first().copied().unwrap_or(0),
        "max": values.last().copied().unwrap_or(0),
        "avg": u64::try_from(sum / values.len().max(1) as u128).unwrap_or(u64::MAX),
        "p50": quantile(500),
        "p90": quantile(900),
        "p95": quantile(950),
        "p99": quantile(990),
        "p999": quantile(999),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_of_the_values_that_there_are() {
        let checkpoint = |ended_ms| CheckpointView {
            id: 1,
            is_savepoint: false,
            triggered_ms: 0,
            ended_ms,
            outcome: Err("declined".into()),
            sync_micros_max: 0,
            alignment_micros_max: 0,
            persisted_bytes: 0,
            subtasks: 1,
        };
        let history: Vec<_> = (1..=100).map(checkpoint).collect();
        let all = statistics(&history, |c| Some(duration_ms(c).unsigned_abs()));
        assert_eq!((&all["min"], &all["max"], &all["avg"]), (&json!(1), &json!(100), &json!(50)));
        assert_eq!((&all["p50"], &all["p99"], &all["p999"]), (&json!(50), &json!(99), &json!(100)));
        assert_eq!(statistics(&history, |_| None)["p50"], 0);
    }
}
