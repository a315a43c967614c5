//! Queries as DataFusion's logical plans, with Flink's meaning.
//!
//! 1. `rewrite`: the syntax tree, with Flink's grammar as calls of functions
//! 2. DataFusion's planner: names and scopes; `scope`, `relations` and `operators` are what it asks
//! 3. `settle`: what stood for something else while types were found becomes that; types are made the same
//! 4. `optimize`: DataFusion's rules
//!
//! [`Queries`] does all that.

mod aggregates;
mod coerce;
mod correlate;
mod errors;
mod fold;
mod functions;
mod group_id;
mod group_windows;
mod grouping_sets;
mod insert;
mod membership;
mod multiplicity;
pub mod nodes;
mod operators;
mod optimize;
mod quantified;
mod queries;
mod relations;
mod rewrite;
mod scope;
mod settle;
mod special;
mod tables;
#[cfg(test)]
mod tests;

use flott_sql_functions::builtins::{Is, builtins};

pub use queries::{Connectors, Installed, Queries, Readable};

/// Whether SQL has a function of this name, in any case, or uses the name for something else. Names of what is refused are
/// free.
pub fn is_function(name: &str) -> bool {
    let name = name.to_lowercase();
    let functions = functions::Functions::all();
    let mut here = builtins().filter(|one| !matches!(one.is, Is::Absent(_)));
    let is_internal = functions.scalar(&name).is_some() || functions.window(&name).is_some();
    is_internal || functions.names().any(|known| known == name) || here.any(|one| one.name.eq_ignore_ascii_case(&name))
}
