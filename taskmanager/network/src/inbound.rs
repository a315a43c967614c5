//! Receiving from other workers: the connections that they open, and the receiving ends of their
//! channels.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flott_control::ExecutionId;
use flott_core::{Error, Result, ResultExt};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::credit::ReceiveCredit;
use crate::element::{Barrier, ChannelId, Element};
use crate::framing::{self, Body, Frame};
use crate::handshake::{self, HELLO_BYTES, Hello};
use crate::queue::{Popped, Queue};
use crate::registry::Registry;
use crate::signal::Signal;
use crate::wire::{FrameReader, Outbox};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const READ_BUFFER_BYTES: usize = 256 << 10;

/// The receiving end of a channel from another worker.
#[derive(Debug)]
pub(crate) struct InboundChannel {
    id: ChannelId,
    queue: Queue,
    credit: Mutex<ReceiveCredit>,
    /// Where grants go, once the sender is there.
    outbox: OnceLock<Arc<Outbox>>,
}

impl InboundChannel {
    pub(crate) fn new(id: ChannelId, capacity_bytes: u64, consumer: Signal) -> Self {
        Self {
            id,
            queue: Queue::new(consumer),
            credit: Mutex::new(ReceiveCredit::new(capacity_bytes)),
            outbox: OnceLock::new(),
        }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Both ends are there: grants the first credit.
    pub(crate) fn connect(&self, outbox: Arc<Outbox>) {
        let grant = self.credit.lock().open();
        self.outbox.get_or_init(|| outbox).push(framing::encode_credit(self.id, grant));
    }

    /// Queues what arrived; fails if there was no credit for it.
    pub(crate) fn receive(&self, element: Element) -> Result<()> {
        match &element {
            Element::UnalignedBarrier { overtaken, .. } => self.credit.lock().overtaken(*overtaken),
            element => self.credit.lock().receive(element.credit_bytes())?,
        }
        // A queue is closed when its subtask is over: nobody misses the element then.
        let _is_wanted = self.queue.push(element).is_ok();
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<Element> {
        self.queue.pop().map(|popped| self.release(popped))
    }

    /// See [`Queue::take_barrier`].
    pub(crate) fn take_barrier(&self, is_due: impl FnOnce(&Barrier) -> bool) -> Option<Element> {
        self.queue.take_barrier(is_due).map(|popped| self.release(popped))
    }

    fn release(&self, popped: Popped) -> Element {
        let grant = self.credit.lock().consume(popped.credit_bytes);
        if let (Some(grant), Some(outbox)) = (grant, self.outbox.get()) {
            outbox.push(framing::encode_credit(self.id, grant));
        }
        popped.element
    }

    /// The receiver is gone. The sender is not told: subtasks end early only when their execution
    /// does, and until then lack of credit holds it back.
    pub(crate) fn receiver_dropped(&self) {
        self.queue.discard(Error::system("the receiving subtask is gone"));
    }
}

/// Answers a hello; returns `host:port` of the data plane of the worker that connected.
pub(crate) async fn accept(stream: &mut TcpStream, address: SocketAddr, ours: ExecutionId) -> Result<String> {
    let exchange = async {
        stream.set_nodelay(true)?;
        let mut encoded = [0; HELLO_BYTES];
        stream.read_exact(&mut encoded).await.context("reading the handshake")?;
        // What does not speak our protocol gets no answer.
        let hello = Hello::decode(&encoded)?;
        let checked = hello.check(ours);
        let answer = match &checked {
            Ok(()) => handshake::accept(),
            Err(reason) => handshake::refuse(reason),
        };
        stream.write_all(&answer).await.context("answering the handshake")?;
        checked.map(|()| SocketAddr::new(address.ip(), hello.port).to_string())
    };
    match timeout(HANDSHAKE_TIMEOUT, exchange).await {
        Ok(result) => result,
        Err(_) => Err(Error::system(format!("no handshake within {} s", HANDSHAKE_TIMEOUT.as_secs()))),
    }
}

/// An accepted connection.
pub(crate) struct InboundConnection<'a> {
    registry: &'a Registry,
    outbox: Arc<Outbox>,
    opened: HashMap<ChannelId, Opened>,
}

/// A channel that the sender opened.
#[derive(Default)]
struct Opened {
    /// Looked up with the first element, since it may be registered later than it is opened.
    channel: Option<Arc<InboundChannel>>,
    has_ended: bool,
}

impl<'a> InboundConnection<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Self {
        Self { registry, outbox: Arc::default(), opened: HashMap::new() }
    }

    /// Receives until the other side closes the connection after the end of all data. Everything
    /// else is an error.
    pub(crate) async fn run(&mut self, mut stream: TcpStream) -> Result<()> {
        let (reader, mut writer) = stream.split();
        let outbox = self.outbox.clone();
        // A socket that cannot be written to ends for the reader as well, which knows whether that is too early.
        let grants = async {
            let _error = outbox.write_to(&mut writer).await;
            std::future::pending::<Result<()>>().await
        };
        let result = tokio::select! {
            // Credit first: the sender may be waiting for it, and it is little.
            biased;
            result = grants => result,
            result = self.receive_all(FrameReader::new(reader, READ_BUFFER_BYTES)) => result,
        };
        // What is popped from now on is credit for a sender that is gone.
        outbox.close();
        result
    }

    /// Closes all channels of the connection, with this reason.
    pub(crate) fn close(&self, error: &Error) {
        self.registry.close_channels(self.opened.keys(), error);
    }

    async fn receive_all(&mut self, mut reader: FrameReader<impl tokio::io::AsyncRead + Unpin>) -> Result<()> {
        while let Some(frame) = reader.read_frame().await? {
            self.receive(frame)?;
        }
        if self.opened.values().all(|opened| opened.has_ended) {
            return Ok(());
        }
        Err(Error::system("it was closed before the end of the data"))
    }

    fn receive(&mut self, frame: Frame) -> Result<()> {
        let id = frame.channel;
        match frame.body {
            Body::Open => {
                self.registry.open(id, &self.outbox)?;
                self.opened.insert(id, Opened::default());
                Ok(())
            }
            Body::Element(element) => {
                let Some(opened) = self.opened.get_mut(&id) else {
                    return Err(Error::system(format!("protocol violation: data on {id}, which is not open")));
                };
                if opened.has_ended && matches!(element, Element::Batch(_)) {
                    return Err(Error::system(format!("protocol violation: rows on {id} after their end")));
                }
                opened.has_ended |= matches!(element, Element::EndOfInput);
                let channel = match &mut opened.channel {
                    Some(channel) => channel,
                    channel => match self.registry.connected(id) {
                        Some(found) => channel.insert(found),
                        None => {
                            return Err(Error::system(format!("protocol violation: data on {id} before any credit")));
                        }
                    },
                };
                channel.receive(element).with_context(|| format!("the channel of {id}"))
            }
            Body::Credit(_) => Err(Error::system(format!("protocol violation: a sender granted credit on {id}"))),
        }
    }
}
