//! [`DataStream`]: records on their way.

use std::fmt::{Debug, Display};
use std::path::Path;
use std::sync::Arc;

use flott_connector_spi::Sink;
use flott_core::{Batch, Data, Error};
use flott_filesystem::{FileSink, PrintSink};
use flott_graph::{NodeId, Partitioning};
use flott_operators::key::{BorrowedKey, OwnedKey};
use flott_operators::process::{OutputTag, Process, ProcessFunction};
use flott_operators::sink::SinkOperator;
use flott_operators::stateless::{Filter, FlatMap, Iter, Map, Records};
use flott_operators::timestamps::{AssignTimestamps, WatermarkStrategy};
use flott_operators::{KeyExtractor, Operator, TaskContext};
use serde::Serialize;

use crate::builder::{SharedBuilder, Upstream};
use crate::collect::{CollectSink, Collected};
use crate::keyed::KeyedStream;

/// A stream of records of type `T`. Cloning it is a second consumer of the same records.
///
/// Its methods add operators to the program; nothing runs before
/// [`execute`](crate::StreamExecutionEnvironment::execute).
///
/// ```
/// # use flott::prelude::*;
/// # fn main() -> flott::Result<()> {
/// let env = StreamExecutionEnvironment::new();
/// let even = env.from_collection(0..10_u32).filter(|n| n % 2 == 0).map(|n| n * n).collect();
/// env.execute("squares")?;
/// assert_eq!(even.take(), [0, 4, 16, 36, 64]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DataStream<T> {
    pub(crate) builder: SharedBuilder,
    pub(crate) upstreams: Vec<Upstream<T>>,
}

impl<T: Data> DataStream<T> {
    pub(crate) fn of_node(builder: SharedBuilder, node: NodeId, side: Option<String>) -> Self {
        let epoch = builder.borrow().epoch;
        let upstream = Upstream { node, side, partitioning: Partitioning::Forward, hash: None, epoch };
        Self { builder, upstreams: vec![upstream] }
    }

    pub(crate) fn add<Out, O>(
        self,
        kind: &str,
        make: impl Fn(&TaskContext) -> flott_core::Result<O> + Send + Sync + 'static,
    ) -> DataStream<Out>
    where
        Out: Data,
        O: Operator<T, Out> + 'static,
    {
        let node = self.builder.borrow_mut().add_operator::<T, Out, O>(kind, self.upstreams, make);
        DataStream::of_node(self.builder, node, None)
    }

    /// One record for each.
    pub fn map<U: Data>(self, function: impl FnMut(T) -> U + Clone + Send + Sync + 'static) -> DataStream<U> {
        self.add("Map", move |_| Ok(Map::new(function.clone())))
    }

    /// The records for which `function` returns true.
    pub fn filter(self, function: impl FnMut(&T) -> bool + Clone + Send + Sync + 'static) -> Self {
        self.add("Filter", move |_| Ok(Filter::new(function.clone())))
    }

    /// Any number of records for each: `function` appends them to its second argument.
    ///
    /// ```
    /// # use flott::prelude::*;
    /// # fn main() -> flott::Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// let words = env
    ///     .from_collection(["to be".to_owned(), "or not".to_owned()])
    ///     .flat_map(|line: String, out| out.extend(line.split(' ').map(str::to_owned)))
    ///     .collect();
    /// env.execute("words")?;
    /// assert_eq!(words.take(), ["to", "be", "or", "not"]);
    /// # Ok(()) }
    /// ```
    pub fn flat_map<U: Data>(
        self,
        function: impl FnMut(T, &mut Vec<U>) + Clone + Send + Sync + 'static,
    ) -> DataStream<U> {
        self.add("Flat Map", move |_| Ok(FlatMap::new(function.clone())))
    }

    /// A chain of std's iterator adaptors over each batch, which the compiler fuses into one loop. Adaptors that look
    /// at several records see one batch at a time, so use those that look at one.
    ///
    /// ```
    /// # use flott::prelude::*;
    /// # fn main() -> flott::Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// let odd = env.from_collection(0..10_u64).iter(|records| records.map(|n| n * 3).filter(|n| n % 2 == 1)).collect();
    /// env.execute("fused")?;
    /// assert_eq!(odd.take(), [3, 9, 15, 21, 27]);
    /// # Ok(()) }
    /// ```
    pub fn iter<U: Data, I: Iterator<Item = U>>(
        self,
        function: impl FnMut(Records<T>) -> I + Clone + Send + Sync + 'static,
    ) -> DataStream<U> {
        self.add("Iter", move |_| Ok(Iter::new(function.clone())))
    }

    /// A function with side outputs. One clone of it runs in each subtask.
    pub fn process<U: Data, F>(self, function: F) -> DataStream<U>
    where
        F: ProcessFunction<T, U> + Clone + Sync + 'static,
    {
        self.add("Process", move |_| Ok(Process::new(function.clone())))
    }

    /// The records of the operator before that it sent to this tag.
    pub fn side_output<S: Data>(&self, tag: &OutputTag<S>) -> DataStream<S> {
        match &self.upstreams[..] {
            [only] => DataStream::of_node(self.builder.clone(), only.node, Some(tag.name().to_owned())),
            _ => {
                let name = tag.name();
                self.builder.borrow_mut().fail(Error::input(format!(
                    "side_output('{name}') of a union: take it from the operator that sends it, before union()"
                )));
                DataStream { builder: self.builder.clone(), upstreams: Vec::new() }
            }
        }
    }

    /// All records of both streams, in no particular order between them.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        self.upstreams.extend(other.upstreams);
        self
    }

    /// Says when each record happened, and how far event time has come.
    #[must_use]
    pub fn assign_timestamps_and_watermarks(self, strategy: WatermarkStrategy<T>) -> Self {
        self.add("Timestamps/Watermarks", move |cx| AssignTimestamps::new(strategy.clone(), cx))
    }

    /// Groups records by a key that `key` makes of them.
    pub fn key_by<K: Data + Eq>(self, key: impl Fn(&T) -> K + Send + Sync + 'static) -> KeyedStream<K, T> {
        self.keyed(Arc::new(OwnedKey(key)))
    }

    /// Groups records by a key that is part of them, which saves copying it where it is only looked at.
    pub fn key_by_ref<K: Data + Eq>(self, key: impl Fn(&T) -> &K + Send + Sync + 'static) -> KeyedStream<K, T> {
        self.keyed(Arc::new(BorrowedKey::new(key)))
    }

    fn keyed<K: Data + Eq>(mut self, extractor: Arc<dyn KeyExtractor<T, K>>) -> KeyedStream<K, T> {
        for upstream in &mut self.upstreams {
            let extractor = Arc::clone(&extractor);
            upstream.partitioning = Partitioning::Hash;
            upstream.hash = Some(Arc::new(move |rows: &[T], hashes: &mut Vec<u64>| extractor.hashes(rows, hashes)));
        }
        KeyedStream { stream: self, extractor }
    }

    fn partitioned(mut self, partitioning: Partitioning) -> Self {
        for upstream in &mut self.upstreams {
            upstream.partitioning = partitioning;
        }
        self
    }

    /// Spreads records evenly over the subtasks of the next operator, a batch at a time.
    #[must_use]
    pub fn rebalance(self) -> Self {
        self.partitioned(Partitioning::Rebalance)
    }

    /// Sends every record to every subtask of the next operator.
    #[must_use]
    pub fn broadcast(self) -> Self {
        self.partitioned(Partitioning::Broadcast)
    }

    /// Sends every record to the first subtask of the next operator.
    #[must_use]
    pub fn global(self) -> Self {
        self.partitioned(Partitioning::Global)
    }

    /// Names the operator before, for messages, metrics and the REST API.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.configure("name", |node| node.name = name)
    }

    /// Gives the state of the operator before a name that stays the same when the job changes.
    #[must_use]
    pub fn uid(self, uid: impl Into<String>) -> Self {
        let uid = uid.into();
        self.configure("uid", |node| node.uid = Some(uid))
    }

    /// How many subtasks the operator before has.
    #[must_use]
    pub fn set_parallelism(self, parallelism: u32) -> Self {
        self.configure("set_parallelism", |node| node.parallelism = Some(parallelism))
    }

    /// Keeps the operator before in subtasks of its own.
    #[must_use]
    pub fn disable_chaining(self) -> Self {
        self.configure("disable_chaining", |node| node.is_chainable = false)
    }

    fn configure(self, call: &str, change: impl FnOnce(&mut flott_graph::StreamNode)) -> Self {
        {
            let mut builder = self.builder.borrow_mut();
            match &self.upstreams[..] {
                [only] if only.epoch == builder.epoch => change(&mut builder.graph.nodes[only.node]),
                [_] => builder.fail(Error::input(format!("{call}() of a stream whose program was executed already"))),
                _ => builder.fail(Error::input(format!("{call}() of a union: a union is not an operator"))),
            }
        }
        self
    }

    /// Ends the stream in `sink`.
    pub fn sink_to<S: Sink<T>>(self, sink: S) -> DataStreamSink {
        let sink = Arc::new(sink);
        let stream: DataStream<()> = self.add("Sink", move |cx| Ok(SinkOperator::new(Arc::clone(&sink), cx)));
        DataStreamSink(stream)
    }

    /// Prints each record's debug form to standard output.
    pub fn print(self) -> DataStreamSink
    where
        T: Debug,
    {
        self.sink_to(PrintSink::debug()).name("Print")
    }

    /// Writes each record as a line of text into files below `folder`, exactly once.
    pub fn write_text(self, folder: impl AsRef<Path>) -> DataStreamSink
    where
        T: Display,
    {
        self.sink_to(FileSink::text(folder.as_ref().to_string_lossy())).name("Files")
    }

    /// Writes records as CSV into files below `folder`, exactly once.
    pub fn write_csv(self, folder: impl AsRef<Path>) -> DataStreamSink
    where
        T: Serialize,
    {
        self.sink_to(FileSink::csv(folder.as_ref().to_string_lossy())).name("Files")
    }

    /// Writes each record as a line of JSON into files below `folder`, exactly once.
    pub fn write_json(self, folder: impl AsRef<Path>) -> DataStreamSink
    where
        T: Serialize,
    {
        self.sink_to(FileSink::json(folder.as_ref().to_string_lossy())).name("Files")
    }

    /// Collects all records in this process: for local runs and tests. Records are there once the checkpoint that they
    /// belong to is complete, at the latest when `execute` returns, and each of them once.
    pub fn collect(self) -> Collected<T>
    where
        T: Sync,
    {
        let collected = Collected::default();
        self.builder.borrow_mut().local_only = Some("collect()");
        let sink = CollectSink::new(collected.clone());
        self.sink_to(sink).name("Collect");
        collected
    }

    /// Calls `function` with each batch of records. It may be called again with records that it has seen, after a
    /// failure.
    pub fn for_each_batch(self, function: impl FnMut(&mut Batch<T>) + Clone + Send + Sync + 'static) -> DataStreamSink {
        let stream: DataStream<()> = self.add("For Each", move |_| Ok(ForEach(function.clone())));
        DataStreamSink(stream)
    }
}

struct ForEach<F>(F);

impl<T: Data, F: FnMut(&mut Batch<T>) + Send> Operator<T, ()> for ForEach<F> {
    fn process(&mut self, batch: &mut Batch<T>, _: &mut flott_operators::Output<()>) -> flott_core::Result<()> {
        (self.0)(batch);
        Ok(())
    }
}

/// The end of a stream.
pub struct DataStreamSink(DataStream<()>);

impl DataStreamSink {
    /// Names the sink.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self(self.0.name(name))
    }

    /// Gives the sink's state a name that stays the same when the job changes.
    pub fn uid(self, uid: impl Into<String>) -> Self {
        Self(self.0.uid(uid))
    }

    /// How many subtasks the sink has.
    pub fn set_parallelism(self, parallelism: u32) -> Self {
        Self(self.0.set_parallelism(parallelism))
    }

    /// Keeps the sink in subtasks of its own.
    pub fn disable_chaining(self) -> Self {
        Self(self.0.disable_chaining())
    }
}
