//! Tests of recognising pods: those that differ in what matters never share a class, all others do.

use api::provider::Provider;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::file;
use crate::scheduler_config::SchedulerConfig;
use crate::snapshot::{Options, build};

/// A pod that uses everything.
fn pod() -> Value {
    let selector = json!({"matchLabels": {"app": "web"}});
    let term = json!({"labelSelector": selector, "topologyKey": "zone"});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "labels": {"app": "web"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["4"]}]},
                    ]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}},
                    ],
                },
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [term],
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
                },
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [term],
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
                },
            },
            "topologySpreadConstraints": [{
                "maxSkew": 1, "minDomains": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore",
            }],
            "containers": [{
                "name": "main",
                "image": "web:1",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1", "protocol": "TCP"}],
            }],
            "initContainers": [{
                "name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3"}},
            }],
            "overhead": {"cpu": "100m"},
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "a"}}],
        },
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    })
}

/// Changes that matter, each to a place of its own.
fn changes() -> Vec<(&'static str, Value)> {
    vec![
        ("/metadata/namespace", json!("bar")),
        ("/metadata/labels/app", json!("api")),
        ("/metadata/labels/tier", json!("front")),
        ("/spec/nodeSelector/disk", json!("hdd")),
        ("/spec/tolerations/0/key", json!("reserved")),
        ("/spec/tolerations/0/operator", json!("Gt")),
        ("/spec/tolerations/0/value", json!("db")),
        ("/spec/tolerations/0/effect", json!("NoExecute")),
        (
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values/0",
            json!("8"),
        ),
        ("/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", json!(9)),
        (
            "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey",
            json!("rack"),
        ),
        (
            "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/namespaces",
            json!(["elsewhere"]),
        ),
        ("/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", json!(9)),
        (
            "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels/app",
            json!("db"),
        ),
        ("/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", json!(9)),
        ("/spec/topologySpreadConstraints/0/maxSkew", json!(2)),
        ("/spec/topologySpreadConstraints/0/minDomains", json!(3)),
        ("/spec/topologySpreadConstraints/0/topologyKey", json!("rack")),
        ("/spec/topologySpreadConstraints/0/whenUnsatisfiable", json!("ScheduleAnyway")),
        ("/spec/topologySpreadConstraints/0/labelSelector/matchLabels/app", json!("db")),
        ("/spec/topologySpreadConstraints/0/nodeAffinityPolicy", json!("Ignore")),
        ("/spec/topologySpreadConstraints/0/nodeTaintsPolicy", json!("Honor")),
        ("/spec/containers/0/resources/requests/cpu", json!("2")),
        ("/spec/containers/0/resources/requests/memory", json!("2Gi")),
        ("/spec/containers/0/resources/limits", json!({"nvidia.com/gpu": "1"})),
        ("/spec/containers/0/ports/0/hostPort", json!(81)),
        ("/spec/containers/0/ports/0/hostIP", json!("10.0.0.2")),
        ("/spec/containers/0/ports/0/protocol", json!("UDP")),
        ("/spec/initContainers/0/resources/requests/memory", json!("7Gi")),
        ("/spec/overhead/ephemeral-storage", json!("1Gi")),
        ("/spec/resources", json!({"requests": {"hugepages-2Mi": "4Mi"}})),
        ("/spec/volumes/0/persistentVolumeClaim/claimName", json!("b")),
        ("/spec/resourceClaims", json!([{"name": "gpu"}])),
    ]
}

/// Changes that do not matter.
fn trifles() -> Vec<(&'static str, Value)> {
    vec![
        ("/metadata/uid", json!("2")),
        ("/metadata/annotations", json!({"karpenter.sh/x": "y"})),
        ("/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z")),
        ("/spec/containers/0/image", json!("web:2")),
        ("/spec/containers/0/name", json!("other")),
        ("/spec/containers/0/resources/requests/cpu", json!("1000m")),
        ("/spec/priority", json!(7)),
        ("/spec/schedulerName", json!("other")),
        ("/spec/schedulingGates", json!([{"name": "example.com/gate"}])),
        ("/spec/volumes/1", json!({"name": "tmp", "emptyDir": {}})),
        (
            "/metadata/ownerReferences",
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "y"}]),
        ),
    ]
}

/// Sets the value at a path, whose last part may be missing.
fn set(pod: &mut Value, path: &str, value: &Value) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    match pod.pointer_mut(parent).unwrap() {
        Value::Array(list) => {
            let position: usize = key.parse().unwrap();
            list.resize(list.len().max(position + 1), Value::Null);
            list[position] = value.clone();
        }
        parent => parent[key] = value.clone(),
    }
}

/// Claims that the pod may use, in each namespace and with a driver.
fn cluster() -> String {
    let mut documents = vec![
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
            "provisioner": "example.com/disk"})
        .to_string(),
    ];
    for (namespace, claim) in [("shop", "a"), ("shop", "b"), ("bar", "a"), ("bar", "b")] {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": namespace}, "spec": {"storageClassName": "disk"}});
        documents.push(claim.to_string());
    }
    documents.join("\n")
}

/// How many classes the pods have.
fn classes(pods: &[Value], options: &Options<'_>) -> usize {
    let mut text = cluster();
    for (position, pod) in pods.iter().enumerate() {
        let mut pod = pod.clone();
        pod["metadata"]["name"] = format!("web-{position}").into();
        text.push_str(&pod.to_string());
    }
    let contents = file::parse("pods", text.as_bytes()).unwrap();
    assert_eq!(contents.errors, []);
    let built = build(&contents.objects, options, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(built.ignored, []);
    assert_eq!(built.snapshot.pods.len(), pods.len());
    built.snapshot.classes.len()
}

fn options() -> Options<'static> {
    Options::new(Provider::Kwok, &[])
}

#[test]
fn every_change_that_matters_makes_a_class_of_its_own() {
    for (path, value) in changes() {
        let mut changed = pod();
        set(&mut changed, path, &value);
        assert_eq!(classes(&[pod(), changed.clone(), changed, pod()], &options()), 2, "{path}");
    }
}

#[test]
fn no_other_change_makes_a_class() {
    for (path, value) in trifles() {
        let mut changed = pod();
        set(&mut changed, path, &value);
        assert_eq!(classes(&[pod(), changed], &options()), 1, "{path}");
    }
}

#[test]
fn claims_made_for_a_pod_are_its_own() {
    let mut pod = pod();
    set(&mut pod, "/spec/volumes/0", &json!({"name": "data", "ephemeral": {}}));
    let claims = ["web-0-data", "web-1-data"].map(|name| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "shop"}, "spec": {"storageClassName": "disk"}})
        .to_string()
    });
    let pods = ["web-0", "web-1"].map(|name| {
        set(&mut pod, "/metadata/name", &name.into());
        pod.to_string()
    });
    let text = [cluster(), claims.concat(), pods.concat()].concat();
    let contents = file::parse("pods", text.as_bytes()).unwrap();
    let built = build(&contents.objects, &options(), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!((built.ignored.len(), built.snapshot.classes.len()), (0, 2));
}

#[test]
fn the_owner_matters_if_the_scheduler_spreads_by_it() {
    let config = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}";
    let mut options = options();
    options.scheduler_config = SchedulerConfig::parse(config).unwrap();
    let pods = ["a", "b", "a"].map(|owner| {
        let mut pod = pod();
        set(&mut pod, "/spec/topologySpreadConstraints", &json!([]));
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": true}]);
        set(&mut pod, "/metadata/ownerReferences", &owner);
        pod
    });
    // Neither owner exists, so nothing can be deduced and all are alike after all.
    assert_eq!(classes(&pods, &options), 1);
}

#[test]
fn pods_of_the_state_are_numbered_by_their_looks_as_long_as_one_is_there() {
    let mut shapes = Shapes::default();
    let mut number = |value: &Value| shapes.note(Arc::new(serde_json::from_value(value.clone()).unwrap()));
    let mut replica = pod();
    set(&mut replica, "/metadata/name", &"other".into());
    let (path, value) = &changes()[0];
    let mut different = pod();
    set(&mut different, path, value);
    let [first, second, third] = [&pod(), &replica, &different].map(&mut number);
    assert_eq!(first.noted, second.noted);
    assert_ne!(first.noted, third.noted);
    assert_eq!(shapes.len(), 2);
    shapes.release(&first);
    assert_eq!(shapes.len(), 2);
    shapes.release(&second);
    assert_eq!(shapes.len(), 1);
    let again = shapes.note(second);
    assert!(again.noted.is_some() && again.noted != third.noted && shapes.len() == 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pods_share_a_class_exactly_if_the_same_changes_were_made(
        first in prop::collection::btree_set(0..changes().len(), 0..4),
        second in prop::collection::btree_set(0..changes().len(), 0..4),
        trifle in 0..trifles().len(),
    ) {
        let changed = |chosen: &std::collections::BTreeSet<usize>| {
            let mut pod = pod();
            for (path, value) in chosen.iter().map(|position| changes()[*position].clone()) {
                set(&mut pod, path, &value);
            }
            pod
        };
        let pods = [changed(&first), changed(&second)];
        let expected = if first == second { 1 } else { 2 };
        prop_assert_eq!(classes(&pods, &options()), expected);

        // What does not matter does not tell them apart, unless it undoes a change.
        let (path, value) = &trifles()[trifle];
        if !path.ends_with("/cpu") {
            let mut other = changed(&first);
            set(&mut other, path, value);
            prop_assert_eq!(classes(&[changed(&first), other], &options()), 1);
        }
    }
}
