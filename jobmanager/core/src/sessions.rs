//! Who is connected, and who has been silent for too long.

use std::collections::BTreeMap;

use flott_control::ExecutionId;
use flott_core::ids::TaskManagerId;

use crate::api::SessionId;

/// Who is at the other end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A TaskManager.
    TaskManager(TaskManagerId),
    /// A worker that a TaskManager started.
    Worker {
        /// What it executes.
        execution: ExecutionId,
        /// Its TaskManager.
        task_manager: TaskManagerId,
    },
}

impl Peer {
    /// Whether it can be the same worker, kept for a later execution of its job.
    pub(crate) fn may_become(&self, next: ExecutionId, task_manager: &TaskManagerId) -> bool {
        match self {
            Self::TaskManager(_) => false,
            Self::Worker { execution, task_manager: own } => {
                execution.job == next.job && execution.generation < next.generation && own == task_manager
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Session {
    peer: Peer,
    heard_ms: i64,
}

/// The sessions whose process has registered.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    sessions: BTreeMap<SessionId, Session>,
    interval_ms: i64,
    timeout_ms: i64,
    next_heartbeat_ms: i64,
}

impl Sessions {
    /// No sessions. A heartbeat goes to each every `interval_ms`; one is given up when it is silent for `timeout_ms`.
    pub(crate) fn new(interval_ms: i64, timeout_ms: i64) -> Self {
        Self { sessions: BTreeMap::new(), interval_ms, timeout_ms, next_heartbeat_ms: i64::MIN }
    }

    /// How often processes tell each other that they live.
    pub(crate) fn interval_ms(&self) -> i64 {
        self.interval_ms
    }

    /// A process registered.
    pub(crate) fn open(&mut self, now_ms: i64, id: SessionId, peer: Peer) {
        if self.sessions.is_empty() {
            self.next_heartbeat_ms = now_ms + self.interval_ms;
        }
        self.sessions.insert(id, Session { peer, heard_ms: now_ms });
    }

    /// Forgets a session.
    pub(crate) fn close(&mut self, id: SessionId) -> Option<Peer> {
        self.sessions.remove(&id).map(|session| session.peer)
    }

    /// Whose session it is, if it registered.
    pub(crate) fn peer(&self, id: SessionId) -> Option<&Peer> {
        self.sessions.get(&id).map(|session| &session.peer)
    }

    /// A message came.
    pub(crate) fn heard(&mut self, now_ms: i64, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.heard_ms = now_ms;
        }
    }

    /// When the last message came.
    pub(crate) fn heard_ms(&self, id: SessionId) -> Option<i64> {
        self.sessions.get(&id).map(|session| session.heard_ms)
    }

    /// No event came for `pause_ms`. When that is so long that the JobManager itself was stopped, the silence is
    /// its own: what the others sent meanwhile is still to be read.
    pub(crate) fn forgive(&mut self, pause_ms: i64) {
        if pause_ms > self.timeout_ms / 2 {
            for session in self.sessions.values_mut() {
                session.heard_ms = session.heard_ms.saturating_add(pause_ms);
            }
        }
    }

    /// The sessions that were silent for too long.
    pub(crate) fn silent(&self, now_ms: i64) -> Vec<SessionId> {
        let silent = |session: &Session| now_ms - session.heard_ms >= self.timeout_ms;
        self.sessions.iter().filter(|(_, session)| silent(session)).map(|(&id, _)| id).collect()
    }

    /// The sessions to send a heartbeat to, if it is time.
    pub(crate) fn due_heartbeats(&mut self, now_ms: i64) -> Vec<SessionId> {
        if self.sessions.is_empty() || now_ms < self.next_heartbeat_ms {
            return Vec::new();
        }
        self.next_heartbeat_ms = now_ms + self.interval_ms;
        self.sessions.keys().copied().collect()
    }

    /// When to look again.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        let earliest = self.sessions.values().map(|session| session.heard_ms).min()?;
        Some(self.next_heartbeat_ms.min(earliest + self.timeout_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_heartbeats_have_their_times() {
        let mut sessions = Sessions::new(500, 2000);
        assert_eq!(sessions.next_deadline(), None);
        sessions.open(0, 1, Peer::TaskManager(TaskManagerId("a".into())));
        sessions.open(100, 2, Peer::TaskManager(TaskManagerId("b".into())));
        assert_eq!(sessions.next_deadline(), Some(500));
        assert!(sessions.due_heartbeats(499).is_empty());
        assert_eq!(sessions.due_heartbeats(500), [1, 2]);
        sessions.heard(1500, 2);
        assert!(sessions.silent(1999).is_empty());
        assert_eq!(sessions.silent(2000), [1]);
        sessions.forgive(1001);
        assert!(sessions.silent(2999).is_empty(), "the JobManager had stopped, not they");
        assert_eq!(sessions.silent(3001), [1]);
        sessions.close(1);
        assert!(sessions.silent(3001).is_empty());
    }
}
