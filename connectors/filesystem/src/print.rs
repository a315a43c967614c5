//! Records onto the terminal.

use std::fmt::{Debug, Display};
use std::io::{self, Write};

use flott_connector_spi::{Sink, SinkContext, SinkWriter};
use flott_core::{Batch, Data, Error, Result};

/// Writes every record as a line to standard output or standard error. Where several subtasks do, each line begins
/// with the number of its subtask, as in `2> record`. Lines are never torn apart; after a failure, lines are written
/// again.
///
/// ```
/// use flott_filesystem::PrintSink;
/// let sink = PrintSink::<u64>::display().stderr().prefix("counts");
/// ```
pub struct PrintSink<T> {
    format: Format<T>,
    is_stderr: bool,
    prefix: String,
}

type Format<T> = fn(&T, &mut Vec<u8>) -> io::Result<()>;

impl<T: Display> PrintSink<T> {
    /// Records as `Display` shows them.
    pub fn display() -> Self {
        Self::new(|row, out| writeln!(out, "{row}"))
    }
}

impl<T: Debug> PrintSink<T> {
    /// Records as `Debug` shows them.
    pub fn debug() -> Self {
        Self::new(|row, out| writeln!(out, "{row:?}"))
    }
}

impl<T> PrintSink<T> {
    fn new(format: Format<T>) -> Self {
        Self { format, is_stderr: false, prefix: String::new() }
    }

    /// Writes to standard error instead of standard output.
    #[must_use]
    pub fn stderr(mut self) -> Self {
        self.is_stderr = true;
        self
    }

    /// What every line begins with, before the subtask: `counts:2> record`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    fn line_start(&self, cx: &SinkContext) -> String {
        let subtask = cx.subtask + 1;
        match (self.prefix.as_str(), cx.parallelism > 1) {
            ("", false) => String::new(),
            ("", true) => format!("{subtask}> "),
            (prefix, false) => format!("{prefix}> "),
            (prefix, true) => format!("{prefix}:{subtask}> "),
        }
    }
}

impl<T: Data> Sink<T> for PrintSink<T> {
    fn writer(&self, cx: SinkContext, _restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<T>>> {
        Ok(Box::new(PrintWriter {
            format: self.format,
            is_stderr: self.is_stderr,
            line_start: self.line_start(&cx),
            lines: Vec::new(),
        }))
    }
}

struct PrintWriter<T> {
    format: Format<T>,
    is_stderr: bool,
    line_start: String,
    lines: Vec<u8>,
}

impl<T> PrintWriter<T> {
    fn format(&mut self, rows: &[T]) -> Result<()> {
        self.lines.clear();
        for row in rows {
            self.lines.extend_from_slice(self.line_start.as_bytes());
            (self.format)(row, &mut self.lines)
                .map_err(|_| Error::user_code("the Display or Debug implementation of a record failed"))?;
        }
        Ok(())
    }
}

impl<T: Data> SinkWriter<T> for PrintWriter<T> {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        self.format(&batch.rows)?;
        batch.clear();
        let (name, written) = if self.is_stderr {
            ("error", io::stderr().lock().write_all(&self.lines))
        } else {
            let mut stdout = io::stdout().lock();
            ("output", stdout.write_all(&self.lines).and_then(|()| stdout.flush()))
        };
        written.map_err(|error| Error::system(format!("writing to standard {name}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use flott_core::ids::JobId;

    use super::*;

    fn lines(sink: &PrintSink<&'static str>, parallelism: u32) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let io = runtime.handle().clone();
        let cx =
            SinkContext { io, job: JobId([0; 16]), generation: 1, subtask: 1, parallelism, outlet: Default::default() };
        let mut writer = PrintWriter {
            format: sink.format,
            is_stderr: sink.is_stderr,
            line_start: sink.line_start(&cx),
            lines: Vec::new(),
        };
        writer.format(&["a", "b"]).unwrap();
        String::from_utf8(writer.lines).unwrap()
    }

    #[test]
    fn lines_name_their_subtask_where_there_are_several() {
        assert_eq!(lines(&PrintSink::display(), 1), "a\nb\n");
        assert_eq!(lines(&PrintSink::debug(), 2), "2> \"a\"\n2> \"b\"\n");
        assert_eq!(lines(&PrintSink::display().prefix("x"), 1), "x> a\nx> b\n");
        assert_eq!(lines(&PrintSink::display().prefix("x"), 2), "x:2> a\nx:2> b\n");
    }
}
