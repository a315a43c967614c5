//! What every log must do, checked on each of them.

use flott_control::{CompletedCheckpoint, Fact, JobEnd, JobSpec};
use flott_core::Error;
use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_graph::JobGraph;
use flott_raft::{FactLog, MemoryLog, RedbLog};

const JOB: JobId = JobId([9; 16]);

/// One fact of each kind.
fn facts() -> Vec<Fact> {
    let graph = JobGraph { name: "job".into(), vertices: vec![], edges: vec![], config: Configuration::default() };
    let spec = JobSpec {
        graph,
        artifact: Some("ab".repeat(32)),
        args: vec!["--input".into(), "ä \"quoted\"".into()],
        payload: Some("KLUv/Q==".into()),
        savepoint: None,
        allow_non_restored_state: false,
        claim_mode: flott_control::ClaimMode::default(),
    };
    let checkpoint = CompletedCheckpoint {
        id: 1,
        generation: 1,
        location: "file:///checkpoints/1".into(),
        manifest_sha256: "cd".repeat(32),
        is_savepoint: false,
        ends_job: false,
        triggered_ms: 1,
        completed_ms: 2,
        bytes_written: 3,
        bytes_total: u64::MAX,
    };
    let end = JobEnd { status: JobStatus::Failed, error: Some(Error::user_code("boom")), ended_ms: i64::MAX };
    vec![
        Fact::JobSubmitted { job: JOB, spec: Box::new(spec), submitted_ms: 5 },
        Fact::GenerationStarted { job: JOB, generation: 1 },
        Fact::CheckpointCompleted { job: JOB, checkpoint },
        Fact::SavepointRequested { job: JOB, location: "file:///savepoints/savepoint-090909-ä".into() },
        Fact::CheckpointDropped { job: JOB, checkpoint: 1 },
        Fact::JobEnded { job: JOB, end },
    ]
}

/// `reopen` gives the same log again, as after a restart of its owner.
fn conforms<L: FactLog>(log: L, reopen: impl Fn(L) -> L) {
    let mut log = log;
    assert_eq!(log.replay().unwrap(), []);

    let facts = facts();
    for (count, fact) in facts.iter().enumerate() {
        log.append(fact).unwrap();
        assert_eq!(log.replay().unwrap(), facts[..=count], "a replay shows all facts in order");
    }

    // The same fact twice is two facts: what it means is not the log's business.
    log.append(&facts[1]).unwrap();
    let mut expected = facts.clone();
    expected.push(facts[1].clone());

    for _ in 0..3 {
        log = reopen(log);
        assert_eq!(log.replay().unwrap(), expected, "nothing is lost");
        log.append(&facts[2]).unwrap();
        expected.push(facts[2].clone());
        assert_eq!(log.replay().unwrap(), expected, "it goes on where it was");
    }
}

#[test]
fn the_log_in_memory_conforms() {
    conforms(MemoryLog::default(), |log| log);
}

#[test]
fn the_log_in_a_file_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/folder");
    conforms(RedbLog::open(&path).unwrap(), |log| {
        drop(log);
        RedbLog::open(&path).unwrap()
    });
}
