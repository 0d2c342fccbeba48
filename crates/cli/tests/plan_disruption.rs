//! `karpenter plan --disruption` and `--remove-node`, run as a user runs them: on files and on a cluster that answers.

#![cfg(all(feature = "aws", feature = "azure"))]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread;

use api::provider::Provider;
use serde_json::{Value, json};
use support::{Cluster, kubeconfig};
use tempfile::NamedTempFile;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// Runs `karpenter plan`, without any cluster unless the arguments say otherwise.
fn plan_in(kubeconfig: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .arg("plan")
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("running karpenter")
}

fn plan(arguments: &[&str]) -> Output {
    plan_in("/nowhere/config", arguments)
}

fn data(name: &str) -> String {
    format!("{DATA}/{name}")
}

/// Runs it for the cluster and the instance types of a cloud.
fn of_cloud(cloud: &str, arguments: &[&str]) -> Output {
    let (cluster, types) = (data(&format!("{cloud}-cluster.json")), data(&format!("{cloud}-types.json")));
    plan(&[&["-f", &cluster, "--instance-types", &types], arguments].concat())
}

fn objects(name: &str) -> Value {
    let text = std::fs::read_to_string(data(name)).expect("the data is there");
    serde_json::from_str(&text).expect("the data is JSON")
}

/// A file with objects.
fn file(objects: &[Value]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    file.write_all(list.to_string().as_bytes()).expect("it can be written");
    file
}

fn path(file: &NamedTempFile) -> String {
    file.path().display().to_string()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("answers are text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are text")
}

fn answer(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("the answer is JSON")
}

/// What is done to which nodes, in the order of the answer.
fn moves(answer: &Value) -> Vec<String> {
    let moves = answer["moves"].as_array().expect("moves").iter().map(|it| {
        let nodes = it["nodes"].as_array().expect("nodes").iter().filter_map(Value::as_str);
        let text = |field: &str| it[field].as_str().expect("a word").to_owned();
        format!("{} {} {}", text("reason"), text("decision"), nodes.collect::<Vec<_>>().join(" "))
    });
    moves.collect()
}

fn is_among(lines: &str, expected: &str) -> bool {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.lines().any(|line| words(line) == words(expected))
}

#[test]
fn nodes_on_aws_are_disrupted_as_the_pool_of_their_node_class_asks() {
    let output = of_cloud("aws", &["--disruption", "-o", "json"]);
    assert_eq!(stderr(&output), "");
    let answer = answer(&output);
    let node = |number: u8| format!("ip-10-0-1-{number}.ec2.internal");
    assert_eq!(
        moves(&answer),
        [format!("Empty delete {}", node(2)), format!("Underutilized replace {}", node(1))]
    );
    // The pool wants a newer generation than that of m4, no t3, and no processor of another kind.
    assert_eq!(
        answer["moves"][1]["replacements"],
        json!([["c5.large", "m5.large", "c5.xlarge", "m5.xlarge"]])
    );
    let price = |field: &str| format!("{:.3}", answer[field].as_f64().expect("a price"));
    assert_eq!((price("price"), price("priceAfter")), ("0.842".to_owned(), "0.447".to_owned()));
    let kept = answer["kept"].as_object().expect("nodes");
    assert_eq!(kept.keys().cloned().collect::<Vec<_>>(), [node(3), node(4)]);
    assert_eq!(
        kept[&node(3)],
        "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=shop/db-0)",
        "{kept:?}"
    );
    let of_drifted = kept[&node(4)].as_str().expect("text");
    assert!(
        of_drifted.starts_with(
            "Drifted: Budgets of NodePool \"default\" let no node go for Drifted now (spec.disruption.budgets[1]: 0 \
             of 4 nodes, from \"0 0 * * *\" for 24h, 1 disrupted); Underutilized: Can't replace"
        ),
        "{of_drifted}"
    );
}

#[test]
fn nodes_on_azure_are_disrupted_as_the_pool_of_their_node_class_asks() {
    let answer = answer(&of_cloud("azure", &["--disruption", "-o", "json"]));
    assert_eq!(
        moves(&answer),
        ["Empty delete aks-general-purpose-x2", "Underutilized replace aks-general-purpose-x1"]
    );
    // The pool wants the D family.
    assert_eq!(answer["moves"][1]["replacements"], json!([["Standard_D2s_v5", "Standard_D4s_v5"]]));
    assert_eq!(answer["kept"]["aks-general-purpose-x3"], "Can't replace with a cheaper node");
}

#[test]
fn the_table_shows_moves_prices_budgets_and_what_keeps_the_rest() {
    let text = stdout(&of_cloud("aws", &["--disruption"]));
    for line in [
        "Empty delete 1 0 0 $0.096/hour",
        "ip-10-0-1-2.ec2.internal",
        "Underutilized replace 1 1 1 $0.30/hour",
        "ip-10-0-1-1.ec2.internal → c5.large or 3 others",
    ] {
        assert!(is_among(&text, line), "{line:?} is not in\n{text}");
    }
    for line in [
        "Price: $0.84/hour now, $0.45/hour afterwards (46.9 % less: saves $288.35/month), 1 eviction.",
        "  default, Empty, Underutilized: 2 of 4 nodes at the same time, 0 disrupted now \
         (spec.disruption.budgets[0]: 50% of 4 nodes)",
        "  default, Drifted: 0 of 4 nodes at the same time, 0 disrupted now (spec.disruption.budgets[1]: 0 of 4 \
         nodes, from \"0 0 * * *\" for 24h)",
        "2 nodes stay:",
        "  1 (ip-10-0-1-3.ec2.internal): Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=shop/db-0)",
    ] {
        assert!(text.lines().any(|it| it == line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn nodes_that_stay_for_alike_reasons_are_one_line() {
    let mut all = objects("azure-cluster.json")["items"].as_array().expect("objects").clone();
    all[0]["spec"]["disruption"]["consolidateAfter"] = "Never".into();
    let cluster = file(&all);
    let output =
        plan(&["--disruption", "-f", &path(&cluster), "--instance-types", &data("azure-types.json")]);
    let text = stdout(&output);
    let line = "  3 (aks-general-purpose-x1, aks-general-purpose-x2, aks-general-purpose-x3): NodePool \
         \"general-purpose\" has consolidation disabled";
    assert!(text.starts_with("Nothing would be disrupted now.\n"), "{text}");
    assert!(text.lines().any(|it| it == line), "{text}");
}

#[test]
fn drifted_nodes_are_shown_with_what_made_them_drift() {
    let mut all = objects("aws-cluster.json")["items"].as_array().expect("objects").clone();
    all[0]["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
    let cluster = file(&all);
    let output = plan(&["--disruption", "-f", &path(&cluster), "--instance-types", &data("aws-types.json")]);
    assert!(stdout(&output).contains("\n  AMIDrift: ip-10-0-1-4.ec2.internal"), "{}", stdout(&output));
}

#[test]
fn broken_nodes_are_repaired_if_the_gate_is_on() {
    let mut all = objects("azure-cluster.json")["items"].as_array().expect("objects").clone();
    // The last node, which is one of six: where more than a fifth is broken, nothing is repaired.
    let mut extra: Vec<Value> = Vec::new();
    for number in 10..13 {
        for object in &all[all.len() - 3..] {
            let text = object
                .to_string()
                .replace("-x3", &format!("-x{number}"))
                .replace("web-2", &format!("w-{number}"));
            extra.push(serde_json::from_str(&text).expect("objects stay objects"));
        }
    }
    all.extend(extra);
    let broken =
        all.iter_mut().find(|it| it["kind"] == "Node" && it["metadata"]["name"] == "aks-general-purpose-x3");
    broken.expect("the node")["status"]["conditions"][1]["status"] = "False".into();
    let cluster = file(&all);
    let arguments =
        ["--disruption", "-o", "json", "-f", &path(&cluster), "--instance-types", &data("azure-types.json")];
    let without = answer(&plan(&arguments));
    assert!(!without.to_string().contains("Unhealthy"), "{without}");
    let with = answer(&plan(&[&arguments[..], &["--feature-gates", "NodeRepair=true"]].concat()));
    assert_eq!(with["moves"][0]["nodes"], json!(["aks-general-purpose-x3"]), "{with}");
    assert_eq!(with["moves"][0]["causes"], json!(["Ready=False"]));
}

#[test]
fn types_that_are_not_known_are_told() {
    let cluster = data("aws-cluster.json");
    let output = plan(&["--disruption", "-f", &cluster]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "error: the NodePools are of provider aws, whose instance types and prices are not built in; give \
         them with --instance-types FILE\n";
    assert_eq!(stderr(&output), expected);
    let output = plan(&["--disruption", "-f", &cluster, "--instance-types", &data("azure-types.json")]);
    assert!(
        stderr(&output).contains(
            "warning: 4 nodes (ip-10-0-1-1.ec2.internal, ip-10-0-1-2.ec2.internal, ip-10-0-1-3.ec2.internal and 1 \
             more) of instance types that are not known (\"c5.xlarge\", \"m5.2xlarge\", \"m5.large\" and 1 more)"
        ),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_pools_ask_for_that_types_do_not_say_is_told() {
    let mut all = objects("aws-cluster.json")["items"].as_array().expect("objects").clone();
    let asked = all[0]["spec"]["template"]["spec"]["requirements"].as_array_mut().expect("requirements");
    asked
        .push(json!({"key": "karpenter.k8s.aws/instance-hypervisor", "operator": "In", "values": ["nitro"]}));
    asked.push(json!({"key": "example.com/team", "operator": "In", "values": ["a"]}));
    let cluster = file(&all);
    for more in [&["--disruption"][..], &[]] {
        let file = path(&cluster);
        let output = plan(&[&["-f", &file, "--instance-types", &data("aws-types.json")], more].concat());
        let expected = "warning: NodePool default: spec.template.spec.requirements: the instance types do not say \
             karpenter.k8s.aws/instance-hypervisor, so that it is not looked at\n";
        assert_eq!(stderr(&output), expected, "{}", stdout(&output));
    }
}

#[test]
fn pools_of_several_providers_need_a_choice_and_those_of_others_are_told() {
    let (aws, azure) = (data("aws-cluster.json"), data("azure-cluster.json"));
    let both = [
        "--disruption",
        "-f",
        &aws,
        "-f",
        &azure,
        "--instance-types",
        &data("azure-types.json"),
        "-o",
        "json",
    ];
    let output = plan(&both);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("error: the NodePools are of several providers: NodePool default: spec.")
    );
    let output = plan(&[&both[..], &["--provider", "azure"]].concat());
    assert_eq!(moves(&answer(&output)).len(), 2);
    for warning in [
        "warning: 4 NodeClaims (default-x1, default-x2, default-x3 and 1 more): nodeClassRef: \
         karpenter.k8s.aws/EC2NodeClass; expected karpenter.azure.com/AKSNodeClass",
        "warning: NodePool default: nodeClassRef: karpenter.k8s.aws/EC2NodeClass; expected \
         karpenter.azure.com/AKSNodeClass",
    ] {
        assert!(stderr(&output).lines().any(|it| it == warning), "{}", stderr(&output));
    }
}

#[test]
fn pending_pods_get_nodes_of_the_pools_of_a_cloud() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "shop"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "6", "memory": "1Gi"}}}]}});
    let pending = file(&[pod]);
    for (cloud, expected) in [("aws", "m5.2xlarge"), ("azure", "Standard_D8s_v5")] {
        let mut all = objects(&format!("{cloud}-cluster.json"))["items"].as_array().expect("objects").clone();
        all.retain(|it| it["kind"] == "NodePool");
        let pool = file(&all);
        let output = plan(&[
            "-f",
            &path(&pool),
            "-f",
            &path(&pending),
            "--instance-types",
            &data(&format!("{cloud}-types.json")),
            "-o",
            "json",
        ]);
        assert_eq!(answer(&output)["newNodeClaims"][0]["instanceTypes"], json!([expected]));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn without_a_node_its_pods_go_elsewhere_at_a_price() {
    let output = of_cloud("azure", &["--remove-node", "aks-general-purpose-x1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let expected = "Without aks-general-purpose-x1:\n  1 pod goes to aks-general-purpose-x2: shop/web-1\n  No new \
         nodes are needed.\n\nPrice: $0.67/hour now, $0.29/hour afterwards (57.1 % less: saves $280.32/month), 1 \
         eviction.\n";
    assert_eq!(text, expected);
    let output = of_cloud("azure", &["--remove-node", "aks-general-purpose-x3", "-o", "json"]);
    let found = answer(&output);
    assert_eq!((&found["evictions"], &found["unplaced"]), (&1.into(), &json!({})));
    // What keeps a node does not count, but is told.
    let output = of_cloud("aws", &["--remove-node", "ip-10-0-1-3.ec2.internal"]);
    assert!(
        stdout(&output)
            .contains("What keeps them from going by themselves:\n  ip-10-0-1-3.ec2.internal: Pod has")
    );
}

#[test]
fn without_a_node_some_pods_may_have_no_place() {
    let mut all = objects("azure-cluster.json")["items"].as_array().expect("objects").clone();
    all[0]["spec"]["limits"] = json!({"cpu": "1"});
    let cluster = file(&all);
    let output = plan(&[
        "--remove-node",
        "aks-general-purpose-x1",
        "--remove-node",
        "aks-general-purpose-x3",
        "--remove-node",
        "aks-general-purpose-x2",
        "-f",
        &path(&cluster),
        "--instance-types",
        &data("azure-types.json"),
    ]);
    assert_eq!(output.status.code(), Some(2), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("shop/web-2 has no place: "), "{}", stdout(&output));
}

#[test]
fn a_node_that_cannot_be_removed_is_told_why() {
    let mut all = objects("azure-cluster.json")["items"].as_array().expect("objects").clone();
    let claim = all.iter_mut().find(|it| it["kind"] == "NodeClaim").expect("a claim");
    claim["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z".into();
    let cluster = file(&all);
    let output = plan(&[
        "--remove-node",
        "aks-general-purpose-x1",
        "--remove-node",
        "x9",
        "-f",
        &path(&cluster),
        "--instance-types",
        &data("azure-types.json"),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output).lines().last(),
        Some(
            "error: node \"aks-general-purpose-x1\": Node is deleting or marked for deletion; node \"x9\": there is \
             none of this name; give names as `kubectl get nodes` shows them"
        )
    );
}

#[test]
fn a_cluster_that_answers_is_looked_at_as_files_are() {
    let cluster = Cluster::start(Provider::Azure);
    let config = &cluster.kubeconfig;
    let types = data("azure-types.json");
    let arguments = ["--disruption", "-o", "json", "--instance-types", &types];
    let output = plan_in(&path(config), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let expected = "error: the cluster contains no NodePool, so nothing says what nodes there may be\n";
    assert_eq!(stderr(&output), expected);

    cluster.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    for object in objects("azure-cluster.json")["items"].as_array().expect("objects") {
        let mut object = object.clone();
        // Nobody is there who would have made them.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["uid", "generation", "creationTimestamp", "ownerReferences"] {
                metadata.remove(field);
            }
        }
        cluster.put(&object);
    }
    let found = answer(&plan_in(&path(config), &arguments));
    assert_eq!(
        moves(&found),
        ["Empty delete aks-general-purpose-x2", "Underutilized replace aks-general-purpose-x1"]
    );
    assert_eq!(found["kept"]["aks-general-purpose-x3"], "Can't replace with a cheaper node");
    let output =
        plan_in(&path(config), &["--remove-node", "aks-general-purpose-x1", "--instance-types", &types]);
    assert!(stdout(&output).contains("1 pod goes to aks-general-purpose-x2"), "{}", stdout(&output));
}

/// An API server that shows NodePools and refuses pods and nodes; it has nothing else.
fn refusing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port").to_string();
    let pool = objects("azure-cluster.json")["items"][0].clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(&stream).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            // The rest of the request is not of interest, but must be read.
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let path = first.split_whitespace().nth(1).unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            let refused = |plural: &str| {
                let message = format!("{plural} is forbidden: User \"me\" cannot list resource \"{plural}\"");
                (
                    403,
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": message, "reason": "Forbidden", "code": 403}),
                )
            };
            let (code, body) = match path {
                "/version" => (
                    200,
                    json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "",
                    "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
                ),
                "/apis/karpenter.sh/v1/nodepools" => (
                    200,
                    json!({"kind": "NodePoolList",
                    "apiVersion": "karpenter.sh/v1", "metadata": {"resourceVersion": "1"}, "items": [pool]}),
                ),
                "/api/v1/pods" => refused("pods"),
                "/api/v1/nodes" => refused("nodes"),
                _ => (
                    200,
                    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                    "items": []}),
                ),
            };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {code} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: \
                 close\r\n\r\n",
                body.len()
            );
            // Whoever asked may have gone away.
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

#[test]
fn kinds_that_a_cluster_refuses_are_named_at_once_with_its_answer() {
    let config = kubeconfig(&refusing());
    let output = plan_in(&path(&config), &["--disruption", "--instance-types", &data("azure-types.json")]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "error: the cluster does not tell all that is needed: Node: nodes is forbidden: User \"me\" cannot \
         list resource \"nodes\"; Pod: pods is forbidden: User \"me\" cannot list resource \"pods\"\n";
    assert_eq!(stderr(&output), expected);
}
