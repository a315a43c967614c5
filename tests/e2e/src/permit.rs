//! Tests of one file run in parallel, but two cores carry two clusters.

use std::sync::{Condvar, Mutex, PoisonError};

/// How many clusters run at the same time.
const CLUSTERS_MAX: usize = 2;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// The right to run a cluster, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(());

impl Permit {
    /// Waits for its turn. Every test ends, since every wait of it is bounded, so this ends too.
    pub(crate) fn acquire() -> Self {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= CLUSTERS_MAX {
            running = ENDED.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        *running += 1;
        Self(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}
