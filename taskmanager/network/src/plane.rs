//! The data plane of a worker: it listens, connects, and hands out the ends of channels.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flott_control::ExecutionId;
use flott_core::{Error, Result, ResultExt};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::channel::{Receiver, Sender};
use crate::element::ChannelId;
use crate::handshake::Hello;
use crate::inbound::{self, InboundConnection};
use crate::outbound::OutboundConnection;
use crate::registry::Registry;
use crate::signal::Signal;

/// How many connections may be in their handshake at once.
const HANDSHAKES_MAX: usize = 64;

/// How long to wait when the system cannot accept connections, for lack of file handles for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How channels between workers work.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many bytes may be on their way in one channel, from the sender's hand to the receiver's;
    /// one batch more than that may be.
    pub capacity_bytes: u64,
    /// Whether batches are compressed with LZ4.
    pub compression: bool,
}

/// Why a connection to or from another worker ended too early.
#[derive(Clone, Debug)]
pub struct Failure {
    /// `host:port` of the other worker's data plane.
    pub peer: String,
    /// What happened. It names the peer as well.
    pub error: Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// The channels between a worker and the other workers of one execution.
///
/// All channels to another worker share one connection, which is opened for the first of them. A
/// connection that breaks closes its channels, and is a [`DataPlane::failure`]. There is no
/// reconnecting: what was on its way is lost, so the execution has to restart from a checkpoint.
///
/// Dropping it shuts it down.
#[derive(Debug)]
pub struct DataPlane {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    execution: ExecutionId,
    options: Options,
    io: Handle,
    local_addr: SocketAddr,
    registry: Registry,
    /// By the address of the other worker.
    connections: Mutex<HashMap<String, Arc<OutboundConnection>>>,
    /// The first failure; others are mostly its consequences.
    failure: watch::Sender<Option<Failure>>,
    is_shut_down: watch::Sender<bool>,
}

impl DataPlane {
    /// Listens on `address`, a `host:port`; port 0 takes a free one. Connections are served on
    /// `io`, a runtime with I/O and time enabled.
    ///
    /// Fails if the address cannot be listened on, because the port is in use for example.
    pub fn bind(address: &str, execution: ExecutionId, io: &Handle, options: Options) -> Result<Self> {
        let listener = listen(address, io).with_context(|| format!("listening for data on {address}"))?;
        let shared = Arc::new(Shared {
            execution,
            options,
            io: io.clone(),
            local_addr: listener.local_addr()?,
            registry: Registry::new(options.capacity_bytes),
            connections: Mutex::default(),
            failure: watch::Sender::new(None),
            is_shut_down: watch::Sender::new(false),
        });
        shared.spawn(accept_all(shared.clone(), listener));
        Ok(Self { shared })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local_addr
    }

    /// The receiving end of a channel from another worker, which may connect before or after.
    /// `consumer` is notified when an element arrives or the channel closes.
    ///
    /// The receiver is closed from the start, with a [`Receiver::error`], if the channel has
    /// another one, or was broken or shut down already.
    pub fn receiver(&self, id: ChannelId, consumer: Signal) -> Receiver {
        Receiver::remote(self.shared.registry.register(id, consumer))
    }

    /// The sending end of a channel to the worker whose data plane listens on `peer`, a `host:port`.
    /// It becomes writable once that worker has registered the receiver; `producer` is notified of
    /// that, of new room after there was none, and of the channel's closing.
    pub fn sender(&self, id: ChannelId, peer: &str, producer: Signal) -> Sender {
        let connection = self.shared.connection(peer);
        Sender::remote(connection.open(id, producer, self.shared.options.compression))
    }

    /// Waits for the first failure of a connection; forever if there is none. The future does not
    /// borrow the data plane, so it can be spawned.
    pub fn failure(&self) -> impl Future<Output = Failure> + Send + use<> {
        let failure = self.shared.failure.subscribe();
        async move {
            match first_failure(failure).await {
                Some(failure) => failure,
                None => std::future::pending().await,
            }
        }
    }

    /// The first failure, if there was one.
    pub fn failed(&self) -> Option<Failure> {
        self.shared.failure.borrow().clone()
    }

    /// Closes all connections and channels at once, whatever is still on its way. What receivers
    /// have queued can be popped.
    pub fn shutdown(&self) {
        self.shared.is_shut_down.send_replace(true);
        self.shared.registry.close(&shut_down());
        for connection in self.shared.connections.lock().values() {
            connection.close(shut_down());
        }
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Shared {
    /// Runs `work` until it is done or the data plane is shut down.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let is_shut_down = self.is_shut_down.subscribe();
        flott_env::spawn_on(&self.io, async move {
            tokio::select! {
                biased;
                () = until_true(is_shut_down) => {}
                () = work => {}
            }
        });
    }

    fn connection(self: &Arc<Self>, peer: &str) -> Arc<OutboundConnection> {
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.get(peer) {
            return connection.clone();
        }
        let connection = Arc::new(OutboundConnection::new(peer));
        // Under the lock, so that a shutdown either is seen here or sees the new connection.
        if *self.is_shut_down.borrow() {
            connection.close(shut_down());
        } else {
            self.spawn(send_all(self.clone(), connection.clone()));
        }
        connections.insert(peer.to_owned(), connection.clone());
        connection
    }

    /// A connection ended too early.
    fn fail(&self, peer: &str, error: Error) {
        if *self.is_shut_down.borrow() {
            return;
        }
        tracing::warn!(peer, %error, "a data connection failed");
        self.failure.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| Failure { peer: peer.to_owned(), error });
            is_first
        });
    }
}

fn listen(address: &str, io: &Handle) -> Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Error::system("the port is in use: choose another one, or 0 for any that is free"),
        _ => error.into(),
    })?;
    listener.set_nonblocking(true)?;
    let _runtime = io.enter();
    Ok(TcpListener::from_std(listener)?)
}

async fn accept_all(shared: Arc<Shared>, listener: TcpListener) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    while let Ok(permit) = handshakes.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, address)) => shared.spawn(receive_all(shared.clone(), stream, address, permit)),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a data connection");
                flott_env::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn receive_all(
    shared: Arc<Shared>,
    mut stream: TcpStream,
    address: SocketAddr,
    handshake_permit: OwnedSemaphorePermit,
) {
    let peer = match inbound::accept(&mut stream, address, shared.execution).await {
        Ok(peer) => peer,
        // Not a failure of the execution: a port scanner or a zombie must not end it.
        Err(error) => {
            tracing::warn!(%address, %error, "refused a data connection");
            return;
        }
    };
    drop(handshake_permit);
    let mut inbound = InboundConnection::new(&shared.registry);
    if let Err(error) = inbound.run(stream).await {
        let error = error.context(format!("data connection from the worker at {peer}"));
        // First the cause, then the channels that fail for it.
        shared.fail(&peer, error.clone());
        inbound.close(&error);
    }
}

async fn send_all(shared: Arc<Shared>, connection: Arc<OutboundConnection>) {
    let peer = connection.peer();
    let context = format!("data connection to the worker at {peer}");
    match connection.run(Hello::new(shared.execution, shared.local_addr.port())).await {
        Ok(()) => connection.close(Error::system("closed after the end of the data").context(context)),
        Err(error) => {
            let error = error.context(context);
            shared.fail(peer, error.clone());
            connection.close(error);
        }
    }
}

async fn until_true(mut flag: watch::Receiver<bool>) {
    // An error means that the data plane is gone.
    let _is_true = flag.wait_for(|flag| *flag).await.is_ok();
}

async fn first_failure(mut failure: watch::Receiver<Option<Failure>>) -> Option<Failure> {
    failure.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone())
}

fn shut_down() -> Error {
    Error::system("the data plane was shut down")
}
