//! Why a node stays, as those say who decide about it.
//!
//! Events tell users some of it; whoever previews shows all of it.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use api::names::events::UNCONSOLIDATABLE;
use api::nodepool::NodePool;
use jiff::Timestamp;

use super::Reason;
use super::budget::{Budget, Budgets};
use super::candidate::Candidate;
use super::consolidation::MANY_CLAIMS;
use super::decision::Notice;
use super::scene::NOT_ALL;
use crate::text::sentence;
use units::human;

/// Why a node stays. Texts are made where somebody reads them.
#[derive(Clone, Debug)]
pub(crate) enum Stay {
    /// Nothing disrupts it, which an event tells.
    Blocked(String),
    /// Consolidation leaves it, which an event tells.
    Unconsolidatable(String),
    /// No event tells.
    Silent(String),
    /// It keeps room for pods to come, which an event tells.
    Buffer,
    /// It is being disrupted already, or takes pods of nodes that are.
    Taken,
    /// Its pool has a fixed number of nodes.
    Static(Arc<NodePool>),
    /// It has not been quiet for as long as its pool asks; when it will have been, if time alone can tell.
    NotQuiet(Arc<NodePool>, Option<Timestamp>),
    /// Its pool lets no more nodes go for a reason.
    Budget(Reason, Box<Budget>),
}

/// A node that stays, and why.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The name of the node, or of its claim if there is none.
    pub(crate) node: Box<str>,
    /// Why.
    pub(crate) why: Stay,
}

impl Stay {
    /// A candidate stays because its pool lets no more nodes go for a reason.
    pub(crate) fn held(candidate: &Candidate, budgets: &Budgets, reason: Reason) -> Self {
        let pool = candidate.pool_name();
        match budgets.get(pool) {
            Some(budget) => Self::Budget(reason, Box::new(budget.clone())),
            None => Self::Silent(format!("NodePool is of another provider (NodePool={pool})")),
        }
    }

    /// What users are told of a candidate that stays, if they are.
    pub(crate) fn notices(&self, candidate: &Candidate) -> Option<[Notice; 2]> {
        match self {
            Self::Blocked(message) => Some(candidate.blocked_notices(message)),
            Self::Unconsolidatable(message) => Some(candidate.notices(&UNCONSOLIDATABLE, message, "")),
            Self::Buffer => {
                let message = format!("Node {:?} has buffer pods", candidate.name());
                Some(candidate.notices(&UNCONSOLIDATABLE, &message, ""))
            }
            Self::Silent(_) | Self::Taken | Self::Static(_) | Self::NotQuiet(..) | Self::Budget(..) => None,
        }
    }

    /// What is shown.
    pub(crate) fn shown(&self) -> Why {
        let name = |pool: &NodePool| pool.metadata.name.clone().unwrap_or_default();
        match self {
            Self::Blocked(text) | Self::Unconsolidatable(text) | Self::Silent(text) => Why::split(text),
            Self::Buffer => Why::new("Node keeps room for CapacityBuffers", ""),
            Self::Taken => Why::new("Node takes pods of nodes that go", ""),
            Self::Static(pool) => {
                Why::new(format!("NodePool {:?} has a fixed number of nodes (spec.replicas)", name(pool)), "")
            }
            Self::NotQuiet(pool, until) => {
                let wait = pool.spec.disruption.consolidate_after.duration().unwrap_or_default();
                let wait = human::duration(wait.into());
                let text = format!(
                    "Node has not been quiet for {wait}, the consolidateAfter of NodePool {:?}",
                    name(pool)
                );
                Why::new(
                    text,
                    until.map_or("NodeClaim is not initialized".to_owned(), |it| format!("until {it}")),
                )
            }
            Self::Budget(reason, budget) => {
                let (pool, reason) = (name(budget.pool()), reason.text());
                let text = if budget.allowed <= 0 {
                    format!("Budgets of NodePool {pool:?} let no node go for {reason} now")
                } else {
                    format!("Budgets of NodePool {pool:?} let no more nodes go for {reason} at the same time")
                };
                let mut detail = budget.limited();
                if budget.disrupting > 0 {
                    let _ = write!(detail, ", {} disrupted", budget.disrupting);
                }
                Why::new(text, detail)
            }
        }
    }
}

/// Why a node stays, in words. Nodes that stay for alike reasons have the same text and differ in the detail.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Why {
    /// A sentence without a full stop.
    pub text: String,
    /// Which pod, until when, and so on; may be empty.
    pub detail: String,
}

impl Why {
    fn new(text: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { text: text.into(), detail: detail.into() }
    }

    /// What events tell ends with what it is about: `Pod has an annotation (Pod=default/a)`.
    fn split(message: &str) -> Self {
        let message = &*sentence(message.trim_end());
        let many = message.strip_prefix(MANY_CLAIMS.0).and_then(|rest| rest.strip_suffix(MANY_CLAIMS.1));
        if let Some(count) = many {
            return Self::new(format!("Its pods would need {count} new nodes; only one may come for it"), "");
        }
        if let Some((text, pods)) = message.split_once(", ")
            && NOT_ALL.trim_end_matches(", ").eq_ignore_ascii_case(text)
        {
            return Self::new(text, pods);
        }
        let parts = message.strip_suffix(')').and_then(|rest| rest.split_once(" ("));
        parts.map_or_else(|| Self::new(message, ""), |(text, detail)| Self::new(text, detail))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_told_apart_from_what_it_is_about() {
        for (message, text, detail) in [
            ("Node is rebooting", "Node is rebooting", ""),
            ("Pod is kept (Pod=default/a)", "Pod is kept", "Pod=default/a"),
            ("Not met for label(s) (label(s)=[a b])", "Not met for label(s)", "label(s)=[a b]"),
            ("Not all pods would schedule, a/b => no (c) ", "Not all pods would schedule", "a/b => no (c)"),
            (
                "Can't remove without creating 2 candidates",
                "Its pods would need 2 new nodes; only one may come for it",
                "",
            ),
            ("", "", ""),
        ] {
            let why = Why::split(message);
            assert_eq!((&*why.text, &*why.detail), (text, detail), "{message}");
        }
    }
}
