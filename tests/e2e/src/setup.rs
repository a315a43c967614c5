//! What a cluster is started with.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster::Cluster;

/// The ports that clusters take. They lie below those that the kernel gives to outgoing connections: one of these could
/// sit on a JobManager's port while it restarts.
const PORTS: std::ops::Range<u32> = 12_000..32_000;

/// The size, the options and the environment of a cluster.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(crate) task_managers: usize,
    pub(crate) slots: u32,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) environment: Vec<(String, String)>,
}

impl Setup {
    /// So many TaskManagers, with so many slots each.
    pub fn new(task_managers: usize, slots: u32) -> Self {
        Self { task_managers, slots, options: Vec::new(), environment: Vec::new() }
    }

    /// Sets an option of all processes.
    #[must_use]
    pub fn option(mut self, key: &str, value: &str) -> Self {
        self.options.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Sets a variable in the environment of all processes and of the client.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the cluster.
    ///
    /// # Panics
    /// It is not ready in time.
    #[track_caller]
    pub fn start(self) -> Cluster {
        Cluster::with(self)
    }
}

/// A port that nobody listens on.
///
/// # Panics
/// There is none.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.end - PORTS.start;
    for _ in 0..1000 {
        // Test programs that run at the same time begin at different places.
        let position = std::process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + position % count).expect("all of them are ports");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("none of 1000 ports is free");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_once() {
        let ports: std::collections::BTreeSet<u16> = (0..10).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 10);
    }
}
