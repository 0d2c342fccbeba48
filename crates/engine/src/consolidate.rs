//! Which nodes a cluster can do without, and which a cheaper one can replace.
//!
//! ```text
//! examine     one set of nodes: delete, replace, or why neither
//! examine_all every node by itself, on all cores
//! merge       sets of nodes that go together: what is left can do without many at once
//! ```
//!
//! Prices only fall: whatever is decided here is certain to save money, so repeating it comes to an end.

use std::sync::Arc;

use crate::intern::ValueId;
use crate::model::{NodeId, PodId, Snapshot};
use crate::solve::{Answer, Bargain, Dear, Failure, Place, PlannedClaim, Question, Simulation};

/// A node that may go.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The node.
    pub node: NodeId,
    /// What it costs per hour.
    pub price: f64,
    /// Whether it is a spot node.
    pub spot: bool,
    /// Its type.
    pub type_: Option<ValueId>,
}

/// What there is to keep to.
pub trait Rules: Sync {
    /// Whether spot nodes may replace spot nodes.
    fn spot_to_spot(&self) -> bool;

    /// Whether some candidates, by their places in the list, may go together, as far as budgets are concerned.
    fn may_go(&self, candidates: &[usize]) -> bool;

    /// Whether a candidate may go together with others at all.
    fn may_join(&self, _candidate: usize) -> bool {
        true
    }

    /// Whether a candidate may make way for a new node. One that only goes always may.
    fn may_be_replaced(&self, candidate: usize) -> bool;

    /// Whether saving so much is worth moving the pods of some candidates.
    fn is_worth(&self, candidates: &[usize], savings: f64) -> bool;
}

/// What can be done about some nodes. It means something to the simulation that was asked, and to no copy of it.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The others have room for all pods.
    Delete,
    /// A cheaper one has room for what the others have not.
    Replace(Box<PlannedClaim>),
    /// Nothing.
    Keep(Keep),
}

/// Why nothing can be done.
#[derive(Clone, Debug)]
pub enum Keep {
    /// Some pods would have no place.
    Pods(Vec<(PodId, Unplaced)>),
    /// So many new nodes would be needed.
    ManyClaims(usize),
    /// A new node would not be cheaper for certain.
    Dear(Dear),
    /// Some of them do not make way for a new node yet.
    NotYet,
    /// It is not worth it; this is what it would save.
    NotWorth(f64),
}

/// Why a pod has no place.
#[derive(Clone, Debug)]
pub enum Unplaced {
    /// Nothing takes it.
    Failure(Arc<Failure>),
    /// A node that is not ready yet would.
    Unready(NodeId),
}

impl Verdict {
    /// What is saved per hour if nodes of a price go.
    pub fn savings(&self, price: f64) -> Option<f64> {
        match self {
            Self::Delete => Some(price),
            Self::Replace(claim) => Some(price - claim.price),
            Self::Keep(_) => None,
        }
    }
}

/// Nodes that go together.
#[derive(Clone, Debug)]
pub struct Move {
    /// Which, by their places in the list of candidates.
    pub candidates: Vec<usize>,
    /// What is done.
    pub verdict: Verdict,
    /// What is saved per hour.
    pub savings: f64,
    /// How many pods move.
    pub pods: usize,
    /// Nodes that take some of them.
    pub onto: Vec<NodeId>,
}

/// What becomes of the pods of an answer that have no place, or none that is ready.
pub fn unplaced(simulation: &Simulation<'_>, answer: &Answer) -> Vec<(PodId, Unplaced)> {
    let Snapshot { nodes, pods, .. } = simulation.snapshot();
    let failures = answer.failures.iter().map(|(pod, why)| (*pod, Unplaced::Failure(Arc::clone(why))));
    let unready = answer.places.iter().filter_map(|(pod, place)| match place {
        // Whoever has no place yet may go where one is coming.
        Place::Node(node) if !nodes[node.index()].initialized && pods[pod.index()].runs.is_some() => {
            Some((*pod, Unplaced::Unready(*node)))
        }
        _ => None,
    });
    failures.chain(unready).collect()
}

/// What can be done about some candidates, given by their places in a list. `exact` says how many new nodes would be
/// needed where it is too many.
pub fn examine(
    simulation: &mut Simulation<'_>,
    all: &[Candidate],
    chosen: &[usize],
    rules: &dyn Rules,
    exact: bool,
) -> Verdict {
    let nodes: Vec<NodeId> = chosen.iter().map(|index| all[*index].node).collect();
    let most_claims = if exact { usize::MAX } else { 1 };
    let answer = simulation.ask(&Question { saving: true, most_claims, ..Question::without(&nodes) });
    if answer.too_many_claims {
        return Verdict::Keep(Keep::ManyClaims(2));
    }
    let pods = unplaced(simulation, &answer);
    if !pods.is_empty() {
        return Verdict::Keep(Keep::Pods(pods));
    }
    let count = answer.claims.len();
    let mut claims = answer.claims.into_iter();
    let price: f64 = chosen.iter().map(|index| all[*index].price).sum();
    let verdict = match (claims.next(), claims.next()) {
        (None, _) => Verdict::Delete,
        (Some(_), Some(_)) => return Verdict::Keep(Keep::ManyClaims(count)),
        (Some(claim), None) => {
            match simulation.cheaper(claim, &bargain(all, chosen, price, rules, &rivals(all, chosen))) {
                Ok(_) if !chosen.iter().all(|index| rules.may_be_replaced(*index)) => {
                    return Verdict::Keep(Keep::NotYet);
                }
                Ok(claim) => Verdict::Replace(Box::new(claim)),
                Err(dear) => return Verdict::Keep(Keep::Dear(dear)),
            }
        }
    };
    match verdict.savings(price) {
        Some(savings) if !rules.is_worth(chosen, savings) => Verdict::Keep(Keep::NotWorth(savings)),
        _ => verdict,
    }
}

/// What a replacement of some candidates must be cheaper than.
fn bargain<'r>(
    all: &[Candidate],
    chosen: &[usize],
    price: f64,
    rules: &dyn Rules,
    rivals: &'r [(ValueId, f64)],
) -> Bargain<'r> {
    Bargain {
        than: price,
        all_spot: chosen.iter().all(|index| all[*index].spot),
        spot_to_spot: rules.spot_to_spot(),
        one_node: chosen.len() == 1,
        rivals,
    }
}

/// Types of several nodes that become one, with the lowest price of each. One node may become another of its type,
/// in another zone say.
fn rivals(all: &[Candidate], chosen: &[usize]) -> Vec<(ValueId, f64)> {
    let mut rivals: Vec<(ValueId, f64)> = Vec::new();
    if chosen.len() > 1 {
        for candidate in chosen.iter().map(|index| &all[*index]) {
            let Some(type_) = candidate.type_ else { continue };
            match rivals.iter_mut().find(|(known, _)| *known == type_) {
                Some((_, least)) => *least = least.min(candidate.price),
                None => rivals.push((type_, candidate.price)),
            }
        }
    }
    rivals
}

/// What can be done about each candidate by itself, in their order, as `tell` puts it: it gets the simulation that
/// was asked. The answers do not depend on `threads`.
pub fn examine_all<T: Send>(
    simulation: &Simulation<'_>,
    all: &[Candidate],
    rules: &dyn Rules,
    threads: usize,
    tell: impl Fn(&mut Simulation<'_>, usize, Verdict) -> T + Sync,
) -> Vec<T> {
    let indices: Vec<usize> = (0..all.len()).collect();
    let share = all.len().div_ceil(threads.max(1)).max(1);
    let tell = &tell;
    std::thread::scope(|scope| {
        let shares = indices.chunks(share).map(|share| {
            let mut simulation = simulation.clone();
            scope.spawn(move || {
                let one = |index: &usize| {
                    let verdict = examine(&mut simulation, all, &[*index], rules, true);
                    tell(&mut simulation, *index, verdict)
                };
                share.iter().map(one).collect::<Vec<T>>()
            })
        });
        let running: Vec<_> = shares.collect();
        running
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// How many nodes one new node replaces at most.
const MOST_MERGED: usize = 100;

/// Several nodes that go together, as often as that is possible: each set on top of those before. Candidates come
/// in the order in which they are best removed. The simulation is left with all that gone.
pub fn merge(simulation: &mut Simulation<'_>, all: &[Candidate], rules: &dyn Rules) -> Vec<Move> {
    let start = simulation.clone();
    let open: Vec<usize> = (0..all.len()).collect();
    // Many small steps: everything the others have room for, then what one new node can take.
    let mut steps = Vec::new();
    steps.extend(delete_together(simulation, all, &open, rules));
    let taken: Vec<usize> = steps.iter().flat_map(|step: &Move| step.candidates.clone()).collect();
    // What takes the pods of others stays.
    let relied: Vec<NodeId> = steps.iter().flat_map(|step: &Move| step.onto.clone()).collect();
    let is_left = |index: &usize| !taken.contains(index) && !relied.contains(&all[*index].node);
    let left: Vec<usize> = open.iter().copied().filter(is_left).collect();
    steps.extend(replace_prefix(simulation, all, &left, &taken, rules));
    // One large step: the longest beginning of the list that one new node can take.
    let mut other = start;
    let prefix = replace_prefix(&mut other, all, &open, &[], rules);
    let savings = |moves: &[Move]| moves.iter().map(|each| each.savings).sum::<f64>();
    match prefix {
        Some(prefix) if prefix.savings > savings(&steps) => {
            *simulation = other;
            vec![prefix]
        }
        _ => steps,
    }
}

/// All candidates that the others have room for: one after the other, and then all at once.
fn delete_together(
    simulation: &mut Simulation<'_>,
    all: &[Candidate],
    open: &[usize],
    rules: &dyn Rules,
) -> Option<Move> {
    let before = simulation.clone();
    let mut gone = Vec::new();
    for index in open.iter().filter(|index| rules.may_join(**index)) {
        gone.push(*index);
        if !rules.may_go(&gone) || !delete(simulation, &all[*index]) {
            gone.pop();
        }
    }
    *simulation = before;
    keep_what_fits(simulation, all, &mut gone);
    let savings: f64 = gone.iter().map(|index| all[*index].price).sum();
    if gone.len() > 1 && rules.is_worth(&gone, savings) {
        let answer = adopt(simulation, all, &gone);
        let (pods, onto) = (answer.places.len(), onto(&answer));
        return Some(Move { candidates: gone, verdict: Verdict::Delete, savings, pods, onto });
    }
    None
}

/// The nodes that take pods.
fn onto(answer: &Answer) -> Vec<NodeId> {
    let nodes = answer.places.iter().filter_map(|(_, place)| match place {
        Place::Node(node) => Some(*node),
        Place::Claim(_) => None,
    });
    let mut nodes: Vec<NodeId> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Keeps of candidates those that can go at once: where one goes after the other, pods find other places than where
/// all are moved together, the largest first.
fn keep_what_fits(simulation: &mut Simulation<'_>, all: &[Candidate], gone: &mut Vec<usize>) {
    loop {
        let nodes: Vec<NodeId> = gone.iter().map(|index| all[*index].node).collect();
        let answer = simulation.ask(&Question { saving: true, ..Question::without(&nodes) });
        let in_claims = answer.places.iter().filter(|(_, place)| matches!(place, Place::Claim(_)));
        let stuck = unplaced(simulation, &answer).into_iter().map(|(pod, _)| pod);
        let stuck: Vec<PodId> = stuck.chain(in_claims.map(|(pod, _)| *pod)).collect();
        if stuck.is_empty() {
            return;
        }
        let stays: Vec<NodeId> = stuck.iter().filter_map(|pod| simulation.node_of(*pod)).collect();
        let before = gone.len();
        gone.retain(|index| !stays.contains(&all[*index].node));
        if gone.len() == before {
            gone.clear();
        }
    }
}

/// Lets a candidate go if the others have room for its pods; whether they have.
fn delete(simulation: &mut Simulation<'_>, candidate: &Candidate) -> bool {
    let nodes = [candidate.node];
    let question = Question { saving: true, most_claims: 0, ..Question::without(&nodes) };
    let answer = simulation.ask(&question);
    let fits =
        !answer.too_many_claims && answer.claims.is_empty() && unplaced(simulation, &answer).is_empty();
    if fits {
        simulation.adopt(&question);
    }
    fits
}

/// The longest beginning of a list that goes together, found as if a longer one were possible only where a shorter
/// one is. `taken` are candidates that go anyway.
fn replace_prefix(
    simulation: &mut Simulation<'_>,
    all: &[Candidate],
    open: &[usize],
    taken: &[usize],
    rules: &dyn Rules,
) -> Option<Move> {
    let mut chosen: Vec<usize> = Vec::new();
    // Those that do not make way for a new node yet would keep all others.
    let may_be_chosen = |index: &&usize| rules.may_be_replaced(**index) && rules.may_join(**index);
    for index in open.iter().filter(may_be_chosen) {
        let with: Vec<usize> = taken.iter().chain(&chosen).chain([index]).copied().collect();
        if chosen.len() < MOST_MERGED && rules.may_go(&with) {
            chosen.push(*index);
        }
    }
    let (mut low, mut high) = (2, chosen.len());
    let mut found = None;
    while low <= high {
        let middle = usize::midpoint(low, high);
        match examine(simulation, all, &chosen[..middle], rules, false) {
            Verdict::Keep(_) => high = middle - 1,
            verdict => {
                found = Some((middle, verdict));
                low = middle + 1;
            }
        }
    }
    let (count, verdict) = found?;
    chosen.truncate(count);
    let answer = adopt(simulation, all, &chosen);
    let (pods, onto) = (answer.places.len(), onto(&answer));
    let price = chosen.iter().map(|index| all[*index].price).sum();
    let savings = verdict.savings(price)?;
    Some(Move { candidates: chosen, verdict, savings, pods, onto })
}

/// Makes some candidates go for good.
pub fn adopt(simulation: &mut Simulation<'_>, all: &[Candidate], chosen: &[usize]) -> Answer {
    let nodes: Vec<NodeId> = chosen.iter().map(|index| all[*index].node).collect();
    simulation.adopt(&Question { saving: true, ..Question::without(&nodes) })
}
