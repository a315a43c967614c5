//! `print`: rows onto the terminal, as Flink shows them: `+I[1, a]`.

use std::io::Write;

use flott_chunk::Chunk;
use flott_chunk::display::write_row;
use flott_connector_spi::{Sink, SinkContext, SinkWriter};
use flott_core::{Batch, Result, ResultExt};
use flott_sql_runtime::spec::SinkSpec;

/// See the module's documentation.
pub(super) struct Print {
    identifier: String,
    is_stderr: bool,
}

impl Print {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self> {
        let options = super::options(&spec.table, &spec.options);
        options.required("connector")?;
        let identifier = options.get("print-identifier").unwrap_or_default().to_owned();
        let is_stderr = options.flag("standard-error", false)?;
        options.number::<u32>("sink.parallelism")?;
        options.finish()?;
        Ok(Self { identifier, is_stderr })
    }
}

impl Sink<Chunk> for Print {
    fn writer(&self, cx: SinkContext, _: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<Chunk>>> {
        let subtask = cx.subtask + 1;
        let prefix = match (self.identifier.as_str(), cx.parallelism > 1) {
            ("", false) => String::new(),
            ("", true) => format!("{subtask}> "),
            (identifier, false) => format!("{identifier}> "),
            (identifier, true) => format!("{identifier}:{subtask}> "),
        };
        Ok(Box::new(Printer { prefix, is_stderr: self.is_stderr, text: String::new() }))
    }
}

struct Printer {
    prefix: String,
    is_stderr: bool,
    text: String,
}

impl SinkWriter<Chunk> for Printer {
    fn write(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        self.text.clear();
        for chunk in batch.rows.drain(..) {
            for row in 0..chunk.len() {
                self.text.push_str(&self.prefix);
                write_row(&chunk, row, &mut self.text);
                self.text.push('\n');
            }
        }
        // One call, so that lines of several subtasks are not torn apart.
        match self.is_stderr {
            true => std::io::stderr().lock().write_all(self.text.as_bytes()).context("printing to standard error"),
            false => std::io::stdout().lock().write_all(self.text.as_bytes()).context("printing to standard output"),
        }
    }

    fn flush(&mut self) -> Result<()> {
        std::io::stdout().flush().context("printing to standard output")
    }
}
