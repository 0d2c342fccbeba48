//! What Azure is told and what it answers, as its APIs spell it.

use serde::{Deserialize, Serialize};

pub mod bootstrap;
pub mod cluster;
pub mod extension;
pub mod gallery;
pub mod graph;
pub mod machine;
pub mod network;
pub mod nic;
pub mod node_config;
pub mod sku;
pub mod vm;

/// Another resource, by its ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubResource {
    /// The resource ID.
    #[serde(default)]
    pub id: String,
}

impl SubResource {
    /// The resource with this ID.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}
