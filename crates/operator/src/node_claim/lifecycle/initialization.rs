//! Initialization: a registered Node is ready to take pods.

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{INITIALIZED, REBOOTING, REGISTERED};
use api::names::{messages, reasons, taints};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::objects::Node;
use jiff::Timestamp;

use super::registration::Found;
use crate::node::Mark;
use crate::node_claim::dra::Drivers;

/// What a Node still lacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lacking {
    reason: &'static str,
    message: String,
}

/// Whether there is something to find out about a claim: it is registered, and has not been initialized yet.
pub(super) fn is_open(claim: &NodeClaim) -> bool {
    let is_decided =
        claim.condition(INITIALIZED).is_some_and(|condition| condition.status != ConditionStatus::Unknown);
    // The old boot of a node that is being rebooted must not count as the new one.
    claim.is_true(REGISTERED) && !is_decided && !claim.is_true(REBOOTING)
}

/// The Node of a claim if it is ready to take pods, or what it lacks, the first thing first.
pub(super) fn decide<'a>(
    claim: &NodeClaim,
    found: &'a Found,
    drivers: &Drivers,
) -> Result<&'a Node, Lacking> {
    use reasons::node_claim as why;
    let lacking = |reason, message: String| Err(Lacking { reason, message });
    let Found::One(node) = found else {
        return lacking(why::NODE_NOT_FOUND, messages::NODE_NOT_FOUND.to_owned());
    };
    if !node.is_ready() {
        return lacking(why::NODE_NOT_READY, messages::NODE_NOT_READY.to_owned());
    }
    let has = |mark: Mark<'_>| node.spec.taints.iter().any(|taint| Mark::from(taint) == mark);
    for taint in claim.spec.startup_taints.iter().flatten() {
        if has(Mark { key: &taint.key, effect: &taint.effect }) {
            let text = taint_text(&taint.key, &taint.value, &taint.effect);
            return lacking(why::STARTUP_TAINTS_EXIST, format!("StartupTaint {text:?} still exists"));
        }
    }
    let temporary = node.spec.taints.iter().find(|taint| {
        taint.key.starts_with(taints::KNOWN_EPHEMERAL_PREFIX)
            || taints::KNOWN_EPHEMERAL.iter().any(|known| Mark::from(*taint) == Mark::from(*known))
    });
    if let Some(taint) = temporary {
        let text = taint_text(&taint.key, &taint.value, Mark::from(taint).effect);
        let message = format!("KnownEphemeralTaint {text:?} still exists");
        return lacking(why::KNOWN_EPHEMERAL_TAINTS_EXIST, message);
    }
    for (resource, quantity) in &claim.spec.resources.requests {
        let allocatable = node.status.allocatable.get(resource);
        if !quantity.is_zero() && allocatable.is_none_or(|found| found.is_zero()) {
            let message = format!("Resource {resource:?} was requested but not registered");
            return lacking(why::RESOURCE_NOT_REGISTERED, message);
        }
    }
    if let Some(driver) = drivers.incomplete() {
        let message = format!("DRA driver {driver:?} has not published a complete resource pool");
        return lacking(why::DRA_DRIVER_POOLS_NOT_PUBLISHED, message);
    }
    Ok(node)
}

/// Notes what a Node still lacks.
pub(super) fn note_lacking(claim: &mut NodeClaim, lacking: &Lacking, now: Timestamp) {
    let Lacking { reason, message } = lacking;
    Conditions::of(claim, now).set(INITIALIZED, ConditionStatus::Unknown, reason, message);
}

/// Notes that pods can use the Node.
pub(super) fn note_done(claim: &mut NodeClaim, now: Timestamp) {
    Conditions::of(claim, now).set_true(INITIALIZED);
}

fn taint_text(key: &str, value: &str, effect: &str) -> String {
    if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn claim() -> NodeClaim {
        let mut claim: NodeClaim = serde_json::from_value(json!({
            "metadata": {"name": "c"},
            "spec": {
                "requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
                "startupTaints": [{"key": "starts", "value": "v", "effect": "NoExecute"}],
                "resources": {"requests": {"cpu": "1", "fancy.com/gpu": "1", "none": "0"}},
            },
        }))
        .unwrap();
        Conditions::of(&mut claim, at(0)).set_true(REGISTERED);
        claim
    }

    fn node(taints: &Value, gpus: &str, ready: &str) -> Found {
        Found::One(Arc::new(
            serde_json::from_value::<Node>(json!({
                "metadata": {"name": "n"}, "spec": {"taints": taints},
                "status": {
                    "allocatable": {"cpu": "4", "fancy.com/gpu": gpus},
                    "conditions": [{"type": "Ready", "status": ready}],
                },
            }))
            .unwrap(),
        ))
    }

    #[track_caller]
    fn check(found: &Found, reason: &str, message: &str) {
        let lacking = decide(&claim(), found, &Drivers::default()).unwrap_err();
        assert_eq!((lacking.reason, lacking.message.as_str()), (reason, message));
    }

    #[test]
    fn a_node_that_has_everything_is_initialized() {
        assert!(decide(&claim(), &node(&json!([]), "1", "True"), &Drivers::default()).is_ok());
    }

    #[test]
    fn what_a_node_lacks_is_named_the_first_thing_first() {
        check(&Found::None, "NodeNotFound", "Node not registered with cluster");
        check(&Found::Many, "NodeNotFound", "Node not registered with cluster");
        let startup = json!({"key": "starts", "effect": "NoExecute"});
        check(&node(&json!([startup]), "0", "False"), "NodeNotReady", "Node status is NotReady");
        check(&node(&json!([startup]), "0", "Unknown"), "NodeNotReady", "Node status is NotReady");
        check(
            &node(&json!([startup]), "0", "True"),
            "StartupTaintsExist",
            r#"StartupTaint "starts=v:NoExecute" still exists"#,
        );
        for (taint, text) in [
            (
                json!({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}),
                "node.kubernetes.io/not-ready:NoExecute",
            ),
            (
                json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "x", "effect": "NoSchedule"}),
                "node.cloudprovider.kubernetes.io/uninitialized=x:NoSchedule",
            ),
            (
                json!({"key": "readiness.k8s.io/net", "effect": "NoSchedule"}),
                "readiness.k8s.io/net:NoSchedule",
            ),
        ] {
            let message = format!("KnownEphemeralTaint {text:?} still exists");
            check(&node(&json!([taint]), "0", "True"), "KnownEphemeralTaintsExist", &message);
        }
        check(
            &node(&json!([{"key": "other", "effect": "NoSchedule"}]), "0", "True"),
            "ResourceNotRegistered",
            r#"Resource "fancy.com/gpu" was requested but not registered"#,
        );
    }

    #[test]
    fn only_registered_claims_are_looked_at_until_they_are_initialized() {
        assert!(is_open(&claim()));
        assert!(!is_open(&NodeClaim::default()));
        let mut rebooting = claim();
        Conditions::of(&mut rebooting, at(1)).set_true(REBOOTING);
        assert!(!is_open(&rebooting));
        let mut done = claim();
        note_done(&mut done, at(1));
        assert!(!is_open(&done) && done.is_true("Initialized"));
    }
}
