//! `flott list`: the jobs of a cluster.

use std::process::ExitCode;

use comfy_table::Table;
use flott_core::Result;
use flott_core::status::JobStatus;
use serde_json::json;

use crate::jobs::{JobSummary, summaries};
use crate::output::ClientArgs;
use crate::{block_on, format};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott list                   jobs that run or wait
  flott list -a -m host:8081   all jobs that the cluster knows, those that have ended too
  flott list -a -o json        the same as JSON, in the shape of REST's /jobs/overview";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// All jobs, also those that have ended
    #[arg(short, long)]
    all: bool,

    /// Only jobs that run, restart, or are being stopped
    #[arg(short, long)]
    running: bool,

    /// Only jobs that have never run yet
    #[arg(short, long)]
    scheduled: bool,

    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    fn is_wanted(&self, status: JobStatus) -> bool {
        let neither = !self.running && !self.scheduled;
        match status {
            _ if self.all => true,
            JobStatus::Created => self.scheduled || neither,
            status if status.is_terminal() => false,
            _ => self.running || neither,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let client = args.client.client()?;
    let overview = block_on(client.get("/jobs/overview"))?;
    let jobs = summaries(&overview)?;
    let wanted: Vec<&JobSummary> = jobs.iter().filter(|job| args.is_wanted(job.status)).collect();
    let text = match wanted[..] {
        [] if jobs.is_empty() => "No jobs.".to_owned(),
        [] => format!("No such jobs; `flott list -a` shows all {}.", jobs.len()),
        _ => table(&wanted),
    };
    // As they came, since they say more than was read.
    let values = overview["jobs"].as_array().into_iter().flatten().zip(&jobs);
    let values: Vec<_> = values.filter(|(_, job)| args.is_wanted(job.status)).map(|(value, _)| value).collect();
    args.client.print(&text, &json!({ "jobs": values }))?;
    Ok(ExitCode::SUCCESS)
}

fn table(jobs: &[&JobSummary]) -> String {
    let mut table = Table::new();
    table.set_header(["JOB", "NAME", "STATE", "STARTED", "DURATION", "TASKS"]);
    for job in jobs {
        let state = match &job.waiting_for {
            Some(slots) => format!("{}: {}", job.status, format::printable(slots)),
            None => job.status.to_string(),
        };
        table.add_row([
            job.id.to_string(),
            format::printable(&job.name),
            state,
            format::utc(job.start_ms),
            format::duration(format::millis(job.duration_ms)),
            format!("{}/{}", job.tasks.running, job.tasks.total),
        ]);
    }
    format::table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(flags: &[&str]) -> Args {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let line = std::iter::once("list").chain(flags.iter().copied());
        <Line as clap::Parser>::try_parse_from(line).unwrap().args
    }

    #[test]
    fn flags_are_flinks() {
        use JobStatus::*;
        let wanted =
            |flags: &[&str]| [Created, Running, Restarting, Finished].map(|status| args(flags).is_wanted(status));
        assert_eq!(wanted(&[]), [true, true, true, false]);
        assert_eq!(wanted(&["-r"]), [false, true, true, false]);
        assert_eq!(wanted(&["-s"]), [true, false, false, false]);
        assert_eq!(wanted(&["-a"]), [true; 4]);
    }

    #[test]
    fn jobs_are_listed_in_columns() {
        let value = json!({ "jobs": [{
            "jid": "00112233445566778899aabbccddeeff", "name": "word\ncount", "state": "CREATED",
            "start-time": 0, "duration": 1_500, "tasks": { "total": 4, "running": 3 },
            "waiting-for": "needs 2 slots",
        }]});
        let jobs = summaries(&value).unwrap();
        let text = table(&jobs.iter().collect::<Vec<_>>());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(lines[0], ["JOB", "NAME", "STATE", "STARTED", "DURATION", "TASKS"]);
        assert_eq!(
            lines[1],
            [
                "00112233445566778899aabbccddeeff",
                "word?count",
                "CREATED: needs 2 slots",
                "1970-01-01 00:00:00Z",
                "1.5 s",
                "3/4"
            ]
        );
    }
}
