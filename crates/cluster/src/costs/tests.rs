//! What disruption costs.

use serde_json::{Value, json};

use super::*;
use crate::instance_types::Offering;
use api::shared::Operator;

fn pod(value: &Value) -> Pod {
    serde_json::from_value(value.clone()).unwrap()
}

fn annotated(annotations: &Value) -> Pod {
    pod(&json!({"metadata": {"annotations": annotations}}))
}

fn claim(expire_after: &str) -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
            "expireAfter": expire_after,
        },
    }))
    .unwrap()
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn a_pod_costs_one_more_with_priority_and_with_what_its_owner_says() {
    let costs = Costs::default();
    for (value, expected) in [
        (json!({}), 1.0),
        (json!({"spec": {"priority": 1 << 25}}), 2.0),
        (json!({"spec": {"priority": -(1 << 26)}}), -1.0),
        (json!({"spec": {"priority": 2_000_000_000}}), 10.0),
        (json!({"spec": {"priority": i32::MIN}}), -10.0),
    ] {
        close(costs.eviction(&pod(&value)), expected);
    }
    let own = json!({"karpenter.sh/disruption-cost": "134217728"});
    close(costs.eviction(&annotated(&own)), 2.0);
    let of_replica_sets = json!({"controller.kubernetes.io/pod-deletion-cost": "-134217728"});
    close(costs.eviction(&annotated(&of_replica_sets)), 0.0);
}

#[test]
fn our_annotation_comes_before_that_of_replica_sets() {
    let both = annotated(&json!({
        "karpenter.sh/disruption-cost": "134217728",
        "controller.kubernetes.io/pod-deletion-cost": "-134217728",
    }));
    close(Costs::default().eviction(&both), 2.0);
    let theirs = annotated(&json!({"controller.kubernetes.io/pod-deletion-cost": "134217728"}));
    close(Costs { pod_deletion_cost: false }.eviction(&theirs), 1.0);
}

#[test]
fn a_cost_that_is_no_integer_counts_as_nothing() {
    for value in ["1.5", "1e3", "2147483648", "", "much"] {
        let pod = annotated(&json!({
            "karpenter.sh/disruption-cost": value,
            "controller.kubernetes.io/pod-deletion-cost": "134217728",
        }));
        close(Costs::default().eviction(&pod), 1.0);
        let error = Costs::default().stated(&pod).unwrap_err();
        assert_eq!((error.annotation, &*error.value), ("karpenter.sh/disruption-cost", value));
    }
}

#[test]
fn only_what_must_move_makes_a_node_worth_something() {
    let costs = Costs::default();
    let daemon = pod(&json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x"},
    ]}}));
    let worthless = pod(&json!({"spec": {"priority": i32::MIN}}));
    let plain = pod(&json!({}));
    assert!(is_empty(costs.reschedule_disruption([&daemon, &worthless])));
    close(costs.reschedule_disruption([&daemon, &plain, &plain]), 3.0);
    close(costs.rescheduling([&daemon, &worthless]), -9.0);
    close(costs.reschedule_disruption([&daemon, &worthless, &plain]), 2.0);
    // Neither does one that is done.
    let done = pod(&json!({"status": {"phase": "Succeeded"}}));
    assert!(is_empty(costs.reschedule_disruption([&done])));
}

#[test]
fn a_node_that_expires_soon_costs_less() {
    let now = "2026-01-01T00:15:00Z".parse().unwrap();
    for (expire_after, expected) in [("1h", 0.75), ("10m", 0.0), ("Never", 1.0), ("0s", 0.0)] {
        close(lifetime_remaining(&claim(expire_after), now), expected);
    }
    let plain = pod(&json!({}));
    close(Costs::default().disruption([&plain, &plain], &claim("1h"), now), 1.5);
}

#[test]
fn the_price_of_a_node_is_that_of_its_type_zone_and_capacity_type() {
    let requirement = |key: &str, value: &str| Requirement {
        key: key.into(),
        operator: Operator::In,
        values: vec![value.into()],
        min_values: None,
    };
    let offering = |zone: &str, capacity_type: &str, price| Offering {
        requirements: vec![
            requirement("topology.kubernetes.io/zone", zone),
            requirement("karpenter.sh/capacity-type", capacity_type),
        ],
        price,
        ..Offering::default()
    };
    let offerings =
        vec![offering("a", "spot", 1.0), offering("b", "spot", 2.0), offering("b", "reserved", f64::NAN)];
    let types = [InstanceType { name: "large".into(), offerings, ..InstanceType::default() }];
    for (name, zone, capacity_type, expected) in [
        ("large", "b", "spot", 2.0),
        ("large", "c", "spot", 0.0),
        ("large", "b", "reserved", 0.0),
        ("small", "b", "spot", 0.0),
    ] {
        let node = serde_json::from_value(json!({"metadata": {"name": "n", "labels": {
            "node.kubernetes.io/instance-type": name,
            "topology.kubernetes.io/zone": zone,
            "karpenter.sh/capacity-type": capacity_type,
        }}}))
        .unwrap();
        close(price(&StateNode { node: Some(&node), ..StateNode::default() }, &types), expected);
    }
    close(savings_ratio(3.0, 1.5), 2.0);
    close(savings_ratio(4.84, 1.0), 4.84);
    close(savings_ratio(4.84, 4.0), 1.21);
    close(savings_ratio(0.0, 4.0), 0.0);
}
