//! The first bytes of a binary file of ours: seven letters that say what it is, and the version of its format as a digit.

use crate::Error;

/// The error for a file that begins like `magic` and has another version, to go behind the file's name. `None` if it has
/// this one, or is no such file at all.
///
/// ```
/// use flott_core::magic::other_version;
/// let error = other_version(b"FLOTTST1", b"FLOTTST2...").unwrap();
/// assert!(error.message.starts_with("it has format version 2, this build reads versions up to 1"), "{error}");
/// assert_eq!(other_version(b"FLOTTST1", b"FLOTTST1..."), None);
/// assert_eq!(other_version(b"FLOTTST1", b"FLOTTRN1..."), None);
/// ```
pub fn other_version(magic: &[u8; 8], file: &[u8]) -> Option<Error> {
    let (letters, version) = magic.split_at(7);
    let version = char::from(version[0]);
    let found = char::from(*file.strip_prefix(letters)?.first()?);
    (found.is_ascii_digit() && found != '0' && found != version).then(|| {
        Error::input(format!(
            "it has format version {found}, this build reads versions up to {version}: use the build that wrote it, or a \
             newer one"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_digit_behind_the_same_letters_is_a_version() {
        for file in [&b""[..], b"FLOTTST", b"FLOTTSTx", b"FLOTTST0", b"FLOTTST1", b"flottst2", b"PAR1"] {
            assert_eq!(other_version(b"FLOTTST1", file), None, "{file:?}");
        }
        assert!(other_version(b"FLOTTST1", b"FLOTTST9").unwrap().message.ends_with("or a newer one"));
    }
}
