//! The data plane: how batches, watermarks and barriers get from one subtask to the next.
//!
//! A channel has a [`Sender`] and a [`Receiver`], both used by the threads of slots, which never
//! block here: a sender says whether it [is writable](Sender::is_writable), a receiver
//! [pops](Receiver::pop) what is there, and a [`Signal`] wakes the thread of the other side. Whether
//! the other side is in the same process ([`local_channel`]) or behind a socket ([`DataPlane`])
//! makes no difference to the slot. Every channel is bounded in bytes.
//!
//! Elements keep their order, but for one: an [`Element::UnalignedBarrier`] goes in front of all that waits, at the sender,
//! in the connection's queue and at the receiver, and counts what it has overtaken.
//!
//! This crate does not know records: it moves batches, and does no work per record.
//!
//! ```
//! use flott_network::{Element, Payload, Signal, local_channel};
//! let (producer, consumer) = (Signal::new(), Signal::new());
//! let (sender, receiver) = local_channel(1 << 20, producer, consumer.clone());
//!
//! let batch = vec!["to", "be"];
//! sender.send(Element::Batch(Payload::Local { batch: Box::new(batch), rows: 2, bytes: 4 }))?;
//! sender.send(Element::EndOfInput)?;
//!
//! assert!(consumer.wait_until(None));
//! let Some(Element::Batch(Payload::Local { batch, .. })) = receiver.pop() else { panic!("no batch") };
//! assert_eq!(*batch.downcast::<Vec<&str>>().unwrap(), ["to", "be"]);
//! assert!(matches!(receiver.pop(), Some(Element::EndOfInput)));
//! # Ok::<(), flott_core::Error>(())
//! ```
//!
//! - [`Signal`]: wakes the thread of a slot
//! - [`Element`], [`ChannelId`]: what travels, and between whom
//! - [`Sender`], [`Receiver`], [`local_channel`]: the ends of a channel
//! - [`DataPlane`]: the channels of a worker to and from other workers
//! - [`framing`], [`credit`], [`handshake`]: its protocol as pure state machines
//! - `queue`, `local`, `inbound`, `outbound`: what the two kinds of channel are made of
//! - `registry`: which inbound channels there are
//! - `wire`: frames to and from a socket

mod channel;
pub mod credit;
mod element;
pub mod framing;
pub mod handshake;
mod inbound;
mod local;
mod outbound;
mod plane;
mod queue;
mod registry;
mod signal;
mod wire;

pub use channel::{Receiver, Sender, local_channel};
pub use element::{Barrier, ChannelId, Element, Payload};
pub use plane::{DataPlane, Failure, Options};
pub use signal::Signal;
