//! How many nodes of each pool may be disrupted now. Entry: [`budgets`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use api::names::events::NODE_POOL_DISRUPTION_BLOCKED;
use api::names::metrics::{NODEPOOLS_ALLOWED_DISRUPTIONS, NODEPOOLS_NODES_CONSUMING_BUDGETS};
use api::nodepool::{DisruptionReason, NodePool};
use api::validation::budget::{By, Limit, limit};
use cluster::state::State;
use cluster::state_node::StateNode;
use jiff::Timestamp;
use runtime::events::About;

use super::{Reason, mark};
use crate::Context;
use crate::managed::is_pool_managed;

/// How many nodes of a pool may be disrupted for one reason.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pool: Arc<NodePool>,
    /// How many nodes the pool has.
    pub(crate) nodes: usize,
    /// How many its budgets allow to be disrupted at the same time.
    pub(crate) allowed: i32,
    /// Which of its budgets says so.
    by: By,
    /// How many are disrupted, for whatever reason.
    pub(crate) disrupting: usize,
    taken: usize,
}

impl Budget {
    /// The pool.
    pub(crate) fn pool(&self) -> &NodePool {
        &self.pool
    }

    /// What limits it, in words; nothing where nothing does.
    pub(crate) fn limited(&self) -> String {
        let place = match &self.by {
            By::Nothing => return String::new(),
            By::Unreadable(place, _) => return format!("spec.disruption.budgets[{place}] cannot be read"),
            By::Budget(place) => *place,
        };
        let mut text = format!("spec.disruption.budgets[{place}]");
        let Some(budget) = self.pool.spec.disruption.budgets.get(place) else { return text };
        let plural = if self.nodes == 1 { "" } else { "s" };
        let _ = write!(text, ": {} of {} node{plural}", budget.nodes, self.nodes);
        if let (Some(schedule), Some(duration)) = (&budget.schedule, &budget.duration) {
            let _ = write!(text, ", from {schedule:?} for {duration}");
        }
        text
    }

    /// As [`Self::limited`], with what is wrong if something is.
    pub(crate) fn explained(&self) -> String {
        match &self.by {
            By::Unreadable(_, error) => format!("{} and therefore allows nothing: {error}", self.limited()),
            By::Nothing | By::Budget(_) => self.limited(),
        }
    }

    /// How many more may be disrupted.
    pub(crate) fn left(&self) -> usize {
        usize::try_from(self.allowed).unwrap_or(0).saturating_sub(self.disrupting + self.taken)
    }

    /// Takes one, if there is any left.
    pub(crate) fn take(&mut self) -> bool {
        let is_left = self.left() > 0;
        self.taken += usize::from(is_left);
        is_left
    }

    /// Leaves so many at most.
    pub(crate) fn keep(&mut self, most: usize) {
        self.taken += self.left().saturating_sub(most);
    }
}

/// Budgets by the names of pools.
pub(crate) type Budgets = BTreeMap<Box<str>, Budget>;

/// How many nodes of each pool may be disrupted for a reason. `nodes` are all of the state; instances in `leaving`
/// are taken as on their way out.
pub(crate) fn budgets(
    state: &State,
    nodes: &[StateNode<'_>],
    reason: DisruptionReason,
    leaving: &BTreeSet<Box<str>>,
    now: Timestamp,
) -> Budgets {
    let pools = state.node_pools.values().filter(|pool| is_pool_managed(pool, state.provider()));
    let mut all: Budgets = pools
        .map(|pool| {
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let budget = Budget {
                pool: Arc::clone(pool),
                nodes: 0,
                allowed: 0,
                by: By::Nothing,
                disrupting: 0,
                taken: 0,
            };
            (name.into(), budget)
        })
        .collect();
    for node in nodes {
        let counts = node.is_managed()
            && (node.is_initialized() || node.is_rebooting())
            && !node.is_instance_terminating();
        let Some(budget) = all.get_mut(node.pool()).filter(|_| counts) else { continue };
        budget.nodes += 1;
        // What repair is for must not keep it from working.
        let is_broken = !node.is_ready() && reason != DisruptionReason::Unhealthy;
        // One that still bears our taint takes no pods, whatever it was for.
        let leaves = node.is_marked_for_deletion()
            || leaving.contains(node.provider_id())
            || node.node.is_some_and(mark::is_tainted);
        if leaves || node.is_rebooting() || is_broken {
            budget.disrupting += 1;
        }
    }
    for budget in all.values_mut() {
        let of_pool = &budget.pool.spec.disruption.budgets;
        Limit { allowed: budget.allowed, by: budget.by } = limit(of_pool, reason, budget.nodes, now);
    }
    all
}

/// Tells metrics and users what budgets allow.
pub(crate) fn publish(context: &Context, budgets: &Budgets, reason: Reason) {
    for (name, budget) in budgets {
        let labels = [&**name, reason.lower()];
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
        let disrupting = budget.disrupting as f64;
        context.metrics.set(&NODEPOOLS_ALLOWED_DISRUPTIONS, &labels, f64::from(budget.allowed));
        context.metrics.set(&NODEPOOLS_NODES_CONSUMING_BUDGETS, &labels, disrupting);
        if budget.nodes != 0 && budget.allowed == 0 {
            let about = About::object(&*budget.pool);
            let (uid, reason) = (about.uid.clone(), reason.text());
            let message =
                format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
            context.events.publish(&NODE_POOL_DISRUPTION_BLOCKED, about, message, &[&uid, reason]);
        }
    }
}
