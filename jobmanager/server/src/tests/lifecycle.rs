//! Starting, restarting and ending.

use std::sync::Arc;
use std::time::Duration;

use flott_control::Fact;
use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_raft::{FactLog, MemoryLog, RedbLog};

use super::workers::add_task_manager;
use super::{PATIENCE, spec, start};
use crate::{JobManager, JobManagerHandle, JobManagerOptions};

#[tokio::test]
async fn jobs_survive_a_restart_of_the_job_manager() {
    let dir = tempfile::tempdir().unwrap();
    let log = || Box::new(RedbLog::open(dir.path()).unwrap());
    let handle = start(&dir, log(), false).await;
    let job = handle.submit(spec(None)).await.unwrap();
    handle.shutdown().await.unwrap();

    let handle = Arc::new(start(&dir, log(), false).await);
    assert_eq!(handle.jobs().await.unwrap().len(), 1);
    add_task_manager(&handle, "tm-1", 2).await;
    let running = async {
        while handle.job(job).await.unwrap().unwrap().status != JobStatus::Running {
            flott_env::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, running).await.expect("the job should run again");
    handle.cancel(job).await.unwrap();
    let ended = handle.wait(job).await.unwrap();
    assert_eq!((ended.status, ended.id), (JobStatus::Canceled, job));
    // Whoever asks later learns the same at once.
    assert_eq!(handle.wait(job).await.unwrap().status, JobStatus::Canceled);
    let unknown = handle.wait(JobId([0; 16])).await.unwrap_err();
    assert!(unknown.to_string().contains("there is no job"), "{unknown}");
}

/// A log on a full disk.
struct FullLog;

impl FactLog for FullLog {
    fn append(&mut self, _: &Fact) -> Result<()> {
        Err(Error::system("no space left on device"))
    }

    fn replay(&mut self) -> Result<Vec<Fact>> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_leader_whose_log_fails_ends_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let handle = start(&dir, Box::new(FullLog), false).await;
    assert!(handle.submit(spec(None)).await.is_err());
    let error = handle.ended().await.unwrap_err().to_string();
    assert!(error.contains("no space left on device"), "{error}");
    let error = handle.jobs().await.unwrap_err().to_string();
    assert!(error.contains("has ended") && error.contains("no space left on device"), "{error}");
    assert_eq!(handle.connect_embedded().await.down.recv().await, None);
}

async fn start_with(settings: &[(&str, &str)]) -> (Result<JobManagerHandle>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Configuration::default();
    for (key, value) in [("rest.port", "0"), ("jobmanager.rpc.port", "0")].iter().chain(settings) {
        config.set(key, value).unwrap();
    }
    let log = Box::new(MemoryLog::default());
    let options = JobManagerOptions { config, dir: dir.path().to_owned(), log, listen: true, rest: true };
    (JobManager::start(options).await, dir)
}

#[tokio::test]
async fn a_port_in_use_is_named_with_its_option() {
    let (first, _dir) = start_with(&[]).await;
    let first = first.unwrap();
    let rest_port = first.rest_address().unwrap().port().to_string();
    let (second, _dir) = start_with(&[("rest.port", &rest_port)]).await;
    let error = second.err().unwrap().to_string();
    assert!(error.contains(&format!("127.0.0.1:{rest_port}: the port is in use")), "{error}");
    assert!(error.contains("set rest.port"), "{error}");
    let rpc_port = first.rpc_address().unwrap().port().to_string();
    let (second, _dir) = start_with(&[("jobmanager.rpc.port", &rpc_port)]).await;
    assert!(second.err().unwrap().to_string().contains("set jobmanager.rpc.port"));
}

#[tokio::test]
async fn other_addresses_than_loopback_need_consent() {
    for option in ["rest.bind-address", "jobmanager.bind-host"] {
        let (refused, _dir) = start_with(&[(option, "0.0.0.0")]).await;
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(option) && error.contains("security.insecure"), "{error}");
    }
    let (accepted, _dir) = start_with(&[("rest.bind-address", "0.0.0.0"), ("security.insecure", "true")]).await;
    accepted.unwrap();
}
