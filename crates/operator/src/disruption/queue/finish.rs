//! What happens to commands that are under way.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::annotations::TERMINATION_TIMESTAMP;
use api::names::conditions::node_claim::INITIALIZED;
use api::names::events::{DISRUPTION_LAUNCHING, DISRUPTION_WAITING_READINESS};
use api::nodeclaim::NodeClaim;
use cluster::eligibility::is_reschedulable;
use cluster::pod_disruption_budgets::Budgets;
use cluster::state::{Key, State, Watched};
use cluster::state_node::claim_provider_id;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use runtime::Error;
use runtime::controller::{Again, Outcome, Reconcile};
use runtime::events::About;
use serde_json::json;
use units::GoDuration;

use super::{Commands, Entry, Replacement, tell};
use crate::disruption::candidate::Candidate;
use crate::disruption::command::Command;
use crate::disruption::objection::{Objection, hindered};
use crate::disruption::payback;
use crate::node_claim::deadline;
use crate::node_claim::lifecycle::text;
use crate::retry::retry;
use crate::text::sentence;
use crate::{Context, status};

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

fn is_overdue(command: &Command, instances: usize, now: Timestamp) -> bool {
    now.duration_since(command.created) > timeout(instances)
}

/// How far the replacements of a command are.
enum Progress {
    Ready,
    Waiting,
    Lost,
}

/// Why not all nodes of a command could be deleted.
struct Stopped {
    error: Error,
    /// Whether it is no use to wait.
    lasts: bool,
}

impl Commands {
    /// Looks at the replacements of a command.
    fn look(&self, key: &Key, entry: &Entry) -> Progress {
        let mut progress = Progress::Ready;
        for (position, replacement) in entry.replacements.iter().enumerate() {
            let Some(claim) = current(&self.context.cluster.read(), &replacement.claim) else {
                return Progress::Lost;
            };
            if replacement.initialized {
                continue;
            }
            let (about, reason) = (About::object(&*claim), entry.command.reason.text());
            let (uid, events) = (about.uid.clone(), &self.context.events);
            let message = format!("Launching NodeClaim: {reason}");
            events.publish(&DISRUPTION_LAUNCHING, about.clone(), message, &[&uid, reason]);
            if claim.is_true(INITIALIZED) {
                if let Some(entry) = self.inner.lock().commands.get_mut(key) {
                    entry.replacements[position].initialized = true;
                }
                continue;
            }
            let message = "Waiting on readiness to continue disruption";
            events.publish(&DISRUPTION_WAITING_READINESS, about, message, &[&uid]);
            progress = Progress::Waiting;
        }
        progress
    }

    /// Deletes the claims of all candidates whose pods let them go: either all or none where a replacement is for
    /// all of them.
    async fn delete_all(&self, entry: &Entry) -> Result<(), Stopped> {
        let (command, now) = (&*entry.command, self.context.now());
        let mut objections: Vec<(&Candidate, Objection)> = Vec::new();
        let mut free: Vec<&Candidate> = Vec::new();
        {
            let state = self.context.cluster.read();
            let budgets = Budgets::new(state.pod_disruption_budgets.values().map(Arc::as_ref));
            for candidate in command.candidates.iter().filter(|it| current(&state, &it.claim).is_some()) {
                match hindered(&state, &budgets, command, candidate, now) {
                    Some(objection) => objections.push((candidate, objection)),
                    None => free.push(candidate),
                }
            }
        }
        for (candidate, objection) in &objections {
            for notice in candidate.blocked_notices(&sentence(&objection.why)) {
                notice.publish(&self.context.events);
            }
        }
        if objections.is_empty() || entry.replacements.is_empty() {
            self.note_payback(entry).await;
            let deleted = join_all(free.into_iter().map(|it| self.delete(command, it))).await;
            if let Some(error) = deleted.into_iter().find_map(Result::err) {
                return Err(Stopped { error, lasts: false });
            }
        }
        let lasts = objections.iter().any(|(_, objection)| objection.lasts);
        let first = objections.into_iter().next();
        first.map_or(Ok(()), |(_, it)| Err(Stopped { error: Error::Other(it.why), lasts }))
    }

    /// Notes until when replacements pay for themselves.
    async fn note_payback(&self, entry: &Entry) {
        let new: Vec<_> = entry.replacements.iter().map(|it| Arc::clone(&it.claim)).collect();
        if let Err(error) = payback::note(&self.context, &entry.command, &new).await {
            // It is tried only a few times: to pay for both costs more than to move once too often.
            tracing::debug!(error = %error, "it could not be noted until when a node pays for itself");
        }
    }

    /// Deletes the claim of a candidate, and tells of it.
    async fn delete(&self, command: &Command, candidate: &Candidate) -> Result<(), Error> {
        let uid = candidate.claim.metadata.uid.as_deref().unwrap_or_default();
        if self.inner.lock().deleted.contains(uid) {
            return Ok(());
        }
        if let Some(bound) = candidate.drain_bound {
            stamp(&self.context, &candidate.claim.key(), bound).await?;
        }
        if retry(|| delete_claim(&self.context, &candidate.claim)).await? {
            tell::terminating(&self.context, command, candidate);
        }
        self.inner.lock().deleted.insert(uid.into());
        Ok(())
    }

    /// Forgets a command.
    fn drop_command(&self, key: &Key) {
        let mut inner = self.inner.lock();
        if let Some(Entry { command, .. }) = inner.commands.remove(key) {
            for candidate in &command.candidates {
                inner.instances.remove(&candidate.provider_id);
                inner.deleted.remove(candidate.claim.metadata.uid.as_deref().unwrap_or_default());
            }
        }
    }

    fn succeed(&self, key: &Key, command: &Command) {
        tracing::debug!(command = %command.text(), "command succeeded");
        self.inner.lock().pauses.succeeded(command);
        self.drop_command(key);
    }

    /// Takes everything back.
    async fn roll_back(&self, key: &Key, error: &Error) {
        let Some(Entry { command, replacements }) = self.inner.lock().commands.get(key).cloned() else {
            return;
        };
        let missing = replacements.iter().filter(|it| !it.initialized).count();
        tell::failed(&self.context, &command, missing);
        self.release_candidates(&command).await;
        tracing::error!(
            command = %command.text(), error = %error,
            "failed terminating nodes while executing a disruption command"
        );
        for Replacement { claim, .. } in &replacements {
            if is_unused(&self.context.cluster.read(), claim) {
                delete_replacement(&self.context, claim).await;
            }
        }
        self.pause(&command);
        self.drop_command(key);
    }

    async fn advance(&self, key: &Key) -> Again {
        let (entry, instances) = {
            let inner = self.inner.lock();
            let Some(entry) = inner.commands.get(key) else { return Again::No };
            (entry.clone(), inner.instances.len())
        };
        let command = &entry.command;
        // Nodes that somebody else deletes go anyway.
        let is_left = {
            let state = self.context.cluster.read();
            command.candidates.iter().any(|it| current(&state, &it.claim).is_some())
        };
        if !is_left {
            self.succeed(key, command);
            return Again::No;
        }
        let error = match self.look(key, &entry) {
            Progress::Lost => {
                self.roll_back(key, &Error::Other("replacement was deleted".to_owned())).await;
                return Again::No;
            }
            Progress::Waiting => Error::Other("a replacement is not initialized".to_owned()),
            Progress::Ready => match self.delete_all(&entry).await {
                Ok(()) => {
                    self.succeed(key, command);
                    return Again::No;
                }
                Err(Stopped { error, lasts: true }) => {
                    self.roll_back(key, &error).await;
                    return Again::No;
                }
                Err(Stopped { error, lasts: false }) => error,
            },
        };
        if is_overdue(command, instances, self.context.now()) {
            let error = Error::Other(format!("command reached timeout, {error}"));
            self.roll_back(key, &error).await;
            return Again::No;
        }
        tracing::debug!(command = %command.text(), error = %error, "command is not finished");
        Again::After(INTERVAL)
    }
}

impl Reconcile for Commands {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move { Ok(self.advance(key).await) }.boxed()
    }
}

/// That very claim as it is now, unless it is gone or on its way.
pub(super) fn current(state: &State, claim: &NodeClaim) -> Option<Arc<NodeClaim>> {
    let known = state.node_claims.get(&claim.key())?;
    let is_same = known.metadata.uid == claim.metadata.uid && known.metadata.deletion_timestamp.is_none();
    is_same.then(|| Arc::clone(known))
}

/// Whether nobody has any use for a claim: it has no instance, or no pods are on it or wait for it. Pods that run
/// elsewhere do not count: those of the nodes that it was to replace were expected on it, too.
fn is_unused(state: &State, claim: &NodeClaim) -> bool {
    let Some(claim) = current(state, claim) else { return false };
    let node = state.node_of_claim(&claim);
    let has_pods =
        node.is_some_and(|node| state.pods_on(&node.metadata.name).any(|pod| is_reschedulable(pod)));
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let waits = |pod: &Key| state.pods.get(pod).is_some_and(|pod| pod.spec.node_name.is_empty());
    claim_provider_id(&claim).is_empty() || !has_pods && !state.pods_expected_on(name).any(waits)
}

/// Deletes that very claim; whether it was there.
async fn delete_claim(context: &Context, claim: &NodeClaim) -> Result<bool, Error> {
    match context.api.delete::<NodeClaim>(claim).await {
        Ok(()) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        // There is another one of the same name. As long as we do not see it, the server only was too busy.
        Err(error) if error.is_conflict() && current(&context.cluster.read(), claim).is_none() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes a claim that was created for nothing.
pub(super) async fn delete_replacement(context: &Context, claim: &NodeClaim) {
    if let Err(error) = retry(|| delete_claim(context, claim)).await {
        // It lives on as an empty node, and goes as such.
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        tracing::error!(NodeClaim = name, error = %error, "failed to delete a replacement that nobody needs");
    }
}

/// When the pods of a claim must be gone at the latest, if that is sooner than what it says already.
fn sooner(claim: &NodeClaim, bound: GoDuration, now: Timestamp) -> Option<Timestamp> {
    let due = now.saturating_add(SignedDuration::from(bound)).unwrap_or(Timestamp::MAX);
    let known = deadline(claim).and_then(Result::ok);
    known.is_none_or(|known| known > due).then_some(due)
}

/// Writes down when the pods of a claim must be gone.
async fn stamp(context: &Context, key: &Key, bound: GoDuration) -> Result<(), Error> {
    let attempt = || async {
        let known = context.cluster.read().node_claims.get(key).map(Arc::clone);
        let Some(known) = known else { return Ok(()) };
        let Some(due) = sooner(&known, bound, context.now()) else { return Ok(()) };
        let mut metadata = status::lock(&*known);
        metadata["annotations"] = json!({TERMINATION_TIMESTAMP: text(due)});
        context.api.patch::<NodeClaim>(key, &json!({"metadata": metadata})).await.map(|_| ())
    };
    match retry(attempt).await {
        Err(error) if error.is_not_found() => Ok(()),
        stamped => stamped,
    }
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

    #[test]
    fn a_deadline_is_only_ever_brought_forward() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let claim = |at: Option<&str>| {
            let at = at.map(|at| json!({TERMINATION_TIMESTAMP: at})).unwrap_or(json!({}));
            crate::testing::claim("c", &json!({"metadata": {"annotations": at}}))
        };
        let due = |at, seconds| sooner(&claim(at), GoDuration::from_secs(seconds), now).map(text);
        assert_eq!(due(None, 60).as_deref(), Some("2026-01-01T00:01:00Z"));
        assert_eq!(due(None, 0).as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(due(Some("2026-01-01T00:00:30Z"), 60), None);
        assert_eq!(due(Some("2026-01-01T00:01:00Z"), 60), None);
        assert_eq!(due(Some("2026-01-01T00:02:00Z"), 60).as_deref(), Some("2026-01-01T00:01:00Z"));
        assert_eq!(due(Some("soon"), 60).as_deref(), Some("2026-01-01T00:01:00Z"));
    }
}
