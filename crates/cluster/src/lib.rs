//! Turns Kubernetes objects into the engine's snapshot: from files that `kubectl get` writes now, from watches
//! later.

pub mod eligibility;
pub mod file;
pub mod instance_types;
pub mod objects;
pub mod payload;
pub mod reason;
pub mod requests;
pub mod scheduler_config;
pub mod snapshot;
pub mod volumes;
