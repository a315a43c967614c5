//! What goes wrong, and what clients ask for at any time.

use std::collections::BTreeMap;

use flott_jobmanager_core::{Parallelism, Request, SessionId};

use super::processes::ProcessId;
use super::{Occurrence, World};
use crate::scenario::{Fault, job_id};

impl World {
    pub(super) fn inject(&mut self, fault: Fault) {
        self.trace.line(self.now_ms, format_args!("fault {fault:?}"));
        let lines: Vec<usize> = (0..self.lines.len()).collect();
        let line = self.random.pick(&lines).unwrap_or(0);
        let job = self.oracle.last_of(line).map_or(job_id(line, 1), |(job, _)| job);
        match fault {
            Fault::JobManager => self.kill_job_manager(),
            Fault::Connection => {
                if let Some(session) = self.pick_session() {
                    self.break_link(session);
                }
            }
            Fault::Silence => {
                let session = self.pick_session();
                if let Some(link) = session.and_then(|session| self.links.get_mut(&session)) {
                    link.is_mute = true;
                }
            }
            Fault::DataConnection => self.break_data_connection(),
            Fault::Pause => self.pause(),
            Fault::NewTaskManager => self.after(0, 0, Occurrence::StartTaskManager),
            Fault::TaskManager | Fault::Worker | Fault::Task => self.inject_into_process(fault),
            Fault::Savepoint | Fault::Stop => {
                let (stop, suffix) = (fault == Fault::Stop, self.savepoint_suffix());
                let drain = stop && self.random.chance(50);
                self.request(Request::Savepoint { job, target: None, stop, drain, suffix });
            }
            Fault::Upgrade => self.begin_upgrade(line),
            Fault::Client => self.kill_client(),
            Fault::Checkpoint => self.request(Request::Checkpoint { job }),
            Fault::Cancel => self.request(Request::Cancel { job }),
            Fault::Rescale => {
                let parallelism = self.draw_parallelism();
                self.request(Request::Rescale { job, parallelism });
            }
        }
    }

    /// Tells savepoints of one job apart.
    pub(super) fn savepoint_suffix(&mut self) -> String {
        self.savepoints += 1;
        self.savepoints.to_string()
    }

    fn pick_session(&mut self) -> Option<SessionId> {
        let sessions: Vec<SessionId> = self.links.keys().copied().collect();
        self.random.pick(&sessions)
    }

    /// The JobManager or another process stands still for so long, or so short, that it may be taken for dead or not.
    fn pause(&mut self) {
        let most_ms = if self.random.chance(20) { 8_000 } else { 2_000 };
        let until_ms = self.now_ms + self.random.between(50, most_ms);
        let processes: Vec<ProcessId> = self.processes.keys().copied().collect();
        if self.random.chance(30) {
            self.leader_resumes_ms = until_ms;
        } else if let Some(process) = self.random.pick(&processes) {
            self.paused.insert(process, until_ms);
        }
    }

    /// What a client may ask for. Some of it is impossible, or more than there are slots.
    fn draw_parallelism(&mut self) -> Parallelism {
        let slots = self.slots();
        let key_groups = self.scenario.max_parallelism;
        let mut number = |most: u32| self.random.between(1, i64::from(most.max(1))) as u32;
        let some = number(slots.min(key_groups).min(8));
        match number(10) {
            1 => Parallelism::All(0),
            2 => Parallelism::All(key_groups + number(3)),
            3 => Parallelism::All((slots + number(2)).min(key_groups)),
            4 => Parallelism::Vertices(BTreeMap::from([(number(3) - 1, number(4) - 1)])),
            5 | 6 => Parallelism::Vertices(BTreeMap::from([(number(2) - 1, some)])),
            _ => Parallelism::All(some),
        }
    }
}
