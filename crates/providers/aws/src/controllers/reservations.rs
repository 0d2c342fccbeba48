//! Instances of capacity reservations: those that lost theirs are paid by use from then on, and those whose capacity
//! block ends go before EC2 takes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::aws::ReservationState;
use api::names::labels::{self, aws};
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cluster::objects::Node;
use cluster::state::{Meta as _, State, Watched as _};
use futures::future::join_all;
use runtime::Again;
use runtime::controller::Outcome;
use serde_json::{Value, json};

use super::{failed, is_ours, label};
use crate::instance::relabel::{OF_RESERVATIONS, is_demoted};
use crate::instance::{Machine, provider_id};
use crate::port::Filter;
use crate::provider::Inner;
use crate::selectors;

const MINUTE: Again = Again::After(Duration::from_mins(1));
/// How many reservations are asked for at the same time.
const PARALLEL: usize = 10;
/// What a label says about a capacity block.
const BLOCK: &str = "capacity-block";

/// Claims and Nodes that say reserved although their instance is not any more.
fn demoted(state: &State, machines: &BTreeMap<&str, &Machine>) -> (Vec<Arc<NodeClaim>>, Vec<Arc<Node>>) {
    let (mut claims, mut nodes) = (Vec::new(), Vec::new());
    for claim in state.node_claims.values().filter(|claim| is_ours(claim) && !claim.metadata.is_deleting()) {
        let id = claim.status.as_ref().map_or("", |status| &status.provider_id);
        let Some(machine) = provider_id::instance_id(id).and_then(|id| machines.get(id)) else { continue };
        if is_demoted(claim.metadata.labels.as_ref(), machine) {
            claims.push(Arc::clone(claim));
        }
        let is_meant = |node: &&Arc<Node>| {
            let labels = &node.metadata.labels;
            machine.capacity_type == capacity_type::ON_DEMAND
                && labels.text(labels::CAPACITY_TYPE) == capacity_type::RESERVED
                && labels.text(labels::REGISTERED) == "true"
                && !node.metadata.is_deleting()
        };
        nodes.extend(state.nodes_of(id).filter(is_meant).cloned());
    }
    (claims, nodes)
}

/// The labels of an instance that is paid by use.
fn demotion() -> Value {
    let mut changed = json!({labels::CAPACITY_TYPE: capacity_type::ON_DEMAND});
    for gone in OF_RESERVATIONS {
        changed[gone] = Value::Null;
    }
    json!({"metadata": {"labels": changed}})
}

/// Corrects the labels of nodes whose instance lost its reservation.
pub(super) async fn correct_capacity_types(inner: &Inner) -> Outcome {
    let says_reserved =
        |claim: &Arc<NodeClaim>| label(claim, labels::CAPACITY_TYPE) == capacity_type::RESERVED;
    if !inner.setup.cluster.read().node_claims.values().any(says_reserved) {
        return Ok(MINUTE);
    }
    let machines = inner.all_machines().await.map_err(failed)?;
    let machines: BTreeMap<&str, &Machine> = machines.iter().map(|each| (each.id.as_str(), each)).collect();
    let (claims, nodes) = demoted(&inner.setup.cluster.read(), &machines);
    let change = demotion();
    // Nodes first: as long as the claim says reserved, it is looked at again.
    for node in nodes {
        ignore_missing(inner.setup.api.patch::<Node>(&node.key(), &change).await)?;
    }
    for claim in claims {
        ignore_missing(inner.setup.api.patch::<NodeClaim>(&claim.key(), &change).await)?;
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        tracing::debug!(NodeClaim = name, "updated capacity type for nodeclaim");
    }
    Ok(MINUTE)
}

fn ignore_missing<T>(answer: Result<T, runtime::Error>) -> Result<(), runtime::Error> {
    match answer {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Claims in capacity blocks that are not on their way out yet, by reservation.
fn in_blocks(state: &State) -> BTreeMap<String, Vec<Arc<NodeClaim>>> {
    let mut all: BTreeMap<String, Vec<Arc<NodeClaim>>> = BTreeMap::new();
    for claim in state.node_claims.values().filter(|claim| is_ours(claim) && !claim.metadata.is_deleting()) {
        let id = label(claim, aws::CAPACITY_RESERVATION_ID);
        // Only blocks are taken back at a time that is known before.
        if !id.is_empty() && [BLOCK, ""].contains(&label(claim, aws::CAPACITY_RESERVATION_TYPE)) {
            all.entry(id.to_owned()).or_default().push(Arc::clone(claim));
        }
    }
    all
}

/// Whether a reservation is about to be taken back.
async fn is_ending(inner: &Inner, id: &String) -> Result<bool, crate::port::Error> {
    let (ids, filters) = (std::slice::from_ref(id), [Filter::new("state", ["active"])]);
    let call = inner.setup.services.ec2.capacity_reservations(ids, &filters);
    let found = match inner.counted("ec2:DescribeCapacityReservations", call).await {
        Err(error) if error.is_not_found() => return Ok(false),
        found => found?,
    };
    let (found, _) = selectors::reservations(found, inner.setup.clock.now());
    Ok(found.iter().any(|each| each.id == *id && each.state == ReservationState::Expiring))
}

/// Deletes claims whose capacity block ends soon.
pub(super) async fn empty_ending_blocks(inner: &Inner) -> Outcome {
    let blocks: Vec<(String, Vec<Arc<NodeClaim>>)> =
        in_blocks(&inner.setup.cluster.read()).into_iter().collect();
    let mut result = Ok(MINUTE);
    for some in blocks.chunks(PARALLEL) {
        let answers = join_all(some.iter().map(|(id, _)| is_ending(inner, id))).await;
        for ((_, claims), answer) in some.iter().zip(answers) {
            match answer {
                Ok(false) => {}
                Ok(true) => delete(inner, claims).await?,
                // One that cannot be asked for stops no other.
                Err(error) => result = Err(failed(error)),
            }
        }
    }
    result
}

async fn delete(inner: &Inner, claims: &[Arc<NodeClaim>]) -> Result<(), runtime::Error> {
    for claim in claims {
        ignore_missing(inner.setup.api.delete(&**claim).await)?;
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        tracing::info!(NodeClaim = name, "initiating delete for capacity block expiration");
    }
    Ok(())
}
