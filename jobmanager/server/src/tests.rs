//! The whole process in one test: leader, REST, and workers that only say what is expected of them.

mod lifecycle;
mod refusals;
mod rescale;
mod rest;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use flott_control::{ClaimMode, JobSpec};
use flott_core::config::Configuration;
use flott_core::ids::OperatorId;
use flott_graph::{JobEdge, JobGraph, JobVertex, OperatorDescriptor, Partitioning};
use flott_raft::{FactLog, MemoryLog};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

use crate::{JobManager, JobManagerHandle, JobManagerOptions};

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

struct Setup {
    handle: Arc<JobManagerHandle>,
    dir: TempDir,
    http: Client,
}

impl Setup {
    /// A JobManager that only serves REST, on a free port.
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let handle = start(&dir, Box::new(MemoryLog::default()), true).await;
        Self { handle: Arc::new(handle), dir, http: Client::builder().no_proxy().build().unwrap() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let address = self.handle.rest_address().unwrap();
        self.http.request(method, format!("http://{address}{path}"))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = answer(self.request(Method::GET, path)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    /// Asks again until the answer is as wanted.
    async fn get_until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let patience = flott_env::monotonic() + PATIENCE;
        loop {
            let body = self.get(path).await;
            if is_wanted(&body) {
                return body;
            }
            assert!(flott_env::monotonic() < patience, "{path} stays {body}");
            flott_env::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn start(dir: &TempDir, log: Box<dyn FactLog>, rest: bool) -> JobManagerHandle {
    let mut config = Configuration::default();
    for (key, value) in [("rest.port", "0"), ("heartbeat.timeout", "1 min"), ("parallelism.default", "2")] {
        config.set(key, value).unwrap();
    }
    let dir = dir.path().to_owned();
    JobManager::start(JobManagerOptions { config, dir, log, listen: false, rest }).await.unwrap()
}

async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// A source of one subtask and a keyed sum of two.
fn spec(artifact: Option<String>) -> JobSpec {
    let vertex = |id: u8, name: &str, parallelism| JobVertex {
        name: name.into(),
        operators: vec![OperatorDescriptor {
            id: OperatorId([id; 16]),
            uid: None,
            kind: name.into(),
            name: name.into(),
            node: id.into(),
        }],
        parallelism,
        max_parallelism: 128,
        is_source: id == 0,
        is_non_parallel: false,
    };
    let graph = JobGraph {
        name: "totals".into(),
        vertices: vec![vertex(0, "Source: orders", 1), vertex(1, "Sum -> Sink: print", 2)],
        edges: vec![JobEdge { source: 0, target: 1, partitioning: Partitioning::Hash, stream_edge: 0 }],
        config: Configuration::default(),
    };
    JobSpec {
        graph,
        artifact,
        args: vec![],
        payload: None,
        savepoint: None,
        allow_non_restored_state: false,
        claim_mode: ClaimMode::NoClaim,
    }
}
