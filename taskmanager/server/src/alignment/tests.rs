use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// An aligner of channels in which barriers may overtake.
fn aligner(channels: usize) -> Aligner {
    Aligner::new(vec![false; channels])
}

#[test]
fn all_channels_must_deliver() {
    let mut aligner = aligner(3);
    assert_eq!(aligner.on_barrier(1, 1, None), Alignment::Begun);
    assert!(aligner.is_blocked(1) && !aligner.is_blocked(0));
    assert_eq!(aligner.on_barrier(0, 1, None), Alignment::Waiting);
    assert_eq!(aligner.on_barrier(2, 1, None), Alignment::Complete);
    assert!(!aligner.is_blocked(1) && !aligner.is_aligning() && !aligner.is_watching());
}

#[test]
fn one_channel_needs_no_waiting() {
    let mut aligner = aligner(1);
    assert_eq!(aligner.on_barrier(0, 1, None), Alignment::Complete);
    assert_eq!(aligner.on_barrier(0, 1, None), Alignment::Stale);
    assert_eq!(aligner.on_barrier(0, 2, None), Alignment::Complete);
}

#[test]
fn a_later_checkpoint_gives_up_an_earlier_one() {
    let mut aligner = aligner(2);
    assert_eq!(aligner.on_barrier(0, 1, None), Alignment::Begun);
    assert_eq!(aligner.on_barrier(1, 2, None), Alignment::Begun);
    assert!(!aligner.is_blocked(0));
    assert_eq!(aligner.on_barrier(0, 2, None), Alignment::Complete);
}

#[test]
fn the_first_barrier_that_overtook_takes_the_snapshot() {
    let mut aligner = aligner(2);
    assert_eq!(aligner.on_barrier(0, 1, Some(2)), Alignment::Unaligned);
    assert!((0..2).all(|channel| !aligner.is_blocked(channel)) && aligner.is_watching());
    // The first is saved where it lies and then taken, the second is taken at once.
    assert_eq!(aligner.unsaved(0), Some(0));
    aligner.saved(0);
    assert!(!aligner.take(0) && aligner.take(0) && !aligner.take(0));
    // The other channel has not delivered: whatever is taken from it is in flight.
    assert!(aligner.take(1) && !aligner.is_saved());
    assert_eq!(aligner.on_barrier(1, 1, None), Alignment::Waiting);
    assert!(!aligner.take(1) && aligner.is_saved());
}

#[test]
fn nothing_is_in_flight_where_nothing_was_overtaken() {
    let mut aligner = aligner(2);
    assert_eq!(aligner.on_barrier(0, 1, None), Alignment::Begun);
    assert_eq!(aligner.on_barrier(1, 1, Some(0)), Alignment::Complete);
}

#[test]
fn a_barrier_that_keeps_its_place_is_waited_for() {
    let mut aligner = Aligner::new([false, true]);
    assert_eq!(aligner.on_barrier(0, 1, Some(1)), Alignment::Begun);
    // What the barrier has overtaken may be processed before the snapshot, what follows may not.
    assert!(!aligner.is_blocked(0));
    assert!(!aligner.take(0));
    assert!(aligner.is_blocked(0));
    assert_eq!(aligner.expire(), Alignment::Waiting);
    assert_eq!(aligner.on_barrier(1, 1, None), Alignment::Complete);

    assert_eq!(aligner.on_barrier(0, 2, Some(1)), Alignment::Begun);
    assert_eq!(aligner.on_barrier(1, 2, None), Alignment::Unaligned);
    assert_eq!(aligner.unsaved(0), Some(0));
}

#[test]
fn who_has_waited_too_long_snapshots_without_the_others() {
    let mut aligner = aligner(3);
    assert_eq!(aligner.on_barrier(0, 1, None), Alignment::Begun);
    assert_eq!(aligner.expire(), Alignment::Unaligned);
    assert_eq!(aligner.expire(), Alignment::Stale);
    assert!(!aligner.is_blocked(0) && !aligner.take(0) && aligner.take(1));
    assert!(aligner.is_due(1));
    assert_eq!(aligner.on_barrier(1, 1, Some(3)), Alignment::Waiting);
    assert_eq!(aligner.on_barrier(2, 1, None), Alignment::Waiting);
    assert!(!aligner.is_saved());
    (0..3).for_each(|_| aligner.saved(1));
    assert!(aligner.is_saved());
    aligner.finish();
    assert!(!aligner.take(1) && !aligner.awaits(1, 1) && aligner.awaits(1, 2));
}

#[test]
fn only_checkpoints_overtake_and_not_everywhere() {
    let barrier = |kind| Barrier { checkpoint: 1, triggered_ms: 1000, kind };
    let checkpoint = barrier(CheckpointKind::Checkpoint);
    let savepoint = barrier(CheckpointKind::Savepoint { dir: String::new(), stop: false, drain: false });
    assert_eq!(Overtaking::NEVER.due_ms(&checkpoint), Timestamp::MAX);
    assert_eq!(Overtaking::after(50).due_ms(&checkpoint), 1050);
    assert_eq!(Overtaking::after(0).due_ms(&checkpoint), Timestamp::MIN);
    for aligned in [savepoint, barrier(CheckpointKind::Final)] {
        assert_eq!(Overtaking::after(0).due_ms(&aligned), Timestamp::MAX);
    }
    assert!(Overtaking::after(0).allows(Partitioning::Hash));
    assert!(!Overtaking::after(0).allows(Partitioning::Broadcast));
    assert!(!Overtaking::NEVER.allows(Partitioning::Hash));
}

#[test]
fn the_configuration_decides() {
    let mut config = Configuration::default();
    assert!(!Overtaking::of(&config).unwrap().is_enabled());
    config.set("execution.checkpointing.unaligned", "true").unwrap();
    assert_eq!(Overtaking::of(&config).unwrap().timeout_ms, Some(0));
    config.set("execution.checkpointing.aligned-checkpoint-timeout", "30 s").unwrap();
    assert_eq!(Overtaking::of(&config).unwrap().timeout_ms, Some(30_000));
}

/// A subtask with its channels, as the aligner's user drives them.
struct Model {
    aligner: Aligner,
    channels: Vec<ModelChannel>,
    /// The checkpoint that senders take part in.
    checkpoint: CheckpointId,
    /// The checkpoint whose snapshot was taken, until everything in flight has been saved.
    snapshot: Option<CheckpointId>,
    completed: CheckpointId,
}

#[derive(Default)]
struct ModelChannel {
    is_ordered: bool,
    sent: u32,
    /// A record each, or a barrier.
    queue: VecDeque<Result<u32, CheckpointId>>,
    /// The barrier that has overtaken, and how many elements.
    overtaking: Option<(CheckpointId, u32)>,
    has_sent_barrier: bool,
    /// How many records were sent before the barrier.
    sent_before: u32,
    processed: u32,
    processed_at_snapshot: u32,
    saved: Vec<u32>,
}

impl Model {
    fn new(is_ordered: &[bool]) -> Self {
        let channel = |is_ordered: &bool| ModelChannel { is_ordered: *is_ordered, ..ModelChannel::default() };
        Self {
            aligner: Aligner::new(is_ordered.iter().copied()),
            channels: is_ordered.iter().map(channel).collect(),
            checkpoint: 1,
            snapshot: None,
            completed: 0,
        }
    }

    fn send(&mut self, channel: usize) {
        let channel = &mut self.channels[channel];
        channel.queue.push_back(Ok(channel.sent));
        channel.sent += 1;
    }

    fn send_barrier(&mut self, channel: usize, overtakes: bool) {
        let channel = &mut self.channels[channel];
        if std::mem::replace(&mut channel.has_sent_barrier, true) {
            return;
        }
        channel.sent_before = channel.sent;
        if overtakes && !channel.is_ordered {
            channel.overtaking = Some((self.checkpoint, channel.queue.len() as u32));
        } else {
            channel.queue.push_back(Err(self.checkpoint));
        }
    }

    /// Whether it could take anything.
    fn take(&mut self, index: usize) -> bool {
        if self.aligner.is_blocked(index) {
            return false;
        }
        if self.take_overtaking(index) {
            return true;
        }
        let channel = &mut self.channels[index];
        let Some(element) = channel.queue.pop_front() else { return false };
        let is_in_flight = self.aligner.is_watching() && self.aligner.take(index);
        match element {
            Ok(record) => {
                assert_eq!(record, channel.processed, "records keep their order");
                channel.processed += 1;
                if is_in_flight {
                    channel.saved.push(record);
                }
            }
            Err(checkpoint) => {
                let alignment = self.aligner.on_barrier(index, checkpoint, None);
                self.act(alignment, checkpoint);
            }
        }
        true
    }

    fn take_overtaking(&mut self, index: usize) -> bool {
        let Some((checkpoint, overtaken)) = self.channels[index].overtaking.take() else { return false };
        let alignment = self.aligner.on_barrier(index, checkpoint, Some(overtaken));
        self.act(alignment, checkpoint);
        true
    }

    /// Takes a barrier that waits in its place out of it.
    fn take_late(&mut self, index: usize) {
        if self.take_overtaking(index) || self.channels[index].is_ordered {
            return;
        }
        let queue = &mut self.channels[index].queue;
        let Some(position) = queue.iter().rposition(|element| element.is_err()) else { return };
        let Some(Err(checkpoint)) = queue.get(position).copied() else { return };
        if self.aligner.awaits(index, checkpoint) {
            queue.remove(position);
            let alignment = self.aligner.on_barrier(index, checkpoint, Some(position as u32));
            self.act(alignment, checkpoint);
        }
    }

    fn expire(&mut self) {
        let checkpoint = self.aligner.current;
        let alignment = self.aligner.expire();
        self.act(alignment, checkpoint);
    }

    /// Whether there was anything to save.
    fn save(&mut self, index: usize) -> bool {
        let channel = &mut self.channels[index];
        let Some(position) = self.aligner.unsaved(index) else { return false };
        let element = channel.queue.get(position as usize).expect("what was overtaken is there");
        channel.saved.extend(element.ok());
        self.aligner.saved(index);
        true
    }

    fn act(&mut self, alignment: Alignment, checkpoint: CheckpointId) {
        if alignment == Alignment::Begun {
            self.snapshot = None;
        }
        if !matches!(alignment, Alignment::Complete | Alignment::Unaligned) {
            return;
        }
        self.snapshot = Some(checkpoint);
        for channel in &mut self.channels {
            channel.processed_at_snapshot = channel.processed;
            channel.saved.clear();
        }
    }

    /// What the snapshot covers and what was saved with it is what was sent before the barriers.
    fn check(&mut self) {
        let Some(snapshot) = self.snapshot.filter(|_| self.aligner.is_saved()) else { return };
        self.snapshot = None;
        self.aligner.finish();
        assert!(snapshot > self.completed, "each checkpoint completes once");
        self.completed = snapshot;
        // Channels that take part in a later one already have forgotten where this one's barrier was.
        if snapshot == self.checkpoint {
            for channel in &self.channels {
                assert!(channel.processed_at_snapshot <= channel.sent_before, "nothing from behind the barrier");
                let in_flight: Vec<u32> = (channel.processed_at_snapshot..channel.sent_before).collect();
                assert_eq!(channel.saved, in_flight);
            }
        }
    }

    fn next_checkpoint(&mut self) {
        self.checkpoint += 1;
        self.channels.iter_mut().for_each(|channel| channel.has_sent_barrier = false);
    }
}

proptest! {
    /// Whatever the order in which channels deliver, each checkpoint completes exactly once, and
    /// between two of them nothing is blocked.
    #[test]
    fn each_checkpoint_completes_once(channels in 1_usize..6, order in prop::collection::vec(any::<prop::sample::Index>(), 60)) {
        let mut aligner = aligner(channels);
        let mut delivered = vec![0_u64; channels];
        let mut completed = 0;
        for index in order {
            let open: Vec<usize> = (0..channels).filter(|c| !aligner.is_blocked(*c)).collect();
            let channel = open[index.index(open.len())];
            delivered[channel] += 1;
            if aligner.on_barrier(channel, delivered[channel], None) == Alignment::Complete {
                completed += 1;
                prop_assert!(delivered.iter().all(|d| *d == completed));
                prop_assert!((0..channels).all(|c| !aligner.is_blocked(c)));
            }
        }
    }

    /// However records, barriers in their place, barriers that overtake, time-outs and checkpoints that are given up
    /// interleave: a restore of the snapshot that then processes what was in flight has seen each record from before
    /// the barriers once, in the order of its channel, and none from behind them. And it always comes to that.
    #[test]
    fn what_is_in_flight_completes_the_snapshot(
        is_ordered in prop::collection::vec(prop::bool::weighted(0.2), 1..5),
        steps in prop::collection::vec((0_u8..20, any::<prop::sample::Index>()), 0..400),
    ) {
        let mut model = Model::new(&is_ordered);
        for (step, index) in steps {
            let channel = index.index(is_ordered.len());
            match step {
                0..=5 => model.send(channel),
                6 => model.send_barrier(channel, true),
                7 => model.send_barrier(channel, false),
                8 => model.take_late(channel),
                9..=14 => {
                    model.take(channel);
                }
                15..=17 => {
                    model.save(channel);
                }
                18 => model.expire(),
                _ if model.channels.iter().all(|channel| channel.has_sent_barrier) => model.next_checkpoint(),
                _ => {}
            }
            model.check();
        }
        (0..is_ordered.len()).for_each(|channel| model.send_barrier(channel, channel % 2 == 0));
        while (0..is_ordered.len()).any(|channel| model.save(channel) || model.take(channel)) {
            model.check();
        }
        prop_assert_eq!(model.completed, model.checkpoint);
        prop_assert!(model.channels.iter().all(|channel| channel.processed == channel.sent));
    }
}
