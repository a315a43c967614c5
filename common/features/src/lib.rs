//! Nothing but dependencies.
//!
//! Cargo builds a dependency with the features that the packages being built ask for. So `cargo test -p flott-sql` would build
//! half of them once more, beside what `make test` has built. The tests of every package depend on this one, which asks for what
//! the whole workspace asks for: then each dependency is built once. Nothing that ships depends on it. `Cargo.toml` lists
//! those whose features differ otherwise.
