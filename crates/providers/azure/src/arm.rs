//! Azure's management API: how it is asked. Entry: [`Client`].
//!
//! ```text
//!   compute, network, aks, clusters, …      what can be asked: one method for each operation
//!      │
//!   pages, running                         answers in several parts, and operations that take long
//!      │
//!   sender                                 as whom, how often, and again where that helps
//!    ├─ windows                            nobody insists when Azure has had enough
//!    ├─ retry                              what may pass by itself
//!    └─ Transport                          the network, or a double in the process
//! ```

mod aks;
mod call;
mod client;
mod clusters;
mod compute;
mod envelope;
pub mod error;
mod gallery_token;
mod graph;
mod network;
mod pages;
mod prices;
mod retry;
mod running;
#[cfg(test)]
mod script;
mod sender;
pub mod transport;
pub mod types;
mod windows;

pub use aks::{MachinePool, PutMachine};
pub use client::{Client, Setup};
pub use error::{Detail, Error};
pub use running::Running;
pub use transport::{Transport, TransportError};

#[cfg(test)]
mod tests;
