//! From a script to its jobs.

use arrow::array::RecordBatch;
use flott_chunk::Chunk;
use flott_chunk::display::write_changelog;
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

/// All rows that the statements of a script answer. `run` runs each job, whose number it is given, before the next statement is
/// looked at, and says which rows it answers: none if it writes tables.
///
/// # Errors
/// A statement is wrong, or a job fails.
pub fn answers(
    script: &str,
    settings: &[(&str, &str)],
    mut run: impl FnMut(usize, &Job) -> Result<Vec<String>>,
) -> Result<Vec<String>> {
    let mut session = Session::new(SessionConfig::new(settings.iter().copied())?);
    let (mut rows, mut jobs) = (Vec::new(), 0);
    for statement in parse_script(script)? {
        match session.execute(&statement)? {
            Answer::Done => {}
            Answer::Rows(known) => rows.extend(shown(known)),
            Answer::Select(job) | Answer::Insert(job) => {
                rows.extend(run(jobs, &job)?);
                jobs += 1;
            }
        }
    }
    Ok(rows)
}

/// Rows that are known without a job, as those of a job are shown.
fn shown(rows: RecordBatch) -> Vec<String> {
    let chunk = Chunk::inserts(rows);
    let values = |row| {
        let mut line = String::new();
        write_changelog(&chunk, row, &mut line);
        line.split_once('\t').map(|(_, values)| values.to_owned()).unwrap_or_default()
    };
    (0..chunk.len()).map(values).collect()
}
