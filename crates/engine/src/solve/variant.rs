//! A pod's rules after some of its wishes were dropped.
//!
//! What is dropped, and in which order, does not depend on where the pod was tried, so the steps from all wishes
//! to none are the same for all pods of a class and are worked out once:
//!
//! ```text
//! 1 the first of several required node terms    4 the heaviest preferred node term
//! 2 the heaviest preferred pod affinity          5 the first spread that is only a wish
//! 3 the heaviest preferred pod anti-affinity     6 taints that only advise are tolerated
//! ```
//!
//! So only the last required term is tried with fewer wishes. When that has failed, the other terms are tried with
//! fewer wishes too.

use crate::intern::KeyId;
use crate::model::{PodClass, PodTerm, Spread, TolerationsId};
use crate::options::Preferences;
use crate::topology::GroupId;
use crate::universe::{RequirementId, SetId, Universe};

/// What a pod still asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wishes {
    required_terms: Vec<SetId>,
    preferred_terms: Vec<(i32, SetId)>,
    preferred_affinities: Vec<(i32, PodTerm)>,
    preferred_anti_affinities: Vec<(i32, PodTerm)>,
    spreads: Vec<Spread>,
    advice_tolerated: bool,
    /// What there was at first, until the required terms are tried a second time.
    first: Option<Box<Wishes>>,
    /// All required terms, while they are tried a second time.
    all_terms: Vec<SetId>,
}

impl Wishes {
    pub(crate) fn of(class: &PodClass, preferences: Preferences) -> Self {
        let mut wishes = Self {
            required_terms: class.required_terms.clone(),
            preferred_terms: class.preferred_terms.clone(),
            preferred_affinities: class.preferred_affinities.clone(),
            preferred_anti_affinities: class.preferred_anti_affinities.clone(),
            spreads: class.spreads.clone(),
            advice_tolerated: false,
            first: None,
            all_terms: Vec::new(),
        };
        if preferences == Preferences::Ignore {
            wishes.preferred_terms.clear();
            wishes.preferred_affinities.clear();
            wishes.preferred_anti_affinities.clear();
            wishes.spreads.retain(|spread| !spread.optional);
        }
        heaviest_first(&mut wishes.preferred_terms);
        heaviest_first(&mut wishes.preferred_affinities);
        heaviest_first(&mut wishes.preferred_anti_affinities);
        if wishes.required_terms.len() > 1 {
            wishes.first = Some(Box::new(wishes.clone()));
        }
        wishes
    }

    /// Whether the required terms are tried a second time.
    pub(crate) fn is_second_try(&self) -> bool {
        !self.all_terms.is_empty()
    }

    /// Goes to the next step. Returns whether there is one.
    ///
    /// Taints that only advise are tolerated last, and only if some pool has one.
    pub(crate) fn relax(&mut self, advice_exists: bool) -> bool {
        // The last term was the first to be tried with fewer wishes.
        let last_term = if self.is_second_try() { 2 } else { 1 };
        if self.required_terms.len() > last_term {
            self.required_terms.remove(0);
            return true;
        }
        if self.is_second_try() {
            self.required_terms.clone_from(&self.all_terms);
        }
        if self.drop_wish(advice_exists) {
            return true;
        }
        let Some(first) = self.first.take() else { return false };
        *self = *first;
        self.all_terms.clone_from(&self.required_terms);
        self.drop_wish(advice_exists)
    }

    /// Drops one wish. Returns whether there was one.
    fn drop_wish(&mut self, advice_exists: bool) -> bool {
        if !self.preferred_affinities.is_empty() {
            self.preferred_affinities.remove(0);
        } else if !self.preferred_anti_affinities.is_empty() {
            self.preferred_anti_affinities.remove(0);
        } else if !self.preferred_terms.is_empty() {
            self.preferred_terms.remove(0);
        } else if let Some(position) = self.spreads.iter().position(|spread| spread.optional) {
            self.spreads.swap_remove(position);
        } else if advice_exists && !self.advice_tolerated {
            self.advice_tolerated = true;
        } else {
            return false;
        }
        true
    }
}

fn heaviest_first<T>(terms: &mut [(i32, T)]) {
    terms.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
}

/// A step of a class, ready to be tried.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Everything asked of the node's labels, without the host name.
    pub(crate) requirements: SetId,
    /// What is asked of the host name.
    pub(crate) hostname: Option<RequirementId>,
    /// What must be, wishes left out.
    pub(crate) strict: SetId,
    pub(crate) tolerations: TolerationsId,
    /// Groups that bind the pod by its own statement.
    pub(crate) owned: Vec<GroupId>,
    /// Whether the required terms are tried a second time, which is not what people expect to read about.
    pub(crate) second_try: bool,
    /// Existing nodes that may still take a pod of this kind; filled when first needed.
    pub(crate) nodes: Option<Vec<u32>>,
    /// Claims that never will, one bit each.
    pub(crate) refused: Vec<u64>,
}

impl Variant {
    pub(crate) fn is_refused(&self, claim: usize) -> bool {
        self.refused.get(claim / 64).is_some_and(|word| word & (1 << (claim % 64)) != 0)
    }

    pub(crate) fn refuse(&mut self, claim: usize) {
        if self.refused.len() <= claim / 64 {
            self.refused.resize(claim / 64 + 1, 0);
        }
        self.refused[claim / 64] |= 1 << (claim % 64);
    }
}

impl Variant {
    /// Forgets what claims from a number on have refused.
    pub(crate) fn forget_refusals_from(&mut self, claim: usize) {
        self.refused.truncate((claim / 64).saturating_add(1));
        if let Some(word) = self.refused.get_mut(claim / 64) {
            *word &= (1 << (claim % 64)) - 1;
        }
    }
}

/// The parts of a variant that do not depend on groups.
pub(crate) struct Demands {
    pub(crate) requirements: SetId,
    pub(crate) hostname: Option<RequirementId>,
    pub(crate) strict: SetId,
    /// Alternatives of what the pod asks of its node, for spreads that look at it.
    pub(crate) node_filter: Vec<SetId>,
    pub(crate) spreads: Vec<Spread>,
    pub(crate) affinities: Vec<PodTerm>,
    pub(crate) anti_affinities: Vec<PodTerm>,
    pub(crate) advice_tolerated: bool,
}

impl Demands {
    pub(crate) fn new(class: &PodClass, wishes: &Wishes, universe: &mut Universe, hostname: KeyId) -> Self {
        let selector = class.node_selector;
        let strict =
            wishes.required_terms.first().map_or(selector, |term| universe.intersect(selector, *term));
        let all =
            wishes.preferred_terms.first().map_or(strict, |(_, term)| universe.intersect(strict, *term));
        let node_filter = if wishes.required_terms.is_empty() {
            vec![selector]
        } else {
            wishes.required_terms.iter().map(|term| universe.intersect(selector, *term)).collect()
        };
        let terms = |required: &[PodTerm], preferred: &[(i32, PodTerm)]| {
            required.iter().chain(preferred.iter().map(|(_, term)| term)).cloned().collect()
        };
        Self {
            hostname: universe.find(all, hostname),
            requirements: universe.without(all, hostname),
            strict,
            node_filter,
            spreads: wishes.spreads.clone(),
            affinities: terms(&class.affinities, &wishes.preferred_affinities),
            anti_affinities: terms(&class.anti_affinities, &wishes.preferred_anti_affinities),
            advice_tolerated: wishes.advice_tolerated,
        }
    }
}
