//! The engine's arguments of a job's binary, beside the job's own.

use flott_core::Result;
use flott_core::config::{Configuration, options};

/// What the engine takes from a job's command line.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Engine options")]
pub struct EngineArgs {
    /// How many subtasks an operator has that does not say so itself
    #[arg(short, long, value_name = "N")]
    pub parallelism: Option<u32>,

    /// Sets an option, such as `-D execution.checkpointing.interval=10s`; may be repeated
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    pub define: Vec<String>,

    /// Submits to the cluster whose REST API is here, instead of running in this process
    #[arg(short = 'm', long = "jobmanager", value_name = "HOST:PORT")]
    pub jobmanager: Option<String>,

    /// Starts from this savepoint or retained checkpoint
    #[arg(short = 's', long = "fromSavepoint", value_name = "PATH")]
    pub savepoint: Option<String>,

    /// Drops state of the savepoint that no operator claims
    #[arg(short = 'n', long = "allowNonRestoredState")]
    pub allow_non_restored_state: bool,

    /// With -m: returns when the job is submitted instead of waiting for its end
    #[arg(short = 'd', long)]
    pub detached: bool,
}

impl EngineArgs {
    /// The configuration that the arguments make.
    pub fn config(&self) -> Result<Configuration> {
        let mut config = Configuration::default();
        self.define.iter().try_for_each(|pair| config.set_pair(pair))?;
        if let Some(parallelism) = self.parallelism {
            config.set(options::PARALLELISM_DEFAULT.key, &parallelism.to_string())?;
        }
        Ok(config)
    }
}
