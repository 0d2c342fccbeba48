//! What every controller works with.

use std::sync::Arc;

use api::provider::Provider;
use clock::Clock;
use cloud::{CloudProvider, Overlays};
use jiff::Timestamp;
use runtime::events::Recorder;
use runtime::metrics::Registry;
use runtime::{Api, Cluster, Settings};

use crate::node_pool::registration_health::Registrations;
use crate::provisioner::Launches;

/// What every controller works with. Clones share everything.
#[derive(Clone)]
pub struct Context {
    /// What is known of the cluster.
    pub cluster: Cluster,
    /// Writes to the cluster.
    pub api: Api,
    /// Launches and terminates instances.
    pub cloud: Arc<dyn CloudProvider>,
    /// The time.
    pub clock: Clock,
    /// What the administrator has set.
    pub settings: Arc<Settings>,
    /// Tells users.
    pub events: Recorder,
    /// Counts.
    pub metrics: Registry,
    /// Whether nodes of NodePools have been joining the cluster.
    pub registrations: Registrations,
    /// What nodes were launched for, and in vain.
    pub launches: Launches,
    /// The NodeOverlays that are in force, if there can be any.
    pub overlays: Option<Overlays>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The cloud's name.
    pub fn provider(&self) -> Provider {
        self.cloud.provider()
    }
}
