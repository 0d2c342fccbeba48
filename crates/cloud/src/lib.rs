//! What a cloud must be able to do, and what can go wrong. Entry: [`CloudProvider`].

pub mod error;
pub mod provider;

pub use error::Error;
pub use provider::{CloudProvider, Instance, RepairAction, RepairPolicy};
