//! Volumes: which claims are there, where their volumes can be used, and how many fit on a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use units::Quantity;

use super::Key;
use super::node::{NodeState, Usage};
use super::pod::{ClaimUse, PodInfo};
use super::selector::{Labels, Selector, labels_of, volume_reaches};
use super::verdict::{Reasons, Rejection};

/// On a claim: the node for which a volume is to be made.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

const WRONG_NODE: &str = "node(s) didn't match PersistentVolume's node affinity";
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const LOST: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const WRONG_ZONE: &str = "node(s) had no available volume zone";
const TOO_MANY: &str = "node(s) exceed max volume count";
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

/// Labels of volumes that nodes have to share, with the name each has on newer nodes.
const ZONE_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// What is to be done for the claims of a pod once its node is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumePlan {
    /// Volumes to reserve for claims: set `spec.claimRef` of the volume.
    pub bind: Vec<(String, Key)>,
    /// Claims for which a volume is to be made: set the annotation [`SELECTED_NODE`].
    pub provision: Vec<Key>,
}

impl VolumePlan {
    pub(crate) fn is_empty(&self) -> bool {
        self.bind.is_empty() && self.provision.is_empty()
    }
}

/// All storage objects, and what was decided about them and is not yet seen in them.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    pub(crate) claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    by_name: BTreeMap<String, Arc<PersistentVolume>>,
    pub(crate) classes: BTreeMap<String, Arc<StorageClass>>,
    pub(crate) csi_nodes: BTreeMap<String, Arc<CSINode>>,
    /// Nodes that were selected for claims.
    selected: BTreeMap<Key, String>,
    /// Volumes that were reserved for claims.
    reserved: BTreeMap<String, Key>,
    /// How many placed pods use a claim.
    users: BTreeMap<Key, i64>,
}

impl Volumes {
    pub(crate) fn use_claims(&mut self, pod: &PodInfo, by: i64) {
        for claim in &pod.claims {
            let key = (pod.key.0.clone(), claim.name.clone());
            let users = self.users.entry(key.clone()).or_default();
            *users += by;
            if *users == 0 {
                self.users.remove(&key);
            }
        }
    }

    /// Remembers a plan until the objects show it.
    pub(crate) fn assume(&mut self, plan: &VolumePlan, node: &str) {
        for (volume, claim) in &plan.bind {
            self.reserved.insert(volume.clone(), claim.clone());
        }
        for key in &plan.provision {
            // What the claim says itself is not remembered, so that it is noticed when it goes.
            if self.claims.get(key).and_then(|claim| selected_node(claim)).is_none() {
                self.selected.insert(key.clone(), node.to_owned());
            }
        }
    }

    pub(crate) fn forget(&mut self, plan: &VolumePlan) {
        for (volume, _) in &plan.bind {
            self.reserved.remove(volume);
        }
        for claim in &plan.provision {
            self.selected.remove(claim);
        }
    }

    fn claim(&self, pod: &PodInfo, claim: &ClaimUse) -> Option<&PersistentVolumeClaim> {
        // The key is only built for pods that have claims.
        self.claims.get(&(pod.key.0.clone(), claim.name.clone())).map(|claim| &**claim)
    }

    /// Whether every claim of the pod has its volume.
    pub(crate) fn all_bound(&self, pod: &PodInfo) -> bool {
        pod.claims
            .iter()
            .all(|claim| self.claim(pod, claim).is_some_and(|claim| bound_volume(claim).is_some()))
    }

    /// Whether a claim that was planned for lost its node, as after a failed provisioning.
    pub(crate) fn was_given_up(&self, plan: &VolumePlan, node: &str) -> bool {
        plan.provision.iter().any(|key| {
            let Some(claim) = self.claims.get(key) else { return true };
            bound_volume(claim).is_none()
                && self.selected.get(key).map(String::as_str).or(selected_node(claim)) != Some(node)
        })
    }

    /// The claim as observed; a selection that it shows need not be remembered any more.
    pub(crate) fn set_claim(&mut self, key: &Key, claim: Option<Arc<PersistentVolumeClaim>>) {
        if claim.as_ref().is_none_or(|claim| selected_node(claim).is_some() || bound_volume(claim).is_some())
        {
            self.selected.remove(key);
        }
        set(&mut self.claims, key.clone(), claim);
    }

    pub(crate) fn set_volume(&mut self, name: &str, volume: Option<Arc<PersistentVolume>>) {
        let claimed = |volume: &Arc<PersistentVolume>| {
            volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some())
        };
        if volume.as_ref().is_none_or(claimed) {
            self.reserved.remove(name);
        }
        set(&mut self.by_name, name.to_owned(), volume);
    }

    fn driver_and_handle(&self, key: &Key) -> Option<(String, String)> {
        let claim = self.claims.get(key)?;
        let volume = claim.spec.as_ref()?.volume_name.as_ref().and_then(|name| self.by_name.get(name));
        if let Some(volume) = volume {
            let source = volume.spec.as_ref()?.csi.as_ref()?;
            return Some((source.driver.clone(), source.volume_handle.clone()));
        }
        let class = self.classes.get(class_of(claim))?;
        Some((class.provisioner.clone(), format!("\0{}/{}", key.0, key.1)))
    }

    fn attachments(&self, pod: &PodInfo, found: &mut BTreeSet<(String, String)>) {
        let keys = pod.claims.iter().map(|claim| (pod.key.0.clone(), claim.name.clone()));
        found.extend(keys.filter_map(|key| self.driver_and_handle(&key)));
    }

    /// The smallest free volume for a claim that can be used on this node.
    fn matching_volume(
        &self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        labels: &Labels,
        taken: &BTreeSet<&str>,
    ) -> Option<&str> {
        let spec = claim.spec.as_ref()?;
        let wanted = storage(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
        let selector = spec.selector.as_ref().map(|selector| Selector::parse(Some(selector)));
        let mut best: Option<(Quantity, &str)> = None;
        for (name, volume) in &self.by_name {
            let Some(offer) = volume.spec.as_ref().filter(|_| !taken.contains(name.as_str())) else {
                continue;
            };
            if offer.storage_class_name.as_deref().unwrap_or("") != class_of(claim) {
                continue;
            }
            let reserved = self.reserved.get(name);
            let claimed = offer.claim_ref.as_ref();
            let mine = reserved == Some(key)
                || claimed.is_some_and(|reference| {
                    reference.name.as_deref() == Some(&key.1)
                        && reference.namespace.as_deref() == Some(&key.0)
                        && (reference.uid.as_deref().is_none_or(str::is_empty)
                            || reference.uid == claim.metadata.uid)
                });
            let size = storage(offer.capacity.as_ref());
            let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
            let none = |class: &Option<String>| class.clone().unwrap_or_default();
            if (!mine && (reserved.is_some() || claimed.is_some()))
                || size < wanted
                || mode(&offer.volume_mode) != mode(&spec.volume_mode)
                || none(&offer.volume_attributes_class_name) != none(&spec.volume_attributes_class_name)
                || volume.metadata.deletion_timestamp.is_some()
            {
                continue;
            }
            let reaches = reaches(volume, labels);
            if mine {
                return reaches.then_some(name);
            }
            let available =
                volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available");
            let selected = selector
                .as_ref()
                .is_none_or(|selector| selector.matches(labels_of(volume.metadata.labels.as_ref())));
            let offered = offer.access_modes.as_deref().unwrap_or(&[]);
            let accessible = spec.access_modes.iter().flatten().all(|mode| offered.contains(mode));
            if available
                && selected
                && accessible
                && reaches
                && best.is_none_or(|(smallest, _)| size < smallest)
            {
                best = Some((size, name));
            }
        }
        best.map(|(_, name)| name)
    }
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

fn storage(
    list: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> Quantity {
    list.and_then(|list| list.get("storage")?.0.parse().ok()).unwrap_or_default()
}

fn annotation<'a>(claim: &'a PersistentVolumeClaim, name: &str) -> Option<&'a str> {
    claim.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    annotation(claim, SELECTED_NODE)
}

/// The volume of a claim whose binding is complete.
fn bound_volume(claim: &PersistentVolumeClaim) -> Option<&str> {
    annotation(claim, BIND_COMPLETED)?;
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let in_spec = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    annotation(claim, CLASS_ANNOTATION).or(in_spec).unwrap_or("")
}

fn reaches(volume: &PersistentVolume, labels: &Labels) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    affinity
        .and_then(|affinity| affinity.required.as_ref())
        .is_none_or(|required| volume_reaches(required, labels))
}

/// The volumes of one pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeState {
    bound: Vec<Arc<PersistentVolume>>,
    /// Claims that wait for the pod, smallest first.
    waiting: Vec<(Key, Arc<PersistentVolumeClaim>)>,
    zones: Vec<(&'static str, &'static str, BTreeSet<String>)>,
    attachments: BTreeSet<(String, String)>,
    exclusive: BTreeSet<String>,
    /// How many pods hold an exclusive claim.
    held: i64,
    /// A claim that nobody held when the attempt began is not looked at.
    watches_holders: bool,
    /// A claim made for the pod has a volume that is gone.
    lost: bool,
}

impl VolumeState {
    /// Fails with the reason if the pod cannot go anywhere because of its claims.
    pub(crate) fn new(volumes: &Volumes, pod: &PodInfo) -> Result<Self, String> {
        let mut state = Self::default();
        if pod.claims.is_empty() {
            return Ok(state);
        }
        for used in pod.claims.iter().filter(|used| !used.ephemeral) {
            let name = &used.name;
            let claim = volumes
                .claim(pod, used)
                .ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
            let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or(&[]);
            if modes.iter().any(|mode| mode == "ReadWriteOncePod") {
                state.exclusive.insert(name.clone());
            }
        }
        let users = |name: &String| volumes.users.contains_key(&(pod.key.0.clone(), name.clone()));
        state.held =
            i64::try_from(state.exclusive.iter().filter(|name| users(name)).count()).unwrap_or(i64::MAX);
        state.watches_holders = state.held > 0;

        for used in &pod.claims {
            check_claim(volumes, pod, used)?;
        }
        let mut missing = None;
        for used in &pod.claims {
            let key = (pod.key.0.clone(), used.name.clone());
            let Some(claim) = volumes.claims.get(&key) else { continue };
            if let Some(volume) = bound_volume(claim) {
                match volumes.by_name.get(volume) {
                    Some(volume) => state.add_bound(volume, used.ephemeral),
                    None if used.ephemeral => state.lost = true,
                    None => {
                        missing = missing.or_else(|| Some(format!("persistentvolume {volume:?} not found")));
                    }
                }
                continue;
            }
            let class = volumes.classes.get(class_of(claim));
            let waits =
                class.and_then(|class| class.volume_binding_mode.as_deref()) == Some("WaitForFirstConsumer");
            let named = claim
                .spec
                .as_ref()
                .is_some_and(|spec| spec.volume_name.as_deref().is_some_and(|name| !name.is_empty()));
            if !waits || named {
                return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
            state.waiting.push((key, Arc::clone(claim)));
        }
        if let Some(missing) = missing {
            return Err(missing);
        }
        state.waiting.sort_by_key(|(_, claim)| {
            storage(claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref()))
        });
        volumes.attachments(pod, &mut state.attachments);
        Ok(state)
    }

    fn add_bound(&mut self, volume: &Arc<PersistentVolume>, ephemeral: bool) {
        self.bound.push(Arc::clone(volume));
        let labels = labels_of(volume.metadata.labels.as_ref());
        for (old, new) in ZONE_LABELS.into_iter().filter(|_| !ephemeral) {
            if let Some(value) = labels.get(old) {
                let values = value.split("__").map(|value| value.trim().to_owned()).collect();
                self.zones.push((old, new, values));
            }
        }
    }

    pub(crate) fn filter(
        &self,
        volumes: &Volumes,
        state: &NodeState,
        usage: &Usage,
    ) -> Result<(), Rejection> {
        if self.held > 0 {
            return Err(Rejection::resolvable(IN_USE));
        }
        if self.bound.is_empty() && self.waiting.is_empty() && !self.lost {
            return Ok(());
        }
        self.filter_limits(volumes, state, usage)?;
        let labels = state.labels();
        let mut reasons = vec![];
        if !self.bound.iter().all(|volume| reaches(volume, labels)) {
            reasons.push(WRONG_NODE.into());
        }
        if self.plan(volumes, state).is_none() {
            reasons.push(NO_VOLUME.into());
        }
        if self.lost {
            reasons.push(LOST.into());
        }
        if !reasons.is_empty() {
            return Err(Rejection { reasons: Reasons::Several(reasons), resolvable: false });
        }
        // A cluster of one zone need not label its nodes.
        let labelled = ZONE_LABELS.iter().any(|(label, _)| labels.contains_key(*label));
        let in_zone = |(old, new, values): &(&str, &str, BTreeSet<String>)| {
            labels.get(*old).or_else(|| labels.get(*new)).is_some_and(|value| values.contains(value))
        };
        if labelled && !self.zones.iter().all(in_zone) { Err(Rejection::final_(WRONG_ZONE)) } else { Ok(()) }
    }

    fn filter_limits(&self, volumes: &Volumes, state: &NodeState, usage: &Usage) -> Result<(), Rejection> {
        let Some(csi_node) = volumes.csi_nodes.get(&state.name).filter(|_| !self.attachments.is_empty())
        else {
            return Ok(());
        };
        let drivers = csi_node.spec.drivers.iter();
        let limits: BTreeMap<&str, i32> = drivers
            .filter_map(|driver| Some((driver.name.as_str(), driver.allocatable.as_ref()?.count?)))
            .collect();
        if limits.is_empty() {
            return Ok(());
        }
        let mut attached = BTreeSet::new();
        for pod in usage.pods.values() {
            volumes.attachments(pod, &mut attached);
        }
        let fresh: BTreeSet<_> = self.attachments.difference(&attached).collect();
        for (driver, limit) in limits {
            let new = fresh.iter().filter(|(name, _)| name == driver).count();
            let old = attached.iter().filter(|(name, _)| name == driver).count();
            if new > 0 && i32::try_from(new + old).is_ok_and(|count| count > limit) {
                return Err(Rejection::resolvable(TOO_MANY));
            }
        }
        Ok(())
    }

    /// What would be done for the claims on this node; `None` if it cannot be done there.
    pub(crate) fn plan(&self, volumes: &Volumes, state: &NodeState) -> Option<VolumePlan> {
        let labels = state.labels();
        let mut plan = VolumePlan::default();
        let mut taken = BTreeSet::new();
        for (key, claim) in &self.waiting {
            let selected = volumes.selected.get(key).map(String::as_str).or(selected_node(claim));
            if selected.is_some_and(|selected| selected != state.name) {
                return None;
            }
            let found = volumes.matching_volume(key, claim, labels, &taken).filter(|_| selected.is_none());
            if let Some(volume) = found {
                taken.insert(volume);
                plan.bind.push((volume.to_owned(), key.clone()));
                continue;
            }
            let class = volumes.classes.get(class_of(claim))?;
            if class.provisioner.is_empty()
                || class.provisioner == NO_PROVISIONER
                || !allows(class, state.node.as_ref()?)
            {
                return None;
            }
            plan.provision.push(key.clone());
        }
        Some(plan)
    }

    /// What if another pod came (`by` 1) or left (-1).
    pub(crate) fn change(&mut self, other: &PodInfo, by: i64) {
        if self.watches_holders {
            let shared =
                other.claims.iter().filter(|claim| !claim.ephemeral && self.exclusive.contains(&claim.name));
            self.held += by * i64::try_from(shared.count()).unwrap_or(0);
        }
    }
}

fn check_claim(volumes: &Volumes, pod: &PodInfo, used: &ClaimUse) -> Result<(), String> {
    let name = &used.name;
    let claim = volumes.claim(pod, used).ok_or_else(|| {
        format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
    })?;
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or("");
        return Err(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    let mut owners = claim.metadata.owner_references.iter().flatten();
    if used.ephemeral && !owners.any(|owner| owner.controller == Some(true) && owner.uid == pod.uid) {
        let (namespace, pod_name) = &pod.key;
        return Err(format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{pod_name} (pod is not owner)"
        ));
    }
    Ok(())
}

/// Whether a class makes volumes for this node.
fn allows(class: &StorageClass, node: &Node) -> bool {
    let labels = labels_of(node.metadata.labels.as_ref());
    let terms = class.allowed_topologies.as_deref().unwrap_or(&[]);
    terms.is_empty()
        || terms.iter().any(|term| {
            let expressions = term.match_label_expressions.as_deref().unwrap_or(&[]);
            !expressions.is_empty()
                && expressions
                    .iter()
                    .all(|one| labels.get(&one.key).is_some_and(|value| one.values.contains(value)))
        })
}
