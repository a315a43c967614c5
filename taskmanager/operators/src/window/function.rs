//! What is kept for a window, and what it results in.

use std::marker::PhantomData;

use flott_core::{Data, Result};
use flott_state::TimeWindow;

/// Folds the records of a window as they come, and makes its result when it is due.
pub trait WindowFunction<K, T, Out>: Send {
    /// What is kept for a key and window.
    type State: Data;

    /// The state of a window with one record.
    fn create(&mut self, value: T) -> Self::State;

    /// Adds a record.
    fn add(&mut self, state: &mut Self::State, value: T);

    /// Merges the state of a session into another's that it has met.
    fn merge(&mut self, state: &mut Self::State, other: Self::State);

    /// Appends the results.
    fn results(&mut self, key: &K, window: TimeWindow, state: &Self::State, out: &mut Vec<Out>) -> Result<()>;
}

/// An aggregation: an accumulator that records are added to, and its result. Flink's `AggregateFunction`.
pub trait AggregateFunction<T>: Send + Sync {
    /// What is kept.
    type Accumulator: Data;
    /// What comes out.
    type Output: Data;

    /// An accumulator without records.
    fn create(&self) -> Self::Accumulator;

    /// Adds a record.
    fn add(&self, accumulator: &mut Self::Accumulator, value: T);

    /// Adds another accumulator.
    fn merge(&self, accumulator: &mut Self::Accumulator, other: Self::Accumulator);

    /// The result of the records so far.
    fn result(&self, accumulator: &Self::Accumulator) -> Self::Output;
}

/// `reduce`: the combination of all records.
pub struct ReduceWindow<F>(pub F);

impl<K, T: Data, F: FnMut(&T, T) -> T + Send> WindowFunction<K, T, T> for ReduceWindow<F> {
    type State = T;

    fn create(&mut self, value: T) -> T {
        value
    }

    fn add(&mut self, state: &mut T, value: T) {
        *state = (self.0)(state, value);
    }

    fn merge(&mut self, state: &mut T, other: T) {
        *state = (self.0)(state, other);
    }

    fn results(&mut self, _: &K, _: TimeWindow, state: &T, out: &mut Vec<T>) -> Result<()> {
        out.push(state.clone());
        Ok(())
    }
}

/// `aggregate`: an [`AggregateFunction`], and what to make of its result with key and window.
pub struct AggregateWindow<A, F> {
    /// The aggregation.
    pub aggregate: A,
    /// Makes the result from key, window and the aggregation's output.
    pub finish: F,
}

impl<K, T, A, Out, F> WindowFunction<K, T, Out> for AggregateWindow<A, F>
where
    A: AggregateFunction<T>,
    F: FnMut(&K, TimeWindow, A::Output) -> Out + Send,
{
    type State = A::Accumulator;

    fn create(&mut self, value: T) -> Self::State {
        let mut state = self.aggregate.create();
        self.aggregate.add(&mut state, value);
        state
    }

    fn add(&mut self, state: &mut Self::State, value: T) {
        self.aggregate.add(state, value);
    }

    fn merge(&mut self, state: &mut Self::State, other: Self::State) {
        self.aggregate.merge(state, other);
    }

    fn results(&mut self, key: &K, window: TimeWindow, state: &Self::State, out: &mut Vec<Out>) -> Result<()> {
        out.push((self.finish)(key, window, self.aggregate.result(state)));
        Ok(())
    }
}

/// `process`: all records of the window at once.
pub struct ProcessWindow<F, Out> {
    function: F,
    out: PhantomData<fn() -> Out>,
}

impl<F, Out> ProcessWindow<F, Out> {
    /// Calls `function` with key, window, records in order of arrival, and where results go.
    pub fn new(function: F) -> Self {
        Self { function, out: PhantomData }
    }
}

impl<K, T, Out, F> WindowFunction<K, T, Out> for ProcessWindow<F, Out>
where
    T: Data,
    F: FnMut(&K, TimeWindow, &[T], &mut Vec<Out>) -> Result<()> + Send,
{
    type State = Vec<T>;

    fn create(&mut self, value: T) -> Vec<T> {
        vec![value]
    }

    fn add(&mut self, state: &mut Vec<T>, value: T) {
        state.push(value);
    }

    fn merge(&mut self, state: &mut Vec<T>, other: Vec<T>) {
        state.extend(other);
    }

    fn results(&mut self, key: &K, window: TimeWindow, state: &Vec<T>, out: &mut Vec<Out>) -> Result<()> {
        (self.function)(key, window, state, out)
    }
}
