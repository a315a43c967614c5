//! What the benchmarks share: chains of operators without a cluster, and how to measure fairly.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flott_connector_spi::{IoHandle, Waker};
use flott_core::config::Configuration;
use flott_core::ids::{JobId, OperatorId, SubtaskId};
use flott_core::{Batch, Data, Error, Result, ResultExt};
use flott_operators::timestamps::SplitSet;
use flott_operators::{Control, Operator, OperatorNode, Output, Push, SideOutputs, TaskContext};
use flott_state::StateBackend;
use flott_telemetry::TaskCounters;
use tokio::runtime::{Builder, Runtime};

/// The default of `pipeline.max-parallelism`.
pub(crate) const MAX_PARALLELISM: u32 = 128;

/// The I/O threads of a process, as many as a worker has.
pub(crate) fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().context("starting the I/O threads")
}

/// The only subtask of a job.
pub(crate) fn task_context(io: &IoHandle) -> TaskContext {
    TaskContext {
        job: JobId([1; 16]),
        generation: 1,
        subtask: SubtaskId { vertex: 0, index: 0 },
        name: "benchmark".to_owned(),
        parallelism: 1,
        max_parallelism: MAX_PARALLELISM,
        config: Configuration::default(),
        counters: Arc::new(TaskCounters::default()),
        io: io.clone(),
        waker: Waker::noop(),
        woken: Arc::default(),
        outlet: Default::default(),
        splits: Arc::new(SplitSet::default()),
        state: StateBackend::default(),
    }
}

/// An operator in a chain, in front of `next`.
pub(crate) fn chained<In, Out, O>(operator: O, next: Box<dyn Push<Out>>) -> Box<dyn Push<In>>
where
    In: Data,
    Out: Data,
    O: Operator<In, Out> + 'static,
{
    let out = Output::new(vec![next], SideOutputs::default());
    Box::new(OperatorNode::new(OperatorId([1; 16]), "benchmark", operator, out))
}

/// The end of a chain: adds up what it gets, so that nothing can be left out.
pub(crate) struct Sum<F> {
    value: F,
    total: Total,
}

/// A sum that outlives its chain.
#[derive(Clone, Default)]
pub(crate) struct Total(Arc<AtomicU64>);

impl Total {
    /// The sum since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl<F> Sum<F> {
    /// Adds the value of each row to `total`.
    pub(crate) fn new(value: F, total: &Total) -> Self {
        Self { value, total: total.clone() }
    }
}

impl<T: Data, F: Fn(&T) -> u64 + Send> Push<T> for Sum<F> {
    fn push(&mut self, batch: &mut Batch<T>) -> Result<()> {
        self.total.0.fetch_add(sum(&batch.rows, &self.value), Ordering::Relaxed);
        batch.clear();
        Ok(())
    }

    fn control(&mut self, _: &mut Control<'_>) -> Result<()> {
        Ok(())
    }
}

/// The sum of the values of `rows`, the same for both sides of a comparison.
pub(crate) fn sum<T>(rows: &[T], value: impl Fn(&T) -> u64) -> u64 {
    rows.iter().fold(0, |sum, row| sum.wrapping_add(value(row)))
}

/// The rows of a function of 0, 1, 2, …, in full batches.
pub(crate) fn batches<T>(rows: u64, row: impl Fn(u64) -> T) -> Vec<Batch<T>> {
    let rows_max = Batch::<T>::ROWS_MAX as u64;
    let starts = (0..rows).step_by(Batch::<T>::ROWS_MAX);
    starts.map(|start| Batch::from_rows((start..rows.min(start + rows_max)).map(&row).collect())).collect()
}

/// Numbers without any order: the output function of SplitMix64.
pub(crate) fn scrambled(index: u64) -> u64 {
    let state = index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// How long `run` takes, in seconds, and what it returns.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = flott_env::monotonic();
    let result = run();
    ((flott_env::monotonic() - start).as_secs_f64(), result)
}

/// The medians of the figures that each round gives. A round measures all sides one after the other, so that what
/// disturbs the machine disturbs them alike.
pub(crate) fn medians<const N: usize>(rounds: usize, mut round: impl FnMut() -> Result<[f64; N]>) -> Result<[f64; N]> {
    let measured = (0..rounds).map(|_| round()).collect::<Result<Vec<_>>>()?;
    Ok(std::array::from_fn(|side| median(measured.iter().map(|figures| figures[side]).collect())))
}

/// The value in the middle, the upper one of two; 0 if there are none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Refuses a comparison of sides that did not do the same.
pub(crate) fn check_same(what: &str, ours: u64, peer: u64) -> Result<()> {
    if ours == peer {
        return Ok(());
    }
    Err(Error::system(format!("the sides differ in {what}: Flott has {ours}, its peer {peer}")))
}

/// Where inputs are kept that take long to make.
pub(crate) fn cache() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let cache = match cache {
        Some(cache) => cache,
        None => PathBuf::from(std::env::var_os("HOME").ok_or_else(|| Error::input("HOME is not set"))?).join(".cache"),
    };
    Ok(cache.join("flott/bench"))
}

/// The path of a binary that was built beside this one.
pub(crate) fn binary(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe().context("finding this binary")?.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::input(format!("{} is not there: 'cargo build --release --workspace --bins' makes it", path.display())))
}

/// What a command prints to its end.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::system(format!("{command:?} ended with {}: {}", output.status, stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_full_but_the_last() {
        let lengths: Vec<usize> = batches(2050, |index| index).iter().map(Batch::len).collect();
        assert_eq!(lengths, [1024, 1024, 2]);
    }

    #[test]
    fn each_side_has_its_own_median() {
        let mut rounds = [[3.0, 1.0], [1.0, 9.0], [2.0, 4.0]].into_iter();
        assert_eq!(medians(3, || Ok(rounds.next().unwrap())).unwrap(), [2.0, 4.0]);
    }
}
