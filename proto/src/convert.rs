//! Between core types and wire types. Nothing that arrives is believed: whatever is missing or out of
//! range is an error that names the field.

mod common;
mod down;
mod metrics;
#[cfg(test)]
mod tests;
mod up;

pub(crate) use common::execution;

use std::fmt;

use flott_core::{Error, Result};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::MESSAGE_BYTES_MAX;

/// Refuses to send what the receiver would refuse.
pub(crate) fn check_size(message: &impl Message, what: &str) -> Result<()> {
    match message.encoded_len() {
        bytes if bytes <= MESSAGE_BYTES_MAX => Ok(()),
        bytes => Err(Error::system(format!(
            "a message ({what}) of {bytes} bytes is too large: the most is {MESSAGE_BYTES_MAX}"
        ))),
    }
}

fn malformed(what: impl fmt::Display) -> Error {
    Error::system(format!(
        "malformed message of a process: {what}; use the same build of Flott in all processes of the cluster"
    ))
}

fn required<T>(field: Option<T>, name: &str) -> Result<T> {
    field.ok_or_else(|| malformed(format_args!("field '{name}' is missing")))
}

fn to_json(value: &impl Serialize, name: &str) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::system(format!("encoding field '{name}' of a message: {error}")))
}

fn from_json<T: DeserializeOwned>(json: &[u8], name: &str) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| malformed(format_args!("field '{name}': {error}")))
}
