//! The controllers of the provider.

use std::collections::BTreeMap;

use armdouble::{Failure, Kind};
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, CLASSES, Play, Stage};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);

fn status(play: &Play, class: &str) -> Value {
    play.world.get(&format!("{CLASSES}/{class}")).unwrap()["status"].clone()
}

// azure.md 15.1, 15.2, 25.7
#[test]
fn a_class_finds_its_version_and_images_and_is_stamped() {
    let mut play = Play::new();
    play.ready_class(json!({"imageFamily": "Ubuntu", "osDiskSizeGB": 128}));
    let found = status(&play, "default");
    assert_eq!(found["kubernetesVersion"], "1.36.3");
    assert_eq!(found["localDNSState"], "Disabled");
    let ids: Vec<&str> =
        found["images"].as_array().unwrap().iter().map(|each| each["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[0].ends_with("/images/2404gen2containerd/versions/202606.01.0"), "{ids:?}");
    let object = play.world.get(&format!("{CLASSES}/default")).unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["karpenter.azure.com/termination"]));
    let annotations = &object["metadata"]["annotations"];
    assert_eq!(annotations["karpenter.azure.com/aksnodeclass-hash"], "11637731675550486674");
    assert_eq!(annotations["karpenter.azure.com/aksnodeclass-hash-version"], "v3");
    // Images are asked for once in three days.
    play.double.forget_requests();
    play.pass(3600);
    assert_eq!(play.double.requests_of(&Method::GET, Kind::CommunityVersion).len(), 0);
    assert_eq!(play.double.requests_of(&Method::GET, Kind::Subnet).len(), 20);
}

// azure.md 15.1, 25.7: each condition has its own reason; nothing else stops
#[test]
fn what_is_wrong_with_a_class_is_said_in_one_condition() {
    let other =
        "/subscriptions/s/resourceGroups/other/providers/Microsoft.Network/virtualNetworks/v/subnets/s";
    let mut play = Play::new();
    let managed = play.double.change(|world| world.settings.subnet_id()).replace("aks-subnet", "custom");
    let cases: BTreeMap<&str, (Value, &str, &str, &str)> = [
        (
            "elsewhere",
            (json!({"vnetSubnetID": other}), "SubnetsReady", "SubnetIDInvalid", "spec.vnetSubnetID"),
        ),
        (
            "managed",
            (json!({"vnetSubnetID": managed}), "SubnetsReady", "SubnetIDInvalid", "cluster managed VNet"),
        ),
        ("fips", (json!({"fipsMode": "FIPS"}), "ImagesReady", "SIGRequiredForFIPS", "USE_SIG")),
    ]
    .into();
    play.start(|name| name.starts_with("nodeclass"));
    play.apply_class("good", &json!({}));
    for (name, (spec, ..)) in &cases {
        play.apply_class(name, spec);
    }
    play.pass(20);
    for (name, (_, kind, reason, advice)) in &cases {
        let (status, found, message) = play.condition(name, kind);
        assert_eq!((status.as_str(), found.as_str()), ("False", *reason), "{name} {message}");
        assert!(message.contains(advice), "{name}: {message}");
        assert_eq!(play.condition(name, "Ready").0, "False", "{name}");
        for other in
            ["SubnetsReady", "ImagesReady", "ValidationSucceeded", "LocalDNSReady", "KubernetesVersionReady"]
        {
            assert!(other == *kind || play.condition(name, other).0 == "True", "{name} {other}");
        }
    }
    assert_eq!(play.condition("good", "Ready").0, "True");
}

// azure.md 15.1 step 3, 25.7
#[test]
fn a_subnet_that_is_gone_or_cannot_be_read_is_said_and_found_again() {
    let mut play = Play::new();
    play.double.fail(Failure::of(Method::GET, Kind::Subnet).times(1).at_once(404, "NotFound", "no"));
    play.double.fail(Failure::of(Method::GET, Kind::Subnet).times(1).at_once(
        403,
        "AuthorizationFailed",
        "no",
    ));
    play.apply_class("default", &json!({}));
    play.start(|name| name == "nodeclass.status");
    let mut reasons = Vec::new();
    for _ in 0..200 {
        play.world.run_for(std::time::Duration::from_millis(50));
        let (status, reason, _) = play.condition("default", "SubnetsReady");
        if reasons.last() != Some(&reason) && !status.is_empty() {
            reasons.push(reason);
        }
    }
    let seen: Vec<&str> =
        reasons.iter().map(String::as_str).filter(|reason| *reason != "AwaitingReconciliation").collect();
    assert_eq!(seen, ["SubnetNotFound", "SubnetUnknownError", "SubnetsReady"]);
}

// azure.md 15.1 step 4, 25.7
#[test]
fn a_disk_encryption_set_must_be_readable() {
    let id = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/walk/providers/Microsoft.Compute/diskEncryptionSets/keys";
    let argument = format!("--node-osdisk-diskencryptionset-id={id}");
    let mut play = Play::with(Stage { arguments: &[&argument], ..Stage::default() });
    play.double.fail(Failure::of(Method::GET, Kind::DiskEncryptionSet).always().at_once(
        403,
        "AuthorizationFailed",
        "no",
    ));
    play.double.change(|world| world.put(json!({"id": id, "location": "southcentralus", "properties": {}})));
    play.apply_class("default", &json!({}));
    play.start(|name| name == "nodeclass.status");
    play.pass(10);
    let (status, reason, message) = play.condition("default", "ValidationSucceeded");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DiskEncryptionSetRBACMissing"));
    assert!(message.contains("the role Reader"), "{message}");
    play.double.fail_no_more();
    play.pass(61);
    assert_eq!(play.condition("default", "ValidationSucceeded").0, "True");
}

// azure.md 23; the issue: AKS knows it for certain
#[test]
fn a_cluster_that_aks_says_cannot_be_supported_is_refused_with_the_reason() {
    type Change = fn(&mut armdouble::World);
    let cases: [(Change, &str); 4] = [
        (
            |azure| change_cluster(azure, "servicePrincipalProfile", json!({"clientId": "1-2-3"})),
            "ServicePrincipalUnsupported",
        ),
        (
            |azure| change_cluster(azure, "httpProxyConfig", json!({"httpProxy": "http://p:1"})),
            "HTTPProxyUnsupported",
        ),
        (armdouble::World::lock_node_resource_group, "NodeResourceGroupReadOnly"),
        (
            |azure| {
                let pools = json!([{"name": "nodepool1", "mode": "System", "podSubnetID": "/subnets/pods"}]);
                change_cluster(azure, "agentPoolProfiles", pools);
            },
            "PodSubnetUnsupported",
        ),
    ];
    for (prepare, expected) in cases {
        let mut play = Play::with(Stage { prepare: Some(prepare), ..Stage::default() });
        play.apply_class("default", &json!({}));
        play.start(|name| name == "nodeclass.status");
        play.pass(10);
        let (status, reason, message) = play.condition("default", "ValidationSucceeded");
        assert_eq!((status.as_str(), reason.as_str()), ("False", expected), "{message}");
    }
}

// AKS: nodeResourceGroupProfile.restrictionLevel ReadOnly, where the controller may not read the cluster
#[test]
fn a_lock_that_only_a_refusal_tells_of_reaches_the_condition_and_goes_with_it() {
    let unreadable = Failure::of(Method::GET, Kind::ManagedCluster).always();
    let failures = vec![unreadable.at_once(403, "AuthorizationFailed", "no")];
    let prepare: Option<fn(&mut armdouble::World)> = Some(armdouble::World::lock_node_resource_group);
    let mut play = Play::with(Stage { prepare, failures, ..Stage::default() });
    play.ready_class(json!({}));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let error = play.create(&claim).unwrap_err();
    assert!(error.to_string().contains("DenyAssignmentAuthorizationFailed"), "{error}");
    play.pass(200);
    let (status, reason, message) = play.condition("default", "ValidationSucceeded");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NodeResourceGroupReadOnly"), "{message}");
    assert!(message.contains("--nrg-lockdown-restriction-level Unrestricted"), "{message}");
    let asked = play.asked(Method::PUT, Kind::NetworkInterface).len();
    assert!(play.create(&claim).is_err());
    assert_eq!(play.asked(Method::PUT, Kind::NetworkInterface).len(), asked, "nothing is tried in vain");
    play.double.change(|azure| azure.settings.locks_node_resource_group = false);
    play.pass(900);
    assert_eq!(play.condition("default", "ValidationSucceeded").0, "True");
    play.create(&claim).unwrap();
}

fn change_cluster(azure: &mut armdouble::World, field: &str, value: Value) {
    let id = azure.settings.cluster_id();
    azure.change(&id, |cluster| cluster["properties"][field] = value);
}

// azure.md 23; the issue: unsupported clusters are named in the condition with the reason
#[test]
fn a_cluster_with_calico_is_refused_with_the_reason() {
    let mut play = Play::with(Stage { arguments: &["--network-policy=calico"], ..Stage::default() });
    play.apply_class("default", &json!({}));
    play.start(|name| name == "nodeclass.status");
    play.pass(10);
    let (status, reason, message) = play.condition("default", "ValidationSucceeded");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NetworkPolicyUnsupported"));
    assert!(message.contains("expected cilium, azure or none"), "{message}");
}

// azure.md 15.1 step 2, 25.7: the maintenance window
#[test]
fn images_wait_for_the_maintenance_window() {
    let mut play = Play::new();
    let window = |start: &str, end: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "upcoming-maintenance-window", "namespace": "kube-system"},
            "data": {"aksManagedNodeOSUpgradeSchedule-start": start, "aksManagedNodeOSUpgradeSchedule-end": end},
        })
        .to_string()
    };
    play.world.apply(&window("2026-02-01T00:00:00Z", "2026-02-01T04:00:00Z"));
    play.ready_class(json!({}));
    let version = |play: &Play| {
        let id = status(play, "default")["images"][0]["id"].as_str().unwrap().to_owned();
        id.rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(version(&play), "202606.01.0");
    play.double.change(|world| {
        let gallery = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2";
        world.images.publish(gallery, "2404gen2containerd", "202607.01.0", "2026-07-01T00:00:00+00:00");
    });
    // Until what was found is asked for again.
    let asked = play.asked(Method::GET, Kind::CommunityVersion).len();
    play.pass_days(4);
    assert!(play.asked(Method::GET, Kind::CommunityVersion).len() > asked, "the newer image was seen");
    assert_eq!(version(&play), "202606.01.0");
    let (start, end) = (play.world.now(), play.world.now() + std::time::Duration::from_hours(4));
    play.world.apply(&window(&start.to_string(), &end.to_string()));
    play.pass(400);
    assert_eq!(version(&play), "202607.01.0");
}

// azure.md 15.3, 25.7
#[test]
fn a_class_waits_for_its_claims_to_go() {
    let mut play = Play::new();
    play.ready_class(json!({}));
    play.claim("pool-a", &[ON_DEMAND]);
    play.claim("pool-b", &[ON_DEMAND]);
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(5);
    assert!(play.told("default").contains("WaitingOnNodeClaimTermination"));
    play.world.delete(&format!("{CLAIMS}/pool-a"));
    play.pass(5);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_some());
    play.world.delete(&format!("{CLAIMS}/pool-b"));
    play.pass(5);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_none());
}

// azure.md 15.4, 15.5, 25.8
#[test]
fn machines_and_interfaces_that_nobody_knows_are_deleted() {
    let mut play = Play::new();
    play.ready_class(json!({}));
    for name in ["pool-kept", "pool-lost"] {
        let claim = play.claim(name, &[ON_DEMAND]);
        let launched = play.create(&claim).unwrap();
        play.launched(name, &launched);
    }
    play.pass(60);
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Network/networkInterfaces", "aks-left");
        world.put(json!({
            "id": id, "location": "southcentralus", "tags": {"karpenter.sh_nodepool": "pool"},
            "properties": {"provisioningState": "Succeeded"},
        }));
        let id = world.settings.node_id("Microsoft.Network/networkInterfaces", "aks-of-somebody-else");
        world.put(json!({"id": id, "location": "southcentralus", "tags": {}, "properties": {}}));
        let id = world.settings.node_id("Microsoft.Network/networkInterfaces", "aks-of-an-aks-machine");
        let tags = json!({"karpenter.sh_nodepool": "pool", "karpenter.azure.com_aksmachine_nodeclaim": "a"});
        world.put(json!({"id": id, "location": "southcentralus", "tags": tags, "properties": {}}));
    });
    let id = azure::vm::provider_id(
        &play
            .double
            .change(|world| world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-pool-lost")),
    );
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "aks-pool-lost"}, "spec": {"providerID": id},
    });
    play.world.apply(&node.to_string());
    play.world.delete(&format!("{CLAIMS}/pool-lost"));
    play.start(|name| name.ends_with("garbagecollection"));
    play.pass(180);
    assert_eq!(play.double.names(Kind::VirtualMachine).len(), 2, "it is younger than five minutes");
    play.pass(600);
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-pool-kept"]);
    assert!(play.world.get("/api/v1/nodes/aks-pool-lost").is_none());
    assert_eq!(
        play.double.names(Kind::NetworkInterface),
        ["aks-of-an-aks-machine", "aks-of-somebody-else", "aks-pool-kept"]
    );
}

// azure.md 15.6, 25.5, 25.8
#[test]
fn other_tags_reach_running_machines_and_everything_that_belongs_to_them() {
    let mut play = Play::new();
    play.ready_class(json!({}));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.launched("pool-a", &launched);
    play.pass(60);
    play.start(|name| name == "nodeclaim.inplaceupdate");
    play.double.forget_requests();
    play.pass(120);
    assert_eq!(
        play.double.requests_of(&Method::GET, Kind::VirtualMachine).len(),
        0,
        "the hash says that all is well"
    );
    play.apply_class("default", &json!({"tags": {"team/name": "a"}}));
    play.pass(5);
    assert_eq!(
        play.double.requests_of(&Method::PATCH, Kind::VirtualMachine).len(),
        0,
        "it has not registered yet"
    );
    let registered = json!({"status": {"conditions": [
        {"type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": play.world.now()},
        {"type": "Registered", "status": "True", "reason": "Registered", "message": "", "lastTransitionTime": play.world.now()},
    ]}});
    play.world.patch(&format!("{CLAIMS}/pool-a/status"), &registered);
    play.pass(90);
    for kind in [Kind::VirtualMachine, Kind::NetworkInterface, Kind::Extension] {
        let found = &play.double.resources(kind)[0];
        assert_eq!(found["tags"]["team_name"], "a", "{kind:?}");
        assert_eq!(found["tags"]["karpenter.sh_nodepool"], "pool", "{kind:?}");
    }
    let before = launched.metadata.annotations.unwrap()["karpenter.azure.com/in-place-update-hash"].clone();
    let after = play.world.get(&format!("{CLAIMS}/pool-a")).unwrap();
    assert_ne!(after["metadata"]["annotations"]["karpenter.azure.com/in-place-update-hash"], before);
    // azure.md 1.6, 25.2: tags never drift a node.
    let hash = &after["metadata"]["annotations"]["karpenter.azure.com/aksnodeclass-hash"];
    assert_eq!(hash, "11637731675550486674");
}

// azure.md 5.3, 29: quota every ten minutes; 4.1, 6: sizes and prices every twelve hours, the first time at the start
#[test]
fn what_changes_seldom_is_asked_for_seldom() {
    let mut play = Play::new();
    play.double.forget_requests();
    play.start(|name| ["quota", "instancetype", "pricing"].contains(&name));
    let asked = |play: &Play, kind: Kind| {
        let pages = play.double.requests_of(&Method::GET, kind);
        // One answer has several pages.
        pages
            .iter()
            .filter(|each| !each.query.contains_key("$skip") && !each.query.contains_key("$skiptoken"))
            .count()
    };
    play.pass(595);
    assert_eq!(asked(&play, Kind::Usage), 1, "at the start");
    play.pass(10);
    assert_eq!(asked(&play, Kind::Usage), 2, "and after ten minutes");
    play.pass(6000);
    assert_eq!(asked(&play, Kind::Usage), 12);
    // Until just before twelve hours after the start nothing else was asked for, and then once each.
    play.pass(12 * 3600 - 6605 - 30);
    assert_eq!((asked(&play, Kind::Sku), asked(&play, Kind::Price)), (0, 0));
    play.pass(60);
    assert_eq!((asked(&play, Kind::Sku), asked(&play, Kind::Price)), (1, 1));
    play.pass(12 * 3600 - 60);
    assert_eq!((asked(&play, Kind::Sku), asked(&play, Kind::Price)), (1, 1));
    play.pass(90);
    assert_eq!((asked(&play, Kind::Sku), asked(&play, Kind::Price)), (2, 2));
}

/// A class that leaves the DNS cache to the cluster, in a cluster that is new enough for it.
fn preferring_class(play: &mut Play, name: &str) -> Value {
    let zone = |zone: &str, destination: &str| {
        json!({
            "zone": zone, "queryLogging": "Error", "protocol": "PreferUDP", "forwardDestination": destination,
            "forwardPolicy": "Sequential", "maxConcurrent": 1000, "cacheDuration": "1h", "serveStaleDuration": "30m",
            "serveStale": "Immediate",
        })
    };
    let zones = json!([zone(".", "VnetDNS"), zone("cluster.local", "ClusterCoreDNS")]);
    let dns = json!({"mode": "Preferred", "vnetDNSOverrides": zones, "kubeDNSOverrides": zones});
    play.apply_class(name, &json!({"localDNS": dns}));
    let known = json!({"status": {"kubernetesVersion": "1.99.0", "conditions": [{
        "type": "KubernetesVersionReady", "status": "True", "reason": "KubernetesVersionReady", "message": "",
        "observedGeneration": 1, "lastTransitionTime": play.world.now(),
    }]}});
    play.world.patch(&format!("{CLASSES}/{name}/status"), &known);
    play.pass(10);
    status(play, name)["localDNSState"].clone()
}

// azure.md 15.1 step 5, 25.7: missing CRDs are fine, konnectivity is allowed, other policies and node-local-dns are not
#[test]
fn where_the_cluster_decides_about_a_dns_cache_it_is_asked() {
    const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let mut play = Play::new();
    let policy = |namespace: &str, name: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"podSelector": {}},
        })
        .to_string()
    };
    play.world.apply(&policy("kube-system", "konnectivity-agent"));
    play.start(|name| name == "nodeclass.status");
    assert_eq!(preferring_class(&mut play, "free"), "Enabled");
    play.world.apply(&policy("default", "own"));
    assert_eq!(preferring_class(&mut play, "with-policies"), "Disabled");
    assert_eq!(status(&play, "free")["localDNSState"], "Enabled", "it stays");
    play.world.delete(&format!("{POLICIES}/own"));
    let cache = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "node-local-dns", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "dns"}},
            "template": {
                "metadata": {"labels": {"app": "dns"}},
                "spec": {"containers": [{"name": "dns", "image": "dns"}]},
            },
        },
    });
    play.world.apply(&cache.to_string());
    assert_eq!(preferring_class(&mut play, "with-a-cache"), "Disabled");
}
