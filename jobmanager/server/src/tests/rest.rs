//! A job's life as REST shows it.

use flott_proto::artifact::to_hex;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::workers::add_task_manager;
use super::{Setup, answer, spec};
use crate::elf;

impl Setup {
    /// Uploads a binary and submits a job that names it; its id.
    pub(super) async fn submit(&self) -> String {
        let content = elf::example();
        let sha256 = to_hex(&Sha256::digest(&content));
        let upload = self.request(Method::PUT, &format!("/artifacts/{sha256}")).body(content);
        assert_eq!(answer(upload).await.0, StatusCode::CREATED);
        let head = self.request(Method::HEAD, &format!("/artifacts/{sha256}"));
        assert_eq!(answer(head).await.0, StatusCode::OK);
        let (status, body) = self.post("/jobs", serde_json::to_value(spec(Some(sha256))).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["jobid"].as_str().unwrap().to_owned()
    }

    /// Starts an operation and waits for its result.
    pub(super) async fn operate(&self, path: &str, body: serde_json::Value, status_path: &str) -> serde_json::Value {
        let (status, body) = self.post(path, body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
        let status_path = format!("{status_path}/{}", body["request-id"].as_str().unwrap());
        let done = self.get_until(&status_path, |body| body["status"]["id"] == "COMPLETED").await;
        done["operation"].clone()
    }
}

#[tokio::test]
async fn a_running_job_is_described_as_flink_would() {
    let setup = Setup::start().await;
    add_task_manager(&setup.handle, "tm-1", 3).await;
    let id = setup.submit().await;
    let path = format!("/jobs/{id}");
    let job = setup.get_until(&path, |job| job["state"] == "RUNNING").await;
    assert_eq!((&job["jid"], &job["name"]), (&json!(id), &json!("totals")));
    assert_eq!((&job["end-time"], &job["job-type"]), (&json!(-1), &json!("STREAMING")));
    assert_eq!(job["status-counts"]["RUNNING"], 2);
    assert!(job["timestamps"]["RUNNING"].as_i64().unwrap() >= job["timestamps"]["CREATED"].as_i64().unwrap());

    let path_of_source = format!("{path}/vertices/{}", "00".repeat(16));
    let source = setup.get_until(&path_of_source, |v| v["subtasks"][0]["metrics"]["write-records"] == 20).await;
    assert_eq!((&source["name"], &source["parallelism"]), (&json!("Source: orders"), &json!(1)));
    assert_eq!(source["subtasks"][0]["taskmanager-id"], "tm-1");
    let sum = &setup.get(&path).await["vertices"][1];
    assert_eq!((&sum["id"], &sum["tasks"]["RUNNING"]), (&json!("01".repeat(16)), &json!(2)));
    assert_eq!(sum["metrics"]["read-records"], 20);
    assert_eq!(sum["metrics"]["accumulated-busy-time"], 100);
    let state = |n: u64| json!({ "name": "sums", "entries": n * 100, "memory-bytes": n * 1000, "index-bytes": n * 10, "disk-bytes": n * 500 });
    let operators = |n: u64| json!([{ "id": "01".repeat(16), "name": "Sum -> Sink: print", "states": [state(n)] }]);
    assert_eq!(sum["operators"], operators(2), "summed over its subtasks");
    let sum = setup.get(&format!("{path}/vertices/{}", "01".repeat(16))).await;
    assert_eq!((&sum["operators"], &sum["subtasks"][1]["operators"]), (&operators(2), &operators(1)));
    assert_eq!(sum["subtasks"][0]["slot-state-limit"], 4000);

    let plan = setup.get(&format!("{path}/plan")).await;
    let input = json!({ "num": 0, "id": "00".repeat(16), "ship_strategy": "HASH", "exchange": "pipelined_bounded" });
    assert_eq!(plan["plan"]["nodes"][1]["inputs"], json!([input]));
    assert_eq!(setup.get(&format!("{path}/exceptions")).await["exceptionHistory"]["entries"], json!([]));
    assert_eq!(setup.get(&format!("{path}/config")).await["execution-config"]["execution-mode"], "PIPELINED");

    assert_eq!(setup.get("/jobs").await, json!({ "jobs": [{ "id": id, "status": "RUNNING" }] }));
    let listed = &setup.get("/jobs/overview").await["jobs"][0];
    assert_eq!(
        (&listed["jid"], &listed["state"], &listed["tasks"]["total"]),
        (&json!(id), &json!("RUNNING"), &json!(3))
    );
    assert_eq!(listed["tasks"]["running"], 3);

    let overview = setup.get("/overview").await;
    let figures = ["taskmanagers", "slots-total", "slots-available", "jobs-running", "jobs-finished"];
    assert_eq!(figures.map(|name| overview[name].as_u64()), [1, 3, 1, 1, 0].map(Some));
    let task_managers = setup.get("/taskmanagers").await;
    assert_eq!(task_managers["taskmanagers"][0]["freeSlots"], 1);
    let slot = json!({ "jobId": id });
    assert_eq!(setup.get("/taskmanagers/tm-1").await["allocatedSlots"], json!([slot, slot]));
    assert_eq!(setup.get("/config").await["features"]["web-cancel"], true);
    let options = setup.get("/jobmanager/config").await;
    assert!(options.as_array().unwrap().contains(&json!({ "key": "parallelism.default", "value": "2" })));

    let metrics = setup.get("/metrics").await;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("\nflott_jobmanager_numRunningJobs 1\n"), "{metrics}");
    let sample = format!(
        "flott_taskmanager_job_task_numRecordsOut{{job_id=\"{id}\",job_name=\"totals\",task_id=\"{}\",task_name=\"Source: orders\",subtask_index=\"0\",tm_id=\"tm-1\"}} 20\n",
        "00".repeat(16)
    );
    assert!(metrics.contains(&sample), "{metrics}");
    let operator = "01".repeat(16);
    let of_state = format!(
        "tm_id=\"tm-1\",operator_id=\"{operator}\",operator_name=\"Sum -> Sink: print\",state_name=\"sums\"}} 500\n"
    );
    let is_it = |line: &str| line.starts_with("flott_taskmanager_job_task_operator_stateDiskBytes{");
    let samples: Vec<&str> = metrics.split_inclusive('\n').filter(|line| is_it(line)).collect();
    assert!(samples.len() == 3 && samples[2].ends_with(&of_state), "{samples:?}");
}

#[tokio::test]
async fn savepoints_and_stops_are_asked_after_by_their_trigger_id() {
    let setup = Setup::start().await;
    add_task_manager(&setup.handle, "tm-1", 2).await;
    let id = setup.submit().await;
    let path = format!("/jobs/{id}");
    setup.get_until(&path, |job| job["state"] == "RUNNING").await;
    let (savepoints, checkpoints) = (format!("{path}/savepoints"), format!("{path}/checkpoints"));
    let target = setup.dir.path().join("savepoints");

    let body = json!({ "target-directory": target, "cancel-job": false });
    let location = setup.operate(&savepoints, body, &savepoints).await["location"].as_str().unwrap().to_owned();
    assert!(location.starts_with(&format!("file://{}/savepoint-", target.display())), "{location}");
    assert!(std::fs::exists(format!("{}/_metadata", location.strip_prefix("file://").unwrap())).unwrap());

    assert_eq!(setup.get(&checkpoints).await["latest"]["savepoint"]["ends_job"], false);
    let checkpoint = setup.operate(&checkpoints, json!({}), &checkpoints).await;
    let number = checkpoint["checkpointId"].as_u64().unwrap();
    let details = setup.get(&format!("{checkpoints}/details/{number}")).await;
    assert_eq!((&details["status"], &details["sync_micros_max"]), (&json!("COMPLETED"), &json!(7)));
    let statistics = setup.get(&checkpoints).await;
    assert_eq!((&statistics["counts"]["completed"], &statistics["counts"]["failed"]), (&json!(2), &json!(0)));
    assert_eq!(statistics["latest"]["savepoint"]["external_path"], location);
    assert_eq!(statistics["latest"]["completed"]["id"], number);
    assert_eq!(statistics["history"].as_array().unwrap().len(), 2);

    // No folder is named and none is configured: the failure is the operation's, with what to do.
    let failed = setup.operate(&savepoints, json!({}), &savepoints).await;
    let trace = failed["failure-cause"]["stack-trace"].as_str().unwrap();
    assert!(trace.contains("execution.checkpointing.savepoint-dir"), "{trace}");

    let withdraw = answer(setup.request(Method::PATCH, &format!("{path}?mode=cancel&unless=checkpoint"))).await;
    assert_eq!(withdraw.0, StatusCode::BAD_REQUEST, "{}", withdraw.1);

    let (stop, trigger) = (format!("{path}/stop"), "ab".repeat(16));
    let body = json!({ "targetDirectory": target, "drain": true, "triggerId": trigger });
    let stopped = setup.operate(&stop, body, &savepoints).await;
    assert!(stopped["location"].as_str().is_some_and(|second| second != location), "{stopped}");
    let job = setup.get_until(&path, |job| job["state"] == "FINISHED").await;
    assert!(job["end-time"].as_i64().unwrap() >= job["start-time"].as_i64().unwrap());

    for path in [savepoints.as_str(), checkpoints.as_str(), stop.as_str()] {
        assert_eq!(setup.post(path, json!({})).await.0, StatusCode::CONFLICT, "the job has ended");
    }
    let cancel = answer(setup.request(Method::PATCH, &format!("{path}?mode=cancel"))).await;
    assert_eq!(cancel.0, StatusCode::CONFLICT);
    // The result can still be asked for.
    assert_eq!(setup.get(&format!("{savepoints}/{trigger}")).await["operation"], stopped);
}

#[tokio::test]
async fn a_job_without_slots_says_so_and_can_be_cancelled() {
    let setup = Setup::start().await;
    let id = setup.submit().await;
    let path = format!("/jobs/{id}");
    let job = setup.get_until(&path, |job| job["waiting-for"].is_string()).await;
    assert_eq!(job["state"], "CREATED");
    assert_eq!(answer(setup.request(Method::PATCH, &path)).await.0, StatusCode::ACCEPTED);
    setup.get_until(&path, |job| job["state"] == "CANCELED").await;
    assert_eq!(setup.get("/overview").await["jobs-cancelled"], 1);
}
