//! Whether a NodeClaim is no longer what its NodePool and its cloud ask for.
//!
//! Asked in this order, the first that says yes counts: the hash of the pool, its requirements, whether the
//! instance type is still on offer, the cloud.

use std::collections::BTreeMap;
use std::time::Duration;

use api::conditions::HasConditions;
use api::hash;
use api::labels::LabelSets;
use api::names::conditions::node_claim::LAUNCHED;
use api::names::reasons::node_claim::{INSTANCE_TYPE_NOT_FOUND, NODE_POOL_DRIFTED, REQUIREMENTS_DRIFTED};
use api::names::{labels, values::capacity_type};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::shared::{Operator, Requirement};
use cloud::Error;
use cluster::instance_types::InstanceType;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::algebra::Algebra;
use crate::node_pool::hash::stamp;
use crate::{Context, catalogue};

/// How often drift is looked for.
pub(super) const INTERVAL: Duration = Duration::from_mins(5);
/// How old a claim must be before its instance type is looked up: catalogues may be a little behind.
const SETTLED: SignedDuration = SignedDuration::from_hours(1);
/// For how long a look-up that succeeded counts.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(30);

/// Whether a claim has drifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Drift {
    /// There is nothing that could have.
    NotLaunched,
    /// It has not.
    No,
    /// It has, and why.
    Yes(String),
}

/// What the pool alone tells.
fn pool_drift(claim: &NodeClaim, pool: &NodePool, sets: &LabelSets) -> Option<&'static str> {
    let (of_pool, of_claim) =
        (stamp(pool.metadata.annotations.as_ref()), stamp(claim.metadata.annotations.as_ref()));
    if hash::is_drifted(of_pool, of_claim) {
        return Some(NODE_POOL_DRIFTED);
    }
    let mut algebra = Algebra::new(sets);
    let asked = algebra.requirements(&pool.spec.template.spec.requirements);
    let own = algebra.labels(claim_labels(claim));
    (!algebra.satisfies(own, asked)).then_some(REQUIREMENTS_DRIFTED)
}

/// Whether the instance type of a claim can no longer be bought, available at present or not.
fn is_off_the_market(claim: &NodeClaim, types: &[InstanceType], sets: &LabelSets) -> bool {
    let label = |key: &str| claim_labels(claim).find(|(own, _)| *own == key).map_or("", |(_, value)| value);
    let Some(kind) = types.iter().find(|kind| kind.name == label(labels::INSTANCE_TYPE)) else { return true };
    let mut algebra = Algebra::new(sets);
    let known = if label(labels::CAPACITY_TYPE) == capacity_type::RESERVED {
        // What was reserved once may be bought on demand later, so what only reservations have does not count.
        let counts = |key: &str| key != labels::CAPACITY_TYPE && !sets.reserved_capacity().contains(key);
        let own = algebra.labels(claim_labels(claim).filter(|(key, _)| counts(key)));
        let paid_for = algebra.requirements(&[Requirement {
            key: labels::CAPACITY_TYPE.to_owned(),
            operator: Operator::In,
            values: vec![capacity_type::RESERVED.to_owned(), capacity_type::ON_DEMAND.to_owned()],
            min_values: None,
        }]);
        algebra.both(own, paid_for)
    } else {
        algebra.labels(claim_labels(claim))
    };
    !kind.offerings.iter().any(|offering| {
        let offered = algebra.requirements(&offering.requirements);
        algebra.admits(known, offered)
    })
}

fn claim_labels(claim: &NodeClaim) -> impl Iterator<Item = (&str, &str)> {
    let labels = claim.metadata.labels.iter().flatten();
    labels.map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Whether the instance type of a claim is to be looked up now.
fn is_due(claim: &NodeClaim, found: Option<Timestamp>, now: Timestamp) -> bool {
    let created = claim.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    now.duration_since(created) > SETTLED && found.is_none_or(|found| now.duration_since(found) >= REMEMBERED)
}

/// Asks everybody in turn whether a claim has drifted.
pub(super) async fn drift(
    context: &Context,
    offered: &Mutex<BTreeMap<Box<str>, Timestamp>>,
    claim: &NodeClaim,
    pool: &NodePool,
) -> Result<Drift, Error> {
    if !claim.is_true(LAUNCHED) {
        return Ok(Drift::NotLaunched);
    }
    let sets = LabelSets::for_provider(context.provider());
    if let Some(reason) = pool_drift(claim, pool, &sets) {
        return Ok(Drift::Yes(reason.to_owned()));
    }
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let found = offered.lock().get(uid).copied();
    if is_due(claim, found, context.now()) {
        let types = context.cloud.instance_types(pool).await?;
        if is_off_the_market(claim, &types, &catalogue::label_sets(context.provider(), types.iter())) {
            return Ok(Drift::Yes(INSTANCE_TYPE_NOT_FOUND.to_owned()));
        }
        offered.lock().insert(uid.into(), context.now());
    }
    Ok(context.cloud.drift(claim).await?.filter(|reason| !reason.is_empty()).map_or(Drift::No, Drift::Yes))
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;
    use cluster::instance_types::kwok;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{claim, pool};

    fn labelled(labels: &Value) -> NodeClaim {
        claim("c", &json!({"metadata": {"labels": labels}}))
    }

    #[track_caller]
    fn check_requirements(requirements: &Value, drifted: bool) {
        let own = json!({
            "karpenter.sh/nodepool": "p", "kubernetes.io/arch": "amd64", "example.com/generation": "4",
        });
        let pool = pool("p", &json!({"spec": {"template": {"spec": {"requirements": requirements}}}}));
        let reason = pool_drift(&labelled(&own), &pool, &LabelSets::for_provider(Provider::Kwok));
        assert_eq!(reason.is_some(), drifted, "{requirements}");
    }

    #[test]
    fn labels_that_the_pool_no_longer_admits_are_drift() {
        let one = |key: &str, operator: &str, values: &[&str]| json!([{"key": key, "operator": operator, "values": values}]);
        check_requirements(&json!([]), false);
        check_requirements(&one("kubernetes.io/arch", "In", &["arm64"]), true);
        check_requirements(&one("kubernetes.io/arch", "In", &["arm64", "amd64"]), false);
        check_requirements(&one("beta.kubernetes.io/arch", "In", &["amd64"]), false);
        check_requirements(&one("kubernetes.io/arch", "NotIn", &["amd64"]), true);
        check_requirements(&one("kubernetes.io/arch", "DoesNotExist", &[]), true);
        check_requirements(&one("kubernetes.io/arch", "Exists", &[]), false);
        // A label that was asked for later is missing, well known or not.
        check_requirements(&one("kubernetes.io/os", "In", &["linux"]), true);
        check_requirements(&one("kubernetes.io/os", "Exists", &[]), true);
        check_requirements(&one("kubernetes.io/os", "NotIn", &["windows"]), false);
        check_requirements(&one("kubernetes.io/os", "DoesNotExist", &[]), false);
        check_requirements(&one("example.com/generation", "Gt", &["3"]), false);
        check_requirements(&one("example.com/generation", "Gt", &["4"]), true);
        check_requirements(&one("example.com/generation", "Lt", &["4"]), true);
        check_requirements(&one("example.com/generation", "Gte", &["4"]), false);
        check_requirements(&one("example.com/generation", "Lte", &["3"]), true);
    }

    #[test]
    fn the_hash_is_asked_before_the_requirements() {
        let stamped = |hash: &str, version: &str| {
            json!({"metadata": {"annotations": {
                "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": version,
            }}})
        };
        let mut pool = pool("p", &stamped("1", "v3"));
        let sets = LabelSets::for_provider(Provider::Kwok);
        for (of_claim, expected) in [
            (stamped("1", "v3"), None),
            (stamped("2", "v3"), Some(NODE_POOL_DRIFTED)),
            (stamped("2", "v2"), None),
            (json!({}), None),
            (json!({"metadata": {"annotations": {"karpenter.sh/nodepool-hash": "2"}}}), None),
        ] {
            assert_eq!(pool_drift(&claim("c", &of_claim), &pool, &sets), expected, "{of_claim}");
        }
        pool.metadata.annotations = None;
        assert_eq!(pool_drift(&claim("c", &stamped("2", "v3")), &pool, &sets), None);
    }

    #[test]
    fn every_field_that_nodes_are_made_of_is_drift_when_it_changes() {
        let before = pool("p", &json!({}));
        let stamped = |hash: &str| {
            json!({"metadata": {"annotations": {
                "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": "v3",
            }}})
        };
        let claim = claim("c", &stamped(&hash::node_pool_hash(&before)));
        let taint = json!([{"key": "a", "value": "b", "effect": "NoSchedule"}]);
        let sets = LabelSets::for_provider(Provider::Kwok);
        let drift = |template: &Value| {
            let mut change = json!({"spec": {"template": template}});
            let changed = pool("p", &change);
            crate::testing::merge(&mut change, &stamped(&hash::node_pool_hash(&changed)));
            pool_drift(&claim, &pool("p", &change), &sets)
        };
        assert_eq!(drift(&json!({})), None);
        for template in [
            json!({"metadata": {"annotations": {"a": "b"}}}),
            json!({"metadata": {"labels": {"a": "b"}}}),
            json!({"spec": {"taints": taint}}),
            json!({"spec": {"startupTaints": taint}}),
            json!({"spec": {"nodeClassRef": {"name": "another"}}}),
            json!({"spec": {"expireAfter": "1h"}}),
            json!({"spec": {"terminationGracePeriod": "1h"}}),
        ] {
            assert_eq!(drift(&template), Some(NODE_POOL_DRIFTED), "{template}");
        }
    }

    fn bought(capacity_type: &str, zone: &str) -> NodeClaim {
        labelled(&json!({
            "node.kubernetes.io/instance-type": "c-1x-amd64-linux",
            "karpenter.sh/capacity-type": capacity_type, "topology.kubernetes.io/zone": zone,
        }))
    }

    #[track_caller]
    fn check_market(claim: &NodeClaim, types: &[InstanceType], gone: bool) {
        let sets = catalogue::label_sets(Provider::Kwok, types);
        assert_eq!(is_off_the_market(claim, types, &sets), gone, "{:?}", claim.metadata.labels);
    }

    #[test]
    fn a_type_that_cannot_be_bought_any_more_is_drift() {
        let mut types = kwok::built_in();
        check_market(&bought("spot", "test-zone-a"), &types, false);
        check_market(&bought("spot", "another-zone"), &types, true);
        check_market(&labelled(&json!({"node.kubernetes.io/instance-type": "x"})), &types, true);
        check_market(&labelled(&json!({})), &types, true);
        types.iter_mut().flat_map(|kind| &mut kind.offerings).for_each(|offering| offering.available = false);
        check_market(&bought("spot", "test-zone-a"), &types, false);
        for kind in &mut types {
            kind.offerings.clear();
        }
        check_market(&bought("spot", "test-zone-a"), &types, true);
    }

    #[test]
    fn what_was_reserved_may_be_on_demand_now_but_not_spot() {
        let offered = |capacity_types: &[&str]| {
            let mut types = kwok::built_in();
            let is_left = |offering: &cluster::instance_types::Offering| {
                offering
                    .requirements
                    .iter()
                    .any(|asked| asked.values.iter().any(|value| capacity_types.contains(&value.as_str())))
            };
            for kind in &mut types {
                kind.offerings.retain(is_left);
            }
            types
        };
        let reserved = bought("reserved", "test-zone-a");
        check_market(&reserved, &offered(&["on-demand", "spot"]), false);
        check_market(&reserved, &offered(&["on-demand"]), false);
        check_market(&reserved, &offered(&["spot"]), true);
        check_market(&reserved, &offered(&[]), true);
        let mut reservation = offered(&["on-demand"]);
        let kinds = reservation.iter_mut().flat_map(|kind| &mut kind.offerings);
        for requirement in kinds.flat_map(|offering| &mut offering.requirements) {
            if requirement.key == labels::CAPACITY_TYPE {
                requirement.values = vec![capacity_type::RESERVED.to_owned()];
            }
        }
        check_market(&reserved, &reservation, false);
        check_market(&bought("on-demand", "test-zone-a"), &offered(&["spot"]), true);
    }

    #[test]
    fn types_are_looked_up_after_an_hour_and_then_every_half_hour() {
        let claim = claim("c", &json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}));
        let at = |time: &str| format!("2026-01-01T{time}Z").parse::<Timestamp>().unwrap();
        assert!(!is_due(&claim, None, at("01:00:00")));
        assert!(is_due(&claim, None, at("01:00:01")));
        assert!(!is_due(&claim, Some(at("01:00:01")), at("01:30:00")));
        assert!(is_due(&claim, Some(at("01:00:01")), at("01:30:01")));
    }
}
