//! Sessions and binaries over a real connection.

use std::path::PathBuf;
use std::time::Duration;

use flott_control::{Down, ExecutionId, TaskManagerInfo, Up};
use flott_core::Error;
use flott_core::ids::{JobId, TaskManagerId};
use flott_proto::artifact::to_hex;
use flott_proto::rows::{RowsMessage, RowsOffer};
use flott_proto::server::{Acceptor, serve};
use flott_proto::{ServerSession, client};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

struct Host {
    offers: mpsc::UnboundedSender<RowsOffer>,
    sessions: mpsc::UnboundedSender<ServerSession>,
    artifact: (String, PathBuf),
}

impl Acceptor for Host {
    fn accept(&self, session: ServerSession) {
        // A test that has ended takes no more sessions.
        let _ = self.sessions.send(session);
    }

    fn offer(&self, offer: RowsOffer) {
        // A test that has ended takes no more offers.
        let _ = self.offers.send(offer);
    }

    fn artifact(&self, sha256: &str) -> Option<PathBuf> {
        (self.artifact.0 == sha256).then(|| self.artifact.1.clone())
    }
}

/// A server on a free port; its address, and the sessions that it accepts.
async fn start(artifact: (String, PathBuf)) -> (String, mpsc::UnboundedReceiver<ServerSession>) {
    let (address, accepted, _) = start_with_offers(artifact).await;
    (address, accepted)
}

type Accepted = (String, mpsc::UnboundedReceiver<ServerSession>, mpsc::UnboundedReceiver<RowsOffer>);

/// The same, with the rows that it is offered.
async fn start_with_offers(artifact: (String, PathBuf)) -> Accepted {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sessions, accepted) = mpsc::unbounded_channel();
    let (offers, offered) = mpsc::unbounded_channel();
    flott_env::spawn(async move { serve(listener, Host { offers, sessions, artifact }).await });
    (address, accepted, offered)
}

fn registration() -> Up {
    Up::RegisterTaskManager(TaskManagerInfo {
        id: TaskManagerId("tm".into()),
        host: "localhost".into(),
        pid: 1,
        slots: 1,
        platform: "x86_64-linux".into(),
        protocol_version: 1,
    })
}

#[tokio::test]
async fn a_session_keeps_its_order_and_tells_both_ends_when_it_is_over() {
    let (address, mut accepted) = start((String::new(), PathBuf::new())).await;
    let mut session = client::connect(&address, registration()).await.unwrap();
    let mut server = accepted.recv().await.unwrap();
    assert_eq!(server.up.recv().await, Some(registration()));

    for heartbeat_interval_ms in 0..100 {
        server.down.send(Down::Registered { heartbeat_interval_ms }).await.unwrap();
        session.up.send(Up::Heartbeat { execution: None, metrics: vec![] }).await.unwrap();
    }
    for heartbeat_interval_ms in 0..100 {
        assert_eq!(session.down.recv().await, Some(Down::Registered { heartbeat_interval_ms }));
        assert_eq!(server.up.recv().await, Some(Up::Heartbeat { execution: None, metrics: vec![] }));
    }

    server.down.send(Down::Refused(Error::input("last words"))).await.unwrap();
    drop(server);
    assert_eq!(session.down.recv().await, Some(Down::Refused(Error::input("last words"))));
    assert_eq!(session.down.recv().await, None);
}

#[tokio::test]
async fn questions_and_answers_pass_between_a_sink_and_whoever_asks() {
    let (address, _accepted, mut offered) = start_with_offers((String::new(), PathBuf::new())).await;
    let execution = ExecutionId { job: JobId([7; 16]), generation: 3 };
    let mut sink = client::offer_rows(&address, execution).await.unwrap();
    let mut offer = offered.recv().await.unwrap();
    assert_eq!(offer.execution, execution);
    for number in 1..10 {
        let question = RowsMessage { number, content: vec![number as u8] };
        offer.questions.send(question.clone()).await.unwrap();
        assert_eq!(sink.questions.recv().await, Some(question));
        let answer = RowsMessage { number, content: vec![0; 3 << 20] };
        sink.answers.send(answer.clone()).await.unwrap();
        assert_eq!(offer.answers.recv().await, Some(answer));
    }
    drop(sink);
    let end = tokio::time::timeout(Duration::from_secs(10), offer.answers.recv()).await;
    assert_eq!(end.expect("the offer should end"), None);

    let mut sink = client::offer_rows(&address, execution).await.unwrap();
    drop(offered.recv().await.unwrap());
    let end = tokio::time::timeout(Duration::from_secs(10), sink.questions.recv()).await;
    assert_eq!(end.expect("the sink should hear that nobody asks"), None);
}

#[tokio::test]
async fn the_server_notices_that_a_client_is_gone() {
    let (address, mut accepted) = start((String::new(), PathBuf::new())).await;
    let session = client::connect(&address, registration()).await.unwrap();
    let mut server = accepted.recv().await.unwrap();
    assert_eq!(server.up.recv().await, Some(registration()));
    drop(session);
    let end = tokio::time::timeout(Duration::from_secs(10), server.up.recv()).await;
    assert_eq!(end.expect("the session should end"), None);
}

#[tokio::test]
async fn an_address_without_a_job_manager_is_an_error_that_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = client::connect(&address, registration()).await.unwrap_err().to_string();
    assert!(error.contains(&format!("cannot reach the JobManager at {address}")), "{error}");
    assert!(error.contains("jobmanager.rpc.port"), "{error}");
}

#[tokio::test]
async fn a_binary_arrives_verified_and_executable_or_not_at_all() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..1_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let stored = dir.path().join("stored");
    std::fs::write(&stored, &content).unwrap();
    let sha256 = to_hex(&Sha256::digest(&content));
    let (address, _accepted) = start((sha256.clone(), stored.clone())).await;

    let target = dir.path().join("cache/job");
    client::fetch_artifact(&address, &sha256, &target).await.unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), content);
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);

    let missing = client::fetch_artifact(&address, &"0".repeat(64), &dir.path().join("cache/missing")).await;
    assert!(missing.unwrap_err().to_string().contains("there is no job binary"));

    std::fs::write(&stored, &content[1..]).unwrap();
    let damaged = client::fetch_artifact(&address, &sha256, &dir.path().join("cache/damaged")).await;
    assert!(damaged.unwrap_err().to_string().contains("arrived damaged"));
    let left: Vec<_> = std::fs::read_dir(dir.path().join("cache")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the good one: {left:?}");
}
