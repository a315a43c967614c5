//! The TaskManagers and which job holds which of their slots.

use std::collections::BTreeMap;

use flott_control::{PROTOCOL_VERSION, TaskManagerInfo};
use flott_core::ids::{JobId, TaskManagerId};
use flott_core::{Error, Result};

use crate::api::SessionId;
use crate::scheduler::Offer;

/// The kind of machine that this JobManager was built for, such as `x86_64-linux`: one job binary has to
/// run on all machines of a cluster, so every TaskManager must be of the same.
pub fn platform() -> String {
    format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

#[derive(Clone, Debug)]
struct TaskManager {
    info: TaskManagerInfo,
    session: SessionId,
    held: BTreeMap<JobId, u32>,
}

impl TaskManager {
    fn free(&self) -> u32 {
        self.info.slots.saturating_sub(self.held.values().sum())
    }
}

/// The registered TaskManagers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    task_managers: BTreeMap<TaskManagerId, TaskManager>,
}

impl Resources {
    /// Refuses a TaskManager that could not work with this JobManager.
    pub(crate) fn check(info: &TaskManagerInfo) -> Result<()> {
        if info.protocol_version != PROTOCOL_VERSION {
            return Err(Error::input(format!(
                "TaskManager {} speaks protocol version {}, the JobManager {PROTOCOL_VERSION}: run the same build of Flott everywhere",
                info.id, info.protocol_version
            )));
        }
        if info.platform != platform() {
            return Err(Error::input(format!(
                "TaskManager {} runs on {}, the JobManager on {}: all machines of a cluster must be alike, since they run the same job binaries",
                info.id,
                info.platform,
                platform()
            )));
        }
        Ok(())
    }

    /// Adds a TaskManager. One with the same id has to be removed before.
    pub(crate) fn register(&mut self, session: SessionId, info: TaskManagerInfo) {
        self.task_managers.insert(info.id.clone(), TaskManager { info, session, held: BTreeMap::new() });
    }

    /// A TaskManager is gone, and all its slots with it.
    pub(crate) fn remove(&mut self, id: &TaskManagerId) {
        self.task_managers.remove(id);
    }

    /// The session of a TaskManager, if it is connected.
    pub(crate) fn session(&self, id: &TaskManagerId) -> Option<SessionId> {
        self.task_managers.get(id).map(|task_manager| task_manager.session)
    }

    /// What a job could use: what it holds, and what no job does.
    pub(crate) fn offers(&self, job: JobId) -> Vec<Offer> {
        let offer = |(id, task_manager): (&TaskManagerId, &TaskManager)| Offer {
            task_manager: id.clone(),
            held: task_manager.held.get(&job).copied().unwrap_or(0),
            free: task_manager.free(),
            total: task_manager.info.slots,
        };
        self.task_managers.iter().map(offer).collect()
    }

    /// A job holds at least these slots from now on, one for each entry.
    pub(crate) fn reserve(&mut self, job: JobId, slots: &[TaskManagerId]) {
        let mut wanted: BTreeMap<&TaskManagerId, u32> = BTreeMap::new();
        for id in slots {
            *wanted.entry(id).or_default() += 1;
        }
        for (id, count) in wanted {
            if let Some(task_manager) = self.task_managers.get_mut(id) {
                let held = task_manager.held.entry(job).or_default();
                *held = count.max(*held);
            }
        }
    }

    /// A job holds exactly these slots from now on, one for each entry.
    pub(crate) fn hold(&mut self, job: JobId, slots: &[TaskManagerId]) {
        for task_manager in self.task_managers.values_mut() {
            task_manager.held.remove(&job);
        }
        self.reserve(job, slots);
    }

    /// Every TaskManager with its session and the number of its free slots, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TaskManagerInfo, SessionId, u32)> {
        self.task_managers.values().map(|task_manager| (&task_manager.info, task_manager.session, task_manager.free()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(slots: u32) -> TaskManagerInfo {
        TaskManagerInfo {
            id: TaskManagerId("tm-1".into()),
            host: "localhost".into(),
            pid: 1,
            slots,
            platform: platform(),
            protocol_version: PROTOCOL_VERSION,
        }
    }

    #[test]
    fn slots_are_held_by_jobs_until_they_need_fewer() {
        let mut resources = Resources::default();
        resources.register(1, info(3));
        let (id, job, other) = (TaskManagerId("tm-1".into()), JobId([1; 16]), JobId([2; 16]));
        resources.reserve(job, &[id.clone(), id.clone()]);
        resources.reserve(job, std::slice::from_ref(&id));
        assert_eq!(resources.offers(job), [Offer { task_manager: id.clone(), held: 2, free: 1, total: 3 }]);
        assert_eq!(resources.offers(other), [Offer { task_manager: id.clone(), held: 0, free: 1, total: 3 }]);
        resources.hold(job, std::slice::from_ref(&id));
        assert_eq!(resources.offers(other)[0].free, 2);
        resources.hold(job, &[]);
        assert_eq!(resources.offers(job)[0].free, 3);
        resources.remove(&id);
        assert_eq!(resources.session(&id), None);
    }

    #[test]
    fn another_protocol_or_machine_is_refused_with_both_names() {
        Resources::check(&info(1)).unwrap();
        let other = TaskManagerInfo { protocol_version: 99, ..info(1) };
        let error = Resources::check(&other).unwrap_err().to_string();
        assert!(error.contains("speaks protocol version 99"), "{error}");
        let other = TaskManagerInfo { platform: "pdp11-unix".into(), ..info(1) };
        let error = Resources::check(&other).unwrap_err().to_string();
        assert!(error.contains("runs on pdp11-unix"), "{error}");
    }
}
