//! What pods ask for, and what instance types and limits have.

use expect_test::expect;

use crate::{Situation, daemon_set, plain_pool, pod, pod_with, pool, pool_with, small_pod};

#[test]
fn more_cpu_than_any_type_has() {
    Situation::of(&[plain_pool(), pod("cpu: 1000", "")]).says(expect!["NodePool default: the pod asks for 1,000 CPU, and c-256x-amd64-linux, its largest suitable instance type, has 255.9; lower the pod's requests"]);
}

#[test]
fn a_million_cores() {
    Situation::of(&[plain_pool(), pod("cpu: 500M", "")]).says(expect!["NodePool default: the pod asks for 500,000,000 CPU, and c-256x-amd64-linux, its largest suitable instance type, has 255.9; was M written instead of m?"]);
}

#[test]
fn more_memory_than_any_type_has() {
    Situation::of(&[plain_pool(), pod("memory: 8Ti", "")]).says(expect!["NodePool default: the pod asks for 8 Ti memory, and m-256x-amd64-linux, its largest suitable instance type, has 2 Ti; lower the pod's requests"]);
}

#[test]
fn more_ephemeral_storage_than_any_type_has() {
    Situation::of(&[plain_pool(), pod("ephemeral-storage: 100Gi", "")]).says(expect!["NodePool default: the pod asks for 100 Gi ephemeral storage, and c-1x-amd64-linux, its largest suitable instance type, has 20 Gi; lower the pod's requests"]);
}

#[test]
fn cpu_and_memory_that_no_type_has_together() {
    let types = "c-32x-amd64-linux, m-16x-amd64-linux";
    let pool = pool_with("default", "node.kubernetes.io/instance-type", "In", types);
    Situation::of(&[pool, pod("cpu: 30, memory: 100Gi", "")]).says(expect!["NodePool default: no instance type has all that the pod asks for: c-32x-amd64-linux comes nearest and lacks 36.01 Gi memory; allow s-32x-amd64-linux, which its node.kubernetes.io/instance-type excludes"]);
}

#[test]
fn a_gpu() {
    Situation::of(&[plain_pool(), pod("cpu: 1, nvidia.com/gpu: 1", "")]).says(expect!["NodePool default: the pod asks for 1 nvidia.com/gpu, and none of its suitable instance types has any; offer instance types that have nvidia.com/gpu"]);
}

#[test]
fn a_pool_whose_requirements_exclude_what_would_fit() {
    let pool = pool_with("default", "karpenter.kwok.sh/instance-cpu", "Lt", "\"9\"");
    Situation::of(&[pool, pod("cpu: 12", "")]).says(expect!["NodePool default: the pod asks for 12 CPU, and c-8x-amd64-linux, its largest suitable instance type, has 7.9; allow c-16x-amd64-linux, which its karpenter.kwok.sh/instance-cpu excludes"]);
}

#[test]
fn daemon_sets_leave_too_little() {
    let pool = pool_with("default", "karpenter.kwok.sh/instance-cpu", "In", "\"2\"");
    Situation::of(&[pool, pod("cpu: 1500m", ""), daemon_set("cpu: 500m", "")]).says(expect!["NodePool default: the pod asks for 1.5 CPU, and c-2x-amd64-linux, its largest suitable instance type, has 1.4 after 500m for DaemonSets; allow c-4x-amd64-linux, which its karpenter.kwok.sh/instance-cpu excludes"]);
}

#[test]
fn no_pod_more_on_a_node() {
    let one_pod = |it: &mut cluster::instance_types::InstanceType| {
        it.capacity.set("pods", "1".parse().expect("a quantity"));
    };
    Situation::of(&[plain_pool(), small_pod(""), daemon_set("cpu: 1m", "")]).types(one_pod).says(expect!["NodePool default: c-1x-amd64-linux, its largest suitable instance type, has room for 1 pod, and DaemonSets need it all; offer larger instance types"]);
}

#[test]
fn a_host_port_that_a_daemon_set_uses() {
    let spec = "";
    let port = ", ports: [{containerPort: 9100, hostPort: 9100}]";
    let pod =
        pod("cpu: 1", spec).replace("image: a,", "image: a, ports: [{containerPort: 9100, hostPort: 9100}],");
    Situation::of(&[plain_pool(), pod, daemon_set("cpu: 1m", port)]).says(expect!["NodePool default: the pod needs host port 9100/TCP, which a DaemonSet uses on all its nodes; use another hostPort"]);
}

#[test]
fn a_limit_of_cpu() {
    let objects = [pool("default", "", "limits: {cpu: 100}"), pod("cpu: 101", "")];
    Situation::of(&objects).says(expect!["NodePool default: its limit of 100 CPU is below the 128 of the smallest node that fits the pod; raise spec.limits.cpu to at least 128"]);
}

#[test]
fn a_limit_that_other_new_nodes_use_up() {
    let away = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: \
                kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}";
    let pods = ["a", "b", "c"].map(|name| pod_with(name, "app: web", "cpu: 3", away)).concat();
    Situation::of(&[pool("default", "", "limits: {cpu: 10}"), pods]).says(expect!["NodePool default: its limit of 10 CPU leaves 2, and the smallest node that fits the pod has 4; raise spec.limits.cpu to at least 12"]);
}

#[test]
fn a_limit_of_memory() {
    let objects = [pool("default", "", "limits: {memory: 1Gi}"), pod("memory: 1500Mi", "")];
    Situation::of(&objects).says(expect!["NodePool default: its limit of 1 Gi memory is below the 2 Gi of the smallest node that fits the pod; raise spec.limits.memory to at least 2Gi"]);
}

#[test]
fn a_limit_of_nodes() {
    let objects = [pool("default", "", "limits: {nodes: 0}"), small_pod("")];
    Situation::of(&objects).says(expect![
        "NodePool default: its limit of 0 nodes is reached; raise spec.limits.nodes to at least 1"
    ]);
}

#[test]
fn a_limit_of_nodes_and_pods_that_avoid_each_other() {
    let away = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: \
                kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}";
    let pods = ["a", "b", "c"].map(|name| pod_with(name, "app: web", "cpu: 1", away)).concat();
    Situation::of(&[pool("default", "", "limits: {nodes: 2}"), pods]).says(expect![
        "NodePool default: its limit of 2 nodes is reached; raise spec.limits.nodes to at least 3"
    ]);
}

#[test]
fn a_pod_that_is_too_large_under_a_limit() {
    let objects = [pool("default", "", "limits: {cpu: 100}"), pod("cpu: 300", "")];
    Situation::of(&objects).says(expect!["NodePool default: the pod asks for 300 CPU, and c-256x-amd64-linux, its largest suitable instance type, has 255.9; lower the pod's requests"]);
}

#[test]
fn min_values_that_no_catalogue_has() {
    let template =
        "requirements: [{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 5000}]"
            .to_owned();
    Situation::of(&[pool("default", &template, ""), small_pod("")]).says(expect!["NodePool default: its minValues asks for 5000 values of node.kubernetes.io/instance-type, and 144 can be had; lower minValues to at most 144, or allow more values"]);
}

#[test]
fn min_values_that_are_not_left_for_the_pod() {
    let template = "requirements: [{key: karpenter.kwok.sh/instance-family, operator: Exists, minValues: 2}]";
    let pod = small_pod("nodeSelector: {karpenter.kwok.sh/instance-family: c}");
    Situation::of(&[pool("default", template, ""), pod]).says(expect!["NodePool default: its minValues asks for 2 values of karpenter.kwok.sh/instance-family, and 1 is left for the pod; lower minValues to at most 1, or allow more values"]);
}

fn without_spot(it: &mut cluster::instance_types::InstanceType) {
    for offering in &mut it.offerings {
        let spot = |value: &String| value == "spot";
        offering.available &= !offering.requirements.iter().any(|it| it.values.iter().any(spot));
    }
}

#[test]
fn offerings_that_are_not_available() {
    let pod = small_pod("nodeSelector: {karpenter.sh/capacity-type: spot}");
    Situation::of(&[plain_pool(), pod]).types(without_spot).says(expect!["NodePool default: the pod asks for karpenter.sh/capacity-type=spot, and all such offerings of its suitable instance types are unavailable; Karpenter tries again; allow more instance types, zones or capacity types"]);
}

#[test]
fn a_pool_whose_offerings_are_not_available() {
    let pool = pool_with("default", "karpenter.sh/capacity-type", "In", "spot");
    Situation::of(&[pool, small_pod("")]).types(without_spot).says(expect![
        "NodePool default: all offerings of its instance types with karpenter.sh/capacity-type=spot are unavailable at present; Karpenter tries again; allow more instance types, zones or capacity types"
    ]);
}

#[test]
fn an_offering_that_does_not_exist() {
    let only_on_demand_in_a = |it: &mut cluster::instance_types::InstanceType| {
        let has = |offering: &cluster::instance_types::Offering, value: &str| {
            offering.requirements.iter().any(|it| it.values.iter().any(|it| it == value))
        };
        it.offerings.retain(|offering| !(has(offering, "spot") && has(offering, "test-zone-a")));
    };
    let pod = small_pod(
        "nodeSelector: {karpenter.sh/capacity-type: spot, topology.kubernetes.io/zone: test-zone-a}",
    );
    Situation::of(&[plain_pool(), pod]).types(only_on_demand_in_a).says(expect!["NodePool default: the pod asks for topology.kubernetes.io/zone=test-zone-a and karpenter.sh/capacity-type=spot, and none of its suitable instance types is offered so; allow more instance types, zones or capacity types"]);
}

#[test]
fn reservations_that_are_full() {
    let reserved = |it: &mut cluster::instance_types::InstanceType| {
        it.offerings.truncate(1);
        for requirement in &mut it.offerings[0].requirements {
            if requirement.key == "karpenter.sh/capacity-type" {
                requirement.values = vec!["reserved".to_owned()];
            }
        }
        let mut id = it.offerings[0].requirements[0].clone();
        id.key = "karpenter.k8s.aws/capacity-reservation-id".to_owned();
        id.values = vec!["cr-1".to_owned()];
        it.offerings[0].requirements.push(id);
        let capacity = it.requirements.iter_mut().filter(|it| it.key == "karpenter.sh/capacity-type");
        capacity.for_each(|it| it.values = vec!["reserved".to_owned()]);
    };
    Situation::of(&[plain_pool(), small_pod("")]).on_aws().types(reserved).says(expect!["NodePool default: all its capacity reservations that suit the pod are full, and it has no other capacity for it; allow karpenter.sh/capacity-type on-demand or spot"]);
}

#[test]
fn devices_that_are_allocated_dynamically() {
    let pod = small_pod("resourceClaims: [{name: gpu, resourceClaimName: gpu}]");
    Situation::of(&[plain_pool(), pod]).says(expect!["the pod uses Dynamic Resource Allocation (spec.resourceClaims), which Karpenter does not support; request the devices as extended resources instead"]);
}
