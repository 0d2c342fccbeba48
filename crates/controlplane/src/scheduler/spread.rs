//! Topology spread: how evenly pods are over the domains of a topology key.

use super::cluster::Cluster;
use super::counts::Question;
use super::filter::Statics;
use super::pod::{PodInfo, Spread};
use super::verdict::Rejection;

const UNEVEN: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// The question whose answers a constraint needs.
///
/// An empty selector counts nobody, although it matches the pod itself.
pub(crate) fn question(spread: &Spread) -> Option<Question> {
    (!spread.group.selector.is_empty()).then(|| Question { groups: vec![spread.group.clone()], living: true })
}

/// The hard constraints of a pod with the pods they count.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpreadState {
    constraints: Vec<Domains>,
}

#[derive(Clone, Debug)]
struct Domains {
    /// Which of the pod's constraints this is.
    constraint: usize,
    topology: usize,
    /// Matching pods by domain; `None` where no eligible node is.
    counts: Vec<Option<i64>>,
    least: i64,
}

impl SpreadState {
    pub(crate) fn new(cluster: &Cluster, pod: &PodInfo, statics: &Statics) -> Self {
        let hard = pod.spreads.iter().enumerate().filter(|(_, spread)| spread.hard);
        let mut constraints: Vec<Domains> = hard
            .filter_map(|(constraint, spread)| {
                let (topology, known) = cluster.topology_of(&spread.topology_key)?;
                Some(Domains { constraint, topology, counts: vec![None; known.domains()], least: 0 })
            })
            .collect();
        if constraints.is_empty() {
            return Self::default();
        }
        let questions: Vec<_> =
            constraints.iter().map(|one| question(&pod.spreads[one.constraint])).collect();
        let answers: Vec<_> = questions
            .iter()
            .map(|one| one.as_ref().map_or(&[][..], |one| cluster.counts.answer(one)))
            .collect();
        for (slot, _, _) in cluster.nodes() {
            // A node that lacks one of the keys counts for none of them.
            if constraints.iter().any(|one| cluster.topology(one.topology).domain(slot).is_none()) {
                continue;
            }
            for (domains, answer) in constraints.iter_mut().zip(&answers) {
                if !includes(&pod.spreads[domains.constraint], statics, slot) {
                    continue;
                }
                let Some(domain) = cluster.topology(domains.topology).domain(slot) else { continue };
                *domains.counts[domain].get_or_insert(0) += answer.get(slot).copied().unwrap_or(0);
            }
        }
        for domains in &mut constraints {
            domains.find_least(&pod.spreads);
        }
        Self { constraints }
    }

    pub(crate) fn filter(&self, cluster: &Cluster, pod: &PodInfo, slot: usize) -> Result<(), Rejection> {
        for domains in &self.constraints {
            let spread = &pod.spreads[domains.constraint];
            let Some(domain) = cluster.topology(domains.topology).domain(slot) else {
                return Err(Rejection::final_(NO_LABEL));
            };
            let here = domains.counts.get(domain).copied().flatten().unwrap_or(0);
            if here + i64::from(spread.matches_itself) - domains.least > spread.max_skew {
                return Err(Rejection::resolvable(UNEVEN));
            }
        }
        Ok(())
    }

    /// What if another pod came to this slot (`by` 1) or left it (-1).
    pub(crate) fn change(
        &mut self,
        cluster: &Cluster,
        pod: &PodInfo,
        statics: &Statics,
        (other, slot, by): (&PodInfo, usize, i64),
    ) {
        if other.key.0 != pod.key.0
            || self.constraints.iter().any(|one| cluster.topology(one.topology).domain(slot).is_none())
        {
            return;
        }
        for domains in &mut self.constraints {
            let spread = &pod.spreads[domains.constraint];
            if !spread.group.selector.matches(other.labels()) || !includes(spread, statics, slot) {
                continue;
            }
            let Some(domain) = cluster.topology(domains.topology).domain(slot) else { continue };
            *domains.counts[domain].get_or_insert(0) += by;
            domains.find_least(&pod.spreads);
        }
    }
}

impl Domains {
    fn find_least(&mut self, spreads: &[Spread]) {
        let present = self.counts.iter().flatten();
        let (domains, least) =
            present.fold((0, i64::MAX), |(domains, least), count| (domains + 1, least.min(*count)));
        self.least = if domains < spreads[self.constraint].min_domains { 0 } else { least };
    }
}

/// Whether the constraint looks at this node at all.
fn includes(spread: &Spread, statics: &Statics, slot: usize) -> bool {
    (!spread.honors.affinity || statics.selected(slot)) && (!spread.honors.taints || statics.tolerated(slot))
}
