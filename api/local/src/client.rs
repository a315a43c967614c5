//! The client role: talks to a cluster's REST API.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use flott_checkpoint::Store;
use flott_control::JobSpec;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, ErrorKind, Result, ResultExt};
use flott_graph::JobGraph;
use futures::TryStreamExt;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_util::io::ReaderStream;

use crate::args::EngineArgs;
use crate::launcher::{JobOutcome, Recipe};
use crate::processes::{runtime, termination};

/// The REST address that is tried when none is given.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8081";

/// How long a JobManager that does not answer is tried.
const CONNECT_ATTEMPTS_FOR: Duration = Duration::from_secs(5);
const CONNECT_PAUSE: Duration = Duration::from_millis(200);

/// How often a job or an operation is asked for news.
const POLL_PAUSE: Duration = Duration::from_millis(100);

/// How long an answer, or the end of an upload, is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long a JobManager may be away while a job is watched: time enough to start it again.
const OUTAGE_MAX: Duration = Duration::from_secs(60);

/// A client of one cluster.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// A client of the cluster whose REST API is at `address`, a `host:port`.
    pub fn new(address: &str) -> Result<Self> {
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let base = format!("http://{address}");
        if port.is_none() || reqwest::Url::parse(&base).is_err() {
            return Err(Error::input(format!("'{address}' is not a host:port, such as {DEFAULT_ADDRESS}")));
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .build()
            .map_err(|error| Error::system(format!("making an HTTP client: {error}")))?;
        Ok(Self { http, base })
    }

    /// The `host:port` of the cluster.
    pub fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// What `GET path` answers.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None).await
    }

    /// What `POST path` answers.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// What `PUT path` answers.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::PUT, path, Some(body)).await
    }

    /// Cancels a job.
    pub async fn cancel(&self, job: JobId) -> Result<()> {
        self.call(Method::PATCH, &format!("/jobs/{job}?mode=cancel"), None).await.map(drop)
    }

    /// Cancels a job unless it has completed a checkpoint.
    pub async fn withdraw(&self, job: JobId) -> Result<()> {
        self.call(Method::PATCH, &format!("/jobs/{job}?mode=cancel&unless=checkpoint"), None).await.map(drop)
    }

    /// Takes a savepoint, or with `stop` ends the job with one; returns its folder.
    pub async fn savepoint(&self, job: JobId, target: Option<&str>, stop: Option<Drain>) -> Result<String> {
        let trigger = match stop {
            None => {
                let body = json!({ "target-directory": target, "cancel-job": false });
                self.trigger(&format!("/jobs/{job}/savepoints"), &body).await?
            }
            Some(drain) => self.trigger_stop(job, target, drain, None).await?,
        };
        self.savepoint_location(job, &trigger).await
    }

    /// Asks for the job's end with a savepoint; returns the operation's id once that is accepted. Asked again with the
    /// same `trigger`, 32 hexadecimal digits, it is the same stop.
    pub async fn trigger_stop(
        &self,
        job: JobId,
        target: Option<&str>,
        Drain(drain): Drain,
        trigger: Option<&str>,
    ) -> Result<String> {
        let body = json!({ "targetDirectory": target, "drain": drain, "triggerId": trigger });
        self.trigger(&format!("/jobs/{job}/stop"), &body).await
    }

    /// Waits for a savepoint that was asked for; returns its folder.
    pub async fn savepoint_location(&self, job: JobId, trigger: &str) -> Result<String> {
        let path = format!("/jobs/{job}/savepoints/{trigger}");
        let operation = self.completed(&path).await?;
        operation["location"].as_str().map(str::to_owned).ok_or_else(|| unexpected(&path, &operation))
    }

    /// Takes a checkpoint now; returns its number and folder.
    pub async fn checkpoint(&self, job: JobId) -> Result<(Option<u64>, String)> {
        let path = format!("/jobs/{job}/checkpoints");
        let trigger = self.trigger(&path, &json!({})).await?;
        let operation = self.completed(&format!("{path}/{trigger}")).await?;
        let location = operation["location"].as_str().ok_or_else(|| unexpected(&path, &operation))?;
        Ok((operation["checkpointId"].as_u64(), location.to_owned()))
    }

    /// Starts a job that has ended again from a savepoint, as it was, under the id `again`. To repeat that changes nothing.
    pub async fn restart(&self, job: JobId, savepoint: &str, again: JobId) -> Result<()> {
        let path = format!("/jobs/{job}/restart?jobid={again}");
        self.post(&path, &json!({ "savepointPath": savepoint })).await.map(drop)
    }

    /// Starts an operation; returns its id.
    async fn trigger(&self, path: &str, body: &Value) -> Result<String> {
        let accepted = self.post(path, body).await?;
        accepted["request-id"].as_str().map(str::to_owned).ok_or_else(|| unexpected(path, &accepted))
    }

    /// Waits for the end of the operation that `path` shows; returns its result. A JobManager that is away for a while is
    /// waited for: it may only be hard to reach. One that was started again does not know the operation.
    async fn completed(&self, path: &str) -> Result<Value> {
        let mut outage = Outage::default();
        loop {
            let mut answer = match self.get(path).await {
                Ok(answer) => answer,
                Err(error) => {
                    outage.tolerate(error, flott_env::monotonic())?;
                    flott_env::sleep(POLL_PAUSE).await;
                    continue;
                }
            };
            outage = Outage::default();
            if answer["status"]["id"] == "COMPLETED" {
                let operation = answer["operation"].take();
                // Flink's two names for the same thing.
                let causes = [&operation["failure-cause"], &operation["failureCause"]];
                let Some(cause) = causes.into_iter().find(|cause| cause.is_object()) else { return Ok(operation) };
                let trace = cause["stack-trace"].as_str();
                return Err(Error::system(trace.unwrap_or("it failed without a cause").to_owned()));
            }
            flott_env::sleep(POLL_PAUSE).await;
        }
    }

    /// Uploads a binary unless the cluster has it; returns its SHA-256. `progress` is told how many bytes of how many
    /// are on their way; never, if the cluster has it.
    pub async fn upload(&self, binary: &Path, mut progress: impl FnMut(u64, u64) + Send + 'static) -> Result<String> {
        let shown = binary.display();
        let sha256 = hash_file(binary).with_context(|| format!("reading {shown}"))?;
        let path = format!("/artifacts/{sha256}");
        let known = self.send(Method::HEAD, &path, None).await?;
        if known.status().is_success() {
            return Ok(sha256);
        }
        let file = tokio::fs::File::open(binary).await.with_context(|| format!("opening {shown}"))?;
        let bytes = file.metadata().await.with_context(|| format!("reading {shown}"))?.len();
        let mut sent = 0;
        let chunks = ReaderStream::with_capacity(file, 256 * 1024).inspect_ok(move |chunk| {
            sent += chunk.len() as u64;
            progress(sent, bytes);
        });
        let request = self.request(Method::PUT, &path).timeout(UPLOAD_TIMEOUT);
        let response = request.body(reqwest::Body::wrap_stream(chunks)).send().await;
        let response = response.map_err(|error| Error::system(format!("uploading {shown}: {}", cause(&error))))?;
        answer(&path, response).await.with_context(|| format!("uploading {shown}"))?;
        Ok(sha256)
    }

    /// Submits a job; returns its id.
    pub async fn submit(&self, spec: &JobSpec) -> Result<JobId> {
        let accepted = self.post("/jobs", &job_body(spec)?).await?;
        accepted["jobid"].as_str().ok_or_else(|| unexpected("/jobs", &accepted))?.parse()
    }

    /// Submits a job under this id. To repeat that changes nothing.
    pub async fn submit_as(&self, job: JobId, spec: &JobSpec) -> Result<()> {
        self.post(&format!("/jobs?jobid={job}"), &job_body(spec)?).await.map(drop)
    }

    /// A job's state, and the cause if it failed.
    pub async fn status(&self, job: JobId) -> Result<(JobStatus, Option<String>)> {
        let path = format!("/jobs/{job}");
        let details = self.get(&path).await?;
        let status = serde_json::from_value(details["state"].clone()).map_err(|_| unexpected(&path, &details))?;
        if status != JobStatus::Failed {
            return Ok((status, None));
        }
        let exceptions = self.get(&format!("/jobs/{job}/exceptions")).await?;
        Ok((status, exceptions["root-exception"].as_str().map(str::to_owned)))
    }

    /// Waits for a job's end. A JobManager that is away for a while is waited for.
    pub async fn wait(&self, job: JobId) -> Result<JobStatus> {
        let mut outage = Outage::default();
        loop {
            match self.status(job).await {
                Ok((JobStatus::Failed, cause)) => {
                    return Err(Error::user_code(format!("job {job} failed: {}", cause.unwrap_or_default())));
                }
                Ok((status, _)) if status.is_terminal() => return Ok(status),
                Ok(_) => outage = Outage::default(),
                Err(error) => outage.tolerate(error, flott_env::monotonic())?,
            }
            flott_env::sleep(POLL_PAUSE).await;
        }
    }

    /// Asks the sink of a job for rows. Nothing is answered if there is no sink now: the job is starting, or has ended.
    pub async fn rows(&self, job: JobId, question: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let path = format!("/jobs/{job}/rows");
        let request = self.request(Method::POST, &path).timeout(ANSWER_TIMEOUT).body(question);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            StatusCode::OK => match response.bytes().await {
                Ok(bytes) => Ok(Some(bytes.into())),
                Err(error) => Err(Error::system(format!("{path}: {}", cause(&error)))),
            },
            _ => answer(&path, response).await.map(|_| None),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        Error::system(format!(
            "cannot reach the JobManager at {} ({}): is it running there? Name another with -m host:port",
            self.address(),
            cause(error)
        ))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        answer(path, self.send(method, path, body).await?).await
    }

    /// Sends a request, trying again while nothing listens. One that only reads is also sent again when its connection
    /// breaks: the JobManager may have been killed, and be back soon.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<reqwest::Response> {
        let only_reads = matches!(method, Method::GET | Method::HEAD);
        let began = flott_env::monotonic();
        loop {
            let mut request = self.request(method.clone(), path).timeout(ANSWER_TIMEOUT);
            if let Some(body) = body {
                request = request.json(body);
            }
            let error = match request.send().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let may_repeat = error.is_connect() || only_reads && error.is_request();
            if !may_repeat || flott_env::monotonic().saturating_sub(began) >= CONNECT_ATTEMPTS_FOR {
                return Err(self.unreachable(&error));
            }
            flott_env::sleep(CONNECT_PAUSE).await;
        }
    }
}

/// The time since a JobManager last answered: a killed one may be started again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outage {
    since: Option<Duration>,
}

impl Outage {
    /// Notes a request that failed at `now`, a time of [`flott_env::monotonic`].
    ///
    /// # Errors
    /// `error` itself, if waiting is no use or has taken a minute.
    pub fn tolerate(&mut self, error: Error, now: Duration) -> Result<()> {
        let since = *self.since.get_or_insert(now);
        if error.kind == ErrorKind::System && now.saturating_sub(since) < OUTAGE_MAX { Ok(()) } else { Err(error) }
    }
}

/// Whether a stop sends the highest watermark first, so that all windows fire.
#[derive(Clone, Copy, Debug)]
pub struct Drain(pub bool);

async fn answer(path: &str, response: reqwest::Response) -> Result<Value> {
    let status = response.status();
    let text = response.text().await.map_err(|error| Error::system(format!("{path}: {}", cause(&error))))?;
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if status.is_success() {
        return Ok(value);
    }
    let errors: Vec<&str> = value["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let message = if errors.is_empty() { format!("{path}: HTTP {status}") } else { errors.join("; ") };
    Err(if status.is_server_error() { Error::system(message) } else { Error::input(message) })
}

/// The innermost cause, such as "Connection refused": the outer ones only say that a request failed.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn job_body(spec: &JobSpec) -> Result<Value> {
    serde_json::to_value(spec).map_err(|error| Error::system(format!("writing the job: {error}")))
}

fn unexpected(path: &str, value: &Value) -> Error {
    Error::system(format!("{path} answered {value}: is that a Flott JobManager of this version?"))
}

fn hash_file(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            bytes => hasher.update(&buffer[..bytes]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Submits the running binary, and waits for the job's end unless detached.
pub(crate) fn run_this_binary(
    address: &str,
    graph: &JobGraph,
    args: &EngineArgs,
    recipe: Recipe,
) -> Result<JobOutcome> {
    let began = flott_env::monotonic();
    runtime()?.block_on(async {
        let (client, job) = submit(address, graph, args, recipe).await?;
        let status = if args.detached {
            client.status(job).await?.0
        } else {
            tokio::select! {
                status = client.wait(job) => status?,
                signal = termination() => {
                    signal?;
                    return Err(Error::user_code(format!("interrupted: job {job} runs on, 'flott cancel {job}' ends it")));
                }
            }
        };
        Ok(JobOutcome { job, status, duration: flott_env::monotonic().saturating_sub(began) })
    })
}

/// Submits the running binary, and waits for nothing.
pub(crate) fn submit_this_binary(
    address: &str,
    graph: &JobGraph,
    args: &EngineArgs,
    recipe: Recipe,
) -> Result<(Client, JobId)> {
    let (client, job) = runtime()?.block_on(submit(address, graph, args, recipe))?;
    // Its connections belong to the runtime that has just ended.
    Ok((Client::new(client.address())?, job))
}

async fn submit(address: &str, graph: &JobGraph, args: &EngineArgs, recipe: Recipe) -> Result<(Client, JobId)> {
    let binary = std::env::current_exe().context("finding this program's file")?;
    let client = Client::new(address)?;
    let spec = JobSpec {
        graph: graph.clone(),
        artifact: Some(client.upload(&binary, |_, _| ()).await?),
        args: recipe.arguments,
        payload: recipe.payload,
        // A relative path means this process's folder, not the JobManager's.
        savepoint: args.savepoint.as_deref().map(Store::normalize).transpose()?,
        allow_non_restored_state: args.allow_non_restored_state,
        claim_mode: args.claim_mode,
    };
    let job = client.submit(&spec).await?;
    eprintln!("job {job} is submitted to {address}");
    Ok((client, job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_a_port() {
        assert_eq!(Client::new("http://h:1/").unwrap().address(), "h:1");
        for wrong in ["h", "h:", "h:x", "a b:1", ":1"] {
            let error = Client::new(wrong).unwrap_err();
            assert!(error.to_string().contains("is not a host:port"), "{error}");
        }
    }

    #[test]
    fn an_outage_is_tolerated_for_a_while() {
        let mut outage = Outage::default();
        let away = || Error::system("away");
        outage.tolerate(away(), Duration::from_secs(100)).unwrap();
        outage.tolerate(away(), Duration::from_secs(159)).unwrap();
        assert_eq!(outage.tolerate(away(), Duration::from_secs(160)), Err(away()));
        let mistake = Error::input("no such job");
        assert_eq!(Outage::default().tolerate(mistake.clone(), Duration::ZERO), Err(mistake));
    }
}
