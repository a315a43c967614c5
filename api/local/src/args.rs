//! The engine's arguments of a job's binary, beside the job's own.

use flott_control::ClaimMode;
use flott_core::config::{Configuration, options};
use flott_core::{Error, Result};

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

    /// Whose the savepoint is from the start on: `no_claim` leaves it to you, `claim` makes it the job's, which deletes
    /// it like any checkpoint of its own once newer ones have taken its place
    #[arg(
        long = "claimMode",
        alias = "restoreMode",
        value_name = "MODE",
        value_parser = claim_mode,
        default_value = "no_claim"
    )]
    pub claim_mode: ClaimMode,

    /// With -m: returns when the job is submitted instead of waiting for its end
    #[arg(short = 'd', long)]
    pub detached: bool,

    /// Whether someone types what is run, and sees what becomes of it without being told
    #[arg(skip)]
    pub is_interactive: bool,
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

/// Reads Flink's name of a claim mode, in any case.
pub fn claim_mode(text: &str) -> Result<ClaimMode> {
    match text.to_ascii_lowercase().as_str() {
        "no_claim" => Ok(ClaimMode::NoClaim),
        "claim" => Ok(ClaimMode::Claim),
        _ => Err(Error::input(format!("'{text}' is not a claim mode: no_claim or claim"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: EngineArgs,
    }

    fn parse(arguments: &[&str]) -> std::result::Result<EngineArgs, clap::Error> {
        let line = std::iter::once("job").chain(arguments.iter().copied());
        <Line as clap::Parser>::try_parse_from(line).map(|line| line.args)
    }

    #[test]
    fn claim_modes_have_flinks_names() {
        assert_eq!(parse(&[]).unwrap().claim_mode, ClaimMode::NoClaim);
        assert_eq!(parse(&["--claimMode", "CLAIM"]).unwrap().claim_mode, ClaimMode::Claim);
        assert_eq!(parse(&["--restoreMode", "no_claim"]).unwrap().claim_mode, ClaimMode::NoClaim);
        let error = parse(&["--claimMode", "legacy"]).unwrap_err().to_string();
        assert!(error.contains("'legacy' is not a claim mode: no_claim or claim"), "{error}");
    }
}
