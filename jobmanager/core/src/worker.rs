//! A worker process, as an execution sees it.

use flott_control::ExecutionId;
use flott_core::ids::TaskManagerId;

use crate::api::SessionId;

/// A worker process.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    /// Its TaskManager.
    pub(crate) task_manager: TaskManagerId,
    /// What it was started for: the name that its TaskManager knows it by, whatever it executes since.
    pub(crate) started_for: ExecutionId,
    /// Its session. A worker of the execution before brings it along, a new one has it once it has registered.
    pub(crate) session: Option<SessionId>,
    /// Where it receives data.
    pub(crate) data_address: String,
    /// Whether it has registered for this execution.
    pub(crate) is_registered: bool,
    /// Whether a subtask of it failed.
    pub(crate) has_failed: bool,
    /// Whether its session was lost. How the process ended, if it did, is for its TaskManager to say.
    pub(crate) is_lost: bool,
    /// Whether it has ended, or its TaskManager has.
    pub(crate) is_gone: bool,
    /// Whether it goes on when this execution has failed.
    pub(crate) is_kept: bool,
}

impl Worker {
    /// One that is to be started.
    pub(crate) fn new(task_manager: TaskManagerId, started_for: ExecutionId) -> Self {
        Self {
            task_manager,
            started_for,
            session: None,
            data_address: String::new(),
            is_registered: false,
            has_failed: false,
            is_lost: false,
            is_gone: false,
            is_kept: false,
        }
    }

    /// The same process for the next execution.
    pub(crate) fn continued(self) -> Self {
        Self { session: self.session, ..Self::new(self.task_manager, self.started_for) }
    }

    /// Whether messages reach it.
    pub(crate) fn is_reachable(&self) -> bool {
        !self.is_lost && !self.is_gone
    }
}
