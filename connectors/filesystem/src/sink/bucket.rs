//! Names of buckets come from records, so from anywhere.

use flott_core::{Error, Result};

use crate::system::is_hidden;

/// What common file systems allow.
const NAME_BYTES_MAX: usize = 255;

/// Refuses names that lead out of the sink's folder, or that no reader would find.
pub(crate) fn check(bucket: &str) -> Result<()> {
    let refuse = |reason: &str| {
        let name: String = bucket.chars().take(80).collect();
        Err(Error::user_code(format!("records cannot go into the folder {name:?}: {reason}")))
    };
    if bucket.is_empty() {
        return Ok(());
    }
    if bucket.starts_with('/') {
        return refuse("it must be relative to the folder of the sink");
    }
    for name in bucket.split('/') {
        match name {
            "" => return refuse("it has an empty folder name in it"),
            "." | ".." => return refuse("it must not lead to other folders"),
            _ if is_hidden(name) => return refuse("readers pass over names that begin with '.' or '_'"),
            _ if name.contains(char::is_control) => return refuse("it has control characters in it"),
            _ if name.len() > NAME_BYTES_MAX => return refuse("a folder name in it is longer than 255 bytes"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_folder() {
        for good in ["", "JFK", "origin=JFK/day=2013-01-01", "a b", "ä", "a..b"] {
            check(good).unwrap();
        }
        let long = "x".repeat(256);
        for bad in ["/etc", "..", "a/../../b", "a//b", "a/", ".", ".git", "a/_b", "a\0b", "a\nb", &long] {
            let error = check(bad).unwrap_err();
            assert_eq!(error.kind, flott_core::ErrorKind::UserCode);
            assert!(error.message.starts_with("records cannot go into the folder \""), "{error}");
        }
    }
}
