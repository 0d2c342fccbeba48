//! Claims as the template of a NodePool has them, without any pods in mind.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::hash::{NODE_POOL_HASH_VERSION, node_pool_hash};
use api::names::{annotations, labels};
use api::nodeclaim::{NodeClaim, NodeClaimSpec, ResourceRequirements};
use api::nodepool::NodePool;
use api::shared::{Operator, Requirement};
use cluster::payload::node_class_label;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::provisioner::outcome::NewClaim;

/// A claim of a NodePool that can become whatever the pool allows.
pub(crate) fn claim(pool: &Arc<NodePool>) -> NewClaim {
    let name = pool.metadata.name.clone().unwrap_or_default();
    let template = &pool.spec.template;
    let class = &template.spec.node_class_ref;
    let own = own_labels(pool);
    let requirements = requirements(pool);
    let mut notes = template.metadata.annotations.clone().unwrap_or_default();
    notes.insert(annotations::NODEPOOL_HASH.to_owned(), node_pool_hash(pool));
    notes.insert(annotations::NODEPOOL_HASH_VERSION.to_owned(), NODE_POOL_HASH_VERSION.to_owned());
    let owner = OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodePool".to_owned(),
        name: name.clone(),
        uid: pool.metadata.uid.clone().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    };
    let claim = NodeClaim {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            labels: Some(own),
            annotations: Some(notes),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: NodeClaimSpec {
            taints: template.spec.taints.clone(),
            startup_taints: template.spec.startup_taints.clone(),
            requirements,
            resources: ResourceRequirements::default(),
            node_class_ref: class.clone(),
            termination_grace_period: template.spec.termination_grace_period,
            expire_after: template.spec.expire_after.clone(),
        },
        status: None,
    };
    NewClaim { claim, pool: Arc::clone(pool), types: Vec::new(), min_values_relaxed: false, pods: Vec::new() }
}

/// What every node of a NodePool is.
pub(crate) fn requirements(pool: &NodePool) -> Vec<Requirement> {
    let mut all = pool.spec.template.spec.requirements.clone();
    all.extend(own_labels(pool).into_iter().map(|(key, value)| Requirement {
        key,
        operator: Operator::In,
        values: vec![value],
        min_values: None,
    }));
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

/// Labels of the template and of the owners.
fn own_labels(pool: &NodePool) -> BTreeMap<String, String> {
    let class = &pool.spec.template.spec.node_class_ref;
    let mut all = pool.spec.template.metadata.labels.clone().unwrap_or_default();
    all.insert(labels::NODEPOOL.to_owned(), pool.metadata.name.clone().unwrap_or_default());
    all.insert(node_class_label(class), class.name.clone());
    all
}
