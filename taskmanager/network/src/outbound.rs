//! Sending to another worker: one connection, and the sending ends of its channels.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flott_core::ids::CheckpointId;
use flott_core::{Error, Result, ResultExt};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::credit::SendCredit;
use crate::element::{Barrier, ChannelId, Element};
use crate::framing::{self, Body, EncodedFrame};
use crate::handshake::{self, Hello};
use crate::signal::Signal;
use crate::wire::{FrameReader, Outbox};

const CONNECT_ATTEMPTS: u32 = 6;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_PAUSE_MIN: Duration = Duration::from_millis(50);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Only grants come back on an outbound connection.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// The sending end of a channel to another worker.
#[derive(Debug)]
pub(crate) struct OutboundChannel {
    id: ChannelId,
    outbox: Arc<Outbox>,
    producer: Signal,
    compress: bool,
    /// Whether there is credit, or no use in waiting for it; changed under the lock of `state` only.
    is_writable: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    credit: SendCredit,
    /// What was sent without credit, with its cost. Empty while there is credit.
    held: VecDeque<(EncodedFrame, u64)>,
    /// The newest barrier that was put into `held`.
    held_barrier: Option<Barrier>,
    has_ended: bool,
    closed: Option<Error>,
}

impl OutboundChannel {
    fn new(id: ChannelId, outbox: Arc<Outbox>, producer: Signal, compress: bool) -> Self {
        Self { id, outbox, producer, compress, is_writable: AtomicBool::new(false), state: Mutex::default() }
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable.load(Ordering::SeqCst)
    }

    pub(crate) fn send(&self, element: Element) -> Result<()> {
        let element = match element {
            Element::UnalignedBarrier { barrier, .. } => match self.send_in_front(barrier)? {
                Some(barrier) => Element::Barrier(barrier),
                None => return Ok(()),
            },
            element => element,
        };
        let cost = element.credit_bytes();
        let is_end = matches!(element, Element::EndOfInput);
        let barrier = if let Element::Barrier(barrier) = &element { Some(barrier.clone()) } else { None };
        // Here, in the slot's thread, and not in the connection's task, of which there is only one.
        let frame = framing::encode_element(self.id, element, self.compress)?;
        let mut state = self.state.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        state.has_ended |= is_end;
        if state.credit.spend(cost) {
            self.outbox.push(frame);
        } else {
            state.held.push_back((frame, cost));
            if barrier.is_some() {
                state.held_barrier = barrier;
            }
        }
        self.is_writable.store(state.credit.is_available(), Ordering::SeqCst);
        Ok(())
    }

    /// Sends a barrier before everything that waits here. Gives it back if there is no receiver yet: nothing can have
    /// been received then, so it may as well keep its place.
    fn send_in_front(&self, barrier: Barrier) -> Result<Option<Barrier>> {
        let mut state = self.state.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        if !state.credit.is_open() {
            return Ok(Some(barrier));
        }
        let ahead = state.held.len();
        self.overtake_held(&mut state, barrier, ahead)?;
        Ok(None)
    }

    /// Sends the barrier of `checkpoint` before everything else, if it waits here for credit.
    pub(crate) fn overtake(&self, checkpoint: CheckpointId) -> Result<()> {
        let mut state = self.state.lock();
        if !state.credit.is_open() {
            return Ok(());
        }
        let Some(position) = state.held.iter().rposition(|(frame, _)| frame.is_barrier()) else { return Ok(()) };
        let Some(barrier) = state.held_barrier.take_if(|barrier| barrier.checkpoint == checkpoint) else {
            return Ok(());
        };
        state.held.remove(position);
        self.overtake_held(&mut state, barrier, position)
    }

    /// Sends a barrier, and behind it the `ahead` elements of `held` that it has overtaken: the receiver saves them
    /// with its snapshot. It also overtakes what the connection has not written yet.
    fn overtake_held(&self, state: &mut State, barrier: Barrier, ahead: usize) -> Result<()> {
        self.outbox.overtake(self.id, |waiting| {
            let overtaken = waiting.saturating_add(ahead as u32);
            framing::encode_element(self.id, Element::UnalignedBarrier { barrier, overtaken }, false)
        })?;
        for (frame, cost) in state.held.drain(..ahead) {
            state.credit.overdraw(cost);
            self.outbox.push(frame);
        }
        self.is_writable.store(state.credit.is_available(), Ordering::SeqCst);
        Ok(())
    }

    /// The receiver granted credit: sends what was held, and wakes the producer if it may go on.
    fn grant(&self, bytes: u64) -> Result<()> {
        let mut state = self.state.lock();
        state.credit.grant(bytes)?;
        while state.credit.is_available() {
            let Some((frame, cost)) = state.held.pop_front() else { break };
            state.credit.spend(cost);
            self.outbox.push(frame);
        }
        let was_writable = self.is_writable.load(Ordering::SeqCst);
        if state.credit.is_available() && !was_writable {
            self.is_writable.store(true, Ordering::SeqCst);
            self.producer.notify();
        }
        Ok(())
    }

    /// Refuses what is sent from here on, with this reason.
    fn close(&self, error: Error) {
        {
            let mut state = self.state.lock();
            state.closed.get_or_insert(error);
            state.held = VecDeque::new();
            self.is_writable.store(true, Ordering::SeqCst);
        }
        self.producer.notify();
    }

    fn has_sent_all(&self) -> bool {
        let state = self.state.lock();
        state.has_ended && state.held.is_empty()
    }
}

/// The connection to one other worker.
#[derive(Debug)]
pub(crate) struct OutboundConnection {
    peer: String,
    outbox: Arc<Outbox>,
    channels: Mutex<Channels>,
}

#[derive(Debug, Default)]
struct Channels {
    open: HashMap<ChannelId, Arc<OutboundChannel>>,
    closed: Option<Error>,
}

impl OutboundConnection {
    pub(crate) fn new(peer: &str) -> Self {
        Self { peer: peer.to_owned(), outbox: Arc::default(), channels: Mutex::default() }
    }

    /// `host:port` of the other worker.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Adds a channel. It is closed from the start if the connection is over.
    pub(crate) fn open(&self, id: ChannelId, producer: Signal, compress: bool) -> Arc<OutboundChannel> {
        let channel = Arc::new(OutboundChannel::new(id, self.outbox.clone(), producer, compress));
        let mut channels = self.channels.lock();
        if let Some(error) = &channels.closed {
            channel.close(error.clone());
            return channel;
        }
        match channels.open.entry(id) {
            Entry::Occupied(_) => {
                channel.close(Error::system(format!("the channel of {id} already has a sender")));
            }
            Entry::Vacant(vacant) => {
                vacant.insert(channel.clone());
                self.outbox.push(framing::encode_open(id));
            }
        }
        channel
    }

    /// Closes all channels, with this reason.
    pub(crate) fn close(&self, error: Error) {
        let open = {
            let mut channels = self.channels.lock();
            channels.closed.get_or_insert_with(|| error.clone());
            std::mem::take(&mut channels.open)
        };
        self.outbox.close();
        open.values().for_each(|channel| channel.close(error.clone()));
    }

    /// Connects and carries frames until the other side closes the connection after the end of
    /// all data. Everything else is an error.
    pub(crate) async fn run(&self, hello: Hello) -> Result<()> {
        let mut stream = connect(&self.peer).await?;
        match timeout(HANDSHAKE_TIMEOUT, introduce(&mut stream, hello)).await {
            Ok(result) => result?,
            Err(_) => {
                let seconds = HANDSHAKE_TIMEOUT.as_secs();
                return Err(Error::system(format!("no answer to the handshake within {seconds} s")));
            }
        }
        let (reader, mut writer) = stream.split();
        tokio::select! {
            biased;
            result = self.receive_grants(FrameReader::new(reader, READ_BUFFER_BYTES)) => result,
            error = self.outbox.write_to(&mut writer) => Err(error.into()),
        }
    }

    async fn receive_grants(&self, mut reader: FrameReader<impl tokio::io::AsyncRead + Unpin>) -> Result<()> {
        while let Some(frame) = reader.read_frame().await? {
            let id = frame.channel;
            let Body::Credit(bytes) = frame.body else {
                return Err(Error::system(format!("protocol violation: a receiver sent data on {id}")));
            };
            let channel = self.channels.lock().open.get(&id).cloned();
            let Some(channel) = channel else {
                return Err(Error::system(format!("protocol violation: credit for {id}, which has no sender")));
            };
            channel.grant(bytes)?;
        }
        let has_sent_all = self.channels.lock().open.values().all(|channel| channel.has_sent_all());
        if has_sent_all { Ok(()) } else { Err(Error::system("it was closed before the end of the data")) }
    }
}

/// A network that hiccups is given a few attempts: over 1.5 s if connections are refused, over half
/// a minute if nobody answers.
async fn connect(peer: &str) -> Result<TcpStream> {
    let mut pause = CONNECT_PAUSE_MIN;
    let mut attempt = 1;
    loop {
        let error = match timeout(CONNECT_TIMEOUT, TcpStream::connect(peer)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
        };
        if attempt == CONNECT_ATTEMPTS {
            return Err(Error::system(format!("no connection after {attempt} attempts: {error}")));
        }
        flott_env::sleep(pause).await;
        pause *= 2;
        attempt += 1;
    }
}

/// Says who we are; fails with the other side's reason if it does not want us.
async fn introduce(stream: &mut TcpStream, hello: Hello) -> Result<()> {
    stream.write_all(&hello.encode()).await.context("sending the handshake")?;
    let mut answer = [0; handshake::ANSWER_BYTES];
    stream.read_exact(&mut answer).await.context("reading the answer to the handshake")?;
    let length = handshake::reason_bytes(&answer)?;
    if length == 0 {
        return Ok(());
    }
    let mut reason = vec![0; length];
    stream.read_exact(&mut reason).await.context("reading why the connection was refused")?;
    Err(Error::system(format!("the other worker refused it: {}", String::from_utf8_lossy(&reason))))
}

#[cfg(test)]
mod tests;
