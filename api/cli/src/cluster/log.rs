//! What a process has written into its log since its start.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use flott_core::{Error, Result, ResultExt};
use flott_local::processes::JOBMANAGER_READY;

/// How many lines of a log an error shows, at most.
const TAIL_LINES_MAX: usize = 20;

/// The log from `offset` on.
pub(super) fn read(path: &Path, offset: u64) -> Result<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("reading {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The port of the JobManager's REST API, once its log tells that it is ready.
pub(super) fn rest_port(log: &str) -> Result<Option<u16>> {
    // The last line may still be being written.
    let whole_lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let Some(address) = whole_lines.filter_map(|line| line.strip_prefix(JOBMANAGER_READY)).next_back() else {
        return Ok(None);
    };
    let port = address.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.map(Some).ok_or_else(|| Error::system(format!("the JobManager says that its REST API is at '{address}'")))
}

/// Why a process ended: the error that it printed last, or else its last lines.
pub(super) fn reason(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.iter().rev().find_map(|line| line.strip_prefix("error: ")) {
        Some(error) => error.to_owned(),
        None if lines.is_empty() => "it wrote nothing".to_owned(),
        None => format!("it wrote last:\n{}", lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_known_when_the_line_is_whole() {
        let line = format!("INFO starting\n{JOBMANAGER_READY}127.0.0.1:40123");
        assert_eq!(rest_port(&line).unwrap(), None);
        assert_eq!(rest_port(&format!("{line}\nINFO more\n")).unwrap(), Some(40_123));
        assert_eq!(rest_port(&format!("{JOBMANAGER_READY}[::1]:8081\n")).unwrap(), Some(8081));
        assert!(rest_port(&format!("{JOBMANAGER_READY}nowhere\n")).is_err());
    }

    #[test]
    fn the_reason_is_the_error_or_else_the_tail() {
        assert_eq!(reason("INFO a\nerror: the port is in use\n"), "the port is in use");
        assert_eq!(reason("\n"), "it wrote nothing");
        let long: String = (0..100).map(|line| format!("line {line}\n")).collect();
        assert!(reason(&long).starts_with("it wrote last:\nline 80\n"));
    }

    #[test]
    fn what_an_earlier_process_wrote_does_not_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "earlier\nnow\n").unwrap();
        assert_eq!(read(file.path(), 8).unwrap(), "now\n");
        assert!(read(Path::new("/nowhere/log"), 0).unwrap_err().to_string().contains("/nowhere/log"));
    }
}
