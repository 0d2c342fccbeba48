//! The embedded cluster as people use it: real kubectl, of two versions, against it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use clock::Clock;
use controlplane::{KubeletOptions, Options};
use e2e::tools::{self, Tool};
use embedded::{Server, http_server};

/// A cluster served on a loopback port by a thread of its own, which ends with the test process.
struct Cluster {
    address: String,
    kubectl: std::path::PathBuf,
    home: tempfile::TempDir,
}

impl Cluster {
    fn start(kubectl: Tool) -> Self {
        let (send, receive) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let clock = Clock::system();
                let server = Server::new(clock, &embedded::Options::of_cluster());
                for definition in api::crds::documents(api::provider::Provider::Kwok) {
                    server.apply(&definition.document, "test").expect("the definition is valid");
                }
                let (listener, address) = http_server::bind_loopback().await.expect("a free port");
                send.send(format!("http://{address}")).expect("the test waits");
                let client = kube::Client::new(server.service(), "default");
                let quick = Duration::from_millis(200);
                let kubelet = KubeletOptions {
                    ready_after: quick,
                    pod_start: quick,
                    stop: quick,
                    job_run: quick,
                    ..Default::default()
                };
                let options = Options { kubelet: Some(kubelet), ..Options::default() };
                tokio::select! {
                    result = controlplane::run(client, clock, options) => drop(result),
                    () = http_server::serve_plain(server.service(), listener) => {}
                }
            });
        });
        let address = receive.recv().expect("the server starts");
        let home = tempfile::tempdir().expect("a temporary directory");
        Self { address, kubectl: tools::path(kubectl).expect("kubectl can be built"), home }
    }

    /// Runs kubectl; returns what it printed, and fails if it fails.
    #[track_caller]
    fn kubectl(&self, args: &[&str]) -> String {
        self.kubectl_with(args, "")
    }

    #[track_caller]
    fn kubectl_with(&self, args: &[&str], input: &str) -> String {
        let (success, out, err) = self.try_kubectl(args, input);
        assert!(success, "kubectl {}\n{out}{err}", args.join(" "));
        out + &err
    }

    fn try_kubectl(&self, args: &[&str], input: &str) -> (bool, String, String) {
        let mut child = Command::new(&self.kubectl)
            .args(["--server", &self.address])
            .args(args)
            .env("HOME", self.home.path())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("kubectl reads");
        let output = child.wait_with_output().expect("kubectl ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }
}

const NODES: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}
";

const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: COLOR}
";

#[test]
fn the_newest_kubectl_works() {
    walk_through(Tool::Kubectl);
}

#[test]
fn an_older_kubectl_works() {
    walk_through(Tool::OldKubectl);
}

fn walk_through(kubectl: Tool) {
    let cluster = Cluster::start(kubectl);
    look_around(&cluster);
    run_a_deployment(&cluster);
    simulated_pods_run_no_code(&cluster);
    keep_to_a_quota(&cluster);
    change_objects(&cluster);
    apply_lists(&cluster);
    empty_a_node(&cluster);
    delete_in_every_way(&cluster);
}

fn look_around(cluster: &Cluster) {
    assert!(cluster.kubectl(&["version"]).contains("v1.36.3+karpenter"));
    let resources = cluster.kubectl(&["api-resources"]);
    for name in ["deployments", "nodepools", "poddisruptionbudgets", "kwoknodeclasses", "leases"] {
        assert!(resources.contains(name), "{resources}");
    }
    assert!(cluster.kubectl(&["explain", "pod.spec.tolerations"]).contains("tolerationSeconds"));
    assert!(cluster.kubectl(&["explain", "nodepool.spec.limits"]).contains("KIND:       NodePool"));
    assert!(cluster.kubectl(&["auth", "can-i", "create", "pods"]).contains("yes"));
    assert!(cluster.kubectl(&["get", "namespaces"]).contains("kube-node-lease"));
}

fn run_a_deployment(cluster: &Cluster) {
    cluster.kubectl_with(&["apply", "-f", "-"], NODES);
    cluster.kubectl(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=20s"]);
    cluster.kubectl(&["create", "deployment", "web", "--image=nginx", "--replicas=3"]);
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"]);
    let wide = cluster.kubectl(&["get", "pods", "-o", "wide"]);
    assert_eq!(wide.matches("Running").count(), 3, "{wide}");
    assert!(wide.contains("READINESS GATES") && wide.contains("n1") && wide.contains("n2"), "{wide}");
    let names = cluster.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].metadata.name}"]);
    assert_eq!(names.split(' ').count(), 3, "{names}");
    assert!(cluster.kubectl(&["get", "deployment", "web", "-o", "yaml"]).contains("readyReplicas: 3"));
    assert!(cluster.kubectl(&["describe", "deployment", "web"]).contains("3 available"));
    let first = names.split(' ').next().unwrap_or_default();
    let assigned = format!("Successfully assigned default/{first} to ");
    assert!(cluster.kubectl(&["describe", "pod", first]).contains(&assigned));
    assert!(cluster.kubectl(&["describe", "node", "n1"]).contains("HolderIdentity:  n1"));
    cluster.kubectl(&["scale", "deployment/web", "--replicas=5"]);
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"]);
    cluster.kubectl(&["set", "image", "deployment/web", "nginx=nginx:2"]);
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"]);
    assert!(cluster.kubectl(&["rollout", "history", "deployment/web"]).contains("\n2 "));
    cluster.kubectl(&["create", "job", "once", "--image=busybox"]);
    cluster.kubectl(&["wait", "--for=condition=complete", "job/once", "--timeout=30s"]);
    // The watch ends by itself, after it has shown what is there.
    let (_, watched, _) = cluster.try_kubectl(&["get", "pods", "-w", "--request-timeout=2s"], "");
    assert!(watched.matches("Running").count() >= 5, "{watched}");
    let (success, _, refused) = cluster.try_kubectl(&["logs", "deployment/web"], "");
    assert!(!success && refused.contains("simulated and writes no logs"), "{refused}");
}

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: general-1
  labels: {karpenter.sh/nodepool: general, node.kubernetes.io/instance-type: c-4x, topology.kubernetes.io/zone: zone-a, karpenter.sh/capacity-type: spot}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
";

/// Lists, which kubectl checks with the OpenAPI v2 document in protobuf, and columns that labels fill.
fn apply_lists(cluster: &Cluster) {
    cluster.kubectl_with(&["apply", "-f", "-"], POOL);
    let list = cluster.kubectl(&["get", "nodepools,nodeclaims", "-o", "yaml"]);
    assert!(list.contains("kind: List"), "{list}");
    cluster.kubectl_with(&["apply", "-f", "-"], &list);
    let (success, _, refused) =
        cluster.try_kubectl(&["apply", "-f", "-"], &list.replace("nodeClassRef:", "nodeClassReff:"));
    assert!(!success && refused.contains("nodeClassReff"), "{refused}");
    let wide = cluster.kubectl(&["get", "nodeclaims", "-o", "wide"]);
    assert!(["c-4x", "spot", "zone-a", "general "].iter().all(|cell| wide.contains(cell)), "{wide}");
    cluster.kubectl(&["delete", "nodeclaims,nodepools", "--all"]);
}

fn simulated_pods_run_no_code(cluster: &Cluster) {
    for (command, what) in [
        (&["exec", "deployment/web", "--", "ls"][..], "no command can be executed in it"),
        (&["attach", "deployment/web"], "there is nothing to attach to"),
        (&["port-forward", "deployment/web", "8080:80"], "no port of it can be forwarded"),
    ] {
        let (success, _, refused) = cluster.try_kubectl(command, "");
        assert!(
            !success && refused.contains("simulated and runs no code") && refused.contains(what),
            "{refused}"
        );
    }
}

fn keep_to_a_quota(cluster: &Cluster) {
    cluster.kubectl(&["create", "namespace", "small"]);
    cluster.kubectl(&["-n", "small", "create", "quota", "two", "--hard=pods=2"]);
    cluster.kubectl(&["-n", "small", "create", "deployment", "web", "--image=nginx", "--replicas=3"]);
    cluster.kubectl(&[
        "-n",
        "small",
        "wait",
        "--for=jsonpath={.status.readyReplicas}=2",
        "deployment/web",
        "--timeout=30s",
    ]);
    let quota = cluster.kubectl(&["-n", "small", "describe", "quota", "two"]);
    assert!(quota.contains("pods        2     2"), "{quota}");
    let sets = cluster.kubectl(&["-n", "small", "describe", "replicasets"]);
    assert!(
        sets.contains("FailedCreate") && sets.contains("exceeded quota: two, requested: pods=1"),
        "{sets}"
    );
    cluster.kubectl(&["delete", "namespace", "small", "--timeout=60s"]);
}

fn change_objects(cluster: &Cluster) {
    let red = SETTINGS.replace("COLOR", "red");
    let blue = SETTINGS.replace("COLOR", "blue");
    cluster.kubectl_with(&["apply", "-f", "-"], &red);
    assert!(cluster.kubectl_with(&["apply", "-f", "-"], &blue).contains("configured"));
    assert!(cluster.kubectl_with(&["apply", "-f", "-"], &blue).contains("unchanged"));
    let (_, difference, _) = cluster.try_kubectl(&["diff", "-f", "-"], &red);
    assert!(difference.contains("+  color: red"), "{difference}");
    let (success, _, conflict) =
        cluster.try_kubectl(&["apply", "--server-side", "--field-manager=other", "-f", "-"], &red);
    assert!(!success && conflict.contains("conflict with \"kubectl-client-side-apply\""), "{conflict}");
    let force = ["apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-"];
    cluster.kubectl_with(&force, &red);
    for (kind, patch) in [
        ("strategic", r#"{"data": {"a": "1"}}"#),
        ("merge", r#"{"data": {"b": "2"}}"#),
        ("json", r#"[{"op": "add", "path": "/data/c", "value": "3"}]"#),
    ] {
        cluster.kubectl(&["patch", "configmap", "settings", "--type", kind, "-p", patch]);
    }
    let data = cluster.kubectl(&["get", "configmap", "settings", "-o", "jsonpath={.data}"]);
    assert_eq!(data, r#"{"a":"1","b":"2","c":"3","color":"red"}"#);
    cluster.kubectl_with(&["replace", "-f", "-"], &blue);
    assert_eq!(
        cluster.kubectl(&["get", "configmap", "settings", "-o", "jsonpath={.data}"]),
        r#"{"color":"blue"}"#
    );
    cluster.kubectl(&["label", "node", "n1", "team=infra"]);
    assert!(cluster.kubectl(&["get", "nodes", "-l", "team=infra", "-o", "name"]).contains("node/n1"));
    cluster.kubectl(&["annotate", "node", "n1", "note=x"]);
    cluster.kubectl(&["taint", "node", "n1", "dedicated=x:NoSchedule"]);
    cluster.kubectl(&["taint", "node", "n1", "dedicated-"]);
    let dry = cluster.kubectl(&["create", "configmap", "dry", "--dry-run=server", "-o", "name"]);
    assert!(dry.contains("configmap/dry"), "{dry}");
    let (success, ..) = cluster.try_kubectl(&["get", "configmap", "dry"], "");
    assert!(!success, "a dry run leaves nothing");
    let (success, _, refused) = cluster.try_kubectl(
        &["apply", "-f", "-"],
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndataa: {}\n",
    );
    assert!(!success && refused.contains("unknown field \"dataa\""), "{refused}");
}

fn empty_a_node(cluster: &Cluster) {
    cluster.kubectl(&["create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=4"]);
    cluster.kubectl(&["cordon", "n2"]);
    let drain = ["drain", "n2", "--ignore-daemonsets", "--force", "--timeout=60s"];
    assert!(cluster.kubectl(&drain).contains("drained"));
    let left =
        cluster.kubectl(&["get", "pods", "--field-selector=spec.nodeName=n2", "-l", "app=web", "-o", "name"]);
    assert_eq!(left.trim(), "", "{left}");
    cluster.kubectl(&["uncordon", "n2"]);
    cluster.kubectl(&["wait", "--for=condition=Available", "deployment/web", "--timeout=30s"]);
}

fn delete_in_every_way(cluster: &Cluster) {
    cluster.kubectl(&["delete", "deployment", "web", "--cascade=orphan"]);
    assert!(cluster.kubectl(&["get", "replicasets", "-o", "name"]).contains("replicaset.apps/web-"));
    cluster.kubectl(&["create", "deployment", "two", "--image=nginx", "--replicas=2"]);
    cluster.kubectl(&["rollout", "status", "deployment/two", "--timeout=30s"]);
    cluster.kubectl(&["delete", "deployment", "two", "--cascade=foreground", "--timeout=30s"]);
    assert_eq!(cluster.kubectl(&["get", "pods", "-l", "app=two", "-o", "name"]).trim(), "");
    cluster.kubectl(&["delete", "replicasets", "--all", "--cascade=background"]);
    cluster.kubectl(&["wait", "--for=delete", "pod", "-l", "app=web", "--timeout=30s"]);
    cluster.kubectl(&["create", "namespace", "tmp"]);
    cluster.kubectl(&["-n", "tmp", "create", "configmap", "inside"]);
    cluster.kubectl(&["delete", "namespace", "tmp", "--timeout=30s"]);
    assert!(!cluster.kubectl(&["get", "namespaces", "-o", "name"]).contains("tmp"));
}
