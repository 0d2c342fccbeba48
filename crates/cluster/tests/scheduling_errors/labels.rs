//! Labels that pods and NodePools ask for.

use expect_test::expect;

use crate::{Situation, node_affinity, plain_pool, pool, pool_with, small_pod};

const ARCH: &str = "kubernetes.io/arch";
const ZONE: &str = "topology.kubernetes.io/zone";

#[test]
fn an_architecture_that_the_pool_excludes() {
    let objects =
        [pool_with("default", ARCH, "In", "amd64"), small_pod("nodeSelector: {kubernetes.io/arch: arm64}")];
    Situation::of(&objects).says(expect!["NodePool default: the pod asks for kubernetes.io/arch=arm64, and the NodePool allows only amd64; add arm64 to its requirements, or change the pod"]);
}

#[test]
fn a_zone_that_the_pool_excludes() {
    let selector = "nodeSelector: {topology.kubernetes.io/zone: test-zone-c}";
    let objects = [pool_with("default", ZONE, "In", "test-zone-a, test-zone-b"), small_pod(selector)];
    Situation::of(&objects).says(expect!["NodePool default: the pod asks for topology.kubernetes.io/zone=test-zone-c, and the NodePool allows only test-zone-a, test-zone-b; add test-zone-c to its requirements, or change the pod"]);
}

#[test]
fn a_zone_that_does_not_exist() {
    let selector = "nodeSelector: {topology.kubernetes.io/zone: moon-1}";
    Situation::of(&[plain_pool(), small_pod(selector)]).says(expect!["NodePool default: the pod asks for topology.kubernetes.io/zone=moon-1, and none of its 144 instance types matches; they have test-zone-a, test-zone-b, test-zone-c and 1 more"]);
}

#[test]
fn a_capacity_type_that_the_pool_excludes() {
    let selector = "nodeSelector: {karpenter.sh/capacity-type: on-demand}";
    let objects = [pool_with("default", "karpenter.sh/capacity-type", "In", "spot"), small_pod(selector)];
    Situation::of(&objects).says(expect!["NodePool default: the pod asks for karpenter.sh/capacity-type=on-demand, and the NodePool allows only spot; add on-demand to its requirements, or change the pod"]);
}

#[test]
fn an_instance_type_that_does_not_exist() {
    let selector = "nodeSelector: {node.kubernetes.io/instance-type: m5.large}";
    Situation::of(&[plain_pool(), small_pod(selector)]).says(expect!["NodePool default: the pod asks for node.kubernetes.io/instance-type=m5.large, and none of its 144 instance types matches; they have c-128x-amd64-linux, c-128x-amd64-windows, c-128x-arm64-linux and 141 more"]);
}

#[test]
fn a_label_with_a_letter_too_few() {
    let selector = "nodeSelector: {topology.kubernetes.io/zon: test-zone-a}";
    Situation::of(&[plain_pool(), small_pod(selector)]).says(expect!["NodePool default: the pod asks for topology.kubernetes.io/zon=test-zone-a, and the NodePool does not define this label; did you mean topology.kubernetes.io/zone?"]);
}

#[test]
fn a_label_that_nobody_defines() {
    Situation::of(&[plain_pool(), small_pod("nodeSelector: {example.com/team: payments}")]).says(expect!["NodePool default: the pod asks for example.com/team=payments, and the NodePool does not define this label; add the label to its spec.template.metadata.labels, or change the pod"]);
}

#[test]
fn a_pod_that_contradicts_itself() {
    let affinity = node_affinity(&["{key: kubernetes.io/arch, operator: In, values: [amd64]}"]);
    let pod = small_pod(&format!("nodeSelector: {{kubernetes.io/arch: arm64}}, {affinity}"));
    Situation::of(&[plain_pool(), pod]).says(expect!["the pod contradicts itself: its nodeSelector asks for kubernetes.io/arch=arm64, its node affinity for kubernetes.io/arch=amd64; change one of them"]);
}

#[test]
fn a_node_affinity_that_contradicts_itself() {
    let affinity = node_affinity(&[
        "{key: kubernetes.io/arch, operator: In, values: [amd64]}, {key: kubernetes.io/arch, \
          operator: NotIn, values: [amd64]}",
    ]);
    Situation::of(&[pool_with("default", ARCH, "In", "amd64"), small_pod(&affinity)]).says(expect!["NodePool default: the pod's node affinity leaves no value of kubernetes.io/arch, and the NodePool allows only amd64; change the pod's node affinity"]);
}

#[test]
fn windows_where_the_pool_has_linux() {
    let objects = [
        pool_with("default", "kubernetes.io/os", "In", "linux"),
        small_pod("nodeSelector: {kubernetes.io/os: windows}"),
    ];
    Situation::of(&objects).says(expect!["NodePool default: the pod asks for kubernetes.io/os=windows, and the NodePool allows only linux; add windows to its requirements, or change the pod"]);
}

#[test]
fn values_excluded_until_none_is_left() {
    let affinity = node_affinity(&["{key: kubernetes.io/arch, operator: NotIn, values: [amd64, arm64]}"]);
    Situation::of(&[plain_pool(), small_pod(&affinity)]).says(expect!["NodePool default: the pod asks for kubernetes.io/arch NotIn [amd64, arm64], and none of its 144 instance types matches; they have amd64, arm64"]);
}

#[test]
fn a_number_that_no_type_reaches() {
    let affinity = node_affinity(&["{key: karpenter.kwok.sh/instance-cpu, operator: Gt, values: [\"256\"]}"]);
    Situation::of(&[plain_pool(), small_pod(&affinity)]).says(expect!["NodePool default: the pod asks for karpenter.kwok.sh/instance-cpu >= 257, and none of its 144 instance types matches; they have 1 to 256"]);
}

#[test]
fn numbers_that_do_not_overlap() {
    let affinity = node_affinity(&["{key: karpenter.kwok.sh/instance-cpu, operator: Gt, values: [\"16\"]}"]);
    let pool = pool_with("default", "karpenter.kwok.sh/instance-cpu", "Lt", "\"9\"");
    Situation::of(&[pool, small_pod(&affinity)]).says(expect!["NodePool default: the pod asks for karpenter.kwok.sh/instance-cpu >= 17, and the NodePool has karpenter.kwok.sh/instance-cpu <= 8; change its requirements, or the pod"]);
}

#[test]
fn alternatives_none_of_which_can_be_had() {
    let affinity = node_affinity(&[
        "{key: topology.kubernetes.io/zone, operator: In, values: [moon-1]}",
        "{key: kubernetes.io/arch, operator: In, values: [riscv64]}",
    ]);
    Situation::of(&[plain_pool(), small_pod(&affinity)]).says(expect!["NodePool default: the last of the pod's 2 nodeSelectorTerms asks for kubernetes.io/arch=riscv64, and none of its 144 instance types matches; they have amd64, arm64"]);
}

#[test]
fn two_labels_that_no_type_has_together() {
    let selector = "nodeSelector: {karpenter.kwok.sh/instance-family: m, node.kubernetes.io/instance-type: c-1x-amd64-linux}";
    Situation::of(&[plain_pool(), small_pod(selector)]).says(expect!["NodePool default: the pod asks for node.kubernetes.io/instance-type=c-1x-amd64-linux and karpenter.kwok.sh/instance-family=m, and none of its 144 instance types matches both; change one of them"]);
}

#[test]
fn a_node_by_its_name() {
    Situation::of(&[plain_pool(), small_pod("nodeSelector: {kubernetes.io/hostname: node-7}")]).says(expect!["the pod asks for the label kubernetes.io/hostname, by which new nodes cannot be chosen; use a well-known label or one of your own"]);
}

#[test]
fn a_pool_that_does_not_exist() {
    let objects = [plain_pool(), small_pod("nodeSelector: {karpenter.sh/nodepool: gpu}")];
    Situation::of(&objects)
        .says(expect!["the pod asks for NodePool gpu, which does not exist; NodePools that exist: default"]);
}

#[test]
fn only_the_pool_that_is_asked_for_matters() {
    let objects = [
        plain_pool(),
        pool_with("arm", ARCH, "In", "arm64"),
        small_pod("nodeSelector: {karpenter.sh/nodepool: arm, kubernetes.io/arch: amd64}"),
    ];
    Situation::of(&objects).says(expect!["NodePool arm: the pod asks for kubernetes.io/arch=amd64, and the NodePool allows only arm64; add amd64 to its requirements, or change the pod"]);
}

#[test]
fn a_taint() {
    let pool = pool("gpu", "taints: [{key: gpu, value: \"true\", effect: NoSchedule}]", "");
    Situation::of(&[pool, small_pod("")]).says(expect!["NodePool gpu: the pod does not tolerate its taint gpu=true:NoSchedule; add a toleration for it to the pod"]);
}

#[test]
fn a_toleration_of_another_effect() {
    let pool = pool("gpu", "taints: [{key: gpu, value: \"true\", effect: NoSchedule}]", "");
    let pod = small_pod("tolerations: [{key: gpu, operator: Exists, effect: NoExecute}]");
    Situation::of(&[pool, pod]).says(expect!["NodePool gpu: the pod does not tolerate its taint gpu=true:NoSchedule (it tolerates gpu only with effect NoExecute); add a toleration for it to the pod"]);
}

#[test]
fn a_toleration_of_another_value() {
    let pool = pool(
        "gpu",
        "taints: [{key: gpu, value: a100, effect: NoSchedule}, {key: team, effect: NoExecute}]",
        "",
    );
    let pod = small_pod("tolerations: [{key: gpu, value: h100, effect: NoSchedule}]");
    Situation::of(&[pool, pod]).says(expect![[r#"NodePool gpu: the pod does not tolerate its taints gpu=a100:NoSchedule, team:NoExecute (it tolerates gpu only with value "h100"); add a toleration for them to the pod"#]]);
}

#[test]
fn startup_taints_and_wishes_stop_nobody() {
    let pool = pool("default", "startupTaints: [{key: boot, effect: NoSchedule}]", "");
    let wish = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: \
                {matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [riscv64]}]}}]}}";
    Situation::of(&[pool, small_pod(wish)]).says(expect![[""]]);
}
