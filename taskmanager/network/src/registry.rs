//! Which channels lead into this worker. A receiver is registered by a slot and opened by a sender
//! in another worker, in any order; from then on they are connected.

use std::collections::HashMap;
use std::sync::Arc;

use flott_core::{Error, Result};
use parking_lot::Mutex;

use crate::element::ChannelId;
use crate::inbound::InboundChannel;
use crate::signal::Signal;
use crate::wire::Outbox;

/// More channels than this are a mistake, of ours or of a peer.
const CHANNELS_MAX: usize = 1 << 20;

/// The inbound channels of an execution.
#[derive(Debug)]
pub(crate) struct Registry {
    capacity_bytes: u64,
    channels: Mutex<Channels>,
}

#[derive(Debug, Default)]
struct Channels {
    entries: HashMap<ChannelId, Entry>,
    closed: Option<Error>,
}

#[derive(Debug)]
enum Entry {
    /// There is a receiver.
    Registered(Arc<InboundChannel>),
    /// There is a sender, which waits for credit.
    Opened(Arc<Outbox>),
    /// There are both.
    Connected(Arc<InboundChannel>),
    /// The sender's connection broke.
    Broken(Error),
}

impl Registry {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, channels: Mutex::default() }
    }

    /// Adds a receiver. It is closed from the start if it cannot receive anything.
    pub(crate) fn register(&self, id: ChannelId, consumer: Signal) -> Arc<InboundChannel> {
        let channel = Arc::new(InboundChannel::new(id, self.capacity_bytes, consumer));
        let mut channels = self.channels.lock();
        if let Some(error) = &channels.closed {
            channel.queue().close(error.clone());
            return channel;
        }
        match channels.entries.get(&id) {
            None => {
                channels.entries.insert(id, Entry::Registered(channel.clone()));
            }
            Some(Entry::Opened(outbox)) => {
                channel.connect(outbox.clone());
                channels.entries.insert(id, Entry::Connected(channel.clone()));
            }
            Some(Entry::Broken(error)) => channel.queue().close(error.clone()),
            Some(Entry::Registered(_) | Entry::Connected(_)) => {
                channel.queue().close(Error::system(format!("the channel of {id} already has a receiver")));
            }
        }
        channel
    }

    /// A sender opens a channel: it gets its first credit through `outbox`, now or once there is a
    /// receiver.
    pub(crate) fn open(&self, id: ChannelId, outbox: &Arc<Outbox>) -> Result<()> {
        let mut channels = self.channels.lock();
        let entry = match channels.entries.get(&id) {
            Some(Entry::Registered(channel)) => {
                channel.connect(outbox.clone());
                Entry::Connected(channel.clone())
            }
            None if channels.entries.len() < CHANNELS_MAX => Entry::Opened(outbox.clone()),
            None => return Err(Error::system(format!("more than {CHANNELS_MAX} channels into one worker"))),
            Some(_) => return Err(Error::system(format!("protocol violation: {id} is opened twice"))),
        };
        channels.entries.insert(id, entry);
        Ok(())
    }

    /// The channel, if it has both ends.
    pub(crate) fn connected(&self, id: ChannelId) -> Option<Arc<InboundChannel>> {
        match self.channels.lock().entries.get(&id) {
            Some(Entry::Connected(channel)) => Some(channel.clone()),
            _ => None,
        }
    }

    /// The connection that opened these channels broke.
    pub(crate) fn close_channels<'a>(&self, ids: impl Iterator<Item = &'a ChannelId>, error: &Error) {
        let mut channels = self.channels.lock();
        for id in ids {
            if let Some(Entry::Connected(channel)) = channels.entries.insert(*id, Entry::Broken(error.clone())) {
                channel.queue().close(error.clone());
            }
        }
    }

    /// Closes all channels, and those that come.
    pub(crate) fn close(&self, error: &Error) {
        let mut channels = self.channels.lock();
        channels.closed.get_or_insert_with(|| error.clone());
        for (_, entry) in channels.entries.drain() {
            if let Entry::Registered(channel) | Entry::Connected(channel) = entry {
                channel.queue().close(error.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ChannelId = ChannelId { edge: 0, from: 1, to: 2 };

    #[test]
    fn both_orders_connect() {
        let registry = Registry::new(100);
        registry.register(ID, Signal::new());
        assert!(registry.connected(ID).is_none());
        registry.open(ID, &Arc::default()).unwrap();
        assert!(registry.connected(ID).is_some());

        let other = ChannelId { edge: 1, ..ID };
        registry.open(other, &Arc::default()).unwrap();
        assert!(registry.connected(other).is_none());
        let channel = registry.register(other, Signal::new());
        assert!(registry.connected(other).is_some_and(|connected| Arc::ptr_eq(&connected, &channel)));
    }

    #[test]
    fn a_second_end_is_refused_and_harms_no_one() {
        let registry = Registry::new(100);
        let first = registry.register(ID, Signal::new());
        let second = registry.register(ID, Signal::new());
        assert!(first.queue().error().is_none());
        assert!(second.queue().error().unwrap().message.contains("already has a receiver"));
        registry.open(ID, &Arc::default()).unwrap();
        assert!(registry.open(ID, &Arc::default()).unwrap_err().message.contains("opened twice"));
    }

    #[test]
    fn closing_reaches_receivers_of_every_age() {
        let registry = Registry::new(100);
        let error = Error::system("over");
        registry.open(ID, &Arc::default()).unwrap();
        registry.close_channels([ID].iter(), &error);
        assert_eq!(registry.register(ID, Signal::new()).queue().error(), Some(error.clone()));

        let waiting = registry.register(ChannelId { edge: 1, ..ID }, Signal::new());
        assert_eq!(waiting.queue().error(), None);
        registry.close(&error);
        assert_eq!(waiting.queue().error(), Some(error.clone()));
        assert_eq!(registry.register(ChannelId { edge: 2, ..ID }, Signal::new()).queue().error(), Some(error));
    }
}
