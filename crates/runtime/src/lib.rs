//! What any controller needs, and no decisions: watches into one state, queues and workers, writes, events,
//! metrics, leadership, health.
//!
//! ```text
//!   watch ──► Cluster (the one State) ──► listeners ──► Queue ──► workers: reconcile(key)
//!                 ▲                                                  │ reads the state, decides, writes
//!                 └────────────────── answers ◄── Api ◄──────────────┘
//! ```

pub mod api;
pub mod cluster;
pub mod compute;
pub mod controller;
pub mod events;
pub mod leader;
pub mod limit;
pub mod logs;
pub mod measure;
pub mod metrics;
pub mod queue;
mod random;
pub mod serve;
pub mod settings;
pub mod watch;

pub use api::{Api, Error};
pub use cluster::Cluster;
pub use controller::{Again, Outcome};
pub use settings::Settings;
