//! Decisions about pods on tainted nodes.

use super::*;
use crate::testing::{World, at};

fn world(tolerations: &str) -> World {
    World::of(&[
        "
        apiVersion: v1
        kind: Node
        metadata: {name: n1}
        spec: {taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute, timeAdded: 1970-01-01T00:00:00Z}]}
        ",
        &format!(
            "
            apiVersion: v1
            kind: Pod
            metadata: {{name: p, namespace: x}}
            spec: {{nodeName: n1, containers: [], tolerations: {tolerations}}}
            "
        ),
    ])
}

#[test]
fn a_pod_leaves_when_its_toleration_ends() {
    let key = Key::new("x", "p");
    let tolerated = world(
        "[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]",
    );
    assert_eq!(decide(&tolerated.cache, &key, at(0)).again, Some(at(300)));
    let outcome = decide(&tolerated.cache, &key, at(300));
    assert_eq!(tolerated.say(&outcome), ["patch Pod x/p status", "delete Pod x/p"]);
}

#[test]
fn a_pod_without_toleration_leaves_at_once_and_one_that_tolerates_for_ever_stays() {
    let key = Key::new("x", "p");
    assert_eq!(decide(&world("[]").cache, &key, at(0)).actions.len(), 3);
    assert_eq!(decide(&world("[{operator: Exists}]").cache, &key, at(9999)), Outcome::default());
}
