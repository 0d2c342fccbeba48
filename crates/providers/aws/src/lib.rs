//! AWS: nodes are instances of EC2.
//!
//! [`port`] says what is needed of AWS; [`provider`] is the cloud, which asks for it. The other modules decide:
//! they turn answers into instance types, images, launch templates, launches and reasons to replace nodes. None of
//! them waits for anything, and what time it is, is a parameter.

pub mod ami;
mod controllers;
pub mod doctor;
#[cfg(feature = "double")]
pub mod double;
pub mod family;
mod hash;
pub mod instance;
pub mod instance_profile;
pub mod instance_type;
pub mod interruption;
pub mod kubelet;
pub mod launch_template;
pub mod node_class;
pub mod port;
pub mod prices;
pub mod provider;
mod quotas;
pub mod repair;
mod requirements;
pub mod reservation_counts;
pub mod selectors;
pub mod settings;
mod tables;
pub mod tags;
pub mod user_data;
pub mod validation;
pub mod version;
pub mod zonal_shift;
