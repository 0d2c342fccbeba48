//! Network interfaces of machines that Azure refuses: used again where Azure lets us, and never lost.

use armdouble::{Failure, Kind, Reservation};
use cloud::CloudProvider as _;
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, Play, Stage};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const DS_V3: (&str, &str, &[&str]) = ("karpenter.azure.com/sku-series", "In", &["Ds_v3"]);

fn ready(change: fn(&mut armdouble::Settings)) -> Play {
    let mut double = armdouble::Settings::default();
    change(&mut double);
    let mut play = Play::with(Stage { double, ..Stage::default() });
    play.ready_class(json!({}));
    play.double.forget_requests();
    play
}

fn refused() -> Failure {
    Failure::of(Method::PUT, Kind::VirtualMachine)
}

fn interface_of_machine(play: &Play) -> String {
    let machine = &play.double.resources(Kind::VirtualMachine)[0];
    let id = machine.pointer("/properties/networkProfile/networkInterfaces/0/id").and_then(Value::as_str);
    id.unwrap().rsplit('/').next().unwrap().to_owned()
}

// Azure/karpenter-provider-azure#92: an interface that Azure keeps for 180 s from every machine
#[test]
fn an_interface_that_azure_keeps_gets_a_successor_and_goes_later() {
    let mut play = ready(|azure| azure.refused_interfaces = Reservation::Strict);
    play.double.fail(refused().at_once(409, "ZonalAllocationFailed", "No capacity."));
    let claim = play.claim("pool-a", &[ON_DEMAND, DS_V3]);
    let launched = play.create(&claim).unwrap();
    play.launched("pool-a", &launched);
    assert_eq!(interface_of_machine(&play), "aks-pool-a_2");
    assert_eq!(play.double.names(Kind::NetworkInterface), ["aks-pool-a", "aks-pool-a_2"]);
    play.pass(240);
    assert_eq!(play.double.names(Kind::NetworkInterface), ["aks-pool-a_2"], "its time is over");
    // Nobody takes it for one that is left over, and it gets the tags of its machine.
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": play.world.now()});
    let registered = json!({"status": {"conditions": [condition("Launched"), condition("Registered")]}});
    play.world.patch(&format!("{CLAIMS}/pool-a/status"), &registered);
    play.start(|name| name.ends_with("garbagecollection") || name == "nodeclaim.inplaceupdate");
    play.apply_class("default", &json!({"tags": {"team": "a"}}));
    play.pass(900);
    assert_eq!(play.asked(Method::DELETE, Kind::NetworkInterface), ["aks-pool-a"]);
    assert_eq!(play.double.resources(Kind::NetworkInterface)[0]["tags"]["team"], "a");
    let mut known = claim;
    known.status = launched.status;
    play.world.block_on(play.azure.delete(&known)).unwrap();
    play.pass(60);
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
}

// Azure/karpenter-provider-azure#92: a launch that comes to nothing
#[test]
fn interfaces_that_azure_keeps_go_with_a_launch_that_comes_to_nothing() {
    let mut play = ready(|azure| azure.refused_interfaces = Reservation::Strict);
    play.double.fail(refused().always().at_once(409, "SkuNotAvailable", "not available"));
    let claim = play.claim("pool-a", &[ON_DEMAND, DS_V3]);
    assert!(play.create(&claim).is_err());
    play.world.delete(&format!("{CLAIMS}/pool-a"));
    play.start(|name| name.ends_with("garbagecollection"));
    play.pass(900);
    assert_eq!(play.double.names(Kind::NetworkInterface), [""; 0]);
}

// azure.md 10.1: a machine that was refused is deleted if it is there, and its interface goes with it
#[test]
fn an_interface_that_went_with_a_refused_machine_is_made_again() {
    let mut play = ready(|_| {});
    play.double.fail(refused().left_behind(409, "ZonalAllocationFailed", "No capacity."));
    let claim = play.claim("pool-a", &[ON_DEMAND, DS_V3]);
    play.create(&claim).unwrap();
    assert_eq!(play.asked(Method::PUT, Kind::NetworkInterface), ["aks-pool-a", "aks-pool-a"]);
    assert_eq!(play.asked(Method::DELETE, Kind::VirtualMachine), ["aks-pool-a"]);
    play.pass(60);
    assert_eq!(interface_of_machine(&play), "aks-pool-a");
    assert_eq!(
        play.double.resources(Kind::VirtualMachine)[0]["properties"]["provisioningState"],
        "Succeeded"
    );
}

// azure.md 18: what was refused because there were too many requests was not begun
#[test]
fn an_interface_that_azure_had_no_time_to_look_at_is_not_deleted() {
    let mut play = ready(|_| {});
    let busy = Failure::of(Method::PUT, Kind::NetworkInterface).always();
    play.double.fail(busy.at_once(429, "TooManyRequests", "too many"));
    let claim = play.claim("pool-a", &[ON_DEMAND, DS_V3]);
    assert!(play.create(&claim).is_err());
    assert_eq!(play.asked(Method::DELETE, Kind::NetworkInterface), [""; 0]);
    assert_eq!(play.asked(Method::PUT, Kind::VirtualMachine), [""; 0]);
}
