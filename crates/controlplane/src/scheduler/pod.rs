//! A pod with everything that scheduling asks about, worked out once.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Affinity, Node, PodAffinityTerm, Taint, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

use super::Key;
use super::requests::Requests;
use super::selector::{Labels, NodeTerm, Selector, labels_of, node_terms};
use crate::pod::{Container, Pod, PodSpec};

/// The pods a term speaks about: those in some namespaces with some labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    namespaces: BTreeSet<String>,
    namespace_selector: Selector,
    pub(crate) selector: Selector,
}

impl Group {
    /// The pods of one namespace.
    pub(crate) fn in_namespace(namespace: &str, selector: Selector) -> Self {
        Self {
            namespaces: BTreeSet::from([namespace.to_owned()]),
            namespace_selector: Selector::Nothing,
            selector,
        }
    }

    /// The group as a pod that is to be placed sees it.
    ///
    /// kube-scheduler 1.36 forgets to set the selector of namespaces aside once it has looked them up, and then
    /// compares it with no labels at all: one that is content with none takes in every namespace.
    pub(crate) fn as_asked(&self) -> Self {
        let mut group = self.clone();
        if group.namespace_selector.matches(&Labels::new()) {
            group.namespace_selector = Selector::everything();
        }
        group
    }

    /// `of_namespace` are the labels of the pod's namespace.
    pub(crate) fn matches(&self, pod: &PodInfo, of_namespace: &Labels) -> bool {
        self.selector.matches(pod.labels())
            && (self.namespaces.contains(&pod.key.0) || self.namespace_selector.matches(of_namespace))
    }
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    pub(crate) topology_key: String,
    pub(crate) group: Group,
}

/// Which nodes a spread constraint leaves out of account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Honors {
    /// Those that the pod does not select.
    pub(crate) affinity: bool,
    /// Those whose taints the pod does not tolerate.
    pub(crate) taints: bool,
}

/// A topology spread constraint.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    pub(crate) topology_key: String,
    pub(crate) group: Group,
    pub(crate) max_skew: i64,
    pub(crate) min_domains: i64,
    pub(crate) honors: Honors,
    pub(crate) hard: bool,
    pub(crate) matches_itself: bool,
}

/// A port of the node that a pod wants for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) port: i32,
    pub(crate) protocol: String,
    pub(crate) address: String,
}

/// A claim that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimUse {
    pub(crate) name: String,
    /// Made from a template in the pod, and so to be owned by it.
    pub(crate) ephemeral: bool,
}

/// A pod and what was read from it.
#[derive(Debug)]
pub(crate) struct PodInfo {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) pod: Arc<Pod>,
    pub(crate) priority: i32,
    pub(crate) requests: Requests,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) node_terms: Option<Vec<NodeTerm>>,
    pub(crate) preferred_nodes: Vec<(i64, NodeTerm)>,
    pub(crate) affinity: Vec<Term>,
    pub(crate) anti_affinity: Vec<Term>,
    /// Preferences for being near (positive weight) or far (negative weight).
    pub(crate) preferred: Vec<(i64, Term)>,
    pub(crate) spreads: Vec<Spread>,
    pub(crate) claims: Vec<ClaimUse>,
}

impl PodInfo {
    pub(crate) fn new(key: &Key, pod: Arc<Pod>) -> Self {
        static NO_SPEC: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
        let spec = pod.spec.as_ref().unwrap_or(&NO_SPEC);
        let labels = labels_of(pod.metadata.labels.as_ref());
        let affinity = spec.affinity.as_deref();
        let node_affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        let required_nodes =
            node_affinity.and_then(|one| one.required_during_scheduling_ignored_during_execution.as_ref());
        let preferred_nodes =
            node_affinity.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_ref());
        let (near, far) = required_terms(affinity);
        let parse =
            |terms: &[PodAffinityTerm]| terms.iter().map(|term| parse_term(term, &key.0, labels)).collect();

        Self {
            key: key.clone(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            priority: spec.priority.unwrap_or(0),
            requests: Requests::of(&pod),
            ports: host_ports(spec),
            node_terms: required_nodes.map(node_terms),
            preferred_nodes: preferred_nodes
                .into_iter()
                .flatten()
                .map(|term| (i64::from(term.weight), NodeTerm::parse(&term.preference)))
                .collect(),
            affinity: parse(near),
            anti_affinity: parse(far),
            preferred: preferred_terms(affinity)
                .map(|(sign, term)| {
                    (sign * i64::from(term.weight), parse_term(&term.pod_affinity_term, &key.0, labels))
                })
                .collect(),
            spreads: spec
                .topology_spread_constraints
                .iter()
                .flatten()
                .map(|constraint| parse_spread(constraint, &key.0, labels))
                .collect(),
            claims: claims(&key.1, spec),
            pod,
        }
    }

    pub(crate) fn labels(&self) -> &Labels {
        labels_of(self.pod.metadata.labels.as_ref())
    }

    pub(crate) fn node_selector(&self) -> &Labels {
        labels_of(self.pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref()))
    }

    pub(crate) fn tolerations(&self) -> &[Toleration] {
        self.pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
    }

    pub(crate) fn node_name(&self) -> Option<&str> {
        self.pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
    }

    pub(crate) fn nominated(&self) -> Option<&str> {
        self.pod.status.as_ref()?.nominated_node_name.as_deref().filter(|name| !name.is_empty())
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    /// A pod that has ended takes no room any more.
    pub(crate) fn has_ended(&self) -> bool {
        let phase = self.pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    pub(crate) fn is_gated(&self) -> bool {
        self.pod
            .spec
            .as_ref()
            .and_then(|spec| spec.scheduling_gates.as_ref())
            .is_some_and(|gates| !gates.is_empty())
    }

    pub(crate) fn created(&self) -> Option<Timestamp> {
        self.pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    /// Since when the pod runs; pods that have not started count as started last.
    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.pod.status.as_ref()?.start_time.as_ref().map(|time| time.0)
    }

    pub(crate) fn may_preempt(&self) -> bool {
        self.pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) != Some("Never")
    }

    /// Whether the pod waits for this scheduler.
    pub(crate) fn is_pending(&self) -> bool {
        let scheduler = self.pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        self.node_name().is_none()
            && !self.has_ended()
            && !self.is_terminating()
            && matches!(scheduler, None | Some("" | super::SCHEDULER_NAME))
    }

    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations().iter().any(|toleration| tolerates(toleration, taint))
    }

    /// Whether a taint keeps the pod off this node.
    pub(crate) fn is_kept_off(&self, node: &Node) -> bool {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        taints.into_iter().flatten().any(|taint| {
            matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") && !self.tolerates(taint)
        })
    }

    /// Whether node selector and required node affinity accept this node.
    pub(crate) fn selects(&self, node: &Node) -> bool {
        let labels = labels_of(node.metadata.labels.as_ref());
        self.node_selector().iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.node_terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches_node(node)))
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any_or =
        |wanted: Option<&str>, is: &str| wanted.is_none_or(|wanted| wanted.is_empty() || wanted == is);
    any_or(toleration.effect.as_deref(), &taint.effect)
        && any_or(toleration.key.as_deref(), &taint.key)
        && match toleration.operator.as_deref() {
            None | Some("" | "Equal") => {
                toleration.value.as_deref().unwrap_or("") == taint.value.as_deref().unwrap_or("")
            }
            Some(operator) => operator == "Exists",
        }
}

fn required_terms(affinity: Option<&Affinity>) -> (&[PodAffinityTerm], &[PodAffinityTerm]) {
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    (
        near.and_then(|one| one.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or(&[]),
        far.and_then(|one| one.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or(&[]),
    )
}

fn preferred_terms(affinity: Option<&Affinity>) -> impl Iterator<Item = (i64, &WeightedPodAffinityTerm)> {
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_deref());
    let far = far.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_deref());
    near.into_iter().flatten().map(|term| (1, term)).chain(far.into_iter().flatten().map(|term| (-1, term)))
}

fn parse_term(term: &PodAffinityTerm, namespace: &str, labels: &Labels) -> Term {
    let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
    if namespaces.is_empty() && term.namespace_selector.is_none() {
        namespaces.insert(namespace.to_owned());
    }
    let same = term.match_label_keys.as_deref().unwrap_or(&[]);
    let different = term.mismatch_label_keys.as_deref().unwrap_or(&[]);
    let selector = Selector::parse(term.label_selector.as_ref()).with_label_keys(labels, same, different);
    let namespace_selector = Selector::parse(term.namespace_selector.as_ref());
    Term {
        topology_key: term.topology_key.clone(),
        group: Group { namespaces, namespace_selector, selector },
    }
}

fn parse_spread(constraint: &TopologySpreadConstraint, namespace: &str, labels: &Labels) -> Spread {
    let same = constraint.match_label_keys.as_deref().unwrap_or(&[]);
    let selector = Selector::parse(constraint.label_selector.as_ref()).with_label_keys(labels, same, &[]);
    let policy =
        |policy: &Option<String>, default| policy.as_deref().map_or(default, |policy| policy == "Honor");
    Spread {
        topology_key: constraint.topology_key.clone(),
        matches_itself: selector.matches(labels),
        group: Group::in_namespace(namespace, selector),
        max_skew: i64::from(constraint.max_skew),
        min_domains: constraint.min_domains.map_or(1, i64::from),
        honors: Honors {
            affinity: policy(&constraint.node_affinity_policy, true),
            taints: policy(&constraint.node_taints_policy, false),
        },
        hard: constraint.when_unsatisfiable == "DoNotSchedule",
    }
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    // Ordinary init containers are gone when the others start.
    let sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(sidecar);
    let containers = sidecars.chain(&spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            Some(HostPort {
                port: port.host_port.filter(|number| *number > 0)?,
                protocol: port
                    .protocol
                    .clone()
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| "TCP".to_owned()),
                address: port
                    .host_ip
                    .clone()
                    .filter(|address| !address.is_empty())
                    .unwrap_or_else(|| super::node::ANY_ADDRESS.to_owned()),
            })
        })
        .collect()
}

fn claims(pod_name: &str, spec: &PodSpec) -> Vec<ClaimUse> {
    let volumes = spec.volumes.iter().flatten();
    let mut seen = BTreeSet::new();
    volumes
        .filter_map(|volume| {
            let claim = volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone());
            let ephemeral = claim.is_none() && volume.ephemeral.is_some();
            let name = claim.or_else(|| ephemeral.then(|| format!("{pod_name}-{}", volume.name)))?;
            // A claim may be mounted twice and is one claim all the same.
            seen.insert(name.clone()).then_some(ClaimUse { name, ephemeral })
        })
        .collect()
}
