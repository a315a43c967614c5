//! Where things are.

use std::env;
use std::path::PathBuf;

/// The program of this name, which lies beside the running test's folder.
///
/// # Panics
/// It has not been built.
pub fn binary(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program has a file");
    let folder = test.parent().expect("a file lies in a folder");
    let target = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let path = target.join(name);
    assert!(
        path.is_file(),
        "there is no {}: the end-to-end tests start real programs, which 'cargo build --workspace --bins' builds ('make test' does)",
        path.display()
    );
    path
}

/// The root folder of the repository, as it is now and not as it was built: checkouts share their build folder.
///
/// # Panics
/// Without cargo, which runs the tests.
pub fn repository() -> PathBuf {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests"));
    folder.ancestors().nth(2).expect("the crate lies two folders below the root").to_owned()
}

/// The Python with the packages that `scripts/setup.sh` installs.
///
/// # Panics
/// It is not there.
pub fn python() -> PathBuf {
    let path = repository().join(".venv/bin/python");
    assert!(path.is_file(), "there is no {}: scripts/setup.sh makes it ('make test' does)", path.display());
    path
}

/// The input of the example `flights`.
///
/// # Panics
/// It has not been fetched.
pub fn flights_events() -> PathBuf {
    let folder = env::var("FLOTT_DATA_DIR").unwrap_or_else(|_| ".data".to_owned());
    let path = repository().join(folder).join("flights-events.csv");
    assert!(path.is_file(), "there is no {}: 'make data' fetches it ('make test' does)", path.display());
    path
}
