//! `flott sql` on a terminal: what someone types, and what they see.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use flott_e2e::{Terminal, binary};

const PROMPT: &str = "Flott SQL> ";

const ENTER: &str = "\r";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";

/// A client whose history lies in `home`, at its first prompt.
fn client(home: &Path, size: (u16, u16)) -> Terminal {
    let mut command = Command::new(binary("flott"));
    command.arg("sql").env("XDG_STATE_HOME", home).env_remove("FLOTT_ROLE");
    let mut terminal = Terminal::start(&command, size);
    terminal.expect(PROMPT);
    terminal
}

/// A table of numbers that come at a rate.
fn numbers(count: u64, rate: u64) -> String {
    format!(
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}', \
         'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{count}');{ENTER}"
    )
}

#[test]
fn statements_are_typed_completed_cancelled_and_remembered() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut terminal = client(home.path(), (40, 120));

    // Over several lines, with another prompt.
    terminal.enter(&format!("SELECT 40 + 2{ENTER}"));
    terminal.expect("         > ");
    terminal.enter(&format!("AS answer;{ENTER}"));
    terminal.expect(" answer\r\n     42\r\n");
    terminal.expect(PROMPT);

    // What is wrong is shown with its place, and the session goes on.
    terminal.enter(&format!("SELEC 1;{ENTER}"));
    terminal.expect("line 1, column 1");
    terminal.expect("^");
    terminal.expect(PROMPT);

    terminal.enter(&numbers(1_000_000, 50));
    terminal.expect("[INFO] Execute statement succeeded.");
    terminal.expect(PROMPT);
    terminal.enter(&format!("SET 'sql-client.execution.result-mode' = 'tableau';{ENTER}"));
    terminal.expect("[INFO]");
    terminal.expect(PROMPT);

    // An endless query, whose table is completed, is cancelled: the client stays.
    terminal.enter("SELECT n FROM num\t");
    terminal.expect("numbers");
    terminal.enter(&format!(";{ENTER}"));
    terminal.expect("| +I |                    1 |");
    terminal.expect("| +I |                   30 |");
    terminal.enter(CTRL_C);
    terminal.expect("Query terminated, received a total of ");
    terminal.expect(PROMPT);

    // Ctrl-C drops what is being typed, in several lines too.
    terminal.enter(&format!("SELECT broken{ENTER}"));
    terminal.expect("         > ");
    terminal.enter(&format!("FROM {CTRL_C}"));
    terminal.expect(PROMPT);
    terminal.enter(&format!("SHOW TABLES;{ENTER}"));
    terminal.expect("1 row in set");
    terminal.expect(PROMPT);
    terminal.enter(&format!("{UP}{ENTER}"));
    terminal.expect("1 row in set");
    terminal.expect(PROMPT);
    terminal.enter(&format!(" SET 'pipeline.name' = 'secret';{ENTER}"));
    terminal.expect("[INFO]");
    terminal.expect(PROMPT);
    terminal.enter(&format!("HELP{ENTER}"));
    terminal.expect("QUIT");
    terminal.expect(PROMPT);
    terminal.enter(&format!("QUIT;{ENTER}"));
    assert_eq!(terminal.end(), Some(0));

    let history = home.path().join("flott/sql-history");
    assert_eq!(fs::metadata(&history).expect("a history").permissions().mode() & 0o777, 0o600);
    let history = fs::read_to_string(history).expect("a history");
    assert!(history.contains("SHOW TABLES;") && history.contains("AS answer;"), "{history}");
    assert!(!history.contains("broken") && !history.contains("secret"), "{history}");

    // The next session remembers.
    let mut terminal = client(home.path(), (40, 120));
    terminal.enter(&format!("{UP}{UP}{ENTER}"));
    terminal.expect("Statements that begin with a blank are not remembered");
    terminal.expect(PROMPT);
    terminal.enter(CTRL_D);
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_live_table_changes_in_place_and_fits_the_terminal() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut terminal = client(home.path(), (10, 60));
    terminal.enter(&numbers(300, 150));
    terminal.expect("[INFO]");
    terminal.expect(PROMPT);
    let text = "'a text that is far too wide for it'";
    let query =
        format!("SELECT MOD(n, 30) AS k, COUNT(*) AS c, {text} AS t, {text} AS u FROM numbers GROUP BY MOD(n, 30);");
    terminal.enter(&format!("{query}{ENTER}"));
    terminal.expect(" changes");
    let shown = terminal.expect(PROMPT);
    terminal.enter(CTRL_D);
    assert_eq!(terminal.end(), Some(0));

    assert!(shown.contains("30 rows (23 above), "), "{shown:?}");
    let screens: Vec<&str> = shown.split("\x1b[J").skip(1).collect();
    assert!(screens.len() > 3, "drawn only {} times: {shown:?}", screens.len());
    for screen in &screens {
        let lines: Vec<&str> = screen.split("\r\n").collect();
        assert!(lines.len() <= 10, "{} lines: {screen:?}", lines.len());
        for line in lines.iter().filter(|line| !line.contains('\x1b')) {
            assert!(line.chars().count() <= 60, "{line:?} is too wide");
        }
    }
    // The last state stays: eight lines, of which seven have groups that are complete.
    let last = screens.last().expect("some");
    assert_eq!(last.split("\r\n").filter(|line| line.contains(" 10 ")).count(), 7, "{last:?}");
}

#[test]
fn without_a_terminal_statements_are_read_as_a_script() {
    let mut command = Command::new("sh");
    command.arg("-c").arg("echo \"SELECT 1; SELECT 'x'\" | \"$0\" sql -o changelog").arg(binary("flott"));
    let output = flott_e2e::run_command(&mut command, std::time::Duration::from_secs(60)).succeeded();
    assert_eq!(output.stdout, "+I\t1\n+I\tx\n");
}
