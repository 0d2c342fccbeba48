//! The whole operator: watches, controllers, events. Entry: [`run`].

use std::sync::Arc;

use api::provider::Provider;
use clock::Clock;
use cloud::{CloudProvider, Overlaid, Overlays};
use cluster::state::State;
use kube::Client;
use runtime::controller::Controller;
use runtime::events::Recorder;
use runtime::limit::Limiter;
use runtime::metrics::Registry;
use runtime::{Api, Cluster, Settings};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::node_pool::registration_health::Registrations;
use crate::provisioner::Launches;

/// What there is before there is a cloud; clouds are made with it.
#[derive(Clone, Debug)]
pub struct Parts {
    /// What is known of the cluster.
    pub cluster: Cluster,
    /// Writes to the cluster.
    pub api: Api,
    /// The time.
    pub clock: Clock,
    /// What the administrator has set.
    pub settings: Arc<Settings>,
    /// Tells users.
    pub events: Recorder,
    /// Counts.
    pub metrics: Registry,
    /// The NodeOverlays that are in force, if there can be any. A cloud that launches the cheapest of several types
    /// must know them, too.
    pub overlays: Option<Overlays>,
}

impl Parts {
    /// The parts of an operator for a cluster and a cloud.
    pub fn new(client: Client, provider: Provider, clock: Clock, settings: Settings) -> Self {
        Self::measured(client, provider, clock, settings, Registry::for_provider(provider))
    }

    /// As [`Parts::new`], counting together with what there was before, such as the client.
    pub fn measured(
        client: Client,
        provider: Provider,
        clock: Clock,
        settings: Settings,
        metrics: Registry,
    ) -> Self {
        let cluster = Cluster::new(State::awaiting(provider, &settings.gates.kinds()), clock);
        let limiter = Limiter::new(f64::from(settings.kube_client_qps), settings.kube_client_burst);
        let api = Api::new(client, cluster.clone(), provider, Arc::new(limiter));
        let events = Recorder::new(provider);
        let overlays = settings.gates.node_overlay.then(|| Overlays::new(provider));
        Self { cluster, api, clock, settings: Arc::new(settings), events, metrics, overlays }
    }

    /// What controllers work with.
    pub fn context(&self, cloud: Arc<dyn CloudProvider>) -> Context {
        let Self { cluster, api, clock, settings, events, metrics, overlays } = self.clone();
        let registrations = Registrations::default();
        let cloud = match &overlays {
            Some(overlays) => Arc::new(Overlaid::new(cloud, overlays.clone())),
            None => cloud,
        };
        let launches = Launches::default();
        Context { cluster, api, cloud, clock, settings, events, metrics, registrations, launches, overlays }
    }
}

/// Runs the controllers of the core, and those of the cloud, until the future is dropped. All replicas watch;
/// only the one that leads acts.
pub async fn run(context: Context, of_cloud: Vec<Controller>, leads: watch::Receiver<bool>) {
    let client = context.api.client().clone();
    // Controllers listen before anything is seen, so that they miss nothing.
    let mut controllers = controllers(&context);
    controllers.extend(of_cloud);
    let mut tasks = JoinSet::new();
    for kind in context.settings.gates.kinds() {
        tasks.spawn(runtime::watch::watch(client.clone(), context.cluster.clone(), kind));
    }
    tasks.spawn(context.events.clone().write(client, context.clock));
    context.cluster.listed().await;
    for controller in controllers {
        tasks.spawn(controller.run(leads.clone(), context.metrics.clone()));
    }
    // None of them ends by itself while there is a leader to wait for.
    while tasks.join_next().await.is_some() {}
}

fn controllers(context: &Context) -> Vec<Controller> {
    let mut all = crate::node_pool::controllers(context);
    all.extend(crate::node_claim::controllers(context));
    all.extend(crate::node_claim_disruption::controllers(context));
    all.extend(crate::node::controllers(context));
    all.extend(crate::node_overlay::controllers(context));
    all.extend(crate::static_capacity::controllers(context));
    all.extend(crate::provisioner::controllers(context));
    all.extend(crate::disruption::controllers(context));
    all.extend(crate::pod_deletion_cost::controllers(context));
    all.extend(crate::metrics::controllers(context));
    all.extend(crate::unreadable::controllers(context));
    all.extend(crate::feature_gates::controllers(context));
    crate::invalid_costs::listen(context);
    all
}
