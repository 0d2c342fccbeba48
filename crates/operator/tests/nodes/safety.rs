//! 16.28: what must never happen to the whole operator, whatever others do.

use std::collections::BTreeSet;
use std::time::Duration;

use api::provider::Provider;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;

use crate::whole;

const POOL: &str = "
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec: {nodeRegistrationDelay: DELAY}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx, resources: {requests: {cpu: 500m}}}]}
";

fn operated() -> World {
    let world = World::new(3);
    for definition in api::crds::documents(Provider::Kwok) {
        world.apply(&definition.document.to_string());
    }
    world.spawn(whole::operate(world.client(), world.clock(), Settings::default(), 3));
    world
}

/// Adds a taint to every node that has not got it yet, but for some.
fn spoil(world: &World, spared: &[Value]) {
    for node in world.list("/api/v1/nodes") {
        let mut taints: Vec<Value> = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        if node["metadata"]["deletionTimestamp"].is_null()
            && !spared.contains(&node["metadata"]["uid"])
            && !taints.iter().any(|taint| taint["key"] == "example.com/spoiled")
        {
            taints.push(json!({"key": "example.com/spoiled", "effect": "NoExecute"}));
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            world.patch(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": taints}}));
        }
    }
}

#[test]
fn somebody_who_spoils_every_node_does_not_make_the_cluster_grow_without_end() {
    for policy in ["WhenEmptyOrUnderutilized", "WhenEmpty"] {
        grows_little(policy);
    }
}

fn grows_little(policy: &str) {
    let mut world = operated();
    let policy = format!("{{consolidationPolicy: {policy}, consolidateAfter: 0s,");
    // As long as a machine takes to boot.
    world.apply(&POOL.replace("DELAY", "20s").replace("{consolidateAfter: 0s,", &policy));
    let mut seen = BTreeSet::new();
    let mut most = 0;
    for _ in 0..300 {
        world.run_for(Duration::from_secs(1));
        spoil(&world, &[]);
        let nodes = world.list("/api/v1/nodes");
        most = most.max(nodes.len());
        seen.extend(nodes.iter().map(|node| node["metadata"]["uid"].to_string()));
    }
    // The wait doubles with every node: after half a minute, one, two and four.
    assert!((2..=6).contains(&seen.len()), "{} nodes for one pod, {most} at once", seen.len());
    assert!(most <= 2, "{most} nodes at once for one pod");
    let told = world.list("/api/v1/namespaces/default/events");
    let told: Vec<&str> = told.iter().filter_map(|event| event["message"].as_str()).collect();
    assert!(told.iter().any(|text| text.contains("taints that it was not launched with")), "{told:#?}");
}

#[test]
fn nodes_that_drift_are_not_replaced_by_such_that_somebody_spoils() {
    let mut world = operated();
    let apart = "spec:\n      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, \
                 whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]\n      containers: [{";
    let pool = POOL.replace("DELAY", "10s").replace("100%", "'1'").replace("replicas: 1", "replicas: 5");
    let pool = pool.replace("spec: {containers: [{", apart).replace("500m}}}]}", "500m}}}]");
    world.apply(&pool);
    world.run_until("five pods run", Duration::from_mins(3), |world| world.running() == 5);
    let old: Vec<Value> =
        world.list("/api/v1/nodes").iter().map(|node| node["metadata"]["uid"].clone()).collect();
    world.run_for(Duration::from_mins(2));
    let drifts = json!({"spec": {"template": {"metadata": {"labels": {"example.com/new": "yes"}}}}});
    world.patch("/apis/karpenter.sh/v1/nodepools/pool", &drifts);
    for _ in 0..900 {
        world.run_for(Duration::from_secs(1));
        spoil(&world, &old);
    }
    assert!(world.running() >= 3, "{} of 5 pods are left", world.running());
}

#[test]
fn nodes_that_turn_out_too_small_for_their_pod_are_not_launched_over_and_over() {
    let mut world = operated();
    // Nodes take pods only once somebody has prepared them; there is time enough to make them smaller.
    let prepared = "requirements: []\n      startupTaints: [{key: example.com/agent, effect: NoSchedule}]";
    world.apply(&POOL.replace("DELAY", "20s").replace("requirements: []", prepared));
    let mut seen = BTreeSet::new();
    for _ in 0..300 {
        world.run_for(Duration::from_secs(1));
        for node in world.list("/api/v1/nodes") {
            seen.insert(node["metadata"]["uid"].to_string());
            if node["metadata"]["labels"]["karpenter.sh/registered"] != "true" {
                continue;
            }
            let path = format!("/api/v1/nodes/{}", node["metadata"]["name"].as_str().unwrap_or_default());
            world.patch(&format!("{path}/status"), &json!({"status": {"allocatable": {"cpu": "400m"}}}));
            let mut taints: Vec<Value> = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            taints.retain(|taint| taint["key"] != "example.com/agent");
            world.patch(&path, &json!({"spec": {"taints": taints}}));
        }
    }
    assert!((2..=8).contains(&seen.len()), "{} nodes for one pod", seen.len());
}

#[test]
fn an_operator_that_restarts_over_and_over_takes_nothing_away() {
    let mut world = operated();
    world.apply(&POOL.replace("DELAY", "0s"));
    world.run_until("the pod runs", Duration::from_mins(1), |world| world.running() == 1);
    let node = world.list("/api/v1/nodes")[0]["metadata"]["uid"].clone();
    for seed in 10..15 {
        let life = world.spawn(whole::operate(world.client(), world.clock(), Settings::default(), seed));
        world.run_for(Duration::from_secs(7));
        life.abort();
        world.run_for(Duration::from_secs(3));
    }
    world.run_for(Duration::from_mins(2));
    let nodes = world.list("/api/v1/nodes");
    assert_eq!((nodes.len(), &nodes[0]["metadata"]["uid"], world.running()), (1, &node, 1));
}
