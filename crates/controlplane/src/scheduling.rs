//! The scheduler in the event loop: what it is told, and how its decisions are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;
use serde_json::{Value, json};

use crate::action::{Action, Outcome, Verb, Write};
use crate::cache::{Cache, Change, node_of};
use crate::component::Component;
use crate::devices::{self, Devices};
use crate::object::{Key, Kind, Object};
use crate::pod::Pod;
use crate::scheduler::{self, Decision, PREEMPTED, Reason, SELECTED_NODE, Scheduler};
use crate::time::seconds;

/// How many decisions are taken before their results are waited for.
const BATCH: usize = 128;
/// Who says it, in events.
const NAME: &str = "default-scheduler";

/// The scheduler as a part of the control plane.
#[derive(Debug, Default)]
pub(crate) struct Scheduling {
    scheduler: Scheduler,
    /// Pods that want devices and have no node, with what they were last told.
    wanting: BTreeMap<Key, Devices>,
    /// Those of them that are to be told something.
    untold: BTreeSet<Key>,
}

impl Scheduling {
    /// A pod that lacks devices is kept from the scheduler, and told why.
    fn observe_pod(&mut self, cache: &Cache, key: &Key, pod: Option<&Arc<Pod>>) {
        let full = (key.namespace.clone(), key.name.clone());
        let wanting = pod.filter(|pod| node_of(pod).is_none() && !devices::claims(pod).is_empty());
        let Some(wanting) = wanting else {
            self.wanting.remove(key);
            self.scheduler.observe_pod(&full, pod.cloned());
            return;
        };
        let devices = devices::of(cache, wanting);
        self.scheduler.observe_pod(&full, pod.filter(|_| devices == Devices::Allocated).cloned());
        if self.wanting.get(key) != Some(&devices) {
            self.wanting.insert(key.clone(), devices);
            self.untold.insert(key.clone());
        }
    }

    /// Looks again at the pods that a claim of devices may be for.
    fn observe_devices(&mut self, cache: &Cache, claim: &Key) {
        let of_namespace = self.wanting.keys().filter(|pod| pod.namespace == claim.namespace);
        for pod in of_namespace.cloned().collect::<Vec<_>>() {
            self.observe_pod(cache, &pod, cache.pods.get(&pod));
        }
    }

    fn tell(&mut self, cache: &Cache, now: Timestamp, outcome: &mut Outcome) {
        for key in std::mem::take(&mut self.untold) {
            let Some(pod) = cache.pods.get(&key) else { continue };
            match self.wanting.get(&key) {
                // As kube-scheduler, which writes nothing to the pod; it has no event for it, either.
                Some(Devices::Missing(why)) => {
                    let message = format!("not to be scheduled before its devices are claimed: {why}");
                    outcome.note((Kind::Pod, &pod.metadata), NAME, "FailedScheduling", message);
                }
                Some(Devices::Unallocated) => {
                    let nodes = cache.nodes.len();
                    let message =
                        format!("0/{nodes} nodes are available: {nodes} cannot allocate all claims.");
                    let decision = Decision::Unschedulable {
                        pod: (key.namespace, key.name),
                        uid: pod.metadata.uid.clone().unwrap_or_default(),
                        reason: Reason::Unschedulable,
                        message,
                        nominated: None,
                        victims: Vec::new(),
                    };
                    write(&decision, cache, now, outcome);
                }
                Some(Devices::Allocated) | None => {}
            }
        }
    }
}

impl Component for Scheduling {
    fn observe(&mut self, cache: &Cache, change: &Change) {
        let key = change.object().key();
        match (change.object(), &change.new) {
            (Object::Pod(_), Some(Object::Pod(pod))) => return self.observe_pod(cache, &key, Some(pod)),
            (Object::Pod(_), _) => return self.observe_pod(cache, &key, None),
            (Object::ResourceClaim(_), _) => return self.observe_devices(cache, &key),
            _ => {}
        }
        let full = (key.namespace.clone(), key.name.clone());
        macro_rules! tell {
            ($($kind:ident => $method:ident($key:expr)),* $(,)?) => {
                match (change.object(), &change.new) {
                    $(
                        (Object::$kind(_), Some(Object::$kind(new))) => {
                            self.scheduler.$method($key, Some(Arc::clone(new)));
                        }
                        (Object::$kind(_), _) => self.scheduler.$method($key, None),
                    )*
                    _ => {}
                }
            };
        }
        tell! {
            Node => observe_node(&key.name),
            Namespace => observe_namespace(&key.name),
            PersistentVolumeClaim => observe_claim(&full),
            PersistentVolume => observe_volume(&key.name),
            StorageClass => observe_storage_class(&key.name),
            CSINode => observe_csi_node(&key.name),
            PodDisruptionBudget => observe_budget(&full),
        }
    }

    fn decide(&mut self, cache: &Cache, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::default();
        self.tell(cache, now, &mut outcome);
        for number in 0.. {
            if number == BATCH {
                // The rest follows when these are done.
                outcome.look_again(now);
                break;
            }
            let Some(decision) = self.scheduler.next() else { break };
            write(&decision, cache, now, &mut outcome);
        }
        outcome
    }

    fn failed(&mut self, action: &Action) {
        if let Action::Write(Write { kind: Kind::Pod, key, .. }) = action {
            self.scheduler.failed(&(key.namespace.clone(), key.name.clone()));
        }
    }
}

fn key(of: &scheduler::Key) -> Key {
    Key::new(&of.0, &of.1)
}

/// Turns a decision into writes.
fn write(decision: &Decision, cache: &Cache, now: Timestamp, outcome: &mut Outcome) {
    match decision {
        Decision::Bind { pod, uid, node } => {
            let verb = Verb::Bind { uid: uid.clone(), node: node.clone() };
            outcome.write(Kind::Pod, key(pod), verb);
            if let Some(known) = cache.pods.get(&key(pod)) {
                let message = format!("Successfully assigned {}/{} to {node}", pod.0, pod.1);
                outcome.note((Kind::Pod, &known.metadata), NAME, "Scheduled", message);
            }
        }
        Decision::BindVolumes { node, plan, .. } => {
            for (volume, claim) in &plan.bind {
                let mut reference = json!({
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.0, "name": claim.1,
                });
                if let Some(uid) = cache.claims.get(&key(claim)).and_then(|claim| claim.metadata.uid.clone())
                {
                    reference["uid"] = Value::from(uid);
                }
                let body = json!({"spec": {"claimRef": reference}});
                let verb = Verb::Patch { body, subresource: None };
                outcome.write(Kind::PersistentVolume, Key::cluster(volume), verb);
            }
            for claim in &plan.provision {
                let body = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
                let verb = Verb::Patch { body, subresource: None };
                outcome.write(Kind::PersistentVolumeClaim, key(claim), verb);
            }
        }
        Decision::Unschedulable { pod, reason, message, nominated, victims, .. } => {
            let Some(known) = cache.pods.get(&key(pod)) else { return };
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": reason.as_str(), "message": message,
            });
            let mut status = json!({"conditions": with_condition(known, condition, now)});
            status["nominatedNodeName"] = json!(nominated);
            outcome.patch_status(Kind::Pod, &known.metadata, json!({ "status": status }));
            if *reason == Reason::Unschedulable {
                outcome.note((Kind::Pod, &known.metadata), NAME, "FailedScheduling", message.clone());
            }
            for victim in victims {
                preempt(cache, &key(victim), known, now, outcome);
            }
        }
    }
}

/// Lets a pod go for one that matters more.
fn preempt(cache: &Cache, victim: &Key, by: &Pod, now: Timestamp, outcome: &mut Outcome) {
    let Some(victim) = cache.pods.get(victim) else { return };
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": PREEMPTED,
    });
    let status = json!({"conditions": with_condition(victim, condition, now)});
    outcome.patch_status(Kind::Pod, &victim.metadata, json!({ "status": status }));
    outcome.delete(Kind::Pod, &victim.metadata, None);
    let uid = by.metadata.uid.as_deref().unwrap_or_default();
    let node = victim.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let message = format!("Preempted by pod {uid} on node {node}");
    outcome.note((Kind::Pod, &victim.metadata), NAME, "Preempted", message);
}

/// All conditions of a pod with one of them changed; a merge patch replaces the whole list.
fn with_condition(pod: &Pod, mut condition: Value, now: Timestamp) -> Vec<Value> {
    let old = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let same = |one: &&PodCondition| condition["type"] == one.type_;
    let unchanged = old.iter().find(same).filter(|one| condition["status"] == one.status);
    let since = unchanged
        .and_then(|one| one.last_transition_time.as_ref())
        .map_or_else(|| seconds(now), |time| seconds(time.0));
    condition["lastTransitionTime"] = Value::from(since);
    if let Some(generation) = pod.metadata.generation {
        condition["observedGeneration"] = Value::from(generation);
    }
    let others = old.iter().filter(|one| condition["type"] != one.type_);
    let mut all: Vec<Value> = others.filter_map(|one| serde_json::to_value(one).ok()).collect();
    all.push(condition);
    all
}
