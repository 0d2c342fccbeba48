//! Volumes that are missing, elsewhere or too many.

use expect_test::expect;

use crate::{Situation, plain_pool, pool_with, small_pod};

const ZONE: &str = "topology.kubernetes.io/zone";

/// A claim that has a volume in a zone.
fn bound(name: &str, zone: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: pv-{name}}}\nspec: {{csi: {{driver: \
         example.com/disk, volumeHandle: h}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: \
         [{{key: {ZONE}, operator: In, values: [{zone}]}}]}}]}}}}}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\n\
         metadata: {{name: {name}, namespace: default, annotations: {{pv.kubernetes.io/bind-completed: \"yes\"}}}}\n\
         spec: {{volumeName: pv-{name}}}\n"
    )
}

fn with_volumes(names: &[&str], spec: &str) -> String {
    let volumes: Vec<String> = names
        .iter()
        .map(|name| format!("{{name: {name}, persistentVolumeClaim: {{claimName: {name}}}}}"))
        .collect();
    small_pod(&format!("{spec}volumes: [{}]", volumes.join(", ")))
}

#[test]
fn a_claim_that_does_not_exist() {
    Situation::of(&[plain_pool(), with_volumes(&["data"], "")])
        .says(expect![[r#"PersistentVolumeClaim "data" not found; create it"#]]);
}

#[test]
fn a_volume_in_a_zone_that_the_pool_excludes() {
    let objects = [
        pool_with("default", ZONE, "In", "test-zone-a"),
        bound("data", "test-zone-b"),
        with_volumes(&["data"], ""),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod's volumes are in topology.kubernetes.io/zone=test-zone-b, and the NodePool allows only test-zone-a; allow topology.kubernetes.io/zone=test-zone-b in its requirements"]);
}

#[test]
fn a_volume_in_another_zone_than_the_pod_asks_for() {
    let selector = "nodeSelector: {topology.kubernetes.io/zone: test-zone-a}, ";
    let objects = [plain_pool(), bound("data", "test-zone-b"), with_volumes(&["data"], selector)];
    Situation::of(&objects).says(expect!["NodePool default: the pod's volumes are in topology.kubernetes.io/zone=test-zone-b, and the pod asks for topology.kubernetes.io/zone=test-zone-a; change where the pod may run, or its volumes"]);
}

#[test]
fn a_volume_in_a_zone_without_offerings() {
    Situation::of(&[plain_pool(), bound("data", "moon-1"), with_volumes(&["data"], "")]).says(expect!["NodePool default: the pod's volumes are in topology.kubernetes.io/zone=moon-1, and none of its 144 instance types matches; they have test-zone-a, test-zone-b, test-zone-c and 1 more"]);
}

#[test]
fn two_volumes_in_different_zones() {
    let objects =
        [plain_pool(), bound("a", "test-zone-a"), bound("b", "test-zone-b"), with_volumes(&["a", "b"], "")];
    Situation::of(&objects).says(expect!["NodePool default: the pod's volumes have no topology.kubernetes.io/zone in common; change them so that they have one in common"]);
}

#[test]
fn more_volumes_than_a_node_attaches() {
    let objects =
        [plain_pool(), bound("a", "test-zone-a"), bound("b", "test-zone-a"), with_volumes(&["a", "b"], "")];
    Situation::of(&objects)
        .types(|it| it.volume_limits = [("example.com/disk".to_owned(), 1)].into_iter().collect())
        .says(expect!["NodePool default: the pod has 2 volumes of example.com/disk, and its instance types attach at most 1; use fewer volumes"]);
}
