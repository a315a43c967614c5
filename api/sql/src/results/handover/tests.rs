use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;

use super::*;

fn bytes(n: i64) -> Vec<u8> {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
    let chunk = Chunk::inserts(RecordBatch::try_from_iter([("n", column)]).unwrap());
    let mut out = Vec::new();
    chunk.encode(&mut out).unwrap();
    out
}

fn numbers(chunks: &[Chunk]) -> Vec<i64> {
    chunks.iter().map(|chunk| chunk.column(0).as_primitive::<Int64Type>().value(0)).collect()
}

#[test]
fn an_answer_that_is_lost_is_given_again() {
    let (mut outbox, mut inbox) = (Outbox::new(7, false, None).unwrap(), Inbox::default());
    assert!(inbox.take(outbox.answer(&inbox.question(true))).unwrap().is_empty(), "they get to know each other");
    outbox.push(bytes(1));
    outbox.push(bytes(2));
    let question = inbox.question(true);
    assert!(outbox.has_news_for(&question));
    let lost = outbox.answer(&question);
    assert_eq!(numbers(&inbox.take(outbox.answer(&question)).unwrap()), [1, 2]);
    assert!(inbox.take(lost).unwrap().is_empty(), "it comes late, and has nothing new");
    assert!(!outbox.is_empty(), "the client has not said that it has them");
    outbox.answer(&inbox.question(false));
    assert!(outbox.is_empty());
    assert!(!outbox.has_news_for(&inbox.question(true)));
}

#[test]
fn a_client_that_only_shows_that_it_is_there_is_given_nothing() {
    let (mut outbox, mut inbox) = (Outbox::new(7, false, None).unwrap(), Inbox::default());
    inbox.take(outbox.answer(&inbox.question(true))).unwrap();
    outbox.push(bytes(1));
    assert!(!outbox.has_news_for(&inbox.question(false)));
    assert_eq!(outbox.answer(&inbox.question(false)).chunks.len(), 0);
}

#[test]
fn an_outbox_is_full_before_it_is_large_and_answers_in_parts() {
    let (mut outbox, mut inbox) = (Outbox::new(7, false, None).unwrap(), Inbox::default());
    inbox.take(outbox.answer(&inbox.question(true))).unwrap();
    let mut count = 0;
    while !outbox.is_full() {
        outbox.push(bytes(count));
        count += 1;
    }
    outbox.push(bytes(count));
    let kept = outbox.chunks.iter().map(|chunk| chunk.len()).sum::<usize>();
    assert!(kept < KEPT_BYTES_MAX + 10_000, "{kept}");
    let mut got = Vec::new();
    while got.len() as i64 <= count {
        let answer = outbox.answer(&inbox.question(true));
        assert!(answer.chunks.iter().map(|chunk| chunk.len()).sum::<usize>() <= ANSWER_BYTES);
        got.extend(numbers(&inbox.take(answer).unwrap()));
    }
    assert_eq!(got, (0..=count).collect::<Vec<_>>());
}

#[test]
fn without_checkpoints_a_restart_is_an_error_that_says_what_to_do() {
    let mut inbox = Inbox::default();
    inbox.take(Outbox::new(7, false, None).unwrap().answer(&inbox.question(true))).unwrap();
    let error = inbox.take(Outbox::new(8, false, None).unwrap().answer(&inbox.question(true))).unwrap_err();
    assert!(error.message.contains("execution.checkpointing.interval"), "{error}");
}

#[test]
fn rows_that_another_client_has_taken_are_missed() {
    let (mut outbox, mut inbox, mut other) = (Outbox::new(7, false, None).unwrap(), Inbox::default(), Inbox::default());
    for client in [&mut inbox, &mut other] {
        client.take(outbox.answer(&client.question(true))).unwrap();
    }
    outbox.push(bytes(1));
    other.take(outbox.answer(&other.question(true))).unwrap();
    outbox.answer(&other.question(true));
    let error = inbox.take(outbox.answer(&inbox.question(true))).unwrap_err();
    assert!(error.message.contains("another client"), "{error}");
}

/// Something that happens to a job, its checkpoints, or the way between sink and client.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The sink is given a row.
    Row,
    /// A barrier comes to it.
    Barrier,
    /// The checkpoint is complete, and it hears of that.
    Completed,
    /// The checkpoint is complete, and the sink dies before it hears of that.
    CompletedUnheard,
    /// The job goes back to its last complete checkpoint.
    Failure,
    /// The client asks and gets the answer.
    Ask,
    /// The client asks, and the answer is lost.
    AskInVain,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        6 => Just(Row),
        2 => Just(Barrier),
        2 => Just(Completed),
        1 => Just(CompletedUnheard),
        1 => Just(Failure),
        4 => Just(Ask),
        1 => Just(AskInVain),
    ]
}

/// What a checkpoint has: the state of the sink, how many chunks it counted, and the row that comes next.
#[derive(Clone, Default)]
struct Checkpoint {
    state: Option<Vec<u8>>,
    count: u64,
    next: i64,
}

proptest! {
    #[test]
    fn each_row_is_shown_once_and_in_order_whatever_dies(happenings in prop::collection::vec(happening(), 0..200)) {
        let mut version = 1;
        let mut outbox = Outbox::new(version, true, None).unwrap();
        let mut inbox = Inbox::default();
        let (mut next, mut shown) = (0, Vec::new());
        let mut complete = Checkpoint::default();
        let mut pending: Option<Checkpoint> = None;
        for happening in happenings {
            let mut fails = matches!(happening, Happening::Failure);
            match happening {
                Happening::Row => {
                    outbox.push(bytes(next));
                    next += 1;
                }
                Happening::Barrier => {
                    let state = Some(outbox.state().unwrap());
                    pending = Some(Checkpoint { state, count: outbox.count(), next });
                }
                Happening::Completed => if let Some(done) = pending.take() {
                    outbox.completed(done.count);
                    complete = done;
                },
                Happening::CompletedUnheard => {
                    fails = pending.is_some();
                    complete = pending.take().unwrap_or(complete);
                }
                Happening::Failure => {}
                Happening::Ask => {
                    shown.extend(numbers(&inbox.take(outbox.answer(&inbox.question(true))).unwrap()));
                }
                Happening::AskInVain => drop(outbox.answer(&inbox.question(true))),
            }
            if fails {
                pending = None;
                version += 1;
                outbox = Outbox::new(version, true, complete.state.as_deref()).unwrap();
                next = complete.next;
            }
        }
        // The end: a last checkpoint, and a client that asks until nothing is left.
        outbox.completed(outbox.count());
        loop {
            shown.extend(numbers(&inbox.take(outbox.answer(&inbox.question(true))).unwrap()));
            if inbox.version == version && outbox.is_empty() && !outbox.has_news_for(&inbox.question(true)) {
                break;
            }
        }
        shown.extend(numbers(&inbox.finish()));
        prop_assert_eq!(shown, (0..next).collect::<Vec<_>>());
    }
}
