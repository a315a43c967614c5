//! The two ends of an offer of rows: a sink that hands them out, and the JobManager that passes questions on to it.

use std::time::Duration;

use flott_control::ExecutionId;
use flott_core::{Error, Result};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::convert::execution;
use crate::wire;
use crate::wire::rows_up::Kind;

/// How long a sink may take to say whose rows it offers.
const OFFER_TIMEOUT: Duration = Duration::from_secs(10);

/// How many questions and answers may wait: whoever asks waits for the answer first.
const QUEUE_MESSAGES: usize = 2;

/// The largest answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 48 << 20;

/// A question or its answer, which has the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsMessage {
    /// Which question of the connection it is.
    pub number: u64,
    /// What sink and client have agreed on.
    pub content: Vec<u8>,
}

/// The end of a sink. Dropping it takes the offer back.
#[derive(Debug)]
pub struct RowsSession {
    /// From a client. `None` means that the connection is lost.
    pub questions: mpsc::Receiver<RowsMessage>,
    /// To it.
    pub answers: mpsc::Sender<RowsMessage>,
}

/// The end of the JobManager. Dropping it closes the connection.
#[derive(Debug)]
pub struct RowsOffer {
    /// Whose rows they are.
    pub execution: ExecutionId,
    /// To the sink.
    pub questions: mpsc::Sender<RowsMessage>,
    /// From it. `None` means that it is gone.
    pub answers: mpsc::Receiver<RowsMessage>,
}

/// Both ends within one process.
pub fn pair(execution: ExecutionId) -> (RowsSession, RowsOffer) {
    let (question_sender, questions) = mpsc::channel(QUEUE_MESSAGES);
    let (answers, answer_receiver) = mpsc::channel(QUEUE_MESSAGES);
    (RowsSession { questions, answers }, RowsOffer { execution, questions: question_sender, answers: answer_receiver })
}

/// What a sink sends: its offer, then answers.
pub(crate) fn outbound(
    execution: ExecutionId,
    answers: mpsc::Receiver<RowsMessage>,
) -> impl tokio_stream::Stream<Item = wire::RowsUp> {
    let offer = Kind::Offer(wire::RowsOffer { execution: Some(execution.into()) });
    let answers = ReceiverStream::new(answers)
        .map(|RowsMessage { number, content }| Kind::Answer(wire::RowsAnswer { number, content }));
    tokio_stream::once(offer).chain(answers).map(|kind| wire::RowsUp { kind: Some(kind) })
}

/// Passes a client's questions on to the sink, until one of them is gone.
pub(crate) async fn receive_questions(
    mut inbound: Streaming<wire::RowsQuestion>,
    questions: mpsc::Sender<RowsMessage>,
) {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = questions.closed() => return,
        };
        let Ok(Some(wire::RowsQuestion { number, content })) = message else { return };
        if questions.send(RowsMessage { number, content }).await.is_err() {
            return;
        }
    }
}

/// Waits for the first message of a sink; returns the two ends of what follows.
pub(crate) async fn accept(
    mut inbound: Streaming<wire::RowsUp>,
) -> Result<(RowsOffer, mpsc::Receiver<RowsMessage>), Status> {
    let first = tokio::time::timeout(OFFER_TIMEOUT, inbound.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("nothing was offered"))??;
    let Some(Kind::Offer(offer)) = first.and_then(|first| first.kind) else {
        return Err(Status::invalid_argument("the first message must be an offer"));
    };
    let execution = execution(offer.execution).map_err(|error: Error| Status::invalid_argument(error.to_string()))?;
    let (RowsSession { questions, answers }, offer) = pair(execution);
    flott_env::spawn(receive_answers(inbound, answers));
    Ok((offer, questions))
}

async fn receive_answers(mut inbound: Streaming<wire::RowsUp>, answers: mpsc::Sender<RowsMessage>) {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = answers.closed() => return,
        };
        let Ok(Some(wire::RowsUp { kind: Some(Kind::Answer(answer)) })) = message else { return };
        let wire::RowsAnswer { number, content } = answer;
        if answers.send(RowsMessage { number, content }).await.is_err() {
            return;
        }
    }
}
