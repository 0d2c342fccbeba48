//! How long a node must have been quiet before it may be consolidated.

use api::conditions::HasConditions;
use api::names::conditions::node_claim::INITIALIZED;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use jiff::{SignedDuration, Timestamp};
use units::GoDuration;

/// When a node will have been quiet for as long as its NodePool asks for: since a pod came or left last, or since it
/// was initialised. Nothing if nobody waits: it is not initialised, or the pool consolidates at once or never.
pub fn quiet_at(pool: &NodePool, claim: &NodeClaim) -> Option<Timestamp> {
    let wait = pool.spec.disruption.consolidate_after.duration().filter(|wait| *wait != GoDuration::ZERO)?;
    let initialized = claim.condition(INITIALIZED).filter(|_| claim.is_true(INITIALIZED))?;
    let last_event = claim.status.as_ref().and_then(|status| status.last_pod_event_time.as_ref());
    let since = last_event.unwrap_or(&initialized.last_transition_time);
    Some(since.0.saturating_add(SignedDuration::from(wait)).unwrap_or(Timestamp::MAX))
}

/// Whether a node has not been quiet for long enough. It is neither consolidated itself, nor do pods of
/// consolidated nodes move onto it.
pub fn is_unsettled(pool: Option<&NodePool>, claim: Option<&NodeClaim>, now: Timestamp) -> bool {
    let (Some(pool), Some(claim)) = (pool, claim) else { return false };
    quiet_at(pool, claim).is_some_and(|end| now < end)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(consolidate_after: &str) -> NodePool {
        serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {
                "disruption": {"consolidateAfter": consolidate_after},
                "template": {"spec": {
                    "requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
                }},
            },
        }))
        .unwrap()
    }

    fn claim(initialized: &str, last_pod_event: &Value) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "c"},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
            "status": {
                "conditions": [{
                    "type": "Initialized", "status": initialized, "reason": "r", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "lastPodEventTime": last_pod_event,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_node_is_unsettled_until_it_was_quiet_for_as_long_as_its_pool_asks() {
        for (wait, initialized, event, now, expected) in [
            ("10m", "True", json!(null), "2026-01-01T00:09:59Z", true),
            ("10m", "True", json!(null), "2026-01-01T00:10:00Z", false),
            ("10m", "True", json!("2026-01-01T00:05:00Z"), "2026-01-01T00:14:59Z", true),
            ("10m", "True", json!("2026-01-01T00:05:00Z"), "2026-01-01T00:15:00Z", false),
            ("10m", "Unknown", json!(null), "2026-01-01T00:00:00Z", false),
            ("0s", "True", json!(null), "2026-01-01T00:00:00Z", false),
            ("Never", "True", json!(null), "2026-01-01T00:00:00Z", false),
        ] {
            let (pool, claim) = (pool(wait), claim(initialized, &event));
            let found = is_unsettled(Some(&pool), Some(&claim), now.parse().unwrap());
            assert_eq!(found, expected, "{wait} {initialized} {event} {now}");
        }
    }

    #[test]
    fn what_is_not_known_is_settled() {
        let claim = claim("True", &json!(null));
        assert!(!is_unsettled(None, Some(&claim), Timestamp::UNIX_EPOCH));
        assert!(!is_unsettled(Some(&pool("10m")), None, Timestamp::UNIX_EPOCH));
    }
}
