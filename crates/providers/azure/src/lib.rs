//! Azure: nodes are virtual machines of an AKS cluster.
//!
//! [`arm`] asks Azure; the other modules decide: they turn answers into instance types, images, machines and reasons
//! to replace nodes. None of them waits for anything, and what time it is, is a parameter.

pub mod arm;
pub mod auth;
pub mod bootstrap;
pub mod class;
pub mod configure;
mod controllers;
pub mod doctor;
pub mod drift;
pub mod environment;
pub mod garbage;
mod hash;
pub mod images;
pub mod in_place;
pub mod instance;
pub mod instance_type;
pub mod launch;
pub mod launch_errors;
pub mod machine;
pub mod network;
pub mod node_class;
pub mod node_labels;
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
pub mod tags;
pub mod unavailable;
pub mod version;
pub mod vm;
pub mod zone;
