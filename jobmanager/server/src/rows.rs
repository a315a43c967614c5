//! Rows of queries, on their way from jobs' sinks to the clients that asked for them.
//!
//! A sink offers what it has over a connection of its own, a client asks over REST, and questions and answers pass through
//! here unread, one at a time for each job. Nothing is kept: when the JobManager dies, both ends still have all that the other
//! one has not got. A job whose client does not ask any more is cancelled, since nobody would ever end it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flott_core::Result;
use flott_core::ids::{Generation, JobId};
use flott_jobmanager_core::Request;
use flott_proto::rows::{RowsMessage, RowsOffer};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::leader::LeaderClient;

/// How long a question waits for an offer: a sink may just be starting.
const OFFER_WAIT: Duration = Duration::from_secs(1);

/// How long a sink may take to answer. Clients ask it to wait for rows for less than that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The offers of all jobs.
#[derive(Clone)]
pub(crate) struct RowsHub {
    leader: LeaderClient,
    /// After how long without a question a job is cancelled.
    lease: Duration,
    offers: Arc<Mutex<BTreeMap<JobId, Offered>>>,
    /// How many offers there have been.
    count: Arc<watch::Sender<u64>>,
}

/// A sink that waits for questions.
struct Offered {
    /// The execution that it was started in.
    attempt: Generation,
    number: u64,
    questions: mpsc::Sender<Asked>,
}

struct Asked {
    content: Vec<u8>,
    answer: oneshot::Sender<Vec<u8>>,
}

impl RowsHub {
    pub(crate) fn new(leader: LeaderClient, lease: Duration) -> Self {
        Self { leader, lease, offers: Arc::default(), count: Arc::new(watch::channel(0).0) }
    }

    /// Takes a sink's offer, in place of an earlier one of the same job.
    pub(crate) fn accept(&self, offer: RowsOffer) {
        let hub = self.clone();
        flott_env::spawn(async move {
            let (job, attempt) = (offer.execution.job, offer.execution.generation);
            let is_alive =
                hub.leader.view(move |cluster| cluster.job(job).is_some_and(|job| !job.status.is_terminal()));
            if !is_alive.await.unwrap_or(false) {
                return;
            }
            let Some((number, questions)) = hub.register(job, attempt) else {
                tracing::debug!(%job, attempt, "an offer of rows came too late");
                return;
            };
            hub.serve(job, offer, questions).await;
            let mut offers = hub.offers.lock();
            if offers.get(&job).is_some_and(|offered| offered.number == number) {
                offers.remove(&job);
            }
        });
    }

    /// An offer's number, and where its questions come from; nothing if a later execution has offered already.
    fn register(&self, job: JobId, attempt: Generation) -> Option<(u64, mpsc::Receiver<Asked>)> {
        let (sender, questions) = mpsc::channel(1);
        let mut offers = self.offers.lock();
        if offers.get(&job).is_some_and(|offered| offered.attempt > attempt) {
            return None;
        }
        let mut number = 0;
        self.count.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        // The one before hears that nobody asks it any more, and ends.
        offers.insert(job, Offered { attempt, number, questions: sender });
        Some((number, questions))
    }

    /// Passes questions on, until the sink is gone or another one has taken its place.
    async fn serve(&self, job: JobId, offer: RowsOffer, mut questions: mpsc::Receiver<Asked>) {
        let RowsOffer { questions: to_sink, mut answers, .. } = offer;
        let mut number = 0;
        let mut waiting: Option<oneshot::Sender<Vec<u8>>> = None;
        let mut last_asked = flott_env::monotonic();
        loop {
            let lease = self.lease.saturating_sub(flott_env::monotonic().saturating_sub(last_asked));
            tokio::select! {
                asked = questions.recv() => {
                    let Some(Asked { content, answer }) = asked else { return };
                    last_asked = flott_env::monotonic();
                    number += 1;
                    // Whoever asked before has given up.
                    waiting = Some(answer);
                    if to_sink.send(RowsMessage { number, content }).await.is_err() {
                        return;
                    }
                }
                answer = answers.recv() => {
                    let Some(answer) = answer else { return };
                    last_asked = flott_env::monotonic();
                    if answer.number == number && let Some(waiting) = waiting.take() {
                        // Whoever asked may be gone.
                        let _ = waiting.send(answer.content);
                    }
                }
                () = flott_env::sleep(lease), if waiting.is_none() => {
                    tracing::warn!(%job, "nobody has asked for the rows of the job for {:?}: it is cancelled", self.lease);
                    if let Err(error) = self.leader.request(Request::Cancel { job }).await {
                        tracing::debug!(%job, %error, "the job cannot be cancelled");
                    }
                    return;
                }
            }
        }
    }

    /// Asks a job's sink; nothing if there is none, or it is gone before it has answered.
    pub(crate) async fn ask(&self, job: JobId, content: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let Some(questions) = self.offered(job).await else { return Ok(None) };
        let (answer, answered) = oneshot::channel();
        if questions.send(Asked { content, answer }).await.is_err() {
            return Ok(None);
        }
        Ok(tokio::time::timeout(ANSWER_TIMEOUT, answered).await.ok().and_then(|answered| answered.ok()))
    }

    /// Waits a moment for an offer.
    async fn offered(&self, job: JobId) -> Option<mpsc::Sender<Asked>> {
        let mut count = self.count.subscribe();
        let found = || self.offers.lock().get(&job).map(|offered| offered.questions.clone());
        let wait = async {
            loop {
                count.borrow_and_update();
                if let Some(questions) = found() {
                    return Some(questions);
                }
                if count.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(OFFER_WAIT, wait).await.ok().flatten()
    }
}
