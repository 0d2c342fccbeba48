//! Our controller on a real control plane, with the double as Azure over HTTP and played machines: the walk-through of
//! the provider's README.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use api::provider::Provider;
use armdouble::{Kind, Recorded};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use e2e::{ControlPlane, Process, free_ports, poll, understood_by_azure_types, valid_to_oav};
use http::Method;
use serde_json::{Value, json};
use testkit::stage::is_true;

use crate::arm::{Arm, KEY, KUBELET, Script, TOKEN};
use crate::ours::ours;
use crate::real::{Machines, Real};
use crate::smoke::Smoke;

/// NodePool and AKSNodeClass as the README has them.
pub(crate) const POOL: &str = include_str!("../../../../examples/azure/nodepool.yaml");
const CLUSTER_FILE: &str = include_str!("azure.yaml");
/// Tells that the agent of the network is not there yet.
const CILIUM: &str = "node.cilium.io/agent-not-ready";
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) struct Walk {
    // It ends before what it talks to.
    pub(crate) controller: Option<Process>,
    pub(crate) real: Real,
    pub(crate) arm: Arm,
    /// The machines that came up; none does twice.
    pub(crate) booted: RefCell<BTreeSet<String>>,
}

impl Walk {
    /// A cluster and an Azure, and nothing between them.
    pub(crate) fn new() -> Result<Self> {
        let real = Real::start_for(Provider::Azure, ControlPlane::builder(), Machines::Simulator)?;
        let arm = Arm::start(&real.runtime)?;
        Ok(Self { controller: None, real, arm, booted: RefCell::default() })
    }

    pub(crate) fn start_controller(&mut self) -> Result<()> {
        let [metrics, health] = free_ports()?.map(|port| port.to_string());
        let azure = self.arm.environment(&self.real.plane);
        let mut environment: Vec<(&str, &str)> =
            azure.iter().map(|(key, value)| (*key, value.as_str())).collect();
        environment.extend([
            ("METRICS_PORT", &*metrics),
            ("HEALTH_PROBE_PORT", &*health),
            ("SYSTEM_NAMESPACE", "kube-system"),
            ("DISABLE_LEADER_ELECTION", "true"),
            ("LOG_LEVEL", "debug"),
        ]);
        let arguments = ["controller", "--provider", "azure"];
        self.controller = Some(self.real.plane.run("ours-azure", &ours()?, &arguments, &environment)?);
        Ok(())
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.real.plane.kubectl(arguments).unwrap()
    }

    pub(crate) fn list(&self, kind: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.kubectl(&["get", kind, "-A", "-o", "json"])).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for something, while machines that were made come up.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, check: impl Fn(&Self) -> bool) {
        let waited = poll(what, PATIENCE, || {
            self.boot();
            self.start_network();
            Ok(check(self).then_some(()))
        });
        if let Err(error) = waited {
            let kinds = "aksnodeclasses,nodepools,nodeclaims,nodes,pods";
            let log = self.controller.as_ref().and_then(|controller| controller.log().ok());
            let log = log.unwrap_or_default();
            // What happened last says why nothing happens any more.
            let last: Vec<&str> = log.lines().rev().take(20).collect();
            panic!("{error:#}\n{}\n{}", self.kubectl(&["get", kinds, "-A", "-o", "yaml"]), last.join("\n"));
        }
    }

    /// What a machine does when it starts: its kubelet registers a Node as the custom data says.
    fn boot(&self) {
        for machine in self.arm.double.resources(Kind::VirtualMachine) {
            let is_made = machine["properties"]["provisioningState"] == "Succeeded";
            if is_made && self.booted.borrow_mut().insert(text(&machine, "/name")) {
                self.real.apply(&self.arm.node(&machine).to_string());
            }
        }
    }

    /// What the agent of the network does on every node.
    fn start_network(&self) {
        for node in self.list("nodes") {
            let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let is_registered = node["metadata"]["labels"]["karpenter.sh/registered"] == "true";
            if is_registered && taints.iter().any(|taint| taint["key"] == CILIUM) {
                let (name, taint) = (text(&node, "/metadata/name"), format!("{CILIUM}-"));
                // A node that somebody else changes at the same time is looked at again.
                let _ = self.real.plane.kubectl(&["taint", "node", &name, &taint]);
            }
        }
    }

    fn running(&self) -> usize {
        self.list("pods").iter().filter(|pod| pod["status"]["phase"] == "Running").count()
    }

    /// The names of all that there is of a kind of Azure.
    fn names(&self, kind: Kind) -> BTreeSet<String> {
        self.arm.double.names(kind).into_iter().collect()
    }

    /// Everything that was asked for of a kind.
    fn puts(&self, kind: Kind) -> Vec<Recorded> {
        self.arm.double.requests_of(&Method::PUT, kind)
    }

    /// The tags of everything that is made.
    pub(crate) fn tags() -> Value {
        json!({
            "team": "walkers", "karpenter.azure.com_cluster": "walk", "compute.aks.billing": "linux",
            "karpenter.sh_nodepool": "general-purpose",
        })
    }

    // azure.md 10.3
    fn check_interface(&self, asked: &Recorded) {
        let settings = &self.arm.settings;
        let pool = |balancer: &str, pool: &str| {
            let balancer = settings.node_id("Microsoft.Network/loadBalancers", balancer);
            json!({"id": format!("{balancer}/backendAddressPools/{pool}")})
        };
        let properties = &asked.body["properties"];
        assert!(properties["enableAcceleratedNetworking"].is_boolean(), "{:#}", asked.body);
        let expected = json!({
            "location": settings.location, "tags": Self::tags(),
            "properties": {
                "enableAcceleratedNetworking": properties["enableAcceleratedNetworking"], "enableIPForwarding": false,
                "ipConfigurations": [{"name": asked.name, "properties": {
                    "primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": settings.subnet_id()},
                    "loadBalancerBackendAddressPools": [
                        pool("kubernetes", "aksOutboundBackendPool"), pool("kubernetes", "kubernetes"),
                        pool("kubernetes-internal", "kubernetes"),
                    ],
                }}],
            },
        });
        assert_eq!(asked.body, expected);
    }

    // azure.md 10.4
    fn check_machine(&self, asked: &Recorded, class: &Value) {
        let (settings, name, body) = (&self.arm.settings, &asked.name, &asked.body);
        let size = text(body, "/properties/hardwareProfile/vmSize");
        assert!(size.starts_with("Standard_D"), "{size}");
        assert!(asked.headers["user-agent"].starts_with("karpenter-aks/v"), "{:?}", asked.headers);
        let image = text(body, "/properties/storageProfile/imageReference/communityGalleryImageId");
        let images = class["status"]["images"].as_array().unwrap();
        assert!(images.iter().any(|each| each["id"] == image), "{image} is none of {images:?}");
        let disk = &body["properties"]["storageProfile"]["osDisk"];
        for (field, value) in [
            ("name", json!(name)),
            ("diskSizeGB", json!(128)),
            ("createOption", json!("FromImage")),
            ("deleteOption", json!("Delete")),
        ] {
            assert_eq!(disk[field], value, "{disk:#}");
        }
        let expected = json!({
            "name": name, "location": settings.location, "tags": Self::tags(), "zones": body["zones"],
            "identity": {"type": "UserAssigned", "userAssignedIdentities": {self.arm.identity(): {}}},
            "properties": {
                "hardwareProfile": {"vmSize": size}, "priority": "Regular",
                "storageProfile": {"osDisk": disk, "imageReference": {"communityGalleryImageId": image}},
                "networkProfile": {"networkInterfaces": [{
                    "id": settings.node_id("Microsoft.Network/networkInterfaces", name),
                    "properties": {"primary": true, "deleteOption": "Delete"},
                }]},
                "osProfile": {
                    "adminUsername": "azureuser", "computerName": name,
                    "customData": body["properties"]["osProfile"]["customData"],
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": true,
                        "ssh": {"publicKeys": [{"keyData": KEY, "path": "/home/azureuser/.ssh/authorized_keys"}]},
                    },
                },
            },
        });
        assert_eq!(*body, expected);
        self.check_script(&Script::of(body), class);
    }

    // azure.md 13.2: what is found out about the cluster reaches its nodes
    fn check_script(&self, script: &Script, class: &Value) {
        assert_eq!(class["status"]["kubernetesVersion"], script.variable("KUBERNETES_VERSION"));
        assert_eq!(script.variable("TLS_BOOTSTRAP_TOKEN"), TOKEN);
        assert_eq!(script.variable("USER_ASSIGNED_IDENTITY_ID"), KUBELET);
        assert_eq!(script.variable("API_SERVER_NAME"), "walk-12345678.hcp.southcentralus.azmk8s.io");
        assert_eq!(script.flag("cluster-dns"), "10.0.0.20");
        let taints: BTreeSet<&str> = script.flag("register-with-taints").split(',').collect();
        let cilium = format!("{CILIUM}=true:NoExecute");
        assert_eq!(taints, BTreeSet::from([&*cilium, "karpenter.sh/unregistered:NoExecute"]));
        let certificates = BASE64_STANDARD.decode(script.variable("KUBE_CA_CRT")).unwrap();
        let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&String::from_utf8(certificates).unwrap()), lines(self.real.plane.ca_pem()));
        let labels = script.variable("KUBELET_NODE_LABELS");
        for label in [
            "karpenter.sh/nodepool=general-purpose",
            "kubernetes.azure.com/ebpf-dataplane=cilium",
            "kubernetes.azure.com/nodenetwork-vnetguid=a519e60a-cac0-40b2-b883-084477fe6f5c",
        ] {
            assert!(labels.split(',').any(|each| each == label), "{label} is not in {labels}");
        }
    }

    // azure.md 10.5
    fn check_extension(&self, asked: &Recorded) {
        let expected = json!({
            "name": "computeAksLinuxBilling", "type": "Microsoft.Compute/virtualMachines/extensions",
            "location": self.arm.settings.location, "tags": Self::tags(),
            "properties": {
                "publisher": "Microsoft.AKS", "type": "Compute.AKS.Linux.Billing", "typeHandlerVersion": "1.0",
                "autoUpgradeMinorVersion": true, "settings": {},
            },
        });
        assert_eq!(asked.body, expected);
    }

    /// Microsoft's types and validator understand everything that was said, and Azure refused nothing.
    fn check_traffic(&self) {
        let requests = self.arm.double.requests();
        let is_refused = |each: &&Recorded| each.status.is_none_or(|status| status >= 400 && status != 404);
        let refused: Vec<Value> = requests.iter().filter(is_refused).map(Recorded::to_json).collect();
        assert_eq!(refused, Vec::<Value>::new());
        let exchanges: Vec<String> = requests.iter().map(|each| each.to_json().to_string()).collect();
        let exchanges = exchanges.join("\n");
        let looked = understood_by_azure_types(&exchanges).unwrap();
        assert!(looked > 10, "only {looked} bodies were looked at");
        let looked = valid_to_oav(&exchanges).unwrap();
        assert!(looked > 10, "only {looked} exchanges were looked at");
    }
}

pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

// azure.md 23: README walk-through
#[test]
fn inflate_to_five_gets_machines_as_the_class_says_and_nothing_is_left_of_them() {
    let mut walk = Walk::new().unwrap();
    walk.real.apply(POOL);
    walk.real.apply(CLUSTER_FILE);
    walk.start_controller().unwrap();
    walk.until("the class to be ready", |walk| {
        walk.list("aksnodeclasses").iter().all(|class| is_true(class, "Ready"))
    });
    assert!(walk.puts(Kind::VirtualMachine).is_empty(), "nobody needs a node");

    walk.kubectl(&["scale", "deployment", "inflate", "--replicas=5"]);
    walk.until("five pods to run", |walk| walk.running() == 5);
    walk.until("all nodes to be complete", |walk| {
        let (machines, claims) = (walk.names(Kind::VirtualMachine), walk.list("nodeclaims"));
        claims.iter().all(|claim| is_true(claim, "Initialized"))
            && claims.len() == machines.len()
            && walk.names(Kind::NetworkInterface) == machines
            && walk.arm.double.names(Kind::Extension).len() == machines.len()
    });
    let class = walk.list("aksnodeclasses").remove(0);
    let machines = walk.puts(Kind::VirtualMachine);
    assert!(!machines.is_empty());
    for asked in &machines {
        walk.check_machine(asked, &class);
    }
    for asked in walk.puts(Kind::NetworkInterface) {
        walk.check_interface(&asked);
    }
    for asked in walk.puts(Kind::Extension) {
        walk.check_extension(&asked);
    }
    for claim in walk.list("nodeclaims") {
        let machine = format!("aks-{}", text(&claim, "/metadata/name"));
        let id = walk.arm.settings.node_id("Microsoft.Compute/virtualMachines", &machine);
        assert_eq!(claim["status"]["providerID"], walk.arm.provider_id(&id), "{claim:#}");
        assert_eq!(claim["status"]["nodeName"], machine, "{claim:#}");
    }

    walk.kubectl(&["delete", "deployment", "inflate"]);
    walk.until("all nodes to be gone", |walk| {
        walk.list("nodeclaims").is_empty() && walk.list("nodes").is_empty()
    });
    for kind in [Kind::VirtualMachine, Kind::NetworkInterface, Kind::Extension] {
        assert_eq!(walk.names(kind), BTreeSet::new(), "{kind:?}");
    }
    let disks = walk.arm.double.change(|world| world.of_type("Microsoft.Compute/disks").len());
    assert_eq!(disks, 0);
    let name = text(&class, "/metadata/name");
    let smoke = Smoke::start(&walk.real, "azure", &name, &walk.arm.environment(&walk.real.plane));
    walk.until("the smoke test to end", |_| smoke.has_ended());
    smoke.has_passed();
    assert_eq!(walk.names(Kind::VirtualMachine), BTreeSet::new());

    walk.kubectl(&["delete", "nodepools,aksnodeclasses", "--all", "--wait=false"]);
    walk.until("the class to be gone", |walk| walk.list("aksnodeclasses").is_empty());
    walk.check_traffic();
}
