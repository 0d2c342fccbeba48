//! Tells users of objects of ours that cannot be read.
//!
//! They have no part in anything, and their conditions say what was true when they could be read last.

use std::sync::Arc;

use api::names::controllers::UNREADABLE;
use api::names::events;
use cluster::state::{Key, Kind, State};
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::events::About;
use runtime::queue::{Backoff, Queue};

use crate::Context;
use crate::text::truncated;
use crate::wiring::Wiring;

/// How often it is looked for them.
const INTERVAL: Again = Again::secs(10);

/// What users write for us, and what we write for them.
const OURS: [Kind; 5] =
    [Kind::NodePool, Kind::NodeClaim, Kind::NodeClass, Kind::NodeOverlay, Kind::CapacityBuffer];

/// The objects of ours that cannot be read, and what is said about each.
fn decide(state: &State) -> Vec<(About, String)> {
    let ours = state.unreadable().filter(|(kind, ..)| OURS.contains(kind));
    ours.map(|(kind, key, unreadable)| {
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        let about = About { kind, namespace, name, uid: unreadable.uid.clone() };
        (about, truncated(&format!("Ignoring {} that cannot be read, {}", kind.name(), unreadable.why)))
    })
    .collect()
}

struct Unreadables(Context);

impl Reconcile for Unreadables {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        async {
            let decided = decide(&self.0.cluster.read());
            for (about, message) in decided {
                let (kind, key) = (about.kind.name(), format!("{}/{}", about.namespace, about.name));
                let dedupe = [kind, &key, &message];
                self.0.events.publish(&events::UNREADABLE, about, message.clone(), &dedupe);
            }
            Ok(INTERVAL)
        }
        .boxed()
    }
}

/// The controller.
pub(crate) fn controllers(context: &Context) -> Vec<Controller> {
    let queue = Arc::new(Queue::new(Backoff::DEFAULT));
    queue.add(Key::cluster(UNREADABLE));
    vec![Wiring::new(UNREADABLE, 1).on(queue, Arc::new(Unreadables(context.clone())))]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::names::metrics::CLUSTER_STATE_UNREADABLE;
    use serde_json::json;

    use crate::testing::{NODE_POOL, Operated};

    #[test]
    fn users_are_told_of_pools_that_cannot_be_read() {
        let mut cluster = Operated::by(|context| {
            let mut all = super::controllers(context);
            all.extend(crate::node_pool::controllers(context));
            all.extend(crate::metrics::controllers(context));
            all
        });
        cluster.apply(NODE_POOL);
        cluster.settle();
        let pool = "/apis/karpenter.sh/v1/nodepools/default";
        // The schema accepts any number of hours, but nobody can count them.
        let change =
            |period: &str| json!({"spec": {"template": {"spec": {"terminationGracePeriod": period}}}});
        cluster.patch(pool, &change("9999999h"));
        cluster.run_for(Duration::from_mins(5));
        let told = |cluster: &Operated| -> Vec<_> {
            let published = cluster.context.events.published().into_iter();
            published.filter(|event| &*event.reason == "Unreadable").collect()
        };
        let all = told(&cluster);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((&*all[0].about.name, &all[0].kind.to_string()[..]), ("default", "Warning"));
        assert_eq!(
            *all[0].about.uid,
            *cluster.ours("nodepools/default")["metadata"]["uid"].as_str().unwrap()
        );
        let start = "Ignoring NodePool that cannot be read, spec.template.spec.terminationGracePeriod: invalid duration \"9999999h\": it is longer than ";
        assert!(all[0].message.starts_with(start), "{}", all[0].message);
        let count = |cluster: &Operated| {
            // Gauges are brought up to date when somebody asks.
            drop(cluster.context.metrics.page());
            cluster.context.metrics.value(&CLUSTER_STATE_UNREADABLE, &["NodePool"])
        };
        assert_eq!(count(&cluster), Some(1.0));
        cluster.patch(pool, &change("1h"));
        cluster.settle();
        assert_eq!((told(&cluster).len(), count(&cluster)), (1, None));
    }

    #[test]
    fn a_pool_whose_nodes_live_for_ever_and_a_day_can_be_read() {
        let mut cluster = Operated::by(crate::node_pool::controllers);
        let long = "spec:\n  disruption: {consolidateAfter: 9999999h}\n  template:\n    spec:\n      expireAfter: 3000000h";
        cluster.apply(&NODE_POOL.replace("spec:\n  template:\n    spec:", long));
        cluster.settle();
        assert_eq!(cluster.condition("nodepools/default", "Ready"), "True Ready");
        assert_eq!(cluster.ours("nodepools/default")["spec"]["disruption"]["consolidateAfter"], "9999999h");
    }
}
