//! What PodDisruptionBudgets say about pods. Entry: [`Budgets`].

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::eligibility::{is_disruptable, is_evictable, is_reschedulable};
use crate::objects::{Pod, PodDisruptionBudget};

/// The budgets of a cluster, at one point in time.
#[derive(Debug)]
pub struct Budgets<'a>(BTreeMap<&'a str, Vec<&'a PodDisruptionBudget>>);

/// When a budget counts as blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It allows nothing at present.
    ZeroDisruptions,
    /// It never allows anything.
    FullyBlocking,
}

/// The budgets that keep a pod where it is.
#[derive(Clone, Debug)]
pub struct Blocked<'a> {
    /// One, or several: the API does not evict a pod that several select.
    pub budgets: Vec<&'a PodDisruptionBudget>,
}

impl fmt::Display for Blocked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.budgets.iter().map(|it| format!("{}/{}", it.metadata.namespace(), it.metadata.name));
        let keys = keys.collect::<Vec<_>>().join(" ");
        if self.budgets.len() > 1 {
            write!(f, "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{keys}])")
        } else {
            write!(f, "pdb prevents pod evictions (PodDisruptionBudget=[{keys}])")
        }
    }
}

impl<'a> Budgets<'a> {
    /// The budgets of a cluster.
    pub fn new(budgets: impl IntoIterator<Item = &'a PodDisruptionBudget>) -> Self {
        let mut by_namespace = BTreeMap::<_, Vec<_>>::new();
        for budget in budgets {
            by_namespace.entry(budget.metadata.namespace()).or_default().push(budget);
        }
        Self(by_namespace)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The budgets that count a pod.
    pub fn selecting(&self, pod: &Pod) -> impl Iterator<Item = &'a PodDisruptionBudget> {
        let budgets = self.0.get(pod.metadata.namespace()).map_or(&[][..], Vec::as_slice);
        budgets.iter().copied().filter(|budget| {
            budget.spec.selector.as_ref().is_some_and(|selector| selector.matches(&pod.metadata.labels))
        })
    }

    /// The budgets that have a say in whether a pod may be evicted.
    pub fn holding(&self, pod: &Pod, now: Timestamp) -> impl Iterator<Item = &'a PodDisruptionBudget> {
        self.selecting(pod).filter(move |budget| is_evictable(pod, now) && !lets_go(budget, pod))
    }

    /// What keeps a pod where it is. What is not evicted is not blocked.
    pub fn blocked(&self, pod: &Pod, mode: Mode, now: Timestamp) -> Option<Blocked<'a>> {
        let budgets: Vec<_> = self.selecting(pod).collect();
        if budgets.is_empty() || !is_evictable(pod, now) {
            return None;
        }
        let blocks = match budgets.as_slice() {
            [budget] => blocks(budget, pod, mode),
            _ => true,
        };
        blocks.then_some(Blocked { budgets })
    }

    /// The first pod that a budget keeps on its node at present, and which does. It is not checked whether
    /// several pods of one budget may leave at once.
    pub fn first_blocked<'p>(
        &self,
        pods: impl IntoIterator<Item = &'p Pod>,
        now: Timestamp,
    ) -> Option<(&'p Pod, Blocked<'a>)> {
        let mut pods = pods.into_iter();
        pods.find_map(|pod| Some((pod, self.blocked(pod, Mode::ZeroDisruptions, now)?)))
    }

    /// The first budget that does not let all those of some pods go that nobody creates again. Others come back
    /// somewhere else, so that the next one may go; of these, some would stay for ever.
    pub fn first_outnumbered<'p>(
        &self,
        pods: impl IntoIterator<Item = &'p Pod>,
        now: Timestamp,
    ) -> Option<Blocked<'a>> {
        let mut counts = BTreeMap::<(&str, &str), i32>::new();
        let alone = |pod: &&Pod| pod.metadata.owner_references.is_empty() && is_evictable(pod, now);
        let pods = pods.into_iter().filter(alone);
        pods.flat_map(|pod| self.selecting(pod).filter(|it| !lets_go(it, pod))).find_map(|budget| {
            let count = counts.entry((budget.metadata.namespace(), &budget.metadata.name)).or_default();
            *count += 1;
            (*count > budget.status.disruptions_allowed).then(|| Blocked { budgets: vec![budget] })
        })
    }

    /// Whether a pod of a node that goes away needs a place elsewhere now: it will be created again, and nothing
    /// keeps it where it is for ever.
    pub fn may_move(&self, pod: &Pod, now: Timestamp) -> bool {
        is_reschedulable(pod)
            && is_disruptable(pod, now)
            && self.blocked(pod, Mode::FullyBlocking, now).is_none()
    }
}

/// Whether a budget does not care about a pod, because it is not healthy.
fn lets_go(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    &*budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" && pod.status.conditions.not_ready
}

fn blocks(budget: &PodDisruptionBudget, pod: &Pod, mode: Mode) -> bool {
    if lets_go(budget, pod) {
        return false;
    }
    match mode {
        Mode::ZeroDisruptions => budget.status.disruptions_allowed == 0,
        Mode::FullyBlocking => never_allows(budget),
    }
}

fn never_allows(budget: &PodDisruptionBudget) -> bool {
    let is_text =
        |value: &IntOrString, text: &str| matches!(value, IntOrString::String(found) if found == text);
    let none_missing = budget
        .spec
        .max_unavailable
        .as_ref()
        .is_some_and(|max| matches!(max, IntOrString::Int(0)) || is_text(max, "0%"));
    none_missing || budget.spec.min_available.as_ref().is_some_and(|min| is_text(min, "100%"))
}

#[cfg(test)]
mod tests;
