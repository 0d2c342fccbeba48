//! A bad answer of the API server costs no instance.

use api::names::metrics::GARBAGE_COLLECTION_STOPPED;
use api::provider::Provider;
use cluster::state::Kind;
use serde_json::json;
use testkit::{TROUBLES, World, trouble};

use crate::play::{CLAIMS, Play};

const NODES: usize = 5;
const TEN_MINUTES: u64 = 600;

/// A cluster with five nodes that have joined.
fn fleet() -> Play {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.pool("pool-1", "default", &json!({}));
    for number in 0..NODES {
        play.node(&format!("claim-{number}"), &[]);
    }
    play.start();
    play.pass(60);
    assert_eq!(running(&play), NODES);
    play
}

fn running(play: &Play) -> usize {
    play.double.change(|world| world.running().count())
}

fn stopped(play: &Play, reason: &str) -> f64 {
    let labels = ["instance.garbagecollection", reason];
    play.metrics.value(&GARBAGE_COLLECTION_STOPPED, &labels).unwrap_or(0.0)
}

/// Lets the API server answer badly about a resource for a while, in every way there is, and then well again.
#[track_caller]
fn check(resource: &str) {
    let mut play = fleet();
    for (name, fault) in TROUBLES {
        play.faults.set_rules(trouble(resource, fault));
        play.world.server().cut_watches();
        play.pass(TEN_MINUTES);
        assert_eq!(running(&play), NODES, "{name} for {resource}");
        play.faults.set_rules(Vec::new());
        play.pass(TEN_MINUTES);
        assert_eq!(running(&play), NODES, "after {name} for {resource}");
        assert!(stopped(&play, "stale") + stopped(&play, "limit") < 0.5, "{name} for {resource}");
    }
}

#[test]
fn no_bad_answer_about_claims_costs_an_instance() {
    check("nodeclaims");
}

#[test]
fn no_bad_answer_about_nodes_costs_an_instance() {
    check("nodes");
}

#[test]
fn an_empty_api_server_in_place_of_the_real_one_costs_no_instance() {
    let mut play = fleet();
    let empty = World::builder(2).without_scheduler().start();
    for crd in api::crds::documents(Provider::Aws) {
        empty.apply(&crd.document.to_string());
    }
    play.faults.replace(empty.server().service());
    play.world.server().cut_watches();
    play.pass(TEN_MINUTES);
    assert_eq!(running(&play), NODES);
    assert!(stopped(&play, "limit") > 0.5);
}

#[test]
fn claims_that_all_vanish_are_told_and_cost_no_instance() {
    let mut play = fleet();
    for number in 0..NODES {
        let path = format!("{CLAIMS}/claim-{number}");
        play.world.patch(&path, &json!({"metadata": {"finalizers": null}}));
        play.world.delete(&path);
    }
    play.pass(TEN_MINUTES);
    assert_eq!(running(&play), NODES);
    assert!(play.told(Kind::NodePool, "pool-1").contains("GarbageCollectionStopped"));
}

#[test]
fn one_instance_that_really_lost_its_claim_is_terminated() {
    let mut play = fleet();
    play.world.patch(&format!("{CLAIMS}/claim-3"), &json!({"metadata": {"finalizers": null}}));
    play.world.delete(&format!("{CLAIMS}/claim-3"));
    play.pass(TEN_MINUTES);
    assert_eq!(running(&play), NODES - 1);
}
