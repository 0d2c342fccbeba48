//! What is changed on running machines, without replacing them: tags and identities.
//!
//! A hash of what they should be is kept on the claim, so that Azure is only asked where something changed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::conditions::HasConditions as _;
use api::names::annotations::azure::IN_PLACE_UPDATE_HASH;
use api::names::conditions::node_claim::REGISTERED;
use api::nodeclaim::NodeClaim;
use runtime::Again;

use crate::tags;

/// How long is waited for a node to register.
const REGISTRATION: Again = Again::After(Duration::from_mins(1));

/// What a machine should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Its identities; those of AKS' own machines are not ours.
    pub identities: BTreeSet<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl Goal {
    /// The goal as the annotation of claims has it.
    pub fn hash(&self) -> String {
        let identities: Vec<String> = self.identities.iter().cloned().collect();
        tags::in_place_hash(&identities, &self.tags)
    }
}

/// What is to be done about the machine of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// It is too early.
    Later(Again),
    /// The machine is compared with the goal.
    Compare,
}

/// What is to be done about the machine of a claim whose goal has a hash.
pub fn step(claim: &NodeClaim, hash: &str) -> Step {
    let known = claim.metadata.annotations.as_ref().and_then(|all| all.get(IN_PLACE_UPDATE_HASH));
    if known.is_some_and(|known| known == hash) || claim.metadata.deletion_timestamp.is_some() {
        return Step::Nothing;
    }
    let has_machine = claim.status.as_ref().is_some_and(|status| !status.provider_id.is_empty());
    if has_machine && claim.is_true(REGISTERED) { Step::Compare } else { Step::Later(REGISTRATION) }
}

/// What is changed on a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Identities that it lacks. None is ever taken away: somebody else may have added it.
    pub identities: Vec<String>,
    /// All its tags, if some are wrong.
    pub tags: Option<BTreeMap<String, String>>,
}

impl Change {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty() && self.tags.is_none()
    }
}

/// What is to be changed on a virtual machine.
pub fn change<'a>(
    goal: &Goal,
    identities: impl IntoIterator<Item = &'a str>,
    tags: &BTreeMap<String, String>,
) -> Change {
    // Azure writes its identifiers back in its own case.
    let known: BTreeSet<String> = identities.into_iter().map(str::to_lowercase).collect();
    let missing = goal.identities.iter().filter(|id| !known.contains(&id.to_lowercase()));
    Change { identities: missing.cloned().collect(), tags: (*tags != goal.tags).then(|| goal.tags.clone()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const IDENTITY: &str =
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id1";

    fn goal(identities: &[&str], tags: &[(&str, &str)]) -> Goal {
        Goal {
            identities: identities.iter().map(|id| (*id).to_owned()).collect(),
            tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        }
    }

    const TAGS: [(&str, &str); 3] = [
        ("compute.aks.billing", "linux"),
        ("karpenter.azure.com_cluster", "test-cluster"),
        ("karpenter.sh_nodepool", "default"),
    ];

    // azure.md 1.9
    #[test]
    fn hashes_are_those_that_upstream_wrote() {
        assert_eq!(goal(&[], &TAGS).hash(), "3897900378");
        assert_eq!(goal(&[IDENTITY], &TAGS).hash(), "30724148");
    }

    // azure.md 25.8: identity order irrelevant
    #[test]
    fn the_order_of_identities_does_not_matter() {
        assert_eq!(goal(&["b", "a"], &TAGS).hash(), goal(&["a", "b"], &TAGS).hash());
    }

    fn claim(metadata: &Value, status: &Value) -> NodeClaim {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata,
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "default"}},
            "status": status,
        }))
        .unwrap()
    }

    // azure.md 15.6, 25.8
    #[test]
    fn machines_are_looked_at_when_the_goal_changed_and_the_node_has_registered() {
        let registered = json!([{
            "type": "Registered", "status": "True", "reason": "Registered", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        let there = json!({"providerID": "azure:///1", "conditions": registered});
        let with = |hash: &str| json!({"name": "c", "annotations": {IN_PLACE_UPDATE_HASH: hash}});
        assert_eq!(step(&claim(&with("1"), &there), "1"), Step::Nothing);
        assert_eq!(step(&claim(&with("2"), &there), "1"), Step::Compare);
        assert_eq!(step(&claim(&json!({"name": "c"}), &there), "1"), Step::Compare);
        let later = Step::Later(Again::After(Duration::from_mins(1)));
        assert_eq!(step(&claim(&with("2"), &json!({"providerID": "azure:///1"})), "1"), later);
        assert_eq!(step(&claim(&with("2"), &json!({"conditions": registered})), "1"), later);
        let going = json!({"name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(step(&claim(&going, &there), "1"), Step::Nothing);
    }

    // azure.md 15.6, 25.8: identities added never removed, tags replaced
    #[test]
    fn identities_are_added_and_tags_replaced() {
        let goal = goal(&[IDENTITY, "/new"], &TAGS);
        let known = [IDENTITY.to_uppercase(), "/of/somebody/else".to_owned()];
        let known = || known.iter().map(String::as_str);
        let found = change(&goal, known(), &goal.tags);
        assert_eq!(found, Change { identities: vec!["/new".to_owned()], tags: None });
        let mut others = goal.tags.clone();
        others.insert("more".to_owned(), "1".to_owned());
        let found = change(&goal, known().chain(["/NEW"]), &others);
        assert_eq!(found, Change { identities: vec![], tags: Some(goal.tags.clone()) });
        assert!(change(&goal, [IDENTITY, "/new"], &goal.tags).is_empty());
    }
}
