//! The channels between the subtasks of an execution.

use std::collections::BTreeMap;

use flott_core::ids::SubtaskId;
use flott_graph::{JobGraph, Partitioning};
use flott_network::{Sender, Signal, local_channel};
use flott_taskmanager::alignment::Overtaking;
use flott_taskmanager::gate::InputChannel;

/// Both ends of all channels, by the subtask that they belong to.
#[derive(Default)]
pub(crate) struct Channels {
    /// By the edge of the job graph.
    pub(crate) senders: BTreeMap<SubtaskId, BTreeMap<usize, Vec<Sender>>>,
    pub(crate) receivers: BTreeMap<SubtaskId, Vec<InputChannel>>,
}

impl Channels {
    /// Channels of so many bytes for all edges.
    pub(crate) fn new(graph: &JobGraph, overtaking: Overtaking, bytes: u64, signal: &Signal) -> Self {
        let mut channels = Self::default();
        for (index, edge) in graph.edges.iter().enumerate() {
            let [senders, receivers] = [edge.source, edge.target].map(|id| graph.vertices[id as usize].parallelism);
            let overtakes = overtaking.allows(edge.partitioning);
            for from in 0..senders {
                for to in 0..receivers {
                    if edge.partitioning == Partitioning::Forward && from != to {
                        continue;
                    }
                    let (sender, receiver) = local_channel(bytes, signal.clone(), signal.clone());
                    let sender = if overtakes { sender.with_overtaking() } else { sender };
                    let source = SubtaskId { vertex: edge.source, index: from };
                    channels.senders.entry(source).or_default().entry(index).or_default().push(sender);
                    let is_keyed = edge.partitioning == Partitioning::Hash;
                    let channel = InputChannel { receiver, is_keyed, is_ordered: !overtakes };
                    let target = SubtaskId { vertex: edge.target, index: to };
                    channels.receivers.entry(target).or_default().push(channel);
                }
            }
        }
        channels
    }
}
