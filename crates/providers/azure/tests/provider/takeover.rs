//! A cluster that the original has run so far: nothing drifts, and nothing is made again.

use armdouble::Kind;
use cloud::CloudProvider as _;
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, KUBELET, Play, Stage, claim, pool};

/// What the original writes about this identity and these tags: the 32-bit FNV-1a hash of their JSON, reckoned by another
/// program than ours.
const HASH: &str = "265311343";

/// Puts a machine, its interface, its claim and its Node, as the original leaves them.
fn leave(play: &mut Play, name: &str, image: &str) -> api::nodeclaim::NodeClaim {
    let vm = format!("aks-{name}");
    let tags = json!({
        "karpenter.azure.com_cluster": "walk", "compute.aks.billing": "linux", "karpenter.sh_nodepool": "pool",
    });
    let id = play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", &vm);
        let nic = world.settings.node_id("Microsoft.Network/networkInterfaces", &vm);
        let identity =
            world.settings.node_id("Microsoft.ManagedIdentity/userAssignedIdentities", "walk-agentpool");
        world.put(json!({
            "id": nic, "location": "southcentralus", "tags": tags,
            "properties": {"provisioningState": "Succeeded", "ipConfigurations": []},
        }));
        world.put(json!({
            "id": id, "location": "southcentralus", "zones": ["1"], "tags": tags,
            "identity": {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}},
            "properties": {
                "provisioningState": "Succeeded", "timeCreated": "2026-01-05T08:00:00Z", "priority": "Regular",
                "hardwareProfile": {"vmSize": "Standard_D2s_v3"},
                "storageProfile": {"imageReference": {"communityGalleryImageId": image}},
            },
        }));
        id
    });
    let provider_id = azure::vm::provider_id(&id);
    let mut object = claim(name, &[("karpenter.sh/capacity-type", "In", &["on-demand"])]);
    object["metadata"]["annotations"] = json!({
        "karpenter.azure.com/aksnodeclass-hash": "11637731675550486674",
        "karpenter.azure.com/aksnodeclass-hash-version": "v3",
        "karpenter.azure.com/in-place-update-hash": HASH,
    });
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": kind, "message": "",
            "lastTransitionTime": "2026-01-05T08:05:00Z",
        })
    };
    object["status"] = json!({
        "providerID": provider_id, "imageID": image, "nodeName": vm,
        "conditions": [condition("Launched"), condition("Registered"), condition("Initialized")],
    });
    play.world.apply(&object.to_string());
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": vm, "labels": {
            "karpenter.sh/registered": "true", "kubernetes.azure.com/kubelet-identity-client-id": KUBELET,
        }},
        "spec": {"providerID": provider_id},
        "status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}},
    });
    play.world.apply(&node.to_string());
    play.pass(1);
    serde_json::from_value(play.world.get(&format!("{CLAIMS}/{name}")).unwrap()).unwrap()
}

fn image(play: &Play) -> String {
    let class = play.world.get("/apis/karpenter.azure.com/v1beta1/aksnodeclasses/default").unwrap();
    class["status"]["images"][0]["id"].as_str().unwrap().to_owned()
}

// The issue: takeover of AKSNodeClasses, NodeClaims and VMs as upstream writes them: zero drift
#[test]
fn nothing_that_the_original_left_drifts_or_is_changed() {
    let mut play = Play::new();
    play.world.apply(&pool("pool", &json!([])).to_string());
    play.ready_class(json!({"imageFamily": "Ubuntu", "osDiskSizeGB": 128}));
    let image = image(&play);
    let claims: Vec<_> = (0..5).map(|number| leave(&mut play, &format!("pool-{number}"), &image)).collect();
    play.double.forget_requests();
    play.start(|name| !name.starts_with("nodeclass"));
    play.pass(1200);
    for claim in &claims {
        assert_eq!(play.world.block_on(play.azure.drift(claim)).unwrap(), None);
    }
    let is_write = |method: &Method| [Method::PUT, Method::PATCH, Method::DELETE].contains(method);
    let writes: Vec<String> = play
        .double
        .requests()
        .iter()
        .filter(|each| is_write(&each.method))
        .map(|each| format!("{} {}", each.method, each.path))
        .collect();
    assert_eq!(writes, [""; 0]);
    let listed = play.world.block_on(play.azure.list()).unwrap();
    let ids = |all: &[api::nodeclaim::NodeClaim]| -> std::collections::BTreeSet<String> {
        all.iter().map(|each| each.status.as_ref().unwrap().provider_id.clone()).collect()
    };
    assert_eq!(ids(&listed), ids(&claims));
    assert_eq!(play.double.names(Kind::VirtualMachine).len(), 5);
}

// azure.md 16, 25.8
#[test]
fn each_way_to_drift_is_seen() {
    let mut play = Play::new();
    play.world.apply(&pool("pool", &json!([])).to_string());
    play.ready_class(json!({"imageFamily": "Ubuntu"}));
    let image = image(&play);
    let claim = leave(&mut play, "pool-a", &image);
    let drift = |play: &Play, claim: &api::nodeclaim::NodeClaim| {
        play.world.block_on(play.azure.drift(claim)).unwrap()
    };
    assert_eq!(drift(&play, &claim), None);
    let mut old = claim.clone();
    "/CommunityGalleries/old/images/i/versions/1".clone_into(&mut old.status.as_mut().unwrap().image_id);
    assert_eq!(drift(&play, &old).as_deref(), Some("ImageDrift"));
    let label = |value: Value| json!({"metadata": {"labels": {"kubernetes.azure.com/kubelet-identity-client-id": value}}});
    play.world.patch("/api/v1/nodes/aks-pool-a", &label("55555555-5555-5555-5555-555555555555".into()));
    play.pass(1);
    assert_eq!(drift(&play, &claim).as_deref(), Some("KubeletIdentityDrift"));
    play.world.patch("/api/v1/nodes/aks-pool-a", &label(KUBELET.into()));
    let version = |text: &str| json!({"status": {"nodeInfo": {"kubeletVersion": text}}});
    play.world.patch("/api/v1/nodes/aks-pool-a/status", &version("v1.35.9"));
    play.pass(1);
    assert_eq!(drift(&play, &claim).as_deref(), Some("K8sVersionDrift"));
    play.world.patch("/api/v1/nodes/aks-pool-a/status", &version("v1.36.3"));
    play.pass(1);
    assert_eq!(drift(&play, &claim), None);
    // azure.md 25.8: subnet and image family change → NodeClassDrift
    play.apply_class("default", &json!({"imageFamily": "AzureLinux"}));
    play.pass(10);
    assert_eq!(drift(&play, &claim).as_deref(), Some("NodeClassDrift"));
    // azure.md 25.8: missing NodePool → none
    play.world.delete("/apis/karpenter.sh/v1/nodepools/pool");
    play.pass(1);
    assert_eq!(drift(&play, &claim), None);
}

// azure.md 16 order 5: what AKS wants to be replaced
#[test]
fn a_machine_that_aks_wants_to_replace_has_drifted() {
    let arguments = &[
        "--provision-mode=aksmachineapi",
        "--use-sig=true",
        "--sig-subscription-id=109a5e88-712a-48ae-9078-9ca8b3c81345",
        "--aks-machines-pool-name=karpenter",
    ];
    let mut play = Play::with(Stage { arguments, ..Stage::default() });
    play.world.apply(&pool("pool", &json!([])).to_string());
    play.ready_class(json!({}));
    let wanted = play.claim("pool-a", &[("karpenter.sh/capacity-type", "In", &["on-demand"])]);
    let launched = play.create(&wanted).unwrap();
    play.launched("pool-a", &launched);
    let claim: api::nodeclaim::NodeClaim =
        serde_json::from_value(play.world.get(&format!("{CLAIMS}/pool-a")).unwrap()).unwrap();
    let mut drift_with = |action: &str| {
        play.double.change(|world| {
            let id = format!("{}/agentPools/karpenter/machines/pool-a", world.settings.cluster_id());
            world.change(&id, |machine| machine["properties"]["status"]["driftAction"] = action.into());
        });
        // What is known of it counts for half a minute.
        play.pass(60);
        play.world.block_on(play.azure.drift(&claim)).unwrap()
    };
    assert_eq!(drift_with("Synced"), None);
    assert_eq!(drift_with("Recreate").as_deref(), Some("ClusterConfigDrift"));
    assert_eq!(drift_with("SomethingNew").as_deref(), Some("ClusterConfigDrift"));
}
