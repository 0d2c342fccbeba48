//! Where pods are, and how long they wait: for a decision, for a node, until they are ready.
//!
//! Waits are measured for pods that were seen waiting; what was running before this process began says nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::names::controllers::METRICS_POD;
use api::names::labels;
use api::names::metrics::{
    Metric, PODS_BOUND_DURATION, PODS_PROVISIONING_BOUND_DURATION,
    PODS_PROVISIONING_SCHEDULING_UNDECIDED_TIME, PODS_PROVISIONING_STARTUP_DURATION,
    PODS_PROVISIONING_UNBOUND_TIME, PODS_PROVISIONING_UNSTARTED_TIME, PODS_STARTUP_DURATION, PODS_STATE,
    PODS_UNBOUND_TIME, PODS_UNSTARTED_TIME,
};
use cluster::eligibility::is_terminal;
use cluster::objects::pod::Phase;
use cluster::objects::{Node, Pod};
use cluster::state::{Change, Key, Object, PodRecord, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::Queue;

use crate::Context;
use crate::wiring::Wiring;

/// How often waits are told anew.
const INTERVAL: Duration = Duration::from_secs(30);

/// The gauges of waits.
const WAITS: [&Metric; 5] = [
    &PODS_UNSTARTED_TIME,
    &PODS_PROVISIONING_UNSTARTED_TIME,
    &PODS_UNBOUND_TIME,
    &PODS_PROVISIONING_UNBOUND_TIME,
    &PODS_PROVISIONING_SCHEDULING_UNDECIDED_TIME,
];

/// What was seen of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Memory {
    uid: Box<str>,
    /// It was seen waiting, and not ready since.
    unstarted: bool,
    /// It was seen waiting, and without a node since.
    unbound: bool,
}

/// What is to be told of a pod.
#[derive(Debug, Default, PartialEq)]
struct Told {
    /// How long it has been waiting, in the order of [`WAITS`].
    waits: [Option<f64>; 5],
    /// How long it waited.
    waited: Vec<(&'static Metric, f64)>,
    memory: Memory,
    /// Whether nothing more is to be measured.
    done: bool,
}

fn decide(pod: &Pod, record: Option<&PodRecord>, before: Option<&Memory>, now: Timestamp) -> Told {
    let mut memory = before.filter(|memory| memory.uid == pod.metadata.uid).cloned().unwrap_or_default();
    memory.uid = pod.metadata.uid.clone();
    let mut told = Told::default();
    let conditions = &pod.status.conditions;
    let since = |start: Timestamp, end: Timestamp| end.duration_since(start).as_secs_f64().max(0.0);
    let created = pod.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    // Only where nodes do join is it this process that pods wait for.
    let decided = record.and_then(|record| record.schedulable_in_healthy_pool);
    if pod.status.phase == Phase::Pending {
        memory.unstarted |= conditions.ready_since.is_none();
        memory.unbound |= conditions.scheduled_since.is_none();
    }
    if memory.unbound {
        if let Some(bound) = conditions.scheduled_since {
            told.waited.push((&PODS_BOUND_DURATION, since(created, bound)));
            told.waited.extend(decided.map(|start| (&PODS_PROVISIONING_BOUND_DURATION, since(start, bound))));
            memory.unbound = false;
        } else {
            told.waits[2] = Some(since(created, now));
            told.waits[3] = decided.map(|start| since(start, now));
        }
    }
    if memory.unstarted {
        if let Some(ready) = conditions.ready_since {
            told.waited.push((&PODS_STARTUP_DURATION, since(created, ready)));
            told.waited
                .extend(decided.map(|start| (&PODS_PROVISIONING_STARTUP_DURATION, since(start, ready))));
            memory.unstarted = false;
            told.done = true;
        } else {
            told.waits[0] = Some(since(created, now));
            told.waits[1] = decided.map(|start| since(start, now));
        }
    }
    let is_bound = !pod.spec.node_name.is_empty() || conditions.scheduled_since.is_some();
    let undecided = record.filter(|record| record.decided.is_none() && !is_bound);
    told.waits[4] = undecided.and_then(|record| record.acknowledged).map(|start| since(start, now));
    if is_terminal(pod) {
        told.done |= memory.unstarted;
        (memory.unstarted, memory.unbound, told.waits) = (false, false, [None; 5]);
    }
    told.memory = memory;
    told
}

/// The labels of a pod: what it is, where it is, and how it does.
fn state_labels(pod: &Pod, node: Option<&Node>) -> Vec<String> {
    let own = |key: &str| node.map_or("", |node| node.metadata.labels.text(key)).to_owned();
    let conditions = &pod.status.conditions;
    let namespace = pod.metadata.namespace();
    let owner = pod.metadata.owner_references.first().map(|owner| {
        let kind = owner.kind.to_lowercase();
        format!("/apis/{}/namespaces/{namespace}/{kind}s/{}", owner.api_version, owner.name)
    });
    let phase = match pod.status.phase {
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
        Phase::Unknown => "Unknown",
    };
    let nodepool = own(labels::NODEPOOL);
    let managed = !nodepool.is_empty();
    vec![
        pod.metadata.name.to_string(),
        namespace.to_owned(),
        owner.unwrap_or_default(),
        pod.spec.node_name.to_string(),
        conditions.scheduled_since.is_some().to_string(),
        nodepool,
        own(labels::ZONE),
        own(labels::ARCH),
        own(labels::CAPACITY_TYPE),
        own(labels::INSTANCE_TYPE),
        phase.to_owned(),
        conditions.ready_since.is_some().to_string(),
        managed.to_string(),
    ]
}

/// Whether a pod asks for devices that are allocated dynamically.
fn has_dynamic_resources(pod: &Pod) -> bool {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    !pod.spec.resource_claims.is_empty()
        || containers.into_iter().any(|container| !container.resources.claims.is_empty())
}

struct Pods {
    context: Context,
    memories: Mutex<BTreeMap<Key, Memory>>,
}

impl Pods {
    fn tell(&self, key: &Key) -> Again {
        let (metrics, now) = (&self.context.metrics, self.context.now());
        let owner = key.to_string();
        let known = {
            let state = self.context.cluster.read();
            state.pods.get(key).map(|pod| {
                let labels = state_labels(pod, state.nodes.named(&pod.spec.node_name).map(Arc::as_ref));
                let before = self.memories.lock().get(key).cloned();
                let told = decide(pod, state.pod_record(key), before.as_ref(), now);
                (told, labels, has_dynamic_resources(pod))
            })
        };
        let Some((told, labels, dynamic)) = known else {
            self.memories.lock().remove(key);
            for metric in WAITS.into_iter().chain([&PODS_STATE]) {
                metrics.replace(metric, &owner, []);
            }
            return Again::No;
        };
        metrics.replace(&PODS_STATE, &owner, [(labels, 1.0)]);
        let dynamic = dynamic.to_string();
        for (metric, wait) in WAITS.into_iter().zip(told.waits) {
            let mut labels = vec![key.name.to_string(), key.namespace.to_string()];
            if metric.labels.contains(&"dynamic_resources") {
                labels.push(dynamic.clone());
            }
            metrics.replace(metric, &owner, wait.map(|wait| (labels, wait)));
        }
        for (metric, waited) in told.waited {
            let labels: &[&str] = if metric.labels.is_empty() { &[] } else { &[&dynamic] };
            metrics.observe(metric, labels, waited);
        }
        if told.done {
            self.context.cluster.update(|state| state.forget_pod(key));
        }
        let waits = told.waits.iter().any(Option::is_some);
        if told.memory.unstarted || told.memory.unbound {
            self.memories.lock().insert(key.clone(), told.memory);
        } else {
            self.memories.lock().remove(key);
        }
        if waits { Again::After(INTERVAL) } else { Again::No }
    }
}

impl Reconcile for Pods {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move { Ok(self.tell(key)) }.boxed()
    }
}

/// A pod concerns itself; a node whose labels change concerns its pods.
fn touch(change: &Change, state: &State, queue: &Queue) {
    match (&change.old, &change.new) {
        (_, Some(Object::Pod(pod))) | (Some(Object::Pod(pod)), None) => queue.add(pod.key()),
        (old, Some(Object::Node(node))) => {
            let is_same =
                matches!(old, Some(Object::Node(old)) if old.metadata.labels == node.metadata.labels);
            if !is_same {
                state.pods_on(&node.metadata.name).for_each(|pod| queue.add(pod.key()));
            }
        }
        _ => {}
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let pods = Pods { context: context.clone(), memories: Mutex::default() };
    Wiring::new(METRICS_POD, 1).listening(context, pods, touch)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn pod(phase: &str, scheduled: Option<i64>, ready: Option<i64>) -> Pod {
        let condition = |kind: &str, second: Option<i64>| {
            second.map(|second| {
                json!({"type": kind, "status": "True", "lastTransitionTime": at(second).to_string()})
            })
        };
        let conditions: Vec<Value> =
            [condition("PodScheduled", scheduled), condition("Ready", ready)].into_iter().flatten().collect();
        serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "default", "uid": "u", "creationTimestamp": at(0).to_string()},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    }

    fn shown(told: &Told) -> Vec<String> {
        let waits = WAITS.iter().zip(told.waits).filter_map(|(metric, wait)| Some((metric.name, wait?)));
        let waited = told.waited.iter().map(|(metric, waited)| (metric.name, *waited));
        let short =
            |name: &str| name.trim_start_matches("karpenter_pods_").trim_end_matches("_seconds").to_owned();
        waits.chain(waited).map(|(name, value)| format!("{} {value}", short(name))).collect()
    }

    #[test]
    fn a_pod_waits_until_it_is_bound_and_until_it_is_ready() {
        let record = PodRecord {
            acknowledged: Some(at(1)),
            decided: Some(at(3)),
            schedulable: Some(at(3)),
            schedulable_in_healthy_pool: Some(at(3)),
            claim: None,
        };
        let undecided = PodRecord { acknowledged: Some(at(1)), ..PodRecord::default() };
        let first = decide(&pod("Pending", None, None), Some(&undecided), None, at(2));
        assert_eq!(
            shown(&first),
            ["unstarted_time 2", "unbound_time 2", "provisioning_scheduling_undecided_time 1"]
        );
        let second = decide(&pod("Pending", None, None), Some(&record), Some(&first.memory), at(5));
        assert_eq!(
            shown(&second),
            [
                "unstarted_time 5",
                "provisioning_unstarted_time 2",
                "unbound_time 5",
                "provisioning_unbound_time 2"
            ]
        );
        let bound = decide(&pod("Pending", Some(8), None), Some(&record), Some(&second.memory), at(9));
        assert_eq!(
            shown(&bound),
            [
                "unstarted_time 9",
                "provisioning_unstarted_time 6",
                "bound_duration 8",
                "provisioning_bound_duration 5"
            ]
        );
        let ready = decide(&pod("Running", Some(8), Some(11)), Some(&record), Some(&bound.memory), at(12));
        assert_eq!(shown(&ready), ["startup_duration 11", "provisioning_startup_duration 8"]);
        assert!(ready.done);
        let later = decide(&pod("Running", Some(8), Some(11)), None, Some(&ready.memory), at(42));
        assert!(shown(&later).is_empty() && !later.done);
    }

    #[test]
    fn a_pod_that_was_running_already_says_nothing_about_waits() {
        let told = decide(&pod("Running", Some(8), Some(11)), None, None, at(12));
        assert!(shown(&told).is_empty() && !told.done);
        assert!(!told.memory.unstarted && !told.memory.unbound);
    }

    #[test]
    fn a_pod_that_ends_before_it_was_ready_is_not_measured() {
        for phase in ["Succeeded", "Failed"] {
            let waiting = decide(&pod("Pending", None, None), None, None, at(2));
            let ended = decide(&pod(phase, Some(3), None), None, Some(&waiting.memory), at(4));
            assert_eq!(shown(&ended), ["bound_duration 3"], "it did get a node");
            assert!(ended.done && !ended.memory.unstarted);
        }
    }

    #[test]
    fn another_pod_of_the_same_name_begins_anew() {
        let waiting = decide(&pod("Pending", None, None), None, None, at(2));
        let mut other = pod("Running", Some(3), Some(4));
        other.metadata.uid = "v".into();
        assert!(shown(&decide(&other, None, Some(&waiting.memory), at(5))).is_empty());
    }

    #[test]
    fn a_pod_tells_where_it_is_and_whose_it_is() {
        let mut pod = pod("Running", Some(3), None);
        pod.spec.node_name = "n1".into();
        pod.metadata.owner_references =
            serde_json::from_value(json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}]))
                .unwrap();
        let node: Node = serde_json::from_value(json!({"metadata": {"labels": {
            "karpenter.sh/nodepool": "p", "topology.kubernetes.io/zone": "z",
        }}}))
        .unwrap();
        assert_eq!(
            state_labels(&pod, Some(&node)).join("|"),
            "a|default|/apis/apps/v1/namespaces/default/replicasets/web|n1|true|p|z||||Running|false|true"
        );
        assert_eq!(state_labels(&pod, None)[12], "false");
    }
}
