//! What every source and sink must do, whatever stands behind it.
//!
//! A connector's tests call [`check_source`] and [`check_sink`] with something small: both go through it over and
//! over, with a restart between every two steps, and panic with what differs. They are for tests only.

mod sink;
mod source;

pub use sink::check_sink;
pub use source::{Execution, check_source, read_until_error};
