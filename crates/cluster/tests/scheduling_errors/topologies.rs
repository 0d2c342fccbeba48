//! Pods that must be near, away from or spread among others.

use expect_test::expect;

use crate::{Situation, node, plain_pool, pod_with, pool_with, running, small_pod};

const ZONE: &str = "topology.kubernetes.io/zone";

fn pod_affinity(kind: &str, app: &str, key: &str) -> String {
    format!(
        "affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {key}, labelSelector: \
         {{matchLabels: {{app: {app}}}}}}}]}}}}"
    )
}

fn spread(key: &str, more: &str) -> String {
    format!(
        "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: DoNotSchedule, labelSelector: \
         {{matchLabels: {{app: web}}}}{more}}}]"
    )
}

#[test]
fn affinity_to_nobody() {
    Situation::of(&[plain_pool(), small_pod(&pod_affinity("podAffinity", "db", ZONE))]).says(expect!["NodePool default: the pod must be near pods with app=db in namespace default (podAffinity over topology.kubernetes.io/zone), and there are none; start such pods, or correct the labelSelector"]);
}

#[test]
fn affinity_to_pods_that_are_pending_themselves() {
    let db = pod_with("db", "app: db", "cpu: 999", "");
    let objects = [plain_pool(), db, small_pod(&pod_affinity("podAffinity", "db", ZONE))];
    Situation::of(&objects).says(expect![[r#"
        NodePool default: the pod asks for 999 CPU, and c-256x-amd64-linux, its largest suitable instance type, has 255.9; lower the pod's requests
        NodePool default: the pod must be near pods with app=db in namespace default (podAffinity over topology.kubernetes.io/zone), which have no node themselves; see why those are pending"#]]);
}

#[test]
fn affinity_to_pods_in_a_zone_that_the_pool_lacks() {
    let objects = [
        pool_with("default", ZONE, "In", "test-zone-a, test-zone-b"),
        node("old", "test-zone-c", "500m"),
        running("db", "app: db", "old", ""),
        small_pod(&pod_affinity("podAffinity", "db", ZONE)),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod must be near pods with app=db in namespace default (topology.kubernetes.io/zone: test-zone-c), and the NodePool allows only test-zone-a, test-zone-b; allow test-zone-c in its requirements"]);
}

#[test]
fn affinity_to_a_node_that_is_full() {
    let objects = [
        plain_pool(),
        node("old", "test-zone-a", "500m"),
        running("db", "app: db", "old", ""),
        small_pod(&pod_affinity("podAffinity", "db", "kubernetes.io/hostname")),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod must be on a node that has pods with app=db in namespace default (podAffinity), and those nodes do not take it; make room there, or use a wider topologyKey"]);
}

#[test]
fn an_unknown_topology_key() {
    let objects = [plain_pool(), small_pod(&pod_affinity("podAffinity", "web", "example.com/rack"))];
    Situation::of(&objects).says(expect!["NodePool default: topologyKey example.com/rack of the pod's podAffinity is a label that no node and no NodePool has; correct the topologyKey, or add the label to the NodePool"]);
}

#[test]
fn a_spread_over_an_unknown_topology_key() {
    Situation::of(&[plain_pool(), small_pod(&spread("example.com/rack", ""))]).says(expect!["NodePool default: topologyKey example.com/rack of the pod's topologySpreadConstraints is a label that no node and no NodePool has; correct the topologyKey, or add the label to the NodePool"]);
}

#[test]
fn anti_affinity_where_every_zone_is_taken() {
    let objects = [
        pool_with("default", ZONE, "In", "test-zone-a, test-zone-b"),
        node("a", "test-zone-a", "500m"),
        node("b", "test-zone-b", "500m"),
        running("web-a", "app: web", "a", ""),
        running("web-b", "app: web", "b", ""),
        small_pod(&pod_affinity("podAntiAffinity", "web", ZONE)),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod must not share a topology.kubernetes.io/zone with pods with app=web (podAntiAffinity), and all it could use have some (test-zone-a, test-zone-b); allow more values of topology.kubernetes.io/zone"]);
}

#[test]
fn pods_that_keep_others_away_from_every_zone() {
    let away = pod_affinity("podAntiAffinity", "web", ZONE);
    let objects = [
        pool_with("default", ZONE, "In", "test-zone-a"),
        node("a", "test-zone-a", "500m"),
        running("hermit", "app: hermit", "a", &away),
        small_pod(""),
    ];
    Situation::of(&objects).says(expect!["NodePool default: pods whose podAntiAffinity keeps the pod away are in every topology.kubernetes.io/zone it could use (test-zone-a); allow more values of topology.kubernetes.io/zone"]);
}

#[test]
fn a_spread_that_running_pods_block() {
    let objects = [
        pool_with("default", ZONE, "In", "test-zone-a"),
        node("a", "test-zone-a", "500m"),
        node("b", "test-zone-b", "500m"),
        running("web-a", "app: web", "a", ""),
        small_pod(&spread(ZONE, "")),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod's spread over topology.kubernetes.io/zone (maxSkew 1) needs it in test-zone-b (pods: 0), and the NodePool has only test-zone-a: 1; allow test-zone-b in its requirements"]);
}

#[test]
fn a_spread_over_a_zone_that_is_not_offered() {
    let objects = [
        pool_with("default", ZONE, "In", "test-zone-a, moon-1"),
        pod_with("web-1", "app: web", "cpu: 1", &spread(ZONE, "")),
        pod_with("web-2", "app: web", "cpu: 1", &spread(ZONE, "")),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod's topology rules leave topology.kubernetes.io/zone=moon-1, and none of its 144 instance types matches; they have test-zone-a, test-zone-b, test-zone-c and 1 more"]);
}

#[test]
fn a_spread_with_more_domains_than_there_are() {
    let min_domains = spread(ZONE, ", minDomains: 5");
    let pods: Vec<String> =
        (0..5).map(|number| pod_with(&format!("web-{number}"), "app: web", "cpu: 1", &min_domains)).collect();
    Situation::of(&[plain_pool(), pods.concat()]).says(expect!["NodePool default: the pod's spread over topology.kubernetes.io/zone has minDomains 5, there are 4, and maxSkew 1 is reached (test-zone-a: 1, test-zone-b: 1, test-zone-c: 1 and 1 more); lower minDomains, or allow more values"]);
}
