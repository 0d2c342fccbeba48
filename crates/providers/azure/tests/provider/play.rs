//! A cluster, an Azure in the process, and the provider between them, in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use armdouble::{Double, Failure, Kind};
use azure::arm::{Client, Setup as ClientSetup};
use azure::auth::FixedToken;
use azure::provider::{Azure, Setup, discover};
use azure::settings::AzureSettings;
use cloud::{CloudProvider as _, Error, Instance};
use embedded::faults::Faulty;
use http::Method;
use operator::Parts;
use runtime::settings::{Command, Settings};
use serde_json::{Value, json};
use testkit::World;
use tokio::sync::watch;

pub(crate) const CLASSES: &str = "/apis/karpenter.azure.com/v1beta1/aksnodeclasses";
pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
pub(crate) const KUBELET: &str = "44444444-4444-4444-4444-444444444444";

/// How long the start may take: the liveness probe has no more patience.
const START: Duration = Duration::from_secs(10);

/// What is to be different.
#[derive(Default)]
pub(crate) struct Stage<'a> {
    pub(crate) arguments: &'a [&'a str],
    pub(crate) double: armdouble::Settings,
    /// What is different in Azure before the provider starts.
    pub(crate) prepare: Option<fn(&mut armdouble::World)>,
    /// What fails from the beginning.
    pub(crate) failures: Vec<Failure>,
    /// Whether pods are scheduled and machines become nodes.
    pub(crate) alive: bool,
}

pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) double: Double,
    pub(crate) azure: Azure,
    pub(crate) parts: Parts,
    /// What stands between the operator and the API server.
    pub(crate) faults: Faulty,
}

fn settings(double: &armdouble::Settings, more: &[&str]) -> (Settings, AzureSettings) {
    let identity = double.node_id("Microsoft.ManagedIdentity/userAssignedIdentities", "walk-agentpool");
    let usual = [
        format!("--cluster-name={}", double.cluster),
        "--cluster-endpoint=https://walk.hcp.southcentralus.azmk8s.io:443".to_owned(),
        "--kubelet-bootstrap-token=abcdef.0123456789abcdef".to_owned(),
        "--ssh-public-key=ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB walk".to_owned(),
        format!("--vnet-subnet-id={}", double.subnet_id()),
        format!("--node-resource-group={}", double.node_resource_group),
        format!("--node-identities={identity}"),
        format!("--kubelet-identity-client-id={KUBELET}"),
        "--network-policy=cilium".to_owned(),
    ];
    let arguments = usual.into_iter().chain(more.iter().map(|text| (*text).to_owned()));
    let settings = match Settings::parse(Provider::Azure, arguments, |_| None) {
        Ok(Command::Run(settings)) => *settings,
        other => panic!("{other:?}"),
    };
    let variable = |name: &str| match name {
        "AZURE_SUBSCRIPTION_ID" => Some(double.subscription.clone()),
        "AZURE_TENANT_ID" => Some(double.tenant.clone()),
        "LOCATION" => Some(double.location.clone()),
        "ARM_RESOURCE_GROUP" => Some(double.cluster_resource_group.clone()),
        "SYSTEM_NAMESPACE" => Some("kube-system".to_owned()),
        _ => None,
    };
    let of_azure = AzureSettings::new(&settings, variable, |_| Err("no file".to_owned())).unwrap();
    (settings, of_azure)
}

impl Play {
    /// An Azure with an AKS cluster and no nodes; the provider knows what there is.
    pub(crate) fn new() -> Self {
        Self::with(Stage::default())
    }

    pub(crate) fn with(stage: Stage<'_>) -> Self {
        let world = if stage.alive { World::new(1) } else { World::builder(1).without_scheduler().start() };
        for crd in api::crds::documents(Provider::Azure) {
            world.apply(&crd.document.to_string());
        }
        let (settings, of_azure) = settings(&stage.double, stage.arguments);
        let double = world.block_on(async { Double::with(world.clock(), stage.double) });
        if let Some(prepare) = stage.prepare {
            double.change(prepare);
        }
        for failure in stage.failures {
            double.fail(failure);
        }
        let faults = Faulty::new(world.server().service(), 1);
        let client = world.block_on(async { kube::Client::new(faults.clone(), "default") });
        let (parts, azure) = world.block_on(start(&world, client.clone(), &double, settings, of_azure));
        let mut play = Self { world, double, azure, parts, faults };
        if stage.alive {
            play.operate();
        } else {
            for kind in play.parts.settings.gates.kinds() {
                play.world.spawn(runtime::watch::watch(client.clone(), play.parts.cluster.clone(), kind));
            }
        }
        play.pass(1);
        play
    }

    /// Runs the whole operator, and lets machines become nodes.
    fn operate(&mut self) {
        let (parts, azure) = (self.parts.clone(), self.azure.clone());
        self.world.spawn(async move {
            let of_cloud = azure.controllers();
            let (_leads, leading) = watch::channel(true);
            operator::run(parts.context(Arc::new(azure)), of_cloud, leading).await;
        });
        self.world.spawn(join(self.parts.api.clone(), self.double.clone()));
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// Lets days pass in large steps: what is done every few minutes is done once in each of them.
    pub(crate) fn pass_days(&mut self, days: u32) {
        const STEP: Duration = Duration::from_hours(6);
        let end = self.world.now() + Duration::from_hours(24) * days;
        while self.world.now() < end {
            self.world.block_on(tokio::time::advance(STEP));
            self.pass(1);
        }
    }

    /// Starts the controllers of the provider with some names.
    pub(crate) fn start(&mut self, is_meant: impl Fn(&str) -> bool) {
        let (leads, leading) = watch::channel(true);
        let controllers = self.world.block_on(async { self.azure.controllers() });
        for controller in controllers.into_iter().filter(|controller| is_meant(controller.name)) {
            self.world.spawn(controller.run(leading.clone(), runtime::metrics::Registry::default()));
        }
        // It leads as long as the world lasts.
        std::mem::forget(leads);
    }

    /// A NodeClass, resolved by its controllers.
    pub(crate) fn ready_class(&mut self, spec: Value) {
        self.apply_class("default", &spec);
        self.start(|name| name.starts_with("nodeclass"));
        self.pass(10);
        let (status, _, message) = self.condition("default", "Ready");
        assert_eq!(status, "True", "{message}");
    }

    pub(crate) fn apply_class(&mut self, name: &str, spec: &Value) {
        let class = json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": name}, "spec": spec,
        });
        self.world.apply(&class.to_string());
    }

    /// Status, reason and message of a condition of a NodeClass.
    pub(crate) fn condition(&self, class: &str, kind: &str) -> (String, String, String) {
        let object = self.world.get(&format!("{CLASSES}/{class}")).unwrap();
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|each| each["type"] == kind).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// A claim of a NodePool that is in the cluster, with requirements as key, operator and values.
    pub(crate) fn claim(&mut self, name: &str, requirements: &[(&str, &str, &[&str])]) -> NodeClaim {
        self.world.apply(&claim(name, requirements).to_string());
        self.pass(1);
        serde_json::from_value(self.world.get(&format!("{CLAIMS}/{name}")).unwrap()).unwrap()
    }

    pub(crate) fn create(&self, claim: &NodeClaim) -> Result<Instance, Error> {
        self.world.block_on(self.azure.create(claim))
    }

    /// Writes what was launched on a claim, as the core does.
    pub(crate) fn launched(&mut self, name: &str, instance: &Instance) {
        let change = json!({"metadata": {
            "labels": instance.metadata.labels, "annotations": instance.metadata.annotations,
        }});
        self.world.patch(&format!("{CLAIMS}/{name}"), &change);
        let mut status = serde_json::to_value(&instance.status).unwrap();
        status["conditions"] = json!([{
            "type": "Launched", "status": "True", "reason": "Launched", "message": "",
            "lastTransitionTime": self.world.now(),
        }]);
        self.world.patch(&format!("{CLAIMS}/{name}/status"), &json!({"status": status}));
        self.pass(1);
    }

    /// The names of what was asked with a method about a kind.
    pub(crate) fn asked(&self, method: Method, kind: Kind) -> Vec<String> {
        self.double.requests_of(&method, kind).into_iter().map(|request| request.name).collect()
    }

    /// Sizes and zones of virtual machines that were asked for, in order.
    pub(crate) fn sizes_asked(&self) -> Vec<String> {
        let requests = self.double.requests_of(&Method::PUT, Kind::VirtualMachine);
        let size = |body: &Value| {
            let zone = body["zones"][0].as_str().unwrap_or("-");
            let size = body["properties"]["hardwareProfile"]["vmSize"].as_str().unwrap_or_default();
            let priority = body["properties"]["priority"].as_str().unwrap_or_default();
            format!("{size} {zone} {priority}")
        };
        requests.iter().map(|request| size(&request.body)).collect()
    }

    /// The reasons of events about an object, each once.
    pub(crate) fn told(&self, name: &str) -> BTreeSet<String> {
        let events = self.parts.events.published();
        let about = events.iter().filter(|event| &*event.about.name == name);
        about.map(|event| event.reason.to_string()).collect()
    }
}

async fn start(
    world: &World,
    kubernetes: kube::Client,
    double: &Double,
    settings: Settings,
    of_azure: AzureSettings,
) -> (Parts, Azure) {
    let parts = Parts::new(kubernetes, Provider::Azure, world.clock(), settings);
    let token = Arc::new(FixedToken::new("token"));
    let client = Client::new(ClientSetup {
        metrics: parts.metrics.clone(),
        clock: world.clock(),
        ..ClientSetup::new(Arc::new(double.clone()), token, &of_azure.subscription_id)
    });
    let (cluster_info, facts) =
        discover(&client, &parts.api, &of_azure, "Y2EtYnVuZGxl".to_owned()).await.unwrap();
    let azure = Azure::new(Setup {
        client,
        settings: of_azure,
        cluster_info,
        facts,
        api: parts.api.clone(),
        cluster: parts.cluster.clone(),
        clock: world.clock(),
        events: parts.events.clone(),
        metrics: parts.metrics.clone(),
        overlays: parts.overlays.clone(),
        seed: 1,
    });
    let started = tokio::time::timeout(START, azure.hydrate()).await;
    started.expect("the start waits for nothing that launches can do without").unwrap();
    (parts, azure)
}

/// Lets machines that are made become nodes.
async fn join(api: runtime::Api, double: Double) {
    let mut joined = BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        for machine in double.resources(Kind::VirtualMachine) {
            let name = machine["name"].as_str().unwrap_or_default().to_owned();
            let is_made = machine["properties"]["provisioningState"] == "Succeeded";
            if !is_made || !joined.insert(name.clone()) {
                continue;
            }
            let id = machine["id"].as_str().unwrap_or_default();
            let mut taints = vec![json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"})];
            if machine["tags"]["karpenter.sh_nodepool"] == "general-purpose" {
                taints.push(
                    json!({"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}),
                );
            }
            let (capacity, allocatable) = resources(&machine["properties"]["hardwareProfile"]["vmSize"]);
            let node = json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": {"providerID": azure::vm::provider_id(id), "taints": taints},
                "status": {
                    "capacity": capacity, "allocatable": allocatable,
                    "nodeInfo": {"kubeletVersion": "v1.36.3"},
                },
            });
            api.create::<cluster::objects::Node>("", &node).await.unwrap();
        }
    }
}

/// What a node of a size has, and what pods can use of it: four GiB for each processor.
fn resources(size: &Value) -> (Value, Value) {
    let digits = size.as_str().unwrap_or_default().chars().skip_while(|each| !each.is_ascii_digit());
    let cpus: i64 = digits.take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(2);
    let kept = azure::instance_type::KubeReserved::new(cpus, f64::from(i32::try_from(cpus * 4).unwrap()));
    let all = |millis: i64, mib: i64| json!({"cpu": format!("{millis}m"), "memory": format!("{mib}Mi"), "pods": "250", "ephemeral-storage": "128G"});
    let mib = cpus * 3700;
    (all(cpus * 1000, mib), all(cpus * 1000 - kept.cpu_millis, mib - kept.memory_mib - 750))
}

/// A claim of the NodePool `pool`.
pub(crate) fn claim(name: &str, requirements: &[(&str, &str, &[&str])]) -> Value {
    let requirements: Vec<Value> = requirements
        .iter()
        .map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}))
        .collect();
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "pool"}},
        "spec": {
            "requirements": requirements,
            "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
        },
    })
}

/// A NodePool of the NodeClass `default`.
pub(crate) fn pool(name: &str, requirements: &Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized"},
            "template": {"spec": {
                "requirements": requirements, "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
            }},
        },
    })
}
