//! Plans of queries, in short. The queries are DataFusion's SQL, where it has what is to be planned; the rest are views.

mod world;

mod changelog;
mod errors;
mod joins;
mod nexmark;
mod phases;
mod queries;
mod sharing;
mod state;
