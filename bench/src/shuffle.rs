//! Batches from one process to another over loopback: through the shuffle's writer and the data plane, beside plain TCP
//! with the same bytes.
//!
//! This binary starts itself twice a measurement. The receiver prints the address that it listens on and, at the end,
//! what it received and how long that took from the first byte on; the sender stays until its input is closed,
//! since the data plane ends with its process.

use std::hint::black_box;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum;
use flott_control::ExecutionId;
use flott_core::hash::stable_hash;
use flott_core::ids::JobId;
use flott_core::{Batch, Error, Result, ResultExt};
use flott_graph::Partitioning;
use flott_network::{ChannelId, DataPlane, Element, Options, Payload, Receiver, Sender, Signal};
use flott_operators::exchange::{ChannelWriter, HashRows, decode_batch, encode_rows};
use flott_operators::{Control, Push};
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};

use crate::harness::{MAX_PARALLELISM, batches, check_same, medians, runtime, scrambled, sum};
use crate::report::Figure;

/// How many subtasks receive.
const CHANNELS: u32 = 2;

/// Batches that are sent again and again.
const POOL_BATCHES: u64 = 16;

const OPTIONS: Options = Options { capacity_bytes: 1 << 20, compression: false };

/// Long enough for any machine: nothing moves for so long only if something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// 64 bytes, here and on the wire.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Row {
    key: u64,
    values: [u64; 7],
}

/// How batches travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// From rows to rows: hashed, scattered, encoded, sent, decoded.
    Records,
    /// Encoded before and not decoded: the data plane alone.
    Encoded,
    /// The same encoded batches over a plain socket.
    Tcp,
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (megabytes, rounds) = if is_quick { (200, 3) } else { (2_000, 5) };
    let [records, encoded, tcp] = medians(rounds, || {
        Ok([measure(Way::Records, megabytes)?, measure(Way::Encoded, megabytes)?, measure(Way::Tcp, megabytes)?])
    })?;
    let figure = |name, rate| Figure::more(name, "GB/s", rate, tcp).against("plain TCP", 0.5);
    Ok(vec![figure("shuffle", records), figure("shuffle_encoded", encoded)])
}

/// Starts a receiver and a sender and returns the gigabytes that get through in a second.
fn measure(way: Way, megabytes: u64) -> Result<f64> {
    let way = way.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut receiver = Process::start(&["shuffle-receiver", "--way", &way])?;
    let address = receiver.line("the receiver's address")?;
    let megabytes = megabytes.to_string();
    let mut sender = Process::start(&["shuffle-sender", "--way", &way, "--megabytes", &megabytes, "--to", &address])?;
    let sent = sender.line("what was sent")?;
    let received = receiver.line("what was received")?;
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
    let mut words = received.split(' ');
    match (number(words.next()), number(words.next())) {
        (Some(bytes), Some(seconds)) if seconds > 0.0 => {
            check_same("the bytes sent and received", sent.parse().unwrap_or_default(), bytes as u64)?;
            Ok(bytes / seconds / 1e9)
        }
        _ => Err(Error::system(format!("the receiver answered '{received}'"))),
    }
}

/// A process of this binary, which ends with its value.
struct Process {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(arguments: &[&str]) -> Result<Self> {
        let binary = std::env::current_exe().context("finding this binary")?;
        let mut child = Command::new(binary)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", arguments[0]))?;
        let stdout = child.stdout.take().ok_or_else(|| Error::system("the process has no output"))?;
        Ok(Self { child, stdout: BufReader::new(stdout) })
    }

    /// The next line that it prints.
    fn line(&mut self, what: &str) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).with_context(|| format!("reading {what}"))?;
        if line.is_empty() {
            return Err(Error::system(format!("the process ended before it told {what}")));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has told everything that it had to tell, or is of no use: either call fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The arguments of a receiver.
#[derive(clap::Args)]
pub(crate) struct ReceiverArgs {
    #[arg(long)]
    way: Way,
}

/// The arguments of a sender.
#[derive(clap::Args)]
pub(crate) struct SenderArgs {
    #[arg(long)]
    way: Way,
    #[arg(long)]
    megabytes: u64,
    #[arg(long)]
    to: String,
}

/// What has arrived.
#[derive(Default)]
struct Received {
    bytes: u64,
    start: Option<Duration>,
    took: Duration,
}

impl Received {
    fn add(&mut self, bytes: usize) {
        self.start.get_or_insert_with(flott_env::monotonic);
        self.bytes += bytes as u64;
    }

    /// That was all.
    fn end(mut self) -> Self {
        self.took = self.start.map_or(Duration::ZERO, |start| flott_env::monotonic() - start);
        self
    }
}

impl ReceiverArgs {
    /// Listens, prints where, receives everything, and prints how much and how long.
    pub(crate) fn run(&self) -> Result<()> {
        let received = match self.way {
            Way::Tcp => receive_tcp(),
            Way::Records => receive_batches(true),
            Way::Encoded => receive_batches(false),
        };
        let Received { bytes, took, .. } = received?;
        println!("{bytes} {}", took.as_secs_f64());
        Ok(())
    }
}

fn receive_tcp() -> Result<Received> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; 256 << 10];
    let mut received = Received::default();
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(received.end()),
            Ok(bytes) => received.add(black_box(&buffer[..bytes]).len()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn receive_batches(decodes: bool) -> Result<Received> {
    let runtime = runtime()?;
    let plane = DataPlane::bind("127.0.0.1:0", execution(), runtime.handle(), OPTIONS)?;
    let consumer = Signal::new();
    let channels: Vec<Receiver> = (0..CHANNELS).map(|to| plane.receiver(channel(to), consumer.clone())).collect();
    println!("{}", plane.local_addr());

    let (mut received, mut batch, mut open) = (Received::default(), Batch::<Row>::default(), channels.len());
    while open > 0 {
        let mut has_moved = false;
        for element in channels.iter().filter_map(Receiver::pop) {
            has_moved = true;
            match element {
                Element::Batch(Payload::Encoded { data, rows }) => {
                    received.add(data.len());
                    if decodes {
                        decode_batch(&data, rows, &mut batch)?;
                        black_box(sum(&batch.rows, |row| row.key));
                        batch.clear();
                    }
                }
                Element::EndOfInput => open -= 1,
                _ => {}
            }
        }
        if has_moved {
            continue;
        }
        if let Some(error) = channels.iter().find_map(Receiver::error) {
            return Err(error);
        }
        if !consumer.wait_until(Some(PATIENCE)) {
            return Err(Error::system(format!("nothing arrived for {PATIENCE:?}")));
        }
    }
    Ok(received.end())
}

impl SenderArgs {
    /// Sends everything, prints how many bytes that were, and stays until its input is closed.
    pub(crate) fn run(&self) -> Result<()> {
        let pool = batches(POOL_BATCHES * Batch::<Row>::ROWS_MAX as u64, |index| Row {
            key: scrambled(index),
            values: [index; 7],
        });
        let pool_bytes: usize = pool.iter().map(|batch| size_of::<Row>() * batch.len()).sum();
        let times = (self.megabytes * 1_000_000).div_ceil(pool_bytes as u64);
        if self.way == Way::Tcp {
            println!("{}", send_tcp(&self.to, &pool, times)?);
            return wait_for_end();
        }
        let runtime = runtime()?;
        let plane = DataPlane::bind("127.0.0.1:0", execution(), runtime.handle(), OPTIONS)?;
        let producer = Signal::new();
        let senders: Vec<Sender> =
            (0..CHANNELS).map(|to| plane.sender(channel(to), &self.to, producer.clone())).collect();
        let bytes = match self.way {
            Way::Records => send_records(senders, &producer, &pool, times)?,
            _ => send_encoded(&senders, &producer, &pool, times)?,
        };
        println!("{bytes}");
        wait_for_end()
    }
}

fn wait_for_end() -> Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn send_tcp(to: &str, pool: &[Batch<Row>], times: u64) -> Result<u64> {
    let pool = encoded(pool)?;
    let mut stream = TcpStream::connect(to).with_context(|| format!("connecting to {to}"))?;
    stream.set_nodelay(true)?;
    let mut bytes = 0;
    for data in (0..times).flat_map(|_| &pool) {
        stream.write_all(data)?;
        bytes += data.len() as u64;
    }
    Ok(bytes)
}

fn send_records(senders: Vec<Sender>, producer: &Signal, pool: &[Batch<Row>], times: u64) -> Result<u64> {
    let counters = Arc::new(TaskCounters::default());
    let hash: HashRows<Row> =
        Arc::new(|rows: &[Row], hashes: &mut Vec<u64>| hashes.extend(rows.iter().map(|row| stable_hash(&row.key))));
    let channels = senders.clone();
    let mut writer =
        ChannelWriter::new(Partitioning::Hash, Some(hash), MAX_PARALLELISM, 0, senders, Arc::clone(&counters));
    let mut batch = Batch::default();
    for rows in (0..times).flat_map(|_| pool) {
        wait_for_room(&channels, producer)?;
        batch.rows.extend_from_slice(&rows.rows);
        writer.push(&mut batch)?;
    }
    writer.control(&mut Control::EndOfInput)?;
    Ok(counters.bytes_out.get())
}

fn send_encoded(senders: &[Sender], producer: &Signal, pool: &[Batch<Row>], times: u64) -> Result<u64> {
    let (pool, rows) = (encoded(pool)?, Batch::<Row>::ROWS_MAX as u32);
    let mut bytes = 0;
    for (data, sender) in (0..times).flat_map(|_| &pool).zip(senders.iter().cycle()) {
        wait_for_room(std::slice::from_ref(sender), producer)?;
        bytes += data.len() as u64;
        sender.send(Element::Batch(Payload::Encoded { data: data.clone(), rows }))?;
    }
    senders.iter().try_for_each(|sender| sender.send(Element::EndOfInput))?;
    Ok(bytes)
}

fn wait_for_room(senders: &[Sender], producer: &Signal) -> Result<()> {
    while !senders.iter().all(Sender::is_writable) {
        if !producer.wait_until(Some(PATIENCE)) {
            return Err(Error::system(format!("the receiver took nothing for {PATIENCE:?}")));
        }
    }
    Ok(())
}

fn encoded(pool: &[Batch<Row>]) -> Result<Vec<Bytes>> {
    let encode = |batch: &Batch<Row>| {
        let mut data = Vec::new();
        let taken = encode_rows(batch, 0, &mut data)?;
        if taken < batch.len() {
            return Err(Error::system(format!("a batch of {} rows does not fit into a frame", batch.len())));
        }
        Ok(Bytes::from(data))
    };
    pool.iter().map(encode).collect()
}

fn execution() -> ExecutionId {
    ExecutionId { job: JobId([1; 16]), generation: 1 }
}

fn channel(to: u32) -> ChannelId {
    ChannelId { edge: 0, from: 0, to }
}
