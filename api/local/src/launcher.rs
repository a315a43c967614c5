//! Finds out which role the binary plays, and plays it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_operators::Program;
use flott_taskmanager::supervisor::worker_env;
use serde::{Deserialize, Serialize};

use crate::args::EngineArgs;
use crate::client::Client;
use crate::plan::Planned;
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

/// How workers build a program: what this binary is started with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recipe {
    /// The arguments. They are short, and for all to read.
    pub arguments: Vec<String>,
    /// What is given to it beside them: see [`Launcher::payload`].
    pub payload: Option<String>,
}

#[derive(Clone)]
enum Role {
    Local,
    Client(String),
    Plan,
    Check,
    Worker,
}

/// The role of this process and what it was started with.
#[derive(Clone)]
pub struct Launcher {
    role: Role,
    args: EngineArgs,
    config: Configuration,
    /// Whether this process has submitted itself, shared by clones.
    has_submitted: Arc<AtomicBool>,
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
        Ok(Self { role, args, config, has_submitted: Arc::default() })
    }

    /// A launcher that runs in this process whatever the arguments say, for tests and doc tests.
    pub fn local(config: Configuration) -> Self {
        Self { role: Role::Local, args: EngineArgs::default(), config, has_submitted: Arc::default() }
    }

    /// The configuration that was given outside the program. It goes over the program's own.
    pub fn config(&self) -> &Configuration {
        &self.config
    }

    /// Whether the job will run in this process.
    pub fn is_local(&self) -> bool {
        matches!(self.role, Role::Local)
    }

    /// Whether a client asks this process about its job, rather than to run it: it ends with the answer.
    pub fn is_asked(&self) -> bool {
        matches!(self.role, Role::Plan | Role::Check)
    }

    /// Runs the program in this process's role. Returns when the job has ended, or was submitted detached; a
    /// process that plans, checks or works ends here.
    ///
    /// # Errors
    /// The job was not accepted, failed, or was cancelled. In a cluster a process executes one program: its workers run the
    /// same binary with the same arguments, and come to the first one.
    pub fn execute(&self, program: Arc<Program>) -> Result<JobOutcome> {
        let name = program.job_graph.name.clone();
        self.execute_as(program, || self.own_recipe(&name))
    }

    /// The recipe of the program `name` that this process comes to by itself: its own arguments.
    ///
    /// # Errors
    /// It has given it to another program.
    pub fn own_recipe(&self, name: &str) -> Result<Recipe> {
        if self.has_submitted.swap(true, Ordering::Relaxed) {
            return Err(Error::input(format!(
                "'{name}' is the second job of this program, and a cluster runs one of each: make them one, as a statement set does \
                 of several INSERTs, or leave out -m"
            )));
        }
        Ok(Recipe { arguments: std::env::args().skip(1).collect(), payload: None })
    }

    /// Like [`Self::execute`], for a program that `recipe` builds in this binary, rather than the arguments that this process
    /// was started with.
    ///
    /// # Errors
    /// As for [`Self::execute`], and those of `recipe`, which is needed for a cluster only.
    pub fn execute_as(&self, program: Arc<Program>, recipe: impl FnOnce() -> Result<Recipe>) -> Result<JobOutcome> {
        match &self.role {
            Role::Local => {
                let name = program.job_graph.name.clone();
                match self.run_here(program)? {
                    outcome if outcome.status == JobStatus::Canceled => Err(embedded::cancelled(&name)),
                    outcome => Ok(outcome),
                }
            }
            Role::Client(address) => client::run_this_binary(address, &program.job_graph, &self.args, recipe()?),
            Role::Plan => plan::answer(&Planned { graph: program.job_graph.clone(), recipe: recipe()? }),
            Role::Check => check::write(&program),
            Role::Worker => worker::run(program),
        }
    }

    /// Runs the program in this process, whatever its role, to its end, which may be a cancellation.
    ///
    /// # Errors
    /// It failed.
    pub fn run_here(&self, program: Arc<Program>) -> Result<JobOutcome> {
        embedded::run(program, &self.args)
    }

    /// Submits the program that `recipe` builds in this binary, and does not wait for its end. A process that plans, checks or
    /// works ends here.
    ///
    /// # Errors
    /// It was not accepted, or there is no cluster.
    pub fn submit(&self, program: Arc<Program>, recipe: impl FnOnce() -> Result<Recipe>) -> Result<(Client, JobId)> {
        match &self.role {
            Role::Client(address) => client::submit_this_binary(address, &program.job_graph, &self.args, recipe()?),
            Role::Local => Err(Error::input("there is no cluster to submit the job to: name one with -m host:port")),
            Role::Plan | Role::Check | Role::Worker => {
                self.execute_as(program, recipe)?;
                Err(Error::system("a worker has come to its end"))
            }
        }
    }

    /// What a worker was given beside its arguments. Can be asked for once, before the program is executed.
    ///
    /// # Errors
    /// This process is no worker, or was given nothing.
    pub fn payload(&self) -> Result<String> {
        match self.role {
            Role::Worker => worker::payload(),
            _ => Err(Error::input("only the worker of a job has a payload")),
        }
    }

    /// The `host:port` at which a worker reaches its JobManager.
    ///
    /// # Errors
    /// This process is no worker.
    pub fn jobmanager(&self) -> Result<String> {
        match self.role {
            Role::Worker => worker::variable(worker_env::JOBMANAGER),
            _ => Err(Error::input("only the worker of a job has a JobManager to talk to")),
        }
    }
}
