//! Flott's DataStream API.
//!
//! A program builds a graph of operators on a [`StreamExecutionEnvironment`] and executes it. The
//! same binary runs in an embedded cluster in its own process, submits itself to a cluster, and is
//! what the cluster's workers run.
//!
//! ```
//! use flott::prelude::*;
//!
//! fn main() -> flott::Result<()> {
//!     let env = StreamExecutionEnvironment::new();
//!     let counts = env
//!         .from_collection(["to be or not to be".to_owned()])
//!         .flat_map(|line: String, out| out.extend(line.split(' ').map(|word| (word.to_owned(), 1_u64))))
//!         .key_by_ref(|pair: &(String, u64)| &pair.0)
//!         .reduce(|sum, next| (next.0, sum.1 + next.1))
//!         .collect();
//!     env.execute("wordcount")?;
//!     assert!(counts.take().contains(&("be".to_owned(), 2)));
//!     Ok(())
//! }
//! ```
//!
//! - [`StreamExecutionEnvironment`]: configuration, sources, `execute`
//! - [`DataStream`], [`KeyedStream`], [`WindowedStream`]: operators
//! - [`windows`]: tumbling, sliding and session windows
//! - [`run`]: a `main` with arguments of its own
//! - [`embed`]: for crates that add operators, such as `flott-table`, which has SQL and the Table API

mod builder;
mod collect;
pub mod embed;
mod environment;
mod keyed;
mod run;
mod stream;
pub mod windows;

pub use clap;
pub use collect::Collected;
pub use environment::StreamExecutionEnvironment;
pub use flott_connector_spi as connector;
pub use flott_core::{Batch, Data, Error, Result, ResultExt, config, time};
pub use flott_datagen as datagen;
pub use flott_filesystem as filesystem;
pub use flott_formats::OnError;
pub use flott_local::JobOutcome;
pub use flott_operators::process::{Collector, KeyedContext, KeyedProcessFunction, OutputTag, ProcessFunction, Timer};
pub use flott_operators::timestamps::{WatermarkGenerator, WatermarkStrategy};
pub use flott_operators::window::function::AggregateFunction;
pub use flott_state::{KeyedStates, ListState, MapState, TimeWindow, ValueState};
pub use keyed::{KeyedStream, WindowedStream};
pub use run::run;
pub use stream::{DataStream, DataStreamSink};

/// Records are made on one thread and dropped on another, which the system's allocator is slow at.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What most jobs use.
pub mod prelude {
    pub use crate::windows::{
        EventTimeSessionWindows, ProcessingTimeSessionWindows, SlidingEventTimeWindows, SlidingProcessingTimeWindows,
        TumblingEventTimeWindows, TumblingProcessingTimeWindows,
    };
    pub use crate::{
        AggregateFunction, Collector, DataStream, KeyedContext, KeyedProcessFunction, KeyedStates, KeyedStream,
        ListState, MapState, OutputTag, ProcessFunction, StreamExecutionEnvironment, TimeWindow, Timer, ValueState,
        WatermarkStrategy,
    };
}

/// The examples of the front page compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadMe;
