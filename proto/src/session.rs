//! The two ends of a session, independent of what carries it.

use flott_control::{Down, Up};
use tokio::sync::mpsc;

/// How many messages may wait in each direction. A receiver that is further behind is taken for dead by the JobManager.
const QUEUE_MESSAGES: usize = 1024;

/// The end of a TaskManager or worker. Dropping it, or `up` alone, ends the session.
#[derive(Debug)]
pub struct Session {
    /// To the JobManager. A send that fails means that the session is over.
    pub up: mpsc::Sender<Up>,
    /// From the JobManager. `None` means that the session is over.
    pub down: mpsc::Receiver<Down>,
}

/// The end of the JobManager. Dropping it ends the session.
#[derive(Debug)]
pub struct ServerSession {
    /// From the process. `None` means that it is gone.
    pub up: mpsc::Receiver<Up>,
    /// To the process. Messages that were sent before it is dropped still arrive.
    pub down: mpsc::Sender<Down>,
}

impl Session {
    /// Both ends of a session within one process. The first message is up to the caller, unlike with
    /// [`crate::client::connect`].
    pub fn pair() -> (Session, ServerSession) {
        let (up, up_receiver) = mpsc::channel(QUEUE_MESSAGES);
        let (down, down_receiver) = mpsc::channel(QUEUE_MESSAGES);
        (Session { up, down: down_receiver }, ServerSession { up: up_receiver, down })
    }
}
