//! Every option that exists. Defaults are Flink's unless its documentation here says otherwise.

use std::time::Duration;

use super::{ConfigOption, optional_duration};
use crate::error::{Error, Result};
use crate::key_group::MAX_PARALLELISM_LIMIT;
use crate::memory::parse_bytes;
use crate::time::parse_duration;

/// An option without its type, for lists and checks.
#[derive(Clone, Copy, Debug)]
pub struct KnownOption {
    /// Flink's key.
    pub key: &'static str,
    /// An older key that means the same.
    pub alias: Option<&'static str>,
    /// The text of its default.
    pub default: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Refuses a value that it cannot have.
    pub check: fn(&str) -> Result<()>,
}

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $key:literal $(| $alias:literal)?, $default:literal, $parse:expr;)*) => {
        $($(#[doc = $doc])+ pub const $name: ConfigOption<$type> =
            ConfigOption { key: $key, default: $default, parse: $parse };)*

        static ALL: &[KnownOption] = &[$(KnownOption {
            key: $key,
            alias: options!(@alias $($alias)?),
            default: $default,
            description: concat!($($doc),+),
            check: |text| ($name.parse)(text).map(|_| ()),
        }),*];
    };
    (@alias) => { None };
    (@alias $alias:literal) => { Some($alias) };
}

options! {
    /// How many subtasks an operator has that does not say so itself.
    PARALLELISM_DEFAULT: u32 = "parallelism.default", "1", count;
    /// How many key groups keyed state has, and so the highest parallelism it can ever be scaled to.
    MAX_PARALLELISM: u32 = "pipeline.max-parallelism", "128", max_parallelism;
    /// `STREAMING` or `BATCH`.
    RUNTIME_MODE: RuntimeMode = "execution.runtime-mode", "STREAMING", runtime_mode;
    /// Whether operators that forward to each other share a subtask.
    OPERATOR_CHAINING: bool = "pipeline.operator-chaining.enabled" | "pipeline.operator-chaining", "true", boolean;
    /// How long a record may wait for its batch to fill.
    BUFFER_TIMEOUT: Duration = "execution.buffer-timeout.interval" | "execution.buffer-timeout", "5 ms", parse_duration;

    /// How far event time must move for a watermark to be sent; 0 sends one with each record that moves it.
    AUTO_WATERMARK_INTERVAL: Duration = "pipeline.auto-watermark-interval", "200 ms", parse_duration;

    /// How often a checkpoint is triggered; empty means never.
    CHECKPOINT_INTERVAL: Option<Duration> = "execution.checkpointing.interval", "", optional_duration;
    /// After how long a checkpoint that has not completed is aborted.
    CHECKPOINT_TIMEOUT: Duration = "execution.checkpointing.timeout", "10 min", positive_duration;
    /// How long to wait between the end of a checkpoint and the start of the next.
    CHECKPOINT_MIN_PAUSE: Duration = "execution.checkpointing.min-pause", "0 ms", parse_duration;
    /// Whether barriers may overtake the records that wait in channels, which become part of the checkpoint then.
    UNALIGNED_CHECKPOINTS: bool = "execution.checkpointing.unaligned.enabled" | "execution.checkpointing.unaligned", "false", boolean;
    /// How long after the trigger of an unaligned checkpoint its barriers keep their places; 0 lets them overtake from the
    /// start.
    ALIGNED_CHECKPOINT_TIMEOUT: Duration = "execution.checkpointing.aligned-checkpoint-timeout", "0 s", parse_duration;
    /// Where checkpoints go: a `file://` or `s3://` URL. Empty: a folder of the cluster.
    CHECKPOINT_DIR: String = "execution.checkpointing.dir" | "state.checkpoints.dir", "", text;
    /// Where savepoints go unless the call says so.
    SAVEPOINT_DIR: String = "execution.checkpointing.savepoint-dir" | "state.savepoints.dir", "", text;
    /// Whether a checkpoint writes only what changed since the last.
    CHECKPOINT_INCREMENTAL: bool = "execution.checkpointing.incremental" | "state.backend.incremental", "true", boolean;
    /// How many completed checkpoints are kept.
    CHECKPOINTS_RETAINED: u32 = "execution.checkpointing.num-retained" | "state.checkpoints.num-retained", "1", count;
    /// How many checkpoints may fail in a row before the job does.
    CHECKPOINT_TOLERABLE_FAILURES: u32 = "execution.checkpointing.tolerable-failed-checkpoints", "0", number;
    /// What becomes of the last checkpoint of a cancelled job: `NO_EXTERNALIZED_CHECKPOINTS`,
    /// `DELETE_ON_CANCELLATION` or `RETAIN_ON_CANCELLATION`.
    CHECKPOINT_RETENTION: Retention = "execution.checkpointing.externalized-checkpoint-retention", "NO_EXTERNALIZED_CHECKPOINTS", retention;
    /// Whether a job's folder is looked through, after a failure and at its end, for files that nothing refers to: what
    /// was being written when the JobManager or a worker died.
    CHECKPOINT_CLEANER_ORPHANS: bool = "execution.checkpointing.cleaner.orphans", "true", boolean;

    /// `hashmap`: keyed state is in memory, and what does not fit goes to local disk. `disk`: it counts on the disk from
    /// the start, so that each checkpoint only has new files.
    STATE_BACKEND: StateBackendType = "state.backend.type" | "state.backend", "hashmap", state_backend;

    /// Whether the workers that survive a failure go on with the state that they hold, so that only what was lost is
    /// started again and fetched. Flink's default is false.
    RECOVERY_FROM_LOCAL: bool = "execution.state-recovery.from-local", "true", boolean;

    /// `default`: a job has the parallelism that it was given. `reactive`: it uses all slots that there are.
    SCHEDULER_MODE: SchedulerMode = "scheduler-mode", "default", scheduler_mode;
    /// How long the number of slots must stay as it is before a reactive job is rescaled to it. Flink waits 1 min.
    RESOURCE_STABILIZATION_TIMEOUT: Duration = "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", "2 s", parse_duration;

    /// What a failure restarts. `region`: the subtasks that exchange data with those that failed or were lost, directly or
    /// through others. `full`: all of them.
    FAILOVER_STRATEGY: FailoverStrategy = "jobmanager.execution.failover-strategy", "region", failover_strategy;
    /// `none`, `fixed-delay`, `exponential-delay` or `failure-rate`. If it is not set, a job without checkpoints is
    /// not restarted.
    RESTART_STRATEGY: String = "restart-strategy.type" | "restart-strategy", "exponential-delay", restart_strategy;
    /// How often a fixed-delay job is restarted before it fails.
    FIXED_DELAY_ATTEMPTS: u32 = "restart-strategy.fixed-delay.attempts", "1", number;
    /// How long a fixed-delay job waits before each restart.
    FIXED_DELAY_DELAY: Duration = "restart-strategy.fixed-delay.delay", "1 s", parse_duration;
    /// The first delay of an exponential-delay job; there is none when a process or machine was lost. Flink waits 1 s.
    EXPONENTIAL_DELAY_INITIAL: Duration = "restart-strategy.exponential-delay.initial-backoff", "100 ms", parse_duration;
    /// The longest delay of an exponential-delay job.
    EXPONENTIAL_DELAY_MAX: Duration = "restart-strategy.exponential-delay.max-backoff", "1 min", parse_duration;
    /// How much longer each delay is than the one before.
    EXPONENTIAL_DELAY_MULTIPLIER: f64 = "restart-strategy.exponential-delay.backoff-multiplier", "1.5", positive_float;
    /// How long a job must run without a failure before its delay starts again from the first.
    EXPONENTIAL_DELAY_RESET: Duration = "restart-strategy.exponential-delay.reset-backoff-threshold", "1 h", parse_duration;
    /// After how many restarts without a reset an exponential-delay job fails; `infinite` for never.
    EXPONENTIAL_DELAY_ATTEMPTS: u32 = "restart-strategy.exponential-delay.attempts-before-reset-backoff", "infinite", number_or_infinite;
    /// How many failures a failure-rate job may have in an interval.
    FAILURE_RATE_MAX: u32 = "restart-strategy.failure-rate.max-failures-per-interval", "1", count;
    /// The interval in which a failure-rate job's failures are counted.
    FAILURE_RATE_INTERVAL: Duration = "restart-strategy.failure-rate.failure-rate-interval", "1 min", parse_duration;
    /// How long a failure-rate job waits before each restart.
    FAILURE_RATE_DELAY: Duration = "restart-strategy.failure-rate.delay", "1 s", parse_duration;

    /// How long a SELECT goes on in a cluster when its client does not ask for rows any more; then it is cancelled.
    CLIENT_HEARTBEAT_TIMEOUT: Duration = "client.heartbeat.timeout", "3 min", positive_duration;

    /// How many slots a TaskManager offers.
    TASK_SLOTS: u32 = "taskmanager.numberOfTaskSlots", "1", count;
    /// How long a TaskManager looks for its JobManager before it gives up.
    REGISTRATION_TIMEOUT: Duration = "taskmanager.registration.timeout", "5 min", parse_duration;
    /// The address that a TaskManager's workers listen on for data.
    TASKMANAGER_BIND_HOST: String = "taskmanager.bind-host", "127.0.0.1", text;
    /// The host that other workers reach this TaskManager's workers at; empty: its bind address.
    TASKMANAGER_HOST: String = "taskmanager.host", "", text;
    /// How much memory keyed state may take in a TaskManager; its slots share it evenly. Empty: 40 % of the memory of the
    /// machine, or of the container if that has less.
    MANAGED_MEMORY: Option<u64> = "taskmanager.memory.managed.size", "", optional_bytes;
    /// How many bytes may wait in one channel between two subtasks.
    CHANNEL_BYTES: u64 = "taskmanager.network.memory.channel-size", "1mb", bytes_nonzero;
    /// Whether data between workers is compressed with LZ4.
    NETWORK_COMPRESSION: bool = "taskmanager.network.compression.enabled", "false", boolean;
    /// The folder of a process for artifacts, temporary files, and state that memory has no room for; empty: the
    /// system's.
    IO_TMP_DIRS: String = "io.tmp.dirs", "", text;

    /// The host that the JobManager listens on for processes of the cluster.
    JOBMANAGER_BIND_HOST: String = "jobmanager.bind-host", "127.0.0.1", text;
    /// The host that processes of the cluster reach the JobManager at.
    JOBMANAGER_RPC_ADDRESS: String = "jobmanager.rpc.address", "127.0.0.1", text;
    /// The port for processes of the cluster.
    JOBMANAGER_RPC_PORT: u16 = "jobmanager.rpc.port", "6123", port;
    /// The host that REST listens on.
    REST_BIND_ADDRESS: String = "rest.bind-address", "127.0.0.1", text;
    /// The host that clients reach REST at.
    REST_ADDRESS: String = "rest.address", "127.0.0.1", text;
    /// The port of REST; 0 takes a free one.
    REST_PORT: u16 = "rest.port", "8081", port;
    /// Where the JobManager keeps its durable facts and artifacts.
    HA_STORAGE_DIR: String = "high-availability.storageDir", "", text;
    /// How long a job waits for the slots it needs.
    SLOT_REQUEST_TIMEOUT: Duration = "slot.request.timeout", "5 min", positive_duration;
    /// How often processes tell each other that they live. Flink's is 10 s.
    HEARTBEAT_INTERVAL: Duration = "heartbeat.interval", "500 ms", positive_duration;
    /// After how long without a sign of life a process is given up. Flink's is 50 s.
    HEARTBEAT_TIMEOUT: Duration = "heartbeat.timeout", "5 s", positive_duration;
    /// Whether servers may listen beyond loopback although there is no TLS and no authentication.
    INSECURE: bool = "security.insecure", "false", boolean;
}

/// Whether a job runs until it is stopped or until its input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeMode {
    /// Results as they come, checkpoints while it runs.
    Streaming,
    /// Results at the end of bounded input.
    Batch,
}

/// Who decides how many subtasks a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerMode {
    /// Whoever wrote or started it.
    Default,
    /// The slots that there are.
    Reactive,
}

/// What a failure restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverStrategy {
    /// The regions that have lost a subtask.
    Region,
    /// The whole job.
    Full,
}

/// Where keyed state is kept while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateBackendType {
    /// In memory, until that is full.
    HashMap,
    /// On disk, with what is needed in memory.
    Disk,
}

/// What becomes of the last checkpoint when a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Deleted whenever the job reaches its end.
    Never,
    /// Kept when the job fails, deleted when it is cancelled.
    OnFailure,
    /// Kept when the job fails and when it is cancelled.
    OnCancellation,
}

/// Every option.
pub fn all() -> &'static [KnownOption] {
    ALL
}

/// The option with this key, or with this older key.
pub fn find(key: &str) -> Option<&'static KnownOption> {
    ALL.iter().find(|option| option.key == key || option.alias == Some(key))
}

/// The keys of all options.
pub fn keys() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|option| option.key)
}

fn positive_duration(text: &str) -> Result<Duration> {
    match parse_duration(text)? {
        Duration::ZERO => Err(Error::input("0 is not possible here: nothing happens in no time")),
        duration => Ok(duration),
    }
}

fn text(text: &str) -> Result<String> {
    Ok(text.to_owned())
}

fn number(text: &str) -> Result<u32> {
    text.trim().parse().map_err(|_| Error::input(format!("'{text}' is not a whole number from 0 to {}", u32::MAX)))
}

fn number_or_infinite(text: &str) -> Result<u32> {
    if text.trim().eq_ignore_ascii_case("infinite") { Ok(u32::MAX) } else { number(text) }
}

fn count(text: &str) -> Result<u32> {
    match number(text)? {
        0 => Err(Error::input("0 is not possible here: the least is 1")),
        count => Ok(count),
    }
}

fn max_parallelism(text: &str) -> Result<u32> {
    match count(text)? {
        groups if groups <= MAX_PARALLELISM_LIMIT => Ok(groups),
        groups => Err(Error::input(format!("{groups} key groups are too many: the most is {MAX_PARALLELISM_LIMIT}"))),
    }
}

fn port(text: &str) -> Result<u16> {
    text.trim().parse().map_err(|_| Error::input(format!("'{text}' is not a port: the range is 0 to 65535")))
}

fn bytes_nonzero(text: &str) -> Result<u64> {
    match parse_bytes(text)? {
        0 => Err(Error::input("0 bytes are not possible here")),
        bytes => Ok(bytes),
    }
}

/// The empty text is none.
fn optional_bytes(text: &str) -> Result<Option<u64>> {
    if text.is_empty() { Ok(None) } else { bytes_nonzero(text).map(Some) }
}

fn boolean(text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::input(format!("'{text}' is neither true nor false"))),
    }
}

fn positive_float(text: &str) -> Result<f64> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(Error::input(format!("'{text}' is not a positive number"))),
    }
}

fn runtime_mode(text: &str) -> Result<RuntimeMode> {
    match text.trim().to_ascii_uppercase().as_str() {
        "STREAMING" => Ok(RuntimeMode::Streaming),
        "BATCH" => Ok(RuntimeMode::Batch),
        _ => Err(Error::input(format!("'{text}' is not a runtime mode: STREAMING or BATCH"))),
    }
}

fn scheduler_mode(text: &str) -> Result<SchedulerMode> {
    match text.trim().to_ascii_lowercase().as_str() {
        "default" => Ok(SchedulerMode::Default),
        "reactive" => Ok(SchedulerMode::Reactive),
        _ => Err(Error::input(format!("'{text}' is not a scheduler mode: default or reactive"))),
    }
}

fn failover_strategy(text: &str) -> Result<FailoverStrategy> {
    match text.trim().to_ascii_lowercase().as_str() {
        "region" => Ok(FailoverStrategy::Region),
        "full" => Ok(FailoverStrategy::Full),
        _ => Err(Error::input(format!("'{text}' is not a failover strategy: region or full"))),
    }
}

fn state_backend(text: &str) -> Result<StateBackendType> {
    match text.trim().to_ascii_lowercase().as_str() {
        "hashmap" => Ok(StateBackendType::HashMap),
        "disk" => Ok(StateBackendType::Disk),
        name @ ("rocksdb" | "forst") => Err(Error::input(format!(
            "there is no state backend '{name}' here: 'disk' does the same, and 'hashmap' uses the disk too when memory is full"
        ))),
        _ => Err(Error::input(format!("'{text}' is not a state backend: hashmap or disk"))),
    }
}

fn retention(text: &str) -> Result<Retention> {
    match text.trim().to_ascii_uppercase().as_str() {
        "NO_EXTERNALIZED_CHECKPOINTS" => Ok(Retention::Never),
        "DELETE_ON_CANCELLATION" => Ok(Retention::OnFailure),
        "RETAIN_ON_CANCELLATION" => Ok(Retention::OnCancellation),
        _ => Err(Error::input(format!(
            "'{text}' is not a retention: NO_EXTERNALIZED_CHECKPOINTS, DELETE_ON_CANCELLATION or RETAIN_ON_CANCELLATION"
        ))),
    }
}

fn restart_strategy(text: &str) -> Result<String> {
    match text.trim() {
        name @ ("none" | "fixed-delay" | "exponential-delay" | "failure-rate") => Ok(name.to_owned()),
        _ => Err(Error::input(format!(
            "'{text}' is not a restart strategy: none, fixed-delay, exponential-delay or failure-rate"
        ))),
    }
}
