//! In which zones pending pods must be.

use api::provider::Provider;
use cluster::instance_types::kwok;
use cluster::snapshot::{self, Origin};
use engine::zones::{Zones, effective_zones};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::testing::{merge, node_objects, pod_object, pool_object, state};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Where a pod must be, in a cluster whose pods `running` are in the zones that their names begin with.
fn zone(spec: &Value, running: &[&str], more: &[Value]) -> String {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let zones =
        json!([{"key": ZONE, "operator": "In", "values": ["test-zone-a", "test-zone-b", "test-zone-c"]}]);
    let pool = json!({
        "spec": {"template": {"spec": {"requirements": zones}}}, "status": {"conditions": ready},
    });
    let mut objects = vec![pool_object("p", &pool)];
    for zone in ["a", "b", "c"] {
        let labels = json!({"metadata": {"labels": {ZONE: format!("test-zone-{zone}")}}});
        objects.extend(node_objects(&format!("node-{zone}"), "p", &labels, &labels));
    }
    for (number, zone) in running.iter().enumerate() {
        objects.push(pod_object(&format!("running-{number}"), &format!("node-{zone}"), &json!({})));
    }
    let mut pod = pod_object(
        "waiting",
        "",
        &json!({
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]},
        }),
    );
    merge(&mut pod, &json!({"spec": spec}));
    objects.push(pod);
    objects.extend_from_slice(more);
    let types = kwok::built_in();
    let options = snapshot::Options::new(Provider::Kwok, &types);
    let built = snapshot::build(&state(&objects), &options, Timestamp::UNIX_EPOCH);
    let zones = effective_zones(&built.snapshot, |pod| built.pods[pod.index()] == Origin::Waiting);
    match zones {
        Zones { flexible: 1, .. } => "flexible".to_owned(),
        Zones { nowhere: 1, .. } => "none".to_owned(),
        Zones { by_zone, .. } => by_zone.keys().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

fn term(key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": key})
}

#[test]
fn a_pod_that_asks_for_nothing_can_go_anywhere() {
    assert_eq!(zone(&json!({}), &[], &[]), "flexible");
    let wish = json!([{"weight": 1, "preference": {"matchExpressions": [
        {"key": ZONE, "operator": "In", "values": ["test-zone-a"]},
    ]}}]);
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}});
    assert_eq!(zone(&json!({"affinity": affinity}), &[], &[]), "flexible", "wishes do not count");
}

#[test]
fn a_selector_names_the_zone() {
    assert_eq!(zone(&json!({"nodeSelector": {ZONE: "test-zone-b"}}), &[], &[]), "test-zone-b");
    let either = json!([{"matchExpressions": [
        {"key": ZONE, "operator": "In", "values": ["test-zone-a", "test-zone-b"]},
    ]}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": either}}});
    assert_eq!(zone(&json!({"affinity": affinity}), &[], &[]), "flexible");
    let both = json!({"affinity": affinity, "nodeSelector": {ZONE: "test-zone-a"}});
    assert_eq!(zone(&both, &[], &[]), "test-zone-a");
}

#[test]
fn volumes_name_the_zone() {
    let volume = |zones: &[&str]| {
        let rule = json!([{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}]);
        vec![
            json!({"kind": "PersistentVolume", "metadata": {"name": "v"},
                "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": rule}}}}),
            json!({
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "c", "namespace": "default",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": "v"},
            }),
        ]
    };
    let spec = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]});
    assert_eq!(zone(&spec, &[], &volume(&["test-zone-a", "test-zone-b"])), "flexible");
    assert_eq!(zone(&spec, &[], &volume(&["test-zone-a"])), "test-zone-a");
    let mut elsewhere = spec.clone();
    elsewhere["nodeSelector"] = json!({ZONE: "test-zone-b"});
    assert_eq!(zone(&elsewhere, &[], &volume(&["test-zone-a"])), "none");
}

#[test]
fn pods_around_name_the_zone() {
    let near = json!({"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE)],
    }}});
    assert_eq!(zone(&near, &["b"], &[]), "test-zone-b");
    assert_eq!(zone(&near, &["a", "b"], &[]), "flexible");
    // The pod is its own company.
    assert_eq!(zone(&near, &[], &[]), "flexible");
    let mut alone = near.clone();
    alone["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"] =
        json!({"matchLabels": {"app": "nobody"}});
    assert_eq!(zone(&alone, &["b"], &[]), "none");
    let away = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE)],
    }}});
    assert_eq!(zone(&away, &["a", "b"], &[]), "test-zone-c");
    assert_eq!(zone(&away, &["a", "b", "c"], &[]), "none");
}

#[test]
fn spreading_names_the_zone() {
    let spread = |min_domains: Option<i32>| {
        let mut rule = term(ZONE);
        merge(
            &mut rule,
            &json!({"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": min_domains}),
        );
        json!({"topologySpreadConstraints": [rule]})
    };
    assert_eq!(zone(&spread(None), &["a", "b"], &[]), "test-zone-c");
    assert_eq!(zone(&spread(None), &["a"], &[]), "flexible");
    assert_eq!(zone(&spread(Some(4)), &["a", "b", "c"], &[]), "none");
}
