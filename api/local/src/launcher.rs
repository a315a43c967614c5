//! Finds out which role the binary plays, and plays it.

use std::sync::Arc;
use std::time::Duration;

use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_operators::Program;
use flott_taskmanager::supervisor::worker_env;

use crate::args::EngineArgs;
use crate::{check, client, embedded, plan, worker};

/// How a job ended.
#[derive(Clone, Debug)]
pub struct JobOutcome {
    /// The job.
    pub job: JobId,
    /// Its state when `execute` returned: not an end if it runs on in a cluster.
    pub status: JobStatus,
    /// How long it took.
    pub duration: Duration,
}

enum Role {
    Local,
    Client(String),
    Plan,
    Check,
    Worker,
}

/// The role of this process and what it was started with.
pub struct Launcher {
    role: Role,
    args: EngineArgs,
    config: Configuration,
}

impl Launcher {
    /// The role that environment and arguments ask for.
    pub fn new(args: EngineArgs) -> Result<Self> {
        let role = match std::env::var(worker_env::ROLE) {
            Ok(role) if role == "worker" => Role::Worker,
            Ok(role) if role == "plan" => Role::Plan,
            Ok(role) if role == "check" => Role::Check,
            Ok(role) => return Err(Error::input(format!("{} is '{role}': it is not for users", worker_env::ROLE))),
            Err(_) => args.jobmanager.clone().map_or(Role::Local, Role::Client),
        };
        let config = match std::env::var(worker_env::CONFIG) {
            // Whoever started this process has merged the arguments in already.
            Ok(json) if matches!(role, Role::Worker | Role::Plan | Role::Check) => Configuration::from_json(&json)?,
            _ => args.config()?,
        };
        Ok(Self { role, args, config })
    }

    /// A launcher that runs in this process whatever the arguments say, for tests and doc tests.
    pub fn local(config: Configuration) -> Self {
        Self { role: Role::Local, args: EngineArgs::default(), config }
    }

    /// The configuration that was given outside the program. It goes over the program's own.
    pub fn config(&self) -> &Configuration {
        &self.config
    }

    /// Whether the job will run in this process.
    pub fn is_local(&self) -> bool {
        matches!(self.role, Role::Local)
    }

    /// Runs the program in this process's role. Returns when the job has ended, or was submitted detached; a
    /// process that plans, checks or works ends here.
    pub fn execute(&self, program: Arc<Program>) -> Result<JobOutcome> {
        self.execute_as(program, || std::env::args().skip(1).collect())
    }

    /// Like [`Self::execute`], for a program that `arguments` build in this binary, rather than those that this process was
    /// started with.
    pub fn execute_as(&self, program: Arc<Program>, arguments: impl FnOnce() -> Vec<String>) -> Result<JobOutcome> {
        match &self.role {
            Role::Local => embedded::run(program, &self.args),
            Role::Client(address) => client::submit_this_binary(address, &program.job_graph, &self.args, arguments()),
            Role::Plan => plan::answer(&program.job_graph),
            Role::Check => check::write(&program),
            Role::Worker => worker::run(program),
        }
    }
}
