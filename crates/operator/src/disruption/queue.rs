//! Carries commands out. Entry: [`Commands::start`].
//!
//! ```text
//!   start: taint, say why ─► create replacements ─► mark for deletion ─► expect pods elsewhere
//!   then:  wait until all replacements are initialised ─► delete
//!          too late, or a replacement is gone ─► take everything back
//! ```
//!
//! What is under way is known to this process only. After a restart, what the taints were for is decided anew.

mod finish;
mod pauses;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::names::controllers::DISRUPTION_QUEUE;
use api::nodeclaim::NodeClaim;
use cluster::state::{Key, Watched};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use runtime::Error;
use runtime::controller::Controller;
use runtime::limit::Limiter;
use runtime::queue::{Backoff, Queue};

use super::candidate::Candidate;
use super::command::{Command, Kind};
use super::launch::Launch;
use super::{Reason, mark, repair};
use crate::Context;
use crate::provisioner::create::{create, nominate};
use crate::static_capacity::node_limit;
use crate::wiring::Wiring;
use pauses::Pauses;

/// How long nodes of a pool stay while others of it go to save money. Pods that take longer to leave hold up nobody.
const SETTLING: SignedDuration = SignedDuration::from_mins(1);

/// A command that is under way.
#[derive(Clone, Debug)]
struct Entry {
    command: Arc<Command>,
    replacements: Vec<Replacement>,
}

/// A claim that was created for a command.
#[derive(Clone, Debug)]
struct Replacement {
    claim: Arc<NodeClaim>,
    /// Whether it was ready for pods once. Only that it is gone matters afterwards.
    initialized: bool,
}

#[derive(Debug, Default)]
struct Inner {
    commands: BTreeMap<Key, Entry>,
    /// Which command an instance is part of.
    instances: BTreeMap<Box<str>, Key>,
    /// Claims of unfinished commands that are deleted already, by UID.
    deleted: BTreeSet<Box<str>>,
    /// Claims that were created for commands that have not begun yet, by name.
    created: BTreeSet<Box<str>>,
    /// What was begun lately to save money, finished or not.
    savings: Vec<Arc<Command>>,
    pauses: Pauses,
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

    /// Instances that commands rely on: they are to take pods of those that are being disrupted.
    pub(super) fn destinations(&self) -> BTreeSet<Box<str>> {
        let inner = self.inner.lock();
        let nodes = inner.commands.values().flat_map(|entry| &entry.command.destinations);
        nodes.map(|node| node.origin.provider_id.clone()).collect()
    }

    /// Pools of nodes that were to go lately to save money and are still there: their pods are on the move.
    pub(super) fn unsettled_pools(&self, now: Timestamp) -> BTreeSet<Box<str>> {
        // Others ask for commands while they hold the state, so the state is never asked for while commands are held.
        let lately = {
            let mut inner = self.inner.lock();
            inner.savings.retain(|command| now.duration_since(command.created) < SETTLING);
            inner.savings.clone()
        };
        let state = self.context.cluster.read();
        let is_there = |it: &&Candidate| {
            let name = it.claim.metadata.name.as_deref().unwrap_or_default();
            state.node_claims.named(name).is_some_and(|now| now.metadata.uid == it.claim.metadata.uid)
        };
        let left = lately.iter().flat_map(|command| &command.candidates).filter(is_there);
        left.map(|candidate| candidate.pool_name().into()).collect()
    }

    /// Whether a node is left alone for a while, because it or others of its pool could not be replaced.
    pub(super) fn is_paused(&self, candidate: &Candidate, reason: Reason, now: Timestamp) -> bool {
        self.inner.lock().pauses.is_paused(candidate, reason, now)
    }

    /// Begins to carry a command out. If that fails, everything is as it was before.
    pub(super) async fn start(&self, command: Command) -> Result<(), Error> {
        let command = Command { created: self.context.now(), ..command };
        if command.provider_ids().any(|id| self.inner.lock().instances.contains_key(id)) {
            return Err(Error::Other("candidate is being disrupted".to_owned()));
        }
        tell::begin(&command);
        if command.kind == Kind::Reboot {
            return self.reboot(command).await;
        }
        let entry = self.begin(command).await?;
        let command = Arc::clone(&entry.command);
        tell::decided(&self.context, &command);
        let key = Key::cluster(&command.id);
        {
            let mut inner = self.inner.lock();
            for id in command.provider_ids() {
                inner.instances.insert(id.into(), key.clone());
            }
            if command.is_consolidation() {
                inner.savings.push(Arc::clone(&command));
            }
            for name in entry.replacements.iter().filter_map(|it| it.claim.metadata.name.as_deref()) {
                inner.created.remove(name);
            }
            inner.commands.insert(key.clone(), entry);
        }
        self.queue.add(key);
        Ok(())
    }

    /// Lets nodes be booted again. Others carry that out.
    async fn reboot(&self, mut command: Command) -> Result<(), Error> {
        let mut candidates = Vec::new();
        for candidate in std::mem::take(&mut command.candidates) {
            if repair::commit(&self.context, &candidate, command.reason).await? {
                candidates.push(candidate);
            }
        }
        let command = Command { candidates, ..command };
        if !command.candidates.is_empty() {
            tell::decided(&self.context, &command);
        }
        Ok(())
    }

    async fn begin(&self, mut command: Command) -> Result<Entry, Error> {
        let context = &self.context;
        reserve(context, &command.replacements)?;
        let mut marked = self.mark_all(&mut command).await;
        if marked.is_ok()
            && let Err(error) = self.check_limits(&command)
        {
            self.release_candidates(&command).await;
            marked = Err(error);
        }
        if let Err(error) = marked {
            release(context, &command.replacements);
            return Err(error);
        }
        let replacements = match self.create_all(&command).await {
            Ok(replacements) => replacements,
            Err(error) => {
                self.release_candidates(&command).await;
                self.pause(&command);
                return Err(error);
            }
        };
        // Not before: the provisioner would launch nodes for the same pods.
        context.cluster.update(|state| {
            state.mark_for_deletion(command.provider_ids());
            let until = command.created + context.settings.nomination_window();
            command.destinations.iter().for_each(|node| state.nominate(&node.origin.provider_id, until));
        });
        for node in &command.destinations {
            nominate(context, &node.pods, node.origin.claim.as_deref(), node.origin.node.as_deref());
        }
        Ok(Entry { command: Arc::new(command), replacements })
    }

    /// Fails if somebody else has launched nodes since it was decided what limits allow: then decisions were made side
    /// by side, of which only one may be right. What commands launch together was planned together.
    fn check_limits(&self, command: &Command) -> Result<(), Error> {
        let own: BTreeSet<Box<str>> = {
            let inner = self.inner.lock();
            let claims = inner.commands.values().flat_map(|entry| &entry.replacements);
            let claims = claims.filter_map(|it| it.claim.metadata.name.as_deref().map(Into::into));
            claims.chain(inner.created.iter().cloned()).collect()
        };
        let state = self.context.cluster.read();
        command.replacements.iter().try_for_each(|launch| launch.check_limits(&state, &own))
    }

    /// Taints all nodes and says why. Where nothing is launched, those that cannot be tainted are left out.
    async fn mark_all(&self, command: &mut Command) -> Result<(), Error> {
        let (context, reason) = (&self.context, command.reason);
        let fixed = command.candidates.iter().filter(|it| it.pool.spec.replicas.is_some());
        let fixed: Vec<String> = fixed.filter_map(|it| it.claim.metadata.name.clone()).collect();
        context.cluster.update(|state| state.mark_pending_disruption(fixed.iter().map(String::as_str)));
        let marked = join_all(command.candidates.iter().map(|it| begin(context, it, reason))).await;
        let Some(error) = marked.iter().find_map(|marked| marked.as_ref().err().cloned()) else {
            return Ok(());
        };
        for (candidate, _) in command.candidates.iter().zip(&marked).filter(|(_, marked)| marked.is_err()) {
            self.inner.lock().pauses.unmarked(candidate, reason, context.now());
        }
        let is_useless = marked.iter().all(Result::is_err) || !command.replacements.is_empty();
        let mut is_marked = marked.iter().map(Result::is_ok);
        let (kept, left): (Vec<_>, Vec<_>) = std::mem::take(&mut command.candidates)
            .into_iter()
            .partition(|_| is_marked.next().unwrap_or(false));
        let given_up =
            if is_useless { kept.iter().chain(&left).collect() } else { left.iter().collect::<Vec<_>>() };
        release_all(context, &given_up).await;
        if is_useless {
            command.candidates = kept.into_iter().chain(left).collect();
            return Err(error);
        }
        command.candidates = kept;
        tracing::error!(error = %error, "failed to mark all nodes for disruption");
        Ok(())
    }

    /// Creates all replacements, or none.
    async fn create_all(&self, command: &Command) -> Result<Vec<Replacement>, Error> {
        let context = &self.context;
        let reason = command.reason.lower();
        let created = command.replacements.iter().map(|launch| async {
            let created = create(context, &launch.new, reason).await?;
            self.inner.lock().created.extend(created.metadata.name.as_deref().map(Into::into));
            Ok(created)
        });
        let created: Vec<Result<Arc<NodeClaim>, Error>> = join_all(created).await;
        release(context, &command.replacements);
        let failure = created.iter().find_map(|created| created.as_ref().err().cloned());
        let claims: Vec<Arc<NodeClaim>> = created.into_iter().filter_map(Result::ok).collect();
        let Some(error) = failure else {
            let new = claims.into_iter().map(|claim| Replacement { claim, initialized: false });
            return Ok(new.collect());
        };
        for claim in &claims {
            finish::delete_replacement(context, claim).await;
            self.inner.lock().created.remove(claim.metadata.name.as_deref().unwrap_or_default());
        }
        Err(error)
    }

    /// Takes back what was done to the nodes of a command; those that are deleted already go.
    async fn release_candidates(&self, command: &Command) {
        let stay: Vec<&Candidate> = {
            let state = self.context.cluster.read();
            command.candidates.iter().filter(|it| finish::current(&state, &it.claim).is_some()).collect()
        };
        release_all(&self.context, &stay).await;
    }

    /// Leaves what a command was about alone for a while.
    fn pause(&self, command: &Command) {
        let now = self.context.now();
        self.inner.lock().pauses.failed(command, now);
    }
}

/// Sets room aside for the claims of pools with a fixed number of nodes.
fn reserve(context: &Context, launches: &[Launch]) -> Result<(), Error> {
    context.cluster.update(|state| {
        for (position, launch) in launches.iter().enumerate().filter(|(_, launch)| launch.is_static()) {
            // What it may have is what it says now.
            let limit = state.node_pools.named(launch.pool()).and_then(|pool| node_limit(pool));
            if state.reserve(launch.pool(), limit, 1) == 0 {
                for launch in launches[..position].iter().filter(|launch| launch.is_static()) {
                    state.release(launch.pool(), 1);
                }
                let pool = launch.pool();
                return Err(Error::Other(format!("nodepool node limit reached (NodePool={pool})")));
            }
        }
        Ok(())
    })
}

/// Takes back what [`reserve`] has set aside.
fn release(context: &Context, launches: &[Launch]) {
    context.cluster.update(|state| {
        for launch in launches.iter().filter(|launch| launch.is_static()) {
            state.release(launch.pool(), 1);
        }
    });
}

async fn begin(context: &Context, candidate: &Candidate, reason: Reason) -> Result<(), Error> {
    mark::taint(context, &candidate.node.key(), true).await?;
    mark::reason(context, &candidate.claim.key(), Some(reason)).await
}

async fn end(context: &Context, candidate: &Candidate) -> Result<(), Error> {
    mark::taint(context, &candidate.node.key(), false).await?;
    mark::reason(context, &candidate.claim.key(), None).await
}

/// Takes back what was done to nodes.
async fn release_all(context: &Context, candidates: &[&Candidate]) {
    for released in join_all(candidates.iter().map(|it| end(context, it))).await {
        if let Err(error) = released {
            // The next look for leftovers tries again.
            tracing::debug!(error = %error, "a disrupted node could not be released");
        }
    }
    context.cluster.update(|state| state.unmark_for_deletion(candidates.iter().map(|it| &*it.provider_id)));
}

/// The controller.
pub(super) fn controller(context: &Context, commands: Arc<Commands>, queue: Arc<Queue>) -> Controller {
    let workers = context.settings.workers(100, 1000);
    let wiring =
        Wiring { limiter: Some(Limiter::new(100.0, 1000)), ..Wiring::new(DISRUPTION_QUEUE, workers) };
    wiring.on(queue, commands)
}
