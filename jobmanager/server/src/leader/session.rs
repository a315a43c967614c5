//! The leader's end of a session.

use std::time::Duration;

use flott_control::{Down, Up};
use flott_core::{Error, Result};
use flott_jobmanager_core::{Event, SessionId};
use flott_proto::ServerSession;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::AbortHandle;

use super::client::Input;

/// How long a process may take to say who it is.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(10);

/// A session; dropping it closes it after what was sent.
pub(super) struct Connection {
    down: mpsc::Sender<Down>,
    forwarder: AbortHandle,
}

impl Connection {
    /// Forwards what the process says to the leader, and then that it is gone.
    pub(super) fn open(id: SessionId, session: ServerSession, inputs: mpsc::Sender<Input>) -> Self {
        let ServerSession { up, down } = session;
        let forwarder = flott_env::spawn(async move {
            forward(id, up, &inputs).await;
            // A leader that is gone needs no news.
            let _ = inputs.send(Input::Event(Event::SessionClosed { session: id })).await;
        });
        Self { down, forwarder: forwarder.abort_handle() }
    }

    /// Queues a message. A process that is gone is not an error: its end is on its way. One that does
    /// not keep up is, since the leader waits for nobody.
    pub(super) fn send(&self, message: Down) -> Result<()> {
        match self.down.try_send(message) {
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Error::system("the process does not take its messages")),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.forwarder.abort();
    }
}

async fn forward(session: SessionId, mut up: mpsc::Receiver<Up>, inputs: &mpsc::Sender<Input>) {
    let Ok(mut next) = tokio::time::timeout(REGISTRATION_TIMEOUT, up.recv()).await else {
        tracing::warn!(session, "session closed: the process did not register in {REGISTRATION_TIMEOUT:?}");
        return;
    };
    while let Some(message) = next {
        if inputs.send(Input::Event(Event::Message { session, message })).await.is_err() {
            return;
        }
        next = up.recv().await;
    }
}
