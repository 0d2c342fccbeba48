//! Pages as scrapers see them.

use std::time::Duration;

use api::names::metrics::runtime;
use expect_test::{Expect, expect};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
fn check(registry: &Registry, expected: Expect) {
    expected.assert_eq(&registry.page());
}

#[test]
fn what_exists_from_the_beginning() {
    let registry = Registry::default();
    registry.begin(Build { version: "1.15.0", commit: "abcdef0", compiler: "rust1.95" });
    let page = registry.page().replace("arm64", "amd64");
    expect![[r##"
        # HELP karpenter_build_info Which version is running; always 1.
        # TYPE karpenter_build_info gauge
        karpenter_build_info{commit="abcdef0",goarch="amd64",goversion="rust1.95",version="1.15.0"} 1
        # HELP karpenter_voluntary_disruption_consolidation_timeouts_total Consolidations that took too long to compute.
        # TYPE karpenter_voluntary_disruption_consolidation_timeouts_total counter
        karpenter_voluntary_disruption_consolidation_timeouts_total{consolidation_type="multi"} 0
        karpenter_voluntary_disruption_consolidation_timeouts_total{consolidation_type="single"} 0
    "##]].assert_eq(&page);
}

#[test]
fn labels_and_series_are_in_order_and_escaped() {
    let registry = Registry::default();
    for (pool, reason) in [("b", "empty"), ("a\n\"\\", "drifted"), ("b", "drifted"), ("b", "empty")] {
        registry.add(&names::NODECLAIMS_CREATED, &[reason, pool, "false"], 1.0);
    }
    registry.set(&names::CLUSTER_STATE_SYNCED, &[], 1.0);
    check(
        &registry,
        expect![[r##"
        # HELP karpenter_cluster_state_synced Whether the cluster state is up to date: 1 or 0.
        # TYPE karpenter_cluster_state_synced gauge
        karpenter_cluster_state_synced 1
        # HELP karpenter_nodeclaims_created_total NodeClaims created.
        # TYPE karpenter_nodeclaims_created_total counter
        karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="a\n\"\\",reason="drifted"} 1
        karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="b",reason="drifted"} 1
        karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="b",reason="empty"} 2
    "##]],
    );
}

#[test]
fn values_of_labels_may_be_empty_and_have_any_character() {
    let registry = Registry::default();
    registry.add(&names::NODECLAIMS_CREATED, &["", "a\0b", ""], 1.0);
    registry.add(&names::NODECLAIMS_CREATED, &["", "", "ab"], 1.0);
    check(
        &registry,
        expect![[r##"
        # HELP karpenter_nodeclaims_created_total NodeClaims created.
        # TYPE karpenter_nodeclaims_created_total counter
        karpenter_nodeclaims_created_total{min_values_relaxed="",nodepool="ab",reason=""} 1
        karpenter_nodeclaims_created_total{min_values_relaxed="ab",nodepool="",reason=""} 1
    "##]],
    );
}

#[tokio::test(start_paused = true)]
async fn distributions_show_their_buckets_and_quantiles() {
    let registry = Registry::default();
    for value in [0.05, 0.33, 0.34, 100.0] {
        registry.observe(&names::CONSOLIDATION_SCORE, &["approved", "a", "Balanced"], value);
    }
    for value in [3.0, 1.0, 2.0] {
        registry.observe(&names::PODS_STARTUP_DURATION, &[], value);
    }
    check(
        &registry,
        expect![[r##"
        # HELP karpenter_consolidation_score How savings compare with disruption, of moves under the policy Balanced.
        # TYPE karpenter_consolidation_score histogram
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="0.1"} 1
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="0.25"} 1
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="0.33"} 2
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="0.5"} 3
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="1"} 3
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="2"} 3
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="5"} 3
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="10"} 3
        karpenter_consolidation_score_bucket{decision="approved",nodepool="a",policy="Balanced",le="+Inf"} 4
        karpenter_consolidation_score_sum{decision="approved",nodepool="a",policy="Balanced"} 100.72
        karpenter_consolidation_score_count{decision="approved",nodepool="a",policy="Balanced"} 4
        # HELP karpenter_pods_startup_duration_seconds Seconds from the creation of a pod until it is ready.
        # TYPE karpenter_pods_startup_duration_seconds summary
        karpenter_pods_startup_duration_seconds{quantile="0"} 1
        karpenter_pods_startup_duration_seconds{quantile="0.5"} 2
        karpenter_pods_startup_duration_seconds{quantile="0.9"} 3
        karpenter_pods_startup_duration_seconds{quantile="0.99"} 3
        karpenter_pods_startup_duration_seconds{quantile="1"} 3
        karpenter_pods_startup_duration_seconds_sum 6
        karpenter_pods_startup_duration_seconds_count 3
    "##]],
    );
    tokio::time::advance(Duration::from_mins(11)).await;
    assert!(registry.page().contains(r#"karpenter_pods_startup_duration_seconds{quantile="0.5"} NaN"#));
}

#[test]
fn an_objects_gauges_replace_those_that_it_had() {
    let registry = Registry::default();
    let series = |phase: &str, all: &[(&str, f64)]| -> Vec<(Vec<String>, f64)> {
        let labels = |resource: &str| [resource, phase].map(str::to_owned).to_vec();
        all.iter().map(|(resource, value)| (labels(resource), *value)).collect()
    };
    let replace = |owner, new| registry.replace(&names::NODEPOOLS_LIMIT, owner, new);
    replace("a", series("a", &[("cpu", 1.0), ("memory", 2.0)]));
    replace("b", series("b", &[("cpu", 3.0)]));
    replace("a", series("a", &[("cpu", 4.0), ("pods", 5.0)]));
    check(
        &registry,
        expect![[r##"
        # HELP karpenter_nodepools_limit Limits of a NodePool.
        # TYPE karpenter_nodepools_limit gauge
        karpenter_nodepools_limit{nodepool="a",resource_type="cpu"} 4
        karpenter_nodepools_limit{nodepool="a",resource_type="pods"} 5
        karpenter_nodepools_limit{nodepool="b",resource_type="cpu"} 3
    "##]],
    );
    replace("a", Vec::new());
    assert_eq!(registry.value(&names::NODEPOOLS_LIMIT, &["cpu", "a"]), None);
    assert_eq!(registry.value(&names::NODEPOOLS_LIMIT, &["cpu", "b"]), Some(3.0));
    registry.remove(&names::NODEPOOLS_LIMIT, &["cpu", "b"]);
    assert_eq!(registry.page(), "");
}

#[test]
fn series_are_removed_by_some_of_their_labels() {
    let registry = Registry::default();
    for (name, dynamic) in [("a", "true"), ("a", "false"), ("b", "true")] {
        registry.set(&names::PODS_UNBOUND_TIME, &[name, "default", dynamic], 1.0);
    }
    registry.remove_where(&names::PODS_UNBOUND_TIME, &[("name", "a"), ("namespace", "default")]);
    assert_eq!(registry.page().lines().count(), 3);
    registry.remove_where(&names::PODS_UNBOUND_TIME, &[]);
    assert_eq!(registry.page(), "");
}

#[test]
fn metrics_of_nodes_have_the_providers_labels() {
    let registry = Registry::for_provider(Provider::Kwok);
    let values: Vec<&str> = registry.well_known().iter().map(String::as_str).collect();
    let labels = [&["n", "p", "true"], &*values].concat();
    registry.set(&names::NODES_CURRENT_LIFETIME, &labels, 1.5);
    check(
        &registry,
        expect![[r##"
        # HELP karpenter_nodes_current_lifetime_seconds Seconds that a node has lived.
        # TYPE karpenter_nodes_current_lifetime_seconds gauge
        karpenter_nodes_current_lifetime_seconds{arch="arch",capacity_type="capacity_type",instance_cpu="instance_cpu",instance_family="instance_family",instance_memory="instance_memory",instance_size="instance_size",instance_type="instance_type",managed="true",node_name="n",nodepool="nodepool",os="os",phase="p",region="region",windows_build="windows_build",zone="zone"} 1.5
    "##]],
    );
}

#[test]
fn metrics_of_conditions_exist_once_per_kind_and_once_for_all() {
    let registry = Registry::default();
    let labels = status::object_labels("nodeclaim", &["karpenter.kwok.sh/kwoknodeclass"]);
    let family = registry.family_of_kind(&status::TRANSITIONS, "nodeclaim", &labels);
    family.add(&["Ready", "True", "Ready", "class", "pool"], 1.0);
    registry.family_of_kind(&status::TRANSITIONS, "nodepool", &[]).add(&["Ready", "True", "Ready"], 1.0);
    let shared = registry.family_of_all_kinds(&status::TRANSITIONS);
    shared.add(&["Ready", "True", "Ready", "karpenter.sh", "NodeClaim"], 1.0);
    check(
        &registry,
        expect![[r##"
        # HELP operator_nodeclaim_status_condition_transitions_total Changes of a condition's status.
        # TYPE operator_nodeclaim_status_condition_transitions_total counter
        operator_nodeclaim_status_condition_transitions_total{karpenter_kwok_sh_kwoknodeclass="class",karpenter_sh_nodepool="pool",reason="Ready",status="True",type="Ready"} 1
        # HELP operator_nodepool_status_condition_transitions_total Changes of a condition's status.
        # TYPE operator_nodepool_status_condition_transitions_total counter
        operator_nodepool_status_condition_transitions_total{reason="Ready",status="True",type="Ready"} 1
        # HELP operator_status_condition_transitions_total Changes of a condition's status.
        # TYPE operator_status_condition_transitions_total counter
        operator_status_condition_transitions_total{group="karpenter.sh",kind="NodeClaim",reason="Ready",status="True",type="Ready"} 1
    "##]],
    );
}

#[test]
fn collectors_run_before_the_page_is_shown() {
    let registry = Registry::default();
    registry.collect(|registry| registry.add(&runtime::LEADER_SLOWPATH, &["lease"], 1.0));
    registry.page();
    registry.page();
    assert_eq!(registry.value(&runtime::LEADER_SLOWPATH, &["lease"]), Some(2.0));
}
