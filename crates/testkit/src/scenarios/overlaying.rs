//! Users know better what instance types cost and have.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pool};
use crate::stage::{CLAIMS, OVERLAYS, Stage, condition, is_true};

const TYPE: &str = "node.kubernetes.io/instance-type";

fn overlay(name: &str, types: &[&str], change: Value) -> Value {
    let mut spec = change;
    spec["requirements"] = json!([{"key": TYPE, "operator": "In", "values": types}]);
    json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec,
    })
}

fn get(stage: &dyn Stage, name: &str) -> Value {
    stage.get(&format!("{OVERLAYS}/{name}")).unwrap_or_default()
}

fn until_ready(stage: &mut dyn Stage, name: &str) {
    stage.until("the overlay is ready", Duration::from_mins(1), |stage| is_true(&get(stage, name), "Ready"));
}

pub(super) fn an_overlay_makes_another_type_the_cheapest(stage: &mut dyn Stage) {
    stage.set_gates("NodeOverlay=true");
    let cheap = overlay("cheap", &["m-8x-arm64-linux"], json!({"price": "0.001"}));
    stage.apply(&manifest(&[pool("default"), node_class(), cheap]));
    until_ready(stage, "cheap");
    stage.apply(&manifest(&[deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", TYPE), "m-8x-arm64-linux", "{}", stage.describe());
    let claim = &stage.list(CLAIMS)[0];
    assert_eq!(claim["metadata"]["annotations"]["karpenter.sh/price-overlay-applied"], "true", "{claim}");
}

pub(super) fn an_overlay_adds_a_resource_that_pods_ask_for(stage: &mut dyn Stage) {
    stage.set_gates("NodeOverlay=true");
    let fuse = overlay("fuse", &["c-4x-amd64-linux"], json!({"capacity": {"example.com/fuse": "2"}}));
    let mut wants = deployment("a", 2, "100m");
    let resources = &mut wants["spec"]["template"]["spec"]["containers"][0]["resources"];
    resources["requests"]["example.com/fuse"] = "1".into();
    resources["limits"]["example.com/fuse"] = "1".into();
    stage.apply(&manifest(&[pool("default"), node_class(), fuse]));
    until_ready(stage, "fuse");
    stage.apply(&manifest(&[wants]));
    stage.until_running("a", 2);
    assert_eq!(stage.label_of_node("a", TYPE), "c-4x-amd64-linux", "{}", stage.describe());
    assert_eq!(stage.nodes().len(), 1, "{}", stage.describe());
}

pub(super) fn an_overlay_in_conflict_says_so_and_the_other_works(stage: &mut dyn Stage) {
    stage.set_gates("NodeOverlay=true");
    let rejected = overlay("a", &["m-8x-arm64-linux", "c-8x-amd64-linux"], json!({"price": "0.0001"}));
    let works = overlay("b", &["c-8x-amd64-linux"], json!({"price": "0.001"}));
    stage.apply(&manifest(&[pool("default"), node_class(), rejected, works]));
    until_ready(stage, "b");
    stage.until("the other says why not", Duration::from_mins(1), |stage| {
        let said = condition(&get(stage, "a"), "ValidationSucceeded").clone();
        said["status"] == "False"
            && said["reason"] == "Conflict"
            && said["message"] == "conflict with another overlay"
    });
    stage.apply(&manifest(&[deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", TYPE), "c-8x-amd64-linux", "{}", stage.describe());
}
