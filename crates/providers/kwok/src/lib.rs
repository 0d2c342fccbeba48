//! Simulated nodes: instances are Node objects that a simulator keeps alive. Entry: [`Kwok`].
//!
//! ```text
//!   create ──► choose (cheapest offering) ──► Machine ──► Node object, after the class's registration delay
//!                                                            │
//!                          KWOK or our own kubelet simulator ┘ makes it ready and its pods run
//! ```

pub mod choose;
pub mod collect;
pub mod machine;
mod names;
pub mod provider;

use std::path::Path;

use cluster::instance_types::{InstanceType, kwok};

pub use provider::Kwok;

/// The instance types of a file, or the built-in ones. If the file cannot be read there are none, and the log
/// says why: the controller must not stop over it.
pub fn instance_types(file: Option<&Path>) -> Vec<InstanceType> {
    let Some(file) = file else { return kwok::built_in() };
    kwok::read(file).unwrap_or_else(|error| {
        tracing::error!(error = %error, "failed reading instance types");
        Vec::new()
    })
}
