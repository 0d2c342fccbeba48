//! Carries commands out: nodes are tainted and marked at once, and their claims deleted.
//!
//! What is under way is known to this process only. After a restart, what the taints were for is decided anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::names::controllers::DISRUPTION_QUEUE;
use api::names::events::DISRUPTION_TERMINATING;
use api::names::metrics::{
    DISRUPTION_DECISIONS, DISRUPTION_DECISIONS_BY_NODEPOOL, DISRUPTION_QUEUE_FAILURES, NODECLAIMS_DISRUPTED,
    PODS_DISRUPTION_INITIATED,
};
use api::names::{labels, values};
use api::nodeclaim::NodeClaim;
use api::nodepool::{ConsolidationPolicy, DisruptionReason};
use cluster::state::{Key, Watched};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use runtime::Error;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::events::About;
use runtime::limit::Limiter;
use runtime::queue::{Backoff, Queue};

use super::Reason;
use super::candidate::Candidate;
use super::command::Command;
use super::mark;
use crate::Context;
use crate::retry::retry;
use crate::wiring::Wiring;

/// How long a command may take for each instance that is being disrupted, within limits.
const TIME_PER_INSTANCE: SignedDuration = SignedDuration::from_millis(80);
const LEAST_TIME: SignedDuration = SignedDuration::from_mins(10);
const MOST_TIME: SignedDuration = SignedDuration::from_hours(1);
/// When a command is looked at again that is not finished.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a command may take while so many instances are being disrupted.
fn timeout(instances: usize) -> SignedDuration {
    let factor = i32::try_from(instances).unwrap_or(i32::MAX);
    TIME_PER_INSTANCE.saturating_mul(factor).clamp(LEAST_TIME, MOST_TIME)
}

#[derive(Debug, Default)]
struct Inner {
    commands: BTreeMap<Key, Arc<Command>>,
    /// Which command an instance is part of.
    instances: BTreeMap<Box<str>, Key>,
    /// Claims of unfinished commands that are deleted already, by name.
    deleted: BTreeSet<Box<str>>,
}

/// Commands that are under way.
#[derive(Debug)]
pub(crate) struct Commands {
    context: Context,
    queue: Arc<Queue>,
    inner: Mutex<Inner>,
}

impl Commands {
    /// No commands yet, and the queue of those to come.
    pub(super) fn new(context: &Context) -> (Arc<Self>, Arc<Queue>) {
        let queue = Arc::new(Queue::new(Backoff::millis(1_000, 10_000)));
        let commands = Self { context: context.clone(), queue: Arc::clone(&queue), inner: Mutex::default() };
        (Arc::new(commands), queue)
    }

    /// Instances that are being disrupted.
    pub(super) fn queued(&self) -> BTreeSet<Box<str>> {
        self.inner.lock().instances.keys().cloned().collect()
    }

    /// Begins to carry a command out.
    pub(super) async fn start(&self, mut command: Command) -> Result<(), Error> {
        let context = &self.context;
        if command.provider_ids().any(|id| self.inner.lock().instances.contains_key(id)) {
            return Err(Error::Other("candidate is being disrupted".to_owned()));
        }
        tracing::info!(
            command = %command.text(),
            decision = command.decision(),
            "disrupted-node-count" = command.candidates.len(),
            "replacement-node-count" = 0,
            "pod-count" = command.pod_count(),
            "disrupted-nodes" = %command.shown_nodes(),
            "disrupting node(s)"
        );
        let reason = command.reason;
        let marked = join_all(command.candidates.iter().map(|it| begin(context, it, reason))).await;
        let failure = marked.iter().find_map(|marked| marked.as_ref().err().cloned());
        let mut is_marked = marked.iter().map(Result::is_ok);
        command.candidates.retain(|_| is_marked.next().unwrap_or_default());
        if let Some(error) = failure {
            if command.candidates.is_empty() {
                return Err(error);
            }
            tracing::error!(error = %error, "failed to mark all nodes for disruption");
        }
        context.cluster.update(|state| state.mark_for_deletion(command.provider_ids()));
        let labels = [command.decision(), reason.lower(), command.consolidation_type];
        context.metrics.add(&DISRUPTION_DECISIONS, &labels, 1.0);
        for pool in command.pools() {
            let labels = [pool, command.decision(), reason.lower(), command.consolidation_type];
            context.metrics.add(&DISRUPTION_DECISIONS_BY_NODEPOOL, &labels, 1.0);
        }
        let key = Key::cluster(&command.id);
        {
            let mut inner = self.inner.lock();
            for id in command.provider_ids() {
                inner.instances.insert(id.into(), key.clone());
            }
            inner.commands.insert(key.clone(), Arc::new(command));
        }
        self.queue.add(key);
        Ok(())
    }

    /// Forgets a command.
    fn drop_command(&self, key: &Key) {
        let mut inner = self.inner.lock();
        if let Some(command) = inner.commands.remove(key) {
            for candidate in &command.candidates {
                inner.instances.remove(&candidate.provider_id);
                inner.deleted.remove(candidate.claim.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }

    /// Deletes the claim of a candidate, and tells of it.
    async fn delete(&self, command: &Command, candidate: &Candidate) -> Result<(), Error> {
        let name = candidate.claim.metadata.name.as_deref().unwrap_or_default();
        if self.inner.lock().deleted.contains(name) {
            return Ok(());
        }
        let deleted = retry(|| async {
            match self.context.api.delete::<NodeClaim>(&candidate.claim).await {
                Ok(()) => Ok(true),
                // Gone, or another one of the same name.
                Err(error) if error.is_outrun() => Ok(false),
                Err(error) => Err(error),
            }
        });
        if deleted.await? {
            tell(&self.context, command, candidate);
        }
        self.inner.lock().deleted.insert(name.into());
        Ok(())
    }

    /// Takes everything back.
    async fn roll_back(&self, key: &Key, command: &Command, error: &Error) {
        let context = &self.context;
        let labels = [command.decision(), command.reason.lower(), command.consolidation_type];
        context.metrics.add(&DISRUPTION_QUEUE_FAILURES, &labels, 0.0);
        for taken_back in join_all(command.candidates.iter().map(|it| end(context, it))).await {
            if let Err(error) = taken_back {
                // The next look for leftovers tries again.
                tracing::debug!(error = %error, "a disrupted node could not be released");
            }
        }
        tracing::error!(
            command = %command.text(), error = %error,
            "failed terminating nodes while executing a disruption command"
        );
        context.cluster.update(|state| state.unmark_for_deletion(command.provider_ids()));
        self.drop_command(key);
    }
}

async fn begin(context: &Context, candidate: &Candidate, reason: Reason) -> Result<(), Error> {
    mark::taint(context, &candidate.node.key(), true).await?;
    mark::reason(context, &candidate.claim.key(), Some(reason)).await
}

async fn end(context: &Context, candidate: &Candidate) -> Result<(), Error> {
    mark::taint(context, &candidate.node.key(), false).await?;
    mark::reason(context, &candidate.claim.key(), None).await
}

/// Tells users and metrics that a node goes.
fn tell(context: &Context, command: &Command, candidate: &Candidate) {
    let reason = command.reason.text();
    for (about, kind) in
        [(About::object(&*candidate.node), "Node"), (About::object(&*candidate.claim), "NodeClaim")]
    {
        let uid = about.uid.clone();
        let message = format!("Disrupting {kind}: {reason}");
        context.events.publish(&DISRUPTION_TERMINATING, about, message, &[&uid, reason]);
    }
    let claim = &candidate.claim;
    let capacity_type = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::CAPACITY_TYPE));
    let labels = [
        command.reason.lower(),
        candidate.pool_name(),
        capacity_type.map_or("", String::as_str),
        consolidation_policy(command.reason, candidate),
        termination_mode(claim),
    ];
    context.metrics.add(&NODECLAIMS_DISRUPTED, &labels, 1.0);
    #[expect(clippy::cast_precision_loss, reason = "nobody has that many pods")]
    context.metrics.add(&PODS_DISRUPTION_INITIATED, &labels, candidate.pods.len() as f64);
}

/// The policy of the pool, where it is why.
fn consolidation_policy(reason: Reason, candidate: &Candidate) -> &'static str {
    match (reason.0, candidate.pool.spec.disruption.consolidation_policy) {
        (DisruptionReason::Drifted | DisruptionReason::Unhealthy, _) => "",
        (_, ConsolidationPolicy::WhenEmpty) => "when_empty",
        (_, ConsolidationPolicy::WhenEmptyOrUnderutilized) => "when_empty_or_underutilized",
        (_, ConsolidationPolicy::Balanced) => "balanced",
    }
}

/// How the pods of a node go.
fn termination_mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period {
        None => values::GRACEFUL,
        Some(grace) if grace.as_nanos() <= 0 => values::FORCEFUL,
        Some(_) => values::EVENTUAL,
    }
}

impl Reconcile for Commands {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let (command, instances) = {
                let inner = self.inner.lock();
                let Some(command) = inner.commands.get(key) else { return Ok(Again::No) };
                (Arc::clone(command), inner.instances.len())
            };
            let deleted = join_all(command.candidates.iter().map(|it| self.delete(&command, it))).await;
            let Some(error) = deleted.into_iter().find_map(Result::err) else {
                tracing::debug!(command = %command.text(), "command succeeded");
                self.drop_command(key);
                return Ok(Again::No);
            };
            if is_overdue(&command, instances, self.context.now()) {
                let error = Error::Other(format!("command reached timeout, {error}"));
                self.roll_back(key, &command, &error).await;
                return Ok(Again::No);
            }
            tracing::debug!(command = %command.text(), error = %error, "command is not finished");
            Ok(Again::After(INTERVAL))
        }
        .boxed()
    }
}

fn is_overdue(command: &Command, instances: usize, now: Timestamp) -> bool {
    now.duration_since(command.created) > timeout(instances)
}

/// The controller.
pub(super) fn controller(context: &Context, commands: Arc<Commands>, queue: Arc<Queue>) -> Controller {
    let workers = context.settings.workers(100, 1000);
    let wiring =
        Wiring { limiter: Some(Limiter::new(100.0, 1000)), ..Wiring::new(DISRUPTION_QUEUE, workers) };
    wiring.on(queue, commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_more_time_the_more_is_going_on() {
        for (instances, expected) in [
            (1, LEAST_TIME),
            (7_500, LEAST_TIME),
            (10_000, SignedDuration::from_secs(13 * 60 + 20)),
            (40_000, SignedDuration::from_secs(53 * 60 + 20)),
            (50_000, MOST_TIME),
            (usize::MAX, MOST_TIME),
        ] {
            assert_eq!(timeout(instances), expected, "{instances}");
        }
    }
}
