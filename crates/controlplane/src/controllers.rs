//! The controllers by name, and which of them a change concerns.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::action::Outcome;
use crate::cache::{Cache, Change, claims_of, node_of};
use crate::object::{Key, Kind, Object, controller, uid};
use crate::options::Options;
use crate::pod::Pod;
use crate::queue::Queue;
use crate::{
    budget, daemonset, deployment, devices, garbage, job, kubelet, namespace, node, pod_collection,
    replicaset, statefulset, taint_eviction, volumes,
};

/// A controller; each decides for one object at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Lease,
    KubeletNode,
    KubeletPod,
    NodeHealth,
    NodeTaints,
    TaintEviction,
    PodCollection,
    Namespace,
    Garbage(Kind),
    Claim,
    Volume,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    Budget,
    /// A component by its number.
    Component(usize),
}

/// An object that a controller has to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) controller: Controller,
    pub(crate) key: Key,
}

impl Item {
    pub(crate) fn new(controller: Controller, key: Key) -> Self {
        Self { controller, key }
    }
}

/// The kinds that the parts which run have to know.
pub(crate) fn kinds(options: &Options) -> Vec<Kind> {
    let everything = options.workloads || options.scheduler;
    let needed = |kind: &Kind| match kind {
        Kind::Node | Kind::Pod | Kind::Lease | Kind::PersistentVolumeClaim => true,
        Kind::StorageClass | Kind::PersistentVolume | Kind::Namespace | Kind::PodDisruptionBudget => {
            everything
        }
        Kind::CSINode => options.scheduler,
        Kind::ResourceClaim => options.scheduler || options.kubelet.is_some(),
        _ => options.workloads,
    };
    Kind::ALL.iter().copied().filter(needed).collect()
}

/// Asks a controller what to do about an object.
pub(crate) fn decide(item: &Item, cache: &Cache, options: &Options, now: Timestamp) -> Outcome {
    let key = &item.key;
    match item.controller {
        Controller::Lease => options.kubelet.as_ref().map(|o| kubelet::lease::decide(cache, key, o, now)),
        Controller::KubeletNode => {
            options.kubelet.as_ref().map(|o| kubelet::node::decide(cache, key, o, now))
        }
        Controller::KubeletPod => options.kubelet.as_ref().map(|o| kubelet::pod::decide(cache, key, o, now)),
        Controller::NodeHealth => Some(node::health::decide(cache, key, now)),
        Controller::NodeTaints => Some(node::taints::decide(cache, key, now)),
        Controller::TaintEviction => Some(taint_eviction::decide(cache, key, now)),
        Controller::PodCollection => Some(pod_collection::decide(cache, key, now)),
        Controller::Namespace => Some(namespace::decide(cache, key, &options.root_ca)),
        Controller::Garbage(kind) => Some(garbage::decide(cache, kind, key, now)),
        Controller::Claim => Some(volumes::claim::decide(cache, key)),
        Controller::Volume => Some(volumes::volume::decide(cache, key)),
        Controller::Deployment => Some(deployment::decide(cache, key, now)),
        Controller::ReplicaSet => Some(replicaset::decide(cache, key, now)),
        Controller::StatefulSet => Some(statefulset::decide(cache, key, now)),
        Controller::DaemonSet => Some(daemonset::decide(cache, key, now)),
        Controller::Job => Some(job::decide(cache, key, now)),
        Controller::Budget => Some(budget::decide(cache, key, now)),
        Controller::Component(_) => None,
    }
    .unwrap_or_default()
}

/// Queues everything that depends on a change.
pub(crate) struct Dependents<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) options: &'a Options,
    pub(crate) queue: &'a mut Queue<Item>,
    pub(crate) now: Timestamp,
}

impl Dependents<'_> {
    pub(crate) fn of(&mut self, change: &Change) {
        let object = change.object();
        let key = object.key();
        match object {
            Object::Lease(_) => self.lease(change, &key),
            Object::Node(_) => self.node(change, &key),
            Object::Pod(_) => self.pod(change, &key),
            Object::ResourceClaim(_) => self.devices(&key),
            _ if !self.options.workloads => {}
            Object::Namespace(_) => self.add(Controller::Namespace, key),
            Object::ServiceAccount(_) | Object::ConfigMap(_) => {
                self.add(Controller::Namespace, Key::cluster(&key.namespace));
            }
            Object::Deployment(_) => self.add(Controller::Deployment, key),
            Object::ReplicaSet(_) => self.add(Controller::ReplicaSet, key),
            Object::StatefulSet(_) => self.add(Controller::StatefulSet, key),
            Object::DaemonSet(_) => self.add(Controller::DaemonSet, key),
            Object::ControllerRevision(_) | Object::CSINode(_) => {}
            Object::Job(_) => self.add(Controller::Job, key),
            Object::PodDisruptionBudget(_) => self.add(Controller::Budget, key),
            Object::StorageClass(_) => self.all(Kind::PersistentVolumeClaim, Controller::Claim),
            Object::PersistentVolume(volume) => {
                self.add(Controller::Volume, key);
                if let Some(claim) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) {
                    let (namespace, name) = (claim.namespace.as_deref(), claim.name.as_deref());
                    let claim = Key::new(namespace.unwrap_or_default(), name.unwrap_or_default());
                    self.add(Controller::Claim, claim);
                }
            }
            Object::PersistentVolumeClaim(_) => self.claim(change, key),
        }
        if self.options.workloads {
            self.owners(change);
        }
        if self.options.garbage {
            self.garbage(change);
        }
    }

    fn add(&mut self, controller: Controller, key: Key) {
        self.queue.add(Item::new(controller, key));
    }

    fn all(&mut self, kind: Kind, controller: Controller) {
        for key in self.cache.keys(kind) {
            self.add(controller, key);
        }
    }

    /// Renewals are by far the most frequent change: they concern nobody unless the node was out of reach.
    fn lease(&mut self, change: &Change, key: &Key) {
        let node = Key::cluster(&key.name);
        if change.new.is_none() {
            self.add(Controller::Lease, node);
        } else if self.options.node_lifecycle
            && self.cache.nodes.get(&node).is_some_and(|node| node::ready_status(node) == Some("Unknown"))
        {
            self.add(Controller::NodeHealth, node);
        }
    }

    fn node(&mut self, change: &Change, key: &Key) {
        if self.options.kubelet.is_some() {
            self.add(Controller::KubeletNode, key.clone());
            // Pods may have been bound before the machine was up.
            let reported = readiness(change.old.as_ref()) != readiness(change.new.as_ref());
            if reported || annotations_differ(change) {
                self.add(Controller::Lease, key.clone());
                self.pods_of(&key.name, Controller::KubeletPod);
            }
        }
        if self.options.node_lifecycle {
            self.add(Controller::NodeHealth, key.clone());
            self.add(Controller::NodeTaints, key.clone());
            if taints(change.old.as_ref()) != taints(change.new.as_ref()) {
                self.pods_of(&key.name, Controller::TaintEviction);
            }
            if change.new.is_none() {
                self.add(Controller::PodCollection, key.clone());
            }
        }
        if self.options.workloads && !only_heartbeat(change) {
            self.all(Kind::DaemonSet, Controller::DaemonSet);
            if change.old.is_none() {
                self.all(Kind::PersistentVolumeClaim, Controller::Claim);
            }
        }
    }

    fn pods_of(&mut self, node: &str, controller: Controller) {
        let pods: Vec<Key> = self.cache.pods_on(node).map(|pod| Key::of(&pod.metadata)).collect();
        for pod in pods {
            self.add(controller, pod);
        }
    }

    fn pod(&mut self, change: &Change, key: &Key) {
        let Object::Pod(pod) = change.object() else { return };
        let node = node_of(pod);
        if self.options.kubelet.is_some() && node.is_some() {
            self.add(Controller::KubeletPod, key.clone());
        }
        if self.options.node_lifecycle {
            if node.is_some() && change.new.is_some() && on_another_node(change) {
                self.add(Controller::TaintEviction, key.clone());
            }
            if let Some(node) = node.filter(|node| self.cache.missing_since(node).is_some()) {
                self.add(Controller::PodCollection, Key::cluster(node));
            }
        }
        if self.options.workloads {
            for claim in claims_of(pod) {
                self.add(Controller::Claim, claim);
            }
            let sides = [change.old.as_ref(), change.new.as_ref()];
            let budgets = budget::concerned(self.cache, &key.namespace, sides);
            let wait = settle(self.cache.pods.len());
            for budget in budgets {
                self.queue.add_at(Item::new(Controller::Budget, budget), self.after(wait));
            }
            if controller(&pod.metadata).is_none() && change.old.is_none() {
                self.adopters(&key.namespace);
            }
        }
    }

    /// Everything in the namespace that may adopt a pod.
    fn adopters(&mut self, namespace: &str) {
        let sets: Vec<Key> =
            self.cache.replica_sets.in_namespace(namespace).map(|(key, _)| key.clone()).collect();
        for key in sets {
            self.add(Controller::ReplicaSet, key);
        }
        let sets: Vec<Key> =
            self.cache.stateful_sets.in_namespace(namespace).map(|(key, _)| key.clone()).collect();
        for key in sets {
            self.add(Controller::StatefulSet, key);
        }
    }

    fn claim(&mut self, change: &Change, key: Key) {
        let Object::PersistentVolumeClaim(claim) = change.object() else { return };
        if let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) {
            self.add(Controller::Volume, Key::cluster(volume));
        }
        if self.options.kubelet.is_some() {
            let pods: Vec<Key> = self.cache.pods_with_claim(&key).map(|pod| Key::of(&pod.metadata)).collect();
            for pod in pods {
                self.add(Controller::KubeletPod, pod);
            }
        }
        self.add(Controller::Claim, key);
    }

    /// Pods on nodes start when their devices are there.
    fn devices(&mut self, claim: &Key) {
        if self.options.kubelet.is_none() {
            return;
        }
        let waits = |pod: &Pod| node_of(pod).is_some() && !devices::claims(pod).is_empty();
        let pods = self.cache.pods.in_namespace(&claim.namespace).filter(|(_, pod)| waits(pod));
        let pods: Vec<Key> = pods.map(|(key, _)| key.clone()).collect();
        for pod in pods {
            self.add(Controller::KubeletPod, pod);
        }
    }

    /// What controls an object looks at all it controls: the more that is, the longer changes are gathered.
    fn owners(&mut self, change: &Change) {
        let object = change.object();
        let Some(owner) = controller(object.meta()) else { return };
        let of = match owner.kind.as_str() {
            "Deployment" => Controller::Deployment,
            "ReplicaSet" => Controller::ReplicaSet,
            "StatefulSet" => Controller::StatefulSet,
            "DaemonSet" => Controller::DaemonSet,
            "Job" => Controller::Job,
            _ => return,
        };
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        let item = Item::new(of, Key::new(namespace, &owner.name));
        if of == Controller::Deployment {
            self.queue.add(item);
        } else {
            let wait = settle(self.cache.owned_count(&owner.uid));
            self.queue.add_at(item, self.after(wait));
        }
        if of == Controller::ReplicaSet && change.new.is_none() {
            // A deployment that is recreated waits for the last old pod to go.
            if let Some(Object::ReplicaSet(set)) = self.cache.by_uid(&owner.uid)
                && let Some(owner) = controller(&set.metadata)
            {
                self.queue.add(Item::new(Controller::Deployment, Key::new(namespace, &owner.name)));
            }
        }
    }

    fn garbage(&mut self, change: &Change) {
        let object = change.object();
        let meta = object.meta();
        if change.new.is_none() {
            let dependents: Vec<_> = self.cache.dependents(uid(meta)).cloned().collect();
            for (kind, key) in dependents {
                self.add(Controller::Garbage(kind), key);
            }
            for owner in meta.owner_references.iter().flatten() {
                if let Some(owner) = self.cache.by_uid(&owner.uid)
                    && owner.meta().deletion_timestamp.is_some()
                {
                    self.add(Controller::Garbage(owner.kind()), owner.key());
                }
            }
        } else if change.old.is_none() && meta.owner_references.is_some()
            || meta.deletion_timestamp.is_some() && meta.finalizers.is_some()
        {
            self.add(Controller::Garbage(object.kind()), object.key());
        }
    }

    fn after(&self, wait: Duration) -> Timestamp {
        crate::time::after(self.now, wait)
    }
}

/// How long changes are gathered before something that depends on `count` objects is looked at.
///
/// Looking costs time in proportion to the count, so a tenth of a millisecond each keeps the total bounded.
fn settle(count: usize) -> Duration {
    Duration::from_micros(100)
        .saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
        .min(Duration::from_secs(1))
}

fn as_node(object: Option<&Object>) -> Option<&Node> {
    match object {
        Some(Object::Node(node)) => Some(node),
        _ => None,
    }
}

/// What a node last reported.
fn readiness(node: Option<&Object>) -> Option<&str> {
    as_node(node).and_then(node::ready_status)
}

fn taints(object: Option<&Object>) -> Option<&Vec<k8s_openapi::api::core::v1::Taint>> {
    as_node(object)?.spec.as_ref()?.taints.as_ref()
}

fn annotations_differ(change: &Change) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.meta().annotations != new.meta().annotations,
        _ => true,
    }
}

/// Whether nothing about a node changed but its status, other than readiness.
fn only_heartbeat(change: &Change) -> bool {
    let (Some(old), Some(new)) = (as_node(change.old.as_ref()), as_node(change.new.as_ref())) else {
        return false;
    };
    old.spec == new.spec && old.metadata.labels == new.metadata.labels
}

fn on_another_node(change: &Change) -> bool {
    let pod = |object: &Option<Object>| match object {
        Some(Object::Pod(pod)) => {
            let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone());
            Some((node_of(pod).map(str::to_owned), tolerations, phase(pod).map(str::to_owned)))
        }
        _ => None,
    };
    pod(&change.old) != pod(&change.new)
}

/// The phase of a pod.
pub(crate) fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}
