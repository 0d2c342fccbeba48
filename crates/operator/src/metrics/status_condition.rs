//! The conditions of objects, how long they last, and how they change.

use std::collections::BTreeMap;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::READY;
use api::names::controllers::{
    STATUS_CAPACITY_BUFFER, STATUS_NODE, STATUS_NODE_CLAIM, STATUS_NODE_POOL, aws, azure,
};
use api::names::events::FINALIZED;
use api::names::labels;
use api::names::metrics::status::{
    self, COUNT, CURRENT_STATUS_SECONDS, TERMINATION_CURRENT_TIME_SECONDS, TERMINATION_DURATION_SECONDS,
    TRANSITION_SECONDS, TRANSITIONS,
};
use api::names::{messages, reasons};
use api::provider::Provider;
use cluster::state::{Change, Key, Kind, Object, State};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::events::About;
use runtime::metrics::{Family, Registry};
use runtime::queue::Queue;

use crate::Context;
use crate::managed::is_pool_managed;
use crate::wiring::Wiring;

/// How often an object is looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// A condition as all kinds have them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    status: Box<str>,
    reason: Box<str>,
    message: Box<str>,
    since: Timestamp,
}

/// An object as far as its conditions are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    about: About,
    conditions: BTreeMap<Box<str>, Condition>,
    /// What tells it from others of its kind, in the order of the metrics' labels.
    labels: Vec<String>,
    finalizers: Vec<Box<str>>,
    deleting_since: Option<Timestamp>,
}

/// What an object looks like. `class` is the label by which nodes of a NodeClass are known.
fn observe(object: &Object, class: &str) -> Option<Observed> {
    match object {
        Object::NodeClaim(claim) => {
            let own = |key: &str| claim.metadata.labels.as_ref().and_then(|all| all.get(key)).cloned();
            let labels = [class, labels::NODEPOOL].map(|key| own(key).unwrap_or_default()).to_vec();
            Some(ours(About::object(&**claim), &**claim, labels))
        }
        Object::NodePool(pool) => Some(ours(About::object(&**pool), &**pool, Vec::new())),
        Object::CapacityBuffer(buffer) => {
            let mut observed = ours(About::object(&**buffer), &**buffer, Vec::new());
            // Buffers have no such condition, but dashboards expect it of every kind.
            let created = buffer.metadata.creation_timestamp.as_ref();
            let awaiting = Condition {
                status: "Unknown".into(),
                reason: reasons::AWAITING_RECONCILIATION.into(),
                message: messages::AWAITING_RECONCILIATION.into(),
                since: created.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            };
            observed.conditions.entry(READY.into()).or_insert(awaiting);
            Some(observed)
        }
        Object::Node(node) => {
            let own = &node.metadata.labels;
            let conditions = node.status.conditions.iter().map(|condition| {
                let since =
                    condition.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
                let (status, reason) = (condition.status.clone(), condition.reason.clone());
                (condition.kind.clone(), Condition { status, reason, message: "".into(), since })
            });
            Some(Observed {
                about: About::object(&**node),
                conditions: conditions.collect(),
                labels: [class, labels::NODEPOOL, labels::INITIALIZED]
                    .map(|key| own.text(key).to_owned())
                    .to_vec(),
                finalizers: node.metadata.finalizers.to_vec(),
                deleting_since: node.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            })
        }
        Object::NodeClass(class) => {
            let metadata = &class.metadata;
            Some(Observed {
                about: About::object(&**class),
                conditions: conditions(&class.status.conditions),
                labels: Vec::new(),
                finalizers: metadata.finalizers.to_vec(),
                deleting_since: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            })
        }
        _ => None,
    }
}

fn conditions(all: &[api::shared::Condition]) -> BTreeMap<Box<str>, Condition> {
    let seen = |condition: &api::shared::Condition| {
        let seen = Condition {
            status: condition.status.to_string().into(),
            reason: condition.reason.as_str().into(),
            message: condition.message.as_str().into(),
            since: condition.last_transition_time.0,
        };
        (condition.type_.as_str().into(), seen)
    };
    all.iter().map(seen).collect()
}

fn ours<K: HasConditions<DynamicType = ()>>(about: About, object: &K, labels: Vec<String>) -> Observed {
    let meta = object.meta();
    Observed {
        about,
        conditions: conditions(object.conditions()),
        labels,
        finalizers: meta.finalizers.iter().flatten().map(|finalizer| finalizer.as_str().into()).collect(),
        deleting_since: meta.deletion_timestamp.as_ref().map(|time| time.0),
    }
}

/// A condition that has changed.
#[derive(Debug, PartialEq)]
struct Transition<'a> {
    kind: &'a str,
    from: &'a Condition,
    to: &'a Condition,
}

impl Transition<'_> {
    fn message(&self) -> String {
        let (from, Condition { status, reason, message, .. }) = (&self.from.status, self.to);
        let more = if message.is_empty() { String::new() } else { format!(", Message: {message}") };
        format!(
            "Status condition transitioned, Type: {}, Status: {from} -> {status}, Reason: {reason}{more}",
            self.kind
        )
    }

    /// For how long the condition had the status that it left, in seconds.
    fn lasted(&self) -> f64 {
        self.to.since.duration_since(self.from.since).as_secs_f64().max(0.0)
    }
}

/// How the conditions of an object have changed. What is seen for the first time has not.
fn transitions<'a>(before: &'a Observed, now: &'a Observed) -> Vec<Transition<'a>> {
    let changed = now.conditions.iter().filter_map(|(kind, to)| {
        let from = before.conditions.get(kind).filter(|from| from.status != to.status)?;
        Some(Transition { kind, from, to })
    });
    changed.collect()
}

/// The metrics of a kind, under its own names or under those that all kinds share.
struct Families {
    transition_seconds: Family,
    count: Family,
    current_status_seconds: Family,
    transitions: Family,
    termination_current_time: Family,
    termination_duration: Family,
    /// Group and kind, under the names that all kinds share.
    shared: Option<[String; 2]>,
}

impl Families {
    fn of_kind(metrics: &Registry, kind: &str, labels: &[String]) -> Self {
        let family = |metric| metrics.family_of_kind(metric, kind, labels);
        Self::new(family, None)
    }

    fn shared(metrics: &Registry, group: &str, kind: &str) -> Self {
        Self::new(|metric| metrics.family_of_all_kinds(metric), Some([group.to_owned(), kind.to_owned()]))
    }

    fn new(
        family: impl Fn(&'static api::names::metrics::Metric) -> Family,
        shared: Option<[String; 2]>,
    ) -> Self {
        Self {
            transition_seconds: family(&TRANSITION_SECONDS),
            count: family(&COUNT),
            current_status_seconds: family(&CURRENT_STATUS_SECONDS),
            transitions: family(&TRANSITIONS),
            termination_current_time: family(&TERMINATION_CURRENT_TIME_SECONDS),
            termination_duration: family(&TERMINATION_DURATION_SECONDS),
            shared,
        }
    }

    /// The labels of a series: its own, and those of the object or the kind.
    fn labels<'a>(&'a self, own: &[&'a str], object: &'a Observed) -> Vec<&'a str> {
        let more = self.shared.as_ref().map_or(object.labels.as_slice(), |shared| shared.as_slice());
        own.iter().copied().chain(more.iter().map(String::as_str)).collect()
    }

    fn tell(&self, owner: &str, object: &Observed, changed: &[Transition<'_>], now: Timestamp) {
        let About { namespace, name, .. } = &object.about;
        let gauges = |value: fn(&Condition, Timestamp) -> f64| {
            object.conditions.iter().map(move |(kind, condition)| {
                let own = [&**namespace, &**name, &**kind, &*condition.status, &*condition.reason];
                let labels = self.labels(&own, object).into_iter().map(str::to_owned).collect();
                (labels, value(condition, now))
            })
        };
        self.count.replace(owner, gauges(|_, _| 1.0));
        let age = |condition: &Condition, now: Timestamp| now.duration_since(condition.since).as_secs_f64();
        self.current_status_seconds.replace(owner, gauges(age));
        for transition in changed {
            let (from, to) = (&*transition.from.status, &*transition.to.status);
            let labels = self.labels(&[transition.kind, from, to], object);
            self.transition_seconds.observe(&labels, transition.lasted());
            let labels = self.labels(&[transition.kind, to, &transition.to.reason], object);
            self.transitions.add(&labels, 1.0);
        }
        let terminating = object.deleting_since.map(|since| {
            let labels = self.labels(&[namespace, name], object).into_iter().map(str::to_owned).collect();
            (labels, now.duration_since(since).as_secs_f64().max(0.0))
        });
        self.termination_current_time.replace(owner, terminating);
    }

    fn forget(&self, owner: &str, last: Option<&Observed>, now: Timestamp) {
        for family in [&self.count, &self.current_status_seconds, &self.termination_current_time] {
            family.replace(owner, []);
        }
        if let Some((last, since)) = last.and_then(|last| Some((last, last.deleting_since?))) {
            let lasted = now.duration_since(since).as_secs_f64().max(0.0);
            self.termination_duration.observe(&self.labels(&[], last), lasted);
        }
    }
}

struct StatusConditions {
    context: Context,
    kind: Kind,
    class: String,
    families: Vec<Families>,
    seen: Mutex<BTreeMap<Key, Observed>>,
}

impl StatusConditions {
    fn tell(&self, key: &Key) -> Again {
        let now = self.context.now();
        let owner = key.to_string();
        let object = {
            let state = self.context.cluster.read();
            state.object(self.kind, key).filter(|object| is_told(object, state.provider()))
        };
        let before = self.seen.lock().remove(key);
        let Some(object) = object.and_then(|object| observe(&object, &self.class)) else {
            self.families.iter().for_each(|families| families.forget(&owner, before.as_ref(), now));
            if let Some(last) = &before {
                self.finalized(last, &[]);
            }
            return Again::No;
        };
        let before = before.filter(|before| before.about.uid == object.about.uid);
        let changed = before.as_ref().map(|before| transitions(before, &object)).unwrap_or_default();
        for families in &self.families {
            families.tell(&owner, &object, &changed, now);
        }
        for transition in &changed {
            let about = object.about.clone();
            self.context.events.publish_transition(transition.kind, about, transition.message());
        }
        if let Some(before) = &before {
            self.finalized(before, &object.finalizers);
        }
        drop(changed);
        self.seen.lock().insert(key.clone(), object);
        Again::After(INTERVAL)
    }

    /// Tells of finalizers that are gone from an object that is on its way out.
    fn finalized(&self, before: &Observed, left: &[Box<str>]) {
        if before.deleting_since.is_none() {
            return;
        }
        for finalizer in before.finalizers.iter().filter(|finalizer| !left.contains(finalizer)) {
            let message = format!("Finalized {finalizer}");
            self.context.events.publish(&FINALIZED, before.about.clone(), message, &[]);
        }
    }
}

/// Whether conditions of an object are told: those of other clouds are not.
fn is_told(object: &Object, provider: Provider) -> bool {
    match object {
        Object::NodeClaim(claim) => crate::managed::is_claim_managed(claim, provider),
        Object::NodePool(pool) => is_pool_managed(pool, provider),
        _ => true,
    }
}

impl Reconcile for StatusConditions {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move { Ok(self.tell(key)) }.boxed()
    }
}

/// The controllers.
pub(super) fn controllers(context: &Context) -> Vec<Controller> {
    let class = context.provider().node_class();
    let class = format!("{}/{}", class.group, class.kind.to_lowercase());
    let mut kinds = vec![
        (STATUS_NODE_CLAIM, Kind::NodeClaim, "nodeclaim"),
        (STATUS_NODE_POOL, Kind::NodePool, "nodepool"),
        (STATUS_NODE, Kind::Node, "node"),
        (STATUS_CAPACITY_BUFFER, Kind::CapacityBuffer, "capacitybuffer"),
    ];
    match context.provider() {
        Provider::Aws => kinds.push((aws::STATUS_NODE_CLASS, Kind::NodeClass, "ec2nodeclass")),
        Provider::Azure => kinds.push((azure::STATUS_NODE_CLASS, Kind::NodeClass, "aksnodeclass")),
        // Simulated NodeClasses have no conditions.
        Provider::Kwok => {}
    }
    let watched = context.settings.gates.kinds();
    kinds
        .into_iter()
        .filter(|(_, kind, _)| watched.contains(kind))
        .map(|(name, kind, lower)| {
            let labels = status::object_labels(lower, &[&class]);
            let mut families = vec![Families::of_kind(&context.metrics, lower, &labels)];
            if !status::KINDS_WITHOUT_SHARED.contains(&lower) {
                let (group, ..) = kind.resource(context.provider());
                let name = match kind {
                    Kind::NodeClass => context.provider().node_class().kind,
                    kind => kind.name(),
                };
                families.push(Families::shared(&context.metrics, group, name));
            }
            let conditions = StatusConditions {
                context: context.clone(),
                kind,
                class: class.clone(),
                families,
                seen: Mutex::default(),
            };
            let touch = move |change: &Change, _: &State, queue: &Queue| {
                if change.object().kind() == kind {
                    queue.add(change.key());
                }
            };
            Wiring::new(name, 10).listening(context, conditions, touch)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::testing::claim;

    fn observed(change: &Value) -> Observed {
        let class = "karpenter.kwok.sh/kwoknodeclass";
        observe(&Object::NodeClaim(Arc::new(claim("c", change))), class).unwrap()
    }

    fn launched(status: &str, message: &str, since: &str) -> Value {
        json!({"status": {"conditions": [{
            "type": "Launched", "status": status, "reason": "Why", "message": message, "lastTransitionTime": since,
        }]}})
    }

    #[test]
    fn conditions_of_node_classes_are_seen_too() {
        let class: cluster::objects::NodeClass = serde_json::from_value(json!({
            "metadata": {"name": "default", "uid": "u", "finalizers": ["karpenter.k8s.aws/termination"]},
            "spec": {},
            "status": {"instanceProfile": "p", "conditions": [{
                "type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": "AMIsReady=False",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
        .unwrap();
        let seen = observe(&Object::NodeClass(Arc::new(class)), "karpenter.k8s.aws/ec2nodeclass").unwrap();
        assert_eq!((&*seen.conditions["Ready"].status, seen.finalizers.len()), ("False", 1));
        assert_eq!(&*seen.about.name, "default");
    }

    #[test]
    fn a_change_is_told_with_what_was_before() {
        let before = observed(&launched("Unknown", "", "2026-01-01T00:00:00Z"));
        let after = observed(&launched("True", "", "2026-01-01T00:00:07Z"));
        let changed = transitions(&before, &after);
        assert_eq!(changed.len(), 1);
        assert!((changed[0].lasted() - 7.0).abs() < 1e-9);
        assert_eq!(
            changed[0].message(),
            "Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Why"
        );
        let failed = observed(&launched("False", "no capacity", "2026-01-01T00:00:09Z"));
        assert!(transitions(&after, &failed)[0].message().ends_with(", Reason: Why, Message: no capacity"));
    }

    #[test]
    fn what_is_new_or_only_says_something_else_has_not_changed() {
        let before = observed(&json!({}));
        let after = observed(&launched("True", "", "2026-01-01T00:00:07Z"));
        assert!(transitions(&before, &after).is_empty());
        let reworded = observed(&launched("True", "again", "2026-01-01T00:00:07Z"));
        assert!(transitions(&after, &reworded).is_empty());
    }
}
