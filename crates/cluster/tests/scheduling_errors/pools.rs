//! NodePools that take no part, and many of them.

use expect_test::expect;

use crate::{Situation, plain_pool, pod, pool, pool_with, small_pod, unready_pool};

#[test]
fn no_pool_at_all() {
    Situation::of(&[small_pod("")]).says(expect!["there is no NodePool; create one"]);
}

#[test]
fn a_pool_whose_node_class_does_not_exist() {
    let pool =
        unready_pool("default", "NodeClassReady", "NodeClassNotFound", "NodeClass not found on cluster");
    Situation::of(&[pool, small_pod("")]).says(expect!["NodePool default: it is not ready: NodeClass not found on cluster; kubectl describe nodepool default shows its conditions"]);
}

#[test]
fn a_pool_that_is_not_ready_beside_one_that_is_dedicated() {
    let objects = [
        unready_pool("default", "NodeClassReady", "NodeClassNotFound", "NodeClass not found on cluster"),
        pool("gpu", "taints: [{key: gpu, value: \"true\", effect: NoSchedule}]", ""),
        small_pod(""),
    ];
    Situation::of(&objects).says(expect!["NodePool default: it is not ready: NodeClass not found on cluster; kubectl describe nodepool default shows its conditions. NodePool gpu: the pod does not tolerate its taint gpu=true:NoSchedule"]);
}

#[test]
fn a_pool_whose_status_says_that_it_is_invalid() {
    let message = "invalid value: using label karpenter.sh/x is not allowed";
    let pool = unready_pool("default", "ValidationSucceeded", "NodePoolValidationFailed", message);
    Situation::of(&[pool, small_pod("")]).says(expect![
        "NodePool default: it is not valid: using label karpenter.sh/x is not allowed; correct it"
    ]);
}

#[test]
fn a_pool_that_is_invalid_in_a_file() {
    let invalid = pool_with("broken", "karpenter.sh/x", "In", "a");
    Situation::of(&[invalid, plain_pool(), pod("cpu: 1000", "")]).says(expect!["NodePool default: the pod asks for 1,000 CPU, and c-256x-amd64-linux, its largest suitable instance type, has 255.9; lower the pod's requests. NodePool broken: not valid"]);
}

#[test]
fn a_pool_that_is_being_deleted() {
    let leaving = pool("old", "", "")
        .replace("uid: old", "uid: old, deletionTimestamp: \"2026-01-01T00:00:00Z\", finalizers: [a]");
    Situation::of(&[leaving, small_pod("")])
        .says(expect!["NodePool old: it is being deleted; allow the pod on another NodePool"]);
}

#[test]
fn a_pool_whose_types_could_not_be_looked_up() {
    let objects = [plain_pool(), small_pod("")];
    expect!["NodePool default: its instance types are not known; the log of Karpenter says why"]
        .assert_eq(&Situation::of(&objects).sentences(&["default"]));
}

#[test]
fn a_pool_of_another_provider() {
    let other = plain_pool().replace("group: karpenter.kwok.sh", "group: karpenter.k8s.aws");
    let other = other.replace("KWOKNodeClass", "EC2NodeClass");
    Situation::of(&[other, small_pod("")]).says(expect!["NodePool default: its nodeClassRef is karpenter.k8s.aws/EC2NodeClass, which this Karpenter does not manage"]);
}

#[test]
fn only_static_pools() {
    Situation::of(&[pool("fixed", "", "replicas: 3"), small_pod("")]).says(expect!["NodePool fixed: it has a fixed number of nodes (spec.replicas), so none is added for pods; raise spec.replicas, or add a NodePool without it"]);
}

#[test]
fn static_pools_beside_others_are_not_told() {
    let objects = [pool("fixed", "", "replicas: 3"), plain_pool(), pod("cpu: 1000", "")];
    Situation::of(&objects).says(expect!["NodePool default: the pod asks for 1,000 CPU, and c-256x-amd64-linux, its largest suitable instance type, has 255.9; lower the pod's requests"]);
}

#[test]
fn a_pool_that_asks_for_what_no_type_has() {
    let objects = [pool_with("default", "kubernetes.io/arch", "In", "riscv64"), small_pod("")];
    Situation::of(&objects).says(expect!["NodePool default: it asks for kubernetes.io/arch=riscv64, and none of the 144 instance types has that; change its requirements"]);
}

#[test]
fn two_pools_with_different_reasons() {
    let objects = [
        pool("default", "", "limits: {cpu: 10}"),
        pool("gpu", "taints: [{key: gpu, value: \"true\", effect: NoSchedule}]", ""),
        pod("cpu: 20", ""),
    ];
    Situation::of(&objects).says(expect!["NodePool default: its limit of 10 CPU is below the 32 of the smallest node that fits the pod; raise spec.limits.cpu to at least 32. NodePool gpu: the pod does not tolerate its taint gpu=true:NoSchedule"]);
}

#[test]
fn eleven_pools() {
    let mut objects: Vec<String> = (1..=8)
        .map(|number| {
            pool(
                &format!("team-{number}"),
                &format!("taints: [{{key: team-{number}, effect: NoSchedule}}]"),
                "",
            )
        })
        .collect();
    objects.push(pool("default", "", "limits: {cpu: 100}"));
    objects.push(pool_with("arm", "kubernetes.io/arch", "In", "arm64"));
    objects.push(unready_pool(
        "new",
        "NodeClassReady",
        "NodeClassNotFound",
        "NodeClass not found on cluster",
    ));
    objects.push(pod("cpu: 101", "nodeSelector: {kubernetes.io/arch: amd64}"));
    Situation::of(&objects).says(expect!["NodePool default: its limit of 100 CPU is below the 128 of the smallest node that fits the pod; raise spec.limits.cpu to at least 128. 8 other NodePools: taints not tolerated. NodePool new: not ready. NodePool arm: other kubernetes.io/arch"]);
}

#[test]
fn eleven_pools_with_reasons_of_all_kinds() {
    let long = "a-pool-with-a-name-that-is-as-long-as-the-name-of-a-pool-can-be";
    let mut objects: Vec<String> =
        (1..=3).map(|number| pool(&format!("{long}{number}")[..63], "", "limits: {cpu: 10}")).collect();
    objects[0] = pool(&long[..62], "", "limits: {cpu: 10}");
    objects.push(pool("tainted-1", "taints: [{key: a, effect: NoSchedule}]", ""));
    objects.push(pool("tainted-2", "taints: [{key: b, effect: NoSchedule}]", ""));
    objects.push(pool_with("arm", "kubernetes.io/arch", "In", "arm64"));
    objects.push(pool_with("windows", "kubernetes.io/os", "In", "windows"));
    objects.push(pool_with("spot", "karpenter.sh/capacity-type", "In", "spot"));
    objects.push(pool_with("small", "karpenter.kwok.sh/instance-cpu", "Lt", "\"9\""));
    objects.push(pool_with("zonal", "topology.kubernetes.io/zone", "In", "test-zone-d"));
    objects.push(unready_pool(
        "new",
        "NodeClassReady",
        "NodeClassNotFound",
        "NodeClass not found on cluster",
    ));
    objects.push(pod(
        "cpu: 20",
        "nodeSelector: {kubernetes.io/arch: amd64, kubernetes.io/os: linux, karpenter.sh/capacity-type: on-demand, \
         topology.kubernetes.io/zone: test-zone-a}",
    ));
    Situation::of(&objects).says(expect!["NodePool a-pool-with-a-name-that-is-as-long-as-the-name-of-a-pool-can-be: its limit of 10 CPU is below the 32 of the smallest node that fits the pod; raise spec.limits.cpu to at least 32. 9 other NodePools: other reasons"]);
}

#[test]
fn pods_that_wait_for_something_else_are_not_told() {
    let objects = [
        plain_pool(),
        pod("cpu: 1000", "schedulingGates: [{name: wait}]"),
        pod("cpu: 1000", "schedulerName: volcano").replace("name: web,", "name: other,"),
    ];
    Situation::of(&objects).says(expect![[""]]);
}
