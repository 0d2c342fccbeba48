//! Our controller with the real SDK on a real control plane, with moto as AWS and played machines.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use api::provider::Provider;
use e2e::{Component, ControlPlane, Moto, Process, free_ports, poll};
use serde_json::{Value, json};

use crate::aws_doctor::Doctor;
use crate::ours::ours;
use crate::real::{Machines, Real};
use crate::smoke::Smoke;

const CLUSTER: &str = "walk";
const CLUSTER_FILE: &str = include_str!("aws.yaml");
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

struct Walk {
    real: Real,
    moto: Moto,
    _controller: Process,
}

impl Walk {
    fn start() -> Result<Self> {
        let range = "--service-cluster-ip-range=10.0.0.0/16";
        let builder = ControlPlane::builder().arg(Component::ApiServer, range);
        let real = Real::start_for(Provider::Aws, builder, Machines::Simulator)?;
        real.apply(CLUSTER_FILE);
        let moto = Moto::start(CLUSTER, "1.36")?;
        let [metrics, health] = free_ports()?.map(|port| port.to_string());
        let aws = moto.environment();
        let mut environment: Vec<(&str, &str)> =
            aws.iter().map(|(key, value)| (*key, value.as_str())).collect();
        environment.extend([
            ("METRICS_PORT", &*metrics),
            ("HEALTH_PROBE_PORT", &*health),
            ("SYSTEM_NAMESPACE", "kube-system"),
            ("DISABLE_LEADER_ELECTION", "true"),
            ("CLUSTER_NAME", CLUSTER),
            ("CLUSTER_ENDPOINT", "https://walk.example"),
            ("INTERRUPTION_QUEUE", &moto.made().queue),
            ("LOG_LEVEL", "debug"),
        ]);
        let arguments = ["controller", "--provider", "aws"];
        let controller = real.plane.run("ours-aws", &ours()?, &arguments, &environment)?;
        Ok(Self { real, moto, _controller: controller })
    }

    fn list(&self, kind: &str) -> Vec<Value> {
        let text = self.real.plane.kubectl(&["get", kind, "-A", "-o", "json"]).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for something, while machines that were launched come up.
    #[track_caller]
    fn until(&self, what: &str, check: impl Fn(&Self) -> bool) {
        let waited = poll(what, PATIENCE, || {
            self.boot();
            Ok(check(self).then_some(()))
        });
        if let Err(error) = waited {
            let kinds = "ec2nodeclasses,nodeclaims,nodes,pods";
            panic!("{error:#}\n{}", self.real.plane.kubectl(&["get", kinds, "-A", "-o", "yaml"]).unwrap());
        }
    }

    /// What a machine does when it starts: its kubelet registers a Node with what the user data says.
    fn boot(&self) {
        let known: BTreeSet<String> =
            self.list("nodes").iter().map(|node| text(node, "/spec/providerID")).collect();
        for instance in self.moto.instances().unwrap() {
            let get = |field: &str| instance[field].as_str().unwrap_or_default();
            let provider_id = format!("aws:///{}/{}", get("zone"), get("id"));
            if known.contains(&provider_id) {
                continue;
            }
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {
                    "name": get("privateDnsName"), "labels": labels(get("userData")),
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
                "spec": {
                    "providerID": provider_id,
                    "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
                },
            });
            self.real.apply(&node.to_string());
        }
    }

    fn running(&self) -> usize {
        self.list("pods").iter().filter(|pod| pod["status"]["phase"] == "Running").count()
    }

    fn scale(&self, replicas: usize) {
        let replicas = format!("--replicas={replicas}");
        self.real.plane.kubectl(&["scale", "deployment", "inflate", &replicas]).unwrap();
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The labels that user data tells the kubelet.
fn labels(user_data: &str) -> Value {
    let listed = user_data.split("--node-labels=\"").nth(1).and_then(|rest| rest.split('"').next());
    let pairs = listed.unwrap_or_default().split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

fn is_true(object: &Value, condition: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|each| each["type"] == condition && each["status"] == "True"))
}

/// What the controller can do, the doctor finds to be well, with the class and an instance of it to try things on.
fn look_over(walk: &Walk) {
    let before = walk.moto.state().unwrap();
    let kubeconfig = walk.real.plane.kubeconfig_path().display().to_string();
    let arguments = ["--cluster-name", CLUSTER, "--interruption-queue", &walk.moto.made().queue];
    let doctor =
        Doctor { moto: &walk.moto, kubeconfig: &kubeconfig, arguments: &arguments, environment: &[] };
    let (code, report) = doctor.report();
    assert_eq!(report.of_level("bad"), Vec::<String>::new());
    assert_eq!(code, Some(0));
    report.has("good", "policy node-lifecycle: ");
    for what in ["subnets", "security groups", "images", "instance profile", "conditions"] {
        report.has("good", &format!("EC2NodeClass default, {what}: "));
    }
    let after = walk.moto.state().unwrap();
    for kind in ["launchTemplates", "instanceProfiles"] {
        assert_eq!(after[kind], before[kind], "nothing is changed");
    }
}

#[test]
fn a_deployment_gets_instances_that_are_as_the_class_says_and_nothing_is_left_of_them() {
    let walk = Walk::start().unwrap();
    let made = walk.moto.made().clone();
    let before = walk.moto.state().unwrap();
    walk.until("the class to be ready", |walk| {
        walk.list("ec2nodeclasses").iter().all(|class| is_true(class, "Ready"))
    });

    walk.scale(3);
    walk.until("three pods to run", |walk| walk.running() == 3);
    walk.until("all instances to be tagged", |walk| {
        let instances = walk.moto.instances().unwrap();
        instances.iter().all(|each| each["tags"]["karpenter.sh/nodeclaim"].is_string())
    });
    let profile = text(&walk.list("ec2nodeclasses")[0], "/status/instanceProfile");
    let groups: BTreeSet<&str> = made.security_groups.iter().map(|group| group.id.as_str()).collect();
    let instances = walk.moto.instances().unwrap();
    assert!(!instances.is_empty());
    for instance in &instances {
        let expected = [
            ("kubernetes.io/cluster/walk", "owned"),
            ("eks:eks-cluster-name", "walk"),
            ("karpenter.sh/nodepool", "default"),
            ("karpenter.k8s.aws/ec2nodeclass", "default"),
            ("team", "walkers"),
        ];
        for (key, value) in expected {
            assert_eq!(instance["tags"][key], value, "{instance:#}");
        }
        assert_eq!(instance["tags"]["Name"], instance["privateDnsName"]);
        assert!(instance["tags"]["aws:ec2launchtemplate:id"].is_string());
        let of_subnet = made.subnets.iter().find(|subnet| instance["subnet"] == subnet.id);
        assert_eq!(instance["zone"], of_subnet.unwrap().zone);
        let has: BTreeSet<&str> =
            instance["securityGroups"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(has, groups);
        assert!(text(instance, "/profile").ends_with(&format!("/{profile}")), "{instance:#}");
        assert!(instance["spotRequest"].is_string(), "spot is the cheapest");
    }

    look_over(&walk);

    let taken = instances[0]["id"].clone();
    walk.moto
        .send(&json!({
            "version": "0", "id": "1", "detail-type": "EC2 Spot Instance Interruption Warning",
            "source": "aws.ec2", "account": "123456789012", "time": "2026-01-01T00:00:00Z", "region": "us-east-1",
            "resources": [], "detail": {"instance-id": taken, "instance-action": "terminate"},
        }))
        .unwrap();
    walk.until("the interrupted instance to go and its pods to run elsewhere", |walk| {
        let instances = walk.moto.instances().unwrap();
        instances.iter().all(|each| each["id"] != taken) && walk.running() == 3
    });

    let smoke = Smoke::start(&walk.real, "aws", "default", &walk.moto.environment());
    walk.until("the smoke test to end", |_| smoke.has_ended());
    smoke.has_passed();

    walk.scale(0);
    walk.real.plane.kubectl(&["delete", "nodepools", "--all", "--wait=false"]).unwrap();
    walk.until("all claims to be gone", |walk| walk.list("nodeclaims").is_empty());
    walk.real.plane.kubectl(&["delete", "ec2nodeclasses", "--all", "--wait=false"]).unwrap();
    walk.until("the class to be gone", |walk| walk.list("ec2nodeclasses").is_empty());
    let after = walk.moto.state().unwrap();
    assert_eq!(walk.moto.instances().unwrap(), Vec::<Value>::new());
    for kind in ["launchTemplates", "instanceProfiles"] {
        assert_eq!(after[kind], before[kind]);
    }
}
