//! End-to-end tests: real processes, killed for real, and every record counted.
//!
//! The tests under `tests/` start a cluster of the programs in the target folder, give it jobs through the command line,
//! look at it through REST, and count what the file sinks have committed. This library is what they have in common; the
//! program `e2e-job` in `src/bin` has the jobs that no example needs, such as one that panics.
//!
//! ```no_run
//! use flott_e2e::{Cluster, Numbers, binary, visible_lines};
//!
//! let mut cluster = Cluster::start(2, 2);
//! let out = cluster.path("out");
//! let job = cluster.run_job(
//!     &binary("e2e-job"),
//!     &["-p", "2", "-D", "execution.checkpointing.interval=300ms"],
//!     &["--case", "numbers", "--output", &out],
//! );
//! cluster.wait_for_checkpoints(&job, 2);
//! cluster.kill_task_manager(0);
//! cluster.start_task_manager(0);
//! cluster.stop(&job, &cluster.path("savepoints"), false);
//! Numbers::read(&visible_lines(out)).assert_no_gaps();
//! ```
//!
//! - [`Cluster`]: starts, kills and restarts processes; everything ends with it, and a failed test shows all logs
//! - [`CommandOutput`]: what a command printed, and how it ended
//! - [`Process`], [`Paused`]: one process, and what the kernel says about others
//! - [`visible_lines`], [`assert_same`], [`Numbers`], [`account_entries`]: what a sink has committed, and whether it is right
//! - [`all_kinds`], [`kinds_lines`]: a job with state of every kind, and what it writes
//! - [`OutputWatch`]: how long a sink has committed nothing
//! - [`copy_folder`], [`files_below`], [`change_file`], [`local_path`]: savepoints as folders
//! - [`Random`]: numbers from a seed that can be given again
//! - [`has_late_rows`]: what is known of the scripts in `tests/sql`
//! - [`Terminal`]: a command on a terminal, and someone who types
//! - [`until`]: waiting, never without a limit

mod accounts;
mod binaries;
mod checkpoint;
mod cluster;
mod command;
mod folder;
mod gap;
mod http;
mod job;
mod kinds;
mod numbers;
mod output;
mod permit;
mod process;
mod random;
mod scripts;
mod setup;
mod terminal;
mod wait;

pub use accounts::account_entries;
pub use binaries::{binary, flights_events, python, repository};
pub use cluster::Cluster;
pub use command::{CommandOutput, run_command};
pub use folder::{change_file, copy_folder, files_below, local_path};
pub use gap::OutputWatch;
pub use http::request;
pub use kinds::{all_kinds, kinds_lines};
pub use numbers::{KEYS, Numbers, STRIDES, line};
pub use output::{assert_same, visible_lines};
pub use process::{Paused, Process, environment_of, is_running, peak_memory, signal};
pub use random::Random;
pub use scripts::has_late_rows;
pub use setup::{Setup, free_port};
pub use terminal::Terminal;
pub use wait::until;
