//! Queries through the whole of SQL, step by step in this process.

mod functions;
mod restarts;
mod retractions;
