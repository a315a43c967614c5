use flott_control::CheckpointKind;
use proptest::prelude::*;

use super::*;

const CHANNEL: ChannelId = ChannelId { edge: 1, from: 2, to: u32::MAX };

/// One of everything that can be on the wire, built anew each time since elements cannot be cloned.
fn samples() -> Vec<EncodedFrame> {
    let batch = |data: Vec<u8>, compress| {
        let element = Element::Batch(Payload::Encoded { data: data.into(), rows: 9 });
        encode_element(CHANNEL, element, compress).unwrap()
    };
    let barrier = |kind| {
        let barrier = Barrier { checkpoint: 3, triggered_ms: -4, kind };
        encode_element(CHANNEL, Element::Barrier(barrier), true).unwrap()
    };
    let element = |element| encode_element(CHANNEL, element, true).unwrap();
    vec![
        encode_open(CHANNEL),
        encode_credit(CHANNEL, u64::MAX),
        batch(Vec::new(), false),
        batch(noise(100), true),
        batch(noise(SLICE_BYTES_MIN * 2), false),
        batch(noise(SLICE_BYTES_MIN), true),
        batch(vec![7; 10_000], true),
        element(Element::Watermark(i64::MIN)),
        element(Element::Idle),
        element(Element::Active),
        barrier(CheckpointKind::Checkpoint),
        barrier(CheckpointKind::Final),
        barrier(CheckpointKind::Savepoint { dir: "s3://bücket/\"a\"".into(), stop: true, drain: false }),
        element(Element::EndOfInput),
        unaligned_barrier(70_000),
    ]
}

fn unaligned_barrier(overtaken: u32) -> EncodedFrame {
    let barrier = Barrier { checkpoint: 5, triggered_ms: 6, kind: CheckpointKind::Checkpoint };
    encode_element(CHANNEL, Element::UnalignedBarrier { barrier, overtaken }, true).unwrap()
}

/// What does not compress.
fn noise(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| xxh3_64(&i.to_le_bytes()) as u8).collect()
}

fn wire(frames: &[EncodedFrame]) -> Vec<u8> {
    frames.iter().flat_map(|frame| frame.header.iter().chain(&frame.payload)).copied().collect()
}

/// Feeds the stream piece by piece; returns the text of all frames, and the error that ended it.
fn decode_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Option<Error>) {
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match decode(&mut buffer) {
                Ok(Some(frame)) => frames.push(format!("{frame:?}")),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

#[test]
fn every_frame_survives_the_wire() {
    let (frames, error) = decode_pieces([&wire(&samples())[..]]);
    assert_eq!(error, None);
    let expect = |index: usize, text: &str| {
        assert!(frames[index].contains(text), "frame {index} is {}", &frames[index][..frames[index].len().min(300)]);
    };
    assert_eq!(frames.len(), samples().len());
    expect(0, "ChannelId { edge: 1, from: 2, to: 4294967295 }, body: Open");
    expect(1, "Credit(18446744073709551615)");
    expect(2, "data: b\"\", rows: 9");
    expect(6, &"\\x07".repeat(10_000));
    expect(7, "Watermark(-9223372036854775808)");
    expect(8, "Idle");
    expect(9, "Active");
    expect(10, "checkpoint: 3, triggered_ms: -4, kind: Checkpoint");
    expect(12, "kind: Savepoint { dir: \"s3://bücket/\\\"a\\\"\", stop: true, drain: false }");
    expect(13, "EndOfInput");
    expect(14, "checkpoint: 5, triggered_ms: 6, kind: Checkpoint }, overtaken: 70000");
}

#[test]
fn frames_know_what_they_carry_without_being_decoded() {
    let frames = samples();
    let other = ChannelId { from: 3, ..CHANNEL };
    let elements: Vec<usize> = (0..frames.len()).filter(|at| frames[*at].is_element_of(CHANNEL)).collect();
    assert_eq!(elements, (2..=13).collect::<Vec<_>>());
    assert!(!frames.iter().any(|frame| frame.is_element_of(other)));
    let barriers: Vec<usize> = (0..frames.len()).filter(|at| frames[*at].is_barrier()).collect();
    assert_eq!(barriers, [10, 11, 12]);
}

#[test]
fn compression_is_used_where_it_helps() {
    let frames = samples();
    assert!(frames[6].payload.len() < 200);
    assert_eq!(frames[5].payload.len(), SLICE_BYTES_MIN);
    assert_eq!(frames[5].header[5], 0);
}

#[test]
fn what_cannot_leave_the_process_is_refused() {
    let local = Element::Batch(Payload::Local { batch: Box::new(1), rows: 1, bytes: 8 });
    assert!(encode_element(CHANNEL, local, false).unwrap_err().message.contains("not encoded"));
    let data = Bytes::from(vec![0; PAYLOAD_BYTES_MAX + 1]);
    let huge = Element::Batch(Payload::Encoded { data, rows: 3 });
    let error = encode_element(CHANNEL, huge, false).unwrap_err();
    assert!(error.message.starts_with("a batch of 3 rows takes 67108865 bytes"), "{error}");
}

/// A header that is what its checksum says, whatever else is wrong with it.
fn sealed(mut header: [u8; HEADER_BYTES]) -> Vec<u8> {
    let check = header_check(&header);
    header[CHECKED_BYTES..].copy_from_slice(&check.to_le_bytes());
    header.to_vec()
}

#[test]
fn headers_that_lie_are_refused_before_anything_is_allocated() {
    let refused = |at: usize, bytes: &[u8]| {
        let mut header = encode_open(CHANNEL).header;
        header[at..at + bytes.len()].copy_from_slice(bytes);
        let (frames, error) = decode_pieces([&sealed(header)[..]]);
        assert_eq!(frames, Vec::<String>::new());
        error.expect("refused").message
    };
    assert!(refused(0, &u32::MAX.to_le_bytes()).contains("the most is 67108864"));
    assert!(refused(24, &u32::MAX.to_le_bytes()).contains("the most is 67108864"));
    assert!(refused(24, &[1]).contains("0 and 1 bytes"));
    assert!(refused(4, &[99]).contains("kind 99"));
    assert!(refused(4, &[KIND_CREDIT]).contains("0 bytes where 8 belong"));
    assert!(refused(4, &[KIND_UNALIGNED_BARRIER]).contains("0 bytes where a barrier belongs"));
    assert!(refused(5, &[FLAG_LZ4]).contains("flags 1"));
    assert!(refused(6, &[1]).contains("corrupt data"));
}

#[test]
fn a_lie_about_the_decompressed_size_is_refused() {
    for size in [0u32, 9_999, 10_001] {
        let mut frame = samples().swap_remove(6);
        frame.header[24..28].copy_from_slice(&size.to_le_bytes());
        let stream = [&sealed(frame.header)[..], &frame.payload].concat();
        let (_, error) = decode_pieces([&stream[..]]);
        assert!(error.expect("refused").message.contains("decompress"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_stream_may_be_split_anywhere(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let stream = wire(&samples());
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        at.extend([0, stream.len()]);
        at.sort_unstable();
        let split = decode_pieces(at.windows(2).map(|ends| &stream[ends[0]..ends[1]]));
        prop_assert_eq!(split, decode_pieces([&stream[..]]));
    }

    #[test]
    fn a_truncated_stream_gives_a_prefix_and_no_error(cut in any::<prop::sample::Index>()) {
        let stream = wire(&samples());
        let (whole, _) = decode_pieces([&stream[..]]);
        let (frames, error) = decode_pieces([&stream[..cut.index(stream.len())]]);
        prop_assert_eq!(error, None);
        prop_assert!(frames.len() < whole.len());
        prop_assert_eq!(&frames[..], &whole[..frames.len()]);
    }

    #[test]
    fn a_changed_byte_is_always_found(at in any::<prop::sample::Index>(), change in 1u8..) {
        let mut stream = wire(&samples());
        let (whole, _) = decode_pieces([&stream[..]]);
        let at = at.index(stream.len());
        stream[at] ^= change;
        let (frames, error) = decode_pieces([&stream[..]]);
        prop_assert!(error.is_some());
        prop_assert_eq!(&frames[..], &whole[..frames.len()]);
    }

    #[test]
    fn garbage_is_refused(garbage in prop::collection::vec(any::<u8>(), HEADER_BYTES..4096)) {
        let (frames, error) = decode_pieces([&garbage[..]]);
        prop_assert!(frames.is_empty());
        prop_assert!(error.is_some());
    }

    #[test]
    fn garbage_with_good_checksums_never_panics(
        kind in 0u8..12,
        flags in 0u8..3,
        size in 0u32..100_000,
        payload in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let header = Header {
            channel: CHANNEL, kind, flags, rows: 1, size: size as usize, length: payload.len(),
        };
        let frame = header.seal(payload.into());
        let (frames, error) = decode_pieces([&wire(&[frame])[..]]);
        prop_assert_eq!(frames.is_empty(), error.is_some());
    }
}
