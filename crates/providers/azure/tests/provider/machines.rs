//! Machines of the AKS Machine API, one at a time and many at a time.

use std::time::Duration;

use armdouble::{Failure, Form, Kind, Lro, Throttle};
use azure::unavailable::Asked;
use cloud::{CloudProvider as _, Error};
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, Play, Stage, claim};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const SMALL: (&str, &str, &[&str]) = ("karpenter.azure.com/sku-cpu", "In", &["2"]);

fn play(mode: &str) -> Play {
    let mode = format!("--provision-mode={mode}");
    let arguments = [
        mode.as_str(),
        "--use-sig=true",
        "--sig-subscription-id=109a5e88-712a-48ae-9078-9ca8b3c81345",
        "--aks-machines-pool-name=karpenter",
    ];
    let mut play = Play::with(Stage { arguments: &arguments, ..Stage::default() });
    play.ready_class(json!({}));
    play.double.forget_requests();
    play
}

// azure.md 11.2, 11.3, 11.6
#[test]
fn a_machine_is_made_looked_at_and_deleted_by_aks() {
    let mut play = play("aksmachineapi");
    let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    let launched = play.create(&wanted).unwrap();
    assert_eq!(play.asked(Method::PUT, Kind::Machine), ["pool-a"]);
    let annotations = launched.metadata.annotations.clone().unwrap();
    assert!(annotations["karpenter.azure.com/aks-machine-resource-id"].ends_with("/machines/pool-a"));
    assert!(launched.status.as_ref().unwrap().image_id.starts_with("AKSUbuntu-2404gen2containerd-"));
    play.launched("pool-a", &launched);
    play.pass(60);
    assert!(play.world.get(&format!("{CLAIMS}/pool-a")).is_some());
    let id = launched.status.clone().unwrap().provider_id;
    let found = play.world.block_on(play.azure.get(&id)).unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("pool-a"));
    assert_eq!(play.world.block_on(play.azure.list()).unwrap().len(), 1);
    let mut known = wanted.clone();
    known.status = launched.status;
    known.metadata.annotations = Some(annotations);
    play.world.block_on(play.azure.delete(&known)).unwrap();
    play.world.block_on(play.azure.delete(&known)).unwrap();
    assert_eq!(play.double.requests_of(&Method::POST, Kind::DeleteMachines).len(), 1);
    play.pass(60);
    assert!(play.world.block_on(play.azure.delete(&known)).unwrap_err().is_not_found());
    assert_eq!(play.double.names(Kind::Machine), [""; 0]);
}

// azure.md 11.2 step 1, 28.19: a machine of another claim is left alone
#[test]
fn a_machine_of_another_claim_is_not_touched() {
    let mut play = play("aksmachineapi");
    let first = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    play.create(&first).unwrap();
    play.pass(60);
    play.double.change(|world| {
        let id = format!("{}/agentPools/karpenter/machines/pool-a", world.settings.cluster_id());
        world.change(&id, |machine| {
            machine["properties"]["tags"]["karpenter.azure.com_aksmachine_nodeclaim"] = "other".into();
        });
    });
    play.pass(31);
    let Err(Error::Create { message, .. }) = play.create(&first) else { panic!("it was launched") };
    assert!(message.contains("\"other\""), "{message}");
    assert_eq!(play.double.names(Kind::Machine), ["pool-a"]);
}

// azure.md 8.2, 25.4: sync errors mark everything; the next size is tried at once
#[test]
fn a_size_that_aks_does_not_take_is_not_asked_for_again() {
    let mut play = play("aksmachineapi");
    let refused = Failure::of(Method::PUT, Kind::Machine).at_once(400, "VMSizeNotSupported", "no");
    play.double.fail(refused);
    let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    let launched = play.create(&wanted).unwrap();
    let sizes: Vec<String> = play
        .double
        .requests_of(&Method::PUT, Kind::Machine)
        .iter()
        .map(|each| each.body["properties"]["hardware"]["vmSize"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sizes, ["Standard_D2as_v6", "Standard_D2_v3"]);
    assert!(launched.status.is_some());
}

// azure.md 11.4: grouped by what machines have in common, at most fifty in a request; 11.5
#[test]
fn many_machines_are_made_with_few_requests() {
    const MACHINES: usize = 120;
    let mut play = play("aksmachineapiheaderbatch");
    let azure = play.azure.clone();
    let claims: Vec<api::nodeclaim::NodeClaim> = (0..MACHINES)
        .map(|number| {
            serde_json::from_value(claim(&format!("pool-{number:03}"), &[ON_DEMAND, SMALL])).unwrap()
        })
        .collect();
    let results: Vec<_> = play.world.block_on(async {
        let all = claims.iter().map(|claim| azure.create(claim));
        futures::stream::iter(all).buffer_unordered(MACHINES).collect::<Vec<_>>().await
    });
    for result in &results {
        assert!(result.is_ok(), "{result:?}");
    }
    assert_eq!(play.double.requests_of(&Method::PUT, Kind::Machine).len(), 3);
    assert_eq!(play.double.names(Kind::Machine).len(), MACHINES);
    play.double.forget_requests();
    play.pass(120);
    let looks = play.double.requests().len();
    assert!(looks < 30, "waiting for {MACHINES} machines took {looks} requests");
}

// azure.md 25.4: VM mode never writes to the machine API; existing machines are visible only if they are managed
#[test]
fn machines_of_another_mode_are_kept_only_if_asked_for() {
    for (more, seen) in [
        (&["--aks-machines-pool-name=karpenter"][..], 0),
        (&["--aks-machines-pool-name=karpenter", "--manage-existing-aks-machines=true"], 1),
    ] {
        let mut play = Play::with(Stage { arguments: more, ..Stage::default() });
        play.double.change(|world| {
            let id = format!("{}/agentPools/karpenter/machines/old", world.settings.cluster_id());
            let vm = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-karpenter-old-12345678-vm");
            world.put(json!({
                "id": id, "zones": [],
                "properties": {
                    "hardware": {"vmSize": "Standard_D2s_v3"}, "resourceId": vm, "provisioningState": "Succeeded",
                    "priority": "Regular", "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202606.01.0",
                    "tags": {"karpenter.sh_nodepool": "pool", "karpenter.azure.com_aksmachine_nodeclaim": "old"},
                    "status": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                },
            }));
        });
        play.ready_class(json!({}));
        assert_eq!(play.world.block_on(play.azure.list()).unwrap().len(), seen);
        let id = play.double.change(|world| {
            world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-karpenter-old-12345678-vm")
        });
        let found = play.world.block_on(play.azure.get(&azure::vm::provider_id(&id)));
        assert_eq!(found.is_ok(), seen == 1, "{found:?}");
        let machine = play
            .double
            .change(|world| format!("{}/agentPools/karpenter/machines/old", world.settings.cluster_id()));
        let mut old = play.claim("old", &[ON_DEMAND]);
        old.metadata.annotations =
            Some([("karpenter.azure.com/aks-machine-resource-id".to_owned(), machine)].into());
        assert_eq!(play.world.block_on(play.azure.delete(&old)).is_ok(), seen == 1);
        play.pass(60);
        assert_eq!(play.double.names(Kind::Machine).len(), 1 - seen);
        let wanted = play.claim("pool-a", &[ON_DEMAND]);
        play.create(&wanted).unwrap();
        assert_eq!(play.asked(Method::PUT, Kind::Machine), [""; 0]);
    }
}

fn label(instance: &cloud::Instance, key: &str) -> String {
    instance.metadata.labels.as_ref().and_then(|all| all.get(key)).cloned().unwrap_or_default()
}

// azure.md 11.2 wait, 11.5, 9 async launch, 8.2 row 4
#[test]
fn a_machine_that_fails_after_aks_has_accepted_it_goes_with_its_claim_and_its_zone_is_avoided() {
    for mode in ["aksmachineapi", "aksmachineapiheaderbatch"] {
        let mut play = play(mode);
        let zonal =
            Failure::of(Method::PUT, Kind::Machine).later(409, "ZonalAllocationFailed", "No capacity.");
        play.double.fail(zonal);
        let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
        let first = play.create(&wanted).unwrap();
        play.launched("pool-a", &first);
        play.pass(120);
        assert!(play.told("pool-a").contains("AsyncProvisioningError"), "{mode}: {:?}", play.told("pool-a"));
        assert!(play.world.get(&format!("{CLAIMS}/pool-a")).is_none(), "{mode}");
        assert_eq!(play.double.names(Kind::Machine), [""; 0], "{mode}");
        assert!(play.parts.metrics.page().contains(r#"reason="async_provisioning""#), "{mode}");
        let wanted = play.claim("pool-b", &[ON_DEMAND, SMALL]);
        let second = play.create(&wanted).unwrap();
        let place = |each: &cloud::Instance| {
            (label(each, "node.kubernetes.io/instance-type"), label(each, "topology.kubernetes.io/zone"))
        };
        assert_ne!(place(&first), place(&second), "{mode}");
    }
}

// azure.md 11.2: details[0] of the provisioning error → table 8.2; 29: quota in two layers
#[test]
fn a_machine_that_fails_for_its_quota_says_how_much_is_left() {
    let mut play = play("aksmachineapi");
    let cheapest = "standardDav6Family";
    play.double.change(|world| world.quota.limit(cheapest, 0));
    let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    let first = play.create(&wanted).unwrap();
    assert_eq!(label(&first, "node.kubernetes.io/instance-type"), "Standard_D2as_v6");
    play.launched("pool-a", &first);
    play.pass(60);
    assert!(play.world.get(&format!("{CLAIMS}/pool-a")).is_none());
    let events = play.parts.events.published();
    let event = events.iter().find(|event| &*event.reason == "AsyncProvisioningError").unwrap();
    for part in ["Standard_D2as_v6", "Current Limit: 0, Current Usage: 0"] {
        assert!(event.message.contains(part), "{part} is not in {}", event.message);
    }
    let wanted = play.claim("pool-b", &[ON_DEMAND, SMALL]);
    let second = play.create(&wanted).unwrap();
    assert_ne!(label(&second, "node.kubernetes.io/instance-type"), "Standard_D2as_v6");
    // The numbers count for all sizes of the family, before usages are read again.
    let any = Asked { name: "any", family: cheapest, vcpus: 2, zone: "0", capacity_type: "on-demand" };
    let shortage = play.azure.know(|known| known.quota().check(&any)).unwrap_err();
    assert_eq!((shortage.quota.as_str(), shortage.left, shortage.limit), (cheapest, 0, 0));
}

// azure.md 11.2: any error deletes the machine, those that say what Azure has included
#[test]
fn a_machine_that_was_refused_and_is_there_is_out_of_the_way_of_the_next() {
    let mut play = play("aksmachineapi");
    let refused = Failure::of(Method::PUT, Kind::Machine).name("pool-a");
    play.double.fail(refused.left_behind(400, "VMSizeNotSupported", "no"));
    let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    let launched = play.create(&wanted).unwrap();
    assert_eq!(label(&launched, "node.kubernetes.io/instance-type"), "Standard_D2_v3");
    assert_eq!(play.double.requests_of(&Method::POST, Kind::DeleteMachines).len(), 1);
    play.pass(60);
    let machine = &play.double.resources(Kind::Machine)[0];
    assert_eq!(machine["properties"]["provisioningState"], "Succeeded");
}

// azure.md 18, 24: windows of requests in the machine modes
#[test]
fn machines_come_once_each_though_azure_throttles() {
    const MACHINES: usize = 60;
    for (mode, limit) in [("aksmachineapi", 25), ("aksmachineapiheaderbatch", 1)] {
        let mut play = play(mode);
        play.double.throttle(Throttle::writes(Kind::Machine, limit, Duration::from_secs(30)));
        let azure = play.azure.clone();
        let mut left: Vec<api::nodeclaim::NodeClaim> = (0..MACHINES)
            .map(|number| {
                serde_json::from_value(claim(&format!("pool-{number:03}"), &[ON_DEMAND, SMALL])).unwrap()
            })
            .collect();
        let mut rounds = 0;
        // What was refused for now is tried again, as the core does.
        while !left.is_empty() {
            rounds += 1;
            assert!(rounds < 20, "{mode}: {} are left", left.len());
            play.pass(10);
            left = play.world.block_on(async {
                let all = left.into_iter().map(|claim| {
                    let azure = &azure;
                    async move { azure.create(&claim).await.is_err().then_some(claim) }
                });
                let again: Vec<_> = futures::stream::iter(all).buffer_unordered(MACHINES).collect().await;
                again.into_iter().flatten().collect()
            });
        }
        assert_eq!(play.double.names(Kind::Machine).len(), MACHINES, "{mode}");
        assert_eq!(play.double.requests_of(&Method::POST, Kind::DeleteMachines).len(), 0, "{mode}");
        // Each was accepted once, alone or in a batch.
        let puts = play.double.requests_of(&Method::PUT, Kind::Machine);
        assert!(puts.iter().any(|put| put.status == Some(429)), "{mode}: nothing was throttled");
        let mut accepted: Vec<String> = Vec::new();
        for put in puts.iter().filter(|put| put.status.is_some_and(|status| status < 300)) {
            let batch: Option<Value> =
                put.headers.get("batchputmachine").and_then(|text| serde_json::from_str(text).ok());
            let of_batch = batch.as_ref().and_then(|batch| batch["batchMachines"].as_array());
            match of_batch {
                Some(machines) => {
                    let name = |machine: &Value| machine["machineName"].as_str().unwrap().to_owned();
                    accepted.extend(machines.iter().map(name));
                }
                None => accepted.push(put.name.clone()),
            }
        }
        accepted.sort();
        let expected: Vec<String> = (0..MACHINES).map(|number| format!("pool-{number:03}")).collect();
        assert_eq!(accepted, expected, "{mode}");
    }
}

// azure.md 18: what was refused because there were too many requests was not begun
#[test]
fn no_machine_is_deleted_that_aks_had_no_time_to_look_at() {
    for mode in ["aksmachineapi", "aksmachineapiheaderbatch"] {
        let mut play = play(mode);
        let busy = Failure::of(Method::PUT, Kind::Machine).name("pool-a").always();
        play.double.fail(busy.at_once(429, "TooManyRequests", "too many"));
        let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
        assert!(play.create(&wanted).is_err(), "{mode}");
        assert_eq!(play.double.requests_of(&Method::POST, Kind::DeleteMachines).len(), 0, "{mode}");
    }
}

// azure.md 11.5, 25.8: a list that cannot be had is asked for by one of those who wait
#[test]
fn many_who_wait_do_not_ask_again_and_again_when_aks_does_not_answer() {
    const MACHINES: usize = 40;
    let mut play = play("aksmachineapiheaderbatch");
    let azure = play.azure.clone();
    let claims: Vec<api::nodeclaim::NodeClaim> = (0..MACHINES)
        .map(|number| {
            serde_json::from_value(claim(&format!("pool-{number:03}"), &[ON_DEMAND, SMALL])).unwrap()
        })
        .collect();
    play.world.block_on(async {
        let all = claims.iter().map(|claim| azure.create(claim));
        futures::stream::iter(all)
            .buffer_unordered(MACHINES)
            .for_each(|made| async { drop(made.unwrap()) })
            .await;
    });
    play.double.fail(Failure::of(Method::GET, Kind::Machine).always().at_once(
        403,
        "AuthorizationFailed",
        "no",
    ));
    play.double.forget_requests();
    play.pass(60);
    let asked = play.double.requests_of(&Method::GET, Kind::Machine).len();
    assert!((1..=15).contains(&asked), "{asked}");
    play.double.fail_no_more();
    play.pass(60);
    assert_eq!(play.double.names(Kind::Machine).len(), MACHINES, "nobody gave up");
}

// azure.md 11.2, 25.4: found though GET said not found: same config ok, conflicting config ⇒ error and cleanup
#[test]
fn a_machine_that_was_overlooked_is_the_same_or_goes() {
    let mut play = play("aksmachineapi");
    let zone = ("topology.kubernetes.io/zone", "In", &["southcentralus-1"][..]);
    let size = ("node.kubernetes.io/instance-type", "In", &["Standard_D2s_v3"][..]);
    let overlook = |play: &mut Play| {
        // What is known of it counts for half a minute.
        play.pass(60);
        play.double.fail(Failure::of(Method::GET, Kind::Machine).at_once(404, "NotFound", "no such machine"));
    };
    let wanted = play.claim("pool-a", &[ON_DEMAND, zone, size]);
    let first = play.create(&wanted).unwrap();
    overlook(&mut play);
    let same = play.create(&wanted).unwrap();
    assert_eq!(first.status.unwrap().provider_id, same.status.unwrap().provider_id);
    assert_eq!(play.double.requests_of(&Method::POST, Kind::DeleteMachines).len(), 0);
    overlook(&mut play);
    let mut other = wanted.clone();
    other.spec.requirements = serde_json::from_value(json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["Standard_D4s_v3"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]))
    .unwrap();
    assert!(matches!(play.create(&other), Err(Error::Create { .. })));
    play.pass(60);
    assert_eq!(play.double.names(Kind::Machine), [""; 0]);
}

// azure.md 11.2, 28.19: also a machine that was overlooked may be that of another claim
#[test]
fn a_machine_of_another_claim_that_was_overlooked_is_not_deleted() {
    let mut play = play("aksmachineapi");
    let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    play.create(&wanted).unwrap();
    play.pass(60);
    play.double.change(|world| {
        let id = format!("{}/agentPools/karpenter/machines/pool-a", world.settings.cluster_id());
        world.change(&id, |machine| {
            machine["properties"]["tags"]["karpenter.azure.com_aksmachine_nodeclaim"] = "other".into();
        });
    });
    play.double.fail(Failure::of(Method::GET, Kind::Machine).at_once(404, "NotFound", "no such machine"));
    play.double.fail(Failure::of(Method::PUT, Kind::Machine).at_once(
        400,
        "OperationNotAllowed",
        "it is there",
    ));
    assert!(play.create(&wanted).is_err());
    assert_eq!(play.double.names(Kind::Machine), ["pool-a"]);
    assert_eq!(play.double.requests_of(&Method::POST, Kind::DeleteMachines).len(), 0);
    // Nor is it deleted with a claim that never learned of its machine.
    assert!(play.world.block_on(play.azure.delete(&wanted)).unwrap_err().is_not_found());
    assert_eq!(play.double.names(Kind::Machine), ["pool-a"]);
}

// azure.md 9, 11.6: a claim that never learned of its machine
#[test]
fn a_claim_without_a_provider_id_is_deleted_with_the_aks_machine_of_its_name() {
    let mut play = play("aksmachineapi");
    let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    play.create(&wanted).unwrap();
    play.pass(60);
    play.world.block_on(play.azure.delete(&wanted)).unwrap();
    play.pass(60);
    assert!(play.world.block_on(play.azure.delete(&wanted)).unwrap_err().is_not_found());
    assert_eq!(play.double.names(Kind::Machine), [""; 0]);
}

// azure.md 11, 25.4: pool missing: not found and empty everywhere
#[test]
fn without_its_pool_there_are_no_machines() {
    let mut play = play("aksmachineapi");
    play.double.change(|world| {
        let pool = format!("{}/agentPools/karpenter", world.settings.cluster_id());
        world.remove(&pool);
    });
    assert_eq!(play.world.block_on(play.azure.list()).unwrap().len(), 0);
    let id = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/aks-karpenter-a-12345678-vm";
    assert!(play.world.block_on(play.azure.get(id)).unwrap_err().is_not_found());
    let mut wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
    assert!(matches!(play.create(&wanted), Err(Error::Create { .. })));
    wanted.metadata.annotations = Some(
        [("karpenter.azure.com/aks-machine-resource-id".to_owned(), "/machines/pool-a".to_owned())].into(),
    );
    assert!(play.world.block_on(play.azure.delete(&wanted)).unwrap_err().is_not_found());
}

// azure.md 11.4, 25.8: separate keys are separate calls; a window is open for at most five seconds
#[test]
fn what_differs_goes_apart_and_nobody_waits_longer_than_the_longest_window() {
    let play = play("aksmachineapiheaderbatch");
    let azure = play.azure.clone();
    let of = |number: u64, cpus: &str| -> api::nodeclaim::NodeClaim {
        let cpus = [cpus];
        let cpus = ("karpenter.azure.com/sku-cpu", "In", &cpus[..]);
        serde_json::from_value(claim(&format!("pool-{number}"), &[ON_DEMAND, cpus])).unwrap()
    };
    let make = |claims: Vec<(Duration, api::nodeclaim::NodeClaim)>| {
        play.double.forget_requests();
        play.world.block_on(async {
            let all = claims.iter().map(|(wait, claim)| {
                let azure = &azure;
                async move {
                    tokio::time::sleep(*wait).await;
                    azure.create(claim).await.unwrap();
                }
            });
            futures::future::join_all(all).await;
        });
        play.double.requests_of(&Method::PUT, Kind::Machine).len()
    };
    assert_eq!(make(vec![(Duration::ZERO, of(1, "2")), (Duration::ZERO, of(2, "4"))]), 2);
    // Each comes before the window would close.
    let millis = |number: u64| Duration::from_millis(900 * number);
    assert_eq!(make((0..8).map(|number| (millis(number), of(10 + number, "2"))).collect()), 2);
}

// azure.md 11.5, 25.8: poll success, not found, at most 15 minutes
#[test]
fn a_machine_that_is_gone_or_takes_too_long_goes_with_its_claim() {
    for (is_gone, minutes) in [(true, 2), (false, 14), (false, 16)] {
        let mut play = play("aksmachineapiheaderbatch");
        let slow = Lro::new(Form::AsyncOperation, Duration::from_hours(2));
        play.double.change(|world| world.settings.set_lro(Kind::Machine, &Method::PUT, slow));
        let wanted = play.claim("pool-a", &[ON_DEMAND, SMALL]);
        let launched = play.create(&wanted).unwrap();
        play.launched("pool-a", &launched);
        if is_gone {
            let pool =
                play.double.change(|world| format!("{}/agentPools/karpenter", world.settings.cluster_id()));
            play.double.change(|world| world.remove(&format!("{pool}/machines/pool-a")));
        }
        play.pass(minutes * 60);
        let goes = is_gone || minutes > 15;
        assert_eq!(play.told("pool-a").contains("AsyncProvisioningError"), goes, "{minutes}");
        assert_eq!(play.world.get(&format!("{CLAIMS}/pool-a")).is_none(), goes, "{minutes}");
        assert_eq!(play.double.names(Kind::Machine).is_empty(), goes, "{minutes}");
    }
}

// azure.md 15.4, 25.8: VM and machine mix; 11: VM-based nodes remain fully managed in every mode
#[test]
fn machines_of_both_kinds_that_nobody_knows_are_deleted() {
    let mut play = play("aksmachineapi");
    for name in ["pool-kept", "pool-lost"] {
        let wanted = play.claim(name, &[ON_DEMAND, SMALL]);
        let launched = play.create(&wanted).unwrap();
        play.launched(name, &launched);
    }
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-old");
        world.put(json!({
            "id": id, "location": "southcentralus",
            "tags": {"karpenter.sh_nodepool": "pool", "karpenter.azure.com_cluster": "walk"},
            "properties": {
                "provisioningState": "Succeeded", "timeCreated": play.world.now().to_string(),
                "hardwareProfile": {"vmSize": "Standard_D2s_v3"},
            },
        }));
    });
    // One after the other: more than a tenth of all are never deleted at once.
    play.start(|name| name == "instance.garbagecollection");
    play.pass(900);
    assert_eq!(play.double.names(Kind::Machine), ["pool-kept", "pool-lost"]);
    play.world.delete(&format!("{CLAIMS}/pool-lost"));
    play.pass(900);
    assert_eq!(play.double.names(Kind::Machine), ["pool-kept"]);
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-karpenter-pool-kept-12345678-vm"]);
}
