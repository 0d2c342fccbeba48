//! What the API sees of a disruption before the node goes: a taint, and a condition of the claim.

use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::DISRUPTION_REASON;
use api::names::taints;
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::objects::{Effect, Node, Taint};
use cluster::state::Key;
use runtime::Error;
use serde_json::{Value, json};

use super::Reason;
use crate::retry::retry;
use crate::{Context, status};

/// Whether a taint is the one of nodes that are about to go.
fn is_ours(taint: &Taint) -> bool {
    *taint.key == *taints::DISRUPTED.key && taint.effect == Effect::NoSchedule
}

/// Whether a node is marked as about to go.
pub(super) fn is_tainted(node: &Node) -> bool {
    node.spec.taints.iter().any(is_ours)
}

fn taint_json(taint: &Taint) -> Value {
    let effect = match taint.effect {
        Effect::Any => "",
        Effect::NoSchedule => taints::NO_SCHEDULE,
        Effect::PreferNoSchedule => taints::PREFER_NO_SCHEDULE,
        Effect::NoExecute => taints::NO_EXECUTE,
    };
    let mut value = json!({"key": taint.key, "effect": effect});
    if !taint.value.is_empty() {
        value["value"] = json!(taint.value);
    }
    if let Some(time) = &taint.time_added {
        value["timeAdded"] = json!(time);
    }
    value
}

/// The change that taints a node, or takes the taint away, if that is not so already. Lists are replaced as a
/// whole, so it is refused if somebody else was faster.
fn taint_change(node: &Node, tainted: bool) -> Option<Value> {
    if is_tainted(node) == tainted {
        return None;
    }
    let mut all: Vec<Value> =
        node.spec.taints.iter().filter(|taint| !is_ours(taint)).map(taint_json).collect();
    if tainted {
        all.push(json!({"key": taints::DISRUPTED.key, "effect": taints::DISRUPTED.effect}));
    }
    Some(json!({"metadata": status::lock(node), "spec": {"taints": all}}))
}

/// Taints a node, or takes the taint away. A node that is gone is as it should be.
pub(super) async fn taint(context: &Context, node: &Key, tainted: bool) -> Result<(), Error> {
    let changed = retry(|| async {
        let known = context.cluster.read().nodes.get(node).map(Arc::clone);
        let Some(change) = known.and_then(|known| taint_change(&known, tainted)) else { return Ok(()) };
        context.api.patch::<Node>(node, &change).await?;
        if tainted {
            let taint = taints::DISRUPTED;
            tracing::info!(
                Node = %node, taint.Key = taint.key, taint.Value = taint.value, taint.Effect = taint.effect,
                "tainted node"
            );
        }
        Ok(())
    });
    or_gone(changed.await)
}

/// Says on a claim why it is disrupted, or that it is not any more. A claim that is gone is as it should be.
pub(super) async fn reason(context: &Context, claim: &Key, reason: Option<Reason>) -> Result<(), Error> {
    let changed = retry(|| async {
        let known = context.cluster.read().node_claims.get(claim).map(Arc::clone);
        let Some(known) = known else { return Ok(()) };
        if reason.is_none() && known.condition(DISRUPTION_REASON).is_none() {
            return Ok(());
        }
        let mut after = NodeClaim::clone(&known);
        let mut conditions = Conditions::of(&mut after, context.now());
        match reason.map(Reason::text) {
            Some(text) => conditions.set(DISRUPTION_REASON, ConditionStatus::True, text, text),
            None => conditions.clear(DISRUPTION_REASON).unwrap_or_default(),
        };
        if let Some(change) = status::conditions(&*known, &after) {
            context.api.patch_status::<NodeClaim>(claim, &change).await?;
        }
        Ok(())
    });
    or_gone(changed.await)
}

fn or_gone(changed: Result<(), Error>) -> Result<(), Error> {
    match changed {
        Err(error) if error.is_not_found() => Ok(()),
        changed => changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(taints: &Value) -> Node {
        serde_json::from_value(json!({"metadata": {"resourceVersion": "7"}, "spec": {"taints": taints}}))
            .unwrap()
    }

    #[test]
    fn a_taint_comes_and_goes_and_leaves_the_others_alone() {
        let other =
            json!({"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
        let ours = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
        let (clean, tainted) = (node(&json!([other])), node(&json!([other, ours])));
        let added = taint_change(&clean, true).unwrap();
        assert_eq!(added, json!({"metadata": {"resourceVersion": "7"}, "spec": {"taints": [other, ours]}}));
        let removed = taint_change(&tainted, false).unwrap();
        assert_eq!(removed["spec"]["taints"], json!([other]));
        assert_eq!((taint_change(&clean, false), taint_change(&tainted, true)), (None, None));
    }

    #[test]
    fn only_key_and_effect_tell_the_taint() {
        let valued = json!([{"key": "karpenter.sh/disrupted", "value": "x", "effect": "NoSchedule"}]);
        assert!(is_tainted(&node(&valued)));
        let other = json!([{"key": "karpenter.sh/disrupted", "effect": "NoExecute"}]);
        assert!(!is_tainted(&node(&other)));
    }
}
