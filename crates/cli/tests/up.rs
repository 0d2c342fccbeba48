//! `karpenter up`: what it prints, what it serves, and that it leaves nothing behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

const KARPENTER: &str = env!("CARGO_BIN_EXE_karpenter");

/// A running cluster; killed if the test fails.
struct Up {
    child: Child,
    kubeconfig: PathBuf,
    greeting: String,
}

impl Up {
    fn start(args: &[&str]) -> Self {
        let mut child =
            Command::new(KARPENTER).arg("up").args(args).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut greeting = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        while !greeting.contains("kubectl get pods") {
            let line = lines.next().expect("the greeting is complete").expect("it is text");
            greeting = greeting + &line + "\n";
        }
        let line = greeting.lines().find(|line| line.contains("kubeconfig")).expect("the kubeconfig");
        let kubeconfig = line.split_whitespace().last().expect("a path").into();
        Self { child, kubeconfig, greeting }
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

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) -> (Option<i32>, PathBuf) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
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
    let (code, kubeconfig) = up.interrupt();
    assert_eq!(code, Some(0));
    assert!(!kubeconfig.exists() && !kubeconfig.parent().expect("a directory").exists());
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
    for step in ["Five pods wait", "One node is launched", "All five pods run", "The node is gone"] {
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
        ("StaticCapacity=perhaps", "invalid value of StaticCapacity: perhaps"),
    ] {
        let output =
            Command::new(KARPENTER).args(["up", "--feature-gates", gates]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(message), "{text}");
    }
}
