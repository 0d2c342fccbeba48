//! A plan as data for programs, with names instead of the engine's numbers.

use std::collections::BTreeMap;

use engine::explain::{Funnel, Step};
use engine::model::{ClassId, PodId, Snapshot};
use engine::scheduling_error::SchedulingErrors;
use engine::solve::{Failure, Place, Plan, PlannedClaim, Unusable};
use engine::universe::Universe;
use engine::written::Written;
use serde::Serialize;
use units::human;

/// What a plan says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// Nodes to launch.
    pub(crate) new_node_claims: Vec<ClaimReport>,
    /// Pods by the node they go to.
    pub(crate) existing: BTreeMap<String, Vec<String>>,
    /// Why a pod stays pending, in the words of its events.
    pub(crate) errors: BTreeMap<String, String>,
    /// Where the types of each pool fall away for a pod that stays pending.
    pub(crate) reasons: BTreeMap<String, Vec<PoolReason>>,
    /// Price of all new nodes per hour.
    pub(crate) total_price: f64,
    /// Pods that were looked at.
    pub(crate) pods: usize,
    /// How long it took.
    pub(crate) timings: Timings,
}

/// A node to launch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimReport {
    pub(crate) node_pool: String,
    /// The cheapest first.
    pub(crate) instance_types: Vec<String>,
    /// Price of the cheapest offering per hour.
    pub(crate) price: f64,
    /// Where the cheapest offering is.
    pub(crate) zone: String,
    /// How the cheapest offering is bought.
    pub(crate) capacity_type: String,
    pub(crate) pods: Vec<String>,
    pub(crate) requirements: Vec<RequirementReport>,
}

/// A requirement as a NodeClaim writes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequirementReport {
    key: String,
    operator: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_values: Option<u32>,
}

impl From<Written> for RequirementReport {
    fn from(Written { key, operator, values, min_values }: Written) -> Self {
        Self { key, operator, values, min_values }
    }
}

/// One pod: where it goes, or why it stays pending.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explained<'r> {
    pub(crate) pod: &'r str,
    /// The existing node that it goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) existing_node: Option<&'r str>,
    /// The new node that it goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new_node_claim: Option<&'r ClaimReport>,
    /// Why it stays pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'r str>,
    /// Where the types of each pool fall away for it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) reasons: &'r [PoolReason],
}

/// Why a pool has no type for a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolReason {
    pub(crate) node_pool: String,
    /// What was asked of the types, and how many were left.
    pub(crate) funnel: Vec<StepReport>,
    /// The type that came nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nearest: Option<String>,
}

/// Something that was asked of types.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepReport {
    pub(crate) step: String,
    pub(crate) left: usize,
}

/// How long each part took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Timings {
    #[serde(rename = "readMs")]
    pub(crate) read: f64,
    #[serde(rename = "snapshotMs")]
    pub(crate) snapshot: f64,
    #[serde(rename = "solveMs")]
    pub(crate) solve: f64,
}

impl Report {
    /// Names what the plan numbers. `ignored` are pods that were not even tried, with the reason.
    pub(crate) fn new(
        snapshot: &Snapshot,
        mut plan: Plan,
        ignored: impl IntoIterator<Item = (String, String)>,
        timings: Timings,
    ) -> Self {
        let mut existing: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (position, place) in plan.places.iter().enumerate() {
            if let Some(Place::Node(node)) = place {
                let name = snapshot.nodes[node.index()].name.to_string();
                existing.entry(name).or_default().push(pod_name(snapshot, PodId::at(position)));
            }
        }
        for pods in existing.values_mut() {
            pods.sort();
        }
        let mut errors: BTreeMap<String, String> = ignored.into_iter().collect();
        let mut reasons = BTreeMap::new();
        let mut sentences = SchedulingErrors::new(snapshot, &plan.universe, &plan.unusable);
        // Pods of one class fail alike, so that it is worked out once.
        let mut known: BTreeMap<ClassId, (String, Vec<PoolReason>)> = BTreeMap::new();
        for (position, failure) in plan.failures.iter().enumerate() {
            let Some(failure) = failure else { continue };
            let class = snapshot.pods[position].class;
            let name = pod_name(snapshot, PodId::at(position));
            let (error, pools) = known.entry(class).or_insert_with(|| {
                let pools = pool_reasons(snapshot, &mut sentences, class, failure, &plan.unusable);
                (sentences.sentence(class, failure), pools)
            });
            errors.insert(name.clone(), error.clone());
            reasons.insert(name, pools.clone());
        }
        let claims = std::mem::take(&mut plan.claims);
        let mut new_node_claims: Vec<ClaimReport> =
            claims.iter().map(|claim| claim_report(snapshot, &mut plan.universe, claim)).collect();
        new_node_claims.sort_by(|a, b| a.pods.cmp(&b.pods));
        Self {
            // The sum of nothing is negative zero.
            total_price: new_node_claims.iter().map(|claim| claim.price).sum::<f64>() + 0.0,
            new_node_claims,
            existing,
            errors,
            reasons,
            pods: snapshot.pods.len(),
            timings,
        }
    }
}

impl Report {
    /// What the plan says of one pod, if it is to be placed.
    pub(crate) fn explained<'r>(&'r self, pod: &'r str) -> Option<Explained<'r>> {
        let has_pod = |pods: &[String]| pods.iter().any(|name| name == pod);
        let explained = Explained {
            pod,
            existing_node: self
                .existing
                .iter()
                .find(|(_, pods)| has_pod(pods))
                .map(|(node, _)| node.as_str()),
            new_node_claim: self.new_node_claims.iter().find(|claim| has_pod(&claim.pods)),
            error: self.errors.get(pod).map(String::as_str),
            reasons: self.reasons.get(pod).map_or(&[], Vec::as_slice),
        };
        let is_known = explained.existing_node.is_some()
            || explained.new_node_claim.is_some()
            || explained.error.is_some();
        is_known.then_some(explained)
    }
}

fn pod_name(snapshot: &Snapshot, pod: PodId) -> String {
    snapshot.pods[pod.index()].name.to_string()
}

fn claim_report(snapshot: &Snapshot, universe: &mut Universe, claim: &PlannedClaim) -> ClaimReport {
    let pool = &snapshot.pools[claim.pool.index()];
    let catalogue = pool.catalogue.expect("a pool without types makes no claims");
    let types = &snapshot.catalogues[catalogue.index()].types;
    let requirements = claim.written(snapshot, universe).into_iter().map(RequirementReport::from).collect();
    let label = |key| {
        let (cheapest, offering) = claim.cheapest?;
        let set = types[cheapest].offerings[offering].requirements;
        let value = universe.get(universe.find(set, key)?).single()?;
        Some(universe.values(key).name(value).to_owned())
    };
    let names = universe.values(snapshot.keys.instance_type);
    let mut pods: Vec<String> = claim.pods.iter().map(|pod| pod_name(snapshot, *pod)).collect();
    pods.sort();
    ClaimReport {
        node_pool: pool.name.to_string(),
        instance_types: claim.types.iter().map(|type_| names.name(types[*type_].name).to_owned()).collect(),
        price: claim.price,
        zone: label(snapshot.keys.zone).unwrap_or_default(),
        capacity_type: label(snapshot.keys.capacity_type).unwrap_or_default(),
        pods,
        requirements,
    }
}

/// Where the types fall away of all pools that were tried, and of those that nothing can be launched for.
fn pool_reasons(
    snapshot: &Snapshot,
    sentences: &mut SchedulingErrors<'_>,
    class: ClassId,
    failure: &Failure,
    unusable: &[Unusable],
) -> Vec<PoolReason> {
    let explainer = sentences.explainer();
    let refused = if let Failure::Pools(refused) = failure { &**refused } else { &[] };
    let mut funnels: Vec<Funnel> =
        refused.iter().filter_map(|(pool, failure)| explainer.funnel(*pool, class, failure)).collect();
    if *failure != Failure::NeedsDevices {
        funnels.extend(unusable.iter().filter_map(|unusable| explainer.funnel_of_unusable(unusable)));
    }
    funnels.iter().map(|funnel| pool_reason(snapshot, explainer.universe(), funnel)).collect()
}

fn pool_reason(snapshot: &Snapshot, universe: &Universe, funnel: &Funnel) -> PoolReason {
    let pool = &snapshot.pools[funnel.pool.index()];
    let steps = funnel.steps.iter().map(|(step, left)| StepReport {
        step: match step {
            Step::Exists => "types".to_owned(),
            Step::Label(key) => universe.key_name(*key).to_owned(),
            Step::Fits => "fits".to_owned(),
            Step::Available => "available".to_owned(),
            Step::Taints => "taints".to_owned(),
            Step::Volumes => "volumes".to_owned(),
            Step::VolumeLimits => "volume limits".to_owned(),
            Step::HostPorts => "host ports".to_owned(),
            Step::Topology => "topology".to_owned(),
            Step::Limits => "limits".to_owned(),
            Step::MinValues => "minValues".to_owned(),
            Step::Reservations => "reservations".to_owned(),
        },
        left: *left,
    });
    let nearest = funnel.nearest.as_ref().map(|miss| {
        let catalogue = pool.catalogue.expect("a funnel comes from a catalogue");
        let name = snapshot.catalogues[catalogue.index()].types[miss.type_].name;
        let name = snapshot.universe.values(snapshot.keys.instance_type).name(name);
        match miss.lacks {
            None => format!("{name} would fit, but is not available"),
            Some((resource, amount)) => {
                let resources = &snapshot.resources;
                let missing = resources.quantity(resource, amount);
                format!("{name} lacks {}", human::quantity(resources.name(resource), missing))
            }
        }
    });
    PoolReason { node_pool: pool.name.to_string(), funnel: steps.collect(), nearest }
}
