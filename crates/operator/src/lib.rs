//! The controllers: pending pods get nodes, nodes live, and go gracefully.
//!
//! A folder for each controller: `decide` is pure and looks at the state, `act` carries out.

mod algebra;
mod capacity_buffer;
mod catalogue;
pub mod context;
pub mod disruption;
mod feature_gates;
mod invalid_costs;
mod managed;
pub mod metrics;
pub mod node;
pub mod node_claim;
pub mod node_claim_disruption;
pub mod node_overlay;
pub mod node_pool;
pub mod pod_deletion_cost;
pub mod provisioner;
mod retry;
mod run;
pub mod static_capacity;
mod status;
#[cfg(test)]
mod testing;
mod text;
mod threads;
mod unfinished_work;
mod unreadable;
mod watching;
mod wiring;

pub use catalogue::Types;
pub use context::Context;
pub use disruption::repair_policies;
pub use run::{Parts, run};
