//! A bad answer of the API server costs no virtual machine: the whole operator, in virtual time.

use api::names::metrics::GARBAGE_COLLECTION_STOPPED;
use api::provider::Provider;
use armdouble::Kind;
use serde_json::json;
use testkit::scenarios::manifests::deployment_with;
use testkit::{TROUBLES, World, trouble};

use crate::play::{Play, Stage, pool};

const NODES: usize = 5;
const TEN_MINUTES: u64 = 600;

/// A cluster with five nodes of one pod each, old enough to be collected.
fn fleet() -> Play {
    let mut play = Play::with(Stage { alive: true, ..Stage::default() });
    let linux = json!([{"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]}]);
    play.world.apply(&pool("pool", &linux).to_string());
    play.apply_class("default", &json!({"imageFamily": "Ubuntu"}));
    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
    }]}}});
    play.world.apply(&deployment_with("web", NODES, "500m", &apart).to_string());
    play.pass(2 * TEN_MINUTES);
    assert_eq!((play.world.running(), machines(&play).len()), (NODES, NODES), "{}", play.world.describe());
    play
}

fn machines(play: &Play) -> Vec<String> {
    play.double.names(Kind::VirtualMachine)
}

fn stopped(play: &Play, reason: &str) -> f64 {
    let labels = ["instance.garbagecollection", reason];
    play.parts.metrics.value(&GARBAGE_COLLECTION_STOPPED, &labels).unwrap_or(0.0)
}

/// Lets the API server answer badly about a resource for a while, in every way there is, and then well again.
#[track_caller]
fn check(resource: &str) {
    let mut play = fleet();
    let before = machines(&play);
    for (name, fault) in TROUBLES {
        play.faults.set_rules(trouble(resource, fault));
        play.world.server().cut_watches();
        play.pass(TEN_MINUTES);
        assert_eq!(machines(&play), before, "{name} for {resource}");
        play.faults.set_rules(Vec::new());
        play.pass(TEN_MINUTES);
        assert_eq!(machines(&play), before, "after {name} for {resource}");
        assert!(stopped(&play, "stale") + stopped(&play, "limit") < 0.5, "{name} for {resource}");
    }
}

#[test]
fn no_bad_answer_about_claims_costs_a_machine() {
    check("nodeclaims");
}

#[test]
fn no_bad_answer_about_nodes_costs_a_machine() {
    check("nodes");
}

#[test]
fn an_empty_api_server_in_place_of_the_real_one_costs_no_machine() {
    let mut play = fleet();
    let before = machines(&play);
    let empty = World::builder(2).without_scheduler().start();
    for crd in api::crds::documents(Provider::Azure) {
        empty.apply(&crd.document.to_string());
    }
    play.faults.replace(empty.server().service());
    play.world.server().cut_watches();
    play.pass(TEN_MINUTES);
    assert_eq!(machines(&play), before);
    assert!(stopped(&play, "limit") > 0.5);
}
