//! What works: order, backpressure, many channels, any order of registration.

use std::thread;
use std::time::Duration;

use flott_control::CheckpointKind;
use flott_network::Barrier;

use super::*;

fn everything_arrives_in_order(compression: bool) {
    let runtime = runtime();
    let options = Options { capacity_bytes: 50_000, compression };
    let (near, far) = (plane(&runtime, options), plane(&runtime, options));
    let (producer, consumer) = (Signal::new(), Signal::new());
    let receiver = far.receiver(channel(0), consumer.clone());
    let sender = near.sender(channel(0), &address(&far), producer.clone());
    assert!(!sender.is_local());

    const BATCHES: u32 = 500;
    let length = |index: u32| (index as usize * 7919) % 90_000;
    let barrier = Barrier { checkpoint: 8, triggered_ms: 9, kind: CheckpointKind::Final };
    thread::scope(|scope| {
        let sent_barrier = barrier.clone();
        scope.spawn(move || {
            for index in 0..BATCHES {
                send(&sender, &producer, batch(index, length(index)));
                send(&sender, &producer, Element::Watermark(index.into()));
            }
            sender.send(Element::Idle).unwrap();
            sender.send(Element::Active).unwrap();
            sender.send(Element::Barrier(sent_barrier)).unwrap();
            sender.send(Element::EndOfInput).unwrap();
        });
        for index in 0..BATCHES {
            assert_batch(&receive(&receiver, &consumer), index);
            let watermark = receive(&receiver, &consumer);
            assert!(matches!(watermark, Element::Watermark(at) if at == i64::from(index)), "{watermark:?}");
        }
        assert!(matches!(receive(&receiver, &consumer), Element::Idle));
        assert!(matches!(receive(&receiver, &consumer), Element::Active));
        assert!(matches!(receive(&receiver, &consumer), Element::Barrier(got) if got == barrier));
        assert!(matches!(receive(&receiver, &consumer), Element::EndOfInput));
    });

    // All data has ended, so that the connection may.
    drop(near);
    assert_no_failure(&runtime, &far);
}

#[test]
fn everything_arrives_in_order_plain() {
    everything_arrives_in_order(false);
}

#[test]
fn everything_arrives_in_order_compressed() {
    everything_arrives_in_order(true);
}

#[test]
fn a_slow_consumer_holds_back_its_own_channel_only() {
    const BATCH_BYTES: usize = 10_000;
    const BOUND_BYTES: u64 = OPTIONS.capacity_bytes + 11_000;
    let runtime = runtime();
    let (near, far) = (plane(&runtime, OPTIONS), plane(&runtime, OPTIONS));
    let (producer, consumer) = (Signal::new(), Signal::new());
    let slow_receiver = far.receiver(channel(0), Signal::new());
    let fast_receiver = far.receiver(channel(1), consumer.clone());
    let slow_producer = Signal::new();
    let slow_sender = near.sender(channel(0), &address(&far), slow_producer.clone());
    let fast_sender = near.sender(channel(1), &address(&far), producer.clone());

    wait_until("credit", || slow_sender.is_writable());
    let mut sent = 0;
    while slow_sender.is_writable() {
        slow_sender.send(batch(sent, BATCH_BYTES)).unwrap();
        sent += 1;
        assert!(u64::from(sent) * BATCH_BYTES as u64 <= BOUND_BYTES, "nothing held the producer back");
    }
    // What a step emits beyond the room is taken, but waits on this side.
    for _ in 0..20 {
        slow_sender.send(batch(sent, BATCH_BYTES)).unwrap();
        sent += 1;
    }
    slow_sender.send(Element::EndOfInput).unwrap();

    thread::scope(|scope| {
        scope.spawn(move || {
            for index in 0..500 {
                send(&fast_sender, &producer, batch(index, BATCH_BYTES));
            }
            fast_sender.send(Element::EndOfInput).unwrap();
        });
        for index in 0..500 {
            assert_batch(&receive(&fast_receiver, &consumer), index);
            assert!(fast_receiver.queued_bytes() <= BOUND_BYTES);
        }
        assert!(matches!(receive(&fast_receiver, &consumer), Element::EndOfInput));
    });

    assert!(slow_receiver.queued_bytes() >= OPTIONS.capacity_bytes);
    assert!(slow_receiver.queued_bytes() <= BOUND_BYTES);
    assert!(!slow_sender.is_writable());
    for index in 0..sent {
        wait_until("a batch", || !slow_receiver.is_empty());
        assert!(slow_receiver.queued_bytes() <= BOUND_BYTES);
        assert_batch(&slow_receiver.pop().unwrap(), index);
    }
    while !slow_sender.is_writable() {
        assert!(slow_producer.wait_until(Some(PATIENCE)), "the producer was not woken");
    }
    wait_until("the end", || matches!(slow_receiver.pop(), Some(Element::EndOfInput)));
}

/// Sends `batches` to every channel from one thread, as a slot does.
fn send_all(senders: &[Sender], producer: &Signal, batches: u32) {
    let mut sent = vec![0; senders.len()];
    loop {
        let mut has_moved = false;
        for (sender, sent) in senders.iter().zip(&mut sent) {
            if *sent < batches && sender.is_writable() {
                sender.send(batch(*sent, (*sent as usize * 31) % 5000)).unwrap();
                *sent += 1;
                has_moved = true;
                if *sent == batches {
                    sender.send(Element::EndOfInput).unwrap();
                }
            }
        }
        if sent.iter().all(|sent| *sent == batches) {
            return;
        }
        if !has_moved {
            assert!(producer.wait_until(Some(PATIENCE)), "the producer was not woken");
        }
    }
}

/// Receives what [`send_all`] sends.
fn receive_all(receivers: &[Receiver], consumer: &Signal, batches: u32) {
    let mut received = vec![0; receivers.len()];
    let mut open = receivers.len();
    while open > 0 {
        let mut has_moved = false;
        for (receiver, received) in receivers.iter().zip(&mut received) {
            assert_eq!(receiver.error(), None);
            match receiver.pop() {
                None => continue,
                Some(Element::EndOfInput) => {
                    assert_eq!(*received, batches);
                    open -= 1;
                }
                Some(element) => {
                    assert_batch(&element, *received);
                    *received += 1;
                }
            }
            has_moved = true;
        }
        if !has_moved {
            assert!(consumer.wait_until(Some(PATIENCE)), "the consumer was not woken");
        }
    }
}

#[test]
fn many_channels_share_a_connection_in_both_directions() {
    const CHANNELS: u32 = 50;
    const BATCHES: u32 = 300;
    let runtime = runtime();
    let options = Options { capacity_bytes: 7000, compression: false };
    let (near, far) = (plane(&runtime, options), plane(&runtime, options));
    thread::scope(|scope| {
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (producer, consumer) = (Signal::new(), Signal::new());
            let receivers: Vec<_> = (0..CHANNELS).map(|edge| to.receiver(channel(edge), consumer.clone())).collect();
            let peer = address(to);
            let senders: Vec<_> =
                (0..CHANNELS).map(|edge| from.sender(channel(edge), &peer, producer.clone())).collect();
            scope.spawn(move || send_all(&senders, &producer, BATCHES));
            scope.spawn(move || receive_all(&receivers, &consumer, BATCHES));
        }
    });
    assert_no_failure(&runtime, &near);
    assert_no_failure(&runtime, &far);
}

#[test]
fn a_sender_waits_for_a_receiver_that_registers_later() {
    let runtime = runtime();
    let (near, far) = (plane(&runtime, OPTIONS), plane(&runtime, OPTIONS));
    let (producer, consumer) = (Signal::new(), Signal::new());
    let sender = near.sender(channel(0), &address(&far), producer.clone());
    for index in 0..3 {
        sender.send(batch(index, 50_000)).unwrap();
    }
    assert!(!producer.wait_until(Some(Duration::from_millis(50))));
    assert!(!sender.is_writable());

    let receiver = far.receiver(channel(0), consumer.clone());
    for index in 0..3 {
        assert_batch(&receive(&receiver, &consumer), index);
    }
    send(&sender, &producer, Element::EndOfInput);
    assert!(matches!(receive(&receiver, &consumer), Element::EndOfInput));
}

#[test]
fn a_batch_larger_than_the_channel_passes() {
    let runtime = runtime();
    let options = Options { capacity_bytes: 1, compression: false };
    let (near, far) = (plane(&runtime, options), plane(&runtime, options));
    let (producer, consumer) = (Signal::new(), Signal::new());
    let sender = near.sender(channel(0), &address(&far), producer.clone());
    let receiver = far.receiver(channel(0), consumer.clone());
    for index in 0..5 {
        send(&sender, &producer, batch(index, 3_000_000));
        assert_batch(&receive(&receiver, &consumer), index);
    }
}
