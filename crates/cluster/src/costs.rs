//! What it costs to disrupt pods and nodes, and what a node costs. Entry: [`Costs`].

use api::names::{annotations, labels};
use api::nodeclaim::NodeClaim;
use api::shared::Requirement;
use jiff::Timestamp;

use crate::eligibility::{is_reschedulable, speaks_of_disruption};
use crate::instance_types::InstanceType;
use crate::objects::Pod;
use crate::state_node::StateNode;

/// What disrupting any node costs, whatever runs on it.
const NODE: f64 = 1.0;

/// How the costs of pods are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Whether `controller.kubernetes.io/pod-deletion-cost` counts. It does not where this process writes it.
    pub pod_deletion_cost: bool,
}

/// An annotation that does not say what evicting a pod costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: invalid value {value:?}; expected an integer of 32 bits")]
pub struct InvalidCost {
    /// The annotation.
    pub annotation: &'static str,
    /// What it says.
    pub value: Box<str>,
}

impl Default for Costs {
    fn default() -> Self {
        Self { pod_deletion_cost: true }
    }
}

impl Costs {
    /// What the owner of a pod says that its eviction costs. An annotation that is there but cannot be understood
    /// counts as nothing; it does not make way for the other one.
    pub fn stated(self, pod: &Pod) -> Result<Option<i32>, InvalidCost> {
        if !speaks_of_disruption(pod) {
            return Ok(None);
        }
        let read = |annotation| pod.metadata.annotations.get(annotation).map(|value| (annotation, value));
        let other = || read(annotations::POD_DELETION_COST).filter(|_| self.pod_deletion_cost);
        let Some((annotation, value)) = read(annotations::DISRUPTION_COST).or_else(other) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|_| InvalidCost { annotation, value: value.clone() })
    }

    /// What evicting a pod costs, about 1; negative for those that should go first.
    pub fn eviction(self, pod: &Pod) -> f64 {
        let stated = self.stated(pod).ok().flatten().unwrap_or_default();
        let priority = pod.spec.priority.unwrap_or_default();
        let cost = 1.0 + f64::from(stated) / 2_f64.powi(27) + f64::from(priority) / 2_f64.powi(25);
        cost.clamp(-10.0, 10.0)
    }

    /// What evicting pods costs in all.
    pub fn rescheduling<'p>(self, pods: impl IntoIterator<Item = &'p Pod>) -> f64 {
        pods.into_iter().map(|pod| self.eviction(pod)).sum()
    }

    /// What disrupting a node costs with all its pods, the less the sooner it expires anyway.
    pub fn disruption<'p>(
        self,
        pods: impl IntoIterator<Item = &'p Pod>,
        claim: &NodeClaim,
        now: Timestamp,
    ) -> f64 {
        self.rescheduling(pods) * lifetime_remaining(claim, now)
    }

    /// What moving the pods of a node costs that have to be moved. A node at [`is_empty`] has none.
    pub fn reschedule_disruption<'p>(self, pods: impl IntoIterator<Item = &'p Pod>) -> f64 {
        let moved = pods.into_iter().filter(|pod| is_reschedulable(pod));
        NODE + moved.map(|pod| self.eviction(pod).max(0.0)).sum::<f64>()
    }
}

/// Whether a node with this [`Costs::reschedule_disruption`] has nothing worth moving.
pub fn is_empty(reschedule_disruption: f64) -> bool {
    reschedule_disruption <= NODE
}

/// How much of its life a claim has before it, from 1 to 0; one that never expires stays at 1.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
pub fn lifetime_remaining(claim: &NodeClaim, now: Timestamp) -> f64 {
    let Some(lifetime) = claim.spec.expire_after.duration() else { return 1.0 };
    let Some(created) = &claim.metadata.creation_timestamp else { return 1.0 };
    let lifetime = lifetime.as_nanos() as f64;
    if lifetime <= 0.0 {
        return 0.0;
    }
    let age = now.duration_since(created.0).as_nanos() as f64;
    ((lifetime - age) / lifetime).clamp(0.0, 1.0)
}

/// What a node costs per hour: the price of its type in its zone and capacity type, whether that can still be
/// bought or not; zero when unknown.
pub fn price(node: &StateNode<'_>, types: &[InstanceType]) -> f64 {
    price_by_labels(|key| node.label(key), types)
}

/// What a node with some labels costs per hour, as [`price`] says.
pub fn price_by_labels<'a>(label: impl Fn(&str) -> &'a str, types: &[InstanceType]) -> f64 {
    let name = label(labels::INSTANCE_TYPE);
    let Some(instance_type) = types.iter().find(|each| each.name == name) else { return 0.0 };
    let says = |requirements: &[Requirement], key: &str| {
        let own = requirements.iter().find(|each| each.key == key);
        own.is_some_and(|own| own.values.as_slice() == [label(key)])
    };
    let found = instance_type.offerings.iter().find(|offering| {
        says(&offering.requirements, labels::ZONE) && says(&offering.requirements, labels::CAPACITY_TYPE)
    });
    found.map_or(0.0, |offering| if offering.price.is_nan() { 0.0 } else { offering.price })
}

/// What is saved per cost of disruption.
pub fn savings_ratio(price: f64, reschedule_disruption: f64) -> f64 {
    price / reschedule_disruption
}

#[cfg(test)]
mod tests;
