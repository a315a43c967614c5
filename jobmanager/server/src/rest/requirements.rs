//! The parallelism of a running job, in the shape of Flink's resource requirements.
//!
//! Flink takes bounds and rescales when it sees fit; here the upper bound is what a vertex gets, at once, and the
//! answer comes when the job runs so. Beside Flink's body there is `{"parallelism": N}`, which is for the job as a
//! whole: for all vertices that its author did not give fewer subtasks than others.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use flott_core::ids::VertexId;
use flott_jobmanager_core::view::JobView;
use flott_jobmanager_core::{Parallelism, Reply, Request};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::AppState;
use super::body::Body;
use super::error::ApiError;
use super::job_details::vertex_id;
use super::operations::running_job;

/// The field of the body that means the job as a whole. Vertices are named by 32 hexadecimal digits, so it is none of them.
const ALL: &str = "parallelism";

/// What a vertex is to get.
#[derive(Deserialize)]
struct VertexRequirements {
    parallelism: Bounds,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bounds {
    #[serde(default = "one")]
    lower_bound: u32,
    upper_bound: u32,
}

fn one() -> u32 {
    1
}

/// `GET /jobs/:id/resource-requirements`
pub(super) async fn get(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let wanted = |position: usize| job.rescaling_to.as_ref().and_then(|wanted| wanted.get(position)).copied();
    let vertices = job.spec.graph.vertices.iter().enumerate().map(|(position, vertex)| {
        let upper = wanted(position).unwrap_or(vertex.parallelism);
        (vertex_id(vertex), json!({ "parallelism": { "lowerBound": 1, "upperBound": upper } }))
    });
    let requirements: Map<String, Value> = vertices.collect();
    Ok(Json(Value::Object(requirements)))
}

/// `PUT /jobs/:id/resource-requirements`
pub(super) async fn put(
    State(rest): AppState,
    Path(id): Path<String>,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    let job = running_job(&rest, &id).await?;
    let parallelism = read(&body, &rest.job(job).await?)?;
    match rest.leader.request(Request::Rescale { job, parallelism }).await? {
        Reply::Rescaled(_) => Ok(Json(json!({}))),
        other => Err(flott_core::Error::system(format!("the leader answered {other:?} to a rescale")).into()),
    }
}

/// What the body asks for. Vertices that it does not name keep what they have.
fn read(body: &[u8], job: &JobView) -> Result<Parallelism, ApiError> {
    let invalid = |error: serde_json::Error| {
        ApiError::bad_request(format!(
            "the body is not as expected: {error}; write {{\"VERTEX\": {{\"parallelism\": {{\"upperBound\": N}}}}}} or {{\"{ALL}\": N}}"
        ))
    };
    let mut fields: BTreeMap<String, Value> = serde_json::from_slice(body).map_err(invalid)?;
    if let Some(all) = fields.remove(ALL) {
        return match fields.keys().next() {
            None => Ok(Parallelism::All(u32::deserialize(all).map_err(invalid)?)),
            Some(other) => Err(ApiError::bad_request(format!(
                "the body has both '{ALL}', which is for the whole job, and '{other}': name each vertex, or none"
            ))),
        };
    }
    if fields.is_empty() {
        return Err(ApiError::bad_request("the body names no vertex: GET shows the requirements of all"));
    }
    let mut wanted = BTreeMap::new();
    for (name, requirements) in fields {
        let position = job.spec.graph.vertices.iter().position(|vertex| vertex_id(vertex) == name);
        let vertex = position.and_then(|position| VertexId::try_from(position).ok());
        let vertex = vertex.ok_or_else(|| ApiError::bad_request(format!("job {} has no vertex '{name}'", job.id)))?;
        let Bounds { lower_bound, upper_bound } =
            VertexRequirements::deserialize(requirements).map_err(invalid)?.parallelism;
        if lower_bound == 0 || lower_bound > upper_bound {
            return Err(ApiError::bad_request(format!(
                "vertex '{name}' is to have a parallelism from {lower_bound} to {upper_bound}: the least is 1, and no more than the upper bound"
            )));
        }
        wanted.insert(vertex, upper_bound);
    }
    Ok(Parallelism::Vertices(wanted))
}
