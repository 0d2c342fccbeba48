//! Which nodes count as broken, and what is done about them. Entry: [`Policies::compile`].
//!
//! ```text
//!   conditions of a node ──► matches (do not depend on the time) ──► resolution at a time: what to do, how urgent
//! ```

mod resolution;

use std::collections::BTreeSet;

use cluster::objects::Node;
use regex::Regex;

use crate::provider::{RepairAction, RepairPolicy};
pub use resolution::{Bound, Match, Resolution, resolve};

/// The highest priority of a policy.
const MOST_URGENT: u8 = 100;
/// What the status of a condition can be.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// Why the policies of a cloud cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// There are none.
    #[error("node repair requires the cloud provider to define RepairPolicies, but it defines none")]
    Missing,
    /// Some are wrong; all that is wrong is named.
    #[error("node repair requires valid RepairPolicies, {0}")]
    Wrong(String),
}

/// The policies of a cloud, ready for use.
#[derive(Debug)]
pub struct Policies {
    all: Vec<Policy>,
    /// What counts when no pattern fits.
    fallback: usize,
}

#[derive(Debug)]
struct Policy {
    rule: RepairPolicy,
    pattern: Option<Regex>,
    /// How many lower priorities there are among all policies.
    rank: u32,
}

impl Policies {
    /// Checks the policies of a cloud.
    pub fn compile(rules: Vec<RepairPolicy>) -> Result<Self, Invalid> {
        if rules.is_empty() {
            return Err(Invalid::Missing);
        }
        let mut wrong = Vec::new();
        let mut all = Vec::new();
        let priorities: BTreeSet<u8> = rules.iter().map(|rule| rule.priority).collect();
        for (index, rule) in rules.into_iter().enumerate() {
            for what in mistakes(&rule) {
                wrong.push(format!(
                    "validating repair policy for condition status {:?}, policy[{index}]={rule:?} {what} \
                     (condition={})",
                    rule.status, rule.condition
                ));
            }
            let rank = priorities.range(..rule.priority).count();
            all.push(Policy {
                pattern: Regex::new(rule.reason_pattern).ok().filter(|_| !rule.reason_pattern.is_empty()),
                rank: u32::try_from(rank).unwrap_or(u32::MAX),
                rule,
            });
        }
        let fallbacks: Vec<usize> =
            (0..all.len()).filter(|index| all[*index].rule.reason_pattern.is_empty()).collect();
        match fallbacks[..] {
            [fallback] => {
                let rule = &all[fallback].rule;
                if rule.action != RepairAction::Replace {
                    let needed = RepairAction::Replace.as_str();
                    wrong.push(format!("default fallback policy {} must use action {needed:?}", named(rule)));
                }
                if wrong.is_empty() {
                    return Ok(Self { all, fallback });
                }
            }
            [] => wrong.push("repair policy set must define one default fallback".to_owned()),
            _ => {
                let names: Vec<String> =
                    fallbacks.iter().map(|fallback| named(&all[*fallback].rule)).collect();
                wrong.push(format!("repair policy set has multiple default fallbacks: {}", names.join(", ")));
            }
        }
        Err(Invalid::Wrong(wrong.join("; ")))
    }

    /// Whether some policy is about this status of a condition.
    pub fn concerns(&self, condition: &str, status: &str) -> bool {
        self.all.iter().any(|policy| policy.rule.condition == condition && policy.rule.status == status)
    }

    /// Whether a node counts as broken, whatever the reason and however short the time.
    pub fn is_broken(&self, node: &Node) -> bool {
        node.status.conditions.iter().any(|condition| self.concerns(&condition.kind, &condition.status))
    }

    /// The policies that a node falls under, in the order of its conditions.
    ///
    /// It depends only on when the node was created, and on type, status, reason and age of its conditions.
    pub fn matches<'a>(&'a self, node: &'a Node) -> Vec<Match<'a>> {
        let mut matches = Vec::new();
        for condition in &node.status.conditions {
            if !self.concerns(&condition.kind, &condition.status) {
                continue;
            }
            let specific = self.all.iter().filter(|policy| {
                policy.rule.condition == &*condition.kind
                    && policy.rule.status == &*condition.status
                    && policy.pattern.as_ref().is_some_and(|pattern| pattern.is_match(&condition.reason))
            });
            let before = matches.len();
            matches.extend(specific.map(|policy| Match::new(node, condition, policy, false)));
            if matches.len() == before {
                matches.push(Match::new(node, condition, &self.all[self.fallback], true));
            }
        }
        matches
    }
}

/// How errors of the whole set name a policy.
fn named(rule: &RepairPolicy) -> String {
    format!("{}={}", rule.condition, rule.status)
}

/// What is wrong with a policy. That durations are not negative and actions exist, their types say.
fn mistakes(rule: &RepairPolicy) -> Vec<String> {
    let mut found = Vec::new();
    if rule.condition.is_empty() {
        found.push("has an empty condition type".to_owned());
    }
    if !STATUSES.contains(&rule.status) {
        found.push(format!("has invalid condition status {:?}", rule.status));
    }
    if rule.priority > MOST_URGENT {
        let priority = rule.priority;
        found.push(format!("has priority {priority} outside the supported range [0, {MOST_URGENT}]"));
    }
    if let Err(error) = Regex::new(rule.reason_pattern) {
        found.push(format!("has invalid reason regex, {}", one_line(&error.to_string())));
    }
    found
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
