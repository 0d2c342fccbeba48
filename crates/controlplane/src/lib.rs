//! What lives in a cluster besides its API server: scheduler, workload controllers, simulated kubelets.
//!
//! Everything goes through a [`kube::Client`], so the same code runs beside an API server in this process, on
//! virtual time, and on a real cluster.
//!
//! ```text
//!   watches ──► Cache ──► which items depend on it ──► Queue ──► decide(&Cache, key, now)
//!                 ▲                                                   │ actions, and when to look again
//!                 └───────────── answers ◄── requests ◄───────────────┘
//! ```
//!
//! Each controller is a pure function in its own module.
//! There is one copy of every object, and the answers to our own writes go into it at once.

pub mod action;
mod budget;
pub mod cache;
pub mod component;
mod controllers;
mod daemonset;
mod deployment;
mod devices;
mod driver;
mod empty_namespace;
mod execute;
mod garbage;
mod job;
mod kubelet;
mod lease;
pub mod names;
mod namespace;
mod node;
mod notes;
pub mod object;
mod options;
mod pod;
mod pod_collection;
mod queue;
mod replicaset;
mod revision;
pub mod scheduler;
mod scheduling;
mod selector;
mod statefulset;
mod taint_eviction;
mod template;
#[cfg(test)]
mod testing;
mod time;
mod volumes;
mod watch;

use std::convert::Infallible;

use clock::Clock;
use kube::Client;

use component::Component;
pub use options::{KubeletOptions, NodeSelection, Options};

/// Why the control plane stopped; it does not stop because of errors of the API server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to watch any more, because the runtime shuts down.
    #[error("all watches have ended")]
    WatchesEnded,
}

/// Runs the parts that `options` name until the future is dropped.
pub async fn run(client: Client, clock: Clock, options: Options) -> Result<Infallible, Error> {
    let components: Vec<Box<dyn Component>> =
        if options.scheduler { vec![Box::new(scheduling::Scheduling::default())] } else { Vec::new() };
    driver::Driver::new(client, clock, options, components).run().await
}
