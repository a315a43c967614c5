//! What the tests of this crate look at: the repository's files, its crates, and what they depend on.
//!
//! The tests keep the rules of the house that no compiler knows. Each failure names the file, the
//! rule, and why the rule is there. There are no dependencies, so that they run first and fast.
//!
//! - `tests/dependencies.rs`: which crate may know which
//! - `tests/sources.rs`: length of files, `unsafe`, `allow`, leftovers, documentation of crates
//! - `tests/documents.rs`: paths that the documents name exist

mod manifest;
mod tree;

pub use manifest::{Dependency, Manifest, manifests};
pub use tree::{File, files, repository, rust_files};

/// Fails with every violation at once, so that one run shows all of them.
///
/// ```
/// flott_tidy::assert_none("crates are named after fish", "fish do not change", Vec::new());
/// ```
///
/// # Panics
/// When there is a violation.
#[track_caller]
pub fn assert_none(rule: &str, reason: &str, violations: Vec<String>) {
    assert!(
        violations.is_empty(),
        "{} against the rule: {rule}\n  why: {reason}\n  {}",
        if violations.len() == 1 { "1 violation".to_owned() } else { format!("{} violations", violations.len()) },
        violations.join("\n  ")
    );
}
