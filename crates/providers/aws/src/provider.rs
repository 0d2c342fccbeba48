//! EC2 as a cloud. Entry: [`Aws`].
//!
//! ```text
//!   create ─► types (catalogue) ─► prepare ─► templates ─► fleet (batched) ─► machine
//!               ▲                                             │ nothing was launched
//!               └── what cannot be had, full subnets ◄────────┘ other offerings at once
//! ```
//!
//! What is known is behind one lock, which is never held while AWS is asked.

mod batch;
mod catalogue;
mod classes;
mod cloud_provider;
mod hook;
mod known;
mod launch;
mod machines;
mod prepare;
mod templates;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use api::labels::LabelSets;
use api::names::metrics::aws as metrics;
use api::provider::Provider;
use clock::Clock;
use cloud::{Overlays, RegistrationHook, UnavailableOfferings};
use parking_lot::Mutex;
use runtime::events::Recorder;
use runtime::metrics::Registry;
use runtime::settings::{Gates, MinValuesPolicy};
use runtime::{Api, Cluster};

use crate::instance_type::Environment;
use crate::port::{Error, Services};
use crate::quotas::UsedUp;
use crate::settings::AwsSettings;
use crate::user_data::ClusterInfo;

pub use known::Known;

/// What the provider needs of the process that it is in.
#[derive(Clone, Debug)]
pub struct Setup {
    /// AWS.
    pub services: Services,
    /// The region.
    pub region: String,
    /// The cluster that nodes join.
    pub cluster_info: ClusterInfo,
    /// What the administrator set about AWS.
    pub settings: AwsSettings,
    /// Which features are on.
    pub gates: Gates,
    /// Whether wishes for choice are binding.
    pub min_values_policy: MinValuesPolicy,
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
}

/// EC2 as a cloud. Clones share everything.
#[derive(Clone, Debug)]
pub struct Aws(pub(crate) Arc<Inner>);

/// What all clones share.
pub(crate) struct Inner {
    pub(crate) setup: Setup,
    pub(crate) sets: LabelSets,
    pub(crate) known: Mutex<Known>,
    pub(crate) unavailable: UnavailableOfferings,
    pub(crate) catalogue: catalogue::Catalogue,
    pub(crate) classes: classes::Classes,
    pub(crate) templates: templates::Templates,
    pub(crate) machines: machines::Machines,
    fleets: launch::Fleets,
    shapes: prepare::Shapes,
    /// Quotas that are used up, the fewest processors that were too many, and until when nothing of them is asked for.
    paused: Mutex<BTreeMap<UsedUp, (u32, jiff::Timestamp)>>,
    /// Reboots that were asked for.
    rebooted: Mutex<BTreeSet<String>>,
    hooks: std::sync::OnceLock<Vec<Box<dyn RegistrationHook>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aws").field("region", &self.setup.region).finish_non_exhaustive()
    }
}

impl Aws {
    /// A provider that knows nothing of AWS yet.
    pub fn new(setup: Setup) -> Self {
        let calls = Calls { metrics: setup.metrics.clone() };
        let inner = Inner {
            sets: LabelSets::for_provider(Provider::Aws),
            known: Mutex::new(Known::new(&setup.region, setup.cluster_info.clone())),
            unavailable: UnavailableOfferings::new(setup.clock),
            catalogue: catalogue::Catalogue::default(),
            classes: classes::Classes::default(),
            templates: templates::Templates::default(),
            machines: machines::Machines::new(&setup, &calls),
            fleets: launch::fleets(&setup, &calls),
            shapes: prepare::Shapes::default(),
            paused: Mutex::default(),
            rebooted: Mutex::default(),
            hooks: std::sync::OnceLock::new(),
            setup,
        };
        let this = Self(Arc::new(inner));
        let hook = hook::Partition(Arc::downgrade(&this.0));
        // Set once, here.
        drop(this.0.hooks.set(vec![Box::new(hook)]));
        this
    }

    /// Looks at what is known of AWS, or changes it.
    pub fn know<R>(&self, change: impl FnOnce(&mut Known) -> R) -> R {
        change(&mut self.0.known.lock())
    }

    /// What is not asked for at present.
    pub fn unavailable(&self) -> &UnavailableOfferings {
        &self.0.unavailable
    }

    /// Asks EC2 which instance types there are and where. What is known stays if there is no good answer.
    pub async fn refresh_instance_types(&self) -> Result<(), Error> {
        let ec2 = &self.0.setup.services.ec2;
        let (types, places) = futures::join!(
            self.0.counted("ec2:DescribeInstanceTypes", ec2.instance_types()),
            self.0.counted("ec2:DescribeInstanceTypeOfferings", ec2.instance_type_zones()),
        );
        let (types, places) = (types?, places?);
        if types.is_empty() || places.is_empty() {
            let message = "the answer is empty, what was known stays";
            return Err(Error::new("ec2:DescribeInstanceTypes", "EmptyAnswer", message));
        }
        self.know(|known| known.set_discovered(types, places));
        Ok(())
    }

    /// Asks which zones are avoided, if anybody wants to know.
    pub async fn refresh_zonal_shifts(&self) -> Result<(), Error> {
        self.0.refresh_zonal_shifts().await
    }
}

impl Inner {
    /// Asks which zones are avoided. The cluster's own name for other services is asked for once.
    pub(crate) async fn refresh_zonal_shifts(&self) -> Result<(), Error> {
        if !self.setup.settings.enable_zonal_shift {
            return Ok(());
        }
        let services = &self.setup.services;
        let known = self.known.lock().cluster_arn.clone();
        let arn = if let Some(arn) = known {
            arn
        } else {
            let cluster = services.eks.cluster(&self.setup.settings.cluster_name);
            let arn = self.counted("eks:DescribeCluster", cluster).await?.arn;
            self.known.lock().cluster_arn.insert(arn).clone()
        };
        let shifts = services.zonal_shift.shifts(&arn);
        let shifts = self.counted("arc-zonal-shift:GetManagedResource", shifts).await?;
        self.known.lock().shifted.replace(shifts);
        Ok(())
    }

    /// What is the same for all NodeClasses.
    pub(crate) fn environment(&self) -> Environment<'_> {
        Environment {
            region: &self.setup.region,
            vm_memory_overhead: self.setup.settings.vm_memory_overhead_percent,
            reserved_interfaces: self.setup.settings.reserved_enis,
        }
    }

    /// Counts a call and makes it.
    pub(crate) fn counted<F: Future>(&self, operation: &'static str, call: F) -> F {
        Calls { metrics: self.setup.metrics.clone() }.counted(operation, call)
    }
}

/// Counts calls.
#[derive(Clone)]
pub(crate) struct Calls {
    metrics: Registry,
}

impl Calls {
    pub(crate) fn counted<F: Future>(&self, operation: &'static str, call: F) -> F {
        self.metrics.add(&metrics::API_CALLS, &[operation], 1.0);
        call
    }
}
