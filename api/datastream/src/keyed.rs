//! [`KeyedStream`] and [`WindowedStream`]: records grouped by key, and by time.

use std::sync::Arc;
use std::time::Duration;

use flott_core::{Data, Result};
use flott_operators::fold::Fold;
use flott_operators::process::{KeyedProcess, KeyedProcessFunction, OutputTag};
use flott_operators::reduce::Reduce;
use flott_operators::window::WindowOptions;
use flott_operators::window::aligned::AlignedWindowOperator;
use flott_operators::window::assigner::AlignedWindows;
use flott_operators::window::function::{
    AggregateFunction, AggregateWindow, ProcessWindow, ReduceWindow, WindowFunction,
};
use flott_operators::window::session::SessionWindowOperator;
use flott_operators::{KeyExtractor, TaskContext};
use flott_state::TimeWindow;

use crate::stream::DataStream;
use crate::windows::{Assigner, WindowAssigner};

/// A stream whose records are grouped by a key of type `K`: all records of a key go to one subtask, in order.
pub struct KeyedStream<K, T> {
    pub(crate) stream: DataStream<T>,
    pub(crate) extractor: Arc<dyn KeyExtractor<T, K>>,
}

impl<K: Data + Eq, T: Data> KeyedStream<K, T> {
    /// For each record, the combination of all records of its key so far; in batch mode once a key, at the end.
    ///
    /// ```
    /// # use flott::prelude::*;
    /// # fn main() -> flott::Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// let sums = env
    ///     .from_collection([("a", 1), ("b", 5), ("a", 2)].map(|(key, n)| (key.to_owned(), n)))
    ///     .key_by(|pair: &(String, u32)| pair.0.clone())
    ///     .reduce(|sum, next| (next.0, sum.1 + next.1))
    ///     .collect();
    /// env.execute("sums")?;
    /// assert_eq!(sums.take().into_iter().map(|pair| pair.1).collect::<Vec<_>>(), [1, 5, 3]);
    /// # Ok(()) }
    /// ```
    pub fn reduce(self, function: impl FnMut(&T, T) -> T + Clone + Send + Sync + 'static) -> DataStream<T> {
        let extractor = self.extractor;
        self.stream.add("Reduce", move |cx| Reduce::new(function.clone(), Arc::clone(&extractor), cx))
    }

    /// For each record, its key and what the key has accumulated so far; in batch mode once a key, at the end. The
    /// accumulator starts as `initial`.
    pub fn fold<A: Data + Sync>(
        self,
        initial: A,
        function: impl FnMut(&mut A, T) + Clone + Send + Sync + 'static,
    ) -> DataStream<(K, A)> {
        let extractor = self.extractor;
        self.stream.add("Fold", move |cx| Fold::new(initial.clone(), function.clone(), Arc::clone(&extractor), cx))
    }

    /// A function with state, timers and side outputs. One clone of it runs in each subtask.
    pub fn process<U: Data, F>(self, function: F) -> DataStream<U>
    where
        F: KeyedProcessFunction<K, T, U> + Clone + Sync + 'static,
    {
        let extractor = self.extractor;
        self.stream.add("Keyed Process", move |cx| Ok(KeyedProcess::new(function.clone(), Arc::clone(&extractor), cx)))
    }

    /// Divides the records of each key into windows of time.
    pub fn window(self, windows: impl Into<WindowAssigner>) -> WindowedStream<K, T> {
        let assigner = windows.into();
        let options = WindowOptions { time: assigner.time, allowed_lateness_ms: 0, late_tag: None };
        WindowedStream { keyed: self, assigner: assigner.assigner, options }
    }
}

/// A keyed stream divided into windows.
pub struct WindowedStream<K, T> {
    keyed: KeyedStream<K, T>,
    assigner: Result<Assigner>,
    options: WindowOptions,
}

impl<K: Data + Eq, T: Data> WindowedStream<K, T> {
    /// How long after its result a window still takes records; each of them gives a new result.
    #[must_use]
    pub fn allowed_lateness(mut self, lateness: Duration) -> Self {
        self.options.allowed_lateness_ms = i64::try_from(lateness.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// Sends records that come too late for all their windows to this tag, instead of counting them.
    #[must_use]
    pub fn side_output_late_data(mut self, tag: &OutputTag<T>) -> Self {
        self.options.late_tag = Some(tag.name().to_owned());
        self
    }

    /// The combination of a window's records.
    pub fn reduce(self, function: impl FnMut(&T, T) -> T + Clone + Send + Sync + 'static) -> DataStream<T> {
        self.apply("Window(Reduce)", move || ReduceWindow(function.clone()))
    }

    /// The result of an aggregation of a window's records.
    pub fn aggregate<A>(self, aggregate: A) -> DataStream<A::Output>
    where
        A: AggregateFunction<T> + Clone + 'static,
    {
        self.aggregate_with(aggregate, |_, _, result| result)
    }

    /// What `finish` makes of key, window and the result of an aggregation of its records.
    pub fn aggregate_with<A, Out, F>(self, aggregate: A, finish: F) -> DataStream<Out>
    where
        A: AggregateFunction<T> + Clone + 'static,
        Out: Data,
        F: FnMut(&K, TimeWindow, A::Output) -> Out + Clone + Send + Sync + 'static,
    {
        self.apply("Window(Aggregate)", move || AggregateWindow {
            aggregate: aggregate.clone(),
            finish: finish.clone(),
        })
    }

    /// What `function` makes of key, window and all its records, which are kept until then.
    pub fn process<Out, F>(self, function: F) -> DataStream<Out>
    where
        Out: Data,
        F: FnMut(&K, TimeWindow, &[T], &mut Vec<Out>) -> Result<()> + Clone + Send + Sync + 'static,
    {
        self.apply("Window(Process)", move || ProcessWindow::new(function.clone()))
    }

    fn apply<Out, F>(self, kind: &str, make: impl Fn() -> F + Send + Sync + 'static) -> DataStream<Out>
    where
        Out: Data,
        F: WindowFunction<K, T, Out> + 'static,
    {
        let Self { keyed: KeyedStream { stream, extractor }, assigner, options } = self;
        match assigner {
            Ok(Assigner::Aligned(windows)) => {
                stream.add(kind, move |cx| Ok(aligned(make(), windows, &options, &extractor, cx)))
            }
            Ok(Assigner::Session(gap)) => stream.add(kind, move |cx| {
                SessionWindowOperator::new(make(), gap, options.clone(), Arc::clone(&extractor), cx)
            }),
            Err(error) => {
                stream.builder.borrow_mut().fail(error);
                DataStream { builder: stream.builder, upstreams: Vec::new() }
            }
        }
    }
}

fn aligned<K, T, Out, F>(
    function: F,
    windows: AlignedWindows,
    options: &WindowOptions,
    extractor: &Arc<dyn KeyExtractor<T, K>>,
    cx: &TaskContext,
) -> AlignedWindowOperator<K, T, Out, F>
where
    K: Data + Eq,
    T: Data,
    Out: Data,
    F: WindowFunction<K, T, Out>,
{
    AlignedWindowOperator::new(function, windows, options.clone(), Arc::clone(extractor), cx)
}
