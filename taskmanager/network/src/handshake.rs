//! What both sides say before the first frame: that this is our protocol, and which execution it
//! is about, so that data of a dead generation never reaches a live one.
//!
//! The connecting side sends a [`Hello`], the accepting one answers; see [`accept`] and [`refuse`].
//! Both begin with the same bytes in every version of the protocol, and a hello always has the same
//! length, so that also strangers understand each other's refusal.

use bytes::{Buf, BufMut};
use flott_control::{ExecutionId, PROTOCOL_VERSION};
use flott_core::ids::JobId;
use flott_core::{Error, Result};

const MAGIC: &[u8; 8] = b"FLOTDATA";

/// The length of an encoded [`Hello`].
pub const HELLO_BYTES: usize = 40;

/// The length of an answer before its reason.
pub const ANSWER_BYTES: usize = 12;

/// The longest reason that a refusal can give.
pub const REASON_BYTES_MAX: usize = 1024;

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of its protocol.
    pub version: u32,
    /// What it executes.
    pub execution: ExecutionId,
    /// The port of its own data plane, to name it in messages.
    pub port: u16,
}

impl Hello {
    /// A hello in this version of the protocol.
    pub fn new(execution: ExecutionId, port: u16) -> Self {
        Self { version: PROTOCOL_VERSION, execution, port }
    }

    /// Its binary form.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut encoded = [0; HELLO_BYTES];
        let mut out = &mut encoded[..];
        out.put_slice(MAGIC);
        out.put_u32_le(self.version);
        out.put_slice(&self.execution.job.0);
        out.put_u64_le(self.execution.generation);
        out.put_u16_le(self.port);
        encoded
    }

    /// Reads a hello. Fails if it is not one of our protocol.
    pub fn decode(encoded: &[u8; HELLO_BYTES]) -> Result<Self> {
        let mut rest = &encoded[..];
        take_magic(&mut rest)?;
        let version = rest.get_u32_le();
        let mut job = [0; 16];
        rest.copy_to_slice(&mut job);
        let execution = ExecutionId { job: JobId(job), generation: rest.get_u64_le() };
        Ok(Self { version, execution, port: rest.get_u16_le() })
    }

    /// Fails unless it is about the execution `ours` and in our version.
    pub fn check(&self, ours: ExecutionId) -> Result<()> {
        let theirs = self.execution;
        if self.version != PROTOCOL_VERSION {
            return Err(Error::system(format!(
                "protocol version {} met version {PROTOCOL_VERSION}: run the same build everywhere",
                self.version
            )));
        }
        if theirs.job != ours.job {
            return Err(Error::system(format!("data of job {} for a worker of job {}", theirs.job, ours.job)));
        }
        if theirs.generation != ours.generation {
            let which = if theirs.generation < ours.generation { "stale" } else { "newer" };
            return Err(Error::system(format!(
                "data of the {which} generation {} of job {} for a worker of generation {}",
                theirs.generation, ours.job, ours.generation
            )));
        }
        Ok(())
    }
}

/// The answer to a hello that was accepted.
pub fn accept() -> Vec<u8> {
    answer("")
}

/// The answer to a hello that was not; a long reason is cut.
pub fn refuse(reason: &Error) -> Vec<u8> {
    answer(&reason.message)
}

fn answer(reason: &str) -> Vec<u8> {
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
    let mut encoded = Vec::with_capacity(ANSWER_BYTES + reason.len());
    encoded.put_slice(MAGIC);
    encoded.put_u32_le(reason.len() as u32);
    encoded.put_slice(reason.as_bytes());
    encoded
}

/// Reads the fixed part of an answer: how many bytes of reason follow, 0 if the hello was accepted.
pub fn reason_bytes(encoded: &[u8; ANSWER_BYTES]) -> Result<usize> {
    let mut rest = &encoded[..];
    take_magic(&mut rest)?;
    match rest.get_u32_le() as usize {
        bytes if bytes <= REASON_BYTES_MAX => Ok(bytes),
        bytes => Err(Error::system(format!("a refusal of {bytes} bytes: the most is {REASON_BYTES_MAX}"))),
    }
}

fn take_magic(rest: &mut &[u8]) -> Result<()> {
    let mut magic = [0; MAGIC.len()];
    rest.copy_to_slice(&mut magic);
    if &magic == MAGIC {
        return Ok(());
    }
    Err(Error::system("the other side does not speak Flott's data protocol: is the address right?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(generation: u64) -> ExecutionId {
        ExecutionId { job: JobId([7; 16]), generation }
    }

    #[test]
    fn a_hello_survives_the_wire() {
        let hello = Hello::new(execution(u64::MAX), 4711);
        assert_eq!(Hello::decode(&hello.encode()).unwrap(), hello);
        hello.check(execution(u64::MAX)).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_sides_named() {
        let check = |hello: Hello| hello.check(execution(5)).unwrap_err().message;
        assert!(check(Hello::new(execution(4), 0)).starts_with("data of the stale generation 4 of job 0707"));
        assert!(check(Hello::new(execution(6), 0)).starts_with("data of the newer generation 6"));
        let other_job = ExecutionId { job: JobId([8; 16]), generation: 5 };
        assert!(check(Hello::new(other_job, 0)).starts_with("data of job 0808"));
        let other_version = Hello { version: 99, ..Hello::new(execution(5), 0) };
        assert!(check(other_version).starts_with("protocol version 99"));
        assert!(Hello::decode(b"GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n  ").is_err());
    }

    #[test]
    fn answers_carry_their_reason() {
        let split = |encoded: &[u8]| {
            let (fixed, reason) = encoded.split_first_chunk::<ANSWER_BYTES>().unwrap();
            assert_eq!(reason_bytes(fixed).unwrap(), reason.len());
            String::from_utf8(reason.to_vec()).unwrap()
        };
        assert_eq!(split(&accept()), "");
        assert_eq!(split(&refuse(&Error::system("no"))), "no");
        let long = split(&refuse(&Error::system("ä".repeat(REASON_BYTES_MAX))));
        assert!(long.len() <= REASON_BYTES_MAX && long.starts_with('ä'));
        assert!(reason_bytes(b"FLOTDATA\xff\xff\xff\xff").is_err());
        assert!(reason_bytes(b"HTTP/1.1 400").is_err());
    }
}
