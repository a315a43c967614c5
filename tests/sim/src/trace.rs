//! What happened, as one number that two runs of a seed must agree on.

use std::fmt::{self, Write};

/// A running FNV-1a hash of all lines.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    is_verbose: bool,
}

impl Trace {
    /// An empty trace; a verbose one also prints its lines to standard error.
    pub(crate) fn new(is_verbose: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, is_verbose }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, now_ms: i64, text: fmt::Arguments<'_>) {
        if self.is_verbose {
            eprintln!("{now_ms:>7} {text}");
        }
        // Hashing cannot fail.
        let _ = writeln!(self, "{now_ms} {text}");
    }

    /// The hash so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

/// A hash of a file's content, in place of SHA-256.
pub(crate) fn hash_of(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}
