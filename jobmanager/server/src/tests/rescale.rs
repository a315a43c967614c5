//! Another parallelism while a job runs, and the same job again after its end.

use flott_core::ids::JobId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::workers::add_task_manager;
use super::{Setup, answer};

impl Setup {
    async fn put(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.request(Method::PUT, path).json(&body)).await
    }
}

fn requirements(parallelism: [u32; 2]) -> Value {
    let vertex = |upper: u32| json!({ "parallelism": { "lowerBound": 1, "upperBound": upper } });
    json!({ "00".repeat(16): vertex(parallelism[0]), "01".repeat(16): vertex(parallelism[1]) })
}

#[tokio::test]
async fn a_running_job_gets_another_parallelism() {
    let setup = Setup::start().await;
    add_task_manager(&setup.handle, "tm-1", 4).await;
    let path = format!("/jobs/{}", setup.submit().await);
    setup.get_until(&path, |job| job["state"] == "RUNNING").await;
    let resource_requirements = format!("{path}/resource-requirements");
    assert_eq!(setup.get(&resource_requirements).await, requirements([1, 2]));

    let mut body = requirements([1, 3]);
    body.as_object_mut().unwrap().remove(&"00".repeat(16));
    assert_eq!(setup.put(&resource_requirements, body).await, (StatusCode::OK, json!({})));
    let job = setup.get_until(&path, |job| job["state"] == "RUNNING").await;
    assert_eq!((&job["vertices"][1]["parallelism"], &job["rescaling-to"]), (&json!(3), &json!(null)));
    assert_eq!(job["plan"]["nodes"][1]["parallelism"], 3);
    assert_eq!(setup.get(&resource_requirements).await, requirements([1, 3]), "what is not named stays");
    let sum = setup.get(&format!("{path}/vertices/{}", "01".repeat(16))).await;
    assert_eq!((&sum["parallelism"], sum["subtasks"].as_array().map(Vec::len)), (&json!(3), Some(3)));
}

#[tokio::test]
async fn requirements_that_cannot_be_met_are_refused() {
    let setup = Setup::start().await;
    add_task_manager(&setup.handle, "tm-1", 2).await;
    let path = format!("/jobs/{}", setup.submit().await);
    setup.get_until(&path, |job| job["state"] == "RUNNING").await;
    let resource_requirements = format!("{path}/resource-requirements");
    let refused = async |body: Value, message: &str| {
        let (status, answer) = setup.put(&resource_requirements, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["errors"][0].as_str().is_some_and(|text| text.contains(message)), "{answer}");
    };
    let vertex = "01".repeat(16);
    let bounds = |bounds: Value| json!({ &vertex: { "parallelism": bounds } });
    refused(json!([]), "not as expected").await;
    refused(json!({}), "names no vertex").await;
    refused(json!({ "ab": { "parallelism": { "upperBound": 1 } } }), "no vertex 'ab'").await;
    refused(json!({ &vertex: { "parallelism": 2 } }), "upperBound").await;
    refused(json!({ &vertex: {}, "parallelism": 2 }), "has both").await;
    refused(json!({ "parallelism": -1 }), "not as expected").await;
    refused(bounds(json!({ "upperBound": -1 })), "not as expected").await;
    refused(bounds(json!({ "upperBound": 0 })), "from 1 to 0").await;
    refused(bounds(json!({ "lowerBound": 0, "upperBound": 2 })), "from 0 to 2").await;
    refused(bounds(json!({ "lowerBound": 3, "upperBound": 2 })), "from 3 to 2").await;
    // What only the leader can tell.
    refused(json!({ "parallelism": 0 }), "at least 1 subtask").await;
    refused(bounds(json!({ "upperBound": 129 })), "128").await;
    refused(bounds(json!({ "upperBound": 100 })), "slots").await;

    let unknown = format!("/jobs/{}/resource-requirements", JobId([0; 16]));
    assert_eq!(setup.put(&unknown, json!({ "parallelism": 1 })).await.0, StatusCode::NOT_FOUND);
    assert_eq!(setup.get(&path).await["state"], "RUNNING", "the job is unharmed");
    assert_eq!(answer(setup.request(Method::PATCH, &path)).await.0, StatusCode::ACCEPTED);
    setup.get_until(&path, |job| job["state"] == "CANCELED").await;
    assert_eq!(setup.put(&resource_requirements, json!({ "parallelism": 1 })).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_ended_job_starts_again_from_a_savepoint() {
    let setup = Setup::start().await;
    add_task_manager(&setup.handle, "tm-1", 2).await;
    let id = setup.submit().await;
    let path = format!("/jobs/{id}");
    setup.get_until(&path, |job| job["state"] == "RUNNING").await;
    let restart = format!("{path}/restart");
    let early = setup.post(&restart, json!({ "savepointPath": "/nowhere" })).await;
    assert_eq!(early.0, StatusCode::CONFLICT, "{}", early.1);

    let body = json!({ "targetDirectory": setup.dir.path().join("savepoints") });
    let stopped = setup.operate(&format!("{path}/stop"), body, &format!("{path}/savepoints")).await;
    let location = stopped["location"].as_str().unwrap();
    setup.get_until(&path, |job| job["state"] == "FINISHED").await;
    let last = setup.get(&format!("{path}/checkpoints")).await["latest"]["savepoint"].clone();
    assert_eq!((&last["external_path"], &last["ends_job"]), (&json!(location), &json!(true)));
    for (body, message) in [
        (json!({}), "savepointPath"),
        (json!({ "savepointPath": "/nowhere" }), "cannot start from savepoint '/nowhere'"),
        (json!({ "savepointPath": location, "parallelism": 2 }), "unknown field"),
    ] {
        let (status, answer) = setup.post(&restart, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["errors"][0].as_str().is_some_and(|text| text.contains(message)), "{answer}");
    }

    let (status, answer) = setup.post(&restart, json!({ "savepointPath": location })).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let again = answer["jobid"].as_str().unwrap();
    assert_ne!(again, id);
    let job = setup.get_until(&format!("/jobs/{again}"), |job| job["state"] == "RUNNING").await;
    assert_eq!(job["name"], "totals");
    let checkpoints = setup.get(&format!("/jobs/{again}/checkpoints")).await;
    assert_eq!(checkpoints["latest"]["restored"]["external_path"], location);

    // A client whose answer was lost repeats the call, with an id of its own.
    let path = format!("{restart}?jobid={}", "5a".repeat(16));
    for _ in 0..2 {
        let (status, answer) = setup.post(&path, json!({ "savepointPath": location })).await;
        assert_eq!((status, &answer["jobid"]), (StatusCode::OK, &json!("5a".repeat(16))), "{answer}");
    }
    let other = setup.post(&format!("{restart}?jobid={again}"), json!({ "savepointPath": "/nowhere" })).await;
    assert_eq!(other.0, StatusCode::BAD_REQUEST, "that is another job: {}", other.1);
    assert_eq!(setup.get("/jobs").await["jobs"].as_array().unwrap().len(), 3);
}
