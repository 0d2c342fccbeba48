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

use cluster::instance_types::InstanceType;
use cluster::instance_types::kwok::{self, CatalogueError};

pub use provider::Kwok;

/// The instance types of a file, or the built-in ones.
///
/// A file that cannot be read is an error: without instance types all pods would stay pending, for a reason that
/// nobody would look for there.
pub fn instance_types(file: Option<&Path>) -> Result<Vec<InstanceType>, CatalogueError> {
    file.map_or_else(|| Ok(kwok::built_in()), kwok::read)
}
