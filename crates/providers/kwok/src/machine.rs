//! A simulated instance, as the Node object that it registers and as the NodeClaim that describes it.

use std::collections::BTreeMap;

use api::names::{annotations, labels, taints};
use api::nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus};
use api::shared::ResourceList;
use cloud::Instance;
use cluster::instance_types::{Wanted, single};
use cluster::objects::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use units::Resources;

use crate::choose::Choice;

/// What provider IDs begin with.
pub const SCHEME: &str = api::names::process::KWOK_PROVIDER_ID;
/// Marks objects as simulated.
const FAKE: &str = "fake";
/// Which deployment of KWOK keeps the nodes, if there are several.
const PARTITION: &str = "a";

/// A simulated instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name of its Node.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// What it has.
    pub capacity: ResourceList,
    /// What pods can use.
    pub allocatable: ResourceList,
}

impl Machine {
    /// The instance that is launched for a claim.
    ///
    /// It has what its type has when it is bought as it is, and what the claim requests beyond that: a resource that
    /// an overlay gave to the type when the claim was planned, and has not any more.
    pub fn launched(name: String, claim: &NodeClaim, wanted: &Wanted<'_>, choice: &Choice<'_>) -> Self {
        let Choice { instance_type, offering } = choice;
        let mut all = claim.metadata.labels.clone().unwrap_or_default();
        let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
        for (key, value) in wanted.settled() {
            set(key, value);
        }
        set(labels::INSTANCE_TYPE, &instance_type.name);
        for requirement in instance_type.requirements.iter().chain(&offering.requirements) {
            if let Some(value) = single(requirement) {
                set(&requirement.key, value);
            }
        }
        set(labels::kwok::INSTANCE_PRICE, &format!("{:.6}", offering.price));
        set(labels::kwok::PARTITION, PARTITION);
        let requests = &claim.spec.resources.requests;
        let capacity = with(requests, &instance_type.capacity_of(offering));
        let allocatable = with(requests, &instance_type.allocatable_of(offering));
        Self::of_claim(name, claim, all, capacity, allocatable)
    }

    /// The instance that was launched for a claim that has been told of it.
    pub fn known(name: String, claim: &NodeClaim) -> Self {
        let status = claim.status.clone().unwrap_or_default();
        let labels = claim.metadata.labels.clone().unwrap_or_default();
        Self::of_claim(name, claim, labels, status.capacity, status.allocatable)
    }

    fn of_claim(
        name: String,
        claim: &NodeClaim,
        mut labels: BTreeMap<String, String>,
        capacity: ResourceList,
        allocatable: ResourceList,
    ) -> Self {
        let host = claim.metadata.name.clone().unwrap_or_default();
        labels.insert(labels::HOSTNAME.to_owned(), host);
        labels.insert(labels::kwok::NODE.to_owned(), FAKE.to_owned());
        let mut annotations = claim.metadata.annotations.clone().unwrap_or_default();
        annotations.insert(annotations::kwok::NODE.to_owned(), FAKE.to_owned());
        Self { name, labels, annotations, capacity, allocatable }
    }

    /// Its Node object, as it registers.
    pub fn node(&self) -> Value {
        let Self { name, labels, annotations, capacity, allocatable } = self;
        let taint = taints::UNREGISTERED;
        json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {
                "providerID": provider_id(name),
                "taints": [{"key": taint.key, "effect": taint.effect}],
            },
            "status": {"capacity": capacity, "allocatable": allocatable, "phase": "Pending"},
        })
    }

    /// The instance as clouds describe them.
    pub fn instance(&self) -> Instance {
        let Self { name, labels, annotations, capacity, allocatable } = self.clone();
        let status = NodeClaimStatus {
            node_name: name.clone(),
            provider_id: provider_id(&name),
            capacity,
            allocatable,
            ..NodeClaimStatus::default()
        };
        let metadata = ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        NodeClaim { metadata, spec: NodeClaimSpec::default(), status: Some(status) }
    }
}

/// What a claim requests, replaced by what there is of it, and what else there is.
fn with(requests: &ResourceList, of_type: &Resources) -> ResourceList {
    let mut all = requests.clone();
    all.extend(of_type.iter().map(|(name, amount)| (name.as_str().to_owned(), *amount)));
    all
}

/// The instance behind a Node.
pub fn instance(node: &Node) -> Instance {
    let owned = |(key, value): (&str, &_)| (key.to_owned(), String::from(Box::<str>::clone(value)));
    let amounts = |(name, amount): (&str, &units::Quantity)| (name.to_owned(), *amount);
    let mut annotations: BTreeMap<String, String> = node.metadata.annotations.iter().map(owned).collect();
    annotations.insert(annotations::kwok::NODE.to_owned(), FAKE.to_owned());
    let machine = Machine {
        name: node.metadata.name.to_string(),
        labels: node.metadata.labels.iter().map(owned).collect(),
        annotations,
        capacity: node.status.capacity.iter().map(amounts).collect(),
        allocatable: node.status.allocatable.iter().map(amounts).collect(),
    };
    let mut instance = machine.instance();
    instance.metadata.creation_timestamp.clone_from(&node.metadata.creation_timestamp);
    instance.metadata.deletion_timestamp.clone_from(&node.metadata.deletion_timestamp);
    instance
}

/// The provider ID of the instance whose Node has this name.
pub fn provider_id(node: &str) -> String {
    format!("{SCHEME}{node}")
}

/// The name of the Node of an instance; none for instances of other clouds.
pub fn node_name(provider_id: &str) -> Option<&str> {
    provider_id.strip_prefix(SCHEME)
}

#[cfg(test)]
mod tests;
