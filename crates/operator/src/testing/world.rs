//! A cluster in virtual time with some of the controllers.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use api::provider::Provider;
use cluster::state::State;
use embedded::faults::Faulty;
use runtime::controller::Controller;
use runtime::events::Recorder;
use runtime::limit::Limiter;
use runtime::metrics::Registry;
use runtime::{Api, Cluster, Settings};
use serde_json::Value;
use testkit::World;
use tokio::sync::watch;

use super::FakeCloud;
use crate::Context;
use crate::node_pool::registration_health::Registrations;
use crate::provisioner::Launches;

/// A cluster in virtual time with some of the controllers at work.
pub(crate) struct Operated {
    /// The cluster.
    pub(crate) world: World,
    /// What the controllers work with.
    pub(crate) context: Context,
    /// The cloud.
    pub(crate) cloud: Arc<FakeCloud>,
    /// What goes wrong between the controllers and the API server.
    pub(crate) faults: Faulty,
}

impl Deref for Operated {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Operated {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

/// A NodeClass that is ready.
pub(crate) const NODE_CLASS: &str = "
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec: {}
status:
  conditions: [{type: Ready, status: 'True', reason: Ready, message: '', lastTransitionTime: '2026-01-05T09:00:00Z'}]
";

/// A NodePool of simulated nodes.
pub(crate) const NODE_POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
";

impl Operated {
    /// A cluster with our kinds, a NodeClass and these controllers.
    pub(crate) fn by(controllers: impl FnOnce(&Context) -> Vec<Controller>) -> Self {
        Self::with(World::new(1), Settings::default(), controllers)
    }

    /// As [`Operated::by`], in a world and with settings.
    pub(crate) fn with(
        world: World,
        settings: Settings,
        controllers: impl FnOnce(&Context) -> Vec<Controller>,
    ) -> Self {
        for crd in api::crds::documents(Provider::Kwok) {
            world.apply(&crd.document.to_string());
        }
        world.apply(NODE_CLASS);
        let faults = world.block_on(async { Faulty::new(world.server().service(), 1) });
        let client = world.block_on(async { kube::Client::new(faults.clone(), "default") });
        let cloud = Arc::new(FakeCloud::default());
        let (context, controllers) = world.block_on(async {
            let awaited = State::awaiting(Provider::Kwok, &settings.gates.kinds());
            let cluster = Cluster::new(awaited, world.clock());
            let limiter = Arc::new(Limiter::new(200.0, 300));
            let context = Context {
                api: Api::new(client.clone(), cluster.clone(), Provider::Kwok, limiter),
                cluster,
                cloud: Arc::clone(&cloud) as Arc<dyn cloud::CloudProvider>,
                clock: world.clock(),
                settings: Arc::new(settings),
                events: Recorder::new(Provider::Kwok),
                metrics: Registry::for_provider(Provider::Kwok),
                registrations: Registrations::default(),
                launches: Launches::default(),
                overlays: None,
            };
            let controllers = controllers(&context);
            (context, controllers)
        });
        let (leads, leading) = watch::channel(true);
        for controller in controllers {
            world.spawn(controller.run(leading.clone(), context.metrics.clone()));
        }
        for kind in context.settings.gates.kinds() {
            world.spawn(runtime::watch::watch(client.clone(), context.cluster.clone(), kind));
        }
        world.spawn(async move {
            // Whoever leads does so until the world ends.
            leads.closed().await;
        });
        Self { world, context, cloud, faults }
    }

    /// An object of ours, such as `nodepools/default`.
    #[track_caller]
    pub(crate) fn ours(&self, path: &str) -> Value {
        let found = self.world.get(&format!("/apis/karpenter.sh/v1/{path}"));
        found.unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// The NodeClaims.
    pub(crate) fn claims(&self) -> Vec<Value> {
        self.world.list("/apis/karpenter.sh/v1/nodeclaims")
    }

    /// The condition of an object of ours as `Status Reason`.
    #[track_caller]
    pub(crate) fn condition(&self, path: &str, kind: &str) -> String {
        let object = self.ours(path);
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.iter()
            .find(|condition| condition["type"] == kind)
            .map(|condition| format!("{} {}", text(&condition["status"]), text(&condition["reason"])))
            .unwrap_or_default()
    }

    /// Lets a few seconds pass.
    pub(crate) fn settle(&mut self) {
        self.world.run_for(Duration::from_secs(6));
    }
}
