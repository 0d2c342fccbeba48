//! How many pods with which labels are where, kept up to date while pods come and go.
//!
//! Without it every pod with a topology rule would look at every other pod.

use std::collections::BTreeMap;

use super::pod::{Group, PodInfo, Term};
use super::selector::Labels;

/// More questions than this are not kept: most belong to workloads that are gone.
const KEPT_QUESTIONS: usize = 4096;
/// What a required affinity of a placed pod weighs when another pod is scored.
const REQUIRED_AFFINITY_WEIGHT: i64 = 1;

/// Which pods are counted: those that belong to every group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    pub(crate) groups: Vec<Group>,
    /// Leaves out pods that are being deleted.
    pub(crate) living: bool,
}

impl Question {
    fn counts(&self, pod: &PodInfo, of_namespace: &Labels) -> bool {
        !(self.living && pod.is_terminating())
            && self.groups.iter().all(|group| group.matches(pod, of_namespace))
    }
}

/// Counts by node slot.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    questions: BTreeMap<Question, Vec<i64>>,
    /// Required anti-affinity of placed pods: how often each term is on which slot.
    repelling: BTreeMap<Term, BTreeMap<usize, i64>>,
    /// Preferences of placed pods about others: the sum of weights on each slot.
    pulling: BTreeMap<Term, BTreeMap<usize, i64>>,
}

impl Counts {
    /// Answers a question from now on; `placed` are all pods with their slots.
    pub(crate) fn ask<'a>(
        &mut self,
        question: &Question,
        slots: usize,
        placed: impl Iterator<Item = (usize, &'a PodInfo)>,
        of_namespace: impl Fn(&str) -> &'a Labels,
    ) {
        if self.questions.contains_key(question) {
            return;
        }
        let mut counts = vec![0; slots];
        for (slot, pod) in placed {
            if question.counts(pod, of_namespace(&pod.key.0)) {
                counts[slot] += 1;
            }
        }
        self.questions.insert(question.clone(), counts);
    }

    /// The answer by slot; slots beyond its end have none. Empty unless asked before.
    pub(crate) fn answer(&self, question: &Question) -> &[i64] {
        self.questions.get(question).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn repelling(&self) -> &BTreeMap<Term, BTreeMap<usize, i64>> {
        &self.repelling
    }

    pub(crate) fn pulling(&self) -> &BTreeMap<Term, BTreeMap<usize, i64>> {
        &self.pulling
    }

    /// Makes room between two attempts; what the next one needs is asked again.
    pub(crate) fn tidy(&mut self) {
        if self.questions.len() >= KEPT_QUESTIONS {
            self.questions.clear();
        }
    }

    /// Forgets answers that depend on the labels of namespaces.
    pub(crate) fn forget(&mut self) {
        self.questions.clear();
    }

    /// A pod comes to a slot (`sign` 1) or leaves it (-1).
    pub(crate) fn change(&mut self, pod: &PodInfo, of_namespace: &Labels, slot: usize, sign: i64) {
        for (question, counts) in &mut self.questions {
            if question.counts(pod, of_namespace) {
                if counts.len() <= slot {
                    counts.resize(slot + 1, 0);
                }
                counts[slot] += sign;
            }
        }
        for term in &pod.anti_affinity {
            change(&mut self.repelling, term, slot, sign);
        }
        for term in &pod.affinity {
            change(&mut self.pulling, term, slot, sign * REQUIRED_AFFINITY_WEIGHT);
        }
        for (weight, term) in &pod.preferred {
            change(&mut self.pulling, term, slot, sign * weight);
        }
    }
}

fn change(terms: &mut BTreeMap<Term, BTreeMap<usize, i64>>, term: &Term, slot: usize, by: i64) {
    if !terms.contains_key(term) {
        terms.insert(term.clone(), BTreeMap::new());
    }
    let Some(slots) = terms.get_mut(term) else { return };
    let sum = slots.entry(slot).or_default();
    *sum += by;
    if *sum == 0 {
        slots.remove(&slot);
        if slots.is_empty() {
            terms.remove(term);
        }
    }
}
