//! What a method found nothing in, so that it need not look again.

use std::collections::BTreeSet;
use std::sync::Arc;

use cluster::state::{Consolidated, State};
use jiff::Timestamp;

use crate::catalogue::Types;
use crate::disruption::budget::{Budget, Budgets};
use crate::disruption::candidate::Candidate;
use crate::disruption::payback;

/// What a method looked at.
#[derive(Debug)]
pub(super) struct Idle {
    seen: Consolidated,
    /// With whether they have yet to pay for themselves.
    candidates: Vec<(Box<str>, bool)>,
    budgets: Vec<usize>,
    leaving: BTreeSet<Box<str>>,
    types: Types,
}

impl Idle {
    pub(super) fn new(
        (seen, now): (Consolidated, Timestamp),
        candidates: &[Candidate],
        budgets: &Budgets,
        leaving: &BTreeSet<Box<str>>,
        types: &Types,
    ) -> Self {
        Self {
            seen,
            candidates: candidates
                .iter()
                .map(|it| (it.provider_id.clone(), payback::is_held(&it.claim, now)))
                .collect(),
            budgets: budgets.values().map(Budget::left).collect(),
            leaving: leaving.clone(),
            types: types.clone(),
        }
    }

    /// Whether what is to be looked at now is the same.
    pub(super) fn holds(&self, now: &Self, state: &State, time: Timestamp) -> bool {
        // Lists of types are replaced as a whole, and are kept here, so that none takes the place of another.
        let types = self.types.iter().zip(&now.types);
        let same_types = self.types.len() == now.types.len()
            && types.into_iter().all(|((a, old), (b, new))| a == b && Arc::ptr_eq(old, new));
        state.is_consolidated(self.seen, time)
            && self.candidates == now.candidates
            && self.budgets == now.budgets
            && self.leaving == now.leaving
            && same_types
    }
}
