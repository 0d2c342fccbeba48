//! What becomes of launches and deletions that do not go as planned: nothing is lost, and nothing is asked in vain.

use std::time::Duration;

use armdouble::{Failure, Kind};
use cloud::{CloudProvider as _, Error};
use http::Method;
use serde_json::json;

use crate::play::{CLAIMS, CLASSES, Play, Stage, pool};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const DS_V3: (&str, &str, &[&str]) = ("karpenter.azure.com/sku-series", "In", &["Ds_v3"]);

fn ready() -> Play {
    let mut play = Play::new();
    play.ready_class(json!({}));
    play.double.forget_requests();
    play
}

/// A requirement of so many processors.
fn cpus(play: &mut Play, name: &str, cpus: &str) -> Result<cloud::Instance, Error> {
    let cpus = [cpus];
    let claim = play.claim(name, &[ON_DEMAND, DS_V3, ("karpenter.azure.com/sku-cpu", "In", &cpus[..])]);
    play.create(&claim)
}

// azure.md 8.2 row 2; our own: what Azure says about quota counts at once
#[test]
fn a_refusal_by_quota_is_not_repeated_with_a_smaller_size_that_is_too_large_as_well() {
    let mut play = ready();
    // Since usages were read.
    play.double.change(|world| world.quota.limit("standardDSv3Family", 2));
    let refused = cpus(&mut play, "pool-a", "64").unwrap_err();
    assert!(
        matches!(&refused, Error::Create { reason, .. } if reason == "SubscriptionQuotaReached"),
        "{refused}"
    );
    let without = cpus(&mut play, "pool-b", "4").unwrap_err();
    assert!(matches!(&without, Error::InsufficientCapacity(_)), "{without}");
    assert!(without.to_string().contains("standardDSv3Family"), "{without}");
    cpus(&mut play, "pool-c", "2").unwrap();
    let sizes = play.sizes_asked();
    let sizes: Vec<&str> = sizes.iter().filter_map(|text| text.split(' ').next()).collect();
    assert_eq!(sizes, ["Standard_D64s_v3", "Standard_D2s_v3"]);
}

// azure.md 8.2 row 8: the numbers of the region count for all families
#[test]
fn a_region_that_is_used_up_is_asked_once() {
    let mut play = ready();
    play.double.change(|world| world.quota.limit("cores", 1));
    for name in ["pool-a", "pool-b"] {
        let claim = play.claim(name, &[ON_DEMAND]);
        let error = play.create(&claim).unwrap_err();
        assert!(matches!(&error, Error::InsufficientCapacity(_)), "{error}");
    }
    assert_eq!(play.sizes_asked().len(), 1);
}

// azure.md 18: what was refused because there were too many requests was not begun
#[test]
fn nothing_is_deleted_that_azure_had_no_time_to_look_at() {
    let mut play = ready();
    play.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).always().at_once(
        429,
        "TooManyRequests",
        "too many",
    ));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    assert!(matches!(play.create(&claim), Err(Error::Create { .. })));
    assert_eq!(play.asked(Method::DELETE, Kind::VirtualMachine), [""; 0]);
    let looks = play.asked(Method::GET, Kind::VirtualMachine);
    assert_eq!(looks, ["aks-pool-a"], "before the launch, and not after it");
    // The interface was made, so it goes.
    assert_eq!(play.asked(Method::DELETE, Kind::NetworkInterface), ["aks-pool-a"]);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    play.double.fail_no_more();
    play.create(&claim).unwrap();
}

// Our own: what we delete can be used again before usages are read
#[test]
fn a_machine_that_is_deleted_leaves_room_for_the_next_at_once() {
    let machines = [
        "--provision-mode=aksmachineapi",
        "--use-sig=true",
        "--sig-subscription-id=109a5e88-712a-48ae-9078-9ca8b3c81345",
        "--aks-machines-pool-name=karpenter",
    ];
    for arguments in [&[][..], &machines] {
        let mut play = Play::with(Stage { arguments, ..Stage::default() });
        play.ready_class(json!({}));
        play.double.change(|world| world.quota.limit("standardDSv3Family", 2));
        play.start(|name| name == "quota");
        let launched = cpus(&mut play, "pool-a", "2").unwrap();
        play.launched("pool-a", &launched);
        play.pass(605);
        let full = cpus(&mut play, "pool-b", "2").unwrap_err();
        assert!(full.to_string().contains("0 of 2 are left"), "{full}");
        let known = serde_json::from_value(play.world.get(&format!("{CLAIMS}/pool-a")).unwrap()).unwrap();
        play.world.block_on(play.azure.delete(&known)).unwrap();
        let still = cpus(&mut play, "pool-c", "2").unwrap_err();
        assert!(matches!(&still, Error::InsufficientCapacity(_)), "it is not gone yet: {still}");
        play.double.forget_requests();
        play.pass(60);
        cpus(&mut play, "pool-d", "2").unwrap();
        assert_eq!(play.asked(Method::GET, Kind::Usage), [""; 0], "usages were not read meanwhile");
        let full = cpus(&mut play, "pool-e", "2").unwrap_err();
        assert!(matches!(&full, Error::InsufficientCapacity(_)), "{full}");
    }
}

// azure.md 9, 10.6: a claim that never learned of its machine
#[test]
fn a_claim_without_a_provider_id_is_deleted_with_the_machine_of_its_name() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let delete = |play: &Play| play.world.block_on(play.azure.delete(&claim));
    assert!(delete(&play).unwrap_err().is_not_found());
    play.create(&claim).unwrap();
    play.pass(60);
    delete(&play).unwrap();
    play.pass(60);
    assert!(delete(&play).unwrap_err().is_not_found());
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    // That of another cluster in the same resource group stays.
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-pool-a");
        world.put(json!({
            "id": id, "location": "southcentralus", "tags": {"karpenter.azure.com_cluster": "other"},
            "properties": {"provisioningState": "Succeeded", "hardwareProfile": {"vmSize": "Standard_D2s_v3"}},
        }));
    });
    assert!(delete(&play).unwrap_err().is_not_found());
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-pool-a"]);
    // Nobody knows: it is asked for again.
    play.double.fail(Failure::of(Method::GET, Kind::VirtualMachine).always().at_once(
        403,
        "AuthorizationFailed",
        "no",
    ));
    assert!(!delete(&play).unwrap_err().is_not_found());
}

// azure.md 10.6: the marker of a deletion is removed at the end, whatever the end is
#[test]
fn a_deletion_that_is_given_up_is_begun_again() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.pass(60);
    let mut known = claim;
    known.status = launched.status;
    play.double.change(|world| world.settings.latency = Duration::from_secs(1));
    let given_up = play.world.block_on(async {
        tokio::time::timeout(Duration::from_millis(500), play.azure.delete(&known)).await
    });
    assert!(given_up.is_err(), "it looks at the machine");
    play.world.block_on(play.azure.delete(&known)).unwrap();
    assert_eq!(play.asked(Method::DELETE, Kind::VirtualMachine), ["aks-pool-a"]);
    play.pass(120);
    assert!(play.world.block_on(play.azure.delete(&known)).unwrap_err().is_not_found());
}

// azure.md 9 async launch: the wait stops if the NodeClaim is gone
#[test]
fn a_machine_that_fails_after_its_claim_has_gone_goes_too() {
    let mut play = ready();
    play.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).later(
        409,
        "AllocationFailed",
        "No capacity.",
    ));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    play.create(&claim).unwrap();
    play.world.delete(&format!("{CLAIMS}/pool-a"));
    play.pass(180);
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
    assert!(!play.told("pool-a").contains("AsyncProvisioningError"));
}

// azure.md 9 async launch: a deletion ends the creation that still runs
#[test]
fn a_machine_that_is_deleted_while_it_is_made_is_no_failure_of_its_claim() {
    let mut play = ready();
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.launched("pool-a", &launched);
    let path = format!("{CLAIMS}/pool-a");
    play.world.patch(&path, &json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}}));
    play.world.delete(&path);
    play.pass(1);
    let mut known = claim;
    known.status = launched.status;
    play.world.block_on(play.azure.delete(&known)).unwrap();
    play.pass(120);
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    assert_eq!(play.double.names(Kind::Extension), [""; 0]);
    assert!(!play.told("pool-a").contains("AsyncProvisioningError"), "{:?}", play.told("pool-a"));
    assert!(!play.parts.metrics.page().contains(r#"reason="async_provisioning""#));
    // What was not refused for lack of capacity closes nothing.
    let second = play.claim("pool-b", &[ON_DEMAND]);
    let again = play.create(&second).unwrap();
    let size = |each: &cloud::Instance| {
        each.metadata.labels.as_ref().unwrap()["node.kubernetes.io/instance-type"].clone()
    };
    assert_eq!(play.sizes_asked().len(), 2);
    assert!(!size(&again).is_empty());
}

// azure.md 21, 25.4: start, sync failure; error code fallback
#[test]
fn launches_and_their_failures_are_counted_with_their_code() {
    let mut play = ready();
    let put = || Failure::of(Method::PUT, Kind::VirtualMachine);
    let claim = play.claim("pool-a", &[ON_DEMAND, DS_V3]);
    play.double.fail(put().at_once(400, "InvalidParameter", "no"));
    play.create(&claim).unwrap_err();
    play.double.fail(put().always().lost_before());
    play.create(&claim).unwrap_err();
    let page = play.parts.metrics.page();
    let lines = |name: &str, part: &str| {
        let all = page.lines().filter(|line| line.starts_with(name) && line.contains(part));
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let started = lines("karpenter_instance_vm_create_start_total", r#"capacity_type="on-demand""#);
    assert!(!started.is_empty() && started.iter().all(|line| line.contains(r#"nodepool="pool""#)), "{page}");
    for code in ["InvalidParameter", "UnknownError"] {
        let failed = lines("karpenter_instance_vm_create_failure_total", &format!(r#"error_code="{code}""#));
        assert!(!failed.is_empty() && failed.iter().all(|line| line.contains(r#"phase="sync""#)), "{page}");
    }
}

// azure.md 20 step 2: at most two minutes for the definitions of kinds
#[test]
fn the_start_waits_for_definitions_and_then_names_those_that_are_missing() {
    use std::sync::Arc;

    use api::provider::Provider;
    use parking_lot::Mutex;

    let mut world = testkit::World::builder(1).without_scheduler().start();
    let settings = runtime::settings::Settings::default();
    let parts = world
        .block_on(async { operator::Parts::new(world.client(), Provider::Azure, world.clock(), settings) });
    let told = world.block_on(azure::provider::wait_for_definitions(&parts.api)).unwrap_err();
    for kind in ["NodePool", "NodeClaim", "NodeOverlay", "AKSNodeClass of karpenter.azure.com/v1beta1"] {
        assert!(told.contains(kind), "{told}");
    }
    assert!(told.contains("after 2 minutes"), "{told}");
    let ended = Arc::new(Mutex::new(None));
    let (end, api) = (Arc::clone(&ended), parts.api.clone());
    world.spawn(async move {
        let result = azure::provider::wait_for_definitions(&api).await;
        *end.lock() = Some(result);
    });
    world.run_for(Duration::from_secs(45));
    assert_eq!(*ended.lock(), None);
    for crd in api::crds::documents(Provider::Azure) {
        world.apply(&crd.document.to_string());
    }
    world.run_for(Duration::from_secs(20));
    assert_eq!(*ended.lock(), Some(Ok(())));
}

// azure.md 9: the liveness check is the lock of the prices
#[test]
fn the_process_lives_as_long_as_prices_can_be_looked_at() {
    let play = Play::with(Stage::default());
    assert_eq!(play.azure.liveness(), Ok(()));
    let held = play.azure.know(|_| play.azure.liveness());
    assert_eq!(held, Err("what is known of prices was locked for 1 s".to_owned()));
    assert_eq!(play.azure.liveness(), Ok(()));
}

// azure.md 9: any failure fails the list; our own: a machine that tells too little is there nevertheless
#[test]
fn a_list_is_complete_or_an_error() {
    let mut play = ready();
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-odd");
        world.put(json!({
            "id": id, "location": "southcentralus", "tags": {"karpenter.sh_nodepool": "pool"}, "zones": ["1", "2"],
            "properties": {"provisioningState": "Succeeded", "timeCreated": "2020-01-01T00:00:00Z"},
        }));
    });
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.launched("pool-a", &launched);
    play.pass(60);
    let listed = play.world.block_on(play.azure.list()).unwrap();
    let names: Vec<Option<&str>> = listed.iter().map(|each| each.metadata.name.as_deref()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&Some("odd")), "{names:?}");
    // Nobody knows how old it is, whatever it says.
    play.start(|name| name == "instance.garbagecollection");
    play.pass(600);
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-odd", "aks-pool-a"]);
    play.double.fail(Failure::of(Method::POST, Kind::ResourceGraph).always().at_once(
        403,
        "AuthorizationFailed",
        "no",
    ));
    assert!(play.world.block_on(play.azure.list()).is_err());
    // Nor is a list complete without the machines of AKS.
    let arguments = &[
        "--provision-mode=aksmachineapi",
        "--use-sig=true",
        "--sig-subscription-id=109a5e88-712a-48ae-9078-9ca8b3c81345",
        "--aks-machines-pool-name=karpenter",
    ];
    let play = Play::with(Stage { arguments, ..Stage::default() });
    assert_eq!(play.world.block_on(play.azure.list()).unwrap().len(), 0);
    let refused = Failure::of(Method::GET, Kind::Machine).always();
    play.double.fail(refused.at_once(403, "AuthorizationFailed", "no"));
    let error = play.world.block_on(play.azure.list()).unwrap_err();
    assert!(error.to_string().starts_with("listing AKS machines, "), "{error}");
}

// azure.md 16: without a NodeClass there is no drift, and the NodePool is told
#[test]
fn without_a_class_nothing_drifts_and_the_pool_is_told() {
    let mut play = Play::new();
    play.world.apply(&pool("pool", &json!([])).to_string());
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    assert_eq!(play.world.block_on(play.azure.drift(&claim)), Ok(None));
    assert!(play.told("pool").contains("NodeClassResolutionError"));
}

// azure.md 9, 25.4: type resolution failure has its reason
#[test]
fn a_catalogue_without_sizes_has_its_own_reason() {
    let mut play = ready();
    play.azure.know(|known| known.set_catalogue(azure::sku::Catalogue::default()));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let error = play.create(&claim).unwrap_err();
    assert!(
        matches!(&error, Error::Create { reason, .. } if reason == "InstanceTypeResolutionFailed"),
        "{error}"
    );
    assert!(error.to_string().contains("no instance types found"), "{error}");
}

// azure.md 21: karpenter_image_selection_error_count
#[test]
fn a_size_for_which_there_is_no_image_is_counted() {
    let mut play = Play::new();
    play.apply_class("default", &json!({}));
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
            "lastTransitionTime": play.world.now(),
        })
    };
    let image = "/CommunityGalleries/AKSUbuntu-1/images/2404gen2containerd/versions/1";
    let status = json!({"status": {
        "kubernetesVersion": "1.36.3",
        "images": [{"id": image, "requirements": [
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]},
        ]}],
        "conditions": [
            condition("KubernetesVersionReady"), condition("ImagesReady"), condition("SubnetsReady"),
            condition("ValidationSucceeded"), condition("LocalDNSReady"), condition("Ready"),
        ],
    }});
    play.world.patch(&format!("{CLASSES}/default/status"), &status);
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let error = play.create(&claim).unwrap_err();
    assert!(matches!(&error, Error::Create { reason, .. } if reason == "CreateInstanceFailed"), "{error}");
    let page = play.parts.metrics.page();
    let counted = page.lines().find(|line| line.starts_with("karpenter_image_selection_error_count{"));
    assert!(counted.is_some_and(|line| line.contains("family=") && line.ends_with(" 1")), "{page}");
}
