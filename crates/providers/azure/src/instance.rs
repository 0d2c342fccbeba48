//! A machine as the core wants to see it.

use std::collections::BTreeMap;

use api::hash::{AKS_NODE_CLASS_HASH_VERSION, aks_node_class_hash};
use api::labels::LabelSets;
use api::names::annotations::azure as annotations;
use api::names::labels::{self, azure};
use api::nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus};
use api::shared::ResourceList;
use cluster::instance_types::{InstanceType, Wanted, single};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use units::Resources;

use crate::in_place::Goal;
use crate::vm::Instance;
use crate::zone::Scope;

/// What a claim is told about what its machine was made from.
pub fn launch_annotations(
    spec: &api::azure::AKSNodeClassSpec,
    goal: &Goal,
    machine_id: Option<&str>,
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        (annotations::NODE_CLASS_HASH, aks_node_class_hash(spec)),
        (annotations::NODE_CLASS_HASH_VERSION, AKS_NODE_CLASS_HASH_VERSION.to_owned()),
        (annotations::IN_PLACE_UPDATE_HASH, goal.hash()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if let Some(id) = machine_id {
        all.insert(annotations::AKS_MACHINE_RESOURCE_ID.to_owned(), id.to_owned());
    }
    all
}

/// A machine as a NodeClaim. What is not known of its type is left out.
pub fn node_claim(instance: &Instance, instance_type: Option<&InstanceType>, now: Timestamp) -> NodeClaim {
    let status = NodeClaimStatus {
        provider_id: instance.provider_id.clone(),
        image_id: instance.image_id.clone(),
        capacity: instance_type.map(|each| amounts(&each.capacity)).unwrap_or_default(),
        allocatable: instance_type.map(|each| amounts(&each.allocatable())).unwrap_or_default(),
        ..NodeClaimStatus::default()
    };
    let machine = instance.machine_id.as_ref();
    let metadata = ObjectMeta {
        name: Some(instance.name.clone()).filter(|name| !name.is_empty()),
        labels: Some(node_labels(instance, instance_type)),
        annotations: machine.map(|id| [(annotations::AKS_MACHINE_RESOURCE_ID.to_owned(), id.clone())].into()),
        // One whose age nobody knows counts as new, so that it is left alone for a while.
        creation_timestamp: Some(Time(instance.created.unwrap_or(now))),
        deletion_timestamp: instance.is_deleting.then_some(Time(now)),
        ..ObjectMeta::default()
    };
    NodeClaim { metadata, spec: NodeClaimSpec::default(), status: Some(status) }
}

fn node_labels(instance: &Instance, instance_type: Option<&InstanceType>) -> BTreeMap<String, String> {
    let of_type = instance_type.into_iter().flat_map(|each| &each.requirements);
    let mut all: BTreeMap<String, String> =
        of_type.filter_map(|label| Some((label.key.clone(), single(label)?.to_owned()))).collect();
    let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
    let is_spot = instance.capacity_type == api::names::values::capacity_type::SPOT;
    let priority = if is_spot { "spot" } else { "regular" };
    set(labels::ZONE, &instance.zone);
    set(azure::PLACEMENT_SCOPE, Scope::of(&instance.zone).as_str());
    set(labels::CAPACITY_TYPE, instance.capacity_type);
    set(azure::AKS_SCALE_SET_PRIORITY, priority);
    set(azure::AKS_PRIORITY, priority);
    set(azure::SKU_STORAGE_ULTRA_SSD, if instance.ultra_ssd { "true" } else { "false" });
    if let Some(pool) = &instance.node_pool {
        set(labels::NODEPOOL, pool);
    }
    all
}

/// Labels that a claim asks for in one value, of those that types leave open: so that pods that select by them find
/// the node before it is there.
pub fn settled_labels(claim: &NodeClaim, sets: &LabelSets) -> BTreeMap<String, String> {
    let Ok(wanted) = Wanted::new(&claim.spec.requirements, sets) else { return BTreeMap::new() };
    let is_ours = |key: &str| {
        let domain = key.split('/').next().unwrap_or_default();
        (domain == azure::DOMAIN || domain == azure::AKS_DOMAIN) && sets.is_well_known(key)
    };
    let settled = wanted.settled().filter(|(key, _)| is_ours(key));
    settled.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Amounts without those of nothing.
fn amounts(all: &Resources) -> ResourceList {
    let some = all.iter().filter(|(_, amount)| !amount.is_zero());
    some.map(|(name, amount)| (name.as_str().to_owned(), *amount)).collect()
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;
    use serde_json::json;

    use super::*;

    // azure.md 2.3: labels on the NodeClaim
    #[test]
    fn labels_are_those_of_the_type_and_of_the_machine_itself() {
        let instance = Instance {
            name: "a".to_owned(),
            provider_id: "azure:///1".to_owned(),
            size: "Standard_D2s_v5".to_owned(),
            zone: "westus2-1".to_owned(),
            capacity_type: "spot",
            image_id: String::new(),
            created: None,
            is_deleting: false,
            node_pool: Some("pool".to_owned()),
            ultra_ssd: false,
            tags: BTreeMap::new(),
            machine_id: None,
        };
        let requirements = serde_json::from_value(json!([
            {"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]},
            {"key": "kubernetes.azure.com/mode", "operator": "In", "values": ["system", "user"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["westus2-1", "westus2-2"]},
        ]))
        .unwrap();
        let kind = InstanceType { requirements, ..InstanceType::default() };
        let now = Timestamp::constant(1_000, 0);
        let claim = node_claim(&instance, Some(&kind), now);
        let labels = claim.metadata.labels.unwrap();
        let expected = [
            ("karpenter.azure.com/placement-scope", "zonal"),
            ("karpenter.azure.com/sku-family", "D"),
            ("karpenter.azure.com/sku-storage-ultra-ssd", "false"),
            ("karpenter.sh/capacity-type", "spot"),
            ("karpenter.sh/nodepool", "pool"),
            ("kubernetes.azure.com/priority", "spot"),
            ("kubernetes.azure.com/scalesetpriority", "spot"),
            ("topology.kubernetes.io/zone", "westus2-1"),
        ];
        let found: Vec<(&str, &str)> =
            labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
        // azure.md 25.8: VM missing timeCreated → now
        assert_eq!(claim.metadata.creation_timestamp.unwrap().0, now);
    }

    // azure.md 2.3: all single-valued well-known Azure requirements of the request
    #[test]
    fn labels_that_a_claim_settles_are_known_at_once() {
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
            "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "default"}, "requirements": [
                {"key": "kubernetes.azure.com/mode", "operator": "In", "values": ["system"]},
                {"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D", "E"]},
                {"key": "example.com/own", "operator": "In", "values": ["a"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ]},
        }))
        .unwrap();
        let settled = settled_labels(&claim, &LabelSets::for_provider(Provider::Azure));
        assert_eq!(settled, [("kubernetes.azure.com/mode".to_owned(), "system".to_owned())].into());
    }
}
