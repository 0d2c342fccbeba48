//! `karpenter configure` and `karpenter doctor` as administrators run them, and how the controller starts: with an Azure
//! that listens, and a cluster.

#![cfg(feature = "azure")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use armdouble::{Double, Settings};
use clock::Clock;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const KARPENTER: &str = env!("CARGO_BIN_EXE_karpenter");
/// A token by which nodes join.
const TOKEN: &str = "
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-abcdef, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-authentication: \"true\"}
";

/// An Azure, a cluster, and a place to write to.
struct World {
    home: TempDir,
    double: Double,
    url: String,
    subscription: String,
    cluster: Child,
    _runtime: Runtime,
}

impl World {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let settings = Settings::named("walk", "southcentralus");
        let subscription = settings.subscription.clone();
        let double = {
            let _inside = runtime.enter();
            Double::with(Clock::system(), settings)
        };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(double.clone().serve(listener));
        let home = tempfile::tempdir().unwrap();
        let described = format!(
            r#"{{"name": "Ours", "resourceManagerEndpoint": "{url}", "activeDirectoryEndpoint": "{url}",
            "tokenAudience": "https://management.azure.com/"}}"#
        );
        std::fs::write(home.path().join("cloud.json"), described).unwrap();
        std::fs::write(home.path().join("token.yaml"), TOKEN).unwrap();
        let cluster = up(home.path());
        Self { home, double, url, subscription, cluster, _runtime: runtime }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let home = self.home.path();
        let mut command = Command::new(KARPENTER);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", home)
            .env("AZURE_ENVIRONMENT_FILEPATH", home.join("cloud.json"))
            // The official library asks for tokens without TLS only where the machine itself gives them out.
            .env("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
            .env("IDENTITY_ENDPOINT", format!("{}/metadata/identity/oauth2/token", self.url))
            .env("IDENTITY_HEADER", "loopback")
            .env("AZURE_SUBSCRIPTION_ID", &self.subscription)
            .env("KUBECONFIG", home.join("kubeconfig"))
            .current_dir(home);
        command
    }

    /// What it prints when all is well.
    #[track_caller]
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Nothing to be done if it has ended already.
        let _ = self.cluster.kill();
        let _ = self.cluster.wait();
    }
}

/// A cluster with a token for nodes; it is there when this returns.
fn up(home: &Path) -> Child {
    let mut child = Command::new(KARPENTER)
        .arg("up")
        .args(["--file", "token.yaml", "--kubeconfig", "kubeconfig"])
        .current_dir(home)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let greeting = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(greeting.into_iter().any(|line| line.contains("kubectl get pods")), "it does not start");
    child
}

const CONFIGURE: [&str; 7] =
    ["configure", "--provider", "azure", "walk", "walk", "karpenter-sa", "karpentermsi"];
const DOCTOR: [&str; 7] =
    ["doctor", "--provider", "azure", "--cluster-name", "walk", "--resource-group", "walk"];

#[test]
fn values_are_written_for_their_owner_alone_and_a_doctor_finds_what_is_missing() {
    let world = World::new();
    let file = world.home.path().join("karpenter-values.yaml");

    // The kubeconfig is of another cluster than the one that Azure knows.
    let refused = world.run(&CONFIGURE);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: the kubeconfig is of the API server \"127.0.0.1\""), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(!file.exists());

    // Somebody may have left one that everybody can read.
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let endpoint = ["--cluster-endpoint", "https://walk.example:443"];
    let said = world.said(&[&CONFIGURE[..], &endpoint].concat());
    assert!(said.starts_with("karpenter-values.yaml is written"), "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let values = std::fs::read_to_string(&file).unwrap();
    for line in [
        "value: \"abcdef.0123456789abcdef\"",
        "value: \"https://walk.example:443\"",
        "value: \"MC_walk_walk_southcentralus\"",
    ] {
        assert!(values.contains(line), "{line} is not in {values}");
    }
    assert!(!values.contains("ARM_CLOUD"), "nobody knows it by its name: {values}");

    let subnet = world.run(&[&CONFIGURE[..], &endpoint, &["--vnet-subnet-id", "foo"]].concat());
    let text = String::from_utf8(subnet.stderr).unwrap();
    assert!(
        text.starts_with(
            "error: the subnet of the nodes, invalid subnet ID \"foo\", expected /subscriptions/"
        ),
        "{text}"
    );

    let report = world.said(&DOCTOR);
    assert!(report.starts_with("Azure, region southcentralus, cluster walk\n"), "{report}");
    assert!(
        report.contains("✓ permissions for machines in resource group MC_walk_walk_southcentralus"),
        "{report}"
    );
    assert!(report.contains("! definitions: the cluster does not know AKSNodeClasses"), "{report}");
    assert!(report.contains("bootstrap token"), "{report}");

    let family = "standardDSv3Family";
    world.double.change(|azure| {
        azure.quota.limit(family, 0);
        let subnet = azure.settings.subnet_id();
        azure.remove(&subnet);
    });
    let sick = world.run(&DOCTOR);
    assert_eq!(sick.status.code(), Some(1), "{sick:?}");
    let report = String::from_utf8(sick.stdout).unwrap();
    assert!(report.contains("✗ subnet aks-subnet"), "{report}");
}

/// What a page says: the status of the answer, if there is any.
fn status(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split(' ').nth(1).map(str::to_owned)
}

/// A port that nobody has now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

// azure.md 20: the liveness probe does not wait for definitions, nor for Azure
#[test]
fn a_controller_that_still_waits_is_alive_and_not_ready() {
    let world = World::new();
    let (health, metrics) = (free_port(), free_port());
    let subnet = world.double.change(|azure| azure.settings.subnet_id());
    let mut controller = world
        .command(&["controller", "--provider", "azure", "--disable-leader-election", "--cluster-name=walk"])
        .arg("--cluster-endpoint=https://walk.example:443")
        .arg("--kubelet-bootstrap-token=abcdef.0123456789abcdef")
        .arg("--ssh-public-key=ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB walk")
        .arg("--node-resource-group=MC_walk_walk_southcentralus")
        .arg(format!("--vnet-subnet-id={subnet}"))
        .arg(format!("--health-probe-port={health}"))
        .arg(format!("--metrics-port={metrics}"))
        .env("LOCATION", "southcentralus")
        .env("ARM_RESOURCE_GROUP", "walk")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // A minute, for a busy machine.
    let alive = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        status(health, "/healthz")
    });
    let ready = status(health, "/readyz");
    let is_running = controller.try_wait().unwrap().is_none();
    let _ = controller.kill();
    let _ = controller.wait();
    assert!(is_running, "it waits for the definitions of AKSNodeClasses");
    assert_eq!(alive.as_deref(), Some("200"));
    assert_eq!(ready.as_deref(), Some("500"));
}
