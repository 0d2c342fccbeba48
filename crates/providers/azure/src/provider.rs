//! AKS as a cloud. Entry: [`Azure`].
//!
//! ```text
//!   create ─► types (catalogue) ─► ranking ─► quota taken ─► bodies ─► NIC, VM or AKS machine ─► claim
//!               ▲                                               │ refused             │ accepted
//!               └── what cannot be had, quota given back ◄──────┘ next offering       └─► waited for in the background
//! ```
//!
//! What is known is behind locks, none of which is held while Azure is asked.

mod background;
mod catalogue;
mod classes;
mod cloud_provider;
mod definitions;
mod deletion;
mod denial;
mod discover;
mod images;
mod instances;
mod interface;
mod known;
mod launch;
mod machine_batch;
mod machine_cache;
mod machines;
mod network;
mod vms;
mod warm_up;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use api::labels::LabelSets;
use api::provider::Provider;
use clock::Clock;
use cloud::Overlays;
use parking_lot::Mutex;
use runtime::events::Recorder;
use runtime::metrics::Registry;
use runtime::{Api, Cluster};
use tokio::time::Instant;

use crate::arm::{self, Client};
use crate::instance_type::{Environment, Network};
use crate::launch as cluster_launch;
use crate::node_class::limits::Facts;
use crate::settings::AzureSettings;
use crate::unavailable::Unavailable;

pub use definitions::wait_for_definitions;
pub use discover::discover;
pub use known::Known;

/// What was found out about the cluster that nodes join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterInfo {
    /// The address of its DNS service.
    pub dns_service_ip: IpAddr,
    /// What Azure tells its network apart by; empty if it does not matter.
    pub vnet_guid: String,
    /// Certificates by which nodes know the API server, in base64.
    pub ca_bundle: String,
}

/// What the provider needs of the process that it is in.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Azure.
    pub client: Client,
    /// What the administrator set about Azure.
    pub settings: AzureSettings,
    /// The cluster that nodes join.
    pub cluster_info: ClusterInfo,
    /// What may make nodes impossible.
    pub facts: Facts,
    /// Writes to the API server.
    pub api: Api,
    /// What is known of the cluster.
    pub cluster: Cluster,
    /// The clock.
    pub clock: Clock,
    /// Events.
    pub events: Recorder,
    /// Metrics.
    pub metrics: Registry,
    /// Overlays that decide about prices and capacity, if that feature is on.
    pub overlays: Option<Overlays>,
    /// What decides between zones that are equally good.
    pub seed: u64,
}

/// AKS as a cloud. Clones share everything.
#[derive(Clone, Debug)]
pub struct Azure(pub(crate) Arc<Inner>);

/// What all clones share.
pub(crate) struct Inner {
    pub(crate) setup: Setup,
    pub(crate) sets: LabelSets,
    pub(crate) known: Mutex<Known>,
    pub(crate) unavailable: Mutex<Unavailable>,
    pub(crate) types: Mutex<crate::instance_type::Cache>,
    pub(crate) classes: classes::Classes,
    pub(crate) surroundings: network::Surroundings,
    pub(crate) images: images::Images,
    pub(crate) machines: machine_cache::MachineCache,
    pub(crate) batches: machine_batch::Batches,
    /// Names of machines that are being deleted by this process.
    pub(crate) deleting: Mutex<BTreeSet<String>>,
    /// When what was asked for last: sizes, prices.
    refreshed: Mutex<Refreshed>,
    /// Whoever asks for prices holds this, so that nobody asks for them twice at the same time.
    asking_for_prices: tokio::sync::Mutex<()>,
    /// When Azure last said that only AKS may change the resource group of the nodes.
    denied: Mutex<Option<Instant>>,
}

/// When what was asked for last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refreshed {
    pub(crate) sizes: Option<Instant>,
    pub(crate) prices: Option<Instant>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Azure").field("location", &self.setup.settings.location).finish_non_exhaustive()
    }
}

impl Azure {
    /// A provider that knows nothing of Azure yet.
    pub fn new(setup: Setup) -> Self {
        let inner = Inner {
            sets: LabelSets::for_provider(Provider::Azure),
            known: Mutex::new(Known::new(&setup.settings.location)),
            unavailable: Mutex::default(),
            types: Mutex::default(),
            classes: classes::Classes::default(),
            surroundings: network::Surroundings::default(),
            images: images::Images::default(),
            machines: machine_cache::MachineCache::default(),
            batches: machine_batch::Batches::new(&setup),
            deleting: Mutex::default(),
            refreshed: Mutex::default(),
            asking_for_prices: tokio::sync::Mutex::default(),
            denied: Mutex::default(),
            setup,
        };
        Self(Arc::new(inner))
    }

    /// Looks at what is known of Azure, or changes it.
    pub fn know<R>(&self, change: impl FnOnce(&mut Known) -> R) -> R {
        change(&mut self.0.known.lock())
    }

    /// Asks for what must be known before anything is decided: sizes, without which nothing can be. What machines
    /// cost, what may be used and what surrounds machines are asked for at the same time and in the background, so that
    /// nobody waits for them later, nor now: a service that does not answer must not keep nodes from being launched.
    pub async fn hydrate(&self) -> Result<(), arm::Error> {
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move { inner.warm_up().await });
        self.0.refresh_sizes().await
    }
}

impl Inner {
    /// Asks which sizes there are. What is known stays if there is no good answer.
    pub(crate) async fn refresh_sizes(&self) -> Result<(), arm::Error> {
        let location = &self.setup.settings.location;
        let listed = self.setup.client.skus(location).await?;
        let catalogue = crate::sku::Catalogue::read(&listed, location)
            .map_err(|error| arm::Error::new("GET Microsoft.Compute/skus", "NoSizes", &error.to_string()))?;
        for (family, names) in catalogue.unknown() {
            tracing::info!(family, sizes = ?names, "found sizes that are newer than the table of sizes");
        }
        let mut known = self.known.lock();
        known.quota.learn_sizes(&catalogue);
        known.set_catalogue(catalogue);
        drop(known);
        self.refreshed.lock().sizes = Some(Instant::now());
        self.answered(warm_up::INSTANCE_TYPES);
        Ok(())
    }

    /// Asks how much the subscription may use. What is known is believed for a while.
    pub(crate) async fn refresh_quota(&self) -> Result<(), arm::Error> {
        let asked = self.setup.clock.now();
        match self.setup.client.usages(&self.setup.settings.location).await {
            Ok(usages) => {
                self.known.lock().quota.read(&usages, asked);
                self.answered(warm_up::QUOTAS);
                Ok(())
            }
            Err(error) => {
                self.known.lock().quota.unread(self.setup.clock.now());
                Err(error)
            }
        }
    }

    /// Asks what machines cost, where prices are published: in the public cloud.
    pub(crate) async fn refresh_prices(&self) -> Result<(), arm::Error> {
        if !self.setup.client.environment().is_public() {
            return Ok(());
        }
        let listed = self.setup.client.retail_prices(&self.setup.settings.location).await?;
        self.known.lock().change_prices(|all| all.update(&listed));
        self.refreshed.lock().prices = Some(Instant::now());
        self.answered(warm_up::PRICES);
        Ok(())
    }

    pub(crate) fn refreshed(&self) -> Refreshed {
        *self.refreshed.lock()
    }

    /// What is the same for all NodeClasses.
    pub(crate) fn environment(&self) -> Environment<'_> {
        Environment {
            location: &self.setup.settings.location,
            node_resource_group: &self.setup.settings.node_resource_group,
            vm_memory_overhead: self.setup.settings.vm_memory_overhead_percent,
        }
    }

    /// How pods get addresses.
    pub(crate) fn network(&self) -> Network<'_> {
        Network {
            plugin: &self.setup.settings.network_plugin,
            mode: &self.setup.settings.network_plugin_mode,
        }
    }

    /// The cluster, as bodies of machines want to see it.
    pub(crate) fn launch_cluster(&self) -> cluster_launch::Cluster<'_> {
        let info = &self.setup.cluster_info;
        cluster_launch::Cluster {
            settings: &self.setup.settings,
            dns_service_ip: info.dns_service_ip,
            vnet_guid: &info.vnet_guid,
            ca_bundle: &info.ca_bundle,
        }
    }
}
