//! The interactive client: a line editor around a session.
//!
//! Lines are gathered until they are whole statements. A mistake is shown and leaves the session as it was; Ctrl-C ends what
//! is being typed, or the query that runs, and never the client.

use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

use flott_core::{Error, Result, ResultExt};
use flott_sql::parse::split;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use tokio::signal::unix::{SignalKind, signal};

use super::Script;
use super::words::{Assistant, Names};
use crate::{output, terminal};

const PROMPT: &str = "Flott SQL> ";

/// The prompt of the lines of a statement behind its first.
const PROMPT_MORE: &str = "         > ";

/// How many statements are remembered.
const HISTORY_MAX: usize = 10_000;

const WELCOME: &str = "\
Flott SQL. Statements end with a semicolon; HELP; lists them, QUIT; ends. Tab completes, Ctrl-C cancels a query.";

const HELP: &str = "\
SELECT …, WITH …, VALUES …            runs a query and shows its rows; Ctrl-C cancels it
INSERT INTO …, EXECUTE STATEMENT SET  runs a job that writes tables
CREATE, ALTER, DROP, USE              tables, views, functions, catalogs, databases
SHOW TABLES, DESCRIBE t, EXPLAIN q    what there is, and what a query becomes
SET 'key' = 'value', RESET 'key'      settings; SET alone lists them
    'sql-client.execution.result-mode' = 'table' (the default here), 'changelog' or 'tableau'
    'execution.runtime-mode' = 'streaming' (the default) or 'batch'
CLEAR                                 clears the screen
HELP, QUIT, EXIT                      and Ctrl-D ends as well
Statements that begin with a blank are not remembered.
";

/// Clears the screen, and puts the cursor at its top.
const CLEAR: &[u8] = b"\x1b[2J\x1b[H";

/// What is not SQL, but said to the client. It needs no semicolon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Quit,
    Help,
    Clear,
}

fn verb(text: &str) -> Option<Verb> {
    let word = text.trim().trim_end_matches(';').trim_end();
    let verbs = [("QUIT", Verb::Quit), ("EXIT", Verb::Quit), ("HELP", Verb::Help), ("CLEAR", Verb::Clear)];
    verbs.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, verb)| *verb)
}

/// Reads statements and runs them until the input ends.
pub(super) fn run(script: &mut Script<'_>) -> Result<()> {
    outlive_interrupts()?;
    let config = Config::builder()
        .max_history_size(HISTORY_MAX)
        .map_err(failed)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Assistant, DefaultHistory> = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Assistant::default()));
    let history = history_file();
    if let Some(file) = &history {
        // There is none yet the first time. One that cannot be read is no reason not to work.
        let _ = editor.load_history(file);
    }
    terminal::say(WELCOME);
    let mut text = String::new();
    loop {
        if let Some(assistant) = editor.helper_mut() {
            assistant.begin(Names::of(&script.session), &text);
        }
        match editor.readline(if text.is_empty() { PROMPT } else { PROMPT_MORE }) {
            Ok(line) => {
                text.push_str(&line);
                if !is_whole(&text) {
                    text.push('\n');
                    continue;
                }
                let entered = std::mem::take(&mut text);
                remember(&mut editor, history.as_ref(), &entered);
                if !enter(script, &entered)? {
                    return Ok(());
                }
            }
            // Ctrl-C leaves the statement that was being typed.
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Runs what was entered; whether there is more to come.
fn enter(script: &mut Script<'_>, text: &str) -> Result<bool> {
    let pieces = match split(text) {
        Ok(pieces) => pieces,
        Err(error) => {
            terminal::say(format_args!("error: {error}"));
            return Ok(true);
        }
    };
    for piece in &pieces {
        let is_shown = match verb(piece.text) {
            Some(Verb::Quit) => return Ok(false),
            Some(Verb::Help) => output::write(HELP.as_bytes())?,
            Some(Verb::Clear) => output::write(CLEAR)?,
            None => {
                if let Err(error) = script.statement(piece) {
                    terminal::say(format_args!("error: {error}"));
                    // What stands behind a statement that failed may need it.
                    break;
                }
                true
            }
        };
        if !is_shown {
            // Nobody sees what is answered any more.
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether what was typed is whole: a text, name or comment that is open, or a missing semicolon, asks for more.
fn is_whole(text: &str) -> bool {
    if text.trim().is_empty() || verb(text).is_some() {
        return true;
    }
    // Behind the last semicolon that ends a statement nothing is left. One within a statement set does not end it.
    match split(&format!("{text}\n,")) {
        Ok(pieces) => pieces.last().is_some_and(|piece| piece.text == ","),
        Err(_) => false,
    }
}

/// Leaves Ctrl-C to whatever runs and asks for it. By itself it would end the process, also between two statements.
fn outlive_interrupts() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the I/O of the client")?;
    let _context = runtime.enter();
    // What the system does by itself is replaced for as long as the process lives, whoever listens.
    signal(SignalKind::interrupt()).context("listening for SIGINT").map(drop)
}

fn failed(error: ReadlineError) -> Error {
    Error::system(format!("reading from the terminal: {error}"))
}

/// Adds to the history. One that cannot be kept is no reason to stop working.
fn remember(editor: &mut Editor<Assistant, DefaultHistory>, file: Option<&PathBuf>, text: &str) {
    let is_new = !text.trim().is_empty() && editor.add_history_entry(text).unwrap_or(false);
    if let Some(file) = file.filter(|_| is_new) {
        let _ = editor.append_history(file);
        // A file that somebody else made may be for all to read; statements have passwords in them.
        let _ = fs::set_permissions(file, Permissions::from_mode(0o600));
    }
}

/// `$XDG_STATE_HOME/flott/sql-history`, in a folder that is there.
fn history_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?.join("flott");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("sql-history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_with_its_semicolon() {
        let whole =
            ["", "  \n", "SELECT 1;", "SELECT ';';  ", "SELECT 1; -- a;\n", "-- a", "quit", "Help ;", "SET 'a' = 'b';"];
        for whole in whole {
            assert!(is_whole(whole), "{whole}");
        }
        let open = ["SELECT 1", "SELECT 1; SELECT 2", "SELECT ';", "SELECT `a;", "SELECT 1 -- ;", "/* ;", "quit x"];
        for open in open {
            assert!(!is_whole(open), "{open}");
        }
        assert!(!is_whole("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;"));
        assert!(is_whole("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;"));
    }

    #[test]
    fn words_to_the_client_need_no_semicolon() {
        assert_eq!(verb(" exit ;"), Some(Verb::Quit));
        assert_eq!(verb("CLEAR"), Some(Verb::Clear));
        assert_eq!(verb("help"), Some(Verb::Help));
        assert_eq!(verb("SELECT 1;"), None);
    }
}
