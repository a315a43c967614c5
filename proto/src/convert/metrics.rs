//! The figures of a heartbeat. They come twice a second from every worker, so what is the same in all of its subtasks is said
//! once: the names of states.

use std::collections::HashMap;

use flott_control::{StateMetrics, TaskMetrics};
use flott_core::Result;
use flott_core::ids::OperatorId;

use super::common::subtask;
use super::malformed;
use crate::wire;

/// The figures, and the names that they refer to.
pub(super) fn to_wire(metrics: Vec<TaskMetrics>) -> (Vec<wire::TaskMetrics>, Vec<wire::StateName>) {
    let mut places: HashMap<(OperatorId, String), u32> = HashMap::new();
    let mut names = Vec::new();
    let mut place_of = |operator: OperatorId, name: String| {
        *places.entry((operator, name)).or_insert_with_key(|(operator, name)| {
            names.push(wire::StateName { operator: operator.0.to_vec(), name: name.clone() });
            (names.len() - 1) as u32
        })
    };
    let mut state = |state: StateMetrics| wire::StateMetrics {
        state: place_of(state.operator, state.name),
        entries: state.entries,
        memory_bytes: state.memory_bytes,
        index_bytes: state.index_bytes,
        disk_bytes: state.disk_bytes,
    };
    let task = |metrics: TaskMetrics| wire::TaskMetrics {
        subtask: Some(metrics.subtask.into()),
        records_in: metrics.records_in,
        records_out: metrics.records_out,
        bytes_in: metrics.bytes_in,
        bytes_out: metrics.bytes_out,
        busy_ms: metrics.busy_ms,
        idle_ms: metrics.idle_ms,
        back_pressured_ms: metrics.back_pressured_ms,
        watermark: metrics.watermark,
        late_records_dropped: metrics.late_records_dropped,
        malformed_records_skipped: metrics.malformed_records_skipped,
        states: metrics.states.into_iter().map(&mut state).collect(),
        slot_state_bytes: metrics.slot_state_bytes,
        slot_state_limit: metrics.slot_state_limit,
    };
    let metrics = metrics.into_iter().map(task).collect();
    (metrics, names)
}

pub(super) fn from_wire(metrics: Vec<wire::TaskMetrics>, names: Vec<wire::StateName>) -> Result<Vec<TaskMetrics>> {
    let names: Vec<(OperatorId, String)> = names.into_iter().map(name).collect::<Result<_>>()?;
    let state = |state: wire::StateMetrics| {
        let (operator, name) = names
            .get(state.state as usize)
            .ok_or_else(|| malformed(format_args!("state {} of {} in a heartbeat", state.state, names.len())))?;
        Ok(StateMetrics {
            operator: *operator,
            name: name.clone(),
            entries: state.entries,
            memory_bytes: state.memory_bytes,
            index_bytes: state.index_bytes,
            disk_bytes: state.disk_bytes,
        })
    };
    let task = |metrics: wire::TaskMetrics| {
        Ok(TaskMetrics {
            subtask: subtask(metrics.subtask)?,
            records_in: metrics.records_in,
            records_out: metrics.records_out,
            bytes_in: metrics.bytes_in,
            bytes_out: metrics.bytes_out,
            busy_ms: metrics.busy_ms,
            idle_ms: metrics.idle_ms,
            back_pressured_ms: metrics.back_pressured_ms,
            watermark: metrics.watermark,
            late_records_dropped: metrics.late_records_dropped,
            malformed_records_skipped: metrics.malformed_records_skipped,
            states: metrics.states.into_iter().map(state).collect::<Result<_>>()?,
            slot_state_bytes: metrics.slot_state_bytes,
            slot_state_limit: metrics.slot_state_limit,
        })
    };
    metrics.into_iter().map(task).collect()
}

fn name(name: wire::StateName) -> Result<(OperatorId, String)> {
    let id = name.operator.as_slice().try_into();
    let id =
        id.map_err(|_| malformed(format_args!("field 'operator' has {} bytes instead of 16", name.operator.len())))?;
    Ok((OperatorId(id), name.name))
}

#[cfg(test)]
mod tests {
    use flott_core::ids::SubtaskId;

    use super::*;

    #[test]
    fn a_state_is_named_once_and_must_be_named() {
        let state = |name: &str, entries| StateMetrics {
            operator: OperatorId([7; 16]),
            name: name.to_owned(),
            entries,
            memory_bytes: 2,
            index_bytes: 1,
            disk_bytes: u64::MAX,
        };
        let task = |index| TaskMetrics {
            subtask: SubtaskId { vertex: 1, index },
            records_in: 0,
            records_out: 0,
            bytes_in: 0,
            bytes_out: 0,
            busy_ms: 0,
            idle_ms: 0,
            back_pressured_ms: 0,
            watermark: 0,
            late_records_dropped: 0,
            malformed_records_skipped: 0,
            states: vec![state("sums", u64::from(index)), state("_timers", 5)],
            slot_state_bytes: 3,
            slot_state_limit: 4,
        };
        let sent = vec![task(0), task(1)];
        let (metrics, mut names) = to_wire(sent.clone());
        assert_eq!(names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>(), ["sums", "_timers"]);
        assert_eq!(from_wire(metrics.clone(), names.clone()).unwrap(), sent);
        names.pop();
        assert!(from_wire(metrics.clone(), names.clone()).unwrap_err().message.contains("state 1 of 1"));
        names[0].operator.pop();
        assert!(from_wire(metrics, names).unwrap_err().message.contains("15 bytes"));
    }
}
