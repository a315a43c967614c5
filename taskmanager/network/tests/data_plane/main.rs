//! Data planes that talk to each other over real sockets.

mod faults;
mod loopback;

use std::time::Duration;

use flott_control::ExecutionId;
use flott_core::ids::JobId;
use flott_network::{ChannelId, DataPlane, Element, Failure, Options, Payload, Receiver, Sender, Signal};
use tokio::runtime::{Builder, Runtime};

/// Long enough for any machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

const OPTIONS: Options = Options { capacity_bytes: 100_000, compression: false };

const GENERATION: u64 = 5;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn execution(generation: u64) -> ExecutionId {
    ExecutionId { job: JobId([3; 16]), generation }
}

fn plane(runtime: &Runtime, options: Options) -> DataPlane {
    DataPlane::bind("127.0.0.1:0", execution(GENERATION), runtime.handle(), options).unwrap()
}

fn address(plane: &DataPlane) -> String {
    plane.local_addr().to_string()
}

fn channel(edge: u32) -> ChannelId {
    ChannelId { edge, from: 0, to: 1 }
}

fn batch(index: u32, length: usize) -> Element {
    let mut data = index.to_le_bytes().to_vec();
    data.resize(length.max(4), index as u8);
    Element::Batch(Payload::Encoded { data: data.into(), rows: index })
}

/// Checks that it is the batch of this index, whole.
#[track_caller]
fn assert_batch(element: &Element, index: u32) {
    let Element::Batch(Payload::Encoded { data, rows }) = element else {
        panic!("not the batch {index} but {element:?}");
    };
    assert_eq!((&data[..4], *rows), (&index.to_le_bytes()[..], index));
    assert!(data[4..].iter().all(|byte| *byte == index as u8));
}

/// Sends when there is room.
#[track_caller]
fn send(sender: &Sender, producer: &Signal, element: Element) {
    while !sender.is_writable() {
        assert!(producer.wait_until(Some(PATIENCE)), "the producer was not woken");
    }
    sender.send(element).unwrap();
}

#[track_caller]
fn receive(receiver: &Receiver, consumer: &Signal) -> Element {
    loop {
        if let Some(element) = receiver.pop() {
            return element;
        }
        assert_eq!(receiver.error(), None);
        assert!(consumer.wait_until(Some(PATIENCE)), "the consumer was not woken");
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = flott_env::monotonic() + PATIENCE;
    while !is_true() {
        assert!(flott_env::monotonic() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[track_caller]
fn failure(runtime: &Runtime, plane: &DataPlane) -> Failure {
    let failure = plane.failure();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, failure).await }).expect("a failure")
}

#[track_caller]
fn assert_no_failure(runtime: &Runtime, plane: &DataPlane) {
    let failure = plane.failure();
    let failure = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(100), failure).await });
    assert!(failure.is_err(), "{failure:?}");
}
