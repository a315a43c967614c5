//! What the sink of a SELECT and its client agree on, so that the client gets each row once, whatever dies between them.
//!
//! The sink counts the chunks that it was given, from the job's beginning. The client says how many it has got: those the sink
//! drops, and answers with the next ones. What has not been dropped is state of the job. So an answer that is lost is given
//! again, and a JobManager that passes questions on needs to remember nothing.
//!
//! A sink that is made anew goes on from the checkpoint that the job went back to: it has another *version*, and what it was
//! given behind the checkpoint comes once more, perhaps in other rows. The client therefore shows only chunks that a complete
//! checkpoint has, and drops the others when it meets another version. Without checkpoints it shows them as they come, and can
//! only give up when it meets one.

use std::collections::VecDeque;

use flott_chunk::Chunk;
use flott_core::{Error, Result, codec};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// How many bytes a sink keeps before it takes no more. They are in every checkpoint, in the message that completes it.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// How many bytes an answer has, if it has more than one chunk.
const ANSWER_BYTES: usize = 1 << 20;

/// What a client asks a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    /// The sink that it has got its chunks from; 0 if it has got none yet.
    pub(super) version: u64,
    /// How many chunks it has got.
    pub(super) got: u64,
    /// How many of them it knows to be in a checkpoint.
    pub(super) checkpointed: u64,
    /// Whether it can take more now; otherwise it only says that it is still there.
    pub(super) wants_chunks: bool,
}

/// What a sink answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Which sink it is.
    pub(super) version: u64,
    /// Whether chunks are shown only when a checkpoint has them.
    pub(super) is_exactly_once: bool,
    /// The number of the first of `chunks`.
    pub(super) first: u64,
    /// How many chunks a complete checkpoint has.
    pub(super) checkpointed: u64,
    /// Chunks in their binary form.
    pub(super) chunks: Vec<ByteBuf>,
}

/// The chunks of a sink that its client has not got.
#[derive(Debug)]
pub(super) struct Outbox {
    version: u64,
    is_exactly_once: bool,
    /// The number of the first of `chunks`.
    first: u64,
    chunks: VecDeque<ByteBuf>,
    bytes: usize,
    checkpointed: u64,
}

impl Outbox {
    /// One with what another one was at a checkpoint, or empty. `version` is like no other's, and not 0.
    pub(super) fn new(version: u64, is_exactly_once: bool, state: Option<&[u8]>) -> Result<Self> {
        let (first, chunks): (u64, VecDeque<ByteBuf>) = state.map(codec::decode).transpose()?.unwrap_or_default();
        let bytes = chunks.iter().map(|chunk| chunk.len()).sum();
        let checkpointed = first + chunks.len() as u64;
        Ok(Self { version, is_exactly_once, first, chunks, bytes, checkpointed })
    }

    /// Takes a chunk in its binary form.
    pub(super) fn push(&mut self, chunk: Vec<u8>) {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk.into());
    }

    /// How many chunks there have been.
    pub(super) fn count(&self) -> u64 {
        self.first + self.chunks.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= KEPT_BYTES_MAX
    }

    /// What a checkpoint has to have of it.
    pub(super) fn state(&self) -> Result<Vec<u8>> {
        codec::encode(&(self.first, &self.chunks))
    }

    /// A checkpoint is complete before which `count` chunks came.
    pub(super) fn completed(&mut self, count: u64) {
        self.checkpointed = self.checkpointed.max(count);
    }

    /// Whether there is something to answer that the client does not know.
    pub(super) fn has_news_for(&self, question: &Question) -> bool {
        question.version != self.version
            || question.wants_chunks && question.got < self.count()
            || question.checkpointed < self.checkpointed
    }

    /// Drops what the client has got, and answers with what comes next.
    pub(super) fn answer(&mut self, question: &Question) -> Answer {
        let mut answer = Answer {
            version: self.version,
            is_exactly_once: self.is_exactly_once,
            first: self.first,
            checkpointed: self.checkpointed,
            chunks: Vec::new(),
        };
        // How many a client has got of another sink says nothing: that may have been ahead.
        if question.version != self.version {
            return answer;
        }
        while self.first < question.got
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.first += 1;
            self.bytes -= chunk.len();
        }
        answer.first = self.first;
        if question.wants_chunks && question.got == self.first {
            let mut bytes = 0;
            let fits = |chunk: &&ByteBuf| {
                let is_first = bytes == 0;
                bytes += chunk.len();
                is_first || bytes <= ANSWER_BYTES
            };
            answer.chunks = self.chunks.iter().take_while(fits).cloned().collect();
        }
        answer
    }
}

/// The chunks that a client has got, and what it has shown of them.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// The sink that the last of them came from; 0 before the first answer.
    version: u64,
    is_exactly_once: bool,
    /// How many have been shown.
    shown: u64,
    /// Those that have been got and not shown.
    waiting: VecDeque<Chunk>,
    checkpointed: u64,
}

impl Inbox {
    fn got(&self) -> u64 {
        self.shown + self.waiting.len() as u64
    }

    /// What to ask next.
    pub(super) fn question(&self, wants_chunks: bool) -> Question {
        Question { version: self.version, got: self.got(), checkpointed: self.checkpointed, wants_chunks }
    }

    /// Takes an answer; returns what can be shown from here on.
    ///
    /// # Errors
    /// The job has gone back to where rows have been shown that will come again, or others have been lost.
    pub(super) fn take(&mut self, answer: Answer) -> Result<Vec<Chunk>> {
        let Answer { version, is_exactly_once, first, checkpointed, chunks } = answer;
        if self.version == 0 {
            // A job that starts from a savepoint goes on where that was taken.
            self.shown = first;
        } else if self.version != version {
            self.go_back(checkpointed)?;
        }
        (self.version, self.is_exactly_once) = (version, is_exactly_once);
        self.checkpointed = self.checkpointed.max(checkpointed);
        if first > self.got() {
            return Err(Error::system(format!(
                "rows of the query are lost: {} chunks have come, and the next is number {first}; has another client taken them?",
                self.got()
            )));
        }
        if first == self.got() {
            let chunks = chunks.iter().map(|chunk| Chunk::decode(chunk)).collect::<Result<Vec<_>>>()?;
            self.waiting.extend(chunks);
        }
        let known = if self.is_exactly_once { self.checkpointed.saturating_sub(self.shown) } else { u64::MAX };
        Ok(self.show(usize::try_from(known).unwrap_or(usize::MAX)))
    }

    /// The job went on from a checkpoint with so many chunks: what has come behind it comes again.
    fn go_back(&mut self, checkpointed: u64) -> Result<()> {
        if !self.is_exactly_once || checkpointed < self.shown {
            return Err(Error::user_code(
                "the job was restarted, and its rows would come twice: SET 'execution.checkpointing.interval', so that each is shown once, when a checkpoint has it",
            ));
        }
        self.waiting.truncate(usize::try_from(checkpointed - self.shown).unwrap_or(usize::MAX));
        Ok(())
    }

    /// The job has finished: its last checkpoint has all rows.
    pub(super) fn finish(&mut self) -> Vec<Chunk> {
        self.show(usize::MAX)
    }

    fn show(&mut self, count_max: usize) -> Vec<Chunk> {
        let shown: Vec<Chunk> = self.waiting.drain(..count_max.min(self.waiting.len())).collect();
        self.shown += shown.len() as u64;
        shown
    }
}

#[cfg(test)]
mod tests;
