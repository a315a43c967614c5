//! The rows of a SELECT that a cluster runs, on their way to whoever asked.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use flott_chunk::Chunk;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, ErrorKind, Result, ResultExt, codec};
use flott_local::JobOutcome;
use flott_local::client::{Client, Outage};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::handover::{Answer, Inbox};

/// How often a job without a sink is looked at, and a full channel to whoever shows the rows.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// How often the cluster is told that rows are still wanted while nobody can take more.
const ALIVE_PAUSE: Duration = Duration::from_secs(20);

/// Fetches the rows of a job to its end, which may be a cancellation: SIGINT and SIGTERM cancel it, and so does the end of
/// whoever takes the rows.
///
/// # Errors
/// The job failed, or was restarted without a checkpoint; or the cluster has been away for too long.
pub(crate) fn run(client: Client, job: JobId, rows: SyncSender<Chunk>) -> Result<JobOutcome> {
    let began = flott_env::monotonic();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the I/O of the client")?;
    let status = runtime.block_on(async {
        let signals = Signals {
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
        };
        Fetch { client, job, inbox: Inbox::default(), rows: Some(rows), signals }.run().await
    })?;
    Ok(JobOutcome { job, status, duration: flott_env::monotonic().saturating_sub(began) })
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

struct Fetch {
    client: Client,
    job: JobId,
    inbox: Inbox,
    /// Gone when no more rows are wanted.
    rows: Option<SyncSender<Chunk>>,
    signals: Signals,
}

impl Fetch {
    async fn run(mut self) -> Result<JobStatus> {
        let mut outage = Outage::default();
        while self.rows.is_some() {
            let question = codec::encode(&self.inbox.question(true))?;
            let asked = tokio::select! {
                answer = self.client.rows(self.job, question) => answer,
                () = self.signals.next() => {
                    self.rows = None;
                    break;
                }
            };
            // No sink: the job is starting, or over.
            let result = match asked {
                Ok(Some(content)) => self.take(&content).await.map(|()| None),
                Ok(None) => self.ended().await,
                Err(error) => Err(error),
            };
            match result {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => outage = Outage::default(),
                Err(error) if error.kind == ErrorKind::System => {
                    outage.tolerate(error, flott_env::monotonic())?;
                    flott_env::sleep(POLL_PAUSE).await;
                }
                Err(error) => {
                    // What cannot be shown is of no use to anybody.
                    let _ = self.client.cancel(self.job).await;
                    return Err(error);
                }
            }
        }
        self.cancel().await
    }

    async fn take(&mut self, content: &[u8]) -> Result<()> {
        let answer: Answer = codec::decode(content)?;
        let chunks = self.inbox.take(answer).map_err(|error| Error { kind: ErrorKind::UserCode, ..error })?;
        self.show(chunks).await;
        Ok(())
    }

    /// How the job ended, if it has; then all rows have been shown that there are.
    async fn ended(&mut self) -> Result<Option<JobStatus>> {
        let (status, cause) = self.client.status(self.job).await?;
        match status {
            JobStatus::Finished => {
                let rest = self.inbox.finish();
                self.show(rest).await;
            }
            JobStatus::Failed => {
                let cause = cause.unwrap_or_else(|| "no cause was recorded".to_owned());
                return Err(Error::user_code(format!("job {} failed: {cause}", self.job)));
            }
            JobStatus::Canceled => {}
            _ => {
                flott_env::sleep(POLL_PAUSE).await;
                return Ok(None);
            }
        }
        Ok(Some(status))
    }

    /// Hands rows on, when there is room. Then no more are asked for.
    async fn show(&mut self, chunks: Vec<Chunk>) {
        let mut said = flott_env::monotonic();
        for mut chunk in chunks {
            while let Some(rows) = &self.rows {
                match rows.try_send(chunk) {
                    Ok(()) => break,
                    Err(TrySendError::Disconnected(_)) => {
                        self.rows = None;
                        return;
                    }
                    Err(TrySendError::Full(back)) => chunk = back,
                }
                tokio::select! {
                    () = flott_env::sleep(POLL_PAUSE) => {}
                    () = self.signals.next() => self.rows = None,
                }
                if flott_env::monotonic().saturating_sub(said) >= ALIVE_PAUSE {
                    said = flott_env::monotonic();
                    if let Ok(question) = codec::encode(&self.inbox.question(false)) {
                        // It is told again soon.
                        let _ = self.client.rows(self.job, question).await;
                    }
                }
            }
        }
    }

    /// Cancels the job, and waits until it has ended. Another signal ends the wait.
    async fn cancel(self) -> Result<JobStatus> {
        let Self { client, job, mut signals, .. } = self;
        let cancelled = async {
            match client.cancel(job).await {
                // It may have ended meanwhile.
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::Input => {}
                Err(error) => return Err(error),
            }
            client.wait(job).await
        };
        tokio::select! {
            status = cancelled => status,
            () = signals.next() => {
                Err(Error::user_code(format!("interrupted: job {job} may still run, 'flott cancel {job}' ends it")))
            }
        }
    }
}
