//! One error type for every crate, since errors cross processes on their way to the user.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of anything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whose fault it is, which decides what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// What the user gave is wrong: arguments, configuration, data, a graph. Trying again is no use.
    Input,
    /// The user's code failed or panicked. The restart strategy decides.
    UserCode,
    /// A machine, a network or a disk failed. Trying again may help.
    System,
}

/// What went wrong, where, and how to get out of it.
///
/// ```
/// use flott_core::{Error, Result, ResultExt};
/// let result: Result<()> = Err(Error::input("line 3: not a number"));
/// let error = result.context("reading orders.csv").unwrap_err();
/// assert_eq!(error.to_string(), "reading orders.csv: line 3: not a number");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// The whole message, the outermost context first.
    pub message: String,
    /// The stack of the panic, if it was one.
    pub backtrace: Option<String>,
}

impl Error {
    /// The user's input is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// The user's code failed.
    pub fn user_code(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::UserCode, message)
    }

    /// The world failed.
    pub fn system(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::System, message)
    }

    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), backtrace: None }
    }

    /// The same error with where it happened in front.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::system(error.to_string())
    }
}

/// Adds where it happened to an error.
pub trait ResultExt<T> {
    /// Puts `context` in front of the message.
    fn context(self, context: impl fmt::Display) -> Result<T>;
    /// Like [`ResultExt::context`], built only on failure.
    fn with_context<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for std::result::Result<T, E> {
    fn context(self, context: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(context))
    }

    fn with_context<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|error| error.into().context(context()))
    }
}
