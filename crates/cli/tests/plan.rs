//! `karpenter plan`, run as a user runs it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cluster.yaml");

const POOL: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
"#;

fn pod(name: &str, requests: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{containers: [{{name: main, resources: {{requests: {requests}}}}}]}}\n"
    )
}

/// Runs `karpenter plan` with a cluster on standard input.
fn plan(cluster: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["plan", "-f", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starting karpenter");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    stdin.write_all(cluster.as_bytes()).expect("karpenter reads its input");
    drop(stdin);
    child.wait_with_output().expect("waiting for karpenter")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).expect("the plan is JSON")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are text")
}

#[test]
fn the_example_is_planned_and_what_does_not_fit_is_explained() {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["plan", "-f", EXAMPLE])
        .output()
        .expect("running karpenter");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("a table is text");
    assert!(text.contains("2 new nodes for 3 pods: $0.15 per hour"), "{text}");
    assert!(
        text.contains("1 pod stays pending:\n  default/giant: no instance type has enough resources"),
        "{text}"
    );
    assert!(
        text.contains("default: 144 types → kubernetes.io/arch 72 → kubernetes.io/os 36 → fits 0"),
        "{text}"
    );
}

#[test]
fn a_plan_in_which_everything_fits_succeeds() {
    let output = plan(&(POOL.to_owned() + &pod("web", "{cpu: 1, memory: 1Gi}")), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let plan = json(&output);
    assert_eq!(plan["pods"], 1);
    assert_eq!(plan["errors"], serde_json::json!({}));
    let claim = &plan["newNodeClaims"][0];
    assert_eq!(claim["nodePool"], "default");
    assert_eq!(claim["pods"], serde_json::json!(["default/web"]));
    assert_eq!(claim["capacityType"], "spot");
    assert_eq!(plan["totalPrice"], claim["price"]);
    let types = claim["instanceTypes"].as_array().expect("types");
    assert!(types[0].as_str().expect("a name").starts_with("c-2x-"));
    for timing in ["readMs", "snapshotMs", "solveMs"] {
        assert!(plan["timings"][timing].is_number());
    }
}

#[test]
fn yaml_says_the_same_as_json() {
    let cluster = POOL.to_owned() + &pod("web", "{cpu: 1}");
    let text = String::from_utf8(plan(&cluster, &["-o", "yaml"]).stdout).expect("YAML is text");
    assert!(text.contains("nodePool: default") && text.contains("- default/web"), "{text}");
}

#[test]
fn one_pod_can_be_explained() {
    let cluster = POOL.to_owned() + &pod("web", "{cpu: 1}") + &pod("giant", "{cpu: 999}");
    let text = String::from_utf8(plan(&cluster, &["--explain", "default/web"]).stdout).expect("text");
    assert!(
        text.starts_with("default/web goes to a new node of NodePool default, with 1 pod in all.\n"),
        "{text}"
    );
    let text = String::from_utf8(plan(&cluster, &["--explain", "default/giant"]).stdout).expect("text");
    assert!(text.starts_with("default/giant stays pending: no instance type has enough resources"), "{text}");
    let output = plan(&cluster, &["--explain", "web"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(r#"no pod "web" is to be placed; give NAMESPACE/NAME"#),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_broken_object_is_named_and_hides_no_other() {
    let cluster = POOL.to_owned() + &pod("broken", "{cpu: 1KB}") + &pod("web", "{cpu: 1}");
    let output = plan(&cluster, &["-o", "json"]);
    let message = stderr(&output);
    assert!(message.contains("document 2 (Pod default/broken)"), "{message}");
    assert!(message.contains("1KB"), "{message}");
    assert_eq!(json(&output)["newNodeClaims"][0]["pods"], serde_json::json!(["default/web"]));
}

#[test]
fn a_pod_that_claims_devices_is_told_that_they_are_not_supported() {
    let claiming = pod("gpu", "{cpu: 1}").replace("spec: {", "spec: {resourceClaims: [{name: gpu}], ");
    let output = plan(&(POOL.to_owned() + &claiming), &["-o", "json"]);
    let text = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter";
    assert_eq!(json(&output)["errors"]["default/gpu"], text);
}

#[test]
fn unknown_kinds_are_listed_once_and_skipped() {
    let other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let output = plan(&(POOL.to_owned() + other + other + &pod("web", "{cpu: 1}")), &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output).matches("skipped 2 ConfigMap").count(), 1, "{}", stderr(&output));
}

#[test]
fn files_without_a_pool_are_an_error() {
    let output = plan(&pod("web", "{cpu: 1}"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the files contain no NodePool"), "{}", stderr(&output));
}

#[test]
fn a_missing_file_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["plan", "-f", "/nowhere/cluster.json"])
        .output()
        .expect("running karpenter");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/nowhere/cluster.json"), "{}", stderr(&output));
}

#[test]
fn the_same_cluster_gives_the_same_plan_byte_for_byte() {
    let mut cluster = POOL.to_owned();
    for number in 0..40 {
        cluster += &pod(
            &format!("pod-{number}"),
            &format!("{{cpu: {}m, memory: {}Mi}}", 100 + number * 37, 200 + number * 11),
        );
    }
    let without_timings = |output: &Output| {
        let mut plan = json(output);
        plan.as_object_mut().expect("an object").remove("timings");
        plan.to_string()
    };
    let first = plan(&cluster, &["-o", "json"]);
    assert_eq!(without_timings(&first), without_timings(&plan(&cluster, &["-o", "json"])));
}

fn overlay(name: &str, types: &str, price: &str) -> String {
    format!(
        "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {{name: {name}}}\n\
         spec: {{price: '{price}', requirements: [\
         {{key: node.kubernetes.io/instance-type, operator: In, values: [{types}]}}]}}\n"
    )
}

#[test]
fn overlays_of_the_file_decide_what_is_cheapest_and_bad_ones_are_told() {
    let cluster = format!("{POOL}{}", pod("web", "{cpu: 1}"));
    let overlays = overlay("a", "m-8x-arm64-linux", "0.0001")
        + &overlay("b", "'m-8x-arm64-linux', 'c-8x-amd64-linux'", "0.001");
    let output = plan(&(cluster.clone() + &overlays), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("warning: NodeOverlay a: conflict with another overlay"),
        "{}",
        stderr(&output)
    );
    let claim = &json(&output)["newNodeClaims"][0];
    assert_eq!((&claim["instanceTypes"][0], &claim["price"]), (&"c-8x-amd64-linux".into(), &0.001.into()));
    assert_eq!(claim["instanceTypes"][1], "m-8x-arm64-linux");
    let usual = plan(&cluster, &["-o", "json"]);
    assert_ne!(json(&usual)["newNodeClaims"][0]["instanceTypes"][0], "c-8x-amd64-linux");
}

const BUFFER: &str = r#"
---
apiVersion: v1
kind: PodTemplate
metadata: {name: t}
template: {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: b}
spec: {podTemplateRef: {name: t}, replicas: 2}
"#;

const GATE: [&str; 2] = ["--feature-gates", "CapacityBuffer=true"];

#[test]
fn buffers_of_the_file_keep_room_if_the_gate_is_on() {
    let cluster = format!("{POOL}{}{BUFFER}", pod("web", "{cpu: 1}"));
    let output = plan(&cluster, &["-o", "json"]);
    assert_eq!(json(&output)["pods"], 1);
    assert!(stderr(&output).contains("1 CapacityBuffer ignored: --feature-gates CapacityBuffer=true"));
    let output = plan(&cluster, &["-o", "json", GATE[0], GATE[1]]);
    let plan_ = json(&output);
    let pods: Vec<&str> = plan_["newNodeClaims"]
        .as_array()
        .expect("claims")
        .iter()
        .flat_map(|claim| claim["pods"].as_array().expect("pods"))
        .filter_map(serde_json::Value::as_str)
        .collect();
    let expected = ["default/capacity-buffer-b-1", "default/capacity-buffer-b-2", "default/web"];
    assert!(expected.iter().all(|name| pods.contains(name)), "{pods:?}");
    assert_eq!(stderr(&output), "");
    // One that makes no sense is named, and hinders nobody.
    let output = plan(&cluster.replace("{podTemplateRef: {name: t}", "{podTemplateRef: {name: x}"), &GATE);
    assert_eq!(output.status.code(), Some(0));
    let expected = "warning: CapacityBuffer default/b: PodTemplate \"x\" not found";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

/// A node of four processors with its claim, and a pod that asks for some if it does not ask for nothing.
fn node(name: &str, cpu: &str) -> String {
    let labels = "{karpenter.sh/nodepool: default, karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true', \
         karpenter.sh/capacity-type: spot, topology.kubernetes.io/zone: test-zone-a, \
         node.kubernetes.io/instance-type: c-4x-amd64-linux}";
    let condition = |kind: &str| {
        format!(
            "{{type: {kind}, status: 'True', reason: {kind}, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}"
        )
    };
    let conditions = ["Launched", "Registered", "Initialized"].map(condition).join(", ");
    let mut text = format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {labels}}}\n\
         spec: {{providerID: 'kwok://{name}'}}\nstatus: {{capacity: {{cpu: 4, memory: 8Gi, pods: 100}}, \
         allocatable: {{cpu: 4, memory: 8Gi, pods: 100}}, conditions: [{{type: Ready, status: 'True'}}]}}\n\
         ---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {{name: claim-{name}, labels: {labels}}}\n\
         spec: {{requirements: [], nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}\n\
         status: {{providerID: 'kwok://{name}', nodeName: {name}, conditions: [{conditions}]}}\n"
    );
    if !cpu.is_empty() {
        let on = format!("spec: {{nodeName: {name}, ");
        text += &pod(&format!("on-{name}"), &format!("{{cpu: {cpu}}}")).replace("spec: {", &on);
    }
    text
}

fn moved(output: &Output) -> Vec<String> {
    let answer = json(output);
    let moves = answer["moves"].as_array().expect("moves").iter();
    let nodes = moves.flat_map(|it| it["nodes"].as_array().expect("nodes"));
    nodes.map(|node| node.as_str().expect("a name").to_owned()).collect()
}

fn any_number() -> String {
    POOL.replace(
        "spec:\n  template",
        "spec:\n  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}\n  template",
    )
}

#[test]
fn room_that_buffers_of_the_file_keep_is_not_disrupted_if_the_gate_is_on() {
    let cluster = any_number() + &node("n1", "") + BUFFER;
    assert_eq!(moved(&plan(&cluster, &["--disruption", "-o", "json"])), ["n1"]);
    let output = plan(&cluster, &["--disruption", "-o", "json", GATE[0], GATE[1]]);
    assert_eq!(moved(&output), [""; 0]);
    assert_eq!(json(&output)["kept"]["n1"], "Node keeps room for CapacityBuffers");
}

#[test]
fn pods_of_the_file_that_wait_have_their_place_when_nodes_are_disrupted() {
    let cluster = any_number() + &node("n1", "1") + &node("n2", "1");
    assert_eq!(moved(&plan(&cluster, &["--disruption", "-o", "json"])), ["n1"]);
    let cluster = cluster + &pod("unseen", "{cpu: 3}");
    assert_eq!(moved(&plan(&cluster, &["--disruption", "-o", "json"])), [""; 0]);
}

#[test]
fn what_cannot_be_read_is_told_when_nodes_are_disrupted_too() {
    let cluster = any_number() + &node("n1", "") + &pod("broken", "{cpu: 1KB}");
    let output = plan(&cluster, &["--disruption", "-o", "json"]);
    assert!(stderr(&output).contains("(Pod default/broken)"), "{}", stderr(&output));
    assert_eq!(moved(&output), ["n1"]);
}

/// Runs `karpenter plan --disruption` for the cluster of a kubeconfig.
fn of_cluster(kubeconfig: &std::path::Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["plan", "--disruption"])
        .env("KUBECONFIG", kubeconfig)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("running karpenter");
    assert_eq!(output.status.code(), Some(1));
    stderr(&output)
}

#[test]
fn a_cluster_that_cannot_be_asked_is_one_sentence() {
    let message = of_cluster(std::path::Path::new("/nowhere/config"));
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.starts_with("error: no cluster is known, failed to read kubeconfig from"), "{message}");
    assert_eq!(message.matches("No such file").count(), 1, "{message}");
    let path = std::env::temp_dir().join(format!("karpenter-plan-{}.yaml", std::process::id()));
    // Nobody listens on port 1.
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n\
         users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n";
    std::fs::write(&path, config).expect("a file can be written");
    let message = of_cluster(&path);
    std::fs::remove_file(&path).expect("the file is there");
    assert_eq!(message.lines().count(), 1, "{message}");
    let expected = "error: the cluster at http://127.0.0.1:1/ does not answer: Connection refused";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(message.matches("onnect").count(), 1, "{message}");
}
