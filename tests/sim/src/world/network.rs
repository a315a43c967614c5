//! Sessions between processes and the JobManager. In each direction nothing overtakes.

use flott_control::{Down, Up};
use flott_jobmanager_core::SessionId;

use super::processes::ProcessId;
use super::{Occurrence, World};

/// A connection as the JobManager sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) process: ProcessId,
    up_last_ms: i64,
    down_last_ms: i64,
    pub(super) is_mute: bool,
}

impl World {
    /// A process connects.
    pub(super) fn open_link(&mut self, process: ProcessId) -> SessionId {
        self.sessions += 1;
        let link = Link { process, up_last_ms: self.now_ms, down_last_ms: self.now_ms, is_mute: false };
        self.links.insert(self.sessions, link);
        self.sessions
    }

    pub(super) fn send_down(&mut self, session: SessionId, message: Down) {
        let delay_ms = self.random.between(1, 8);
        let Some(link) = self.links.get_mut(&session) else { return };
        let at_ms = link.down_last_ms.max(self.now_ms + delay_ms);
        link.down_last_ms = at_ms;
        let process = link.process;
        self.at(at_ms, Occurrence::Down { process, session, message });
    }

    pub(super) fn send_up(&mut self, session: SessionId, message: Up) {
        let delay_ms = self.random.between(1, 8);
        let Some(link) = self.links.get_mut(&session).filter(|link| !link.is_mute) else { return };
        let at_ms = link.up_last_ms.max(self.now_ms + delay_ms);
        link.up_last_ms = at_ms;
        self.at(at_ms, Occurrence::Up { session, message });
    }

    /// The JobManager is to see a connection end, after all that was sent over it.
    pub(super) fn close_up(&mut self, session: SessionId) {
        let delay_ms = self.random.between(1, 8);
        if let Some(link) = self.links.get(&session) {
            let at_ms = link.up_last_ms.max(self.now_ms + delay_ms);
            self.at(at_ms, Occurrence::UpClosed { session });
        }
    }

    /// The JobManager ends a session, after what it has sent over it.
    pub(super) fn close_down(&mut self, session: SessionId) {
        let delay_ms = self.random.between(1, 8);
        if let Some(link) = self.links.remove(&session) {
            let at_ms = link.down_last_ms.max(self.now_ms + delay_ms);
            self.at(at_ms, Occurrence::DownClosed { process: link.process, session });
        }
    }

    /// The JobManager is dead: everybody sees their session end.
    pub(super) fn close_all(&mut self) {
        for (session, link) in std::mem::take(&mut self.links) {
            self.after(1, 50, Occurrence::DownClosed { process: link.process, session });
        }
    }

    /// A session breaks, which both sides see. What was sent to the JobManager arrives.
    pub(super) fn break_link(&mut self, session: SessionId) {
        self.close_up(session);
        if let Some(Link { process, .. }) = self.links.get(&session).copied() {
            self.after(1, 50, Occurrence::DownClosed { process, session });
        }
    }
}
