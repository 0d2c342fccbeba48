//! Whether a node has been quiet for as long as its pool asks for.

use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::INITIALIZED;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use cluster::consolidate_after::quiet_at;
use jiff::Timestamp;

/// Whether a node has been quiet for long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quiet {
    /// It has.
    Yes,
    /// It has not, and time alone will not change that.
    No,
    /// It will have been, if nothing happens.
    In(Duration),
}

/// Whether the node of a claim has been quiet for as long as its pool asks for.
pub(crate) fn quiet(claim: &NodeClaim, pool: &NodePool, now: Timestamp) -> Quiet {
    if pool.spec.disruption.consolidate_after.duration().is_none() || !claim.is_true(INITIALIZED) {
        return Quiet::No;
    }
    let wait = quiet_at(pool, claim).map(|end| Duration::try_from(end.duration_since(now)));
    match wait {
        Some(Ok(wait)) if !wait.is_zero() => Quiet::In(wait),
        _ => Quiet::Yes,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{claim, pool};

    #[track_caller]
    fn check(consolidate_after: &str, status: &Value, expected: Quiet) {
        let pool = pool("p", &json!({"spec": {"disruption": {"consolidateAfter": consolidate_after}}}));
        let claim = claim("c", &json!({"status": status}));
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(quiet(&claim, &pool, now), expected, "{consolidate_after} {status}");
    }

    #[test]
    fn a_node_is_quiet_when_no_pod_came_or_went_for_a_while() {
        let initialized = |status: &str| {
            json!([{"type": "Initialized", "status": status, "reason": "a", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        };
        let up = json!({"conditions": initialized("True")});
        check("5m", &up, Quiet::Yes);
        check("10m", &up, Quiet::Yes);
        check("15m", &up, Quiet::In(Duration::from_mins(5)));
        check("0s", &up, Quiet::Yes);
        check("Never", &up, Quiet::No);
        for status in ["False", "Unknown"] {
            check("0s", &json!({"conditions": initialized(status)}), Quiet::No);
        }
        check("0s", &json!({}), Quiet::No);
        let event = |time: &str| json!({"conditions": initialized("True"), "lastPodEventTime": time});
        check("5m", &event("2026-01-01T00:09:00Z"), Quiet::In(Duration::from_mins(4)));
        check("5m", &event("2026-01-01T00:04:00Z"), Quiet::Yes);
        check("0s", &event("2026-01-01T00:11:00Z"), Quiet::Yes);
    }
}
