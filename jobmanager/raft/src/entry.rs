//! One fact in a file: a version, a checksum, and the fact as JSON.
//!
//! | bytes | |
//! |---|---|
//! | 0 | version, 1 |
//! | 1..5 | CRC-32 of the entry's index (8 bytes, little endian) and the JSON, little endian |
//! | 5.. | JSON |

use flott_control::Fact;
use flott_core::{Error, Result};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 5;

/// The index is part of the checksum, so that an entry in the wrong place is damage as well.
fn checksum(index: u64, json: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&index.to_le_bytes());
    hasher.update(json);
    hasher.finalize().to_le_bytes()
}

pub(crate) fn encode(index: u64, fact: &Fact) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(fact).map_err(|error| Error::system(format!("encoding a fact: {error}")))?;
    let mut entry = Vec::with_capacity(HEADER_BYTES + json.len());
    entry.push(VERSION);
    entry.extend_from_slice(&checksum(index, &json));
    entry.extend_from_slice(&json);
    Ok(entry)
}

/// The error says what is wrong with the entry, not where it is.
pub(crate) fn decode(index: u64, entry: &[u8]) -> Result<Fact> {
    let Some((header, json)) = entry.split_at_checked(HEADER_BYTES) else {
        return Err(Error::system(format!("it is truncated to {} bytes", entry.len())));
    };
    if header[0] != VERSION {
        return Err(Error::input(format!(
            "it has version {}, this build reads version {VERSION}: use the build that wrote it, or a newer one",
            header[0]
        )));
    }
    if header[1..] != checksum(index, json) {
        return Err(Error::system("its checksum is wrong: it was altered after it was written"));
    }
    serde_json::from_slice(json).map_err(|error| Error::system(format!("it does not hold a fact: {error}")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use flott_core::ids::JobId;

    use super::*;

    fn fact() -> Fact {
        Fact::GenerationStarted { job: JobId([7; 16]), generation: 3 }
    }

    #[test]
    fn the_format_stays_as_it_is() {
        let entry = encode(1, &fact()).unwrap();
        assert_eq!(entry[0], 1);
        expect![[r#"{"GenerationStarted":{"job":"07070707070707070707070707070707","generation":3}}"#]]
            .assert_eq(&String::from_utf8_lossy(&entry[HEADER_BYTES..]));
        assert_eq!(decode(1, &entry).unwrap(), fact());

        let savepoint = Fact::SavepointRequested { job: JobId([7; 16]), location: "s3://b/savepoint-070707-x".into() };
        expect![[
            r#"{"SavepointRequested":{"job":"07070707070707070707070707070707","location":"s3://b/savepoint-070707-x"}}"#
        ]]
        .assert_eq(&String::from_utf8_lossy(&encode(2, &savepoint).unwrap()[HEADER_BYTES..]));
    }

    #[test]
    fn every_altered_bit_and_every_truncation_is_noticed() {
        let entry = encode(1, &fact()).unwrap();
        for bit in 0..entry.len() * 8 {
            let mut altered = entry.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(1, &altered).is_err(), "bit {bit}");
        }
        for length in 0..entry.len() {
            assert!(decode(1, &entry[..length]).is_err(), "length {length}");
        }
        assert!(decode(2, &entry).is_err(), "in the wrong place");
    }
}
