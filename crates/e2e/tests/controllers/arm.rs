//! Azure on loopback: the double over HTTP, and machines that do what they are told when they start.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use anyhow::Result;
use armdouble::{Double, Settings};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clock::Clock;
use e2e::ControlPlane;
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The client of the kubelet's identity.
pub(crate) const KUBELET: &str = "44444444-4444-4444-4444-444444444444";
/// By which nodes join.
pub(crate) const TOKEN: &str = "abcdef.0123456789abcdef";
/// Who may log in to nodes.
pub(crate) const KEY: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB walk";

/// An Azure that listens.
pub(crate) struct Arm {
    pub(crate) double: Double,
    pub(crate) settings: Settings,
    url: String,
    /// Where the cloud is described.
    cloud: NamedTempFile,
}

impl Arm {
    /// Starts an Azure with an AKS cluster and no nodes.
    pub(crate) fn start(runtime: &Runtime) -> Result<Self> {
        let mut settings = Settings::named("walk", "southcentralus");
        settings.set_every_lro(|lro| {
            lro.takes = Duration::from_millis(300);
            lro.retry_after = Some(Duration::from_secs(1));
        });
        let double = Double::with(Clock::system(), settings.clone());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let url = format!("http://{}", listener.local_addr()?);
        runtime.spawn(double.clone().serve(listener));
        let cloud = NamedTempFile::new()?;
        // By its name it is the cloud whose machines AKS bills; by its address its prices are not published.
        let described = json!({
            "name": "AzurePublicCloud", "resourceManagerEndpoint": url, "activeDirectoryEndpoint": url,
            "tokenAudience": "https://management.azure.com/",
        });
        std::fs::write(cloud.path(), described.to_string())?;
        Ok(Self { double, settings, url, cloud })
    }

    /// The identity of the nodes.
    pub(crate) fn identity(&self) -> String {
        self.settings.node_id("Microsoft.ManagedIdentity/userAssignedIdentities", "walk-agentpool")
    }

    /// What tells the controller to use it and nothing else, and what the values of its chart would say.
    pub(crate) fn environment(&self, plane: &ControlPlane) -> Vec<(&'static str, String)> {
        let text = str::to_owned;
        let settings = &self.settings;
        vec![
            ("AZURE_ENVIRONMENT_FILEPATH", self.cloud.path().display().to_string()),
            // The official library asks for tokens without TLS only where the machine itself gives them out.
            ("AZURE_TOKEN_CREDENTIALS", text("ManagedIdentityCredential")),
            ("IDENTITY_ENDPOINT", format!("{}/metadata/identity/oauth2/token", self.url)),
            ("IDENTITY_HEADER", text("loopback")),
            // Some machines that tests run on know no certificates at all.
            ("SSL_CERT_FILE", plane.kubeconfig_path().with_file_name("ca.crt").display().to_string()),
            ("AZURE_SUBSCRIPTION_ID", settings.subscription.clone()),
            ("AZURE_TENANT_ID", settings.tenant.clone()),
            ("LOCATION", settings.location.clone()),
            ("ARM_RESOURCE_GROUP", settings.cluster_resource_group.clone()),
            ("AZURE_NODE_RESOURCE_GROUP", settings.node_resource_group.clone()),
            ("CLUSTER_NAME", settings.cluster.clone()),
            ("CLUSTER_ENDPOINT", text("https://walk-12345678.hcp.southcentralus.azmk8s.io:443")),
            ("KUBELET_BOOTSTRAP_TOKEN", text(TOKEN)),
            ("SSH_PUBLIC_KEY", text(KEY)),
            ("VNET_SUBNET_ID", settings.subnet_id()),
            ("NODE_IDENTITIES", self.identity()),
            ("KUBELET_IDENTITY_CLIENT_ID", text(KUBELET)),
            ("NETWORK_POLICY", text("cilium")),
            ("ADDITIONAL_TAGS", text("team=walkers")),
        ]
    }

    /// By which Kubernetes knows a resource.
    pub(crate) fn provider_id(&self, id: &str) -> String {
        let group = &self.settings.node_resource_group;
        format!("azure://{}", id.replace(group, &group.to_ascii_lowercase()))
    }

    /// The Node as which the kubelet of a machine registers: it has what the machine has, less what it is told to keep.
    pub(crate) fn node(&self, machine: &Value) -> Value {
        let script = Script::of(machine);
        let labels = script.labels();
        let number = |key: &str| labels.get(key).and_then(Value::as_str).map_or(0, amount);
        // The machine itself needs some of its memory before anybody can use it.
        let (cpu, memory) = (
            number("karpenter.azure.com/sku-cpu") * 1000,
            number("karpenter.azure.com/sku-memory") * 95 / 100,
        );
        let (kept_cpu, kept_memory) = script.kept();
        let has = |cpu: u64, memory: u64| {
            json!({
                "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "ephemeral-storage": "120Gi",
                "pods": script.flag("max-pods"),
            })
        };
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": machine["properties"]["osProfile"]["computerName"], "labels": labels,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {
                "providerID": self.provider_id(machine["id"].as_str().unwrap()), "taints": script.taints(),
            },
            "status": {
                "capacity": has(cpu, memory),
                "allocatable": has(cpu.saturating_sub(kept_cpu), memory.saturating_sub(kept_memory)),
                "nodeInfo": {"kubeletVersion": format!("v{}", script.variable("KUBERNETES_VERSION"))},
            },
        })
    }
}

/// What a machine is told to do when it starts.
pub(crate) struct Script(String);

impl Script {
    /// The script of a machine, or of the request for one.
    pub(crate) fn of(machine: &Value) -> Self {
        let data = machine["properties"]["osProfile"]["customData"].as_str().unwrap();
        Self(String::from_utf8(BASE64_STANDARD.decode(data).unwrap()).unwrap())
    }

    /// A variable, without its quotes.
    pub(crate) fn variable(&self, name: &str) -> &str {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches('"')
    }

    /// A flag of the kubelet.
    pub(crate) fn flag(&self, name: &str) -> &str {
        let mut all = self.variable("KUBELET_FLAGS").split(' ');
        let value = all.find_map(|flag| flag.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default()
    }

    fn labels(&self) -> Map<String, Value> {
        let pairs = self.variable("KUBELET_NODE_LABELS").split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect()
    }

    fn taints(&self) -> Vec<Value> {
        let all = self.flag("register-with-taints").split(',').filter_map(|taint| taint.rsplit_once(':'));
        all.map(|(taint, effect)| match taint.split_once('=') {
            Some((key, value)) => json!({"key": key, "value": value, "effect": effect}),
            None => json!({"key": taint, "effect": effect}),
        })
        .collect()
    }

    /// Thousandths of processors and mebibytes that pods do not get.
    fn kept(&self) -> (u64, u64) {
        let of = |name: &str| {
            let mut all = self.flag("kube-reserved").split(',').filter_map(|pair| pair.split_once('='));
            all.find_map(|(key, value)| (key == name).then(|| amount(value))).unwrap()
        };
        let evicts = self.flag("eviction-hard").split_once('<').map_or(0, |(_, value)| amount(value));
        (of("cpu"), of("memory") + evicts)
    }
}

/// A number, whatever its unit.
fn amount(text: &str) -> u64 {
    text.trim_end_matches(char::is_alphabetic).parse().unwrap()
}
