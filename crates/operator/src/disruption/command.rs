//! What is to be done to nodes.

use std::collections::BTreeSet;

use api::names::labels;
use api::names::values::{DELETE, NO_OP};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Reason;
use super::candidate::Candidate;

/// Nodes that are disrupted together.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// What tells it from others in logs.
    pub(crate) id: Box<str>,
    /// Why.
    pub(crate) reason: Reason,
    /// How metrics tell kinds of consolidation apart; empty for anything else.
    pub(crate) consolidation_type: &'static str,
    /// The nodes.
    pub(crate) candidates: Vec<Candidate>,
    /// When it was decided.
    pub(crate) created: Timestamp,
}

impl Command {
    /// Deletes some nodes.
    pub(crate) fn delete(
        reason: Reason,
        consolidation_type: &'static str,
        candidates: Vec<Candidate>,
        now: Timestamp,
    ) -> Self {
        let id = id(candidates.iter().map(|candidate| &*candidate.provider_id), now);
        Self { id, reason, consolidation_type, candidates, created: now }
    }

    /// What is done, in one word.
    pub(crate) fn decision(&self) -> &'static str {
        if self.candidates.is_empty() { NO_OP } else { DELETE }
    }

    /// How much is saved per hour.
    pub(crate) fn savings(&self) -> f64 {
        self.candidates.iter().map(|candidate| candidate.price).sum()
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
        let names: Vec<&str> = self.candidates.iter().map(Candidate::name).collect();
        format!(
            "{}/{}: {}: nodepools=[{}]: [{}] (savings: ${:.2})",
            self.reason.text(),
            self.id,
            self.decision(),
            pools.join(","),
            names.join(", "),
            self.savings()
        )
    }

    /// The nodes, for logs.
    pub(crate) fn shown_nodes(&self) -> Value {
        let shown = self.candidates.iter().map(|candidate| {
            json!({
                "Node": {"name": candidate.name()},
                "NodeClaim": {"name": candidate.claim.metadata.name},
                "instance-type": candidate.label(labels::INSTANCE_TYPE),
                "capacity-type": candidate.label(labels::CAPACITY_TYPE),
            })
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
