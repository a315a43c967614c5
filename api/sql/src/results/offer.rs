//! The end of a SELECT's rows in a worker: a sink that hands them out to the client through the JobManager.
//!
//! It never waits. What the client has not got is kept, and while that is much the subtask takes no more input; it finishes
//! when the client has all.

use std::sync::Arc;
use std::time::Duration;

use flott_chunk::Chunk;
use flott_connector_spi::{Committable, Outlet, Sink, SinkContext, SinkWriter};
use flott_control::ExecutionId;
use flott_core::ids::CheckpointId;
use flott_core::{Batch, Error, Result, ResultExt, codec};
use flott_proto::client;
use flott_proto::rows::{ANSWER_BYTES_MAX, RowsMessage, RowsSession};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::handover::{Outbox, Question};

/// How large a chunk may be that is kept as it is, in bytes. Larger ones are cut.
const CHUNK_BYTES: usize = 1 << 20;

/// How long an answer waits for something to say.
const NEWS_WAIT: Duration = Duration::from_secs(5);

/// How long to wait before a connection that was lost is opened again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// Hands rows out through the JobManager at an address.
pub(crate) struct OfferSink {
    /// `host:port` of the JobManager.
    pub(crate) jobmanager: String,
    /// Whether rows are shown only when a checkpoint has them.
    pub(crate) is_exactly_once: bool,
}

impl Sink<Chunk> for OfferSink {
    fn writer(&self, cx: SinkContext, restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<Chunk>>> {
        if cx.parallelism != 1 || restored.len() > 1 {
            return Err(Error::system("the rows of a SELECT come out of one subtask"));
        }
        // 0 is the version of a client that has not met a sink.
        let version = flott_env::random_u64().max(1);
        let outbox = Outbox::new(version, self.is_exactly_once, restored.first().map(Vec::as_slice));
        let shared = Shared {
            outbox: Mutex::new(outbox.context("restoring the rows that the client has not got")?),
            news: Notify::new(),
            outlet: cx.outlet,
        };
        let shared = Arc::new(shared);
        shared.told(&shared.outbox.lock());
        let execution = ExecutionId { job: cx.job, generation: cx.generation };
        let offer = offer(self.jobmanager.clone(), execution, Arc::clone(&shared));
        let offer = flott_env::spawn_on(&cx.io, offer).abort_handle();
        Ok(Box::new(OfferWriter { shared, offer }))
    }
}

struct Shared {
    outbox: Mutex<Outbox>,
    news: Notify,
    outlet: Outlet,
}

impl Shared {
    /// Tells the subtask how much is left. Whoever has changed that still holds the lock, so that what is told last is true.
    fn told(&self, outbox: &Outbox) {
        self.outlet.set(!outbox.is_empty(), outbox.is_full());
    }

    fn change(&self, change: impl FnOnce(&mut Outbox) -> Result<()>) -> Result<()> {
        let mut outbox = self.outbox.lock();
        let changed = change(&mut outbox);
        self.told(&outbox);
        drop(outbox);
        self.news.notify_one();
        changed
    }
}

struct OfferWriter {
    shared: Arc<Shared>,
    offer: AbortHandle,
}

impl Drop for OfferWriter {
    fn drop(&mut self) {
        self.offer.abort();
    }
}

impl SinkWriter<Chunk> for OfferWriter {
    fn write(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        let chunks: Vec<Chunk> = batch.rows.drain(..).collect();
        self.shared.change(|outbox| chunks.iter().try_for_each(|chunk| push(outbox, chunk)))
    }

    fn prepare(&mut self, _: bool) -> Result<Vec<Committable>> {
        Ok(vec![codec::encode(&self.shared.outbox.lock().count())?])
    }

    fn snapshot(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(vec![self.shared.outbox.lock().state()?])
    }

    fn commit(&mut self, _: CheckpointId, committables: Vec<Committable>) -> Result<()> {
        let counts = committables.iter().map(|count| codec::decode(count)).collect::<Result<Vec<u64>>>()?;
        self.shared.change(|outbox| {
            counts.into_iter().for_each(|count| outbox.completed(count));
            Ok(())
        })
    }
}

/// Adds a chunk, in parts if it is large.
fn push(outbox: &mut Outbox, chunk: &Chunk) -> Result<()> {
    if chunk.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    chunk.encode(&mut bytes)?;
    if bytes.len() > CHUNK_BYTES && chunk.len() > 1 {
        let half = chunk.len() / 2;
        push(outbox, &chunk.slice(0, half))?;
        return push(outbox, &chunk.slice(half, chunk.len() - half));
    }
    if bytes.len() > ANSWER_BYTES_MAX {
        return Err(Error::user_code(format!(
            "a row of {} bytes is too large to be shown: the most is {ANSWER_BYTES_MAX}; INSERT it INTO a table",
            bytes.len()
        )));
    }
    outbox.push(bytes);
    Ok(())
}

/// Answers questions for as long as the writer lives.
async fn offer(jobmanager: String, execution: ExecutionId, shared: Arc<Shared>) {
    loop {
        match client::offer_rows(&jobmanager, execution).await {
            Ok(session) => answer(session, &shared).await,
            Err(error) => tracing::warn!(%error, "the rows of a query cannot be offered"),
        }
        flott_env::sleep(RECONNECT_PAUSE).await;
    }
}

/// Answers the questions of a connection, until it is lost.
async fn answer(mut session: RowsSession, shared: &Shared) {
    let mut next = session.questions.recv().await;
    while let Some(RowsMessage { number, content }) = next.take() {
        let question: Question = match codec::decode(&content) {
            Ok(question) => question,
            Err(error) => {
                tracing::warn!(%error, "a question for rows cannot be read: is the client of the same build?");
                next = session.questions.recv().await;
                continue;
            }
        };
        // What it says that it has got is dropped at once: the subtask may be waiting for that.
        let _ = shared.change(|outbox| {
            drop(outbox.answer(&Question { wants_chunks: false, ..question }));
            Ok(())
        });
        let news = async {
            loop {
                if !question.wants_chunks || shared.outbox.lock().has_news_for(&question) {
                    return;
                }
                shared.news.notified().await;
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(NEWS_WAIT, news) => {}
            // Whoever asked has given up, and asks anew; or the connection is lost.
            another = session.questions.recv() => {
                next = another;
                continue;
            }
        }
        let answer = shared.outbox.lock().answer(&question);
        let Ok(content) = codec::encode(&answer) else { return };
        if session.answers.send(RowsMessage { number, content }).await.is_err() {
            return;
        }
        next = session.questions.recv().await;
    }
}
