//! A node and its claim seen as one. Entries: [`StateNode`] and [`join`].
//!
//! Until a node registers, its claim knows best what it will be; until it initialises, the claim fills the gaps
//! that the kubelet still has; afterwards the node speaks for itself.

use std::collections::BTreeMap;

use api::conditions::HasConditions;
use api::names::{annotations, conditions, labels, taints};
use api::nodeclaim::NodeClaim;
use api::provider::{NodeClassKind, Provider};
use api::shared::NodeClassReference;
use engine::model::{Effect, Taint};
use jiff::Timestamp;
use units::{Format, Quantity, Resources};

use crate::objects::{self, Node};
use crate::reason::{Ignored, Reason};

/// A node, its claim, or both, with what only this process knows of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateNode<'a> {
    /// The Node, once it has joined.
    pub node: Option<&'a Node>,
    /// The NodeClaim; nodes that somebody else manages have none.
    pub claim: Option<&'a NodeClaim>,
    /// Whether this process has decided that it goes, which the API does not know yet.
    pub marked: bool,
    /// Until when pods are expected on it.
    pub nominated_until: Option<Timestamp>,
}

/// The nodes and claims of a cluster.
#[derive(Debug, Default)]
pub struct Joined<'a> {
    /// Those that count. Initialised nodes come first, then names decide.
    pub nodes: Vec<StateNode<'a>>,
    /// Nodes that take no pods. Pods that are on them are still there.
    pub bystanders: Vec<&'a Node>,
    /// Objects that have no part in it, and why.
    pub ignored: Vec<Ignored>,
}

/// Joins nodes and claims by the instance behind them.
pub fn join<'a>(
    nodes: impl IntoIterator<Item = &'a Node>,
    claims: impl IntoIterator<Item = &'a NodeClaim>,
    provider: Provider,
) -> Joined<'a> {
    let mut all = Joined::default();
    let mut joined = BTreeMap::<&str, StateNode<'a>>::new();
    let mut ignore = |kind, name: &str, reason| {
        all.ignored.push(Ignored { kind, namespace: None, name: name.into(), reason });
    };
    for claim in claims {
        let id = claim_provider_id(claim);
        let reason = if let Err(reason) = check_node_class(&claim.spec.node_class_ref, provider) {
            reason
        } else if id.is_empty() {
            Reason::NotLaunched
        } else if take(&mut joined.entry(id).or_default().claim, claim) {
            continue;
        } else {
            Reason::Duplicate { field: "status.providerID", value: id.into() }
        };
        ignore("NodeClaim", claim.metadata.name.as_deref().unwrap_or_default(), reason);
    }
    for node in nodes {
        let reason = match node_provider_id(node) {
            Ok(id) if take(&mut joined.entry(id).or_default().node, node) => continue,
            Ok(id) => Reason::Duplicate { field: "spec.providerID", value: id.into() },
            Err(reason) => reason,
        };
        ignore("Node", &node.metadata.name, reason);
        all.bystanders.push(node);
    }
    all.nodes = joined.into_values().collect();
    all.nodes.sort_by_cached_key(|state| (!state.is_settled(), state.name()));
    all
}

/// Fills a place unless it is taken, and says whether it did.
fn take<T>(place: &mut Option<T>, value: T) -> bool {
    let free = place.is_none();
    place.get_or_insert(value);
    free
}

/// The instance of a claim; empty while it is not launched.
pub fn claim_provider_id(claim: &NodeClaim) -> &str {
    claim.status.as_ref().map_or("", |status| &status.provider_id)
}

/// The instance of a node. One that nobody's pool manages need not say, and goes by its name.
/// Fails for nodes that do not count yet, because what they say is not complete.
pub fn node_provider_id(node: &Node) -> Result<&str, Reason> {
    let own = &node.metadata.labels;
    let is_managed = !own.text(labels::NODEPOOL).is_empty();
    let is_initialized = !own.text(labels::INITIALIZED).is_empty();
    if is_managed && node.spec.provider_id.is_empty() {
        return Err(Reason::NoProviderId);
    }
    if is_managed && !is_initialized && own.text(labels::INSTANCE_TYPE).is_empty() {
        return Err(Reason::NoInstanceType);
    }
    Ok(if node.spec.provider_id.is_empty() { &node.metadata.name } else { &node.spec.provider_id })
}

/// Fails if a NodeClass is not one of the provider's.
pub fn check_node_class(reference: &NodeClassReference, provider: Provider) -> Result<(), Reason> {
    let NodeClassKind { group, kind, .. } = provider.node_class();
    if reference.group == group && reference.kind == kind {
        return Ok(());
    }
    let found = format!("{}/{}", reference.group, reference.kind);
    Err(Reason::OtherProvider { found, expected: format!("{group}/{kind}") })
}

impl<'a> StateNode<'a> {
    /// The instance behind it.
    pub fn provider_id(&self) -> &'a str {
        let of_claim = || self.claim.map_or("", claim_provider_id);
        self.node.map_or_else(of_claim, |node| match &*node.spec.provider_id {
            "" => &node.metadata.name,
            id => id,
        })
    }

    /// Whether it has a claim, so that it is ours to disrupt.
    pub fn is_managed(&self) -> bool {
        self.claim.is_some()
    }

    /// Whether the labels of the node say so; nodes without a claim are taken as they are.
    fn has_mark(&self, label: &str) -> bool {
        self.claim.is_none() || self.node.is_some_and(|node| node.metadata.labels.text(label) == "true")
    }

    /// Whether the node was matched with its claim.
    pub fn is_registered(&self) -> bool {
        self.has_mark(labels::REGISTERED)
    }

    /// Whether the node is ready for pods.
    pub fn is_initialized(&self) -> bool {
        self.has_mark(labels::INITIALIZED)
    }

    /// Whether pods that run elsewhere can be moved to it: it is ready for pods, and not about to go down.
    pub fn is_settled(&self) -> bool {
        self.is_initialized() && !self.is_rebooting()
    }

    /// Whether the kubelet says that it is ready; a node that is not there is not.
    pub fn is_ready(&self) -> bool {
        self.node.is_some_and(Node::is_ready)
    }

    /// The claim, where it speaks for the node: before registration.
    fn claim_before_registration(&self) -> Option<&'a NodeClaim> {
        self.claim.filter(|_| !self.is_registered())
    }

    /// Who speaks for it: the Node, or the claim until it is registered.
    fn speaker(&self) -> Speaker<'a> {
        match (self.claim_before_registration(), self.node) {
            (None, Some(node)) => Speaker::Node(node),
            (claim, _) => Speaker::Claim(claim),
        }
    }

    /// The name of the node, or that of its claim before it is registered.
    pub fn name(&self) -> &'a str {
        match self.speaker() {
            Speaker::Node(node) => &node.metadata.name,
            Speaker::Claim(claim) => claim.and_then(|it| it.metadata.name.as_deref()).unwrap_or_default(),
        }
    }

    /// What its host name label says, otherwise its name.
    pub fn hostname(&self) -> &'a str {
        match self.label(labels::HOSTNAME) {
            "" => self.name(),
            hostname => hostname,
        }
    }

    /// All labels, in the order of keys.
    pub fn labels(&self) -> Vec<(&'a str, &'a str)> {
        match self.speaker() {
            Speaker::Node(node) => node.metadata.labels.iter().map(|(k, v)| (k, &**v)).collect(),
            Speaker::Claim(claim) => {
                let labels = claim.and_then(|claim| claim.metadata.labels.as_ref());
                labels.into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str())).collect()
            }
        }
    }

    /// The value of a label; empty when absent.
    pub fn label(&self, key: &str) -> &'a str {
        match self.speaker() {
            Speaker::Node(node) => node.metadata.labels.text(key),
            Speaker::Claim(claim) => {
                let labels = claim.and_then(|claim| claim.metadata.labels.as_ref());
                labels.and_then(|labels| labels.get(key)).map_or("", |value| value)
            }
        }
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        match self.speaker() {
            Speaker::Node(node) => node.metadata.annotations.get(key).map(|value| &**value),
            Speaker::Claim(claim) => {
                let annotations = claim.and_then(|claim| claim.metadata.annotations.as_ref());
                annotations.and_then(|all| all.get(key)).map(String::as_str)
            }
        }
    }

    /// The NodePool it belongs to; empty if to none.
    pub fn pool(&self) -> &'a str {
        self.label(labels::NODEPOOL)
    }

    /// Whether its owner keeps it from voluntary disruption. Nodes know no durations.
    pub fn is_protected(&self) -> bool {
        self.annotation(annotations::DO_NOT_DISRUPT) == Some("true")
    }

    /// Taints that are here to stay.
    pub fn taints(&self) -> Vec<Taint> {
        let mut taints: Vec<Taint> = match self.speaker() {
            Speaker::Node(node) => node_taints(node),
            Speaker::Claim(claim) => convert_taints(claim.and_then(|claim| claim.spec.taints.as_deref())),
        };
        let Some(claim) = self.claim else { return taints };
        let is_rebooting = self.is_rebooting();
        if !self.is_initialized() || is_rebooting {
            let startup = convert_taints(claim.spec.startup_taints.as_deref());
            taints.retain(|taint| {
                let is_startup = startup.iter().any(|s| s.key == taint.key && s.effect == taint.effect);
                let ends_with_boot = is_rebooting && is_same(taint, taints::REBOOTING);
                !is_startup && !ends_with_boot && !is_temporary(taint)
            });
        }
        taints
    }

    /// What the node has, itself as one node included.
    pub fn capacity(&self) -> Resources {
        let mut capacity = self.amounts(|node| &node.status.capacity, |status| &status.capacity);
        capacity.set(api::names::resources::NODES, Quantity::from_units(1, Format::DecimalSi));
        capacity
    }

    /// What pods may use in all.
    pub fn allocatable(&self) -> Resources {
        self.amounts(|node| &node.status.allocatable, |status| &status.allocatable)
    }

    /// Amounts of the node; before it is initialised those of the claim replace what is zero or missing.
    fn amounts(
        &self,
        of_node: fn(&Node) -> &objects::pod::ResourceList,
        of_claim: fn(&api::nodeclaim::NodeClaimStatus) -> &api::shared::ResourceList,
    ) -> Resources {
        let own = self.node.into_iter().flat_map(|node| of_node(node).iter());
        let mut amounts: Resources = own.map(|(name, quantity)| (name, *quantity)).collect();
        let claim = self.claim.filter(|_| !self.is_initialized());
        let status = claim.and_then(|claim| claim.status.as_ref());
        for (name, quantity) in status.into_iter().flat_map(of_claim) {
            if amounts.amount(name).is_zero() {
                amounts.set(name.as_str(), *quantity);
            }
        }
        amounts
    }

    /// Whether a condition of the claim is there and true.
    pub fn has_condition(&self, type_: &str) -> bool {
        self.claim.is_some_and(|claim| claim.is_true(type_))
    }

    /// Whether the cloud is about to terminate the instance.
    pub fn is_instance_terminating(&self) -> bool {
        self.has_condition(conditions::node_claim::INSTANCE_TERMINATING)
    }

    /// Whether it was taken down to be booted again.
    pub fn is_rebooting(&self) -> bool {
        self.has_condition(conditions::node_claim::REBOOTING)
    }

    /// Whether the API knows that it is on its way out.
    pub fn is_deleting(&self) -> bool {
        match (self.claim, self.node) {
            (Some(claim), _) => claim.metadata.deletion_timestamp.is_some() || self.is_instance_terminating(),
            (None, node) => node.is_some_and(|node| node.metadata.is_deleting()),
        }
    }

    /// Whether it is on its way out, or this process has decided so.
    pub fn is_marked_for_deletion(&self) -> bool {
        self.marked || self.is_deleting()
    }

    /// Whether pods are expected on it, so that it must not be disrupted.
    pub fn is_nominated(&self, now: Timestamp) -> bool {
        self.nominated_until.is_some_and(|until| now < until)
    }
}

/// Who speaks for a state node.
enum Speaker<'a> {
    Node(&'a Node),
    Claim(Option<&'a NodeClaim>),
}

/// Taints of a Node object.
pub(crate) fn node_taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.taints.iter();
    taints
        .map(|taint| Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
            effect: match taint.effect {
                // A taint without an effect is not valid; the safe side is that it keeps pods away.
                objects::Effect::Any | objects::Effect::NoSchedule => Effect::NoSchedule,
                objects::Effect::PreferNoSchedule => Effect::PreferNoSchedule,
                objects::Effect::NoExecute => Effect::NoExecute,
            },
        })
        .collect()
}

/// Whether a taint vanishes by itself while a node starts.
fn is_temporary(taint: &Taint) -> bool {
    taint.key.starts_with(taints::KNOWN_EPHEMERAL_PREFIX)
        || taints::KNOWN_EPHEMERAL.iter().any(|known| is_same(taint, *known))
}

/// Whether key and effect are the same; values do not count.
fn is_same(taint: &Taint, known: taints::NodeTaint) -> bool {
    *known.key == *taint.key && effect_of_text(known.effect) == taint.effect
}

/// Taints of a NodePool or NodeClaim, whose effects the CRD and the validation have checked.
pub(crate) fn convert_taints(taints: Option<&[api::shared::Taint]>) -> Vec<Taint> {
    let taints = taints.unwrap_or_default().iter();
    taints
        .map(|taint| Taint {
            key: taint.key.as_str().into(),
            value: taint.value.as_str().into(),
            effect: effect_of_text(&taint.effect),
        })
        .collect()
}

fn effect_of_text(effect: &str) -> Effect {
    match effect {
        taints::PREFER_NO_SCHEDULE => Effect::PreferNoSchedule,
        taints::NO_EXECUTE => Effect::NoExecute,
        _ => Effect::NoSchedule,
    }
}

#[cfg(test)]
mod tests;
