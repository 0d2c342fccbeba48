//! Feature gates that are off: users are told on the objects that do nothing without them.
//!
//! Without it, a NodePool with `replicas` is ready and has no nodes (it also gets a condition), and a NodeOverlay or a
//! CapacityBuffer stays as it was written, for ever. Kinds of features that are off are not watched, so they are listed
//! from time to time; who may not list them, or does not have them, has nothing to be told.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::{controllers, events, gates};
use cluster::objects::Metadata;
use cluster::state::{Key, Kind, Meta as _, State};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::events::About;
use runtime::queue::{Backoff, Queue};
use serde::Deserialize;

use crate::Context;
use crate::wiring::Wiring;

/// The reason of the condition.
pub(crate) const REASON: &str = "FeatureGateDisabled";
/// The message of the condition that static NodePools have.
pub(crate) const NO_STATIC_CAPACITY: &str =
    "spec.replicas has no effect, the feature gate StaticCapacity is off";

/// How often it is looked for them.
const INTERVAL: Again = Again::secs(20);
/// How many objects are listed at most: nobody needs to be told of every one.
const LISTED: usize = 100;

/// An object that does nothing because a gate is off.
#[derive(Debug, PartialEq, Eq)]
struct Idle {
    about: About,
    gate: &'static str,
    what: &'static str,
}

impl Idle {
    fn message(&self) -> String {
        format!("{} has no effect, the feature gate {} is off", self.what, self.gate)
    }
}

/// NodePools that ask for nodes which nobody launches.
fn static_pools(state: &State) -> Vec<Idle> {
    let pools = state.node_pools.values().filter(|pool| pool.spec.replicas.is_some());
    let idle = pools.map(|pool| Idle {
        about: About::object(&**pool),
        gate: gates::STATIC_CAPACITY.name,
        what: "spec.replicas",
    });
    idle.collect()
}

/// The objects of a kind that is not watched.
fn unwatched(kind: Kind, gate: &'static str, list: List) -> Vec<Idle> {
    let idle = list.items.into_iter().map(|Item { metadata }| {
        let Key { namespace, name } = metadata.key();
        let uid = metadata.uid().into();
        Idle { about: About { kind, namespace, name, uid }, gate, what: kind.name() }
    });
    idle.collect()
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

struct FeatureGates {
    context: Context,
    /// The objects that the log has named, so that it does so once.
    logged: Mutex<BTreeSet<Box<str>>>,
}

impl FeatureGates {
    async fn list(&self, kind: Kind, gate: &'static str) -> Vec<Idle> {
        let path = format!("{}?limit={LISTED}", kind.path(self.context.events.provider(), ""));
        // It is missing, or may not be looked at, or the server is out of reach: later, perhaps.
        self.context.api.get(&path).await.map_or_else(|_| Vec::new(), |list| unwatched(kind, gate, list))
    }

    fn tell(&self, idle: Idle) {
        let message = idle.message();
        if self.logged.lock().insert(idle.about.uid.clone()) {
            let Idle { about, gate, .. } = &idle;
            let name = Key { namespace: about.namespace.clone(), name: about.name.clone() };
            tracing::info!(kind = about.kind.name(), object = %name, gate, "{message}");
        }
        let uid = idle.about.uid.clone();
        self.context.events.publish(&events::FEATURE_GATE_DISABLED, idle.about, message, &[&uid]);
    }
}

impl Reconcile for FeatureGates {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        async {
            let on = self.context.settings.gates;
            let mut idle = Vec::new();
            if !on.static_capacity {
                idle = static_pools(&self.context.cluster.read());
            }
            if !on.node_overlay {
                idle.extend(self.list(Kind::NodeOverlay, gates::NODE_OVERLAY.name).await);
            }
            if !on.capacity_buffer {
                idle.extend(self.list(Kind::CapacityBuffer, gates::CAPACITY_BUFFER.name).await);
            }
            for idle in idle {
                self.tell(idle);
            }
            Ok(INTERVAL)
        }
        .boxed()
    }
}

/// The controller, if there can be anything to tell.
pub(crate) fn controllers(context: &Context) -> Vec<Controller> {
    let on = context.settings.gates;
    if on.static_capacity && on.node_overlay && on.capacity_buffer {
        return Vec::new();
    }
    let queue = Arc::new(Queue::new(Backoff::DEFAULT));
    queue.add(Key::cluster(controllers::FEATURE_GATES));
    let reconcile = FeatureGates { context: context.clone(), logged: Mutex::default() };
    vec![Wiring::new(controllers::FEATURE_GATES, 1).on(queue, Arc::new(reconcile))]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::testing::{NODE_POOL, Operated};

    fn told(cluster: &Operated) -> Vec<String> {
        let published = cluster.context.events.published().into_iter();
        let mut told: Vec<String> = published
            .filter(|event| &*event.reason == "FeatureGateDisabled")
            .map(|event| format!("{} {} {}", event.about.kind.name(), event.about.name, event.message))
            .collect();
        told.sort();
        told
    }

    const OVERLAY: &str = "
        apiVersion: karpenter.sh/v1alpha1
        kind: NodeOverlay
        metadata: {name: cheap}
        spec: {requirements: [{key: kubernetes.io/os, operator: Exists}], priceAdjustment: '-50%'}";
    const BUFFER: &str = "
        apiVersion: autoscaling.x-k8s.io/v1beta1
        kind: CapacityBuffer
        metadata: {name: room, namespace: default}
        spec: {scalableRef: {kind: Deployment, name: web}, replicas: 1}";

    #[test]
    fn objects_that_do_nothing_because_a_gate_is_off_say_so_once() {
        let mut cluster = Operated::by(super::controllers);
        cluster.apply(NODE_POOL);
        cluster.apply(
            &NODE_POOL
                .replace("name: default", "name: fixed")
                .replace("spec:\n  template:", "spec:\n  replicas: 2\n  template:"),
        );
        cluster.apply(OVERLAY);
        cluster.apply(BUFFER);
        cluster.run_for(Duration::from_mins(3));
        assert_eq!(
            told(&cluster),
            [
                "CapacityBuffer room CapacityBuffer has no effect, the feature gate CapacityBuffer is off",
                "NodeOverlay cheap NodeOverlay has no effect, the feature gate NodeOverlay is off",
                "NodePool fixed spec.replicas has no effect, the feature gate StaticCapacity is off",
            ]
        );
    }
}
