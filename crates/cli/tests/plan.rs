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
    assert!(
        text.contains("2 new nodes for 3 pods: $0.15/hour, $110.98/month at the cheapest offers"),
        "{text}"
    );
    assert!(
        text.contains("1 pod stays pending:\n  default/giant: NodePool default: the pod asks for "),
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
fn a_plan_in_which_no_node_can_be_launched_says_so_and_why() {
    let limited = POOL.replace("spec:\n  template:", "spec:\n  limits: {cpu: 100}\n  template:");
    let cluster = limited + &pod("web", "{cpu: 101}");
    let output = plan(&cluster, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("a table is text");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.starts_with(
            "No node can be launched: 1 pod stays pending. default/web: NodePool default: its limit of 100 CPU is \
             below the 128 of the smallest node that fits the pod; raise spec.limits.cpu to at least 128 default: \
             144 types"
        ),
        "{text}"
    );
    assert!(words.ends_with("→ limits 0"), "{text}");
    let plan = json(&plan(&cluster, &["-o", "json"]));
    assert!(plan["errors"]["default/web"].as_str().is_some_and(|why| words.contains(why)), "{plan}");
    let funnel = plan["reasons"]["default/web"][0]["funnel"].as_array().expect("steps");
    assert_eq!(funnel.last(), Some(&serde_json::json!({"step": "limits", "left": 0})));
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
    assert!(
        text.starts_with("default/giant stays pending: NodePool default: the pod asks for 999 CPU, and "),
        "{text}"
    );
    let output = plan(&cluster, &["--explain", "web"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(r#"no pod "web" is to be placed; give NAMESPACE/NAME"#),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_explanation_can_be_read_by_programs() {
    let cluster = POOL.to_owned() + &pod("web", "{cpu: 1}") + &pod("giant", "{cpu: 999}");
    let web = json(&plan(&cluster, &["--explain", "default/web", "-o", "json"]));
    assert_eq!((&web["pod"], &web["newNodeClaim"]["nodePool"]), (&"default/web".into(), &"default".into()));
    assert_eq!(web["error"], serde_json::Value::Null);
    let giant = json(&plan(&cluster, &["--explain", "default/giant", "-o", "json"]));
    assert!(giant["error"].is_string() && giant["reasons"].is_array(), "{giant}");
    let text =
        String::from_utf8(plan(&cluster, &["--explain", "default/web", "-o", "yaml"]).stdout).expect("text");
    assert!(text.starts_with("pod: default/web\n"), "{text}");
}

#[test]
fn what_is_not_understood_is_no_success_unless_it_is_to_be_ignored() {
    let old = POOL.replace("karpenter.sh/v1", "karpenter.sh/v1beta1").replace("name: default", "name: old");
    let wrong = POOL.replace("name: default}\nspec:", "name: wrong}\nspec:\n  weight: high");
    let invalid = POOL.replace("name: default}\nspec:", "name: invalid}\nspec:");
    let invalid = invalid.replace("requirements: []", "requirements: [{key: a b, operator: Exists}]");
    let rollout = "---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r, namespace: x}\n";
    let half = "---\na: [\n";
    for (more, expected) in [
        (
            pod("broken", "{cpu: 1KB}"),
            "document 2 (Pod default/broken): spec.containers[0].resources.requests.cpu",
        ),
        (
            format!("---{old}"),
            "(NodePool old): apiVersion: karpenter.sh/v1beta1 is not supported; expected karpenter.sh/v1",
        ),
        (
            format!("---{wrong}"),
            "(NodePool wrong): spec.weight: invalid type: string \"high\", expected a whole number",
        ),
        (format!("---{invalid}"), "NodePool invalid: invalid value: key a b is not a qualified name"),
        (rollout.to_owned(), "(Rollout x/r): objects of argoproj.io/v1alpha1 Rollout are not understood"),
        (half.to_owned(), "document 2: unclosed bracket"),
        (
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n".to_owned(),
            "Deployment default/d: spec.template.spec.containers: empty",
        ),
    ] {
        let cluster = POOL.to_owned() + &more + &pod("web", "{cpu: 1}");
        for form in [&[][..], &["-o", "json"], &["--explain", "default/web"], &["--disruption"]] {
            let output = plan(&cluster, form);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert_eq!(String::from_utf8_lossy(&output.stdout), "");
            let message = stderr(&output);
            assert!(
                message.starts_with("error: 1 object cannot be used; --ignore-unknown plans without it:\n  "),
                "{message}"
            );
            assert!(message.contains(expected), "{expected} is not in {message}");
        }
        let output = plan(&cluster, &["--ignore-unknown", "-o", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).starts_with("warning: ") && stderr(&output).contains(expected));
        assert_eq!(json(&output)["newNodeClaims"][0]["pods"], serde_json::json!(["default/web"]));
    }
}

#[test]
fn a_pool_that_cannot_be_read_is_explained_whatever_else_there_is() {
    let wrong =
        POOL.replace("spec:\n  template", "spec:\n  disruption: {consolidateAfter: 30 seconds}\n  template");
    let output = plan(&(wrong.clone() + &pod("web", "{cpu: 1}")), &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("(NodePool default): spec.disruption.consolidateAfter: "), "{message}");
    assert!(!message.contains("no NodePool"), "{message}");
    let output = plan(&(wrong + &pod("web", "{cpu: 1}")), &["--ignore-unknown"]);
    assert_eq!(stderr(&output).lines().last(), Some("error: the files contain no NodePool that can be used"));
}

#[test]
fn workloads_stand_for_their_pods() {
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5, template: \
         {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}}\n";
    let output = plan(&(POOL.to_owned() + deployment), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["pods"], 5);
    let expected = "pods that the files lack are planned for: Deployment default/web (5 pods)\n";
    assert_eq!(stderr(&output), expected);
    let cluster = POOL.to_owned() + deployment + &node("n1", "1");
    let removed = plan(&cluster, &["--remove-node", "n1", "-o", "json"]);
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
}

#[test]
fn a_directory_stands_for_its_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [("pool.yaml", POOL), ("pod.yml", &pod("web", "{cpu: 1}")), ("notes.txt", "a: [")] {
        std::fs::write(directory.path().join(name), text).expect("it can be written");
    }
    let run = |path: &std::path::Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karpenter"));
        command.args(["plan", "-o", "json", "-f"]).arg(path).output().expect("running karpenter")
    };
    let output = run(directory.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["pods"], 1);
    let empty = tempfile::tempdir().expect("a temporary directory");
    let output = run(empty.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("this directory has no file whose name ends with"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_command_line_that_is_wrong_has_an_exit_status_of_its_own() {
    for arguments in [&["--nonsense"][..], &["-o", "xml"], &["--feature-gates", "NodeRepair=perhaps"]] {
        let output = plan(POOL, arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
    }
    let output = plan(POOL, &["--feature-gates", "NodeRepair=perhaps"]);
    assert_eq!(
        stderr(&output),
        "error: --feature-gates: NodeRepair is \"perhaps\"; expected true or false\n"
    );
}

#[test]
fn instance_types_that_cannot_be_read_are_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("empty"), "[]").expect("it can be written");
    std::fs::write(path("broken"), "[{").expect("it can be written");
    for (name, expected) in [
        ("missing", "No such file or directory"),
        ("empty", "the list of instance types is empty"),
        ("broken", "EOF while parsing"),
    ] {
        let commands: [&[&str]; 3] = [
            &["plan", "-f", EXAMPLE, "--instance-types", &path(name)],
            &["up", "--instance-types", &path(name)],
            &["controller", "--instance-types-file-path", &path(name)],
        ];
        for arguments in commands {
            let mut command = Command::new(env!("CARGO_BIN_EXE_karpenter"));
            // No cluster is needed to find out.
            command
                .args(arguments)
                .env("KUBECONFIG", "/nowhere/config")
                .env_remove("KUBERNETES_SERVICE_HOST");
            let output = command.output().expect("running karpenter");
            assert_eq!(output.status.code(), Some(1), "{arguments:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
            let message = stderr(&output);
            assert!(message.contains(&path(name)) && message.contains(expected), "{message}");
        }
    }
}

#[test]
fn tables_have_at_most_eighty_columns_or_as_many_as_there_are() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("cluster.yaml");
    let long = "general-purpose-for-all-the-teams-that-there-are";
    let pool = any_number().replace("metadata: {name: default}", &format!("metadata: {{name: {long}}}"));
    let cluster = pool + &pod("web", "{cpu: 6}") + &any_number().replace("---", "") + &node(long, "");
    let cluster = cluster.replace(
        "\napiVersion: karpenter.sh/v1\nkind: NodePool",
        "\n---\napiVersion: karpenter.sh/v1\nkind: NodePool",
    );
    std::fs::write(&file, cluster).expect("it can be written");
    for (columns, form) in [
        (None, &[][..]),
        (Some("80"), &[]),
        (Some("60"), &[]),
        (Some("80"), &["--disruption"]),
        (Some("80"), &["--remove-node", long]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karpenter"));
        command.args(["plan", "-f"]).arg(&file).args(form).env_remove("COLUMNS");
        command.envs(columns.map(|columns| ("COLUMNS", columns)));
        let output = command.output().expect("running karpenter");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).expect("text");
        let most = columns.map_or(80, |columns| columns.parse().expect("a number"));
        for line in text.lines() {
            assert!(
                line.trim_end().chars().count() <= most,
                "{line:?} has more than {most} columns in\n{text}"
            );
        }
    }
}

#[test]
fn a_pod_that_claims_devices_is_told_that_they_are_not_supported() {
    let claiming = pod("gpu", "{cpu: 1}").replace("spec: {", "spec: {resourceClaims: [{name: gpu}], ");
    let output = plan(&(POOL.to_owned() + &claiming), &["-o", "json"]);
    let text = "the pod uses Dynamic Resource Allocation (spec.resourceClaims), which Karpenter does not support; request the devices as extended resources instead";
    assert_eq!(json(&output)["errors"]["default/gpu"], text);
}

#[test]
fn kinds_that_do_not_matter_are_named_once() {
    let other = |name: &str| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let output = plan(&(POOL.to_owned() + &other("a") + &other("b") + &pod("web", "{cpu: 1}")), &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "not looked at: 2 ConfigMaps (a, b)\n");
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
    assert!(stderr(&output).contains("1 CapacityBuffer ignored (b): --feature-gates CapacityBuffer=true"));
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
    let output = plan(&cluster, &["--disruption", "-o", "json", "--ignore-unknown"]);
    assert!(stderr(&output).contains("(Pod default/broken)"), "{}", stderr(&output));
    assert_eq!(moved(&output), ["n1"]);
}

/// Runs `karpenter plan` for the cluster of a kubeconfig that cannot be asked.
fn of_cluster(kubeconfig: &std::path::Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .arg("plan")
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("running karpenter");
    assert_eq!(output.status.code(), Some(1));
    stderr(&output)
}

const FORMS: [&[&str]; 5] =
    [&[], &["--explain", "a/b"], &["--disruption"], &["--remove-node", "n"], &["-o", "json"]];

#[test]
fn a_cluster_that_cannot_be_asked_is_one_sentence() {
    let path = std::env::temp_dir().join(format!("karpenter-plan-{}.yaml", std::process::id()));
    // Nobody listens on port 1.
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n\
         users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n";
    std::fs::write(&path, config).expect("a file can be written");
    for form in FORMS {
        let message = of_cluster(std::path::Path::new("/nowhere/config"), form);
        let expected = "error: no cluster is known: reading /nowhere/config: No such file or directory (os error 2); \
             --kubeconfig names another file, --file one with objects\n";
        assert_eq!(message, expected);
        let message = of_cluster(&path, form);
        assert_eq!(message.lines().count(), 1, "{message}");
        let expected = "error: the cluster at http://127.0.0.1:1/ does not answer: Connection refused";
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(message.matches("onnect").count(), 1, "{message}");
    }
    std::fs::remove_file(&path).expect("the file is there");
}
