//! What happens while requests are recorded: classes become ready, pods make claims, nodes come, and all goes again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::provider::Provider;
use e2e::tools::{self, Tool};
use e2e::{Component, ControlPlane, Made, Moto, Process, free_ports, poll};
use serde_json::{Value, json};

const CLUSTER: &str = "test-cluster";
const KUBERNETES: &str = "1.36";
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// What was seen.
pub(crate) struct Played {
    /// What there was at the start.
    pub(crate) made: Made,
    /// The images that there were at the end.
    pub(crate) images: Value,
    /// The claims as they were created.
    pub(crate) claims: Vec<Value>,
    /// The UID of each class.
    pub(crate) classes: BTreeMap<String, String>,
    /// All requests, in order.
    pub(crate) requests: Vec<Value>,
}

struct Play {
    plane: ControlPlane,
    moto: Moto,
    controller: Process,
}

pub(crate) fn play(folder: &Path, ours: Option<&Path>) -> Result<Played> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
    let (cluster, pods) = (read("cluster.yaml")?, read("pods.yaml")?);
    // The address of DNS must be one of the services.
    let range = "--service-cluster-ip-range=10.0.0.0/16";
    let plane = ControlPlane::builder().with_scheduler().arg(Component::ApiServer, range).start()?;
    for definition in api::crds::documents(Provider::Aws) {
        apply(&plane, &definition.document.to_string())?;
    }
    plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
    let dns = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"clusterIP": "10.0.100.10", "ports": [{"port": 53, "protocol": "UDP"}]},
    });
    apply(&plane, &dns.to_string())?;
    apply(&plane, &cluster)?;
    let moto = Moto::start(CLUSTER, KUBERNETES)?;
    let controller = start(&plane, &moto, ours)?;
    let mut play = Play { plane, moto, controller };
    say("classes become ready");
    play.until("all classes to be ready", |play| {
        let classes = play.list("ec2nodeclasses")?;
        Ok(!classes.is_empty() && classes.iter().all(|class| is_true(class, "Ready")))
    })?;
    let classes = play.list("ec2nodeclasses")?;
    let classes = classes.iter().map(|class| (name(class), text(class, "/metadata/uid"))).collect();

    say("pods make claims");
    let wanted = pods.matches("kind: Pod").count();
    let watch = play.watch_claims()?;
    apply(&play.plane, &pods)?;
    play.until("a claim for each pod to be launched", |play| {
        let claims = play.list("nodeclaims")?;
        let launched = claims.iter().filter(|claim| is_true(claim, "Launched")).count();
        Ok(launched == wanted)
    })?;
    let claims = first_seen(&watch.log()?)?;
    ensure!(claims.len() == wanted, "there are {} claims for {wanted} pods", claims.len());

    say("nodes come");
    play.join_nodes()?;
    play.until("all instances to be tagged", |play| {
        let instances = play.moto.instances()?;
        Ok(instances.iter().all(|each| each["tags"]["karpenter.sh/nodeclaim"].is_string()))
    })?;

    say("an interruption comes, and all goes");
    // First, so that nothing is launched for them again.
    play.plane.kubectl(&["delete", "pods", "--all", "--grace-period=0", "--force"])?;
    play.interrupt()?;
    play.plane.kubectl(&["delete", "nodepools", "--all", "--wait=false"])?;
    play.plane.kubectl(&["delete", "nodeclaims", "--all", "--wait=false"])?;
    play.until("all claims to be gone", |play| Ok(play.list("nodeclaims")?.is_empty()))?;
    play.plane.kubectl(&["delete", "ec2nodeclasses", "--all", "--wait=false"])?;
    play.until("all classes to be gone", |play| Ok(play.list("ec2nodeclasses")?.is_empty()))?;
    let images = play.moto.state()?["images"].take();
    let requests = play.moto.requests()?;
    Ok(Played { made: play.moto.made().clone(), images, claims, classes, requests })
}

/// Starts the original, or our own program.
fn start(plane: &ControlPlane, moto: &Moto, ours: Option<&Path>) -> Result<Process> {
    let [metrics, health] = free_ports()?.map(|port| port.to_string());
    let aws = moto.environment();
    let mut environment: Vec<(&str, &str)> = aws.iter().map(|(key, value)| (*key, value.as_str())).collect();
    environment.extend([
        ("METRICS_PORT", &*metrics),
        ("HEALTH_PROBE_PORT", &*health),
        ("SYSTEM_NAMESPACE", "kube-system"),
        ("KARPENTER_SERVICE", "karpenter"),
        ("DISABLE_LEADER_ELECTION", "true"),
        ("CLUSTER_NAME", CLUSTER),
        // As in the tests that use the recordings.
        ("CLUSTER_ENDPOINT", "https://test-cluster"),
        ("CLUSTER_CA_BUNDLE", "Y2EtYnVuZGxl"),
        ("INTERRUPTION_QUEUE", &moto.made().queue),
    ]);
    match ours {
        Some(program) => plane.run("ours", program, &["controller", "--provider", "aws"], &environment),
        None => plane.run("upstream-aws", &tools::path(Tool::UpstreamAws)?, &[], &environment),
    }
}

impl Play {
    fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let answer: Value = serde_json::from_str(&self.plane.kubectl(&["get", kind, "-o", "json"])?)?;
        Ok(answer["items"].as_array().cloned().unwrap_or_default())
    }

    fn until(&mut self, what: &str, check: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        let waited = poll(what, PATIENCE, || Ok(check(self)?.then_some(())));
        if waited.is_err() || self.controller.exit_status()?.is_some() {
            let objects = self.plane.kubectl(&["get", "ec2nodeclasses,nodeclaims,pods", "-o", "yaml"])?;
            anyhow::bail!("{waited:?}\n{objects}\n{}", self.controller.log()?);
        }
        Ok(())
    }

    /// Writes down every claim as it is created.
    fn watch_claims(&self) -> Result<Process> {
        let arguments = ["get", "nodeclaims", "--watch", "--output-watch-events", "-o", "json"];
        self.plane.run("claims", &tools::path(Tool::Kubectl)?, &arguments, &[])
    }

    /// A Node for each instance, as its kubelet would make it.
    fn join_nodes(&self) -> Result<()> {
        for instance in self.moto.instances()? {
            let get = |field: &str| instance[field].as_str().unwrap_or_default().to_owned();
            let node = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": get("privateDnsName")},
                "spec": {
                    "providerID": format!("aws:///{}/{}", get("zone"), get("id")),
                    "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
                },
            });
            apply(&self.plane, &node.to_string())?;
        }
        Ok(())
    }

    /// Spot takes one instance back.
    fn interrupt(&mut self) -> Result<()> {
        let instances = self.moto.instances()?;
        let spot = instances.iter().find(|each| each["spotRequest"].is_string()).context("none is spot")?;
        let id = spot["id"].clone();
        self.moto.send(&json!({
            "version": "0", "id": "1", "detail-type": "EC2 Spot Instance Interruption Warning",
            "source": "aws.ec2", "account": "123456789012", "time": "2026-01-01T00:00:00Z", "region": "us-east-1",
            "resources": [], "detail": {"instance-id": id, "instance-action": "terminate"},
        }))?;
        self.until("the interrupted instance to go", |play| {
            Ok(play.moto.instances()?.iter().all(|each| each["id"] != id))
        })
    }
}

fn say(what: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{what} ...");
}

fn apply(plane: &ControlPlane, manifest: &str) -> Result<()> {
    plane.kubectl_with_input(&["apply", "--server-side", "--filename=-"], manifest).map(drop)
}

/// The claims of a log of watch events, each as it was at first.
fn first_seen(log: &str) -> Result<Vec<Value>> {
    let mut claims: BTreeMap<String, Value> = BTreeMap::new();
    for event in serde_json::Deserializer::from_str(log).into_iter::<Value>() {
        let mut event = event?;
        claims.entry(name(&event["object"])).or_insert_with(|| event["object"].take());
    }
    Ok(claims.into_values().collect())
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_true(object: &Value, condition: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|each| each["type"] == condition && each["status"] == "True"))
}
