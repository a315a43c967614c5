//! [`StreamExecutionEnvironment`]: where a program begins.

use std::sync::Arc;

use flott_connector_spi::{Boundedness, Source};
use flott_core::config::Configuration;
use flott_core::config::options::{self, RuntimeMode};
use flott_core::{Data, Error, Result};
use flott_datagen::{CollectionSource, GeneratorSource};
use flott_filesystem::FileSource;
use flott_local::{EngineArgs, JobOutcome, Launcher};
use flott_operators::source::SourceHead;
use flott_operators::{NodeFactory, Program};

use crate::builder::{Builder, SharedBuilder};
use crate::stream::DataStream;

/// The configuration of a job, its sources, and how it is executed.
///
/// ```
/// use flott::prelude::*;
/// # fn main() -> flott::Result<()> {
/// let env = StreamExecutionEnvironment::new();
/// env.set_parallelism(2).set("execution.checkpointing.interval", "10 s");
/// let sum = env.from_collection(1..=3_u32).key_by(|_| ()).reduce(|sum, next| sum + next).collect();
/// env.execute("sum")?;
/// assert_eq!(sum.take(), [1, 3, 6]);
/// # Ok(()) }
/// ```
///
/// A clone of it builds on the same program.
#[derive(Clone)]
pub struct StreamExecutionEnvironment {
    pub(crate) builder: SharedBuilder,
    pub(crate) launcher: Launcher,
}

impl Default for StreamExecutionEnvironment {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamExecutionEnvironment {
    /// An environment without arguments. The job runs in this process, unless this process is a worker or plans.
    pub fn new() -> Self {
        match Launcher::new(EngineArgs::default()) {
            Ok(launcher) => Self::with_launcher(launcher),
            Err(error) => {
                let env = Self::with_launcher(Launcher::local(Configuration::default()));
                env.builder.borrow_mut().fail(error);
                env
            }
        }
    }

    pub(crate) fn with_launcher(launcher: Launcher) -> Self {
        let builder = Builder::new(launcher.config().clone());
        Self { builder: SharedBuilder::new(builder.into()), launcher }
    }

    /// Sets an option. What was given on the command line goes over it. A mistake is reported by
    /// [`execute`](Self::execute).
    pub fn set(&self, key: &str, value: &str) -> &Self {
        let mut builder = self.builder.borrow_mut();
        let set = builder.config.set(key, value);
        builder.config.extend(self.launcher.config());
        if let Err(error) = set {
            builder.fail(error);
        }
        drop(builder);
        self
    }

    /// How many subtasks an operator has that does not say so itself.
    pub fn set_parallelism(&self, parallelism: u32) -> &Self {
        self.set(options::PARALLELISM_DEFAULT.key, &parallelism.to_string())
    }

    /// How many key groups keyed state has, and so the highest parallelism it can ever be scaled to.
    pub fn set_max_parallelism(&self, max_parallelism: u32) -> &Self {
        self.set(options::MAX_PARALLELISM.key, &max_parallelism.to_string())
    }

    /// Whether results come as records do, or once at the end of bounded input.
    pub fn set_runtime_mode(&self, mode: RuntimeMode) -> &Self {
        let name = match mode {
            RuntimeMode::Streaming => "STREAMING",
            RuntimeMode::Batch => "BATCH",
        };
        self.set(options::RUNTIME_MODE.key, name)
    }

    /// The configuration as it is now.
    pub fn config(&self) -> Configuration {
        self.builder.borrow().config.clone()
    }

    /// The records of a source.
    pub fn from_source<S: Source>(&self, name: &str, source: S) -> DataStream<S::Item> {
        let is_unbounded = source.boundedness() == Boundedness::Unbounded;
        let source = Arc::new(source);
        let factory = NodeFactory::Source(Box::new(move |cx, mut targets| {
            let out = targets.output::<S::Item>()?;
            Ok(Box::new(SourceHead::new(targets.id, targets.name, Arc::clone(&source), cx, out)?))
        }));
        let mut builder = self.builder.borrow_mut();
        let node = builder.add_node("Source", true, factory);
        if is_unbounded {
            builder.set_unbounded(node);
        }
        drop(builder);
        DataStream::of_node(self.builder.clone(), node, None).name(name)
    }

    /// These records, by one subtask, in order.
    pub fn from_collection<T: Data + Sync>(&self, records: impl IntoIterator<Item = T>) -> DataStream<T> {
        let stream = self.from_source("Collection", CollectionSource::new(records));
        self.builder.borrow_mut().set_non_parallel(&stream);
        stream
    }

    /// The records that a generator makes. See [`GeneratorSource`] for endless and rate-limited ones.
    ///
    /// ```
    /// # use flott::prelude::*;
    /// use flott::datagen::GeneratorSource;
    /// # fn main() -> flott::Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// let squares = env.from_generator(GeneratorSource::new(|index| index * index).count(4)).collect();
    /// env.execute("squares")?;
    /// assert_eq!(squares.take(), [0, 1, 4, 9]);
    /// # Ok(()) }
    /// ```
    pub fn from_generator<T: Data, F: Fn(u64) -> T + Send + Sync + 'static>(
        &self,
        generator: GeneratorSource<T, F>,
    ) -> DataStream<T> {
        self.from_source("Generator", generator)
    }

    /// The lines of text files: a file, a folder, or a glob, local or at a `file://` or `s3://` URL. Files that end in
    /// `.gz` or `.zst` are decompressed. See [`FileSource`] for more.
    pub fn read_text(&self, path: &str) -> DataStream<String> {
        self.from_source("Text Files", FileSource::text(path))
    }

    /// The records of CSV files whose first line names the fields of `T`. See [`Self::read_text`] for paths and
    /// [`FileSource`] for more.
    pub fn read_csv<T: Data>(&self, path: &str) -> DataStream<T> {
        self.from_source("CSV Files", FileSource::csv(path))
    }

    /// The records of files with one JSON object a line. See [`Self::read_text`] for paths and [`FileSource`] for more.
    pub fn read_json<T: Data>(&self, path: &str) -> DataStream<T> {
        self.from_source("JSON Files", FileSource::json(path))
    }

    /// Executes the program, and returns when it has ended: in this process, or in the cluster that the arguments
    /// name.
    ///
    /// # Errors
    /// The program has a mistake, the cluster cannot be reached, or the job failed.
    pub fn execute(&self, name: &str) -> Result<JobOutcome> {
        self.launcher.execute(self.program(name)?)
    }

    /// The finished program. What is built from now on is another.
    pub(crate) fn program(&self, name: &str) -> Result<Arc<Program>> {
        let mut builder = self.builder.borrow_mut();
        if let Some(call) = builder.local_only
            && !self.launcher.is_local()
        {
            return Err(Error::input(format!(
                "{call} brings records into the program that runs the job, and a cluster runs it elsewhere: end the stream in a sink"
            )));
        }
        builder.finish(name)
    }
}
