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
pub mod instance_type;
pub mod launch_errors;
pub mod node_class;
pub mod prices;
pub mod provider;
pub mod quota;
mod random;
pub mod ranking;
pub mod repair;
mod requirements;
pub mod settings;
pub mod sku;
mod tables;
pub mod unavailable;
pub mod zone;
