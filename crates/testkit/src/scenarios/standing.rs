//! Pools of a fixed size.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pool, with};
use crate::stage::{CLAIMS, NODES, POOLS, Stage};

fn fixed(replicas: usize, change: &Value) -> Value {
    with(with(pool("fixed"), &json!({"spec": {"replicas": replicas}})), change)
}

fn counted(stage: &dyn Stage) -> Value {
    stage.get(&format!("{POOLS}/fixed")).unwrap_or_default()["status"]["nodes"].clone()
}

pub(super) fn a_static_pool_is_scaled_up_and_down(stage: &mut dyn Stage) {
    stage.set_gates("StaticCapacity=true");
    stage.apply(&manifest(&[fixed(0, &json!({})), node_class()]));
    stage.pass(Duration::from_secs(5));
    assert!(stage.nodes().is_empty(), "{}", stage.describe());
    stage.scale_pool("fixed", 3);
    stage.until_nodes(3);
    stage.until("three nodes are counted", Duration::from_mins(1), |stage| counted(stage) == json!(3));
    // Pods use the nodes, and get no others.
    stage.apply(&manifest(&[deployment("a", 1, "100m")]));
    stage.until_running("a", 1);
    stage.always("nodes stay, used or not", Duration::from_secs(40), |stage| stage.nodes().len() == 3);
    let used = stage.nodes_of("a");
    stage.scale_pool("fixed", 1);
    stage.until_nodes(1);
    stage.until("one node is counted", Duration::from_mins(1), |stage| counted(stage) == json!(1));
    assert_eq!((stage.running("a"), stage.nodes_of("a")), (1, used), "the node in use stays");
    stage.scale_pool("fixed", 0);
    stage.until_nodes(0);
}

pub(super) fn a_static_pool_replaces_what_it_loses_and_keeps_its_limit(stage: &mut dyn Stage) {
    stage.set_gates("StaticCapacity=true");
    stage.apply(&manifest(&[fixed(3, &json!({"spec": {"limits": {"nodes": "2"}}})), node_class()]));
    stage.until_nodes(2);
    let first = stage.nodes()[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    stage.delete(&format!("{NODES}/{first}"));
    let is_replaced = |stage: &dyn Stage| {
        let names: Vec<Value> = stage.nodes().iter().map(|node| node["metadata"]["name"].clone()).collect();
        names.len() == 2 && !names.contains(&json!(first))
    };
    let mut passed = Duration::ZERO;
    while !is_replaced(&*stage) {
        assert!(stage.list(CLAIMS).len() <= 2, "the limit is two: {}", stage.describe());
        assert!(passed < Duration::from_mins(3), "not replaced: {}", stage.describe());
        stage.pass(Duration::from_millis(500));
        passed += Duration::from_millis(500);
    }
}
