//! Names of the things that processes talk about.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;

/// Defines a 16-byte id that prints as 32 hexadecimal digits, as Flink's ids do.
macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                parse_hex(text).map(Self).ok_or_else(|| {
                    Error::input(format!(
                        "'{text}' is not a {}: expected 32 hexadecimal digits",
                        stringify!($name)
                    ))
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hex_id! {
    /// A submitted job, the same over all its restarts.
    JobId
}

hex_id! {
    /// An operator of a job, the same over restarts, rescaling and new versions of the job: the
    /// hash of its `uid`, or of its position in the graph.
    OperatorId
}

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    let digits = text.as_bytes();
    if digits.len() != 32 {
        return None;
    }
    let nibble = |digit: u8| (digit as char).to_digit(16);
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (nibble(pair[0])? * 16 + nibble(pair[1])?) as u8;
    }
    Some(id)
}

/// The n-th execution of a job, counted from 1 over all restarts and leaders. It is durable
/// before anything of that execution starts, so it fences everything that came before.
pub type Generation = u64;

/// The number of a checkpoint or savepoint of a job, counted from 1 over all generations.
pub type CheckpointId = u64;

/// The position of a vertex in its job graph.
pub type VertexId = u32;

/// One parallel instance of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubtaskId {
    /// Which vertex.
    pub vertex: VertexId,
    /// Which of its instances, counted from 0.
    pub index: u32,
}

impl fmt::Display for SubtaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.vertex, self.index)
    }
}

/// A TaskManager process; a restarted process has a new id, also at the same address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskManagerId(pub String);

impl fmt::Display for TaskManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse_as_hex() {
        let id = JobId(std::array::from_fn(|i| i as u8 * 17));
        assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
        assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
        let error = "00".parse::<JobId>().unwrap_err();
        assert!(error.to_string().contains("'00' is not a JobId"));
    }
}
