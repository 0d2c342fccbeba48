//! `karpenter up`: what it prints, what it serves, and that it leaves nothing behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

const KARPENTER: &str = env!("CARGO_BIN_EXE_karpenter");
/// How long a line is waited for before the test fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running cluster; killed if the test fails.
struct Up {
    child: Child,
    kubeconfig: PathBuf,
    greeting: String,
    lines: Receiver<String>,
    /// The lines that were read after the greeting.
    seen: Vec<String>,
}

impl Up {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new("env")
            // Whoever runs the tests may be ignoring signals, which children inherit.
            .args(["--default-signal=HUP,QUIT,INT,TERM", KARPENTER, "up"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut greeting = String::new();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, lines) = mpsc::channel();
        // It ends when the cluster does, or when nobody listens any more.
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        while !greeting.contains("kubectl get pods") {
            let line = lines.recv_timeout(PATIENCE).expect("the greeting is complete");
            greeting = greeting + &line + "\n";
        }
        let line = greeting.lines().find(|line| line.contains("kubeconfig")).expect("the kubeconfig");
        let kubeconfig = line.split_whitespace().last().expect("a path").into();
        Self { child, kubeconfig, greeting, lines, seen: Vec::new() }
    }

    /// Reads until a line tells this.
    fn tells(&mut self, parts: &[&str]) {
        let is_told = |line: &String| parts.iter().all(|part| line.contains(part));
        while !self.seen.iter().any(is_told) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("{error}: {parts:?} is not in {:#?}", self.seen),
            }
        }
    }

    async fn client(&self, token: Option<&str>) -> kube::Client {
        let mut file = Kubeconfig::read_from(&self.kubeconfig).expect("the kubeconfig can be read");
        if let Some(token) = token {
            let info = file.auth_infos[0].auth_info.as_mut().expect("a user");
            info.token = Some(token.to_owned().into());
        }
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        kube::Client::try_from(config.expect("the kubeconfig is complete")).expect("a client")
    }

    /// Ends it by a signal: `INT` is what Ctrl-C sends, `HUP` comes when the terminal is closed.
    fn end_by(mut self, signal: &str) -> (Option<i32>, PathBuf) {
        let id = self.child.id().to_string();
        let signal = format!("-{signal}");
        assert!(Command::new("kill").args([&signal, &id]).status().expect("kill runs").success());
        let status = self.child.wait().expect("it ends");
        (status.code(), self.kubeconfig.clone())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Nothing to be done if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn temporary(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("it can be written");
    file
}

#[tokio::test]
async fn a_cluster_serves_what_was_applied_and_leaves_nothing_behind() {
    let file = temporary("{apiVersion: v1, kind: Node, metadata: {name: a}}");
    let up = Up::start(&["-f", &file.path().display().to_string()]);
    assert!(
        up.greeting.contains("/metrics") && up.greeting.contains("export KUBECONFIG="),
        "{}",
        up.greeting
    );
    let nodes: Api<Node> = Api::all(up.client(None).await);
    assert_eq!(nodes.list(&ListParams::default()).await.expect("nodes").items.len(), 1);
    let (code, kubeconfig) = up.end_by("INT");
    assert_eq!(code, Some(0));
    assert!(!kubeconfig.exists() && !kubeconfig.parent().expect("a directory").exists());
}

#[test]
fn every_signal_that_can_be_caught_removes_the_kubeconfig() {
    for signal in ["HUP", "QUIT", "TERM"] {
        let (code, kubeconfig) = Up::start(&[]).end_by(signal);
        assert_eq!(code, Some(0), "{signal}");
        assert!(!kubeconfig.exists(), "{signal}");
    }
}

#[test]
fn the_kubeconfig_of_a_cluster_that_was_killed_is_replaced_and_no_other() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("config").display().to_string();
    let first = Up::start(&["--kubeconfig", &path]);
    let second = Command::new(KARPENTER).args(["up", "--kubeconfig", &path]).output().expect("it runs");
    let refused = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && refused.contains("belongs to a cluster that runs at"), "{refused}");
    let before = std::fs::read_to_string(&path).expect("it is there");
    let (code, kubeconfig) = first.end_by("KILL");
    assert!(code.is_none() && kubeconfig.exists(), "nobody can clear up after that");
    let third = Up::start(&["--kubeconfig", &path]);
    assert!(third.greeting.contains("left of a cluster that is gone"), "{}", third.greeting);
    assert_ne!(std::fs::read_to_string(&path).expect("it is there"), before);
    let (_, kubeconfig) = third.end_by("TERM");
    assert!(!kubeconfig.exists());
}

#[tokio::test]
async fn whoever_has_no_token_is_refused() {
    let up = Up::start(&[]);
    let nodes: Api<Node> = Api::all(up.client(Some("guessed")).await);
    match nodes.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 401),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_demonstration_shows_a_node_that_comes_and_goes() {
    let output = Command::new(KARPENTER).args(["up", "--demo"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let steps = [
        "Five pods wait",
        " for 5 pods: ",
        "/hour",
        "All five pods run",
        "disrupt  Empty: ",
        "The node is gone",
    ];
    for step in steps {
        assert!(told.contains(step), "{step} is not in\n{told}");
    }
}

#[test]
fn a_manifest_that_cannot_be_applied_is_named() {
    for (text, parts) in [
        ("{apiVersion: v1, kind: Nod, metadata: {name: a}}", ["document 1", "does not serve Nod of v1"]),
        ("kind: Node", ["document 1", "needs apiVersion and kind"]),
        ("{apiVersion: v1, kind: Node, metadata: {name: A_}}", ["document 1", "metadata.name"]),
    ] {
        let file = temporary(text);
        let path = file.path().display().to_string();
        let output = Command::new(KARPENTER).args(["up", "-f", &path]).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&path) && parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn a_feature_that_does_not_exist_is_refused() {
    for (gates, message) in [
        ("Unknown=true", "--feature-gates: there is no feature Unknown"),
        ("StaticCapacity=perhaps", "StaticCapacity is \"perhaps\"; expected true or false"),
    ] {
        let output =
            Command::new(KARPENTER).args(["up", "--feature-gates", gates]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(message), "{text}");
    }
}

const PENDING: &str = "
{apiVersion: v1, kind: Pod, metadata: {name: large}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 5000}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: small}, spec: {containers: [{name: c, image: i}]}}
";

fn example(name: &str) -> String {
    let output = Command::new(KARPENTER).args(["example", name]).output().expect("it runs");
    assert!(output.status.success(), "{name}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn decisions_are_told_as_they_happen() {
    let objects = [example("nodepool"), example("static"), PENDING.to_owned()].join("---\n");
    let file = temporary(&objects);
    let mut up = Up::start(&["-f", &file.path().display().to_string()]);
    up.tells(&["launch", " for 1 pod: ", "/hour"]);
    up.tells(&["pending", "default/large: "]);
    up.tells(&["gate", "NodePool static: ", "feature gate StaticCapacity is off"]);
}

#[test]
fn who_wants_the_log_gets_it_and_who_wants_quiet_gets_that() {
    let file = temporary(PENDING);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let log = dir.path().join("log");
    let args = ["-f", &file.path().display().to_string(), "--quiet", "--log", &log.display().to_string()];
    let mut up = Up::start(&args);
    let mut told = String::new();
    while !told.contains("no nodepools found") {
        assert!(up.child.try_wait().expect("it can be asked").is_none(), "it has ended: {told}");
        thread::sleep(Duration::from_millis(100));
        told = std::fs::read_to_string(&log).expect("the log is written");
    }
    let is_json = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line["level"].is_string())
    };
    assert!(told.lines().all(is_json), "{told}");
    let id = up.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    up.child.wait().expect("it ends");
    let rest: Vec<String> = up.lines.iter().collect();
    assert_eq!(rest.concat(), "");
}

#[test]
fn every_example_for_simulated_nodes_can_be_applied() {
    let names = ["nodepool", "inflate", "teams", "disruption", "static", "overlay", "buffer"];
    let file = temporary(&names.map(example).join("---\n"));
    let gates = "StaticCapacity=true,NodeOverlay=true,CapacityBuffer=true";
    let mut up = Up::start(&["-f", &file.path().display().to_string(), "--feature-gates", gates]);
    up.tells(&["launch", "static-"]);
}

#[test]
fn instance_types_that_cannot_be_used_are_an_error() {
    let (broken, empty) = (temporary("[{"), temporary("[]"));
    for (path, message) in [
        ("/nowhere/types.json".to_owned(), "reading --instance-types"),
        (broken.path().display().to_string(), "reading --instance-types"),
        (empty.path().display().to_string(), "the list of instance types is empty"),
    ] {
        let output =
            Command::new(KARPENTER).args(["up", "--instance-types", &path]).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(message) && error.contains(&path), "{error}");
    }
}
