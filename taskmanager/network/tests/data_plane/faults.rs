//! What fails: peers that die, lie, are stale or strangers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use flott_control::CheckpointKind;
use flott_network::Barrier;
use flott_network::framing::{self, EncodedFrame};
use flott_network::handshake::{ANSWER_BYTES, Hello, reason_bytes};

use super::*;

/// A peer that speaks the protocol as far as a test wants it to.
struct RawPeer(TcpStream);

impl RawPeer {
    fn connect(plane: &DataPlane) -> Self {
        let stream = TcpStream::connect(plane.local_addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// One that the plane has accepted.
    fn introduced(plane: &DataPlane) -> Self {
        let mut peer = Self::connect(plane);
        assert_eq!(peer.introduce(Hello::new(execution(GENERATION), 1234)), "");
        peer
    }

    /// Returns why it was refused.
    fn introduce(&mut self, hello: Hello) -> String {
        self.0.write_all(&hello.encode()).unwrap();
        let mut answer = [0; ANSWER_BYTES];
        self.0.read_exact(&mut answer).unwrap();
        let mut reason = vec![0; reason_bytes(&answer).unwrap()];
        self.0.read_exact(&mut reason).unwrap();
        String::from_utf8(reason).unwrap()
    }

    fn write(&mut self, frame: &EncodedFrame) {
        self.0.write_all(&frame.header).unwrap();
        self.0.write_all(&frame.payload).unwrap();
    }

    /// Opens a channel and waits for its credit.
    fn open(&mut self, edge: u32) {
        self.write(&framing::encode_open(channel(edge)));
        let mut credit = [0; framing::HEADER_BYTES + 8];
        self.0.read_exact(&mut credit).unwrap();
    }

    /// Waits until the plane closes the connection.
    fn wait_for_close(&mut self) {
        let mut rest = Vec::new();
        // A reset is a close as well.
        let _closed = self.0.read_to_end(&mut rest);
    }
}

fn encoded(element: Element) -> EncodedFrame {
    framing::encode_element(channel(0), element, false).unwrap()
}

#[test]
fn a_peer_that_dies_is_reported_and_closes_its_channels() {
    let runtime = runtime();
    let (near, far) = (plane(&runtime, OPTIONS), plane(&runtime, OPTIONS));
    let (producer, consumer) = (Signal::new(), Signal::new());
    let sender = near.sender(channel(0), &address(&far), Signal::new());
    let receiver = far.receiver(channel(0), consumer.clone());
    let unrelated = far.receiver(channel(1), Signal::new());
    let back_receiver = near.receiver(channel(2), Signal::new());
    let back_sender = far.sender(channel(2), &address(&near), producer.clone());
    send(&back_sender, &producer, Element::Idle);
    wait_until("credit", || sender.is_writable());
    sender.send(batch(0, 10)).unwrap();
    assert_batch(&receive(&receiver, &consumer), 0);

    let near_address = address(&near);
    drop(near);
    let failure = failure(&runtime, &far);
    assert_eq!(failure.peer, near_address);
    assert!(failure.to_string().contains("worker at 127.0.0.1:"), "{failure}");
    wait_until("a closed receiver", || receiver.error().is_some());
    assert!(consumer.wait_until(Some(PATIENCE)));
    let error = receiver.error().unwrap();
    assert!(error.message.contains("before the end of the data") || error.message.contains("reset"), "{error}");
    wait_until("a closed sender", || back_sender.is_writable() && back_sender.send(Element::Active).is_err());
    assert_eq!(unrelated.error(), None);

    // Those of the plane that was dropped know it, too.
    assert!(sender.send(Element::Idle).unwrap_err().message.contains("shut down"));
    assert!(back_receiver.error().unwrap().message.contains("shut down"));
}

#[test]
fn a_stale_generation_is_refused_on_both_sides() {
    let runtime = runtime();
    let far = plane(&runtime, OPTIONS);
    let zombie = DataPlane::bind("127.0.0.1:0", execution(4), runtime.handle(), OPTIONS).unwrap();
    let producer = Signal::new();
    let receiver = far.receiver(channel(0), Signal::new());
    let sender = zombie.sender(channel(0), &address(&far), producer.clone());
    sender.send(batch(0, 10)).unwrap();

    let failure = failure(&runtime, &zombie);
    assert_eq!(failure.peer, address(&far));
    assert!(failure.to_string().contains("refused it: data of the stale generation 4 of job 0303"), "{failure}");
    wait_until("a closed sender", || sender.is_writable());
    assert!(producer.wait_until(Some(PATIENCE)));
    assert!(sender.send(batch(1, 10)).unwrap_err().message.contains("stale generation"));

    assert!(receiver.is_empty());
    assert_eq!(receiver.error(), None);
    assert_no_failure(&runtime, &far);
}

#[test]
fn strangers_are_turned_away_and_harm_nothing() {
    let runtime = runtime();
    let (near, far) = (plane(&runtime, OPTIONS), plane(&runtime, OPTIONS));
    let mut browser = RawPeer::connect(&far);
    browser.0.write_all(b"GET / HTTP/1.1\r\nHost: flott\r\nAccept: */*\r\n\r\n").unwrap();
    browser.wait_for_close();
    let _silent = RawPeer::connect(&far);
    drop(RawPeer::connect(&far));
    let mut newer = RawPeer::connect(&far);
    let refusal = newer.introduce(Hello { version: 77, ..Hello::new(execution(GENERATION), 0) });
    assert!(refusal.contains("protocol version 77"), "{refusal}");

    let (producer, consumer) = (Signal::new(), Signal::new());
    let receiver = far.receiver(channel(0), consumer.clone());
    let sender = near.sender(channel(0), &address(&far), producer.clone());
    send(&sender, &producer, batch(7, 10));
    assert_batch(&receive(&receiver, &consumer), 7);
    assert_no_failure(&runtime, &far);
}

#[test]
fn corrupt_bytes_fail_the_connection() {
    let runtime = runtime();
    let far = plane(&runtime, OPTIONS);
    let consumer = Signal::new();
    let receiver = far.receiver(channel(0), consumer.clone());
    let mut peer = RawPeer::introduced(&far);
    peer.open(0);
    peer.write(&encoded(batch(1, 500)));
    let mut damaged = encoded(batch(2, 500));
    let mut payload = damaged.payload.to_vec();
    payload[100] ^= 1;
    damaged.payload = payload.into();
    peer.write(&damaged);
    peer.wait_for_close();

    let failure = failure(&runtime, &far);
    assert_eq!(failure.peer, "127.0.0.1:1234");
    assert!(failure.to_string().contains("does not match its checksum"), "{failure}");
    assert_batch(&receiver.pop().unwrap(), 1);
    wait_until("a closed receiver", || receiver.error().is_some());
    assert!(receiver.pop().is_none());
}

#[test]
fn peers_that_break_the_rules_are_cut_off() {
    let check = |expected: &str, misbehave: &dyn Fn(&mut RawPeer)| {
        let runtime = runtime();
        let far = plane(&runtime, OPTIONS);
        let _receiver = far.receiver(channel(0), Signal::new());
        let mut peer = RawPeer::introduced(&far);
        misbehave(&mut peer);
        let failure = failure(&runtime, &far);
        assert!(failure.to_string().contains(expected), "{failure}");
        peer.wait_for_close();
    };
    check("which is not open", &|peer| peer.write(&encoded(batch(0, 10))));
    check("is opened twice", &|peer| {
        peer.open(0);
        peer.write(&framing::encode_open(channel(0)));
    });
    check("before any credit", &|peer| {
        peer.write(&framing::encode_open(channel(9)));
        let barrier = framing::encode_element(channel(9), Element::Active, false).unwrap();
        peer.write(&barrier);
    });
    check("beyond the credit", &|peer| {
        peer.open(0);
        for index in 0..3 {
            peer.write(&encoded(batch(index, 60_000)));
        }
    });
    check("a sender granted credit", &|peer| peer.write(&framing::encode_credit(channel(0), 1)));
    check("after their end", &|peer| {
        peer.open(0);
        peer.write(&encoded(Element::EndOfInput));
        let barrier = Barrier { checkpoint: 1, triggered_ms: 0, kind: CheckpointKind::Final };
        peer.write(&encoded(Element::Barrier(barrier)));
        peer.write(&encoded(batch(0, 10)));
    });
    check("bytes into a frame", &|peer| {
        peer.0.write_all(&encoded(Element::Active).header[..10]).unwrap();
        peer.0.shutdown(std::net::Shutdown::Write).unwrap();
    });
    check("before the end of the data", &|peer| {
        peer.open(0);
        peer.0.shutdown(std::net::Shutdown::Write).unwrap();
    });
}

#[test]
fn a_receiver_that_lies_about_credit_is_cut_off() {
    let runtime = runtime();
    let near = plane(&runtime, OPTIONS);
    let liar = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = near.sender(channel(0), &liar.local_addr().unwrap().to_string(), Signal::new());
    let (mut stream, _) = liar.accept().unwrap();
    stream.read_exact(&mut [0; flott_network::handshake::HELLO_BYTES]).unwrap();
    stream.write_all(&flott_network::handshake::accept()).unwrap();
    let grant = framing::encode_credit(channel(0), u64::MAX);
    stream.write_all(&[&grant.header[..], &grant.payload].concat()).unwrap();

    let failure = failure(&runtime, &near);
    assert!(failure.to_string().contains("protocol violation: a grant of"), "{failure}");
    wait_until("a closed sender", || sender.is_writable() && sender.send(Element::Active).is_err());
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let runtime = runtime();
    let first = plane(&runtime, OPTIONS);
    let address = address(&first);
    let error = DataPlane::bind(&address, execution(GENERATION), runtime.handle(), OPTIONS).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("listening for data on {address}: the port is in use: choose another one, or 0 for any that is free")
    );
}

#[test]
fn a_worker_that_is_not_there_is_given_up() {
    let runtime = runtime();
    let near = plane(&runtime, OPTIONS);
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let sender = near.sender(channel(0), &unused, Signal::new());
    let failure = failure(&runtime, &near);
    assert_eq!(failure.peer, unused);
    assert!(failure.to_string().contains("no connection after 6 attempts"), "{failure}");
    wait_until("a closed sender", || sender.is_writable());
    // A later channel to the same worker learns it at once.
    let late = near.sender(channel(1), &unused, Signal::new());
    assert!(late.is_writable());
    assert!(late.send(Element::Idle).unwrap_err().message.contains("no connection after"));
}

#[test]
fn a_receiver_that_is_dropped_holds_its_sender_back_and_nobody_else() {
    let runtime = runtime();
    let (near, far) = (plane(&runtime, OPTIONS), plane(&runtime, OPTIONS));
    let (producer, consumer) = (Signal::new(), Signal::new());
    let dropped = far.receiver(channel(0), Signal::new());
    let kept = far.receiver(channel(1), consumer.clone());
    let to_dropped = near.sender(channel(0), &address(&far), Signal::new());
    let to_kept = near.sender(channel(1), &address(&far), producer.clone());
    wait_until("credit", || to_dropped.is_writable());
    drop(dropped);
    while to_dropped.is_writable() {
        to_dropped.send(batch(0, 10_000)).unwrap();
    }
    for index in 0..100 {
        send(&to_kept, &producer, batch(index, 10_000));
        assert_batch(&receive(&kept, &consumer), index);
    }
    assert!(!to_dropped.is_writable());
    assert_no_failure(&runtime, &far);
}
