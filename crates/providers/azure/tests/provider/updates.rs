//! Tags and identities of machines that run already.

use armdouble::{Failure, Kind};
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, Play, Stage};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const HASH: &str = "karpenter.azure.com/in-place-update-hash";
const CONTROLLER: &str = "nodeclaim.inplaceupdate";
const MACHINES: [&str; 4] = [
    "--provision-mode=aksmachineapi",
    "--use-sig=true",
    "--sig-subscription-id=109a5e88-712a-48ae-9078-9ca8b3c81345",
    "--aks-machines-pool-name=karpenter",
];

/// A claim whose node has registered, and which has tags of long ago.
fn running(arguments: &[&str]) -> Play {
    let mut play = Play::with(Stage { arguments, ..Stage::default() });
    play.ready_class(json!({}));
    let claim = play.claim("pool-a", &[ON_DEMAND]);
    let launched = play.create(&claim).unwrap();
    play.launched("pool-a", &launched);
    play.pass(120);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": play.world.now()});
    let conditions = json!({"status": {"conditions": [condition("Launched"), condition("Registered")]}});
    play.world.patch(&format!("{CLAIMS}/pool-a/status"), &conditions);
    play.world.patch(&format!("{CLAIMS}/pool-a"), &json!({"metadata": {"annotations": {HASH: "1"}}}));
    play.pass(1);
    play.double.forget_requests();
    play
}

/// The hash of what the machine has, as the claim says it.
fn hash(play: &Play) -> Value {
    play.world.get(&format!("{CLAIMS}/pool-a")).unwrap()["metadata"]["annotations"][HASH].clone()
}

fn patched(play: &Play) -> Vec<Kind> {
    let all = play.double.requests();
    all.iter().filter(|each| each.method == Method::PATCH).map(|each| each.kind).collect()
}

fn other_tags(play: &mut Play) {
    play.apply_class("default", &json!({"tags": {"team": "a"}}));
    play.pass(1);
    play.start(|name| name == CONTROLLER);
    play.pass(60);
}

// azure.md 15.6: the hash is stored even if nothing changed
#[test]
fn a_machine_that_is_as_it_should_be_is_only_looked_at() {
    let mut play = running(&[]);
    play.start(|name| name == CONTROLLER);
    play.pass(60);
    assert!(patched(&play).is_empty());
    assert_ne!(hash(&play), "1");
    assert_eq!(play.asked(Method::GET, Kind::VirtualMachine), ["aks-pool-a"]);
}

// azure.md 10.6, 25.5: without tags only the VM; 25.8: identities are added
#[test]
fn an_identity_that_is_missing_concerns_only_the_machine() {
    let mut play = running(&[]);
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-pool-a");
        world.change(&id, |machine| drop(machine.as_object_mut().unwrap().remove("identity")));
    });
    play.start(|name| name == CONTROLLER);
    play.pass(60);
    assert_eq!(patched(&play), [Kind::VirtualMachine]);
    let machine = &play.double.resources(Kind::VirtualMachine)[0];
    assert_eq!(machine["identity"]["userAssignedIdentities"].as_object().unwrap().len(), 1);
    assert_ne!(hash(&play), "1");
}

// azure.md 10.6, 25.5: a missing billing extension is ignored
#[test]
fn a_machine_without_the_extension_that_aks_bills_by_gets_its_tags() {
    let mut play = running(&[]);
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-pool-a");
        world.remove(&format!("{id}/extensions/computeAksLinuxBilling")).unwrap();
    });
    other_tags(&mut play);
    assert_eq!(play.double.resources(Kind::VirtualMachine)[0]["tags"]["team"], "a");
    assert_ne!(hash(&play), "1");
}

// azure.md 10.6, 25.5: a missing CSE is an error; what failed is tried again before the VM says that all is well
#[test]
fn a_machine_without_its_command_is_an_error_and_says_so_until_it_is_mended() {
    let mut play =
        running(&["--provision-mode=bootstrappingclient", "--nodebootstrapping-server-url=nps.example.com"]);
    let gone = Failure::of(Method::PATCH, Kind::Extension).name("cse-agent-karpenter").always();
    play.double.fail(gone.at_once(404, "NotFound", "no such extension"));
    other_tags(&mut play);
    assert_eq!(play.asked(Method::PATCH, Kind::VirtualMachine), [""; 0]);
    assert_eq!(hash(&play), "1");
    play.double.fail_no_more();
    play.pass(120);
    assert_eq!(play.double.resources(Kind::VirtualMachine)[0]["tags"]["team"], "a");
    assert_ne!(hash(&play), "1");
}

// azure.md 15.6, 25.8: a missing VM or an invalid ID is an error
#[test]
fn a_machine_that_is_not_there_is_never_in_line() {
    let mut play = running(&[]);
    play.double.change(|world| {
        let id = world.settings.node_id("Microsoft.Compute/virtualMachines", "aks-pool-a");
        world.remove(&id).unwrap();
    });
    other_tags(&mut play);
    assert_eq!(hash(&play), "1");
    play.world
        .patch(&format!("{CLAIMS}/pool-a/status"), &json!({"status": {"providerID": "azure:///nothing"}}));
    play.double.forget_requests();
    play.pass(60);
    assert_eq!(hash(&play), "1");
    assert!(patched(&play).is_empty());
}

// azure.md 11.6, 25.8: If-Match; ETag mismatch → error, retried; missing ETag ok
#[test]
fn an_aks_machine_that_somebody_else_changed_is_read_again() {
    let mut play = running(&MACHINES);
    let changed = Failure::of(Method::PUT, Kind::Machine).times(2);
    play.double.fail(changed.at_once(412, "ConditionNotMet", "somebody was faster"));
    other_tags(&mut play);
    let puts = play.double.requests_of(&Method::PUT, Kind::Machine);
    assert_eq!(puts.iter().map(|each| each.status).collect::<Vec<_>>(), [Some(412), Some(412), Some(200)]);
    for put in &puts {
        assert!(put.headers.contains_key("if-match") && !put.headers.contains_key("batchputmachine"));
    }
    let reads = play.asked(Method::GET, Kind::Machine).len();
    assert!(reads >= puts.len(), "each time it is read anew: {reads}");
    let machine = play.double.resources(Kind::Machine)[0].clone();
    assert_eq!(machine["properties"]["tags"]["team"], "a");
    assert_eq!(machine["properties"]["tags"]["karpenter.azure.com_aksmachine_nodeclaim"], "pool-a");
    assert_ne!(hash(&play), "1");
}

// azure.md 25.8: missing ETag ok
#[test]
fn an_aks_machine_without_an_entity_tag_is_changed_nevertheless() {
    let mut play = running(&MACHINES);
    play.double.change(|world| {
        let id = format!("{}/agentPools/karpenter/machines/pool-a", world.settings.cluster_id());
        world.change(&id, |machine| {
            drop(machine["properties"].as_object_mut().unwrap().remove("eTag"));
        });
    });
    other_tags(&mut play);
    let puts = play.double.requests_of(&Method::PUT, Kind::Machine);
    assert_eq!(puts.len(), 1);
    assert!(!puts[0].headers.contains_key("if-match"));
    assert_eq!(play.double.resources(Kind::Machine)[0]["properties"]["tags"]["team"], "a");
}
