//! Logs to standard error.

use std::env;

use flott_core::{Error, Result};
use tracing_subscriber::EnvFilter;

/// The variable that overrides which logs are written.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// Starts writing logs to standard error, as text or as one JSON object a line. What is written is
/// chosen by `RUST_LOG`, or by `default_filter`, such as `info,flott_network=debug`.
///
/// If logging was started before, by this function or by the user's program, it stays as it is.
///
/// # Errors
/// The filter cannot be read.
pub fn init_tracing(default_filter: &str, json: bool) -> Result<()> {
    let given = env::var(FILTER_VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let filter = filter(given.as_deref(), default_filter)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // The only error is that there is a subscriber already.
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
    Ok(())
}

fn filter(given: Option<&str>, default: &str) -> Result<EnvFilter> {
    let text = given.unwrap_or(default);
    EnvFilter::builder().parse(text).map_err(|error| {
        let origin = if given.is_some() { FILTER_VARIABLE } else { "the log filter" };
        Error::input(format!("{origin} '{text}' cannot be read: {error}; write for example 'info,flott_network=debug'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_twice_is_no_error() {
        init_tracing("warn", false).unwrap();
        init_tracing("warn", true).unwrap();
    }

    #[test]
    fn the_variable_goes_before_the_default() {
        assert_eq!(filter(Some("debug"), "info").unwrap().to_string(), "debug");
        assert_eq!(filter(None, "info").unwrap().to_string(), "info");
        let error = filter(Some("flott=loudest"), "info").unwrap_err();
        assert!(error.to_string().starts_with("RUST_LOG 'flott=loudest' cannot be read"), "{error}");
    }
}
