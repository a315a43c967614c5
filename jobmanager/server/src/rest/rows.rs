//! The rows of a query, for the client that submitted it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::body::Body;
use super::error::ApiError;

/// `POST /jobs/:id/rows`: the body is a question to the job's sink, the answer is the sink's. 204 if no sink is there now: the
/// job is starting, or has ended. What both contain is between sink and client, which are of the same build.
pub(super) async fn ask(
    State(rest): AppState,
    Path(id): Path<String>,
    Body(question): Body,
) -> Result<Response, ApiError> {
    let job = rest.job(id.parse()?).await?;
    if job.status.is_terminal() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(match rest.rows.ask(job.id, question.to_vec()).await? {
        Some(answer) => ([(CONTENT_TYPE, "application/octet-stream")], answer).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}
