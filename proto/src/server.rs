//! What a JobManager serves: sessions and job binaries.

use std::path::PathBuf;
use std::pin::Pin;

use flott_control::Up;
use flott_core::{Error, Result};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::artifact::check_sha256;
use crate::convert::check_size;
use crate::rows::{self, RowsMessage, RowsOffer};
use crate::session::{ServerSession, Session};
use crate::wire::control_server::{Control, ControlServer};
use crate::{MESSAGE_BYTES_MAX, wire};

/// How many bytes of a binary are sent at a time, and how many such parts may wait.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS_QUEUED: usize = 2;

/// The JobManager behind the server.
pub trait Acceptor: Send + Sync + 'static {
    /// Takes a new session. Must not block.
    fn accept(&self, session: ServerSession);

    /// Takes the rows of a query that a sink offers. Must not block.
    fn offer(&self, offer: RowsOffer);

    /// The file of the job binary with this SHA-256, which has been checked to be one; `None` if there is none.
    fn artifact(&self, sha256: &str) -> Option<PathBuf>;
}

/// Serves until its future is dropped. Sessions end when their [`ServerSession`] is dropped, not before.
pub async fn serve(listener: TcpListener, acceptor: impl Acceptor) -> Result<()> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = ControlServer::new(Service { acceptor }).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let served = Server::builder().serve_with_incoming(service, incoming).await;
    served.map_err(|error| Error::system(format!("the server of the JobManager's RPC port ended: {error}")))
}

struct Service<A> {
    acceptor: A,
}

#[tonic::async_trait]
impl<A: Acceptor> Control for Service<A> {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<wire::DownMessage, Status>> + Send>>;
    type OfferRowsStream = Pin<Box<dyn Stream<Item = Result<wire::RowsQuestion, Status>> + Send>>;
    type FetchArtifactStream = ReceiverStream<Result<wire::ArtifactChunk, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<wire::UpMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (Session { up, down }, session) = Session::pair();
        flott_env::spawn(receive(request.into_inner(), up));
        self.acceptor.accept(session);
        let outbound = ReceiverStream::new(down).map(|down| {
            let message = wire::DownMessage::try_from(down).and_then(|message| {
                check_size(&message, "from the JobManager")?;
                Ok(message)
            });
            // An error ends the stream: what follows a lost message would be a lie.
            message.map_err(|error| Status::internal(error.to_string()))
        });
        Ok(Response::new(Box::pin(outbound)))
    }

    async fn offer_rows(
        &self,
        request: Request<Streaming<wire::RowsUp>>,
    ) -> Result<Response<Self::OfferRowsStream>, Status> {
        let (offer, questions) = rows::accept(request.into_inner()).await?;
        self.acceptor.offer(offer);
        let outbound = ReceiverStream::new(questions)
            .map(|RowsMessage { number, content }| Ok(wire::RowsQuestion { number, content }));
        Ok(Response::new(Box::pin(outbound)))
    }

    async fn fetch_artifact(
        &self,
        request: Request<wire::FetchArtifactRequest>,
    ) -> Result<Response<Self::FetchArtifactStream>, Status> {
        let sha256 = request.into_inner().sha256;
        check_sha256(&sha256).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let path = self
            .acceptor
            .artifact(&sha256)
            .ok_or_else(|| Status::not_found(format!("there is no job binary with SHA-256 {sha256}")))?;
        let file = File::open(&path)
            .await
            .map_err(|error| Status::internal(format!("reading {}: {error}", path.display())))?;
        let (chunks, stream) = mpsc::channel(CHUNKS_QUEUED);
        flott_env::spawn(send_file(file, chunks));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

async fn receive(mut inbound: Streaming<wire::UpMessage>, up: mpsc::Sender<Up>) {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = up.closed() => return,
        };
        let message = match message {
            Ok(Some(message)) => Up::try_from(message),
            Ok(None) => return,
            Err(status) => {
                tracing::debug!(reason = status.message(), "session lost");
                return;
            }
        };
        match message {
            Ok(message) => {
                if up.send(message).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "session closed");
                return;
            }
        }
    }
}

async fn send_file(mut file: File, chunks: mpsc::Sender<Result<wire::ArtifactChunk, Status>>) {
    loop {
        let mut data = vec![0; CHUNK_BYTES];
        let chunk = match file.read(&mut data).await {
            Ok(0) => return,
            Ok(bytes) => {
                data.truncate(bytes);
                Ok(wire::ArtifactChunk { data })
            }
            Err(error) => Err(Status::internal(format!("reading the job binary: {error}"))),
        };
        let is_end = chunk.is_err();
        if chunks.send(chunk).await.is_err() || is_end {
            return;
        }
    }
}
