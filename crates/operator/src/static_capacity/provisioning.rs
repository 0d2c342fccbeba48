//! Gives static NodePools the nodes that they lack.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::READY;
use api::names::controllers::STATIC_PROVISIONING;
use api::names::labels;
use api::names::values::PROVISIONED;
use api::nodepool::NodePool;
use cluster::state::{Change, Key, Object, State, Watched};
use cluster::state_node::claim_provider_id;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};
use runtime::{Cluster, Error};

use super::{is_static, node_limit, replicas, resized};
use crate::managed::is_pool_managed;
use crate::provisioner::create::create;
use crate::provisioner::outcome::NewClaim;
use crate::wiring::Wiring;
use crate::{Context, catalogue};

/// How many keys are looked at at the same time.
const WORKERS: usize = 10;
/// How many claims are created before the pool is looked at again: what was asked for by mistake can be taken back.
const BATCH: u64 = 500;
/// How many claims of a pool wait for their instances at most. Beyond that, more claims would only fill the API server.
const MOST_WAITING: u64 = 1000;

/// What a pool needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing: it is not for this controller, or not now.
    Ignore,
    /// The cluster must be known first, or those that there are must have their instances.
    Wait,
    /// It has all its nodes.
    Enough,
    /// Its limit leaves no room for those that it lacks.
    AtLimit,
    /// So many claims, for which room has been set aside.
    Create(Create),
}

/// Claims to be created.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Create {
    /// Of this pool.
    pool: Arc<NodePool>,
    /// So many.
    count: u64,
    /// Whether the pool lacks more than these.
    lacks_more: bool,
}

/// Finds out what a pool needs and sets room aside for it, at once, so that nobody else takes it.
pub(super) fn decide(state: &mut State, name: &str) -> Step {
    let Some(pool) = state.node_pools.named(name).map(Arc::clone) else { return Step::Ignore };
    let Some(wanted) = replicas(&pool).filter(|_| is_pool_managed(&pool, state.provider())) else {
        return Step::Ignore;
    };
    if !pool.is_true(READY) {
        return Step::Ignore;
    }
    if !state.is_listed() {
        return Step::Wait;
    }
    let claims = state.pool_claims(name);
    let (active, pending) = (claims.active.len() as u64, claims.pending_disruption.len() as u64);
    // What is about to be created, by whomever, is not asked for again.
    let missing = wanted.saturating_sub(active + state.reserved(name));
    if active + pending >= wanted || missing == 0 {
        return Step::Enough;
    }
    let waiting = claims.active.iter().filter(|claim| claim_provider_id(claim).is_empty()).count() as u64;
    let room = MOST_WAITING.saturating_sub(waiting + state.reserved(name));
    if room == 0 {
        return Step::Wait;
    }
    let wanted = missing.min(room).min(BATCH);
    match state.reserve(name, node_limit(&pool), wanted) {
        0 => Step::AtLimit,
        // Where the limit is why, another look at once would not help.
        count => Step::Create(Create { pool, count, lacks_more: count == wanted && count < missing }),
    }
}

/// Room for one claim of a pool, which is free again when this goes away: the claim counts by then, or failed.
pub(crate) struct Room {
    cluster: Cluster,
    pool: Box<str>,
}

impl Room {
    /// Room that [`State::reserve`] has set aside for one claim.
    pub(crate) fn of(cluster: &Cluster, pool: &str) -> Self {
        Self { cluster: cluster.clone(), pool: pool.into() }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.cluster.update(|state| state.release(&self.pool, 1));
    }
}

struct Provisioning(Context);

impl Reconcile for Provisioning {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        reconcile(&self.0, key).boxed()
    }
}

pub(super) async fn reconcile(context: &Context, key: &Key) -> Outcome {
    match context.cluster.update(|state| decide(state, &key.name)) {
        Step::Ignore => Ok(Again::No),
        Step::Wait => Ok(Again::secs(1)),
        Step::Enough => Ok(Again::secs(60)),
        Step::AtLimit => {
            tracing::info!(NodePool = %key, "nodepool node limit reached");
            Ok(Again::secs(30))
        }
        Step::Create(Create { pool, count, lacks_more }) => {
            let room: Vec<Room> = (0..count).map(|_| Room::of(&context.cluster, &key.name)).collect();
            launch(context, pool, room).await?;
            Ok(if lacks_more { Again::After(Duration::ZERO) } else { Again::secs(60) })
        }
    }
}

/// Creates a claim for each piece of room.
async fn launch(context: &Context, pool: Arc<NodePool>, room: Vec<Room>) -> Result<(), Error> {
    let new = bare(context, pool).await?;
    let created = room.into_iter().map(|room| {
        let new = &new;
        async move {
            let created = create(context, new, PROVISIONED).await;
            drop(room);
            created
        }
    });
    let failed: Vec<String> =
        join_all(created).await.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    if failed.is_empty() { Ok(()) } else { Err(Error::Other(failed.join("; "))) }
}

/// A claim as the template of a pool has it.
pub(crate) async fn bare(context: &Context, pool: Arc<NodePool>) -> Result<NewClaim, Error> {
    // Instance types bring labels of their own. Without them the labels of the cloud count.
    let types = context.cloud.listed_instance_types(&pool).await.unwrap_or_default();
    let sets = catalogue::label_sets(context.provider(), types.iter());
    NewClaim::bare(pool, &sets).map_err(|reason| Error::Other(reason.to_string()))
}

/// A pool concerns itself when it is new, wants another number of nodes, or becomes ready; a claim concerns its
/// pool when it goes.
fn touch(change: &Change, state: &State, queue: &Queue) {
    if let Some(pool) = resized(change).or_else(|| got_ready(change)) {
        queue.add(pool.key());
    }
    if let Some(pool) = lost_by(change).filter(|pool| is_static(state, pool)) {
        queue.add(Key::cluster(pool));
    }
}

fn got_ready(change: &Change) -> Option<&NodePool> {
    let (Some(Object::NodePool(old)), Some(Object::NodePool(new))) = (&change.old, &change.new) else {
        return None;
    };
    (new.spec.replicas.is_some() && !old.is_true(READY) && new.is_true(READY)).then_some(new)
}

/// The pool of a claim that is gone or begins to go. One that never had an instance does not count: where nothing
/// can be launched, another claim at once would fare no better, and the pool is looked at every minute anyway.
fn lost_by(change: &Change) -> Option<&str> {
    let Object::NodeClaim(claim) = change.object() else { return None };
    if claim_provider_id(claim).is_empty() {
        return None;
    }
    let was_going = change.old.as_ref().is_some_and(|old| old.meta().is_deleting());
    let is_lost = change.new.as_ref().is_none_or(|new| new.meta().is_deleting() && !was_going);
    let labels = claim.metadata.labels.as_ref().filter(|_| is_lost)?;
    labels.get(labels::NODEPOOL).map(String::as_str)
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let wiring =
        Wiring { backoff: Backoff::millis(100, 60_000), ..Wiring::new(STATIC_PROVISIONING, WORKERS) };
    wiring.listening(context, Provisioning(context.clone()), touch)
}

#[cfg(test)]
mod tests;
