//! Launches of virtual machines, and what becomes of those that Azure refuses.

use armdouble::{Failure, Kind, Reservation};
use cloud::{CloudProvider as _, Error};
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, CLASSES, Play, Stage};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const FAMILY_D: (&str, &str, &[&str]) = ("karpenter.azure.com/sku-family", "In", &["D"]);
const SMALL: (&str, &str, &[&str]) = ("karpenter.azure.com/sku-cpu", "In", &["2"]);
const QUOTA: &str = "Operation could not be completed as it results in exceeding approved standardDav6Family Cores quota. \
                     Additional details - Deployment Model: Resource Manager, Location: southcentralus, Current Limit: 24, \
                     Current Usage: 24, Additional Required: 8, (Minimum) New Limit Required: 32.";

fn ready() -> Play {
    ready_in(armdouble::Settings::default())
}

fn ready_in(double: armdouble::Settings) -> Play {
    let mut play = Play::with(Stage { double, ..Stage::default() });
    play.ready_class(json!({}));
    play.double.forget_requests();
    play
}

/// What was asked, without reading and without looking how far something is.
fn writes(play: &Play) -> Vec<String> {
    let is_write = |method: &Method| *method != Method::GET && *method != Method::POST;
    let all = play.double.requests();
    let all = all.iter().filter(|each| is_write(&each.method));
    all.map(|each| format!("{} {:?}", each.method, each.kind)).collect()
}

fn label<'a>(instance: &'a cloud::Instance, key: &str) -> &'a str {
    instance.metadata.labels.as_ref().and_then(|all| all.get(key)).map_or("", String::as_str)
}

#[track_caller]
fn reason(result: Result<cloud::Instance, Error>) -> String {
    match result.unwrap_err() {
        Error::Create { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

// azure.md 10.1, 10.3 to 10.5, 24
#[test]
fn a_launch_is_done_when_azure_has_accepted_the_machine_and_the_rest_follows() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND, FAMILY_D, SMALL]);
    let launched = play.create(&claim).unwrap();
    assert_eq!(writes(&play), ["PUT NetworkInterface", "PUT VirtualMachine"]);
    assert_eq!(play.double.names(Kind::Extension), [""; 0]);
    assert_eq!(label(&launched, "node.kubernetes.io/instance-type"), "Standard_D2as_v6");
    assert_eq!(label(&launched, "karpenter.sh/capacity-type"), "on-demand");
    assert_eq!(label(&launched, "karpenter.azure.com/sku-family"), "D");
    let annotations = launched.metadata.annotations.clone().unwrap();
    assert_eq!(annotations["karpenter.azure.com/aksnodeclass-hash"], "11637731675550486674");
    assert_eq!(annotations["karpenter.azure.com/aksnodeclass-hash-version"], "v3");
    assert!(annotations.contains_key("karpenter.azure.com/in-place-update-hash"));
    let status = launched.status.clone().unwrap();
    assert_eq!(
        status.provider_id,
        "azure:///subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/mc_walk_walk_southcentralus/providers/Microsoft.Compute/virtualMachines/aks-pool-a"
    );
    assert!(status.image_id.starts_with("/CommunityGalleries/AKSUbuntu-"), "{}", status.image_id);
    assert!(status.capacity.contains_key("cpu") && !status.capacity.contains_key("nvidia.com/gpu"));
    play.launched("pool-a", &launched);
    play.pass(60);
    assert_eq!(play.double.names(Kind::Extension), ["computeAksLinuxBilling"]);
    let machine = &play.double.resources(Kind::VirtualMachine)[0];
    assert_eq!(machine["tags"]["karpenter.sh_nodepool"], "pool");
    assert_eq!(machine["tags"]["karpenter.azure.com_cluster"], "walk");
    let interface = &play.double.resources(Kind::NetworkInterface)[0];
    let pools =
        &interface["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"];
    assert_eq!(pools.as_array().unwrap().len(), 3);
    let found = play.world.block_on(play.azure.get(&status.provider_id)).unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("pool-a"));
    assert_eq!(found.status.unwrap().image_id, status.image_id);
    assert_eq!(play.world.block_on(play.azure.list()).unwrap().len(), 1);
}

// azure.md 25.4: existing VM reused, not re-PUT
#[test]
fn a_machine_that_is_there_already_is_taken_over() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND, FAMILY_D, SMALL]);
    let first = play.create(&claim).unwrap();
    play.pass(60);
    play.double.forget_requests();
    let second = play.create(&claim).unwrap();
    assert_eq!(writes(&play), [""; 0]);
    assert_eq!(first.status.unwrap().provider_id, second.status.clone().unwrap().provider_id);
    assert_eq!(label(&second, "node.kubernetes.io/instance-type"), "Standard_D2as_v6");
}

// azure.md 8.2 row 2, 25.4; our own: the next offering is tried at once
#[test]
fn another_size_is_tried_at_once_when_one_is_refused_and_the_interface_is_used_again() {
    // Azure keeps the interface of a machine that it refused for a machine of that name.
    let mut settings = armdouble::Settings::default();
    settings.refused_interfaces = Reservation::SameName;
    let mut play = ready_in(settings);
    let refused = Failure::of(Method::PUT, Kind::VirtualMachine).size("Standard_D2as_v6");
    play.double.fail(refused.at_once(409, "OperationNotAllowed", QUOTA));
    let claim = play.claim("pool-a", &[ON_DEMAND, FAMILY_D, SMALL]);
    let launched = play.create(&claim).unwrap();
    assert_eq!(label(&launched, "node.kubernetes.io/instance-type"), "Standard_D2_v3");
    let sizes: Vec<String> =
        play.sizes_asked().iter().map(|text| text.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(sizes, ["Standard_D2as_v6", "Standard_D2_v3"]);
    assert_eq!(play.asked(Method::PUT, Kind::NetworkInterface), ["aks-pool-a"], "it was made once");
    assert_eq!(play.asked(Method::DELETE, Kind::NetworkInterface), [""; 0]);
    play.pass(60);
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-pool-a"]);
    assert_eq!(play.double.names(Kind::NetworkInterface), ["aks-pool-a"]);
    // What was refused is not asked for again for ten minutes.
    play.double.forget_requests();
    let second = play.claim("pool-b", &[ON_DEMAND, FAMILY_D, SMALL]);
    assert_eq!(label(&play.create(&second).unwrap(), "node.kubernetes.io/instance-type"), "Standard_D2_v3");
    // Usages that are read again know better than the refusal.
    play.start(|name| name == "quota");
    play.pass(601);
    let third = play.claim("pool-c", &[ON_DEMAND, FAMILY_D, SMALL]);
    assert_eq!(label(&play.create(&third).unwrap(), "node.kubernetes.io/instance-type"), "Standard_D2as_v6");
}

// azure.md 9, 25.4: classified reasons reach the condition, all types refused
#[test]
fn the_last_refusal_is_what_the_claim_is_told_and_the_next_try_ends_it() {
    let mut play = ready();
    let refused = Failure::of(Method::PUT, Kind::VirtualMachine).always();
    play.double.fail(refused.at_once(409, "SkuNotAvailable", "not available"));
    let claim = play.claim(
        "pool-a",
        &[ON_DEMAND, FAMILY_D, SMALL, ("topology.kubernetes.io/zone", "In", &["southcentralus-2"])],
    );
    assert_eq!(reason(play.create(&claim)), "SKUNotAvailable");
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    let tried = play.sizes_asked();
    let each: std::collections::BTreeSet<&String> = tried.iter().collect();
    assert_eq!(each.len(), tried.len(), "no offering is asked for twice: {tried:?}");
    let error = play.create(&claim).unwrap_err();
    assert!(matches!(&error, Error::InsufficientCapacity(_)), "{error}");
    assert!(
        error.to_string().contains("all requested instance types were unavailable during launch"),
        "{error}"
    );
}

// azure.md 8.2 row 8, 25.4: regional quota → ICE
#[test]
fn a_region_that_is_used_up_ends_the_claim() {
    let mut play = ready();
    let text = "exceeding approved Total Regional Cores quota";
    play.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).at_once(
        409,
        "OperationNotAllowed",
        text,
    ));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    assert!(matches!(play.create(&claim), Err(Error::InsufficientCapacity(_))));
    assert_eq!(play.sizes_asked().len(), 1);
}

// azure.md 25.4: VM create failure deletes the NIC; 9: CreateInstanceFailed, message cut
#[test]
fn a_refusal_that_nobody_understands_leaves_nothing_behind() {
    let mut play = ready();
    let text = "x".repeat(5000);
    play.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).at_once(400, "InvalidParameter", &text));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let Err(Error::Create { reason, message }) = play.create(&claim) else { panic!("no reason") };
    assert_eq!((reason.as_str(), message.len()), ("CreateInstanceFailed", 1203));
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
}

// azure.md 28.19: a failure before the machine was looked for must not delete it
#[test]
fn a_failure_on_the_way_never_deletes_a_machine_that_runs() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    play.create(&claim).unwrap();
    play.pass(60);
    for kind in [Kind::LoadBalancer, Kind::NetworkInterface] {
        play.double.fail(Failure::of(Method::PUT, kind).always().at_once(403, "AuthorizationFailed", "no"));
        play.double.fail(Failure::of(Method::GET, kind).always().at_once(403, "AuthorizationFailed", "no"));
    }
    play.create(&claim).unwrap();
    play.double.fail(Failure::of(Method::GET, Kind::VirtualMachine).always().at_once(
        403,
        "AuthorizationFailed",
        "no",
    ));
    assert_eq!(reason(play.create(&claim)), "CreateInstanceFailed");
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-pool-a"]);
    assert_eq!(play.double.names(Kind::NetworkInterface), ["aks-pool-a"]);
}

// azure.md 10.1 step 5, 14.3, 25.4: exactly one refresh and retry
#[test]
fn pools_of_load_balancers_that_are_gone_are_looked_up_once_more() {
    let mut play = ready();
    let balancer = play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Network/loadBalancers", "kubernetes-internal");
        world.remove(&id);
        id
    });
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    play.create(&claim).unwrap();
    assert_eq!(play.asked(Method::PUT, Kind::NetworkInterface).len(), 2);
    assert_eq!(play.double.requests_of(&Method::GET, Kind::LoadBalancer).len(), 1);
    let interface = play.double.resources(Kind::NetworkInterface)[0].to_string().to_lowercase();
    assert!(!interface.contains(&balancer.to_lowercase()));
    // Other references are not tried again.
    let text = "/subscriptions/s/subnets/gone";
    play.double.fail(Failure::of(Method::PUT, Kind::NetworkInterface).always().at_once(
        400,
        "InvalidResourceReference",
        text,
    ));
    let second = play.claim("pool-b", &[ON_DEMAND]);
    let before = play.asked(Method::PUT, Kind::NetworkInterface).len();
    assert_eq!(reason(play.create(&second)), "CreateInstanceFailed");
    assert_eq!(play.asked(Method::PUT, Kind::NetworkInterface).len(), before + 1);
}

// azure.md 14.3, 25.4: who finds that somebody else has refreshed them does not ask again
#[test]
fn launches_that_find_the_same_pools_gone_look_them_up_once() {
    let mut play = ready();
    let balancer =
        play.double.change(|world| world.settings.node_id("Microsoft.Network/loadBalancers", "kubernetes"));
    let gone = format!("Resource {balancer}/backendAddressPools/kubernetes referenced was not found.");
    let claims: Vec<_> = (0..5).map(|number| play.claim(&format!("pool-{number}"), &[ON_DEMAND])).collect();
    for number in 0..5 {
        // All of them have named the pools before the first is refused.
        let refused = Failure::of(Method::PUT, Kind::NetworkInterface).name(format!("aks-pool-{number}"));
        play.double.fail(refused.later(400, "InvalidResourceReference", &gone));
    }
    let azure = play.azure.clone();
    let all = claims.iter().map(|claim| azure.create(claim));
    for created in play.world.block_on(futures::future::join_all(all)) {
        created.unwrap();
    }
    assert_eq!(play.asked(Method::PUT, Kind::NetworkInterface).len(), 10, "each was refused once");
    assert_eq!(play.double.requests_of(&Method::GET, Kind::LoadBalancer).len(), 1);
}

// azure.md 9 async launch, 8.2 row 4, 21
#[test]
fn a_machine_that_fails_later_goes_with_its_claim_and_its_zone_is_avoided() {
    let mut play = ready();
    let zonal =
        Failure::of(Method::PUT, Kind::VirtualMachine).later(409, "ZonalAllocationFailed", "No capacity.");
    play.double.fail(zonal);
    let claim = play.claim("pool-a", &[ON_DEMAND, FAMILY_D, SMALL]);
    let launched = play.create(&claim).unwrap();
    play.pass(60);
    assert!(play.world.get(&format!("{CLAIMS}/pool-a")).is_some(), "it does not know of its launch yet");
    play.launched("pool-a", &launched);
    play.pass(30);
    assert!(play.told("pool-a").contains("AsyncProvisioningError"), "{:?}", play.told("pool-a"));
    assert!(play.world.get(&format!("{CLAIMS}/pool-a")).is_none());
    play.pass(60);
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    let page = play.parts.metrics.page();
    assert!(page.contains(r#"karpenter_instance_vm_create_failure_total"#), "{page}");
    assert!(
        page.contains(r#"phase="async""#) && page.contains(r#"error_code="ZonalAllocationFailed""#),
        "{page}"
    );
    assert!(page.contains(r#"reason="async_provisioning""#), "{page}");
    let before = play.sizes_asked();
    let second = play.claim("pool-b", &[ON_DEMAND, FAMILY_D, SMALL]);
    play.create(&second).unwrap();
    assert_ne!(play.sizes_asked().last(), before.last());
}

// azure.md 9: standalone NodeClaims are waited on synchronously
#[test]
fn a_claim_of_its_own_is_told_the_end() {
    let mut play = ready();
    play.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).later(
        409,
        "AllocationFailed",
        "No capacity.",
    ));
    let mut claim = play.claim("alone", &[ON_DEMAND, FAMILY_D, SMALL]);
    claim.metadata.labels = None;
    assert_eq!(reason(play.create(&claim)), "AllocationFailure");
    play.pass(60);
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    play.create(&claim).unwrap();
    assert_eq!(play.double.names(Kind::Extension), ["computeAksLinuxBilling"]);
}

// azure.md 5.3; the issue: quota exhausted for the cheapest three families
#[test]
fn families_without_quota_are_not_asked_for_at_all() {
    let mut play = Play::new();
    play.ready_class(json!({}));
    play.double.change(|world| {
        for family in ["standardDav6Family", "standardDv3Family", "standardDSv3Family"] {
            world.quota.limit(family, 0);
        }
    });
    play.start(|name| name == "quota");
    play.pass(1);
    play.double.forget_requests();
    let claim = play.claim("pool-a", &[ON_DEMAND, FAMILY_D, SMALL]);
    let launched = play.create(&claim).unwrap();
    assert_eq!(label(&launched, "node.kubernetes.io/instance-type"), "Standard_D2_v5");
    assert_eq!(play.sizes_asked().len(), 1);
}

// azure.md 10.6, 25.4
#[test]
fn a_machine_is_deleted_once_however_often_it_is_asked_for() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.pass(60);
    let mut known = claim.clone();
    known.status = launched.status.clone();
    let delete = |play: &Play| play.world.block_on(play.azure.delete(&known));
    delete(&play).unwrap();
    delete(&play).unwrap();
    play.pass(5);
    delete(&play).unwrap();
    assert_eq!(play.asked(Method::DELETE, Kind::VirtualMachine).len(), 1);
    play.pass(60);
    assert!(delete(&play).unwrap_err().is_not_found());
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    let id = launched.status.unwrap().provider_id;
    assert!(play.world.block_on(play.azure.get(&id)).unwrap_err().is_not_found());
}

// azure.md 9, 25.4: NodeClass missing, terminating and not ready
#[test]
fn without_a_class_that_is_ready_nothing_is_launched() {
    let mut play = Play::new();
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let error = play.create(&claim).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"insufficient capacity, resolving node class, aksnodeclasses.karpenter.azure.com "default" not found"#
    );
    assert!(play.told("pool-a").contains("NodeClassResolutionError"));
    play.apply_class("default", &json!({}));
    play.pass(1);
    assert_eq!(reason(play.create(&claim)), "NodeClassReadinessUnknown");
    let pool: api::nodepool::NodePool =
        serde_json::from_value(crate::play::pool("pool", &json!([]))).unwrap();
    let types = play.world.block_on(play.azure.instance_types(&pool)).unwrap();
    assert!(types.iter().any(|each| each.name == "Standard_D2s_v3"));
    let mut other = pool.clone();
    "missing".clone_into(&mut other.spec.template.spec.node_class_ref.name);
    assert!(play.world.block_on(play.azure.instance_types(&other)).is_err());
    // One that is not ready, and says why.
    play.double.fail(Failure::of(Method::GET, Kind::Subnet).always().at_once(404, "NotFound", "no"));
    play.start(|name| name == "nodeclass.status");
    play.pass(10);
    let error = play.create(&claim).unwrap_err();
    assert!(matches!(&error, Error::NodeClassNotReady(_)), "{error:?}");
    // One that is on its way out counts as none, and who wants it is told.
    let second = play.claim("pool-b", &[ON_DEMAND]);
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(1);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_some(), "its finalizer keeps it");
    let error = play.create(&second).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"insufficient capacity, resolving node class, aksnodeclasses.karpenter.azure.com "default" is terminating, treating as not found"#
    );
    assert!(play.told("pool-b").contains("NodeClassResolutionError"));
    assert!(play.world.block_on(play.azure.instance_types(&pool)).is_err());
    assert_eq!(writes(&play), [""; 0]);
}

// azure.md 13.3, 10.5: the service of AKS says how machines start
#[test]
fn machines_of_the_bootstrapping_service_get_its_command() {
    let arguments =
        &["--provision-mode=bootstrappingclient", "--nodebootstrapping-server-url=nps.example.com"];
    let mut play = Play::with(Stage { arguments, ..Stage::default() });
    play.ready_class(json!({}));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.launched("pool-a", &launched);
    play.pass(60);
    assert_eq!(play.double.names(Kind::Extension), ["computeAksLinuxBilling", "cse-agent-karpenter"]);
    let command = play.double.resources(Kind::Extension).iter().find_map(|each| {
        each.pointer("/properties/protectedSettings/commandToExecute")
            .and_then(Value::as_str)
            .map(str::to_owned)
    });
    let command = command.unwrap();
    assert!(!command.contains("{{.TokenID}}") && command.contains("abcdef.0123456789abcdef"), "{command}");
}
