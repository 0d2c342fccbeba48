//! What is to be done to nodes.

use std::collections::BTreeSet;

use api::names::events::{CONSOLIDATION_CANDIDATE, CONSOLIDATION_REJECTED};
use api::names::labels;
use api::names::values::{DELETE, NO_OP, REBOOT, REPLACE, TERMINATE_FIRST};
use api::nodepool::DisruptionReason;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::candidate::Candidate;
use super::decision::{Cause, Notice};
use super::launch::Launch;
use super::scene::Simulated;
use super::{Class, Method, Reason};
use crate::provisioner::outcome::Nominated;
use crate::text::some;

/// How many types a log line names.
const SHOWN: usize = 5;

/// How nodes are disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They go once their replacements are there.
    Usual,
    /// They go first, because their successors need what they hold. Why, as metrics name it.
    TerminateFirst(&'static str),
    /// They stay, and are booted again.
    Reboot,
}

/// Nodes that are disrupted together.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// What tells it from others in logs.
    pub(crate) id: Box<str>,
    /// Why.
    pub(crate) reason: Reason,
    /// What can keep its nodes from being disrupted.
    pub(crate) class: Class,
    /// How metrics tell kinds of consolidation apart; empty for anything else.
    pub(crate) consolidation_type: &'static str,
    /// How.
    pub(crate) kind: Kind,
    /// The nodes.
    pub(crate) candidates: Vec<Candidate>,
    /// What is launched before they go.
    pub(crate) replacements: Vec<Launch>,
    /// Nodes that take some of their pods.
    pub(crate) destinations: Vec<Nominated>,
    /// When it was decided, or begun.
    pub(crate) created: Timestamp,
}

impl Command {
    /// Deletes some nodes.
    pub(crate) fn delete(method: &dyn Method, candidates: Vec<Candidate>, now: Timestamp) -> Self {
        Self::after(method, candidates, Simulated::default(), now)
    }

    /// Deletes some nodes once what was found to be needed for their pods is there.
    pub(crate) fn after(
        method: &dyn Method,
        candidates: Vec<Candidate>,
        simulated: Simulated,
        now: Timestamp,
    ) -> Self {
        Self {
            id: id(candidates.iter().map(|candidate| &*candidate.provider_id), now),
            reason: method.reason(),
            class: method.class(),
            consolidation_type: method.consolidation_type(),
            kind: Kind::Usual,
            candidates,
            replacements: simulated.launches,
            destinations: simulated.destinations,
            created: now,
        }
    }

    /// Deletes a node first; what its pods need comes afterwards.
    pub(crate) fn terminate_first(
        method: &dyn Method,
        candidate: Candidate,
        simulated: Simulated,
        why: &'static str,
        now: Timestamp,
    ) -> Self {
        let simulated = Simulated { launches: Vec::new(), ..simulated };
        Self { kind: Kind::TerminateFirst(why), ..Self::after(method, vec![candidate], simulated, now) }
    }

    /// What is done, in one word.
    pub(crate) fn decision(&self) -> &'static str {
        match self.kind {
            _ if self.candidates.is_empty() => NO_OP,
            Kind::TerminateFirst(_) => TERMINATE_FIRST,
            Kind::Reboot => REBOOT,
            Kind::Usual if self.replacements.is_empty() => DELETE,
            Kind::Usual => REPLACE,
        }
    }

    /// How much is saved per hour: what the nodes cost, less the least that their replacements do.
    pub(crate) fn savings(&self) -> f64 {
        if self.kind == Kind::Reboot {
            return 0.0;
        }
        let before: f64 = self.candidates.iter().map(|candidate| candidate.price).sum();
        before - self.replacements.iter().map(Launch::price).sum::<f64>()
    }

    /// Whether nodes go to save money.
    pub(crate) fn is_consolidation(&self) -> bool {
        self.reason.0 == DisruptionReason::Underutilized
    }

    /// Whether limits have a say in what it launches.
    pub(crate) fn is_limited(&self) -> bool {
        self.replacements.iter().any(|launch| launch.new.pool.spec.limits.is_some())
    }

    /// How many pods must move.
    pub(crate) fn pod_count(&self) -> usize {
        self.candidates.iter().map(|candidate| candidate.pods.len()).sum()
    }

    /// The pools of the nodes.
    pub(crate) fn pools(&self) -> BTreeSet<&str> {
        self.candidates.iter().map(Candidate::pool_name).collect()
    }

    /// The instances behind the nodes.
    pub(crate) fn provider_ids(&self) -> impl Iterator<Item = &str> {
        self.candidates.iter().map(|candidate| &*candidate.provider_id)
    }

    /// The command in one line.
    pub(crate) fn text(&self) -> String {
        let pools: Vec<&str> = self.pools().into_iter().collect();
        format!(
            "{}/{}: {}: nodepools=[{}]: {} (savings: ${:.2})",
            self.reason.text(),
            self.id,
            self.decision(),
            pools.join(","),
            self.exchange(),
            self.savings()
        )
    }

    /// The command in a few words, as events of single nodes have it.
    pub(crate) fn short_text(&self, candidate: &Candidate) -> String {
        if self.candidates.len() > 1 {
            let (name, count) = (candidate.name(), self.candidates.len());
            return format!("{}: [{name}] (part of {count}-node consolidation)", self.decision());
        }
        format!("{}: {}", self.decision(), self.exchange())
    }

    /// What goes and how much comes for it.
    fn exchange(&self) -> String {
        let names: Vec<&str> = self.candidates.iter().map(Candidate::name).collect();
        let names = names.join(", ");
        match self.replacements.len() {
            0 => format!("[{names}]"),
            1 => format!("[{names}] -> [1 replacement]"),
            count => format!("[{names}] -> [{count} replacements]"),
        }
    }

    /// What users are told of nodes that may be consolidated.
    pub(crate) fn candidate_notices(&self) -> Vec<Notice> {
        let savings = self.savings();
        let notices = self.candidates.iter().flat_map(|candidate| {
            let text = self.short_text(candidate);
            let message = format!("Consolidation candidate: {text} (savings: ${savings:.2})");
            candidate.notices(&CONSOLIDATION_CANDIDATE, &message, &text)
        });
        notices.collect()
    }

    /// What users are told of nodes that are not consolidated after all.
    pub(crate) fn rejected_notices(&self, cause: Cause) -> Vec<Notice> {
        let (savings, cause) = (self.savings(), cause.text());
        let notices = self.candidates.iter().flat_map(|candidate| {
            let text = self.short_text(candidate);
            let message = format!("Consolidation rejected: {text}, reason: {cause} (savings: ${savings:.2})");
            candidate.notices(&CONSOLIDATION_REJECTED, &message, &format!("{text}-{cause}"))
        });
        notices.collect()
    }

    /// The nodes, for logs.
    pub(crate) fn shown_nodes(&self) -> Value {
        let shown = self.candidates.iter().map(|candidate| {
            let mut shown = json!({
                "Node": {"name": candidate.name()},
                "NodeClaim": {"name": candidate.claim.metadata.name},
                "instance-type": candidate.label(labels::INSTANCE_TYPE),
                "capacity-type": candidate.label(labels::CAPACITY_TYPE),
            });
            if candidate.repaired.as_ref().is_some_and(|repaired| repaired.is_escalated) {
                shown["reboot-escalated"] = true.into();
            }
            shown
        });
        shown.collect()
    }

    /// What is launched, for logs. Types are named only where there is one launch.
    pub(crate) fn shown_replacements(&self) -> Value {
        let names_types = self.replacements.len() == 1;
        let shown = self.replacements.iter().map(|launch| {
            let mut shown = json!({"capacity-type": launch.capacity_type()});
            if names_types {
                shown["instance-types"] = some(&launch.new.types, SHOWN).into();
            }
            shown
        });
        shown.collect()
    }
}

/// An identifier that looks as upstream's do. Nodes are disrupted once at a time, so time and nodes tell
/// commands apart.
fn id<'a>(provider_ids: impl Iterator<Item = &'a str>, now: Timestamp) -> Box<str> {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    let mut hash = now.as_nanosecond().to_le_bytes().into_iter().fold(OFFSET, step);
    for id in provider_ids {
        hash = id.bytes().chain([0]).fold(hash, step);
    }
    let digits = format!("{hash:032x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-").into()
}

#[cfg(test)]
pub(super) mod tests;
