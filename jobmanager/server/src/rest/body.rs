//! The body of a request, whatever its content type, refused in Flink's shape when it is too large.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};

use super::error::ApiError;

/// Extracts the whole body.
pub(super) struct Body(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = Bytes::from_request(request, state).await;
        body.map(Self).map_err(|rejection| ApiError::new(rejection.status(), rejection.body_text()))
    }
}
