//! Machines of the AKS Machine API, one at a time and many at a time.

use armdouble::{Failure, Kind};
use cloud::{CloudProvider as _, Error};
use futures::StreamExt as _;
use http::Method;
use serde_json::json;

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
        let wanted = play.claim("pool-a", &[ON_DEMAND]);
        play.create(&wanted).unwrap();
        assert_eq!(play.asked(Method::PUT, Kind::Machine), [""; 0]);
    }
}
