//! Stops repair where so many nodes are broken that the cause is not in the nodes.

use std::collections::{BTreeMap, BTreeSet};

use api::names::events::NODE_REPAIR_BLOCKED;
use api::names::labels;
use cloud::repair::Policies;
use cluster::state::State;
use runtime::events::About;

use super::super::candidate::Candidate;
use super::super::decision::Notice;
use crate::node::is_too_many;

/// The pools of which more than a fifth of the nodes are broken, whatever the reason and however short the time.
pub(super) fn tripped(state: &State, policies: &Policies) -> BTreeSet<Box<str>> {
    let mut counts = BTreeMap::<&str, (usize, usize)>::new();
    for node in state.nodes.values() {
        let pool = node.metadata.labels.text(labels::NODEPOOL);
        if !pool.is_empty() {
            let (broken, all) = counts.entry(pool).or_default();
            *all += 1;
            *broken += usize::from(policies.is_broken(node));
        }
    }
    let tripped = counts.into_iter().filter(|(_, (broken, all))| is_too_many(*broken, *all));
    tripped.map(|(pool, _)| pool.into()).collect()
}

/// Why a node is not repaired.
pub(super) fn message(candidate: &Candidate) -> String {
    format!("more than 20% of nodes in nodepool {:?} are unhealthy", candidate.pool_name())
}

/// What users are told of a node that is not repaired for that reason, on everything that it concerns.
pub(super) fn notices(candidate: &Candidate) -> [Notice; 3] {
    let message = message(candidate);
    let about =
        [About::object(&*candidate.node), About::object(&*candidate.claim), About::object(&*candidate.pool)];
    about.map(|about| Notice {
        event: &NODE_REPAIR_BLOCKED,
        about,
        message: message.clone(),
        repeats: String::new(),
    })
}
