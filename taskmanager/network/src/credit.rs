//! Flow control of one channel between processes, as two pure state machines.
//!
//! The receiver grants credit in bytes. The sender may put an element on the wire while its credit
//! is above 0, whatever the element costs, so what is on the wire or queued at the receiver is less
//! than the capacity plus one element. What is popped from the queue becomes credit again, a
//! quarter of the capacity at a time, since a grant is a frame and a wake-up.
//!
//! A barrier that overtakes needs no credit, and the elements that it overtakes at the sender follow it
//! with or without: the receiver has to have them for its snapshot, and it only moves what waits from one
//! end to the other. The credit is overdrawn by them, so nothing else follows until they have been popped.
//!
//! No deadlock: a sender without credit, whose elements have all arrived and been popped, is owed
//! the whole capacity, which is more than the quarter that may be retained.

use flott_core::{Error, Result};

/// No channel has more credit than this, whatever the peer says: 1 TiB.
const CREDIT_BYTES_MAX: u64 = 1 << 40;

/// The sender's half.
#[derive(Clone, Debug, Default)]
pub struct SendCredit {
    /// Below 0 by at most the element that used up the last of it, and by what was overdrawn.
    available_bytes: i64,
    is_open: bool,
}

impl SendCredit {
    /// No credit: the receiver has not granted any yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an element may be sent now.
    pub fn is_available(&self) -> bool {
        self.available_bytes > 0
    }

    /// Whether any credit was ever granted, so that there is a receiver.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Pays for an element that a barrier has overtaken, whether there is any credit or not.
    pub fn overdraw(&mut self, cost_bytes: u64) {
        self.available_bytes = self.available_bytes.saturating_sub_unsigned(cost_bytes);
    }

    /// Pays for an element if there is any credit, and returns whether there was.
    pub fn spend(&mut self, cost_bytes: u64) -> bool {
        let may_send = self.is_available();
        if may_send {
            self.available_bytes = self.available_bytes.saturating_sub_unsigned(cost_bytes);
        }
        may_send
    }

    /// Takes in a grant. Fails if it cannot be an honest one.
    pub fn grant(&mut self, bytes: u64) -> Result<()> {
        let available = self.available_bytes.saturating_add_unsigned(bytes);
        if bytes == 0 || available > CREDIT_BYTES_MAX as i64 {
            return Err(Error::system(format!("protocol violation: a grant of {bytes} bytes of credit")));
        }
        self.available_bytes = available;
        self.is_open = true;
        Ok(())
    }
}

/// The receiver's half.
#[derive(Clone, Debug)]
pub struct ReceiveCredit {
    capacity_bytes: u64,
    /// The sender's credit once every grant has reached it, less what has arrived from it.
    available_bytes: i64,
    /// Popped and not yet granted again.
    unreturned_bytes: u64,
    /// How many of the next elements need no credit.
    overtaken: u32,
}

impl ReceiveCredit {
    /// A channel of this capacity, from 1 byte to 1 TiB, which has granted nothing yet.
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes: capacity_bytes.clamp(1, CREDIT_BYTES_MAX),
            available_bytes: 0,
            unreturned_bytes: 0,
            overtaken: 0,
        }
    }

    /// The first grant, made when both ends are there.
    pub fn open(&mut self) -> u64 {
        self.available_bytes = self.capacity_bytes as i64;
        self.capacity_bytes
    }

    /// A barrier came that has overtaken so many elements on its way: they follow now. Those that an earlier one had
    /// overtaken and that have not come yet are among them.
    pub fn overtaken(&mut self, elements: u32) {
        self.overtaken = self.overtaken.max(elements);
    }

    /// Takes in an element. Fails if the sender had no credit for it and it was not overtaken.
    pub fn receive(&mut self, cost_bytes: u64) -> Result<()> {
        if self.overtaken > 0 {
            self.overtaken -= 1;
        } else if self.available_bytes <= 0 {
            return Err(Error::system("protocol violation: data beyond the credit of its channel"));
        }
        self.available_bytes = self.available_bytes.saturating_sub_unsigned(cost_bytes);
        Ok(())
    }

    /// An element left the queue; returns the grant that is now to be sent, if any.
    pub fn consume(&mut self, cost_bytes: u64) -> Option<u64> {
        self.unreturned_bytes += cost_bytes;
        if self.unreturned_bytes < self.capacity_bytes.div_ceil(4) {
            return None;
        }
        self.available_bytes = self.available_bytes.saturating_add_unsigned(self.unreturned_bytes);
        Some(std::mem::take(&mut self.unreturned_bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Both halves, the wires between them, and the queues at their ends.
    struct Channel {
        capacity: u64,
        sender: SendCredit,
        receiver: ReceiveCredit,
        held: VecDeque<u64>,
        data_wire: VecDeque<u64>,
        grant_wire: VecDeque<u64>,
        queue: VecDeque<u64>,
        popped: Vec<u64>,
    }

    impl Channel {
        fn new(capacity: u64) -> Self {
            let mut receiver = ReceiveCredit::new(capacity);
            let grant = receiver.open();
            Self {
                capacity,
                sender: SendCredit::new(),
                receiver,
                held: VecDeque::new(),
                data_wire: VecDeque::new(),
                grant_wire: VecDeque::from([grant]),
                queue: VecDeque::new(),
                popped: Vec::new(),
            }
        }

        fn flush(&mut self) {
            while let Some(&cost) = self.held.front() {
                if !self.sender.spend(cost) {
                    break;
                }
                self.held.pop_front();
                self.data_wire.push_back(cost);
            }
        }

        /// One step of one part; returns whether it did anything.
        fn step(&mut self, part: u8) -> bool {
            match part {
                0 => match self.data_wire.pop_front() {
                    Some(cost) => {
                        self.receiver.receive(cost).expect("an honest sender is never accused");
                        self.queue.push_back(cost);
                        true
                    }
                    None => false,
                },
                1 => match self.grant_wire.pop_front() {
                    Some(grant) => {
                        self.sender.grant(grant).expect("an honest receiver is never accused");
                        self.flush();
                        true
                    }
                    None => false,
                },
                _ => match self.queue.pop_front() {
                    Some(cost) => {
                        self.popped.push(cost);
                        self.grant_wire.extend(self.receiver.consume(cost));
                        true
                    }
                    None => false,
                },
            }
        }

        fn check_bound(&self, cost_max: u64) {
            let in_flight: u64 = self.data_wire.iter().chain(&self.queue).sum();
            assert!(in_flight < self.capacity + cost_max, "{in_flight} bytes in flight");
        }
    }

    proptest! {
        #[test]
        fn everything_arrives_and_the_bound_holds(
            capacity in 1u64..2000,
            costs in prop::collection::vec(1u64..1500, 0..100),
            steps in prop::collection::vec(0u8..4, 0..400),
        ) {
            let cost_max = costs.iter().copied().max().unwrap_or(0);
            let mut channel = Channel::new(capacity);
            let mut to_send = costs.iter().copied();
            for step in steps {
                match step {
                    3 => {
                        channel.held.extend(to_send.next());
                        channel.flush();
                    }
                    part => {
                        channel.step(part);
                    }
                }
                channel.check_bound(cost_max);
            }
            channel.held.extend(to_send);
            channel.flush();
            while (0..3).any(|part| channel.step(part)) {
                channel.check_bound(cost_max);
            }
            prop_assert_eq!(channel.popped, costs);
            prop_assert!(channel.sender.is_available());
        }

        #[test]
        fn a_peer_that_says_anything_causes_errors_at_most(
            grants in prop::collection::vec(any::<u64>(), 0..20),
            costs in prop::collection::vec(0u64..1 << 27, 0..20),
        ) {
            let mut sender = SendCredit::new();
            for grant in grants {
                let _refused = sender.grant(grant);
                sender.spend(1 << 26);
            }
            let mut receiver = ReceiveCredit::new(1 << 20);
            receiver.open();
            let mut in_flight = 0;
            for cost in costs {
                if receiver.receive(cost).is_ok() {
                    prop_assert!(in_flight < 1 << 20);
                    in_flight += cost;
                }
            }
        }
    }

    #[test]
    fn what_a_barrier_overtakes_may_overdraw_the_credit() {
        let (mut sender, mut receiver) = (SendCredit::new(), ReceiveCredit::new(1000));
        assert!(!sender.is_open());
        sender.grant(receiver.open()).unwrap();
        assert!(sender.is_open() && sender.spend(1000));
        receiver.receive(1000).unwrap();
        // Two elements wait at the sender when a barrier goes before them.
        receiver.overtaken(2);
        for cost in [400, 300] {
            sender.overdraw(cost);
            receiver.receive(cost).unwrap();
        }
        assert!(receiver.receive(1).is_err());
        // What was overdrawn has to be popped before there is credit again.
        for cost in [400, 300] {
            sender.grant(receiver.consume(cost).unwrap()).unwrap();
            assert!(!sender.is_available());
        }
        sender.grant(receiver.consume(1000).unwrap()).unwrap();
        assert!(sender.is_available());
        receiver.receive(1).unwrap();
    }

    #[test]
    fn nothing_is_sent_before_the_first_grant() {
        let mut sender = SendCredit::new();
        assert!(!sender.spend(1));
        sender.grant(10).unwrap();
        assert!(sender.spend(1000));
        assert!(!sender.spend(1));
        sender.grant(990).unwrap();
        assert!(!sender.is_available());
        sender.grant(1).unwrap();
        assert!(sender.is_available());
    }

    #[test]
    fn credit_comes_back_a_quarter_at_a_time() {
        let mut receiver = ReceiveCredit::new(1000);
        assert_eq!(receiver.open(), 1000);
        receiver.receive(240).unwrap();
        receiver.receive(20).unwrap();
        assert_eq!(receiver.consume(240), None);
        assert_eq!(receiver.consume(20), Some(260));
        assert_eq!(receiver.consume(20), None);
    }
}
