//! How the rest of the process talks to the leader.

use flott_core::ids::JobId;
use flott_core::{Error, Result};
use flott_jobmanager_core::{Cluster, Event, Reply, Request};
use flott_proto::{ServerSession, Session};
use tokio::sync::{mpsc, oneshot, watch};

/// How many inputs may wait for the leader. Whoever sends more waits.
pub(super) const INPUTS_QUEUED: usize = 1024;

/// What the leader listens to.
pub(super) enum Input {
    /// An event for the machines.
    Event(Event),
    /// A new session.
    Open(ServerSession),
    /// A client's request.
    Request {
        /// What it asks for.
        request: Request,
        /// Where the answer goes.
        reply: oneshot::Sender<Result<Reply>>,
    },
    /// Someone wants to look.
    View(Box<dyn FnOnce(&Cluster) + Send>),
    /// Someone waits for the end of a job.
    Wait {
        /// The job.
        job: JobId,
        /// Told when it has ended; dropped if there is no such job.
        ended: oneshot::Sender<()>,
    },
    /// The process ends.
    Shutdown,
}

/// A handle on the leader.
#[derive(Clone)]
pub(crate) struct LeaderClient {
    inputs: mpsc::Sender<Input>,
    ended: watch::Receiver<Option<Result<()>>>,
}

impl LeaderClient {
    pub(super) fn new(inputs: mpsc::Sender<Input>, ended: watch::Receiver<Option<Result<()>>>) -> Self {
        Self { inputs, ended }
    }

    /// Asks for something and waits for the answer, which can take as long as a savepoint does.
    pub(crate) async fn request(&self, request: Request) -> Result<Reply> {
        let (reply, answer) = oneshot::channel();
        self.send(Input::Request { request, reply }).await?;
        answer.await.map_err(|_| self.gone())?
    }

    /// Looks at the cluster between two of its steps.
    pub(crate) async fn view<T: Send + 'static>(&self, look: impl FnOnce(&Cluster) -> T + Send + 'static) -> Result<T> {
        let (sender, seen) = oneshot::channel();
        let look = move |cluster: &Cluster| {
            // Whoever asked may be gone.
            let _ = sender.send(look(cluster));
        };
        self.send(Input::View(Box::new(look))).await?;
        seen.await.map_err(|_| self.gone())
    }

    /// Waits for the end of a job. Fails if there is none with this id.
    pub(crate) async fn wait(&self, job: JobId) -> Result<()> {
        let (sender, ended) = oneshot::channel();
        self.send(Input::Wait { job, ended: sender }).await?;
        ended.await.map_err(|_| {
            let is_alive = self.ended.borrow().is_none();
            if is_alive { Error::input(format!("there is no job {job}")) } else { self.gone() }
        })
    }

    /// Hands over a new session. One that comes when the leader is overrun, or gone, is dropped, which tells the process.
    pub(crate) fn accept(&self, session: ServerSession) {
        if self.inputs.try_send(Input::Open(session)).is_err() {
            tracing::warn!("a session was refused: the JobManager is too busy");
        }
    }

    /// A session within this process.
    pub(crate) async fn connect(&self) -> Session {
        let (session, server) = Session::pair();
        // If the leader is gone, the session is over before it began, and shows that.
        let _ = self.inputs.send(Input::Open(server)).await;
        session
    }

    /// Asks the leader to end; `ended` tells when it has.
    pub(crate) async fn shutdown(&self) {
        // A leader that is gone has ended.
        let _ = self.inputs.send(Input::Shutdown).await;
    }

    /// Like `shutdown`, where nothing can be awaited.
    pub(crate) fn shutdown_soon(&self) {
        let _ = self.inputs.try_send(Input::Shutdown);
    }

    /// Waits until the leader has ended; its error if it did not end on request.
    pub(crate) async fn ended(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            Err(_) => Err(Error::system("the JobManager's leader panicked")),
        }
    }

    async fn send(&self, input: Input) -> Result<()> {
        self.inputs.send(input).await.map_err(|_| self.gone())
    }

    fn gone(&self) -> Error {
        match &*self.ended.borrow() {
            Some(Err(error)) => error.clone().context("the JobManager has ended"),
            _ => Error::system("the JobManager has ended"),
        }
    }
}
