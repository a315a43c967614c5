use flott_checkpoint::FileHandle;
use flott_checkpoint::assign::ChannelSource;
use flott_control::CheckpointKind;
use flott_core::Batch;
use flott_core::key_group::range_of;
use flott_network::{Sender, Signal, local_channel};
use flott_operators::exchange::decode_batch;

use super::*;

/// How many key groups there are. The hash of a row is itself, with its key group in the highest bits of 32.
const GROUPS: u32 = 1 << 15;

fn gate_with(is_ordered: &[bool], overtaking: Overtaking) -> (Vec<Sender>, InputGate) {
    let mut senders = Vec::new();
    let channels = is_ordered.iter().map(|is_ordered| {
        let (sender, receiver) = local_channel(1 << 20, Signal::new(), Signal::new());
        senders.push(sender.with_overtaking());
        InputChannel { receiver, is_keyed: true, is_ordered: *is_ordered }
    });
    let channels = channels.collect();
    let input = ChannelInput { sender: OperatorId([1; 16]), is_keyed: true, channels: is_ordered.len() as u32 };
    let records = Records { operator: OperatorId([2; 16]), inputs: vec![input], codec: PayloadCodec::of::<u32>() };
    (senders, InputGate::new(channels, Some(records), overtaking))
}

fn gate(channels: usize) -> (Vec<Sender>, InputGate) {
    gate_with(&vec![false; channels], Overtaking::NEVER)
}

/// One in which barriers overtake from the start.
fn unaligned_gate(channels: usize) -> (Vec<Sender>, InputGate) {
    gate_with(&vec![false; channels], Overtaking::after(0))
}

fn rows(value: u32) -> Element {
    let batch = Batch { hashes: vec![u64::from(value)], ..Batch::from_rows(vec![value]) };
    Element::Batch(Payload::Local { batch: Box::new(batch), rows: 1, bytes: 4 })
}

fn barrier_of(checkpoint: u64) -> Barrier {
    Barrier { checkpoint, triggered_ms: 1000, kind: CheckpointKind::Checkpoint }
}

fn barrier(checkpoint: u64) -> Element {
    Element::Barrier(barrier_of(checkpoint))
}

fn unaligned(checkpoint: u64) -> Element {
    Element::UnalignedBarrier { barrier: barrier_of(checkpoint), overtaken: 0 }
}

fn send(sender: &Sender, elements: impl IntoIterator<Item = Element>) {
    elements.into_iter().for_each(|element| sender.send(element).unwrap());
}

fn show(input: Input) -> String {
    match input {
        Input::Batch(Payload::Local { batch, .. }) => {
            format!("row {}", batch.downcast::<Batch<u32>>().unwrap().rows[0])
        }
        Input::Batch(Payload::Encoded { data, rows }) => {
            let mut batch = Batch::<u32>::default();
            decode_batch(&data, rows, &mut batch).unwrap();
            format!("row {}", batch.rows[0])
        }
        Input::Watermark(watermark) => format!("watermark {watermark}"),
        Input::Idle => "idle".into(),
        Input::Active => "active".into(),
        Input::Barrier { barrier, is_unaligned: false, .. } => format!("barrier {}", barrier.checkpoint),
        Input::Barrier { barrier, .. } => format!("unaligned {}", barrier.checkpoint),
        Input::EndOfInput => "end".into(),
    }
}

fn poll(gate: &mut InputGate) -> Option<String> {
    gate.poll(1000).unwrap().map(show)
}

fn drain(gate: &mut InputGate) -> Vec<String> {
    std::iter::from_fn(|| poll(gate)).collect()
}

fn saved(gate: &mut InputGate, checkpoint: u64) -> SavedChannels {
    while gate.save(1).unwrap() {}
    match gate.take_saved(checkpoint) {
        Saving::Complete(Some(saved)) => saved,
        saving => panic!("{saving:?}"),
    }
}

fn contents(saved: &SavedChannels, is_whole: bool, has_others: bool) -> ChannelContents {
    let file = FileHandle { path: "file:///c/0-0.channels".into(), bytes: 0, sha256: String::new() };
    let source = ChannelSource { file, schema: saved.schema.clone(), is_whole, has_others };
    ChannelContents { source, bytes: saved.bytes.clone().into() }
}

/// What a new gate hands out after a restore of this.
fn restored(contents: &[ChannelContents], channels: usize) -> Vec<String> {
    let (_senders, mut gate) = unaligned_gate(channels);
    gate.restore(contents, range_of(1, 0, GROUPS), GROUPS).unwrap();
    drain(&mut gate)
}

#[test]
fn rows_behind_a_barrier_wait_for_the_other_channels() {
    let (senders, mut gate) = gate(2);
    send(&senders[0], [rows(1), barrier(1), rows(2)]);
    send(&senders[1], [rows(3)]);
    let mut before = drain(&mut gate);
    before.sort();
    assert_eq!(before, ["row 1", "row 3"]);
    send(&senders[1], [barrier(1)]);
    assert_eq!(drain(&mut gate), ["barrier 1", "row 2"]);
}

#[test]
fn barriers_still_align_after_the_end_of_a_channel() {
    let (senders, mut gate) = gate(2);
    send(&senders[0], [Element::Watermark(5)]);
    send(&senders[1], [Element::EndOfInput]);
    assert_eq!(drain(&mut gate), ["watermark 5"]);
    send(&senders[0], [barrier(1)]);
    send(&senders[1], [barrier(1)]);
    assert_eq!(drain(&mut gate), ["barrier 1"]);
    send(&senders[0], [Element::EndOfInput]);
    assert_eq!(drain(&mut gate), ["end"]);
    send(&senders[0], [barrier(2)]);
    send(&senders[1], [barrier(2)]);
    assert_eq!(drain(&mut gate), ["barrier 2"]);
}

#[test]
fn a_barrier_that_overtook_snapshots_at_once_and_saves_what_it_overtook() {
    let (senders, mut gate) = unaligned_gate(2);
    send(&senders[0], [rows(1), Element::Watermark(7), rows(2), unaligned(1), rows(3)]);
    send(&senders[1], [rows(4)]);
    let snapshot = gate.poll_barrier(1000).unwrap().map(show);
    assert_eq!(snapshot.as_deref(), Some("unaligned 1"));
    assert_eq!(gate.take_saved(1), Saving::Pending);
    // One row is saved where it lies, the next when it is taken, as is everything from a channel without a barrier.
    assert!(gate.save(1).unwrap());
    let mut taken = drain(&mut gate);
    assert_eq!(gate.take_saved(1), Saving::Pending);
    send(&senders[1], [unaligned(1), rows(5)]);
    taken.extend(drain(&mut gate));
    taken.sort();
    assert_eq!(taken, ["row 1", "row 2", "row 3", "row 4", "row 5"]);
    let saved = saved(&mut gate, 1);
    assert_eq!(saved.rows, 3);
    let mut again = restored(&[contents(&saved, true, true)], 2);
    again.sort();
    assert_eq!(again, ["row 1", "row 2", "row 4"]);
}

#[test]
fn watermarks_in_flight_keep_their_place_where_channels_are_the_same() {
    let (senders, mut gate) = unaligned_gate(1);
    send(&senders[0], [rows(1), Element::Watermark(7), rows(2), unaligned(1), Element::EndOfInput]);
    assert_eq!(poll(&mut gate).as_deref(), Some("unaligned 1"));
    let saved = saved(&mut gate, 1);
    assert_eq!(restored(&[contents(&saved, true, true)], 1), ["row 1", "watermark 7", "row 2"]);
    assert_eq!(restored(&[contents(&saved, false, true)], 1), ["row 1", "row 2"]);
    assert_eq!(drain(&mut gate), ["row 1", "watermark 7", "row 2", "end"]);
}

#[test]
fn a_snapshot_waits_for_barriers_that_keep_their_place() {
    let (senders, mut gate) = gate_with(&[false, true], Overtaking::after(0));
    send(&senders[0], [rows(1), rows(2), unaligned(1), rows(3)]);
    send(&senders[1], [rows(4)]);
    let mut before = drain(&mut gate);
    before.sort();
    assert_eq!(before, ["row 1", "row 2", "row 4"]);
    send(&senders[1], [barrier(1), rows(5)]);
    assert_eq!(poll(&mut gate).as_deref(), Some("barrier 1"));
    let mut behind = drain(&mut gate);
    behind.sort();
    assert_eq!(behind, ["row 3", "row 5"]);
}

#[test]
fn alignment_that_takes_too_long_is_given_up() {
    let (senders, mut gate) = gate_with(&[false; 3], Overtaking::after(50));
    send(&senders[0], [rows(1), barrier(1), rows(2)]);
    send(&senders[1], [rows(3), rows(6), barrier(1), rows(4)]);
    assert!(gate.poll_barrier(1049).unwrap().is_none());
    assert_eq!(gate.next_due(), 1050);
    // The barrier of the first channel is taken in its place, that of the second still waits in the queue.
    for row in ["row 1", "row 3", "row 6"] {
        assert_eq!(poll(&mut gate).as_deref(), Some(row));
    }
    assert!(gate.poll_barrier(1049).unwrap().is_none());
    assert_eq!(gate.next_due(), 1050);
    let snapshot = gate.poll_barrier(1050).unwrap().map(show);
    assert_eq!(snapshot.as_deref(), Some("unaligned 1"));
    // The third channel's barrier comes late, and is taken from its place.
    send(&senders[2], [rows(5), barrier(1), rows(7)]);
    assert!(gate.poll_barrier(1051).unwrap().is_none());
    let saved = saved(&mut gate, 1);
    assert_eq!(restored(&[contents(&saved, true, true)], 3), ["row 5"]);
    let mut rest = drain(&mut gate);
    rest.sort();
    assert_eq!(rest, ["row 2", "row 4", "row 5", "row 7"]);
}

#[test]
fn a_savepoint_is_aligned_however_long_that_takes() {
    let (senders, mut gate) = unaligned_gate(2);
    let kind = CheckpointKind::Savepoint { dir: String::new(), stop: false, drain: false };
    let savepoint = || Element::Barrier(Barrier { kind: kind.clone(), ..barrier_of(1) });
    send(&senders[0], [savepoint(), rows(1)]);
    send(&senders[1], [rows(2), savepoint()]);
    assert!(gate.poll_barrier(Timestamp::MAX - 1).unwrap().is_none());
    assert_eq!(gate.next_due(), Timestamp::MAX);
    assert_eq!(drain(&mut gate), ["row 2", "barrier 1", "row 1"]);
}

#[test]
fn rows_by_key_are_restored_where_their_key_groups_are() {
    let (senders, mut gate) = unaligned_gate(1);
    let values = [1, 0x4000_0000, 0x8000_0000, 0xc000_0000];
    send(&senders[0], values.map(rows));
    send(&senders[0], [unaligned(1)]);
    assert_eq!(poll(&mut gate).as_deref(), Some("unaligned 1"));
    let saved = saved(&mut gate, 1);
    let mut all = Vec::new();
    for index in 0..3 {
        let (_senders, mut gate) = unaligned_gate(2);
        gate.restore(&[contents(&saved, false, index == 0)], range_of(3, index, GROUPS), GROUPS).unwrap();
        all.extend(drain(&mut gate));
    }
    assert_eq!(all, values.map(|value| format!("row {value}")));
}

#[test]
fn what_was_restored_is_still_in_flight_until_it_is_processed() {
    let (senders, mut gate) = unaligned_gate(1);
    send(&senders[0], [rows(1), rows(2), rows(3), unaligned(1)]);
    assert_eq!(poll(&mut gate).as_deref(), Some("unaligned 1"));
    let first = saved(&mut gate, 1);
    let (senders, mut gate) = unaligned_gate(1);
    gate.restore(&[contents(&first, true, true)], range_of(1, 0, GROUPS), GROUPS).unwrap();
    assert_eq!(poll(&mut gate).as_deref(), Some("row 1"));
    send(&senders[0], [unaligned(2), rows(4)]);
    let snapshot = gate.poll_barrier(1000).unwrap().map(show);
    assert_eq!(snapshot.as_deref(), Some("unaligned 2"));
    let second = saved(&mut gate, 2);
    assert_eq!(restored(&[contents(&second, true, true)], 1), ["row 2", "row 3"]);
    assert_eq!(drain(&mut gate), ["row 2", "row 3", "row 4"]);
}

#[test]
fn what_was_restored_comes_before_an_aligned_barrier() {
    let (senders, mut gate) = unaligned_gate(1);
    send(&senders[0], [rows(1), unaligned(1)]);
    assert_eq!(poll(&mut gate).as_deref(), Some("unaligned 1"));
    let saved = saved(&mut gate, 1);
    let (senders, mut gate) = self::gate(1);
    gate.restore(&[contents(&saved, false, false)], range_of(1, 0, GROUPS), GROUPS).unwrap();
    send(&senders[0], [barrier(2)]);
    assert_eq!(drain(&mut gate), ["row 1", "barrier 2"]);
}

#[test]
fn a_later_checkpoint_gives_up_what_is_being_saved() {
    let (senders, mut gate) = unaligned_gate(2);
    send(&senders[0], [rows(1), unaligned(1)]);
    assert_eq!(poll(&mut gate).as_deref(), Some("unaligned 1"));
    let kind = CheckpointKind::Savepoint { dir: String::new(), stop: false, drain: false };
    send(&senders[0], [Element::Barrier(Barrier { kind, ..barrier_of(2) })]);
    assert_eq!(drain(&mut gate), ["row 1"]);
    assert_eq!(gate.take_saved(1), Saving::GivenUp);
    assert!(!gate.save(100).unwrap());
}

#[test]
fn records_of_another_type_are_refused() {
    let (senders, mut gate) = unaligned_gate(1);
    send(&senders[0], [rows(1), unaligned(1)]);
    assert_eq!(poll(&mut gate).as_deref(), Some("unaligned 1"));
    let saved = SavedChannels { schema: "another".into(), ..saved(&mut gate, 1) };
    let (_senders, mut gate) = unaligned_gate(1);
    let error = gate.restore(&[contents(&saved, true, true)], range_of(1, 0, GROUPS), GROUPS).unwrap_err();
    assert!(error.message.contains("whose type has changed: take a savepoint"), "{error}");
}
