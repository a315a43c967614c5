//! What goes to standard output: text for people, or one JSON value for scripts.

use std::io::{ErrorKind, Write};

use clap::ValueEnum;
use flott_core::{Result, ResultExt};
use flott_local::client::{Client, DEFAULT_ADDRESS};
use serde_json::Value;

/// The form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON value for scripts
    Json,
}

impl Format {
    /// Prints the result.
    pub(crate) fn print(self, text: &str, json: &Value) -> Result<()> {
        let text = match self {
            Self::Text => format!("{text}\n"),
            Self::Json => format!("{json:#}\n"),
        };
        write(text.as_bytes()).map(drop)
    }
}

/// Writes to standard output; whether someone still reads there.
pub(crate) fn write(bytes: &[u8]) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        // A reader such as `head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("writing to standard output"),
    }
}

/// The choice of the form.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    /// What the result is printed as
    #[arg(short, long = "output", value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Format,
}

/// What every verb takes that asks a cluster.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClientArgs {
    /// The REST address of the JobManager
    #[arg(short = 'm', long = "jobmanager", value_name = "HOST:PORT", default_value = DEFAULT_ADDRESS)]
    jobmanager: String,

    #[command(flatten)]
    pub(crate) format: OutputArgs,
}

impl ClientArgs {
    /// A client of the cluster.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::new(&self.jobmanager)
    }

    /// Prints the result.
    pub(crate) fn print(&self, text: &str, json: &Value) -> Result<()> {
        self.format.output.print(text, json)
    }
}
