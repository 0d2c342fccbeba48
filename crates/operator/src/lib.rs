//! The controllers: pending pods get nodes, nodes live, and go gracefully.
//!
//! A folder for each controller: `decide` is pure and looks at the state, `act` carries out.

pub mod context;
mod managed;
mod node;
pub mod node_claim;
mod watching;
mod wiring;

pub use context::Context;
