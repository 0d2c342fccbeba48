//! One pass of the provisioner: looks at the cluster, decides, and carries out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::READY;
use api::names::conditions::node_pool::NODE_REGISTRATION_HEALTHY;
use api::names::controllers::PROVISIONER;
use api::names::events::{FAILED_SCHEDULING, NO_COMPATIBLE_INSTANCE_TYPES};
use api::names::metrics::{
    PODS_SCHEDULING_DECISION_DURATION, SCHEDULER_IGNORED_PODS, SCHEDULER_PENDING_PODS_BY_ZONE,
    SCHEDULER_SCHEDULING_DURATION, SCHEDULER_UNSCHEDULABLE_PODS,
};
use api::names::values::{PROVISIONED, ZONE_FLEXIBLE, ZONE_NONE};
use api::nodepool::NodePool;
use cluster::buffers::{Room, rooms};
use cluster::reason::Reason;
use cluster::snapshot::{Built, InstanceTypes, Origin};
use cluster::state::{Change, Key, Kind, Object, State};
use engine::zones::{Zones, effective_zones};
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use jiff::SignedDuration;
use parking_lot::Mutex;
use runtime::Error;
use runtime::compute::compute;
use runtime::controller::{Again, Controller, Outcome as Reconciled, Reconcile};
use runtime::events::About;
use runtime::metrics::Registry;
use runtime::queue::{Backoff, Queue};
use runtime::settings::PreferencePolicy;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::batcher::{Batch, Batcher};
use super::counted::Counted;
use super::create::{about, create, nominate};
use super::outcome::{NewClaim, Outcome, Pending, ignored_pods, outcome};
use super::plan;
use super::wishes::Said;
use crate::Context;
use crate::capacity_buffer::room::{self, Placement};
use crate::catalogue::{self, Types};
use crate::managed::is_pool_managed;
use crate::text::some;
use crate::unfinished_work::UnfinishedWork;
use crate::wiring::Wiring;

/// How long the provisioner waits for claims to be launched before it looks again by itself.
const UNSYNCED: Duration = Duration::from_secs(1);
/// After what time operators are told that it waits, and how often afterwards.
const SLOW: Duration = Duration::from_secs(30);
const REMINDER: Duration = Duration::from_secs(10);
/// How many pods a log line names.
const SHOWN: usize = 5;

struct Provisioner {
    context: Context,
    batcher: Arc<Batcher>,
    /// A claim has changed, so that there may be nothing to wait for any more.
    launched: Arc<Notify>,
    work: UnfinishedWork,
    said: Mutex<Said>,
}

impl Reconcile for Provisioner {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Reconciled> {
        async {
            match self.batcher.wait().await {
                Batch::Growing => self.early_pass().await?,
                Batch::Complete => {
                    self.until_synced().await;
                    self.pass().await?;
                }
            }
            Ok(Again::After(Duration::ZERO))
        }
        .boxed()
    }
}

impl Provisioner {
    /// Waits until every claim is launched: what was asked for is not asked for again.
    async fn until_synced(&self) {
        let start = Instant::now();
        let mut said = SLOW;
        loop {
            let launched = self.launched.notified();
            if self.context.cluster.read().is_synced(self.context.now()) {
                return;
            }
            if start.elapsed() > said {
                tracing::error!(duration = ?start.elapsed(), "waiting for nodeclaims to be launched");
                said += REMINDER;
            }
            let _ = tokio::time::timeout(UNSYNCED, launched).await;
        }
    }

    async fn pass(&self) -> Result<(), Error> {
        let start = Instant::now();
        let looked = self.look_and_decide().await;
        if looked.is_err() {
            // Nothing was decided about the batch, and its pods do not wait for their next reminder.
            self.batcher.trigger("");
        }
        let (has_pools, rooms, decided) = looked?;
        let Some((outcome, counted)) = decided else {
            self.keep_rooms(&rooms, &Placement::default()).await;
            return Ok(());
        };
        self.measure(&outcome, start.elapsed());
        if has_pools || exists_pool(&self.context.cluster.read()) {
            Self::log_pending(&outcome);
            self.tell_pending(&outcome);
        } else if !outcome.pending.is_empty() {
            // Nothing is wrong with the pods.
            tracing::info!(pods = outcome.pending.len(), "no nodepools found");
        }
        self.report(&outcome, start.elapsed());
        self.record(&outcome);
        let creating = self.create_all(&outcome, &counted);
        let (created, ()) = join(creating, self.keep_rooms(&rooms, &outcome.placement)).await;
        created
    }

    /// Launches what has no room for pods that may still come, while a batch grows. Everything else waits for its end.
    async fn early_pass(&self) -> Result<(), Error> {
        // Nobody has planned with the sizes of claims that are being launched.
        if !self.context.cluster.read().is_synced(self.context.now()) {
            return Ok(());
        }
        let start = Instant::now();
        let (_, _, decided) = self.look_and_decide().await?;
        let Some((mut outcome, counted)) = decided else { return Ok(()) };
        outcome.claims.retain(|claim| claim.full);
        if outcome.claims.is_empty() {
            return Ok(());
        }
        (outcome.pending, outcome.nominated) = (Vec::new(), Vec::new());
        self.report(&outcome, start.elapsed());
        self.record(&outcome);
        self.create_all(&outcome, &counted).await
    }

    /// Finds places for all that needs one, and says whether there are pools at all. Fails if the cloud does not say in
    /// time what there is to choose from.
    async fn look_and_decide(&self) -> Result<(bool, Vec<Room>, Option<(Outcome, Counted)>), Error> {
        let pools = ready_pools(&self.context.cluster.read());
        let has_pools = !pools.is_empty();
        let types = catalogue::of(&self.context, pools.values()).await?;
        let (rooms, decided) = self.decide(pools, types).await;
        Ok((has_pools, rooms, decided))
    }

    /// Creates the claims of an outcome.
    async fn create_all(&self, outcome: &Outcome, counted: &Counted) -> Result<(), Error> {
        let outgrown = self.outgrown(outcome, counted);
        let claims = outcome.claims.iter().filter(|claim| !outgrown.contains_key(pool_name(claim)));
        let created = join_all(claims.map(|claim| create(&self.context, claim, PROVISIONED))).await;
        let failed = outgrown.into_values().chain(created.into_iter().filter_map(Result::err));
        let failed: Vec<String> = failed.map(|error| error.to_string()).collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::Other(failed.join("; "))) }
    }

    /// Pools for which somebody else has launched nodes since it was decided what their limits allow.
    fn outgrown<'o>(&self, outcome: &'o Outcome, counted: &Counted) -> BTreeMap<&'o str, Error> {
        let state = self.context.cluster.read();
        let pools: BTreeSet<&str> = outcome.claims.iter().map(pool_name).collect();
        let checked = pools.into_iter().map(|pool| (pool, counted.check(&state, pool, &BTreeSet::new())));
        checked.filter_map(|(pool, checked)| Some((pool, checked.err()?))).collect()
    }

    /// Notes where the room is that buffers keep, and tells.
    async fn keep_rooms(&self, rooms: &[Room], placement: &Placement) {
        if self.context.settings.gates.capacity_buffer {
            self.context.cluster.update(|state| state.set_buffer_pods(placement.instances.clone()));
            room::tell(&self.context, rooms, placement).await;
        }
    }

    /// Finds places for all pods and for the room that buffers keep; nothing if there are none.
    async fn decide(
        &self,
        pools: BTreeMap<Box<str>, Arc<NodePool>>,
        types: Types,
    ) -> (Vec<Room>, Option<(Outcome, Counted)>) {
        let context = self.context.clone();
        let (looked, rooms, counted) = {
            let context = context.clone();
            let types = types.clone();
            compute(move || look(&context, &types)).await
        };
        self.tell_ignored(&looked);
        if context.settings.preference_policy == PreferencePolicy::Respect {
            self.said.lock().tell(&looked.snapshot, context.now());
        }
        if looked.snapshot.pods.is_empty() {
            context.metrics.set(&SCHEDULER_UNSCHEDULABLE_PODS, &[PROVISIONER], 0.0);
            tell_zones(&context.metrics, PROVISIONER, Zones::default());
            return (rooms, None);
        }
        let running = self.work.begin();
        running.set_queue_depth(looked.snapshot.pods.len());
        let settings = Arc::clone(&context.settings);
        let sets = catalogue::label_sets(context.provider(), types.values().flat_map(|types| types.iter()));
        let seen = context.clone();
        let (zones, decided) = compute(move || {
            let zones = effective_zones(&looked.snapshot, |pod| looked.pods[pod.index()] == Origin::Waiting);
            let plan = plan::plan(&looked, &settings);
            let mut decided = outcome(&looked, plan, &pools, &sets);
            seen.launches.lock().hold_back(&seen.cluster.read(), &mut decided, &sets, seen.now());
            (zones, decided)
        })
        .await;
        tell_zones(&context.metrics, PROVISIONER, zones);
        let left = decided.pending.len() + decided.deferred.len() + decided.placement.failed;
        running.set_queue_depth(left);
        (rooms, Some((decided, counted)))
    }

    /// Says which pods cannot be helped, whatever nodes there were.
    fn tell_ignored(&self, built: &Built) {
        let now = self.context.now();
        for ignored in built.ignored.iter().filter(|ignored| ignored.kind == Kind::CapacityBuffer.name()) {
            tracing::info!(error = %ignored, "no room can be kept for a buffer");
            let key = Key::new(ignored.namespace.as_deref().unwrap_or_default(), &ignored.name);
            let buffer = self.context.cluster.read().capacity_buffers.get(&key).map(Arc::clone);
            if let Some(buffer) = buffer {
                room::complain(&self.context, &buffer, &ignored.reason.to_string());
            }
        }
        let ignored: Vec<(Key, &Reason)> = ignored_pods(built).collect();
        self.context.metrics.set(&SCHEDULER_IGNORED_PODS, &[], count(ignored.len()));
        if ignored.is_empty() {
            return;
        }
        let waits: Vec<SignedDuration> = self.context.cluster.update(|state| {
            ignored.iter().filter_map(|(pod, _)| state.record_unschedulable(pod, now)).collect()
        });
        self.measure_waits(&waits);
        for (pod, reason) in ignored {
            let known = self.context.cluster.read().pods.get(&pod).map(Arc::clone);
            let Some(known) = known else { continue };
            tracing::debug!(Pod = %pod, error = %reason, "ignoring pod");
            if reason.is_event() {
                let about = About::object(&*known);
                let message = format!("Failed to schedule pod, {}", reason.sentence());
                let uid = about.uid.clone();
                self.context.events.publish(&FAILED_SCHEDULING, about, message, &[&uid]);
            }
        }
    }

    fn measure(&self, outcome: &Outcome, elapsed: Duration) {
        let metrics = &self.context.metrics;
        metrics.observe(&SCHEDULER_SCHEDULING_DURATION, &[PROVISIONER], elapsed.as_secs_f64());
        let unschedulable = outcome.pending.len() + outcome.placement.failed;
        metrics.set(&SCHEDULER_UNSCHEDULABLE_PODS, &[PROVISIONER], count(unschedulable));
    }

    /// Tells operators which pods stay pending, and why.
    fn log_pending(outcome: &Outcome) {
        for pod in &outcome.deferred {
            tracing::debug!(Pod = %pod.key, "pod waits for a reservation, to be looked at again");
        }
        for Pending { pod, why, error, unsupported } in &outcome.pending {
            if *unsupported {
                tracing::info!(Pod = %pod.key, error = %error, why = %why, "could not schedule pod");
            } else {
                tracing::error!(Pod = %pod.key, error = %error, why = %why, "could not schedule pod");
            }
        }
    }

    /// Tells users which pods stay pending, and why.
    fn tell_pending(&self, outcome: &Outcome) {
        for (pool, min_values) in &outcome.unusable {
            let about = About::object(&**pool);
            let uid = about.uid.clone();
            let why = if *min_values { " due to minValues incompatibility" } else { "" };
            let message =
                format!("NodePool requirements filtered out all compatible available instance types{why}");
            self.context.events.publish(&NO_COMPATIBLE_INSTANCE_TYPES, about, message, &[&uid]);
        }
        for Pending { pod, why, .. } in &outcome.pending {
            let message = format!("Failed to schedule pod, {why}");
            self.context.events.publish(&FAILED_SCHEDULING, about(pod), message, &[&pod.uid]);
        }
    }

    /// Tells users and operators which pods have a place.
    fn report(&self, outcome: &Outcome, elapsed: Duration) {
        if !outcome.claims.is_empty() {
            let real = outcome.claims.iter().flat_map(|claim| &claim.pods).map(|pod| pod.key.to_string());
            let pods: Vec<String> = real.chain(outcome.placement.on_new_nodes.iter().cloned()).collect();
            tracing::info!(Pods = %some(&pods, SHOWN), duration = ?elapsed, "found provisionable pod(s)");
            tracing::info!(
                nodeclaims = outcome.claims.len(),
                pods = pods.len(),
                "computed new nodeclaim(s) to fit pod(s)"
            );
        }
        let unready = || outcome.nominated.iter().filter(|node| !node.initialized);
        if unready().next().is_some() {
            let pods: usize = unready().map(|node| node.pods.len()).sum();
            tracing::info!(nodes = unready().count(), pods, "computed unready node(s) will fit pod(s)");
        }
        for node in &outcome.nominated {
            nominate(&self.context, &node.pods, node.origin.claim.as_deref(), node.origin.node.as_deref());
        }
    }

    /// Notes what was decided, so that others keep nodes for pods, and measure how long pods wait.
    fn record(&self, outcome: &Outcome) {
        let now = self.context.now();
        let until = now + self.context.settings.nomination_window();
        let waits: Vec<SignedDuration> = self.context.cluster.update(|state| {
            let mut waits = Vec::new();
            for Pending { pod, .. } in &outcome.pending {
                waits.extend(state.record_unschedulable(&pod.key, now));
            }
            for claim in &outcome.claims {
                let is_healthy = claim.pool.is_true(NODE_REGISTRATION_HEALTHY);
                for pod in &claim.pods {
                    waits.extend(state.record_schedulable(&pod.key, is_healthy, now));
                }
            }
            for node in &outcome.nominated {
                state.nominate(&node.origin.provider_id, until);
                let pool = node.pool.as_deref().and_then(|pool| state.node_pools.named(pool));
                let is_healthy = pool.is_some_and(|pool| pool.is_true(NODE_REGISTRATION_HEALTHY));
                for pod in &node.pods {
                    waits.extend(state.record_schedulable(&pod.key, is_healthy, now));
                    if let Some(claim) = &node.origin.claim {
                        state.record_claim(&pod.key, claim);
                    }
                }
            }
            waits
        });
        self.measure_waits(&waits);
    }

    /// How long pods have waited for the first decision about them.
    fn measure_waits(&self, waits: &[SignedDuration]) {
        for wait in waits {
            self.context.metrics.observe(&PODS_SCHEDULING_DECISION_DURATION, &[], wait.as_secs_f64());
        }
    }
}

/// Tells in which zones the pods must be that a controller finds pending.
pub(crate) fn tell_zones(metrics: &Registry, controller: &'static str, zones: Zones) {
    let named = zones.by_zone.into_iter().map(|(zone, pods)| (zone.into(), pods));
    let others = [(ZONE_FLEXIBLE.to_owned(), zones.flexible), (ZONE_NONE.to_owned(), zones.nowhere)];
    let all = named.chain(others.into_iter().filter(|(_, pods)| *pods > 0));
    let series = all.map(|(zone, pods)| (vec![controller.to_owned(), zone], count(pods)));
    metrics.replace(&SCHEDULER_PENDING_PODS_BY_ZONE, controller, series);
}

#[expect(clippy::cast_precision_loss, reason = "nobody has that many pods")]
fn count(number: usize) -> f64 {
    number as f64
}

/// The pool of a planned claim.
fn pool_name(claim: &NewClaim) -> &str {
    claim.pool.metadata.name.as_deref().unwrap_or_default()
}

/// Whether there is a NodePool that gets nodes for pods once nothing keeps it from that.
fn exists_pool(state: &State) -> bool {
    let mut pools = state.node_pools.values();
    pools.any(|pool| is_pool_managed(pool, state.provider()) && pool.spec.replicas.is_none())
}

/// The NodePools that may get new nodes.
fn ready_pools(state: &State) -> BTreeMap<Box<str>, Arc<NodePool>> {
    let mut ready = BTreeMap::new();
    for pool in state.node_pools.values().filter(|pool| is_pool_managed(pool, state.provider())) {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        if pool.spec.replicas.is_some() || pool.metadata.deletion_timestamp.is_some() {
            continue;
        }
        if pool.is_true(READY) {
            ready.insert(name.into(), Arc::clone(pool));
        } else {
            tracing::error!(NodePool = name, "ignoring nodepool, not ready");
        }
    }
    ready
}

/// The cluster as it is now, the room that buffers keep, and what counts in limits. Pools without types have no part in
/// it.
fn look(context: &Context, types: &Types) -> (Built, Vec<Room>, Counted) {
    let now = context.now();
    let state = context.cluster.read();
    let rooms = rooms(&state);
    let built = plan::snapshot(&state, InstanceTypes::ByPool(types), &rooms, &context.settings, now);
    let counted = Counted::new(&state, now);
    (built, rooms, counted)
}

/// The controller.
pub(super) fn controller(context: &Context, batcher: &Arc<Batcher>) -> Controller {
    let launched = Arc::new(Notify::new());
    let changed = Arc::clone(&launched);
    context.cluster.listen(Box::new(move |change: &Change, _: &State| {
        if let Object::NodeClaim(_) = change.object() {
            changed.notify_waiters();
        }
    }));
    // Pods wait: errors that repeat must not stop everything for long.
    let queue = Arc::new(Queue::new(Backoff::millis(5, 10_000)));
    queue.add(Key::cluster(PROVISIONER));
    let batcher = Arc::clone(batcher);
    let work = UnfinishedWork::new(PROVISIONER, &context.metrics);
    let said = Mutex::default();
    let provisioner = Provisioner { context: context.clone(), batcher, launched, work, said };
    Wiring::new(PROVISIONER, 1).on(queue, Arc::new(provisioner))
}
