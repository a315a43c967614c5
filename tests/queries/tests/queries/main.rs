//! Queries through the whole of SQL, step by step in this process.

mod functions;
mod limits;
mod reports;
mod restarts;
mod retractions;
mod scripts;
mod steps;
