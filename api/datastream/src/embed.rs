//! For crates that add operators of their own to a program, such as the Table API: jobs need none of it.

use std::rc::Rc;
use std::sync::Arc;

use flott_core::{Data, Result};
use flott_graph::{NodeId, StreamGraph};
use flott_local::Launcher;
use flott_operators::{EdgeFactory, NodeFactory, Program};

use crate::builder::Builder;
use crate::environment::StreamExecutionEnvironment;
use crate::stream::DataStream;

/// Operators that are connected with each other.
pub struct Part {
    /// What they are.
    pub graph: StreamGraph,
    /// One for each node of the graph.
    pub nodes: Vec<NodeFactory>,
    /// One for each edge of the graph.
    pub edges: Vec<EdgeFactory>,
}

/// Adds operators to a program. Returns the number of the first; the others follow it. One whose uid is taken gets another.
pub fn add(env: &StreamExecutionEnvironment, part: Part) -> NodeId {
    env.builder.borrow_mut().embed(part)
}

/// Sends the records of `stream` to an operator that was added and takes such.
pub fn connect<T: Data>(stream: &DataStream<T>, operator: NodeId) {
    stream.builder.borrow_mut().connect(stream.upstreams.clone(), operator);
}

/// The records of an operator that was added and makes such.
pub fn stream<T: Data>(env: &StreamExecutionEnvironment, operator: NodeId) -> DataStream<T> {
    DataStream::of_node(env.builder.clone(), operator, None)
}

/// How many subtasks the operator before has, if not as many as the job: a union has as many as the job.
pub fn parallelism_of<T>(stream: &DataStream<T>) -> Option<u32> {
    let builder = stream.builder.borrow();
    let [only] = &stream.upstreams[..] else { return None };
    let node = builder.graph.nodes.get(only.node)?;
    if node.is_non_parallel { Some(1) } else { node.parallelism }
}

/// Whether both build on the same program.
pub fn is_of<T>(stream: &DataStream<T>, env: &StreamExecutionEnvironment) -> bool {
    Rc::ptr_eq(&stream.builder, &env.builder)
}

/// What another crate keeps with an environment and all its clones: one value of each type, made when it is first asked for. It
/// stays when the program is executed.
pub fn attached<T: 'static>(env: &StreamExecutionEnvironment, make: impl FnOnce() -> T) -> Rc<T> {
    let find = |builder: &Builder| builder.attached.iter().find_map(|one| Rc::clone(one).downcast::<T>().ok());
    if let Some(found) = find(&env.builder.borrow()) {
        return found;
    }
    // Whoever makes it may look at the environment.
    let made = Rc::new(make());
    env.builder.borrow_mut().attached.push(made.clone());
    made
}

/// The finished program, for whoever executes it. What is built from now on is another.
///
/// # Errors
/// The program has a mistake.
pub fn program(env: &StreamExecutionEnvironment, name: &str) -> Result<Arc<Program>> {
    env.program(name)
}

/// What runs the program.
pub fn launcher(env: &StreamExecutionEnvironment) -> &Launcher {
    &env.launcher
}
