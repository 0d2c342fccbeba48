//! Nodes on Azure that the original controller left are kept as they are: the Kubernetes objects, and what there is of
//! them in Azure. The original does not run here, so that they are written as its specification says.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::thread::sleep;
use std::time::Duration;

use armdouble::Kind;
use http::Method;
use serde_json::{Value, json};
use testkit::stage::is_true;

use crate::arm::KUBELET;
use crate::azure::{POOL, Walk, text};
use crate::cluster::is_long;

const SECOND: Duration = Duration::from_secs(1);
const SIZE: &str = "Standard_D2s_v3";
/// The hash of the AKSNodeClass of the README, with what the definition fills in.
const CLASS_HASH: &str = "11637731675550486674";

/// What the original writes on a claim about tags and identities: 32-bit FNV-1a of them in JSON.
fn in_place_hash(identity: &str) -> String {
    let tags = r#"{"compute.aks.billing":"linux","karpenter.azure.com_cluster":"walk","karpenter.sh_nodepool":"general-purpose","team":"walkers"}"#;
    let text = format!(r#"{{"identities":{{"{identity}":{{}}}},"tags":{tags}}}"#);
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step).to_string()
}

fn labels() -> Value {
    json!({
        "karpenter.sh/nodepool": "general-purpose", "karpenter.sh/capacity-type": "on-demand",
        "karpenter.azure.com/aksnodeclass": "default", "karpenter.azure.com/placement-scope": "zonal",
        "karpenter.azure.com/sku-family": "D", "karpenter.azure.com/sku-name": SIZE,
        "karpenter.azure.com/sku-cpu": "2", "karpenter.azure.com/sku-memory": "8192",
        "karpenter.azure.com/sku-version": "3", "kubernetes.azure.com/ebpf-dataplane": "cilium",
        "kubernetes.azure.com/priority": "regular", "kubernetes.azure.com/scalesetpriority": "regular",
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": SIZE,
        "topology.kubernetes.io/region": "southcentralus", "topology.kubernetes.io/zone": "southcentralus-1",
    })
}

/// Everything that there is of one node.
struct Left<'a> {
    walk: &'a Walk,
    name: &'a str,
    class: &'a Value,
    pool: &'a Value,
}

impl Left<'_> {
    fn machine(&self) -> String {
        format!("aks-{}", self.name)
    }

    fn machine_id(&self) -> String {
        self.walk.arm.settings.node_id("Microsoft.Compute/virtualMachines", &self.machine())
    }

    fn image(&self) -> String {
        text(self.class, "/status/images/0/id")
    }

    fn leave(&self) {
        self.walk.booted.borrow_mut().insert(self.machine());
        self.leave_machine();
        self.walk.real.apply(&self.claim().to_string());
        let status = json!({"status": self.claim_status()}).to_string();
        let patch = ["patch", "nodeclaim", self.name, "--subresource=status", "--type=merge", "-p", &status];
        self.walk.kubectl(&patch);
        let claim: Value =
            serde_json::from_str(&self.walk.kubectl(&["get", "nodeclaim", self.name, "-o", "json"])).unwrap();
        self.walk.real.apply(&self.node(&claim).to_string());
    }

    // azure.md 10.3, 10.4, 10.5
    fn leave_machine(&self) {
        let (arm, name, id) = (&self.walk.arm, self.machine(), self.machine_id());
        let (location, tags) = (&arm.settings.location, Walk::tags());
        let interface = arm.settings.node_id("Microsoft.Network/networkInterfaces", &name);
        let disk = arm.settings.node_id("Microsoft.Compute/disks", &name);
        arm.double.change(|world| {
            world.put(json!({
                "id": interface, "location": location, "tags": tags,
                "properties": {
                    "provisioningState": "Succeeded", "virtualMachine": {"id": id},
                    "ipConfigurations": [{"name": name, "properties": {
                        "primary": true, "privateIPAllocationMethod": "Dynamic",
                        "subnet": {"id": arm.settings.subnet_id()},
                    }}],
                },
            }));
            world.put(json!({
                "id": id, "location": location, "zones": ["1"], "tags": tags,
                "identity": {"type": "UserAssigned", "userAssignedIdentities": {arm.identity(): {}}},
                "properties": {
                    "provisioningState": "Succeeded", "timeCreated": "2026-01-05T08:00:00Z", "priority": "Regular",
                    "hardwareProfile": {"vmSize": SIZE},
                    "storageProfile": {
                        "imageReference": {"communityGalleryImageId": self.image()},
                        "osDisk": {"name": name, "deleteOption": "Delete", "managedDisk": {"id": disk}},
                    },
                    "networkProfile": {"networkInterfaces": [
                        {"id": interface, "properties": {"primary": true, "deleteOption": "Delete"}},
                    ]},
                    "osProfile": {"adminUsername": "azureuser", "computerName": name},
                },
            }));
            world.put(json!({
                "id": format!("{id}/extensions/computeAksLinuxBilling"), "location": location, "tags": tags,
                "properties": {
                    "provisioningState": "Succeeded", "publisher": "Microsoft.AKS",
                    "type": "Compute.AKS.Linux.Billing", "typeHandlerVersion": "1.0",
                },
            }));
        });
    }

    fn claim(&self) -> Value {
        let of_pool = |name: &str| self.pool["metadata"]["annotations"][name].clone();
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": self.name, "labels": labels(), "finalizers": ["karpenter.sh/termination"],
                "annotations": {
                    "karpenter.azure.com/aksnodeclass-hash": CLASS_HASH,
                    "karpenter.azure.com/aksnodeclass-hash-version": "v3",
                    "karpenter.azure.com/in-place-update-hash": in_place_hash(&self.walk.arm.identity()),
                    "karpenter.sh/nodepool-hash": of_pool("karpenter.sh/nodepool-hash"),
                    "karpenter.sh/nodepool-hash-version": of_pool("karpenter.sh/nodepool-hash-version"),
                },
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "general-purpose",
                    "uid": self.pool["metadata"]["uid"], "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["general-purpose"]},
                    {"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [SIZE, "Standard_D4s_v3"]},
                ],
                "resources": {"requests": {"cpu": "1", "pods": "1"}},
                "startupTaints": [{"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}],
            },
        })
    }

    fn claim_status(&self) -> Value {
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-05T08:05:00Z",
            })
        };
        let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(condition);
        let (capacity, allocatable) = resources();
        json!({
            "providerID": self.walk.arm.provider_id(&self.machine_id()), "imageID": self.image(),
            "nodeName": self.machine(), "capacity": capacity, "allocatable": allocatable,
            "conditions": conditions,
        })
    }

    fn node(&self, claim: &Value) -> Value {
        let mut labels = labels();
        for (key, value) in [
            ("karpenter.sh/registered", "true"),
            ("karpenter.sh/initialized", "true"),
            ("karpenter.sh/do-not-sync-taints", "true"),
            ("kubernetes.azure.com/kubelet-identity-client-id", KUBELET),
        ] {
            labels[key] = json!(value);
        }
        let (capacity, allocatable) = resources();
        let version = text(self.class, "/status/kubernetesVersion");
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": self.machine(), "labels": labels, "finalizers": ["karpenter.sh/termination"],
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": self.name,
                    "uid": claim["metadata"]["uid"], "blockOwnerDeletion": true,
                }],
            },
            "spec": {"providerID": claim["status"]["providerID"]},
            "status": {
                "capacity": capacity, "allocatable": allocatable,
                "nodeInfo": {"kubeletVersion": format!("v{version}")},
            },
        })
    }
}

/// What a node has, and what pods can use of it.
fn resources() -> (Value, Value) {
    let has = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory, "pods": "250", "ephemeral-storage": "120Gi"});
    (has("2", "7577Mi"), has("1900m", "5000Mi"))
}

/// What must stay of claims and nodes, and that nobody wants to delete them.
fn kept(walk: &Walk) -> Vec<Value> {
    let all = walk.list("nodeclaims").into_iter().chain(walk.list("nodes"));
    all.map(|object| {
        let annotations = &object["metadata"]["annotations"];
        json!({
            "name": object["metadata"]["name"], "uid": object["metadata"]["uid"], "spec": object["spec"],
            "deletes": object["metadata"]["deletionTimestamp"],
            "hash": annotations["karpenter.azure.com/aksnodeclass-hash"],
            "inPlaceHash": annotations["karpenter.azure.com/in-place-update-hash"],
        })
    })
    .collect()
}

/// What was to be changed in Azure.
fn writes(walk: &Walk) -> Vec<String> {
    let is_write = |method: &Method| [Method::PUT, Method::PATCH, Method::DELETE].contains(method);
    let requests = walk.arm.double.requests();
    let writes = requests.iter().filter(|each| is_write(&each.method));
    writes.map(|each| format!("{} {}", each.method, each.path)).collect()
}

// The issue: takeover of AKSNodeClasses, NodeClaims and VMs as upstream writes them: zero drift
#[test]
fn nodes_that_the_original_left_on_azure_are_neither_changed_nor_replaced() {
    let mut walk = Walk::new().unwrap();
    // Nodes without pods may stay.
    walk.real.apply(&POOL.replace("consolidateAfter: 0s", "consolidateAfter: Never"));
    walk.start_controller().unwrap();
    walk.until("class and pool to be looked at", |walk| {
        let stamped =
            |pool: &Value| pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"].is_string();
        walk.list("aksnodeclasses").iter().all(|class| is_true(class, "Ready"))
            && walk.list("nodepools").iter().all(stamped)
    });
    walk.controller = None;
    let (class, pool) = (walk.list("aksnodeclasses").remove(0), walk.list("nodepools").remove(0));
    assert_eq!(class["metadata"]["annotations"]["karpenter.azure.com/aksnodeclass-hash"], CLASS_HASH);
    for name in ["general-purpose-a1b2c", "general-purpose-d3e4f", "general-purpose-g5h6j"] {
        Left { walk: &walk, name, class: &class, pool: &pool }.leave();
    }
    walk.until("nodes to be ready", |walk| {
        let has_taints = |node: &Value| node["spec"]["taints"].as_array().is_some_and(|all| !all.is_empty());
        walk.list("nodes").iter().all(|node| is_true(node, "Ready") && !has_taints(node))
    });
    let before = kept(&walk);
    assert_eq!(before.len(), 6);
    walk.arm.double.forget_requests();

    walk.start_controller().unwrap();
    walk.until("the controller to look at machines", |walk| {
        !walk.arm.double.requests_of(&Method::POST, Kind::ResourceGraph).is_empty()
    });
    let seconds = if is_long() { 150 } else { 15 };
    for _ in 0..seconds {
        sleep(SECOND);
        assert_eq!(kept(&walk), before);
        for claim in walk.list("nodeclaims") {
            assert!(!is_true(&claim, "Drifted"), "{claim:#}");
        }
    }
    assert_eq!(writes(&walk), Vec::<String>::new());

    // It was not quiet because it did nothing at all.
    let other = r#"{"spec": {"imageFamily": "AzureLinux"}}"#;
    walk.kubectl(&["patch", "aksnodeclass", "default", "--type=merge", "-p", other]);
    walk.until("a claim to drift", |walk| {
        walk.list("nodeclaims").iter().any(|claim| is_true(claim, "Drifted"))
    });
}
