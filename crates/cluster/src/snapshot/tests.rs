//! Tests of building snapshots: small clusters in YAML, and what the engine is told about them.

mod shown;
mod what_if;

use api::provider::Provider;
use expect_test::{Expect, expect};

use super::*;
use crate::instance_types::kwok;
use crate::scheduler_config::SchedulerConfig;
use shown::Shown;

/// A NodePool with the given lines in its spec.
fn pool(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n      \
         nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}\n      requirements: []\n{spec}\n---\n"
    )
}

/// A pod that waits, with the given lines in its spec.
fn pod(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  containers: []\n{spec}\n\
         status: {{conditions: [{{type: PodScheduled, status: \"False\", reason: Unschedulable}}]}}\n---\n"
    )
}

fn built(yaml: &str) -> Built {
    built_with(yaml, |_| {})
}

fn built_with(yaml: &str, change: impl FnOnce(&mut Options<'_>)) -> Built {
    let contents = crate::file::parse("cluster", yaml.as_bytes()).unwrap();
    assert_eq!(contents.errors, []);
    assert!(contents.skipped.is_empty(), "skipped {}", contents.skipped);
    let types = kwok::built_in();
    let mut options = Options::new(Provider::Kwok, &types[..1]);
    change(&mut options);
    build(&contents.objects, &options, "2026-01-02T00:00:00Z".parse().unwrap())
}

/// Shows the parts of a snapshot that a test names.
#[track_caller]
fn check<'a>(built: &'a Built, show: fn(&Shown<'a>) -> Vec<String>, expected: &Expect) {
    let mut lines = show(&Shown(&built.snapshot));
    lines.extend(built.ignored.iter().map(|ignored| format!("ignored {ignored}")));
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn pools_are_tried_by_weight_then_by_name_backwards() {
    let yaml = [pool("a", ""), pool("b", ""), pool("c", "  weight: 10"), pool("d", "  weight: 5")].concat();
    let names: Vec<_> = built(&yaml).snapshot.pools.iter().map(|pool| pool.name.clone()).collect();
    assert_eq!(names, ["c", "d", "b", "a"].map(Box::from));
}

#[test]
fn a_pool_asks_for_its_requirements_its_labels_and_what_the_simulation_adds() {
    let yaml = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec:\n  limits: {cpu: 10, nodes: 3}\n  template:\n    metadata: {labels: {team: a}}\n    spec:\n      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n      taints: [{key: web, value: x, effect: NoSchedule}]\n      startupTaints: [{key: boot, effect: NoExecute}]\n      requirements:\n      - {key: beta.kubernetes.io/arch, operator: In, values: [amd64]}\n      - {key: cpus, operator: Gt, values: [\"3\"]}\n      - {key: node.kubernetes.io/instance-type, operator: Exists, minValues: 2}\n";
    check(
        &built(yaml),
        Shown::pools,
        &expect![
            "web: (cpus Exists >=4, karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/initialized In [true], karpenter.sh/nodepool In [web], karpenter.sh/registered In [true], kubernetes.io/arch In [amd64], node.kubernetes.io/instance-type Exists minValues 2, team In [a]) declared (cpus Exists >=4, kubernetes.io/arch In [amd64], node.kubernetes.io/instance-type Exists minValues 2, team In [a]) taints [web=x:NoSchedule] limits [cpu=10 nodes=3] catalogue Some(0)"
        ],
    );
}

#[test]
fn pools_that_get_no_nodes_are_left_out_with_the_reason() {
    let not_ready = pool(
        "d",
        "status: {conditions: [{type: Ready, status: \"False\", message: broken, lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}",
    );
    let yaml = [
        pool("a", "  replicas: 3"),
        pool("b", "").replace("{name: b}", "{name: b, deletionTimestamp: \"2026-01-01T00:00:00Z\"}"),
        pool("c", "")
            .replace("karpenter.kwok.sh", "karpenter.k8s.aws")
            .replace("KWOKNodeClass", "EC2NodeClass"),
        not_ready,
        pool("e", "").replace("requirements: []", "requirements: [{key: karpenter.sh/x, operator: Exists}]"),
        pool("f", ""),
        pool("f", ""),
    ];
    check(
        &built(&yaml.concat()),
        Shown::pools,
        &expect![[r#"
        f: (karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/initialized In [true], karpenter.sh/nodepool In [f], karpenter.sh/registered In [true]) declared () taints [] limits [] catalogue Some(0)
        ignored NodePool f: metadata.name: "f" is taken by another object
        ignored NodePool e: invalid value: using label karpenter.sh/x is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.kwok.sh/instance-cpu karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-memory karpenter.kwok.sh/instance-size karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.kwok.sh karpenter.sh] in requirements, restricted
        ignored NodePool d: not ready: broken
        ignored NodePool c: nodeClassRef: karpenter.k8s.aws/EC2NodeClass; expected karpenter.kwok.sh/KWOKNodeClass
        ignored NodePool b: being deleted
        ignored NodePool a: has a fixed number of nodes (spec.replicas); pending pods get no new node of it"#]],
    );
}

#[test]
fn a_pool_without_instance_types_is_left_out() {
    let built = built_with(&pool("a", ""), |options| options.instance_types = InstanceTypes::Same(&[]));
    check(&built, Shown::pools, &expect!["ignored NodePool a: there are no instance types for it"]);
}

/// A node of the pool `web` and its claim.
fn node_and_claim(name: &str, node_labels: &str, node_spec: &str, claim: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{karpenter.sh/nodepool: web, node.kubernetes.io/instance-type: c-1x-amd64-linux{node_labels}}}}}\n\
         spec: {{providerID: id-{name}{node_spec}}}\n\
         status: {{capacity: {{cpu: 4, memory: 8Gi}}, allocatable: {{cpu: 3900m, memory: 7Gi, pods: 10, example.com/gpu: 0}}}}\n---\n\
         apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata:\n  name: {name}-claim\n  labels: {{karpenter.sh/nodepool: web, zone: claimed}}\n\
         spec:\n  nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}\n  requirements: []\n  \
         taints: [{{key: claimed, effect: NoSchedule}}]\n  startupTaints: [{{key: boot, value: x, effect: NoExecute}}]\n\
         status:\n  providerID: id-{name}\n  capacity: {{cpu: 4, memory: 8Gi, example.com/gpu: 2}}\n  \
         allocatable: {{cpu: 3800m, memory: 7Gi, example.com/gpu: 2}}\n{claim}\n---\n"
    )
}

const STAGES: [&str; 3] = [
    "",
    ", karpenter.sh/registered: \"true\"",
    ", karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"",
];

#[test]
fn a_node_is_what_its_claim_says_until_it_registers_and_initializes() {
    let taints = ", taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}, {key: boot, effect: NoExecute}, {key: readiness.k8s.io/x, effect: NoSchedule}, {key: karpenter.sh/rebooting, effect: NoSchedule}, {key: own, effect: NoSchedule}]";
    let [new, registered, initialized] =
        ["c", "b", "a"].map(|name| move |labels| node_and_claim(name, labels, taints, ""));
    let yaml = [new(STAGES[0]), registered(STAGES[1]), initialized(STAGES[2])].concat();
    check(
        &built(&yaml),
        Shown::nodes,
        &expect![[r#"
            a (a) initialized
              labels (karpenter.sh/initialized In [true], karpenter.sh/nodepool In [web], karpenter.sh/registered In [true], node.kubernetes.io/instance-type In [c-1x-amd64-linux])
              taints [node.kubernetes.io/not-ready=:NoExecute boot=:NoExecute readiness.k8s.io/x=:NoSchedule karpenter.sh/rebooting=:NoSchedule own=:NoSchedule]
              available cpu=3900m memory=7Gi pods=10; daemons 
              ports [] volumes 0 limits []
            b (b)
              labels (karpenter.sh/nodepool In [web], karpenter.sh/registered In [true], node.kubernetes.io/instance-type In [c-1x-amd64-linux])
              taints [karpenter.sh/rebooting=:NoSchedule own=:NoSchedule]
              available cpu=3900m memory=7Gi pods=10 example.com/gpu=2; daemons 
              ports [] volumes 0 limits []
            c-claim (c-claim)
              labels (karpenter.sh/nodepool In [web], zone In [claimed])
              taints [claimed=:NoSchedule]
              available cpu=3900m memory=7Gi pods=10 example.com/gpu=2; daemons 
              ports [] volumes 0 limits []"#]],
    );
}

#[test]
fn pods_on_a_node_are_counted_by_what_its_object_says() {
    let taints = ", taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]";
    let built = built(&node_and_claim("a", STAGES[0], taints, ""));
    let (shown, node) = (Shown(&built.snapshot), &built.snapshot.nodes[0]);
    assert_eq!(shown.set(node.labels), "(karpenter.sh/nodepool In [web], zone In [claimed])");
    let object = node.object.expect("there is a Node object");
    assert_eq!(
        shown.set(object.labels),
        "(karpenter.sh/nodepool In [web], node.kubernetes.io/instance-type In [c-1x-amd64-linux])"
    );
    assert_eq!(shown.taints(object.taints), "node.kubernetes.io/not-ready=:NoExecute");
}

#[test]
fn a_rebooting_node_comes_back_without_its_temporary_taints() {
    let taints =
        ", taints: [{key: karpenter.sh/rebooting, effect: NoSchedule}, {key: own, effect: NoSchedule}]";
    let claim =
        "  conditions: [{type: Rebooting, status: \"True\", lastTransitionTime: \"2026-01-01T00:00:00Z\"}]";
    let built = built(&node_and_claim("a", STAGES[2], taints, claim));
    assert_eq!(Shown(&built.snapshot).taints(built.snapshot.nodes[0].taints), "own=:NoSchedule");
}

#[test]
fn nodes_without_claims_and_claims_without_nodes_count() {
    let bare = "apiVersion: v1\nkind: Node\nmetadata: {name: bare, labels: {failure-domain.beta.kubernetes.io/zone: z, kubernetes.io/hostname: host}}\nstatus: {allocatable: {cpu: 1}}\n---\n";
    let claim = node_and_claim("gone", "", "", "").split_once("---\n").unwrap().1.to_owned();
    check(
        &built(&format!("{bare}{claim}")),
        Shown::nodes,
        &expect![[r"
        bare (host) initialized
          labels (topology.kubernetes.io/zone In [z])
          taints []
          available cpu=1; daemons 
          ports [] volumes 0 limits []
        gone-claim (gone-claim) unregistered
          labels (karpenter.sh/nodepool In [web], zone In [claimed])
          taints [claimed=:NoSchedule]
          available cpu=3800m memory=7Gi example.com/gpu=2; daemons 
          ports [] volumes 0 limits []"]],
    );
}

#[test]
fn nodes_and_claims_that_cannot_be_joined_are_left_out_with_the_reason() {
    let yaml = [
        node_and_claim("a", "", "", "")
            .replace("spec: {providerID: id-a}", "spec: {}")
            .replace("providerID: id-a", "providerID: \"\""),
        node_and_claim("b", "", "", "").replace(", node.kubernetes.io/instance-type: c-1x-amd64-linux", ""),
        node_and_claim("c", "", "", "").replace("KWOKNodeClass", "EC2NodeClass"),
        node_and_claim("d", "", "", ""),
        node_and_claim("e", "", "", "").replace("id-e", "id-d"),
    ];
    let names = |shown: &Shown<'_>| {
        shown.0.nodes.iter().filter(|node| node.open).map(|node| node.name.to_string()).collect()
    };
    check(
        &built(&yaml.concat()),
        names,
        &expect![[r#"
        c
        b-claim
        d-claim
        ignored NodeClaim a-claim: status.providerID: empty; it has not been launched
        ignored NodeClaim c-claim: nodeClassRef: karpenter.kwok.sh/EC2NodeClass; expected karpenter.kwok.sh/KWOKNodeClass
        ignored NodeClaim e-claim: status.providerID: "id-d" is taken by another object
        ignored Node a: spec.providerID: empty; expected one on a node of a NodePool
        ignored Node b: waits for the label node.kubernetes.io/instance-type
        ignored Node e: spec.providerID: "id-d" is taken by another object"#]],
    );
}

/// A pod on a node, with further metadata and spec.
fn bound(name: &str, node: &str, metadata: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: web}}{metadata}}}\nspec:\n  nodeName: {node}\n  \
         containers: [{{resources: {{requests: {{cpu: 500m, example.com/slot: 1}}}}, ports: [{{hostPort: 80, hostIP: \"::\"}}, {{hostPort: 53, protocol: UDP, hostIP: \"::ffff:10.0.0.1\"}}]}}]\n{spec}\n---\n"
    )
}

#[test]
fn pods_use_up_what_their_node_has() {
    let daemon = ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, controller: true}]";
    let yaml = [
        node_and_claim("a", STAGES[2], "", ""),
        bound("one", "a", "", ""),
        bound("two", "a", daemon, ""),
        bound("done", "a", "", "status: {phase: Succeeded}"),
        bound("going", "a", ", deletionTimestamp: \"2026-01-01T00:00:00Z\"", ""),
        bound("lost", "nowhere", "", ""),
    ];
    let built = built(&yaml.concat());
    check(
        &built,
        Shown::nodes,
        &expect![[r#"
        a (a) initialized
          labels (karpenter.sh/initialized In [true], karpenter.sh/nodepool In [web], karpenter.sh/registered In [true], node.kubernetes.io/instance-type In [c-1x-amd64-linux])
          taints []
          available cpu=2400m memory=7Gi pods=7; daemons cpu=500m pods=1 example.com/slot=1
          ports [None:80/TCP Some("10.0.0.1"):53/UDP None:80/TCP Some("10.0.0.1"):53/UDP None:80/TCP Some("10.0.0.1"):53/UDP] volumes 0 limits []"#]],
    );
    check(&built, Shown::running, &expect!["2 of default/app=web on a"]);
}

#[test]
fn limits_leave_what_nodes_do_not_use() {
    let yaml = [
        pool("web", "  limits: {cpu: 10, nodes: 3, memory: 4Gi, example.com/gpu: 1}"),
        node_and_claim("a", STAGES[2], "", ""),
        node_and_claim("b", STAGES[0], "", ""),
        node_and_claim("c", STAGES[2], "", "")
            .replace("name: c-claim", "name: c-claim\n  deletionTimestamp: \"2026-01-01T00:00:00Z\""),
    ];
    let shown = |shown: &Shown<'_>| {
        let limits = &shown.0.pools[0].limits;
        limits.iter().map(|limit| shown.amount(limit.resource, limit.remaining)).collect()
    };
    check(
        &built(&yaml.concat()),
        shown,
        &expect![[r"
        cpu=2
        example.com/gpu=-1
        memory=-12Gi
        nodes=1"]],
    );
    // The one that goes counts where it is there until others have come.
    check(
        &built_with(&yaml.concat(), |options| options.leaving_count = true),
        shown,
        &expect![[r"
        cpu=-2
        example.com/gpu=-1
        memory=-20Gi
        nodes=0"]],
    );
}

#[test]
fn claims_that_are_not_launched_count_with_the_largest_type_they_name() {
    let claim = |name: &str, rest: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata:\n  name: {name}\n  labels: {{karpenter.sh/nodepool: web}}\n{rest}\n\
             spec:\n  nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}\n  requirements:\n  \
             - {{key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux, m-2x-amd64-linux, gone]}}\n---\n"
        )
    };
    let yaml = [
        pool("web", "  limits: {cpu: 10, nodes: 3, memory: 20Gi}"),
        claim("a", ""),
        claim("b", "  deletionTimestamp: \"2026-01-01T00:00:00Z\""),
    ];
    let types = kwok::built_in();
    let contents = crate::file::parse("cluster", yaml.concat().as_bytes()).unwrap();
    let options = Options::new(Provider::Kwok, &types);
    let built = build(&contents.objects, &options, "2026-01-02T00:00:00Z".parse().unwrap());
    let limits = &built.snapshot.pools[0].limits;
    let shown = Shown(&built.snapshot);
    let left: Vec<_> = limits.iter().map(|limit| shown.amount(limit.resource, limit.remaining)).collect();
    assert_eq!(left, ["cpu=6", "memory=4Gi", "nodes=2"]);
}

#[test]
fn a_pool_whose_name_nodes_cannot_carry_takes_no_part() {
    let long = "a".repeat(64);
    let built = built(&[pool(&long, ""), pool(&long[1..], "")].concat());
    let ignored: Vec<String> = built.ignored.iter().map(|ignored| ignored.reason.to_string()).collect();
    assert_eq!(
        ignored,
        [format!(
            "metadata.name: {long:?} has 64 characters; at most 63 are accepted, because nodes have it as the value of \
             the label karpenter.sh/nodepool"
        )]
    );
    assert_eq!(built.snapshot.pools.len(), 1);
}

#[test]
fn pods_of_deleting_nodes_are_placed_again() {
    let deleting = node_and_claim("a", STAGES[2], "", "")
        .replace("name: a-claim", "name: a-claim\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"");
    let yaml = [
        deleting,
        bound("one", "a", "", ""),
        bound("two", "a", "", ""),
        bound("guarded", "a", ", annotations: {karpenter.sh/do-not-disrupt: \"true\"}", ""),
        bound("broken", "a", "", "  volumes: [{name: v, persistentVolumeClaim: {claimName: gone}}]"),
        pod("waiting", ""),
    ];
    let built = built(&yaml.concat());
    check(
        &built,
        Shown::pods,
        &expect![[r#"
        default/waiting class 0
        default/one class 1
        default/two class 1
        ignored Pod default/broken: discovering persistent volume claim, getting persistent volume claim, PersistentVolumeClaim "gone" not found (PersistentVolumeClaim=gone)"#]],
    );
    check(
        &built,
        Shown::running,
        &expect![[r#"
        2 of default/app=web on a
        ignored Pod default/broken: discovering persistent volume claim, getting persistent volume claim, PersistentVolumeClaim "gone" not found (PersistentVolumeClaim=gone)"#]],
    );
}

#[test]
fn pods_whose_volumes_are_being_made_have_a_place() {
    let pod = |name: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default}}, spec: {{volumes: [{{name: v, \
             persistentVolumeClaim: {{claimName: {name}}}}}], containers: []}}}}\n"
        )
    };
    let claim = |name: &str, annotation: &str, volume: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}, namespace: default, annotations: \
             {{{annotation}}}}}, spec: {{storageClassName: late, volumeName: '{volume}'}}}}\n"
        )
    };
    let chosen = "volume.kubernetes.io/selected-node: n, pv.kubernetes.io/bind-completed: y";
    let yaml = [
        "---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}, provisioner: p, \
         volumeBindingMode: WaitForFirstConsumer}\n"
            .to_owned(),
        "---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}}\n".to_owned(),
        claim("new", "", ""),
        claim("chosen", chosen, ""),
        // The mark stays when the volume is there, and says nothing about the next pod.
        claim("made", chosen, "disk"),
        pod("new"),
        pod("chosen"),
        pod("made"),
    ];
    check(
        &built_with(&yaml.concat(), |options| options.accept_unseen_pods = true),
        Shown::pods,
        &expect![[r#"
        default/new class 0
        default/made class 1
        ignored Pod default/chosen: waits for its volumes on node n"#]],
    );
}

#[test]
fn pods_that_do_not_wait_are_left_out_with_the_reason() {
    let yaml = [
        pod("fine", ""),
        pod("fine", ""),
        pod("unseen", "").replace("Unschedulable", "SchedulingGated"),
        pod("nominated", "").replace("status: {", "status: {nominatedNodeName: n, "),
        pod("ours", "  nodeSelector: {karpenter.sh/nodepool: web}"),
        pod(
            "no-pool",
            "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}]}}}",
        ),
        pod(
            "would-rather-no-pool",
            "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}, {weight: 9, preference: {matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}}]}}",
        ),
        pod(
            "fields",
            "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}",
        ),
        pod(
            "operator",
            "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Near}]}]}}}",
        ),
        pod("volume", "  volumes: [{name: v, ephemeral: {}}]"),
        pod("port", "").replace("containers: []", "containers: [{ports: [{hostPort: 70000}]}]"),
        pod(
            "wish",
            "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: x, operator: Near}]}}]}}",
        ),
        pod(
            "namespaces",
            "  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: x, namespaceSelector: {matchExpressions: [{key: x, operator: Near}]}}]}}",
        ),
    ];
    check(
        &built(&yaml.concat()),
        Shown::pods,
        &expect![[r#"
        default/fine class 0
        default/ours class 1
        ignored Pod default/fine: metadata.name: "fine" is taken by another object
        ignored Pod default/unseen: no scheduler has reported it unschedulable
        ignored Pod default/nominated: waits for room on node n
        ignored Pod default/no-pool: configured to not run on a Karpenter provisioned node (requirement=karpenter.sh/nodepool DoesNotExist)
        ignored Pod default/would-rather-no-pool: configured to not run on a Karpenter provisioned node (requirement=karpenter.sh/nodepool DoesNotExist)
        ignored Pod default/fields: node selector term with matchFields is not supported
        ignored Pod default/operator: key x has an unsupported operator Near not in [In NotIn Exists DoesNotExist Gt Lt Gte Lte]
        ignored Pod default/volume: getting persistent volume claim, PersistentVolumeClaim "volume-v" not found (PersistentVolumeClaim=volume-v)
        ignored Pod default/port: spec.containers: hostPort: invalid value "70000"; expected a port number from 1 to 65535
        ignored Pod default/wish: spec.affinity.nodeAffinity: operator of x: invalid value "Near"; expected In, NotIn, Exists, DoesNotExist, Gt or Lt
        ignored Pod default/namespaces: spec.affinity: namespaceSelector.matchExpressions: invalid value "Near"; expected In and NotIn with values, Exists and DoesNotExist without"#]],
    );
}

#[test]
fn errors_of_a_pod_are_joined_and_decide_about_events() {
    let yaml = pod(
        "a",
        "  nodeSelector: {kubernetes.io/hostname: n}\n  volumes: [{name: v, ephemeral: {}}]\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: []}]}}}",
    );
    let built = built(&yaml);
    let text = built.ignored[0].reason.to_string();
    let parts: Vec<&str> = text.split("; ").map(|part| part.split(' ').next().unwrap()).collect();
    assert_eq!(parts, ["using", "specify", "node", "getting"]);
    assert!(built.ignored[0].reason.is_event() && built.ignored[0].reason.is_rejection());
    assert!(!Reason::Rejected(vec![Rejection::OptedOut]).is_event());
    assert!(!Reason::NotPending(crate::reason::NotPending::Daemon).is_rejection());
}

#[test]
fn rules_of_a_pod_keep_their_meaning() {
    let spec = r"
  nodeSelector: {beta.kubernetes.io/os: linux}
  resourceClaims: [{name: gpu}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [b, a]}]
        - matchExpressions: [{key: cpus, operator: Lt, values: ['8']}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, preference: {matchExpressions: [{key: x, operator: NotIn, values: [y]}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: db}}}
      - {topologyKey: kubernetes.io/hostname, namespaces: [other, else], labelSelector: {}}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 3, podAffinityTerm: {topologyKey: rack}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: rack, namespaceSelector: {matchLabels: {team: a}}, namespaces: [x], labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}
      - {topologyKey: rack, namespaceSelector: {}, labelSelector: {matchExpressions: [{key: app, operator: Near}]}}
  topologySpreadConstraints:
  - {maxSkew: 2, minDomains: 3, topologyKey: failure-domain.beta.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [app, missing], labelSelector: {matchLabels: {tier: web}}}
  - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}
";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {team: a}}\n---\n";
    check(
        &built(&format!("{namespace}{}", pod("web", spec))),
        Shown::rules,
        &expect![[r"
        selector: (kubernetes.io/os In [linux])
        required: (topology.kubernetes.io/zone In [a b]) or (cpus Exists <=7)
        preferred: 5 (x NotIn [y])
        spread: topology.kubernetes.io/zone skew 2 min Some(3) optional false [app=web tier=web] affinity true taints false
        spread: rack skew 1 min None optional true nothing affinity false taints true
        near: [app=db] in default by topology.kubernetes.io/zone
        near: [] in other|else by kubernetes.io/hostname
        apart: [app] in team-a|x by rack
        apart: [kubernetes.io/hostname=] in default|team-a by rack
        wish: 3 nothing in default by rack
        devices: needed"]],
    );
}

#[test]
fn volumes_that_cannot_be_together_are_sorted_out() {
    let volume = |name: &str, zones: &[&str]| {
        let terms = zones.iter().map(|zone| {
            format!(
                "{{matchExpressions: [{{key: topology.kubernetes.io/zone, operator: In, values: [{zone}]}}]}}"
            )
        });
        let terms = terms.collect::<Vec<_>>().join(", ");
        format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec: {{csi: {{driver: disk}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{terms}]}}}}}}\n---\n\
             apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, annotations: {{pv.kubernetes.io/bind-completed: \"yes\"}}}}\nspec: {{volumeName: {name}}}\n---\n"
        )
    };
    let volumes =
        [volume("ab", &["a", "b"]), volume("bc", &["b", "c"]), volume("d", &["d"]), volume("any", &[])];
    let with = |name: &str, claims: &[&str]| {
        let claims =
            claims.iter().map(|c| format!("{{name: {c}, persistentVolumeClaim: {{claimName: {c}}}}}"));
        pod(name, &format!("  volumes: [{}]", claims.collect::<Vec<_>>().join(", ")))
    };
    for (claims, expected) in [
        (
            &["ab", "any"][..],
            expect!["volumes: (topology.kubernetes.io/zone In [a]) or (topology.kubernetes.io/zone In [b])"],
        ),
        (&["ab", "bc"], expect!["volumes: (topology.kubernetes.io/zone In [b])"]),
        (&["ab", "d"], expect!["volumes: (topology.kubernetes.io/zone DoesNotExist)"]),
        (&["any"], expect![[""]]),
    ] {
        let built = built(&format!("{}{}", volumes.concat(), with("web", claims)));
        check(&built, Shown::rules, &expected);
        assert_eq!(built.snapshot.classes[0].volumes.len(), claims.len());
    }
}

#[test]
fn volume_limits_come_from_the_drivers_or_else_from_the_type() {
    let csi = "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: a}\nspec: {drivers: [{name: some, allocatable: {count: 10}}, {name: any}, {name: also-any, allocatable: {}}]}\n---\n";
    let mut types = kwok::built_in();
    types[0].volume_limits = vec![("any".to_owned(), 1), ("some".to_owned(), 2), ("typed".to_owned(), 3)];
    let yaml = [
        pool("web", ""),
        node_and_claim("a", STAGES[2], "", ""),
        csi.to_owned(),
        node_and_claim("b", STAGES[2], "", ""),
    ]
    .concat();
    let built = {
        let contents = crate::file::parse("cluster", yaml.as_bytes()).unwrap();
        build(&contents.objects, &Options::new(Provider::Kwok, &types), jiff::Timestamp::UNIX_EPOCH)
    };
    let shown = |shown: &Shown<'_>| {
        let nodes = shown.0.nodes.iter().map(|node| {
            let limits = node.volume_limits.iter();
            let limits = limits.map(|(id, n)| format!("{}={n}", shown.0.drivers.resolve(u32::from(id.0))));
            format!("{}: {}", node.name, limits.collect::<Vec<_>>().join(" "))
        });
        nodes.collect()
    };
    check(
        &built,
        shown,
        &expect![[r"
        a: some=10 typed=3
        b: any=1 some=2 typed=3"]],
    );
}

#[test]
fn a_daemon_is_its_newest_pod_or_else_the_template() {
    let set = |name: &str| {
        format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: {name}, uid: {name}}}\nspec:\n  template:\n    spec:\n      affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: gpu, operator: Exists}}]}}]}}}}}}\n      containers: [{{resources: {{limits: {{cpu: 1}}}}}}]\n---\n"
        )
    };
    let real = |name: &str, created: &str, cpu: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, creationTimestamp: \"{created}\", ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: real, uid: real, controller: true}}]}}\nspec:\n  nodeName: n\n  affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [n]}}]}}]}}}}}}\n  containers: [{{resources: {{requests: {{cpu: {cpu}}}}}}}]\n---\n"
        )
    };
    let yaml = [
        set("template"),
        set("real"),
        real("old", "2026-01-01T00:00:00Z", "2"),
        real("new", "2026-01-03T00:00:00Z", "3"),
        real("older", "2026-01-02T00:00:00Z", "4"),
    ];
    let built = built(&yaml.concat());
    check(
        &built,
        Shown::requests,
        &expect![[r"
        cpu=1 pods=1
        cpu=3 pods=1"]],
    );
    check(
        &built,
        Shown::rules,
        &expect![[r"
        required: (gpu Exists)
        required: (gpu Exists)"]],
    );
    assert_eq!(built.snapshot.daemons, [ClassId(0), ClassId(1)]);
}

#[test]
fn the_scheduler_spreads_pods_that_have_a_service_or_an_owner() {
    let config = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]}";
    let service = |name: &str, selector: &str| {
        format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{{selector}}}\n---\n")
    };
    let owned = |name: &str, kind: &str, version: &str| {
        pod(name, "").replace("labels: {", &format!("ownerReferences: [{{apiVersion: {version}, kind: {kind}, name: {name}, controller: true}}], labels: {{tier: x, "))
    };
    let yaml = [
        service("s1", "selector: {tier: x}"),
        service("s2", "selector: {tier: x, app: set}"),
        service("s3", "selector: {}"),
        service("s4", ""),
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: set}\nspec: {selector: {matchLabels: {app: set}, matchExpressions: [{key: hash, operator: Exists}]}}\n---\n".to_owned(),
        "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: old}\nspec: {selector: {tier: y}}\n---\n".to_owned(),
        owned("set", "ReplicaSet", "apps/v1"),
        owned("old", "ReplicationController", "v1"),
        owned("job", "Job", "batch/v1"),
        pod("alone", ""),
        pod("own", "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]"),
    ];
    let built = built_with(&yaml.concat(), |options| {
        options.scheduler_config = SchedulerConfig::parse(config).unwrap();
    });
    check(
        &built,
        Shown::rules,
        &expect![[r"
        spread: rack skew 1 min None optional true [app=set tier=x hash] affinity true taints false
        spread: rack skew 1 min None optional true [tier=y] affinity true taints false
        spread: rack skew 1 min None optional true [tier=x] affinity true taints false
        spread: zone skew 1 min None optional false nothing affinity true taints false"]],
    );
}

#[test]
fn too_many_names_are_an_error_not_a_panic() {
    let requests: Vec<String> = (0..300).map(|n| format!("r{n}: 1")).collect();
    let greedy = pod("greedy", &format!("  overhead: {{{}}}", requests.join(", ")));
    let built = built(&format!("{greedy}{}", pod("modest", "")));
    check(
        &built,
        Shown::pods,
        &expect![[r#"
        default/modest class 0
        ignored Pod default/greedy: "r55" is one resource too many; at most 256 are supported"#]],
    );
}

#[test]
fn everything_is_known_about_instance_types() {
    let built = built(&pool("web", ""));
    let shown = |shown: &Shown<'_>| {
        let type_ = &shown.0.catalogues[0].types[0];
        let offerings = type_.offerings.iter().map(|o| format!("{} {}", o.price, shown.set(o.requirements)));
        let amounts = format!("{} - {}", shown.amounts(&type_.capacity), shown.amounts(&type_.overhead));
        [shown.set(type_.requirements), amounts].into_iter().chain(offerings.take(2)).collect()
    };
    check(
        &built,
        shown,
        &expect![[r"
        (karpenter.kwok.sh/instance-cpu In [1], karpenter.kwok.sh/instance-family In [c], karpenter.kwok.sh/instance-memory In [2Gi], karpenter.kwok.sh/instance-size In [1], karpenter.sh/capacity-type In [on-demand spot], kubernetes.io/arch In [amd64], kubernetes.io/os In [linux], node.kubernetes.io/instance-type In [c-1x-amd64-linux], topology.kubernetes.io/zone In [test-zone-a test-zone-b test-zone-c test-zone-d])
        cpu=1 memory=2Gi pods=16 ephemeral-storage=21474836480 - cpu=100m memory=10Mi
        0.019003238553599998 (karpenter.sh/capacity-type In [spot], topology.kubernetes.io/zone In [test-zone-a])
        0.027147483648 (karpenter.sh/capacity-type In [on-demand], topology.kubernetes.io/zone In [test-zone-a])"]],
    );
    let universe = &built.snapshot.universe;
    let is_well_known = |key: &str| universe.is_well_known(universe.find_key(key).unwrap());
    assert!(
        is_well_known("karpenter.kwok.sh/instance-cpu") && is_well_known("topology.kubernetes.io/region")
    );
    assert!(!is_well_known("karpenter.sh/registered") && !is_well_known("kubernetes.io/hostname"));
}
