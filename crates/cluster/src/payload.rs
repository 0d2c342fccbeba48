//! A planned claim as the NodeClaim that is created for it.

use std::collections::BTreeMap;

use api::hash::{NODE_POOL_HASH_VERSION, node_pool_hash};
use api::labels::LabelSets;
use api::names::{annotations, labels};
use api::nodeclaim::{NodeClaim, NodeClaimSpec, ResourceRequirements};
use api::nodepool::NodePool;
use api::shared::{NodeClassReference, Operator, Requirement, ResourceList};
use engine::intern::KeyId;
use engine::model::{InstanceType, Snapshot};
use engine::requirement;
use engine::solve::PlannedClaim;
use engine::universe::{SetId, Universe};
use engine::written::{self, SIMULATED, Written};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::instance_types::wanted::compile;
use crate::reason::Reason;

/// The NodeClaim of a planned claim. `universe` is that of the plan, `pool` the NodePool as it was planned for.
pub fn node_claim(
    snapshot: &Snapshot,
    universe: &mut Universe,
    claim: &PlannedClaim,
    pool: &NodePool,
    sets: &LabelSets,
) -> NodeClaim {
    let requirements = claim.written(snapshot, universe);
    let labels = claim_labels(universe, claim.requirements, pool, sets);
    let annotations = claim_annotations(snapshot, claim, pool);
    assembled(pool, labels, annotations, requirements, requests(snapshot, claim))
}

/// A NodeClaim as the template of its pool has it: no pod asked for anything, and no instance types are chosen.
/// Static pools are made of these.
pub fn bare_node_claim(pool: &NodePool, sets: &LabelSets) -> Result<NodeClaim, Reason> {
    let mut universe = Universe::default();
    let template = compile(&mut universe, &pool.spec.template.spec.requirements, sets)?;
    let own = owned_labels(pool);
    let own = own.iter().map(|(key, value)| {
        let name = sets.normalize_key(key);
        let id = universe.key(name);
        let value = universe.value(id, sets.normalize_value(name, value));
        (id, requirement::Requirement::within([value]))
    });
    let own: Vec<_> = own.collect();
    let own = universe.set(own);
    let all = universe.intersect(template, own);
    let hostname = universe.key(labels::HOSTNAME);
    let requirements = written::requirements(&universe, all, hostname);
    let labels = claim_labels(&universe, all, pool, sets);
    Ok(assembled(pool, labels, pool_annotations(pool), requirements, ResourceList::default()))
}

/// A NodeClaim that belongs to its pool and carries its template.
fn assembled(
    pool: &NodePool,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    requirements: Vec<Written>,
    requests: ResourceList,
) -> NodeClaim {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let template = &pool.spec.template;
    let metadata = ObjectMeta {
        generate_name: Some(format!("{name}-")),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![OwnerReference {
            api_version: "karpenter.sh/v1".to_owned(),
            kind: "NodePool".to_owned(),
            name: name.to_owned(),
            uid: pool.metadata.uid.clone().unwrap_or_default(),
            block_owner_deletion: Some(true),
            controller: None,
        }]),
        ..ObjectMeta::default()
    };
    let spec = NodeClaimSpec {
        taints: template.spec.taints.clone(),
        startup_taints: template.spec.startup_taints.clone(),
        requirements: requirements.into_iter().map(from_written).collect(),
        resources: ResourceRequirements { requests },
        node_class_ref: template.spec.node_class_ref.clone(),
        termination_grace_period: template.spec.termination_grace_period,
        expire_after: template.spec.expire_after.clone(),
    };
    NodeClaim { metadata, spec, status: None }
}

fn from_written(Written { key, operator, values, min_values }: Written) -> Requirement {
    let operator = Operator::ALL.into_iter().find(|known| known.as_str() == operator);
    Requirement {
        key,
        operator: operator.expect("the engine writes operators of the API"),
        values,
        min_values: min_values.map(i64::from),
    }
}

/// The label by which nodes of a NodeClass are known: its group and kind.
pub fn node_class_label(reference: &NodeClassReference) -> String {
    format!("{}/{}", reference.group, reference.kind.to_lowercase())
}

/// Labels of the template and of the owners.
fn owned_labels(pool: &NodePool) -> BTreeMap<String, String> {
    let reference = &pool.spec.template.spec.node_class_ref;
    let mut all = pool.spec.template.metadata.labels.clone().unwrap_or_default();
    all.insert(labels::NODEPOOL.to_owned(), pool.metadata.name.clone().unwrap_or_default());
    all.insert(node_class_label(reference), reference.name.clone());
    all
}

/// Labels of the template, of the owners, and one value for each label of the user's own that is asked for.
fn claim_labels(
    universe: &Universe,
    requirements: SetId,
    pool: &NodePool,
    sets: &LabelSets,
) -> BTreeMap<String, String> {
    let mut all = owned_labels(pool);
    for (key, id) in universe.entries(requirements) {
        let name = universe.key_name(*key);
        let of_users = name != labels::HOSTNAME
            && !sets.is_well_known(name)
            && !SIMULATED.contains(&name)
            && sets.check_unrestricted(name).is_ok();
        if of_users
            && !all.contains_key(name)
            && let Some(value) = some_value(universe, *key, universe.get(*id))
        {
            all.insert(name.to_owned(), value);
        }
    }
    all
}

/// A value that a requirement admits: the first by name, or the smallest number where any value will do.
fn some_value(universe: &Universe, key: KeyId, requirement: &requirement::Requirement) -> Option<String> {
    let values = universe.values(key);
    if let Some(members) = requirement.members() {
        return members.iter().map(|value| values.name(*value)).min().map(str::to_owned);
    }
    let (gte, lte) = requirement.bounds();
    let excluded = |text: &str| values.get(text).is_some_and(|value| requirement.listed().contains(&value));
    let first = gte.unwrap_or_else(|| lte.map_or(0, |lte| lte.min(0)));
    let mut numbers = (first..=lte.unwrap_or(i64::MAX)).map(|number| number.to_string());
    numbers.find(|text| !excluded(text))
}

/// Annotations of the template, and what tells later whether it has changed.
fn pool_annotations(pool: &NodePool) -> BTreeMap<String, String> {
    let mut all = pool.spec.template.metadata.annotations.clone().unwrap_or_default();
    all.insert(annotations::NODEPOOL_HASH.to_owned(), node_pool_hash(pool));
    all.insert(annotations::NODEPOOL_HASH_VERSION.to_owned(), NODE_POOL_HASH_VERSION.to_owned());
    all
}

fn claim_annotations(snapshot: &Snapshot, claim: &PlannedClaim, pool: &NodePool) -> BTreeMap<String, String> {
    let mut all = pool_annotations(pool);
    all.insert(annotations::MIN_VALUES_RELAXED.to_owned(), claim.min_values_relaxed.to_string());
    let catalogue = snapshot.pools[claim.pool.index()].catalogue;
    let types = catalogue.map_or(&[][..], |catalogue| &snapshot.catalogues[catalogue.index()].types);
    let any = |test: fn(&InstanceType) -> bool| claim.types.iter().any(|type_| test(&types[*type_]));
    for (key, applies) in [
        (annotations::PRICE_OVERLAY_APPLIED, any(|it| it.overlaid.price)),
        (annotations::CAPACITY_OVERLAY_APPLIED, any(|it| it.overlaid.capacity)),
    ] {
        if applies {
            all.insert(key.to_owned(), "true".to_owned());
        }
    }
    all
}

fn requests(snapshot: &Snapshot, claim: &PlannedClaim) -> ResourceList {
    claim
        .requests
        .iter()
        .map(|(resource, amount)| {
            let resources = &snapshot.resources;
            (resources.name(resource).to_owned(), resources.quantity(resource, amount))
        })
        .collect()
}
