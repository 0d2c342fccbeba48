//! Azure: nodes are virtual machines of an AKS cluster.
//!
//! [`arm`] asks Azure; the other modules decide: they turn answers into instance types, images, machines and reasons
//! to replace nodes. None of them waits for anything, and what time it is, is a parameter.

pub mod arm;
pub mod auth;
mod controllers;
pub mod drift;
pub mod environment;
pub mod garbage;
pub mod in_place;
pub mod instance;
pub mod node_class;
pub mod provider;
mod random;
pub mod repair;
pub mod settings;
