use std::sync::Mutex;

use flott_core::Batch;
use flott_network::{Element, Payload, Sender, local_channel};
use flott_operators::{Control, Push};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::subtask::tests::subtask;

/// What does not get on with a chain.
const UNLUCKY: u32 = 13;

const PATIENCE: Duration = Duration::from_secs(20);

/// A chain that keeps what it gets, and whether it was asked for its state.
#[derive(Clone, Default)]
struct Chain(Arc<Mutex<(Vec<u32>, bool)>>);

impl Push<u32> for Chain {
    fn push(&mut self, batch: &mut Batch<u32>) -> Result<()> {
        assert!(!batch.rows.contains(&UNLUCKY), "{UNLUCKY} came");
        self.0.lock().unwrap().0.append(&mut batch.rows);
        Ok(())
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        self.0.lock().unwrap().1 |= matches!(control, Control::Release(_));
        Ok(())
    }
}

/// A slot with subtask 0 of some vertices, which have nothing to do with each other.
struct Bed {
    _io: Arc<Runtime>,
    slot: SlotHandle,
    events: mpsc::Receiver<SlotEvent>,
    inputs: Vec<Sender>,
    chains: Vec<Chain>,
}

fn id(vertex: u32) -> SubtaskId {
    SubtaskId { vertex, index: 0 }
}

impl Bed {
    fn new(vertices: u32) -> Self {
        let io = Arc::new(Builder::new_current_thread().build().unwrap());
        let signal = Signal::new();
        let (mut inputs, mut chains) = (Vec::new(), Vec::new());
        let mut makes: Vec<(SubtaskId, MakeSubtask)> = Vec::new();
        for vertex in 0..vertices {
            let (input, receiver) = local_channel(1 << 20, Signal::new(), signal.clone());
            let (io, chain) = (Arc::clone(&io), Chain::default());
            inputs.push(input);
            chains.push(chain.clone());
            let make = move || Ok(subtask(&io, (vertex, 0, 1), receiver, false, Box::new(chain), Vec::new()));
            makes.push((id(vertex), Box::new(make)));
        }
        let (sender, events) = mpsc::channel();
        let slot = SlotHandle::start(0, signal, makes, move |event| drop(sender.send(event))).unwrap();
        Self { _io: io, slot, events, inputs, chains }
    }

    fn send(&self, vertex: u32, row: u32) {
        let batch = Box::new(Batch::from_rows(vec![row]));
        self.inputs[vertex as usize].send(Element::Batch(Payload::Local { batch, rows: 1, bytes: 0 })).unwrap();
    }

    fn wait_for(&self, vertex: u32, rows: &[u32]) {
        let until = flott_env::monotonic() + PATIENCE;
        while self.chains[vertex as usize].0.lock().unwrap().0 != rows {
            assert!(flott_env::monotonic() < until, "vertex {vertex} did not get {rows:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn next(&self) -> SlotEvent {
        self.events.recv_timeout(PATIENCE).unwrap()
    }

    fn release(&self, carried: &[u32], failed: &[u32]) {
        let ids = |vertices: &[u32]| vertices.iter().copied().map(id).collect();
        let release = Release { checkpoint: Some(7), carried: ids(carried), failed: ids(failed) };
        self.slot.order(Order::Release(Arc::new(release)));
        assert!(matches!(self.next(), SlotEvent::Released { checkpoint: Some(7), .. }));
    }

    fn was_asked(&self, vertex: u32) -> bool {
        self.chains[vertex as usize].0.lock().unwrap().1
    }

    fn has_ended(&self) -> bool {
        matches!(self.events.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected))
    }
}

#[test]
fn a_subtask_that_fails_is_set_aside_and_the_others_go_on() {
    let bed = Bed::new(3);
    bed.send(0, UNLUCKY);
    assert!(matches!(bed.next(), SlotEvent::Failed(failed, _) if failed == id(0)));
    bed.send(1, 5);
    bed.send(2, 6);
    bed.wait_for(1, &[5]);
    bed.wait_for(2, &[6]);
    bed.slot.order(Order::Cancel);
    let SlotEvent::Stopped { mut unfinished } = bed.next() else { panic!("it was to stop") };
    unfinished.sort_unstable();
    assert_eq!(unfinished, [id(0), id(1), id(2)], "with all that had not finished");
}

#[test]
fn what_carries_over_runs_on_while_the_rest_gives_its_state_away() {
    let bed = Bed::new(3);
    bed.send(0, UNLUCKY);
    assert!(matches!(bed.next(), SlotEvent::Failed(failed, _) if failed == id(0)));
    bed.release(&[1], &[0]);
    assert_eq!([0, 1, 2].map(|vertex| bed.was_asked(vertex)), [false, false, true], "nobody trusts what failed");
    bed.send(1, 5);
    bed.wait_for(1, &[5]);
    bed.release(&[], &[]);
    assert!(bed.was_asked(1));
    assert!(bed.has_ended(), "nothing is left");
}

#[test]
fn a_slot_with_nothing_but_failures_waits_for_what_becomes_of_them() {
    let bed = Bed::new(1);
    bed.send(0, UNLUCKY);
    assert!(matches!(bed.next(), SlotEvent::Failed(failed, _) if failed == id(0)));
    bed.release(&[], &[]);
    assert!(bed.was_asked(0), "it had only lost a connection");
    assert!(bed.has_ended());
}
