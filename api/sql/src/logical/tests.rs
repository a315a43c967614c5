//! Queries to plans, over the tables of Nexmark and some others.

mod clauses;
mod errors;
mod inserts;
mod nexmark;
mod types;
mod world;
