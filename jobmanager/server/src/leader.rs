//! The one task that owns the cluster's state: it feeds events to the pure machines and carries out
//! the commands that they return, in order.
//!
//! Whatever takes long (manifests, deletions, clients) happens in tasks beside it and comes back as
//! an event. The log is the exception: nothing may overtake a fact that is being made durable.

mod client;
mod journal;
mod session;
mod storage;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use flott_checkpoint::Store;
use flott_control::Fact;
use flott_core::ids::JobId;
use flott_core::{Error, Result, ResultExt};
use flott_jobmanager_core::{Cluster, Command, Event, Reply, Request, RequestId, SessionId};
use flott_proto::ServerSession;
use flott_raft::FactLog;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use client::LeaderClient;
use client::{INPUTS_QUEUED, Input};
use session::Connection;

/// How many clients may wait for a reply at the same time.
const REQUESTS_MAX: usize = 1024;

/// How long the leader sleeps at most when nothing is due.
const SLEEP_MS_MAX: i64 = 10_000;

pub(crate) struct Leader {
    cluster: Cluster,
    /// The wall clock at the start of the process's monotonic one. The machines run on their sum: when the wall
    /// clock is set, nobody must appear to have been silent.
    origin_ms: i64,
    /// `None` while a fact is being appended, and for good after that has panicked.
    log: Option<Box<dyn FactLog>>,
    store: Store,
    inputs: mpsc::Sender<Input>,
    events: VecDeque<Event>,
    sessions: BTreeMap<SessionId, Connection>,
    next_session: SessionId,
    requests: BTreeMap<RequestId, oneshot::Sender<Result<Reply>>>,
    next_request: RequestId,
    /// Who waits for the end of a job.
    waiting: BTreeMap<JobId, Vec<oneshot::Sender<()>>>,
}

impl Leader {
    /// Replays the log into `cluster` and starts to lead it.
    pub(crate) async fn start(cluster: Cluster, mut log: Box<dyn FactLog>, store: Store) -> Result<LeaderClient> {
        let facts = log.replay()?;
        if !facts.is_empty() {
            tracing::info!(facts = facts.len(), "log replayed");
        }
        let (inputs, receiver) = mpsc::channel(INPUTS_QUEUED);
        let mut leader = Self {
            cluster,
            origin_ms: flott_env::now_ms() - monotonic_ms(),
            log: Some(log),
            store,
            inputs: inputs.clone(),
            events: facts.into_iter().map(Event::Committed).chain([Event::Recovered]).collect(),
            sessions: BTreeMap::new(),
            next_session: 1,
            requests: BTreeMap::new(),
            next_request: 1,
            waiting: BTreeMap::new(),
        };
        leader.drain().await?;
        let (end, ended) = watch::channel(None);
        flott_env::spawn(async move {
            let result = leader.run(receiver).await;
            if let Err(error) = &result {
                tracing::error!(%error, "the JobManager ends");
            }
            // The log must be closed before anyone hears that the leader is gone.
            drop(leader);
            end.send_replace(Some(result));
        });
        Ok(LeaderClient::new(inputs, ended))
    }

    async fn run(&mut self, mut inputs: mpsc::Receiver<Input>) -> Result<()> {
        let mut ticked_ms = i64::MIN;
        loop {
            // What has arrived goes first: a pause of this process must not pass for the silence of others.
            for _ in 0..INPUTS_QUEUED {
                let Ok(input) = inputs.try_recv() else { break };
                if !self.handle(input).await? {
                    return Ok(());
                }
            }
            let now_ms = self.now_ms();
            let deadline_ms = self.cluster.next_deadline();
            // At most one tick a millisecond, whatever the deadline says.
            if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) && ticked_ms != now_ms {
                ticked_ms = now_ms;
                self.step(Event::Tick).await?;
                continue;
            }
            let sleep_ms = deadline_ms.map_or(SLEEP_MS_MAX, |deadline_ms| deadline_ms.saturating_sub(now_ms));
            let sleep = Duration::from_millis(sleep_ms.clamp(1, SLEEP_MS_MAX).unsigned_abs());
            match tokio::time::timeout(sleep, inputs.recv()).await {
                Ok(Some(input)) => {
                    if !self.handle(input).await? {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                Err(_) => {}
            }
        }
    }

    /// Whether to go on.
    async fn handle(&mut self, input: Input) -> Result<bool> {
        match input {
            Input::Event(Event::Message { session, .. }) if !self.sessions.contains_key(&session) => {}
            Input::Event(Event::SessionClosed { session }) => {
                if self.sessions.remove(&session).is_some() {
                    self.step(Event::SessionClosed { session }).await?;
                }
            }
            Input::Event(event) => self.step(event).await?,
            Input::Open(session) => self.open(session),
            Input::Request { request, reply } => self.request(request, reply).await?,
            Input::View(look) => look(&self.cluster),
            Input::Wait { job, ended } => match self.cluster.job(job) {
                // Dropping `ended` tells the caller that there is no such job.
                None => {}
                Some(view) if view.status.is_terminal() => {
                    // Whoever waited may be gone.
                    let _ = ended.send(());
                }
                Some(_) => self.waiting.entry(job).or_default().push(ended),
            },
            Input::Shutdown => return Ok(false),
        }
        Ok(true)
    }

    async fn request(&mut self, request: Request, reply: oneshot::Sender<Result<Reply>>) -> Result<()> {
        if self.requests.len() >= REQUESTS_MAX {
            let busy = Error::system(format!("{REQUESTS_MAX} requests are waiting already: try again later"));
            // The client may be gone.
            let _ = reply.send(Err(busy));
            return Ok(());
        }
        let id = self.next_request;
        self.next_request += 1;
        self.requests.insert(id, reply);
        self.step(Event::Request { id, request }).await
    }

    fn now_ms(&self) -> i64 {
        self.origin_ms + monotonic_ms()
    }

    async fn step(&mut self, event: Event) -> Result<()> {
        journal::happened(&event);
        self.events.push_back(event);
        self.drain().await
    }

    /// Handles the waiting events, and those that follow from their commands.
    async fn drain(&mut self) -> Result<()> {
        while let Some(event) = self.events.pop_front() {
            let ended = match &event {
                Event::Committed(Fact::JobEnded { job, .. }) => Some(*job),
                _ => None,
            };
            for command in self.cluster.step(self.now_ms(), event) {
                self.execute(command).await?;
            }
            for waiting in ended.and_then(|job| self.waiting.remove(&job)).into_iter().flatten() {
                // Whoever waited may be gone.
                let _ = waiting.send(());
            }
        }
        Ok(())
    }

    async fn execute(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Send { session, message } => self.send(session, message),
            Command::Close { session } => self.close(session),
            Command::Propose(fact) => {
                journal::decided(&fact);
                let fact = self.append(fact).await?;
                self.events.push_back(Event::Committed(fact));
            }
            Command::Reply { id, reply } => {
                if let Some(client) = self.requests.remove(&id) {
                    // The client may be gone.
                    let _ = client.send(reply);
                }
            }
            Command::WriteManifest(checkpoint) => {
                storage::write_manifest(self.store.clone(), self.inputs.clone(), checkpoint);
            }
            Command::LoadManifest { job, generation, location, sha256 } => {
                storage::load_manifest(self.store.clone(), self.inputs.clone(), job, generation, location, sha256);
            }
            Command::ListFiles { job, folder } => {
                storage::list_files(self.store.clone(), self.inputs.clone(), job, folder);
            }
            Command::Delete { files, folders } => storage::delete(self.store.clone(), files, folders),
        }
        Ok(())
    }

    /// Makes a fact durable. Waits for the disk on a thread that may block.
    async fn append(&mut self, fact: Fact) -> Result<Fact> {
        let mut log = self.log.take().ok_or_else(|| Error::system("the JobManager's log has failed before"))?;
        let append = move || {
            let result = log.append(&fact);
            (log, fact, result)
        };
        let (log, fact, result) = flott_env::spawn_blocking_on(&Handle::current(), append)
            .await
            .map_err(|error| Error::system(format!("the JobManager's log failed: {error}")))?;
        self.log = Some(log);
        result.context("a fact could not be made durable, so the JobManager cannot go on")?;
        Ok(fact)
    }

    fn open(&mut self, session: ServerSession) {
        let id = self.next_session;
        self.next_session += 1;
        self.sessions.insert(id, Connection::open(id, session, self.inputs.clone()));
    }

    fn send(&mut self, session: SessionId, message: flott_control::Down) {
        let Some(connection) = self.sessions.get(&session) else { return };
        if let Err(error) = connection.send(message) {
            tracing::warn!(session, %error, "session closed");
            self.close(session);
        }
    }

    fn close(&mut self, session: SessionId) {
        if self.sessions.remove(&session).is_some() {
            self.events.push_back(Event::SessionClosed { session });
        }
    }
}

fn monotonic_ms() -> i64 {
    i64::try_from(flott_env::monotonic().as_millis()).unwrap_or(i64::MAX)
}
