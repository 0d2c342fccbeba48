//! Repairs nodes that the cloud's policies find broken: replaced, or booted again.
//!
//! ```text
//!   matches of the policies ──► due, urgent first ──► breaker, budget ──► reboot, or replace once pods have a place
//! ```

mod breaker;
mod commit;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::annotations::DO_NOT_REPAIR;
use api::names::conditions::node_claim::REBOOTING;
use api::names::metrics::NODECLAIMS_UNHEALTHY_DISRUPTED;
use api::names::values::{NO_RESERVED_CAPACITY, STATIC_AT_LIMIT};
use api::names::{events, labels};
use api::nodeclaim::NodeClaim;
use api::nodepool::DisruptionReason;
use api::shared::ConditionStatus;
use cloud::RepairAction;
use cloud::repair::{Policies, Resolution, resolve};
use cluster::objects::Node;
use cluster::state::{Change, Object, State};
use jiff::Timestamp;
use runtime::Settings;
use runtime::events::About;
use units::GoDuration;

use super::budget::Budgets;
use super::candidate::Candidate;
use super::command::{Command, Kind};
use super::decision::{Decision, Notice};
use super::drift::{reservation, with_its_own_reservation};
use super::oracle::Oracle;
use super::scene::{Ask, Scene, Simulated};
use super::static_drift::{
    AT_LIMIT, NO_TEMPLATE, OVER_SCALED, RESERVATIONS_FULL, can_come_back, full_reservations, is_over_scaled,
    one_for_one, room,
};
use super::stay::Stay;
use super::{Class, Method, Reason};
use crate::Context;
use crate::node_claim::reboot::is_worn_out;
use crate::text::{sentence, snake_case};
pub(super) use commit::commit;

/// What users are told who wonder why a broken node stays.
const NO_POOL: &str = "repair requires a NodePool to construct and budget a safe replacement";
const NO_BOUND: &str = "repair requires a termination grace period to bypass blocking pods";

/// Why a node is repaired.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Repaired {
    /// What the policies say.
    pub(crate) resolution: Resolution,
    /// Whether it is replaced although the policies would boot it again, because that has not helped.
    pub(crate) is_escalated: bool,
}

/// The policies of the cloud if nodes are to be repaired by them; why they cannot, if so.
pub fn policies(settings: &Settings, cloud: &dyn cloud::CloudProvider) -> Result<Option<Policies>, String> {
    if !settings.gates.node_repair || settings.legacy_node_repair {
        return Ok(None);
    }
    Policies::compile(cloud.repair_policies()).map(Some).map_err(|error| error.to_string())
}

/// Repairs nodes that the policies find broken, the most urgent first.
#[derive(Debug)]
pub(super) struct Repair {
    policies: Arc<Policies>,
}

impl Repair {
    /// Repairs by these policies.
    pub(super) fn new(policies: Arc<Policies>) -> Self {
        Self { policies }
    }

    /// What is to be done about a node at a time, if anything.
    fn resolve(&self, node: &Node, claim: &NodeClaim, now: Timestamp) -> Option<Repaired> {
        // What a reboot has not cured gets as much patience as before.
        let ended = claim.condition(REBOOTING).filter(|it| it.status == ConditionStatus::False);
        let not_before = ended.map(|it| it.last_transition_time.0);
        let mut resolution = resolve(&self.policies.matches(node), not_before, now)?;
        let is_escalated = resolution.action == RepairAction::Reboot && is_worn_out(claim, now);
        if is_escalated {
            resolution.action = RepairAction::Replace;
        }
        Some(Repaired { resolution, is_escalated })
    }

    /// Replaces a node, or says why not.
    fn replace<'s>(
        &self,
        scene: &'s Scene,
        oracle: &mut Option<Oracle<'s>>,
        candidate: &Candidate,
    ) -> Result<Command, Stay> {
        if candidate.pool.spec.replicas.is_some() {
            return self.replace_static(scene, candidate);
        }
        let ask = Ask { blocked_pods: true, ..Ask::default() };
        let oracle = oracle.get_or_insert_with(|| scene.oracle());
        let simulated = oracle.without(&[candidate], &ask);
        if simulated.is_complete() {
            return Ok(Command::after(self, vec![candidate.clone()], simulated, scene.now));
        }
        if scene.settings().gates.terminate_first_repair
            && let Some(simulated) = with_its_own_reservation(oracle, candidate, &ask)
        {
            let why = NO_RESERVED_CAPACITY;
            return Ok(Command::terminate_first(self, candidate.clone(), simulated, why, scene.now));
        }
        Err(Stay::Blocked(sentence(&simulated.summary())))
    }

    fn replace_static(&self, scene: &Scene, candidate: &Candidate) -> Result<Command, Stay> {
        let pool = &candidate.pool;
        if is_over_scaled(scene.state(), pool) {
            return Err(Stay::Silent(OVER_SCALED.to_owned()));
        }
        let goes_first = scene.settings().gates.terminate_first_repair;
        let first =
            |why| Command::terminate_first(self, candidate.clone(), Simulated::default(), why, scene.now);
        let checked = if goes_first { full_reservations(scene, pool) } else { Ok(None) };
        let offered = checked.map_err(|error| {
            let message = "skipping repair candidate, failed checking capacity reservations";
            tracing::error!(Node = candidate.name(), error = %error, "{message}");
            Stay::Silent(sentence(&error.to_string()))
        })?;
        if let Some(offered) = offered {
            let holds = reservation(scene, candidate).is_some_and(|id| offered.contains(id));
            if holds && can_come_back(scene, pool) {
                return Ok(first(NO_RESERVED_CAPACITY));
            }
            return Err(Stay::Blocked(RESERVATIONS_FULL.to_owned()));
        }
        if room(scene.state(), pool) > 0 {
            let command = one_for_one(self, scene, candidate.clone());
            return command.ok_or_else(|| Stay::Silent(NO_TEMPLATE.to_owned()));
        }
        if goes_first && can_come_back(scene, pool) {
            return Ok(first(STATIC_AT_LIMIT));
        }
        Err(Stay::Blocked(AT_LIMIT.to_owned()))
    }
}

/// A duration as Kubernetes writes it.
fn go(duration: Duration) -> GoDuration {
    GoDuration::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

/// How long the pods of a node have at most, if a policy says so. The claim may give them less.
fn drain_bound(resolution: &Resolution, claim: &NodeClaim) -> Option<GoDuration> {
    let within = go(resolution.bound.as_ref()?.within);
    Some(claim.spec.termination_grace_period.map_or(within, |of_claim| of_claim.min(within)))
}

impl Method for Repair {
    fn reason(&self) -> Reason {
        Reason(DisruptionReason::Unhealthy)
    }

    fn class(&self) -> Class {
        Class::Repair
    }

    fn consolidation_type(&self) -> &'static str {
        ""
    }

    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    fn accepts(&self, _: &State, candidate: &Candidate) -> Result<(), Option<Stay>> {
        let repaired = self.resolve(&candidate.node, &candidate.claim, candidate.seen);
        let resolution = repaired.ok_or(None)?.resolution;
        let annotations = &candidate.node.metadata.annotations;
        if annotations.get(DO_NOT_REPAIR).is_some_and(|value| &**value == "true") {
            let why = format!("repair is blocked through the {DO_NOT_REPAIR:?} annotation");
            return Err(Some(Stay::Blocked(why)));
        }
        let is_bounded =
            resolution.bound.is_some() || candidate.claim.spec.termination_grace_period.is_some();
        if candidate.blocked.is_some() && !is_bounded {
            return Err(Some(Stay::Blocked(NO_BOUND.to_owned())));
        }
        Ok(())
    }

    /// Nodes without a pool cannot be repaired; that is said only of those that should be.
    fn notices(&self, state: &State, now: Timestamp) -> Vec<Notice> {
        let nodes = state.state_nodes().into_iter().filter(|node| node.pool().is_empty());
        let broken = nodes
            .filter_map(|node| Some((node.node?, node.claim?)))
            .filter(|(node, claim)| self.resolve(node, claim, now).is_some());
        let notices = broken.flat_map(|(node, claim)| {
            [About::object(node), About::object(claim)].map(|about| Notice {
                event: &events::DISRUPTION_BLOCKED,
                about,
                message: NO_POOL.to_owned(),
                repeats: NO_POOL.to_owned(),
            })
        });
        notices.collect()
    }

    /// One node at a time, the most urgent that can be repaired.
    fn decide(&self, scene: &Scene, candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        let mut decision = Decision::default();
        let mut oracle = None;
        let tripped = breaker::tripped(scene.state(), &self.policies);
        for mut candidate in by_urgency(self, candidates, scene.now) {
            let Some(repaired) = candidate.repaired.clone() else { continue };
            if tripped.contains(candidate.pool_name()) {
                decision.notices.extend(breaker::notices(&candidate));
                decision.keep(&candidate, Stay::Silent(breaker::message(&candidate)));
                continue;
            }
            // Nodes that are not initialised do not count in budgets either.
            let budget = budgets.get_mut(candidate.pool_name()).filter(|_| candidate.initialized);
            if budget.as_ref().map_or(candidate.initialized, |budget| budget.left() == 0) {
                decision.keep(&candidate, Stay::held(&candidate, budgets, self.reason()));
                continue;
            }
            candidate.drain_bound = drain_bound(&repaired.resolution, &candidate.claim);
            let command = match repaired.resolution.action {
                RepairAction::Reboot => {
                    let command = Command::delete(self, vec![candidate.clone()], scene.now);
                    Ok(Command { kind: Kind::Reboot, ..command })
                }
                RepairAction::Replace => self.replace(scene, &mut oracle, &candidate),
            };
            match command {
                Ok(command) => {
                    if let Some(budget) = budget {
                        budget.take();
                    }
                    decision.commands.push(command);
                    break;
                }
                Err(why) => decision.keep(&candidate, why),
            }
        }
        decision
    }
}

/// Candidates with why they are repaired: the most urgent first, then those that cost least, then by name.
fn by_urgency(repair: &Repair, candidates: Vec<Candidate>, now: Timestamp) -> Vec<Candidate> {
    let resolved = candidates.into_iter().filter_map(|mut candidate| {
        let repaired = repair.resolve(&candidate.node, &candidate.claim, now)?;
        let score = repaired.resolution.score;
        candidate.repaired = Some(Arc::new(repaired));
        Some((score, candidate))
    });
    let mut all: Vec<(f64, Candidate)> = resolved.collect();
    all.sort_by(|(a, one), (b, other)| {
        let cost = || one.disruption_cost.total_cmp(&other.disruption_cost);
        b.total_cmp(a).then_with(cost).then_with(|| one.name().cmp(other.name()))
    });
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Tells the log why the nodes of a command are repaired.
pub(super) fn log(command: &Command) {
    for candidate in &command.candidates {
        let Some(Repaired { resolution, .. }) = candidate.repaired.as_deref() else { continue };
        let bound = resolution.bound.as_ref();
        tracing::info!(
            Node = candidate.name(),
            condition = &*resolution.condition,
            status = &*resolution.status,
            reason = &*resolution.reason,
            "reason-regex" = resolution.pattern,
            fallback = resolution.is_fallback,
            action = resolution.action.as_str(),
            "eligible-at" = %resolution.eligible_at,
            "termination-grace-period" = bound.map(|bound| tracing::field::display(go(bound.within))),
            "termination-grace-period-condition" = bound.map(|bound| &*bound.condition),
            "selected repair policy"
        );
    }
}

/// Counts a node that goes or is booted again because it is broken.
pub(super) fn count(context: &Context, candidate: &Candidate, termination_mode: &str) {
    let Some(repaired) = candidate.repaired.as_deref() else { return };
    let claim = &candidate.claim;
    let series = [
        &*snake_case(&repaired.resolution.condition),
        candidate.pool_name(),
        crate::node_claim::label(claim, labels::CAPACITY_TYPE),
        claim.status.as_ref().map_or("", |status| &status.image_id),
        termination_mode,
    ];
    context.metrics.add(&NODECLAIMS_UNHEALTHY_DISRUPTED, &series, 1.0);
}

/// Writes into the log which policies nodes fall under, when that changes.
pub(super) fn watch(context: &Context, policies: &Arc<Policies>) {
    let policies = Arc::clone(policies);
    context.cluster.listen(Box::new(move |change, _| {
        let Change { old, new: Some(Object::Node(new)) } = change else { return };
        let old = match old {
            Some(Object::Node(old)) => Some(old),
            _ => None,
        };
        if old.is_some_and(|old| old.status.conditions == new.status.conditions) {
            return;
        }
        let before = old.map(|old| policies.matches(old)).unwrap_or_default();
        let now = policies.matches(new);
        if before == now {
            return;
        }
        let node = &*new.metadata.name;
        if now.is_empty() {
            tracing::debug!(Node = node, "no longer matches any repair policy");
        }
        for it in now {
            let grace = it.policy.termination_grace_period.map(go);
            tracing::debug!(
                Node = node,
                condition = it.condition,
                status = it.status,
                reason = it.reason,
                "reason-regex" = it.policy.reason_pattern,
                fallback = it.is_fallback,
                action = it.policy.action.as_str(),
                "eligible-at" = %it.eligible_at,
                "termination-grace-period" = grace.map(tracing::field::display),
                "matched repair policy"
            );
        }
    }));
}
