//! Registration: the Node of an instance joins the cluster and gets what its claim says.

use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::REGISTERED;
use api::names::{finalizers, labels, messages, reasons, taints};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::objects::Node;
use cluster::state::State;
use jiff::Timestamp;
use runtime::Again;
use serde_json::{Value, json};

use crate::node::{Mark, has_taint, taint_json};
use crate::node_claim::provider_id;

/// The Nodes of a claim's instance.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// There is none yet.
    None,
    /// There is one, as it should be.
    One(Arc<Node>),
    /// There are several, which should not be.
    Many,
}

/// Looks for the Node of a claim's instance.
pub(super) fn find(claim: &NodeClaim, state: &State) -> Found {
    let mut nodes = state.nodes_of(provider_id(claim));
    match (nodes.next(), nodes.next()) {
        (None, _) => Found::None,
        (Some(node), None) => Found::One(Arc::clone(node)),
        (Some(_), Some(_)) => Found::Many,
    }
}

/// Whether nothing is decided yet about the registration of a claim.
pub(super) fn is_open(claim: &NodeClaim) -> bool {
    claim.condition(REGISTERED).is_none_or(|condition| condition.status == ConditionStatus::Unknown)
}

/// Notes that there is no Node to register.
pub(super) fn note_absence(claim: &mut NodeClaim, many: bool, now: Timestamp) {
    let (status, reason, message) = if many {
        let reason = reasons::node_claim::MULTIPLE_NODES_FOUND;
        (ConditionStatus::False, reason, messages::MULTIPLE_NODES_FOUND)
    } else {
        (ConditionStatus::Unknown, reasons::node_claim::NODE_NOT_FOUND, messages::NODE_NOT_FOUND)
    };
    Conditions::of(claim, now).set(REGISTERED, status, reason, message);
}

/// Notes that the Node is what it should be.
pub(super) fn note_done(claim: &mut NodeClaim, node: &Node, now: Timestamp) {
    claim.status.get_or_insert_default().node_name = node.metadata.name.to_string();
    Conditions::of(claim, now).set_true(REGISTERED);
}

/// Whether a Node came without the taint that keeps pods away until it is registered.
pub(super) fn lacks_taint(node: &Node) -> bool {
    node.metadata.labels.text(labels::REGISTERED) != "true" && !has_taint(node, taints::UNREGISTERED.into())
}

/// What the hooks of the cloud say together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hooks {
    /// Which ones are not done, in their order.
    pub(super) pending: Vec<&'static str>,
    /// What went wrong.
    pub(super) errors: Vec<String>,
    /// When to ask again.
    pub(super) again: Option<Again>,
}

/// Sums up what each hook says.
pub(super) fn sum_up(answers: Vec<(&'static str, Result<Again, cloud::Error>)>) -> Hooks {
    let mut hooks = Hooks::default();
    for (name, answer) in answers {
        match answer {
            Ok(Again::No) => {}
            Ok(again) => {
                hooks.pending.push(name);
                hooks.again = Some(hooks.again.map_or(again, |sooner| sooner.or_sooner(again)));
            }
            Err(error) => {
                hooks.pending.push(name);
                hooks.errors.push(format!("{name}: {error}"));
            }
        }
    }
    hooks
}

/// Notes which hooks are not done.
pub(super) fn note_pending(claim: &mut NodeClaim, pending: &[&str], now: Timestamp) {
    let reason = reasons::node_claim::REGISTRATION_HOOK_PENDING;
    Conditions::of(claim, now).set(REGISTERED, ConditionStatus::Unknown, reason, &pending.join(", "));
}

/// The strategic patch that gives a Node what its claim says, and, once `done`, lets pods onto it. It adds to the
/// lists of finalizers and owners; that of taints is replaced.
/// Nothing when it has all of that.
pub(super) fn node_patch(node: &Node, claim: &NodeClaim, done: bool) -> Option<Value> {
    let mut metadata = serde_json::Map::new();
    if !node.metadata.has_finalizer(finalizers::TERMINATION) {
        metadata.insert("finalizers".to_owned(), json!([finalizers::TERMINATION]));
    }
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let mut owners = node.metadata.owner_references.iter();
    if !owners.any(|owner| owner.is("karpenter.sh/v1", "NodeClaim") && &*owner.uid == uid) {
        let owner = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim.metadata.name, "uid": uid,
            "blockOwnerDeletion": true,
        });
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    let registered = done.then_some((labels::REGISTERED, "true"));
    let claimed = claim.metadata.labels.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    let labels: serde_json::Map<_, _> = claimed
        .chain(registered)
        .filter(|(key, value)| node.metadata.labels.get(key).is_none_or(|own| &**own != *value))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), labels.into());
    }
    let annotations: serde_json::Map<_, _> = (claim.metadata.annotations.iter().flatten())
        .filter(|(key, value)| node.metadata.annotations.get(key).is_none_or(|own| **own != ***value))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), annotations.into());
    }
    let taints = taints(node, claim, done);
    if metadata.is_empty() && taints.is_none() {
        return None;
    }
    metadata.insert("resourceVersion".to_owned(), json!(node.metadata.resource_version.to_string()));
    let mut patch = json!({"metadata": metadata});
    if let Some(taints) = taints {
        patch["spec"] = json!({"taints": taints});
    }
    Some(patch)
}

/// The taints that a Node shall have, if they are not what it has.
fn taints(node: &Node, claim: &NodeClaim, done: bool) -> Option<Vec<Value>> {
    let unregistered = Mark::from(taints::UNREGISTERED);
    let mut changed = false;
    let mut marks: Vec<Mark<'_>> = Vec::new();
    let mut list = Vec::new();
    for taint in &node.spec.taints {
        let mark = Mark::from(taint);
        if done && mark == unregistered {
            changed = true;
            continue;
        }
        marks.push(mark);
        list.push(taint_json(taint));
    }
    if node.metadata.labels.text(labels::DO_NOT_SYNC_TAINTS) != "true" {
        let spec = &claim.spec;
        for taint in spec.taints.iter().flatten().chain(spec.startup_taints.iter().flatten()) {
            let mark = Mark { key: &taint.key, effect: &taint.effect };
            if !marks.contains(&mark) {
                marks.push(mark);
                list.push(json!(taint));
                changed = true;
            }
        }
    }
    changed.then_some(list)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    fn claim() -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {
                "name": "c", "uid": "u", "labels": {"a": "1"}, "annotations": {"karpenter.sh/x": "y"},
            },
            "spec": {
                "requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
                "taints": [{"key": "stays", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "starts", "value": "v", "effect": "NoExecute"}],
            },
        }))
        .unwrap()
    }

    const UNREGISTERED: &str = r#"{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}"#;

    fn unregistered() -> Value {
        serde_json::from_str(UNREGISTERED).unwrap()
    }

    #[test]
    fn a_node_gets_everything_from_its_claim_and_loses_the_taint() {
        let added = "2026-01-01T00:00:00Z";
        let other = json!({"key": "other", "effect": "NoExecute", "timeAdded": added});
        let node = node(json!({
            "metadata": {"name": "n", "resourceVersion": "7", "labels": {"a": "0", "own": "1"}},
            "spec": {"taints": [unregistered(), other]},
        }));
        let patch = node_patch(&node, &claim(), true).unwrap();
        assert_eq!(
            patch,
            json!({
                "metadata": {
                    "resourceVersion": "7",
                    "finalizers": ["karpenter.sh/termination"],
                    "ownerReferences": [{
                        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "u",
                        "blockOwnerDeletion": true,
                    }],
                    "labels": {"a": "1", "karpenter.sh/registered": "true"},
                    "annotations": {"karpenter.sh/x": "y"},
                },
                "spec": {"taints": [
                    {"key": "other", "effect": "NoExecute", "timeAdded": added},
                    {"key": "stays", "effect": "NoSchedule"},
                    {"key": "starts", "value": "v", "effect": "NoExecute"},
                ]},
            })
        );
    }

    #[test]
    fn a_node_that_has_everything_is_not_written() {
        let node = node(json!({
            "metadata": {
                "name": "n", "finalizers": ["karpenter.sh/termination"],
                "labels": {"a": "1", "karpenter.sh/registered": "true"},
                "annotations": {"karpenter.sh/x": "y"},
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "u",
                }],
            },
            "spec": {"taints": [
                {"key": "stays", "value": "other value", "effect": "NoSchedule"},
                {"key": "starts", "effect": "NoExecute"},
            ]},
        }));
        assert_eq!(node_patch(&node, &claim(), true), None);
        assert!(!lacks_taint(&node));
    }

    #[test]
    fn the_taint_stays_while_hooks_are_pending() {
        let node = node(json!({"metadata": {"name": "n"}, "spec": {"taints": [unregistered()]}}));
        let patch = node_patch(&node, &claim(), false).unwrap();
        assert_eq!(patch["spec"]["taints"][0], unregistered());
        assert!(patch["metadata"]["labels"].get("karpenter.sh/registered").is_none());
        assert!(!lacks_taint(&node));
    }

    #[test]
    fn a_node_that_sets_its_taints_itself_gets_none_but_loses_ours() {
        for (value, synced) in [("true", 0), ("false", 2)] {
            let node = node(json!({
                "metadata": {"name": "n", "labels": {"karpenter.sh/do-not-sync-taints": value}},
                "spec": {"taints": [unregistered()]},
            }));
            let patch = node_patch(&node, &claim(), true).unwrap();
            assert_eq!(patch["spec"]["taints"].as_array().unwrap().len(), synced, "{value}");
        }
    }

    #[test]
    fn a_node_without_the_taint_is_noticed() {
        assert!(lacks_taint(&node(json!({"metadata": {"name": "n"}}))));
        let other_effect = json!([{"key": "karpenter.sh/unregistered", "effect": "NoSchedule"}]);
        assert!(lacks_taint(&node(json!({"metadata": {"name": "n"}, "spec": {"taints": other_effect}}))));
    }

    #[test]
    fn hooks_are_done_when_all_are() {
        assert_eq!(sum_up(vec![]), Hooks::default());
        assert_eq!(sum_up(vec![("a", Ok(Again::No)), ("b", Ok(Again::No))]), Hooks::default());
        let hooks = sum_up(vec![
            ("a", Ok(Again::secs(5))),
            ("b", Err(cloud::Error::Other("broken".to_owned()))),
            ("c", Ok(Again::No)),
            ("d", Ok(Again::secs(2))),
        ]);
        assert_eq!(hooks.pending, ["a", "b", "d"]);
        assert_eq!(hooks.errors, ["b: broken"]);
        assert_eq!(hooks.again, Some(Again::After(Duration::from_secs(2))));
    }
}
