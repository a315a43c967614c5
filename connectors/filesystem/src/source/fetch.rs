//! A split as a stream of chunks of whole lines, read ahead on a thread of the I/O runtime.

use std::sync::mpsc as std_mpsc;

use flott_connector_spi::Waker;
use flott_core::{Error, Result};
use flott_formats::FileInfo;
use memchr::{memchr, memchr_iter, memrchr};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::source::ReadOptions;
use crate::source::input::Input;
use crate::source::split::FileSplit;
use crate::system::FilePath;

/// How many chunks wait for the reader.
const CHUNKS_MAX: usize = 4;

/// A record longer than this is a sign that the file is not what it was taken for.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// What the reader is sent.
pub(crate) enum Message {
    /// What is known of the file; comes first, if that is asked for.
    Info(FileInfo),
    /// The file's first line; comes before the others, if the files have headers.
    Header(Vec<u8>),
    /// Bytes of the split.
    Chunk(Chunk),
}

/// Bytes that begin with a record.
pub(crate) struct Chunk {
    /// Where they lie in the file.
    pub(crate) offset: u64,
    /// Whole lines, except that the file's last line may have no end.
    pub(crate) bytes: Vec<u8>,
    /// Whether the split ends with them.
    pub(crate) is_last: bool,
}

/// The reader's end of the stream.
pub(crate) struct Fetch {
    file: FilePath,
    messages: mpsc::Receiver<Result<Message>>,
    spares: std_mpsc::Sender<Vec<u8>>,
}

impl Fetch {
    /// Begins to read `split` from its position on.
    pub(crate) fn start(input: Input, split: FileSplit, options: ReadOptions, waker: Waker) -> Self {
        Self::spawn(input, waker, move |input, output| produce(input, &split, options, output))
    }

    /// A stream that ends in an error which says that the record at `offset` is malformed. The line's number is
    /// counted only now, since a reader in the middle of a file does not know it.
    pub(crate) fn malformed(input: Input, offset: u64, reason: String, waker: Waker) -> Self {
        Self::spawn(input, waker, move |input, _| Err(malformed(input, offset, &reason)))
    }

    fn spawn(
        input: Input,
        waker: Waker,
        work: impl FnOnce(&Input, &mut Output) -> Result<()> + Send + 'static,
    ) -> Self {
        let (sender, messages) = mpsc::channel(CHUNKS_MAX);
        let (spare_sender, spares) = std_mpsc::channel();
        let file = input.file.clone();
        let io = input.io.clone();
        flott_env::spawn_blocking_on(&io, move || {
            let mut output = Output { sender: Some(sender), waker, spares };
            if let Err(error) = work(&input, &mut output) {
                output.send(Err(error));
            }
        });
        Self { file, messages, spares: spare_sender }
    }

    /// The next message, if it is there already.
    pub(crate) fn try_next(&mut self) -> Result<Option<Message>> {
        match self.messages.try_recv() {
            Ok(message) => message.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                Err(Error::system(format!("{}: the task that read it ended before its end", self.file)))
            }
        }
    }

    /// Gives back the buffer of a chunk.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        // The other end may have finished; the buffer is of no use then.
        let _ = self.spares.send(buffer);
    }
}

/// The other end of the stream.
struct Output {
    sender: Option<mpsc::Sender<Result<Message>>>,
    waker: Waker,
    spares: std_mpsc::Receiver<Vec<u8>>,
}

impl Output {
    /// Waits until there is room. Returns whether anyone still listens.
    fn send(&mut self, message: Result<Message>) -> bool {
        let is_sent = self.sender.as_ref().is_some_and(|sender| sender.blocking_send(message).is_ok());
        self.waker.wake();
        is_sent
    }

    fn send_chunk(&mut self, offset: u64, bytes: Vec<u8>, is_last: bool) -> bool {
        self.send(Ok(Message::Chunk(Chunk { offset, bytes, is_last })))
    }

    fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spares.try_recv().unwrap_or_default();
        buffer.clear();
        buffer
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // The reader must learn of the end also if it came by a panic.
        self.sender = None;
        self.waker.wake();
    }
}

/// Sends the lines that start in `split`, from its position on.
fn produce(input: &Input, split: &FileSplit, options: ReadOptions, output: &mut Output) -> Result<()> {
    if options.has_info && !output.send(Ok(Message::Info(input.info()?))) {
        return Ok(());
    }
    let mut header_bytes = 0;
    if options.has_header {
        let header = first_line(input)?;
        if header.is_empty() {
            output.send_chunk(0, header, true);
            return Ok(());
        }
        header_bytes = header.len() as u64;
        if !output.send(Ok(Message::Header(header))) {
            return Ok(());
        }
    }
    // A split that has not been read from yet may begin within a line, which is then the previous split's. Whether a
    // line starts right at its first byte, the byte before says.
    let mut is_inside = split.start > 0 && split.position == split.start;
    let mut offset = match split.position {
        0 => header_bytes,
        position if is_inside => position - 1,
        position => position,
    };
    let mut reader = input.open(offset)?;
    let mut bytes = output.buffer();
    loop {
        if !is_inside && offset >= split.end {
            output.send_chunk(offset, Vec::new(), true);
            return Ok(());
        }
        let old = bytes.len();
        let is_end = reader.read(&mut bytes, options.chunk_bytes)? == 0;
        if is_inside && !is_end {
            let skipped = memchr(b'\n', &bytes).map(|at| at + 1);
            is_inside = skipped.is_none();
            let skipped = skipped.unwrap_or(bytes.len());
            bytes.drain(..skipped);
            offset += skipped as u64;
            if is_inside || offset >= split.end {
                continue;
            }
        }
        if let Some(end) = last_line_end(&bytes, old, offset, split.end) {
            bytes.truncate(end);
            output.send_chunk(offset, bytes, true);
            return Ok(());
        }
        if is_end {
            output.send_chunk(offset, bytes, true);
            return Ok(());
        }
        match memrchr(b'\n', &bytes[old..]).map(|at| old + at + 1) {
            Some(end) => {
                let mut rest = output.buffer();
                rest.extend_from_slice(&bytes[end..]);
                bytes.truncate(end);
                if !output.send_chunk(offset, std::mem::replace(&mut bytes, rest), false) {
                    return Ok(());
                }
                offset += end as u64;
            }
            None if bytes.len() > RECORD_BYTES_MAX => return Err(malformed(input, offset, &too_long())),
            None => {}
        }
    }
}

/// Where the line ends in `bytes`, which lie at `offset`, that holds the byte before `split_end`. There is no line
/// end in the first `old` bytes.
fn last_line_end(bytes: &[u8], old: usize, offset: u64, split_end: u64) -> Option<usize> {
    let last = split_end.checked_sub(offset + 1).map_or(0, |last| usize::try_from(last).unwrap_or(usize::MAX));
    let from = last.max(old);
    let at = memchr(b'\n', bytes.get(from..)?)?;
    Some(from + at + 1)
}

/// The file's first line with its end; empty if the file is.
fn first_line(input: &Input) -> Result<Vec<u8>> {
    let mut reader = input.open(0)?;
    let mut line = Vec::new();
    loop {
        let old = line.len();
        let is_end = reader.read(&mut line, 64 << 10)? == 0;
        if let Some(at) = memchr(b'\n', &line[old..]) {
            line.truncate(old + at + 1);
            return Ok(line);
        }
        if is_end {
            return Ok(line);
        }
        if line.len() > RECORD_BYTES_MAX {
            return Err(malformed(input, 0, &too_long()));
        }
    }
}

pub(crate) fn too_long() -> String {
    format!("the record is longer than {} MiB: is the file what it was taken for?", RECORD_BYTES_MAX >> 20)
}

/// The error of a malformed record at `offset`, with its line.
fn malformed(input: &Input, offset: u64, reason: &str) -> Error {
    match line_at(input, offset) {
        Ok(line) => Error::input(format!("{}, line {line}: {reason}", input.file)),
        Err(error) => Error::input(format!(
            "{}, byte {offset}: {reason} (the line is not known, since the file cannot be read again: {error})",
            input.file
        )),
    }
}

/// The number, from 1, of the line at `offset`.
fn line_at(input: &Input, offset: u64) -> Result<u64> {
    let mut reader = input.open(0)?;
    let mut line = 1;
    let mut left = offset;
    let mut bytes = Vec::new();
    while left > 0 {
        bytes.clear();
        let read = reader.read(&mut bytes, left.min(1 << 20) as usize)?;
        if read == 0 {
            break;
        }
        line += memchr_iter(b'\n', &bytes).count() as u64;
        left -= read as u64;
    }
    Ok(line)
}
