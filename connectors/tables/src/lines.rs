//! Records that are a line each.

use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_formats::{Decoded, Decoder, Malformed};

/// How many rows a chunk has, or a few more: the rows of a line stay together.
const ROWS_MAX: usize = 2048;

/// Rows that are made of lines.
pub trait LineRows: Send {
    /// How many there are.
    fn rows(&self) -> usize;

    /// Appends the rows of a line, which is without its end.
    ///
    /// # Errors
    /// Why it cannot be read. If what is malformed is skipped, nothing is appended; else [`LineRows::clear`] is all that may
    /// follow.
    fn push_line(&mut self, line: &[u8]) -> Result<(), String>;

    /// Whether lines that cannot be read are left out.
    fn skips_malformed(&self) -> bool;

    /// Forgets all rows.
    fn clear(&mut self) -> Result<()>;

    /// The rows so far; there are none then.
    fn finish(&mut self) -> Result<Chunk>;
}

/// Makes chunks of lines.
#[derive(Debug)]
pub struct LineDecoder<R> {
    rows: R,
}

impl<R: LineRows> LineDecoder<R> {
    /// Fills `rows`.
    pub(crate) fn of(rows: R) -> Self {
        Self { rows }
    }

    /// Reads lines until there are `rows_max`, the input ends, or one is malformed. Returns how many bytes they take.
    fn fill(&mut self, input: &[u8], is_end: bool, rows_max: usize) -> (usize, Option<Malformed>) {
        let mut at = 0;
        while self.rows.rows() < rows_max {
            let Some((line, bytes)) = first_line(&input[at..], is_end) else { break };
            if let Err(reason) = self.rows.push_line(line)
                && !self.rows.skips_malformed()
            {
                return (at, Some(Malformed { bytes, reason }));
            }
            at += bytes;
        }
        (at, None)
    }
}

/// The text of the first line of `input`, and how many bytes it takes with its end; `None` if it is not all there.
pub(crate) fn first_line(input: &[u8], is_end: bool) -> Option<(&[u8], usize)> {
    match memchr::memchr(b'\n', input) {
        Some(end) => Some((&input[..end], end + 1)),
        None if is_end && !input.is_empty() => Some((input, input.len())),
        None => None,
    }
}

impl<R: LineRows> Decoder<Chunk> for LineDecoder<R> {
    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, chunks: &mut Vec<Chunk>) -> Decoded {
        let (bytes, mut malformed) = self.fill(input, is_end, if rows_max > 0 { ROWS_MAX } else { 0 });
        let mut finish = || {
            if malformed.is_some() {
                // What it has left in some columns goes: the lines before it are read again, which happens once a job.
                self.rows.clear()?;
                self.fill(&input[..bytes], true, usize::MAX);
            }
            if self.rows.rows() > 0 {
                chunks.push(self.rows.finish()?);
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = finish() {
            malformed.get_or_insert(Malformed { bytes: 0, reason: error.message });
        }
        Decoded { bytes, malformed }
    }
}
