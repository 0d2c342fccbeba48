//! A node and its claim seen as one. Entry: [`join`].
//!
//! Until a node registers, its claim knows best what it will be; until it initialises, the claim fills the gaps
//! that the kubelet still has; afterwards the node speaks for itself.

use std::collections::BTreeMap;

use api::names::{conditions, labels, taints};
use api::nodeclaim::NodeClaim;
use api::provider::{NodeClassKind, Provider};
use api::shared::{ConditionStatus, NodeClassReference};
use engine::model::{Effect, Taint};
use units::{Format, Quantity, Resources};

use super::tables::effect;
use crate::objects::Node;
use crate::reason::{Ignored, Reason};

/// A node, its claim, or both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StateNode<'a> {
    pub(super) node: Option<&'a Node>,
    pub(super) claim: Option<&'a NodeClaim>,
}

/// The nodes and claims of a cluster.
pub(super) struct Joined<'a> {
    /// Those that count. Initialised nodes come first, then names decide.
    pub(super) states: Vec<StateNode<'a>>,
    /// Nodes that take no pods. Pods that are on them are still there.
    pub(super) bystanders: Vec<&'a Node>,
}

/// Joins nodes and claims by the instance behind them.
pub(super) fn join<'a>(
    nodes: &'a [Node],
    claims: &'a [NodeClaim],
    provider: Provider,
    ignored: &mut Vec<Ignored>,
) -> Joined<'a> {
    let mut bystanders = Vec::new();
    let mut joined = BTreeMap::<&str, StateNode<'a>>::new();
    let mut ignore = |kind, name: &str, reason| {
        ignored.push(Ignored { kind, namespace: None, name: name.into(), reason });
    };
    for claim in claims {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let id = claim.status.as_ref().map_or("", |status| &status.provider_id);
        if let Err(reason) = check_node_class(&claim.spec.node_class_ref, provider) {
            ignore("NodeClaim", name, reason);
        } else if id.is_empty() {
            ignore("NodeClaim", name, Reason::NotLaunched);
        } else if joined.get(id).is_some_and(|state| state.claim.is_some()) {
            ignore("NodeClaim", name, Reason::Duplicate { field: "status.providerID", value: id.into() });
        } else {
            joined.entry(id).or_default().claim = Some(claim);
        }
    }
    for node in nodes {
        let (name, own) = (&*node.metadata.name, &node.metadata.labels);
        let is_managed = !own.text(labels::NODEPOOL).is_empty();
        let is_initialized = !own.text(labels::INITIALIZED).is_empty();
        let id = if node.spec.provider_id.is_empty() { name } else { &node.spec.provider_id };
        let reason = if is_managed && node.spec.provider_id.is_empty() {
            Reason::NoProviderId
        } else if is_managed && !is_initialized && own.text(labels::INSTANCE_TYPE).is_empty() {
            Reason::NoInstanceType
        } else if joined.get(id).is_some_and(|state| state.node.is_some()) {
            Reason::Duplicate { field: "spec.providerID", value: id.into() }
        } else {
            joined.entry(id).or_default().node = Some(node);
            continue;
        };
        ignore("Node", name, reason);
        bystanders.push(node);
    }
    let mut states: Vec<StateNode<'a>> = joined.into_values().collect();
    states.sort_by_key(|state| (!state.is_initialized(), state.name()));
    Joined { states, bystanders }
}

/// Fails if a NodeClass is not one of the provider's.
pub(super) fn check_node_class(reference: &NodeClassReference, provider: Provider) -> Result<(), Reason> {
    let NodeClassKind { group, kind, .. } = provider.node_class();
    if reference.group == group && reference.kind == kind {
        return Ok(());
    }
    let found = format!("{}/{}", reference.group, reference.kind);
    Err(Reason::OtherProvider { found, expected: format!("{group}/{kind}") })
}

impl<'a> StateNode<'a> {
    /// Whether the labels of the node say so; nodes without a claim are taken as they are.
    fn has_mark(&self, label: &str) -> bool {
        self.claim.is_none() || self.node.is_some_and(|node| node.metadata.labels.text(label) == "true")
    }

    /// Whether the node was matched with its claim.
    fn is_registered(&self) -> bool {
        self.has_mark(labels::REGISTERED)
    }

    /// Whether the node is ready for pods.
    pub(super) fn is_initialized(&self) -> bool {
        self.has_mark(labels::INITIALIZED)
    }

    /// The claim, where it speaks for the node: before registration.
    fn claim_before_registration(&self) -> Option<&'a NodeClaim> {
        self.claim.filter(|_| !self.is_registered())
    }

    pub(super) fn name(&self) -> &'a str {
        match (self.claim_before_registration(), self.node) {
            (None, Some(node)) => &node.metadata.name,
            (claim, _) => claim.and_then(|claim| claim.metadata.name.as_deref()).unwrap_or_default(),
        }
    }

    pub(super) fn labels(&self) -> Vec<(&'a str, &'a str)> {
        match (self.claim_before_registration(), self.node) {
            (None, Some(node)) => node.metadata.labels.iter().map(|(k, v)| (k, &**v)).collect(),
            (claim, _) => {
                let labels = claim.and_then(|claim| claim.metadata.labels.as_ref());
                labels.into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str())).collect()
            }
        }
    }

    /// Taints that are here to stay.
    pub(super) fn taints(&self) -> Vec<Taint> {
        let mut taints: Vec<Taint> = match (self.claim_before_registration(), self.node) {
            (None, Some(node)) => node_taints(node),
            (claim, _) => convert_taints(claim.and_then(|claim| claim.spec.taints.as_deref())),
        };
        let Some(claim) = self.claim else { return taints };
        if !self.is_initialized() || condition_is_true(claim, conditions::node_claim::REBOOTING) {
            let startup = convert_taints(claim.spec.startup_taints.as_deref());
            taints.retain(|taint| {
                let is_startup = startup.iter().any(|s| s.key == taint.key && s.effect == taint.effect);
                !is_startup && !is_temporary(taint)
            });
        }
        taints
    }

    /// What the node has, itself as one node included.
    pub(super) fn capacity(&self) -> Resources {
        let mut capacity = self.amounts(|node| &node.status.capacity, |status| &status.capacity);
        capacity.set(api::names::resources::NODES, Quantity::from_units(1, Format::DecimalSi));
        capacity
    }

    /// What pods may use in all.
    pub(super) fn allocatable(&self) -> Resources {
        self.amounts(|node| &node.status.allocatable, |status| &status.allocatable)
    }

    /// Amounts of the node; before it is initialised those of the claim replace what is zero or missing.
    fn amounts(
        &self,
        of_node: fn(&Node) -> &crate::objects::pod::ResourceList,
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

    /// Whether the node is on its way out.
    pub(super) fn is_deleting(&self) -> bool {
        match (self.claim, self.node) {
            (Some(claim), _) => {
                claim.metadata.deletion_timestamp.is_some()
                    || condition_is_true(claim, conditions::node_claim::INSTANCE_TERMINATING)
            }
            (None, node) => node.is_some_and(|node| node.metadata.is_deleting()),
        }
    }
}

/// Taints of a Node object.
pub(super) fn node_taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.taints.iter();
    taints
        .map(|taint| Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
            // A taint without an effect is not valid; the safe side is that it keeps pods away.
            effect: effect(taint.effect).unwrap_or(Effect::NoSchedule),
        })
        .collect()
}

/// Whether a taint vanishes by itself while a node starts.
fn is_temporary(taint: &Taint) -> bool {
    let mut known = taints::KNOWN_EPHEMERAL.iter().chain([&taints::REBOOTING]);
    taint.key.starts_with(taints::KNOWN_EPHEMERAL_PREFIX)
        || known.any(|known| *known.key == *taint.key && effect_of_text(known.effect) == taint.effect)
}

fn condition_is_true(claim: &NodeClaim, type_: &str) -> bool {
    let conditions = claim.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|c| c.type_ == type_ && c.status == ConditionStatus::True)
}

/// Taints of a NodePool or NodeClaim, whose effects the CRD and the validation have checked.
pub(super) fn convert_taints(taints: Option<&[api::shared::Taint]>) -> Vec<Taint> {
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
