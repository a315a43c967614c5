//! From a script to the job of its last query.

use flott_core::{Error, Result};
use flott_sql::parse::parse_script;
use flott_sql::session::{Answer, Job, Session, SessionConfig};

/// The job of the one query that a script ends in. `settings` are those that the session begins with.
///
/// # Errors
/// A statement is wrong, or there is no query at the end.
pub fn job_of(script: &str, settings: &[(&str, &str)]) -> Result<Job> {
    let mut session = Session::new(SessionConfig::new(settings.iter().copied())?);
    let mut last = Answer::Done;
    for statement in parse_script(script)? {
        last = session.execute(&statement)?;
    }
    match last {
        Answer::Select(job) => Ok(job),
        other => Err(Error::input(format!("the script does not end in a query, but in {other:?}"))),
    }
}
