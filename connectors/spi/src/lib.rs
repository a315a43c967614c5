//! The contracts between the engine and its connectors.
//!
//! A [`Source`] lists *splits* (a byte range of a file, a partition of a topic); each parallel
//! [`SplitReader`] is given some of them and hands on batches. Its position in every split is state:
//! after a failure the readers continue from the splits that the checkpoint holds.
//!
//! A [`Sink`] writes in two phases. Before a checkpoint, [`SinkWriter::prepare`] makes what was
//! written since the last one durable and returns it as *committables*, which are state; once the
//! checkpoint is complete, [`SinkWriter::commit`] makes them visible. Every step may be repeated.
//!
//! Sources and sinks are synchronous: the engine calls them on a slot's thread. What must wait for a disk or a
//! network does so on the [`IoHandle`] and calls the [`Waker`] when there is something to take.
//!
//! A [`LookUp`] is a table that is asked for the rows of some keys. It is asynchronous: an operator asks, goes on, and takes the
//! answer when it is there.
//!
//! With the feature `conformance`, the module of that name checks a connector against these contracts.

#[cfg(feature = "conformance")]
pub mod conformance;
mod io;
mod lookup;
mod sink;
mod source;

pub use io::{IoHandle, Outlet, Waker};
pub use lookup::{Finding, Found, LookUp};
pub use sink::{Committable, Sink, SinkContext, SinkWriter};
pub use source::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader};
