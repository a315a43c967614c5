//! The REST API and the machine-readable output of the command line, on a cluster with a job: the fields that tools
//! rely on, with their types.

use std::time::Duration;

use flott_e2e::{Cluster, binary, request, until};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// The type of a field.
#[derive(Clone, Copy, Debug)]
enum Type {
    Number,
    Text,
    Bool,
    List,
    Object,
    /// Text, or null when there is none.
    MaybeText,
}

impl Type {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
            Self::Bool => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::MaybeText => value.is_string() || value.is_null(),
        }
    }
}

use Type::{Bool, List, MaybeText, Number, Object, Text};

/// Refuses an object in which one of the fields is missing or of another type.
#[track_caller]
fn expect(what: &str, value: &Value, fields: &[(&str, Type)]) {
    for (name, kind) in fields {
        match value.get(name) {
            Some(found) => assert!(kind.is_of(found), "{what}: '{name}' is {found}, no {kind:?}"),
            None => panic!("{what}: there is no '{name}' in {value}"),
        }
    }
}

/// A cluster with a running job that has completed a checkpoint and reported its figures.
fn cluster_with_job() -> (Cluster, String) {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let job = cluster.run_job(
        &binary("e2e-job"),
        &["-p", "2", "-D", "execution.checkpointing.interval=300ms"],
        &["--case", "numbers", "--output", &output],
    );
    cluster.wait_for_checkpoints(&job, 2);
    until("the figures of the job", LIMIT, || {
        let details = cluster.try_rest(&format!("/jobs/{job}"))?;
        let sent = &details["vertices"][0]["metrics"]["write-records"];
        let entries = &details["vertices"][1]["operators"][0]["states"][0]["entries"];
        if sent.as_u64() > Some(0) && *entries == 64 { Ok(()) } else { Err(details["vertices"].to_string()) }
    });
    (cluster, job)
}

#[test]
fn answers_have_flinks_shapes() {
    let (cluster, job) = cluster_with_job();
    check_cluster(&cluster);
    check_lists(&cluster, &job);
    check_job(&cluster, &job);
    check_checkpoints(&cluster, &job);
    check_metrics(&cluster, &job);
    check_command_line(&cluster, &job);
    check_savepoint(&cluster, &job);
}

fn check_cluster(cluster: &Cluster) {
    let overview = cluster.rest("/overview");
    let counts = ["taskmanagers", "slots-total", "slots-available", "jobs-running", "jobs-finished", "jobs-cancelled"];
    expect("overview", &overview, &counts.map(|name| (name, Number)));
    expect("overview", &overview, &[("jobs-failed", Number), ("flink-version", Text), ("flink-commit", Text)]);
    assert_eq!(counts.map(|name| overview[name].as_u64().unwrap_or(99)), [2, 4, 2, 1, 0, 0]);

    let config = cluster.rest("/config");
    let fields = [("refresh-interval", Number), ("timezone-name", Text), ("timezone-offset", Number)];
    expect("config", &config, &fields);
    expect("config", &config, &[("flink-version", Text), ("flink-revision", Text), ("features", Object)]);

    let managers = cluster.rest("/taskmanagers");
    let managers = managers["taskmanagers"].as_array().expect("a list");
    assert_eq!(managers.len(), 2);
    for manager in managers {
        let fields = [
            ("id", Text),
            ("path", Text),
            ("dataPort", Number),
            ("timeSinceLastHeartbeat", Number),
            ("slotsNumber", Number),
            ("freeSlots", Number),
        ];
        expect("taskmanagers", manager, &fields);
        let id = manager["id"].as_str().expect("an id");
        let details = cluster.rest(&format!("/taskmanagers/{id}"));
        expect("taskmanagers/:id", &details, &fields);
        expect("taskmanagers/:id", &details, &[("allocatedSlots", List)]);
        // The job's two subtasks are spread over the TaskManagers.
        assert_eq!((&details["slotsNumber"], &details["freeSlots"]), (&2.into(), &1.into()));
    }
    assert_eq!(cluster.request("GET", "/taskmanagers/nobody", b"").0, 404);
}

fn check_lists(cluster: &Cluster, job: &str) {
    let jobs = cluster.rest("/jobs");
    expect("jobs", &jobs["jobs"][0], &[("id", Text), ("status", Text)]);
    assert_eq!((&jobs["jobs"][0]["id"], &jobs["jobs"][0]["status"]), (&job.into(), &"RUNNING".into()));
    let overview = cluster.rest("/jobs/overview");
    let summary = &overview["jobs"][0];
    let times = ["start-time", "end-time", "duration", "last-modification"].map(|name| (name, Number));
    expect("jobs/overview", summary, &times);
    expect("jobs/overview", summary, &[("jid", Text), ("name", Text), ("state", Text), ("tasks", Object)]);
    let states =
        ["total", "created", "scheduled", "deploying", "running", "finished", "canceling", "canceled", "failed"];
    expect("jobs/overview tasks", &summary["tasks"], &states.map(|name| (name, Number)));
    assert_eq!(summary["tasks"]["running"], summary["tasks"]["total"]);
}

fn check_job(cluster: &Cluster, job: &str) {
    let details = cluster.rest(&format!("/jobs/{job}"));
    let texts = ["jid", "name", "state", "job-type"].map(|name| (name, Text));
    expect("job", &details, &texts);
    let numbers = ["start-time", "end-time", "duration", "maxParallelism", "now"].map(|name| (name, Number));
    expect("job", &details, &numbers);
    let others = [
        ("isStoppable", Bool),
        ("timestamps", Object),
        ("vertices", List),
        ("status-counts", Object),
        ("plan", Object),
    ];
    expect("job", &details, &others);
    expect("timestamps", &details["timestamps"], &["CREATED", "RUNNING", "FAILED"].map(|name| (name, Number)));
    for vertex in details["vertices"].as_array().expect("a list") {
        expect("vertex", vertex, &["id", "name", "status"].map(|name| (name, Text)));
        let numbers = ["maxParallelism", "parallelism", "start-time", "end-time", "duration"];
        expect("vertex", vertex, &numbers.map(|name| (name, Number)));
        expect("vertex", vertex, &[("tasks", Object), ("metrics", Object)]);
        let figures = ["read-bytes", "write-bytes", "read-records", "write-records", "accumulated-busy-time"];
        expect("metrics", &vertex["metrics"], &figures.map(|name| (name, Number)));
        assert_eq!(vertex["parallelism"], 2);
        for operator in vertex["operators"].as_array().expect("a list") {
            expect("operator", operator, &[("id", Text), ("name", Text), ("states", List)]);
        }
    }
    let count = &details["vertices"][1];
    let states = count["operators"][0]["states"].as_array().expect("a list");
    // Two that it declares, and its timers of two kinds.
    assert_eq!((&count["operators"][0]["name"], states.len()), (&"Count".into(), 4), "{count}");
    let figures = ["entries", "memory-bytes", "index-bytes", "disk-bytes"].map(|name| (name, Number));
    expect("state", &states[0], &[&[("name", Text)][..], &figures].concat());
    assert_eq!((&states[0]["name"], &states[0]["entries"]), (&"count".into(), &64.into()));
    let id = count["id"].as_str().expect("an id");
    let vertex = cluster.rest(&format!("/jobs/{job}/vertices/{id}"));
    for subtask in vertex["subtasks"].as_array().expect("a list") {
        expect("subtask", subtask, &[("operators", List), ("slot-state-bytes", Number), ("slot-state-limit", Number)]);
        assert_eq!(subtask["operators"][0]["states"][0]["name"], "count");
    }
    for node in details["plan"]["nodes"].as_array().expect("a list") {
        expect("plan", node, &[("id", Text), ("parallelism", Number), ("description", Text), ("inputs", List)]);
    }
    let exceptions = cluster.rest(&format!("/jobs/{job}/exceptions"));
    expect("exceptions", &exceptions, &[("root-exception", MaybeText), ("exceptionHistory", Object)]);
    expect("exceptions", &exceptions["exceptionHistory"], &[("entries", List), ("truncated", Bool)]);
    let config = cluster.rest(&format!("/jobs/{job}/config"));
    expect("job config", &config, &[("jid", Text), ("name", Text), ("execution-config", Object)]);
    assert_eq!(config["execution-config"]["user-config"]["execution.checkpointing.interval"], "300ms");
}

fn check_checkpoints(cluster: &Cluster, job: &str) {
    let checkpoints = cluster.rest(&format!("/jobs/{job}/checkpoints"));
    let parts = [("counts", Object), ("summary", Object), ("latest", Object), ("history", List)];
    expect("checkpoints", &checkpoints, &parts);
    let counts = ["restored", "total", "in_progress", "completed", "failed"].map(|name| (name, Number));
    expect("counts", &checkpoints["counts"], &counts);
    for name in ["checkpointed_size", "state_size", "end_to_end_duration"] {
        let figures = ["min", "max", "avg", "p50", "p90", "p99"].map(|name| (name, Number));
        expect(name, &checkpoints["summary"][name], &figures);
    }
    let latest = &checkpoints["latest"]["completed"];
    let fields =
        [("id", Number), ("status", Text), ("is_savepoint", Bool), ("external_path", Text), ("className", Text)];
    expect("latest", latest, &fields);
    let numbers = ["trigger_timestamp", "latest_ack_timestamp", "state_size", "end_to_end_duration", "num_subtasks"];
    expect("latest", latest, &numbers.map(|name| (name, Number)));
    assert!(latest["state_size"].as_u64() > Some(0), "{latest}");
    let details = cluster.rest(&format!("/jobs/{job}/checkpoints/details/{}", latest["id"]));
    expect("checkpoint details", &details, &fields);
}

fn check_metrics(cluster: &Cluster, job: &str) {
    let (status, metrics) = request(cluster.rest_port(), "GET", "/metrics", b"").expect("it answers");
    assert_eq!(status, 200);
    let has_series = |name: &str, subtask: Option<u32>| {
        metrics.lines().any(|line| {
            let label = subtask.map(|index| format!("subtask_index=\"{index}\""));
            line.starts_with(&format!("flott_{name}{{"))
                && line.contains(&format!("job_id=\"{job}\""))
                && label.is_none_or(|label| line.contains(&label))
                && line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok())
        })
    };
    let of_job = ["numRestarts", "numberOfCompletedCheckpoints", "lastCheckpointDuration", "lastCheckpointSize"];
    for name in of_job {
        assert!(has_series(&format!("jobmanager_job_{name}"), None), "no {name} in {metrics}");
    }
    let of_subtask = [
        "numRecordsIn",
        "numRecordsOut",
        "numBytesIn",
        "numBytesOut",
        "accumulateBusyTimeMs",
        "accumulateIdleTimeMs",
        "accumulateBackPressuredTimeMs",
        "currentInputWatermark",
        "stateBytes",
        "slotStateBytes",
        "slotStateLimit",
        "operator_stateEntries",
        "operator_stateMemoryBytes",
        "operator_stateIndexBytes",
        "operator_stateDiskBytes",
    ];
    for name in of_subtask {
        for index in 0..2 {
            let name = format!("taskmanager_job_task_{name}");
            assert!(has_series(&name, Some(index)), "no {name} of subtask {index} in {metrics}");
        }
    }
}

fn check_command_line(cluster: &Cluster, job: &str) {
    let json = |verb: &str, arguments: &[&str]| -> Value {
        let output = cluster.flott(verb, arguments).succeeded();
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error} in {}", output.stdout))
    };
    let list = json("list", &["-o", "json"]);
    assert_eq!((&list["jobs"][0]["jid"], &list["jobs"][0]["state"]), (&job.into(), &"RUNNING".into()));
    let table = cluster.flott("list", &[]).succeeded().stdout;
    assert!(table.contains(job) && table.contains("numbers"), "{table}");

    let binary = binary("e2e-job");
    let mut info = cluster.command();
    info.args(["info", "-o", "json", "-p", "3"]).arg(&binary).args(["--", "--case", "numbers", "--output", "/tmp"]);
    let info = flott_e2e::run_command(&mut info, LIMIT).succeeded().stdout;
    let graph: Value = serde_json::from_str(&info).unwrap_or_else(|error| panic!("{error} in {info}"));
    assert_eq!(graph["vertices"][0]["parallelism"], 3);
    assert!(info.contains("Count"), "{info}");
    assert_eq!(cluster.rest("/jobs")["jobs"].as_array().map(Vec::len), Some(1), "info runs nothing");
}

fn check_savepoint(cluster: &Cluster, job: &str) {
    let body = format!("{{\"target-directory\": \"{}\", \"cancel-job\": false}}", cluster.path("savepoints"));
    let (status, accepted) = cluster.request("POST", &format!("/jobs/{job}/savepoints"), body.as_bytes());
    assert_eq!(status, 202, "{accepted}");
    let trigger = accepted["request-id"].as_str().expect("a request id");
    let operation = until("the savepoint", LIMIT, || {
        let answer = cluster.try_rest(&format!("/jobs/{job}/savepoints/{trigger}"))?;
        if answer["status"]["id"] == "COMPLETED" { Ok(answer["operation"].clone()) } else { Err(answer.to_string()) }
    });
    let location = operation["location"].as_str().unwrap_or_else(|| panic!("{operation}"));
    assert!(location.contains("/savepoints/savepoint-"), "{location}");
    let checkpoints = cluster.rest(&format!("/jobs/{job}/checkpoints"));
    assert_eq!(checkpoints["latest"]["savepoint"]["external_path"], location);

    assert_eq!(cluster.request("PATCH", &format!("/jobs/{job}?mode=stop"), b"").0, 400);
    assert_eq!(cluster.request("PATCH", &format!("/jobs/{job}?mode=cancel"), b"").0, 202);
    cluster.wait_for_status(job, "CANCELED", LIMIT);
    assert_eq!(cluster.request("PATCH", &format!("/jobs/{job}?mode=cancel"), b"").0, 409);
}
