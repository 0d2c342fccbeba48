//! DaemonSets: one pod on every node that fits.

mod update;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Taint, Toleration};
use serde_json::{Value, json};

use crate::action::{Action, Outcome};
use crate::cache::{Cache, node_of};
use crate::names;
use crate::object::{Key, Kind, annotation, label, uid};
use crate::pod::{Availability, Pod, availability, is_ready, phase};
use crate::replicaset::{count, some};
use crate::revision::{self, Revisions};
use crate::{selector, template};

const COMPONENT: &str = "daemonset-controller";

/// How many pods are created before looking again.
const BURST: usize = 250;

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(set) = cache.daemon_sets.get(key) else { return outcome };
    let Some(spec) = &set.spec else { return outcome };
    if set.metadata.deletion_timestamp.is_some() {
        return outcome;
    }
    let collisions = set.status.as_ref().and_then(|status| status.collision_count);
    let owner = (Kind::DaemonSet, &set.metadata);
    let revisions = revision::ensure(cache, owner, &spec.template, collisions, &mut outcome);
    let mut pods: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in cache.owned_pods(uid(&set.metadata)) {
        if let Some(node) = target(pod) {
            pods.entry(node).or_default().push(pod);
        }
    }
    for of_node in pods.values_mut() {
        of_node.sort_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone()));
    }
    let look = Look { cache, set, spec, revisions, pods, now };
    look.manage(&mut outcome);
    let managed = |action: &Action| matches!(action, Action::Write(write) if write.kind == Kind::Pod);
    if !outcome.actions.iter().any(managed) {
        // Pods that come or go now are not counted yet, so nothing is replaced before they are.
        look.update(&mut outcome);
    }
    look.status(&mut outcome);
    let used = look.pods.values().flatten();
    let used =
        used.filter_map(|pod| label(&pod.metadata, names::CONTROLLER_REVISION_HASH)).map(str::to_owned);
    let used: BTreeSet<String> = used.collect();
    look.revisions.clean_up(spec.revision_history_limit, &used, &mut outcome);
    outcome
}

/// The node that a pod is on, or is made for.
fn target(pod: &Pod) -> Option<&str> {
    if let Some(node) = node_of(pod) {
        return Some(node);
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let mut names =
        fields.filter(|field| field.key == "metadata.name").flat_map(|field| field.values.iter().flatten());
    names.next().map(String::as_str)
}

/// One look at a set.
struct Look<'a> {
    cache: &'a Cache,
    set: &'a DaemonSet,
    spec: &'a DaemonSetSpec,
    revisions: Revisions,
    /// The pods of each node, oldest first.
    pods: BTreeMap<&'a str, Vec<&'a Arc<Pod>>>,
    now: Timestamp,
}

impl Look<'_> {
    fn tolerations(&self) -> Vec<Toleration> {
        let spec = self.spec.template.spec.as_ref();
        let mut all = spec.and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
        let exists = |key: &str, effect: &str| Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        all.push(exists(names::NOT_READY, "NoExecute"));
        all.push(exists(names::UNREACHABLE, "NoExecute"));
        for key in [names::DISK_PRESSURE, names::MEMORY_PRESSURE, names::PID_PRESSURE, names::UNSCHEDULABLE] {
            all.push(exists(key, "NoSchedule"));
        }
        if spec.is_some_and(|spec| spec.host_network == Some(true)) {
            all.push(exists(names::NETWORK_UNAVAILABLE, "NoSchedule"));
        }
        all
    }

    /// Whether a node should get a pod, and whether a pod that is there may stay.
    fn fits(&self, node: &Node, tolerations: &[Toleration]) -> (bool, bool) {
        let Some(spec) = &self.spec.template.spec else { return (false, false) };
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let matches = selector::node_matches(
            spec.node_selector.as_ref(),
            spec.affinity.as_ref(),
            node.metadata.labels.as_ref(),
            name,
        );
        let here =
            matches && spec.node_name.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == name);
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        let tolerated =
            |taint: &Taint| tolerations.iter().any(|toleration| selector::tolerates(toleration, taint));
        let stays = taints.iter().filter(|taint| taint.effect == "NoExecute").all(tolerated);
        let starts = taints.iter().filter(|taint| taint.effect == "NoSchedule").all(tolerated);
        (here && stays && starts, here && stays)
    }

    fn manage(&self, outcome: &mut Outcome) {
        let tolerations = self.tolerations();
        let namespace = self.set.metadata.namespace.as_deref().unwrap_or_default();
        let mut created = 0;
        for node in self.cache.nodes.values() {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let (should_run, may_stay) = self.fits(node, &tolerations);
            let pods = self.pods.get(name).map(Vec::as_slice).unwrap_or_default();
            let alive: Vec<_> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
            if !may_stay {
                for pod in alive {
                    outcome.delete(Kind::Pod, &pod.metadata, None);
                }
                continue;
            }
            let (failed, running): (Vec<&&Arc<Pod>>, Vec<&&Arc<Pod>>) =
                alive.into_iter().partition(|pod| matches!(phase(pod), "Failed" | "Succeeded"));
            for pod in &failed {
                outcome.delete(Kind::Pod, &pod.metadata, None);
            }
            if pods.is_empty() && should_run && created < BURST {
                outcome.create(Kind::Pod, namespace, &Arc::new(self.pod(name, &tolerations)));
                created += 1;
            } else if self.surge() == 0 {
                for pod in running.iter().skip(1) {
                    outcome.delete(Kind::Pod, &pod.metadata, None);
                }
            }
        }
        if created > 0 {
            let message = format!("Created {created} pod(s)");
            outcome.note((Kind::DaemonSet, &self.set.metadata), COMPONENT, "SuccessfulCreate", message);
        }
    }

    /// The pod for a node: it is bound to it by the scheduler, through the name of the node.
    fn pod(&self, node: &str, tolerations: &[Toleration]) -> Value {
        let mut pod = template::pod(&self.spec.template, Kind::DaemonSet, &self.set.metadata);
        pod["metadata"]["labels"][names::CONTROLLER_REVISION_HASH] = json!(self.revisions.hash);
        pod["metadata"]["labels"][names::POD_TEMPLATE_GENERATION] = json!(self.generation());
        pod["spec"]["tolerations"] = json!(tolerations);
        let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        let required =
            &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        *required = json!({"nodeSelectorTerms": [term]});
        pod
    }

    fn generation(&self) -> String {
        let noted = annotation(&self.set.metadata, names::TEMPLATE_GENERATION).map(str::to_owned);
        noted.unwrap_or_else(|| self.set.metadata.generation.unwrap_or(1).to_string())
    }

    fn is_updated(&self, pod: &Pod) -> bool {
        label(&pod.metadata, names::CONTROLLER_REVISION_HASH) == Some(&self.revisions.hash)
    }

    fn is_available(&self, pod: &Pod, outcome: &mut Outcome) -> bool {
        match availability(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now) {
            Availability::Available => true,
            Availability::At(when) => {
                outcome.look_again(when);
                false
            }
            Availability::NotReady => false,
        }
    }

    fn status(&self, outcome: &mut Outcome) {
        let old = self.set.status.clone().unwrap_or_default();
        let tolerations = self.tolerations();
        let (mut desired, mut scheduled, mut misscheduled) = (0, 0, 0);
        let (mut ready, mut available, mut updated) = (0, 0, 0);
        for node in self.cache.nodes.values() {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let (should_run, _) = self.fits(node, &tolerations);
            let pods = self.pods.get(name).map(Vec::as_slice).unwrap_or_default();
            if !should_run {
                misscheduled += usize::from(!pods.is_empty());
                continue;
            }
            desired += 1;
            let Some(pod) = pods.iter().find(|pod| self.is_updated(pod)).or(pods.first()) else { continue };
            scheduled += 1;
            ready += usize::from(is_ready(pod));
            available += usize::from(is_ready(pod) && self.is_available(pod, outcome));
            updated += usize::from(self.is_updated(pod));
        }
        let new = DaemonSetStatus {
            observed_generation: self.set.metadata.generation,
            desired_number_scheduled: count(desired),
            current_number_scheduled: count(scheduled),
            number_misscheduled: count(misscheduled),
            number_ready: count(ready),
            number_available: some(available),
            number_unavailable: some(desired - available),
            updated_number_scheduled: some(updated),
            collision_count: old.collision_count,
            conditions: old.conditions.clone(),
        };
        outcome.status(Kind::DaemonSet, &self.set.metadata, &old, &new);
    }
}

#[cfg(test)]
mod tests;
