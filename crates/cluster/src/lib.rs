//! Turns Kubernetes objects into the engine's snapshot: from files that `kubectl get` writes now, from watches
//! later.

pub mod file;
pub mod objects;
pub mod requests;
