//! What every method could do something about now. Entry: [`glance`].

use std::collections::{BTreeMap, BTreeSet};

use cluster::costs::Costs;
use cluster::state::State;
use cluster::state_node::StateNode;
use jiff::Timestamp;

use super::budget::{Budgets, budgets};
use super::candidate::{Candidate, Search, find_among};
use super::decision::Notice;
use super::stay::Kept;
use super::{Class, Method};
use crate::catalogue::Types;

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'a> {
    /// What every pool can choose from.
    pub(crate) types: &'a Types,
    /// Instances that are no candidates, because they are being disrupted.
    pub(crate) taken: &'a BTreeSet<Box<str>>,
    /// Instances that are to take pods of others; they are no candidates unless they are broken.
    pub(crate) relied_on: &'a BTreeSet<Box<str>>,
    /// Instances that are as good as gone.
    pub(crate) leaving: &'a BTreeSet<Box<str>>,
    /// What pods cost.
    pub(crate) costs: Costs,
    /// One time for all.
    pub(crate) now: Timestamp,
}

/// What a method could do something about.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Nodes that it accepts.
    pub(crate) candidates: Vec<Candidate>,
    /// What budgets allow for its reason.
    pub(crate) budgets: Budgets,
    /// Nodes that are its business but that it does not accept.
    pub(crate) stays: Vec<Kept>,
}

/// What methods could do something about, in their order.
#[derive(Debug, Default)]
pub(crate) struct Glance {
    /// For each method.
    pub(crate) views: Vec<View>,
    /// What users are told.
    pub(crate) notices: Vec<Notice>,
    /// Nodes that are no candidates, by what can keep them from it.
    pub(crate) stays: BTreeMap<Class, Vec<Kept>>,
}

/// What methods could do something about.
pub(crate) fn glance<'m>(
    state: &State,
    methods: impl IntoIterator<Item = &'m dyn Method>,
    look: Look<'_>,
) -> Glance {
    let mut glance = Glance::default();
    let methods: Vec<&dyn Method> = methods.into_iter().collect();
    let nodes = state.state_nodes();
    let mut found = BTreeMap::<Class, Vec<Candidate>>::new();
    for method in &methods {
        let class = method.class();
        let candidates = found.entry(class).or_insert_with(|| {
            let of_class = || methods.iter().filter(|method| method.class() == class);
            let concerned = |node: &&StateNode<'_>| {
                node.claim.is_none_or(|claim| of_class().any(|method| method.concerns(claim)))
            };
            let found = find_among(nodes.iter().filter(concerned), state, search(look, class));
            // What keeps a node from any disruption keeps it from a graceful one, too, and is told once.
            if class == Class::Graceful {
                glance.notices.extend(found.notices);
            }
            glance.stays.insert(class, found.stays);
            found.candidates
        });
        glance.notices.extend(method.notices(state, look.now));
        let mut view = View::default();
        for candidate in candidates.iter() {
            match method.accepts(state, candidate) {
                Ok(()) => view.candidates.push(candidate.clone()),
                Err(Some(why)) => {
                    glance.notices.extend(why.notices(candidate).into_iter().flatten());
                    view.stays.push(Kept { node: candidate.name().into(), why });
                }
                Err(None) => {}
            }
        }
        if !view.candidates.is_empty() {
            view.budgets = budgets(state, &nodes, method.reason().0, look.leaving, look.now);
        }
        glance.views.push(view);
    }
    glance
}

fn search(look: Look<'_>, class: Class) -> Search<'_> {
    let Look { types, taken, relied_on, costs, now, .. } = look;
    Search { types, queued: taken, relied_on, class, costs, now }
}
