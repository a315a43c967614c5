//! Uploads of job binaries.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use flott_proto::artifact::{ARTIFACT_BYTES_MAX, check_sha256};
use serde_json::{Value, json};

use super::AppState;
use super::error::ApiError;
use crate::artifacts::too_large;

/// `PUT /artifacts/:sha256`: the body is the binary.
pub(super) async fn upload(
    State(rest): AppState,
    Path(sha256): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|bytes| bytes > ARTIFACT_BYTES_MAX) {
        return Err(ApiError::too_large(too_large().message));
    }
    rest.artifacts.put(&sha256, request.into_body().into_data_stream()).await?;
    tracing::info!(sha256, "job binary stored");
    Ok((StatusCode::CREATED, Json(json!({ "sha256": sha256 }))))
}

/// `GET` or `HEAD /artifacts/:sha256`: whether it is there.
pub(super) async fn exists(State(rest): AppState, Path(sha256): Path<String>) -> Result<Json<Value>, ApiError> {
    check_sha256(&sha256)?;
    match rest.artifacts.path(&sha256) {
        Some(_) => Ok(Json(json!({ "sha256": sha256 }))),
        None => Err(ApiError::not_found(format!("there is no job binary {sha256}"))),
    }
}
