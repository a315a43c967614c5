//! The operators, and how a chain of them runs.
//!
//! A subtask is a chain: a head that receives, operators that work, and writers that send. Each part
//! owns the next one and hands it batches through [`Push`], so a chain is one value with one owner:
//! no locks, no queues, one virtual call an operator and batch. Everything that is not a record
//! travels the same way as a [`Control`]: watermarks, barriers, the end. So its place among the
//! records is right by construction.
//!
//! - [`push`]: the contract between the parts of a chain
//! - [`operator`]: what an operator implements
//! - [`task`]: the head of a chain, as the executor sees it
//! - [`exchange`]: the tail of a chain: from rows to channels
//! - [`program`]: the whole job: a graph, and how to build each of its chains
//! - [`snapshot`]: what a chain gives to a checkpoint and takes back; [`restore_check`]: whether it could
//! - one module an operator: [`stateless`], [`timestamps`], [`reduce`], [`fold`], [`process`], [`window`], [`sink`], [`source`]

pub mod context;
pub mod exchange;
pub mod fold;
pub mod key;
pub mod operator;
pub mod process;
pub mod program;
pub mod push;
pub mod reduce;
pub mod restore_check;
pub mod sink;
pub mod snapshot;
pub mod source;
pub mod stateless;
pub mod task;
pub mod timers;
pub mod timestamps;
pub mod window;

pub use context::TaskContext;
pub use key::KeyExtractor;
pub use operator::{OpenContext, Operator, OperatorNode};
pub use program::{AnyPush, EdgeFactory, NodeFactory, NodeTargets, Program};
pub use push::{Control, Maintenance, Output, Push, SideOutputs};
pub use restore_check::{RestoreEntry, RestoreOutcome, RestoreReport, check_restore};
pub use snapshot::{
    AdoptedRun, HeldState, KeyedContents, ReleasedState, RestoredState, RunContents, StateContents, TableContents,
    TaskSnapshot,
};
pub use task::{SourceTask, Task};
