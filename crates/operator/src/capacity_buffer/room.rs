//! What a plan makes of the room that buffers keep: where it is, and what their conditions say.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::capacitybuffer::CapacityBuffer;
use api::conditions::set_plain;
use api::names::conditions::capacity_buffer::PROVISIONING;
use api::names::events::BUFFER_FAILED_SCHEDULING;
use api::names::messages::{BUFFER_EMPTY, BUFFER_NOT_READY};
use api::names::reasons::capacity_buffer as reasons;
use api::shared::ConditionStatus;
use cluster::buffers::{Room, Unresolved};
use cluster::snapshot::{Built, Origin};
use cluster::state::Watched;
use engine::scheduling_error::SchedulingErrors;
use engine::solve::{Place, Plan};
use futures::future::join_all;
use jiff::Timestamp;
use runtime::events::About;

use crate::Context;
use crate::status;
use crate::text::truncated;

/// Where the virtual pods of one buffer are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    /// How many are on nodes that exist.
    pub(crate) existing: u32,
    /// How many need new nodes.
    pub(crate) new: u32,
    /// Why one of the others has no place.
    pub(crate) why: Option<Arc<str>>,
}

/// Where all virtual pods are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Where those of each buffer are, by its position among the rooms.
    pub(crate) buffers: BTreeMap<usize, Placed>,
    /// How many are on each instance.
    pub(crate) instances: BTreeMap<Box<str>, u32>,
    /// Those that need new nodes, by name.
    pub(crate) on_new_nodes: Vec<String>,
    /// How many have no place.
    pub(crate) failed: usize,
}

/// Where a plan has put the virtual pods of a snapshot.
pub(crate) fn placement(built: &Built, plan: &Plan) -> Placement {
    let mut all = Placement::default();
    for (position, origin) in built.pods.iter().enumerate() {
        let Origin::Buffer(room) = *origin else { continue };
        let placed = all.buffers.entry(room).or_default();
        match &plan.places[position] {
            Some(Place::Node(node)) => {
                placed.existing += 1;
                *all.instances.entry(built.nodes[node.index()].provider_id.clone()).or_default() += 1;
            }
            Some(_) => {
                placed.new += 1;
                all.on_new_nodes.push(built.snapshot.pods[position].name.to_string());
            }
            None => {
                all.failed += 1;
                if let (None, Some(failure)) = (&placed.why, &plan.failures[position]) {
                    let mut errors = SchedulingErrors::new(&built.snapshot, &plan.universe, &plan.unusable);
                    let class = built.snapshot.pods[position].class;
                    placed.why = Some(errors.sentence(class, failure).into());
                }
            }
        }
    }
    all
}

/// Whether a buffer fits into the cluster as it is, why, and in words.
fn provisioning(room: &Room, placed: &Placed) -> (ConditionStatus, &'static str, String) {
    let Placed { existing, new, .. } = placed;
    match &room.pods {
        // The buffer by itself is as it should be, so that no other condition says why.
        Err(too_many @ Unresolved::TooManyInAll { .. }) => {
            (ConditionStatus::False, reasons::NOT_READY_FOR_PROVISIONING, too_many.to_string())
        }
        Err(_) => (ConditionStatus::False, reasons::NOT_READY_FOR_PROVISIONING, BUFFER_NOT_READY.to_owned()),
        Ok(pods) if pods.replicas == 0 => {
            (ConditionStatus::False, reasons::BUFFER_EMPTY, BUFFER_EMPTY.to_owned())
        }
        Ok(pods) if *existing == pods.replicas => {
            let message = format!("All {existing} virtual pods fit on existing capacity");
            (ConditionStatus::True, reasons::FITS_EXISTING_CAPACITY, message)
        }
        Ok(pods) => {
            let desired = pods.replicas;
            let failed = desired.saturating_sub(existing + new);
            let message = format!("{new}/{desired} virtual pods required new capacity, {failed} failed");
            (ConditionStatus::False, reasons::REQUIRES_NEW_CAPACITY, message)
        }
    }
}

/// The buffer as it is to be after a plan. `current` may be newer than the one that was planned for.
fn decide(current: &CapacityBuffer, room: &Room, placed: &Placed, now: Timestamp) -> CapacityBuffer {
    let mut after = current.clone();
    let (status, reason, message) = provisioning(room, placed);
    // What was seen is the buffer as it was planned for.
    after.metadata.generation = room.buffer.metadata.generation;
    set_plain(&mut after, PROVISIONING, (status, reason, &message), now);
    after.metadata.generation = current.metadata.generation;
    after
}

/// Says in every buffer what became of its room. What cannot be written now is written after the next plan.
pub(crate) async fn tell(context: &Context, rooms: &[Room], placement: &Placement) {
    let nowhere = Placed::default();
    let told = rooms.iter().enumerate().map(|(position, room)| {
        tell_one(context, room, placement.buffers.get(&position).unwrap_or(&nowhere))
    });
    join_all(told).await;
}

/// Why there is not all the room that a buffer asks for, if so. What its own conditions say is not repeated.
fn failure(room: &Room, placed: &Placed) -> Option<String> {
    match &room.pods {
        Err(too_many @ Unresolved::TooManyInAll { .. }) => Some(too_many.to_string()),
        Err(_) => None,
        Ok(pods) => {
            let failed = pods.replicas.saturating_sub(placed.existing + placed.new);
            placed.why.as_ref().map(|why| format!("for {failed} of {} pods, {why}", pods.replicas))
        }
    }
}

/// Tells the users of a buffer why there is not all its room.
pub(crate) fn complain(context: &Context, buffer: &CapacityBuffer, why: &str) {
    let about = About::object(buffer);
    let (uid, message) = (about.uid.clone(), truncated(&format!("Failed to keep room, {why}")));
    context.events.publish(&BUFFER_FAILED_SCHEDULING, about, message, &[&uid]);
}

async fn tell_one(context: &Context, room: &Room, placed: &Placed) {
    let key = Watched::key(&*room.buffer);
    if let Some(why) = failure(room, placed) {
        tracing::info!(CapacityBuffer = %key, error = %why, "could not keep room for all pods of a buffer");
        complain(context, &room.buffer, &why);
    }
    let patch = {
        let state = context.cluster.read();
        let current = state.capacity_buffers.get(&key);
        let current = current.filter(|it| it.metadata.uid == room.buffer.metadata.uid);
        current.and_then(|it| status::conditions(&**it, &decide(it, room, placed, context.now())))
    };
    let Some(patch) = patch else { return };
    if let Err(error) = context.api.patch_status::<CapacityBuffer>(&key, &patch).await {
        tracing::debug!(CapacityBuffer = %key, error = %error, "the condition of a buffer could not be written");
    }
}

#[cfg(test)]
mod tests;
