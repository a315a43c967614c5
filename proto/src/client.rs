//! What a TaskManager or worker calls: open a session, fetch a job's binary.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flott_control::{Down, ExecutionId, Up};
use flott_core::{Error, Result, ResultExt};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use crate::artifact::{ARTIFACT_BYTES_MAX, check_sha256, to_hex};
use crate::convert::check_size;
use crate::rows::{self, RowsOffer, RowsSession};
use crate::session::{ServerSession, Session};
use crate::wire::control_client::ControlClient;
use crate::{MESSAGE_BYTES_MAX, wire};

/// How long the JobManager may take to accept a connection, or to begin an answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the next part of a binary may take.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a session to the JobManager at `address` (`host:port`), whose first message is `first`. Fails
/// if nothing answers there; whoever calls it decides whether and how often to try again.
pub async fn connect(address: &str, first: Up) -> Result<Session> {
    let mut client = open(address).await?;
    let (session, ServerSession { up, down }) = Session::pair();
    session.up.send(first).await.map_err(|_| Error::system("the session closed before its first message"))?;
    let outbound = ReceiverStream::new(up).map_while(encode);
    let response = answer(address, client.session(outbound)).await?;
    let inbound = response.into_inner();
    flott_env::spawn(async move {
        receive(inbound, down).await;
        // The connection ends with its last client.
        drop(client);
    });
    Ok(session)
}

/// Offers the rows of a query to whoever asks the JobManager at `address` for them. Fails if nothing answers there; whoever
/// calls it decides whether and how often to try again.
pub async fn offer_rows(address: &str, execution: ExecutionId) -> Result<RowsSession> {
    let mut client = open(address).await?;
    let (session, RowsOffer { questions, answers, .. }) = rows::pair(execution);
    let response = answer(address, client.offer_rows(rows::outbound(execution, answers))).await?;
    let inbound = response.into_inner();
    flott_env::spawn(async move {
        rows::receive_questions(inbound, questions).await;
        // The connection ends with its last client.
        drop(client);
    });
    Ok(session)
}

/// Fetches the job binary with this SHA-256 into the file `to`, executable. The file appears whole and
/// verified or not at all.
pub async fn fetch_artifact(address: &str, sha256: &str, to: &Path) -> Result<()> {
    check_sha256(sha256)?;
    let mut client = open(address).await?;
    let request = wire::FetchArtifactRequest { sha256: sha256.to_owned() };
    let response = answer(address, client.fetch_artifact(request)).await?;
    let temporary = temporary_name(to);
    let result = match download(response.into_inner(), sha256, &temporary).await {
        Ok(()) => tokio::fs::rename(&temporary, to).await.with_context(|| format!("renaming to {}", to.display())),
        Err(error) => Err(error),
    };
    if result.is_err() {
        // Best effort: the error to report is the one at hand.
        let _ = tokio::fs::remove_file(&temporary).await;
    }
    result.with_context(|| format!("fetching job binary {sha256} from the JobManager at {address}"))
}

async fn open(address: &str) -> Result<ControlClient<Channel>> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|_| Error::input(format!("'{address}' is not the address of a JobManager: expected host:port")))?
        .connect_timeout(CONNECT_TIMEOUT);
    let channel = match tokio::time::timeout(CONNECT_TIMEOUT, endpoint.connect()).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => return Err(unreachable(address, &causes(&error))),
        Err(_) => return Err(unreachable(address, &format!("no answer in {CONNECT_TIMEOUT:?}"))),
    };
    Ok(ControlClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX))
}

async fn answer<T>(address: &str, call: impl Future<Output = Result<T, Status>>) -> Result<T> {
    match tokio::time::timeout(CONNECT_TIMEOUT, call).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(status)) => Err(Error::system(format!("the JobManager at {address} answered: {}", describe(&status)))),
        Err(_) => Err(unreachable(address, &format!("no answer in {CONNECT_TIMEOUT:?}"))),
    }
}

fn unreachable(address: &str, reason: &str) -> Error {
    Error::system(format!(
        "cannot reach the JobManager at {address}: {reason}; is it running there? (jobmanager.rpc.address, jobmanager.rpc.port)"
    ))
}

/// The innermost cause says what happened; the outer layers only that something did.
fn causes(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn describe(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}

/// The message for the wire; `None` ends the session.
fn encode(up: Up) -> Option<wire::UpMessage> {
    let acknowledged = match &up {
        Up::CheckpointAcknowledged { execution, subtask, checkpoint, .. } => Some((*execution, *subtask, *checkpoint)),
        _ => None,
    };
    let encoded = wire::UpMessage::try_from(up).and_then(|message| {
        check_size(&message, "to the JobManager")?;
        Ok(message)
    });
    match (encoded, acknowledged) {
        (Ok(message), _) => Some(message),
        // A checkpoint with too much operator state is the job's problem, not the connection's.
        (Err(reason), Some((execution, subtask, checkpoint))) => {
            wire::UpMessage::try_from(Up::CheckpointDeclined { execution, subtask, checkpoint, reason }).ok()
        }
        (Err(error), None) => {
            tracing::error!(%error, "session to the JobManager ends");
            None
        }
    }
}

async fn receive(mut inbound: Streaming<wire::DownMessage>, down: mpsc::Sender<Down>) {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = down.closed() => return,
        };
        let message = match message {
            Ok(Some(message)) => Down::try_from(message),
            Ok(None) => return,
            Err(status) => {
                tracing::debug!(status = describe(&status), "session to the JobManager lost");
                return;
            }
        };
        match message {
            Ok(message) => {
                if down.send(message).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(%error, "session to the JobManager ends");
                return;
            }
        }
    }
}

/// Beside the target, so that renaming it is atomic, and unlike any other download's.
fn temporary_name(to: &Path) -> PathBuf {
    let name = to.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    to.with_file_name(format!(".{name}.{:016x}.tmp", flott_env::random_u64()))
}

async fn download(mut chunks: Streaming<wire::ArtifactChunk>, sha256: &str, to: &Path) -> Result<()> {
    let place = || format!("writing {}", to.display());
    if let Some(parent) = to.parent() {
        tokio::fs::create_dir_all(parent).await.with_context(|| format!("creating {}", parent.display()))?;
    }
    let mut file = File::create(to).await.with_context(place)?;
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    loop {
        let chunk = tokio::time::timeout(CHUNK_TIMEOUT, chunks.message())
            .await
            .map_err(|_| Error::system(format!("nothing came for {CHUNK_TIMEOUT:?}")))?
            .map_err(|status| Error::system(describe(&status)))?;
        let Some(wire::ArtifactChunk { data }) = chunk else { break };
        bytes += data.len() as u64;
        if bytes > ARTIFACT_BYTES_MAX {
            return Err(Error::system(format!("it is larger than {ARTIFACT_BYTES_MAX} bytes")));
        }
        hasher.update(&data);
        file.write_all(&data).await.with_context(place)?;
    }
    let actual = to_hex(&hasher.finalize());
    if actual != sha256 {
        return Err(Error::system(format!("it arrived damaged: {bytes} bytes with SHA-256 {actual}")));
    }
    file.flush().await.with_context(place)?;
    file.set_permissions(Permissions::from_mode(0o755)).await.with_context(place)?;
    file.sync_all().await.with_context(place)
}
