//! Required pod affinity and anti-affinity, the pod's own and that of pods already placed.

use super::cluster::Cluster;
use super::counts::Question;
use super::pod::{PodInfo, Term};
use super::verdict::Rejection;

const FAR: &str = "node(s) didn't match pod affinity rules";
const TOO_NEAR: &str = "node(s) didn't match pod anti-affinity rules";
const UNWELCOME: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Pods that match every affinity term.
pub(crate) fn affinity_question(pod: &PodInfo) -> Question {
    Question { groups: pod.affinity.iter().map(|term| term.group.as_asked()).collect(), living: false }
}

/// Pods that match one anti-affinity term.
pub(crate) fn anti_affinity_question(term: &Term) -> Question {
    Question { groups: vec![term.group.as_asked()], living: false }
}

/// Counts by domain for one topology key.
#[derive(Clone, Debug)]
struct Domains {
    topology: usize,
    counts: Vec<i64>,
}

/// What the filter needs about one pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct AffinityState {
    /// By affinity term: pods that match all of them.
    wanted: Vec<Domains>,
    /// By anti-affinity term: pods that match it.
    avoided: Vec<Domains>,
    /// By topology key: placed pods that do not want this pod near.
    repelled: Vec<Domains>,
    /// Whether there is anything to look at; if not, changes of the cluster do not matter either.
    active: bool,
    /// A pod that wants itself near may be the first of its kind.
    wants_itself: bool,
    /// Whether no pod anywhere matches all affinity terms.
    alone: bool,
}

impl AffinityState {
    pub(crate) fn new(cluster: &Cluster, pod: &PodInfo) -> Self {
        let empty = |key: &str| {
            let (topology, known) = cluster.topology_of(key)?;
            Some(Domains { topology, counts: vec![0; known.domains()] })
        };
        let count = |term: &Term, question: &Question| {
            let mut domains = empty(&term.topology_key)?;
            let topology = cluster.topology(domains.topology);
            for (slot, count) in
                cluster.counts.answer(question).iter().enumerate().filter(|(_, count)| **count != 0)
            {
                if let Some(domain) = topology.domain(slot) {
                    domains.counts[domain] += count;
                }
            }
            Some(domains)
        };
        let together = affinity_question(pod);
        let wanted: Vec<_> = pod.affinity.iter().filter_map(|term| count(term, &together)).collect();
        let avoided: Vec<_> =
            pod.anti_affinity.iter().filter_map(|term| count(term, &anti_affinity_question(term))).collect();

        let of_namespace = cluster.namespace_labels(&pod.key.0);
        let mut repelled: Vec<Domains> = vec![];
        for (term, slots) in cluster.counts.repelling() {
            if !term.group.matches(pod, of_namespace) {
                continue;
            }
            let Some(more) = empty(&term.topology_key) else { continue };
            let position =
                repelled.iter().position(|one| one.topology == more.topology).unwrap_or_else(|| {
                    repelled.push(more);
                    repelled.len() - 1
                });
            let domains = &mut repelled[position];
            for (slot, count) in slots {
                if let Some(domain) = cluster.topology(domains.topology).domain(*slot) {
                    domains.counts[domain] += count;
                }
            }
        }
        repelled.retain(|one| one.counts.iter().any(|count| *count > 0));
        let active = !(pod.affinity.is_empty() && pod.anti_affinity.is_empty() && repelled.is_empty());
        let wants_itself = wants(pod, pod, cluster);
        let mut state = Self { wanted, avoided, repelled, active, wants_itself, alone: false };
        state.look_around();
        state
    }

    pub(crate) fn filter(&self, cluster: &Cluster, slot: usize) -> Result<(), Rejection> {
        if !self.active {
            return Ok(());
        }
        let mut all_near = true;
        for domains in &self.wanted {
            let Some(domain) = cluster.topology(domains.topology).domain(slot) else {
                return Err(Rejection::final_(FAR));
            };
            all_near &= domains.counts[domain] > 0;
        }
        let first_of_its_kind = self.alone && self.wants_itself;
        if !all_near && !first_of_its_kind {
            return Err(Rejection::final_(FAR));
        }
        let crowded = |domains: &Domains| {
            let domain = cluster.topology(domains.topology).domain(slot);
            domain.is_some_and(|domain| domains.counts[domain] > 0)
        };
        if self.avoided.iter().any(crowded) {
            return Err(Rejection::resolvable(TOO_NEAR));
        }
        if self.repelled.iter().any(crowded) {
            return Err(Rejection::resolvable(UNWELCOME));
        }
        Ok(())
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    fn look_around(&mut self) {
        self.alone = self.wanted.iter().all(|domains| domains.counts.iter().all(|count| *count == 0));
    }

    /// What if another pod came to this slot (`by` 1) or left it (-1).
    pub(crate) fn change(
        &mut self,
        cluster: &Cluster,
        pod: &PodInfo,
        (other, slot, by): (&PodInfo, usize, i64),
    ) {
        if !self.active {
            return;
        }
        let domain_of = |topology: usize| cluster.topology(topology).domain(slot);
        let others_namespace = cluster.namespace_labels(&other.key.0);
        if wants(pod, other, cluster) {
            for domains in &mut self.wanted {
                if let Some(domain) = domain_of(domains.topology) {
                    domains.counts[domain] += by;
                }
            }
            self.look_around();
        }
        for (domains, term) in self.avoided.iter_mut().zip(&pod.anti_affinity) {
            if let Some(domain) =
                domain_of(domains.topology).filter(|_| term.group.as_asked().matches(other, others_namespace))
            {
                domains.counts[domain] += by;
            }
        }
        let of_namespace = cluster.namespace_labels(&pod.key.0);
        for term in other.anti_affinity.iter().filter(|term| term.group.matches(pod, of_namespace)) {
            let Some((topology, known)) = cluster.topology_of(&term.topology_key) else { continue };
            let Some(domain) = known.domain(slot) else { continue };
            let position =
                self.repelled.iter().position(|one| one.topology == topology).unwrap_or_else(|| {
                    self.repelled.push(Domains { topology, counts: vec![0; known.domains()] });
                    self.repelled.len() - 1
                });
            self.repelled[position].counts[domain] += by;
        }
    }
}

/// Whether `other` matches every affinity term of `pod`.
fn wants(pod: &PodInfo, other: &PodInfo, cluster: &Cluster) -> bool {
    let of_namespace = cluster.namespace_labels(&other.key.0);
    !pod.affinity.is_empty()
        && pod.affinity.iter().all(|term| term.group.as_asked().matches(other, of_namespace))
}
