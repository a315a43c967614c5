use bytes::BytesMut;
use flott_control::CheckpointKind;
use proptest::prelude::*;

use super::*;
use crate::element::Payload;
use crate::inbound::InboundChannel;

const ID: ChannelId = ChannelId { edge: 0, from: 0, to: 0 };

/// Both ends of a channel between workers, and what is between them.
struct Channel {
    sender: OutboundChannel,
    outbox: Arc<Outbox>,
    socket: VecDeque<EncodedFrame>,
    receiver: InboundChannel,
    grants: Arc<Outbox>,
    batches_sent: u32,
    /// How many batches had been sent before each barrier.
    barriers: Vec<u32>,
    is_last_aligned: bool,
    /// What left the receiver's queue, without barriers that had overtaken.
    elements_popped: u32,
    batches_popped: u32,
    /// After how many elements all batches before a barrier, and none behind it, must have been popped.
    expected: Vec<(u32, u32)>,
    newest_seen: u64,
}

impl Channel {
    fn new(capacity_bytes: u64) -> Self {
        let (outbox, grants) = (Arc::new(Outbox::default()), Arc::new(Outbox::default()));
        let receiver = InboundChannel::new(ID, capacity_bytes, Signal::new());
        receiver.connect(grants.clone());
        Self {
            sender: OutboundChannel::new(ID, outbox.clone(), Signal::new(), false),
            outbox,
            socket: VecDeque::new(),
            receiver,
            grants,
            batches_sent: 0,
            barriers: Vec::new(),
            is_last_aligned: false,
            elements_popped: 0,
            batches_popped: 0,
            expected: Vec::new(),
            newest_seen: 0,
        }
    }

    fn send_batch(&mut self, bytes: usize) {
        let data = vec![0; bytes].into();
        let batch = Element::Batch(Payload::Encoded { data, rows: self.batches_sent });
        self.sender.send(batch).unwrap();
        self.batches_sent += 1;
    }

    fn send_barrier(&mut self, is_aligned: bool) {
        self.barriers.push(self.batches_sent);
        self.is_last_aligned = is_aligned;
        let checkpoint = self.barriers.len() as u64;
        let barrier = Barrier { checkpoint, triggered_ms: 0, kind: CheckpointKind::Checkpoint };
        let unaligned = Element::UnalignedBarrier { barrier: barrier.clone(), overtaken: 0 };
        self.sender.send(if is_aligned { Element::Barrier(barrier) } else { unaligned }).unwrap();
    }

    fn move_late_barrier(&mut self) {
        if self.is_last_aligned {
            self.sender.overtake(self.barriers.len() as u64).unwrap();
        }
    }

    fn write(&mut self) {
        self.socket.extend(self.outbox.take_waiting());
    }

    /// One frame arrives; whether there was any.
    fn deliver(&mut self) -> bool {
        let Some(frame) = self.socket.pop_front() else { return false };
        let Body::Element(element) = decode(&frame) else { panic!("not an element") };
        self.receiver.receive(element).expect("an honest sender is never accused");
        true
    }

    fn grant(&mut self) {
        for frame in self.grants.take_waiting() {
            let Body::Credit(bytes) = decode(&frame) else { panic!("not a grant") };
            self.sender.grant(bytes).expect("an honest receiver is never accused");
        }
    }

    /// Pops one element; whether there was any.
    fn pop(&mut self) -> bool {
        match self.receiver.pop() {
            None => return false,
            Some(Element::UnalignedBarrier { barrier, overtaken }) => {
                self.see(&barrier, overtaken);
                return true;
            }
            Some(Element::Batch(payload)) => {
                assert_eq!(payload.rows(), self.batches_popped, "batches keep their order");
                self.batches_popped += 1;
            }
            Some(Element::Barrier(barrier)) => {
                let before = self.barriers[barrier.checkpoint as usize - 1];
                assert_eq!(self.batches_popped, before, "a barrier in its place");
                self.newest_seen = self.newest_seen.max(barrier.checkpoint);
            }
            Some(element) => panic!("nobody sent {element:?}"),
        }
        self.elements_popped += 1;
        self.check();
        true
    }

    fn take_late_barrier(&mut self) {
        let newest = self.newest_seen;
        let taken = self.receiver.take_barrier(|barrier| barrier.checkpoint > newest);
        if let Some(Element::UnalignedBarrier { barrier, overtaken }) = taken {
            self.see(&barrier, overtaken);
        }
    }

    fn see(&mut self, barrier: &Barrier, overtaken: u32) {
        let before = self.barriers[barrier.checkpoint as usize - 1];
        // One that a later one went in front of comes too late to count anything.
        if barrier.checkpoint > self.newest_seen {
            self.newest_seen = barrier.checkpoint;
            self.expected.push((self.elements_popped + overtaken, before));
        }
        self.check();
    }

    fn check(&mut self) {
        for (elements, batches) in self.expected.extract_if(.., |(elements, _)| *elements <= self.elements_popped) {
            assert_eq!((elements, batches), (self.elements_popped, self.batches_popped));
        }
    }
}

fn decode(frame: &EncodedFrame) -> Body {
    let mut buffer = BytesMut::from(&frame.header[..]);
    buffer.extend_from_slice(&frame.payload);
    framing::decode(&mut buffer).unwrap().expect("a whole frame").body
}

proptest! {
    /// Whatever is sent, written, received, granted and popped in which order: batches keep their order, a barrier says
    /// exactly how many elements it has overtaken on all stretches of the way, and no credit is lost.
    #[test]
    fn barriers_overtake_on_all_stretches_of_the_way(
        capacity in 1_u64..2000,
        steps in prop::collection::vec((0_u8..10, 0_usize..600), 0..300),
    ) {
        let mut channel = Channel::new(capacity);
        for (step, bytes) in steps {
            match step {
                0 | 1 => channel.send_batch(bytes),
                2 => channel.send_barrier(false),
                3 => channel.send_barrier(true),
                4 => channel.move_late_barrier(),
                5 => channel.write(),
                6 => {
                    channel.deliver();
                }
                7 => channel.grant(),
                8 => {
                    channel.pop();
                }
                _ => channel.take_late_barrier(),
            }
        }
        loop {
            channel.grant();
            channel.write();
            let has_moved = channel.deliver();
            if !channel.pop() && !has_moved {
                break;
            }
        }
        channel.grant();
        prop_assert_eq!(channel.batches_popped, channel.batches_sent);
        prop_assert!(channel.expected.is_empty());
        prop_assert!(channel.sender.is_writable());
    }
}

#[test]
fn what_waits_for_credit_follows_a_barrier_without() {
    let mut channel = Channel::new(100);
    channel.grant();
    for _ in 0..3 {
        channel.send_batch(200);
    }
    channel.send_barrier(false);
    channel.send_batch(200);
    channel.write();
    while channel.deliver() {}
    channel.take_late_barrier();
    assert_eq!(channel.expected, [(3, 3)]);
    while channel.pop() {}
    assert_eq!(channel.batches_popped, 3, "what follows the barrier waits for credit");
    channel.grant();
    channel.write();
    assert!(channel.deliver() && channel.pop());
    assert_eq!(channel.batches_popped, 4);
}

#[test]
fn without_a_receiver_a_barrier_keeps_its_place() {
    let mut channel = Channel::new(1000);
    channel.send_batch(10);
    channel.send_barrier(false);
    channel.grant();
    channel.write();
    assert!(channel.deliver() && channel.deliver());
    assert!(channel.pop() && channel.pop());
    assert_eq!((channel.batches_popped, channel.newest_seen), (1, 1));
}
