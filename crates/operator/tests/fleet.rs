//! A bad answer of the API server costs no node: the whole operator with simulated nodes, in virtual time.

#[path = "support/whole.rs"]
mod whole;

use std::time::Duration;

use api::names::metrics::GARBAGE_COLLECTION_STOPPED;
use api::provider::Provider;
use embedded::faults::{Fault, Faulty};
use operator::Parts;
use runtime::Settings;
use serde_json::json;
use testkit::scenarios::manifests::{deployment_with, manifest, node_class, pool};
use testkit::{TROUBLES, World, trouble};

const NODES: usize = 5;
const MINUTES: Duration = Duration::from_mins(10);

struct Fleet {
    world: World,
    /// What stands between the operator and the API server.
    faulty: Faulty,
    parts: Parts,
}

impl Fleet {
    /// A cluster with five nodes of one pod each.
    fn new() -> Self {
        let mut world = World::new(5);
        for crd in api::crds::documents(Provider::Kwok) {
            world.apply(&crd.document.to_string());
        }
        let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
        }]}}});
        let web = deployment_with("web", NODES, "500m", &apart);
        world.apply(&manifest(&[node_class(), pool("default"), web]));
        let faulty = Faulty::new(world.server().service(), 5);
        let client = world.block_on(async { kube::Client::new(faulty.clone(), "default") });
        let parts =
            world.block_on(async { Parts::new(client, Provider::Kwok, world.clock(), Settings::default()) });
        world.spawn(whole::operate_parts(parts.clone(), 5));
        world.run_for(Duration::from_mins(5));
        let fleet = Self { world, faulty, parts };
        assert_eq!(fleet.nodes().len(), NODES, "{:?}", fleet.nodes());
        fleet
    }

    /// The nodes that stay.
    fn nodes(&self) -> Vec<String> {
        let all = self.world.list("/api/v1/nodes").into_iter();
        let staying = all.filter(|node| node["metadata"]["deletionTimestamp"].is_null());
        let mut names: Vec<String> = staying.map(|node| node["metadata"]["name"].to_string()).collect();
        names.sort();
        names
    }

    /// The claims that stay.
    fn claims(&self) -> Vec<String> {
        let all = self.world.list("/apis/karpenter.sh/v1/nodeclaims").into_iter();
        let staying = all.filter(|claim| claim["metadata"]["deletionTimestamp"].is_null());
        let mut names: Vec<String> = staying.map(|claim| claim["metadata"]["name"].to_string()).collect();
        names.sort();
        names
    }

    fn stopped(&self, reason: &str) -> f64 {
        let metrics = &self.parts.metrics;
        let of =
            |controller| metrics.value(&GARBAGE_COLLECTION_STOPPED, &[controller, reason]).unwrap_or(0.0);
        of("instance.garbagecollection").max(of("nodeclaim.garbagecollection"))
    }
}

/// Lets the API server answer badly about a resource for a while, in every way there is, and then well again.
#[track_caller]
fn check(resource: &str) {
    let mut fleet = Fleet::new();
    let before = (fleet.nodes(), fleet.claims());
    for (name, fault) in TROUBLES {
        fleet.faulty.set_rules(trouble(resource, fault));
        fleet.world.server().cut_watches();
        fleet.world.run_for(Duration::from_mins(6));
        assert_eq!((fleet.nodes(), fleet.claims()), before, "{name} for {resource}");
        fleet.faulty.set_rules(Vec::new());
        fleet.world.run_for(Duration::from_mins(4));
        assert_eq!((fleet.nodes(), fleet.claims()), before, "after {name} for {resource}");
        assert!(fleet.stopped("stale") + fleet.stopped("limit") < 0.5, "{name} for {resource}");
    }
}

#[test]
fn no_bad_answer_about_claims_costs_a_node() {
    check("nodeclaims");
}

#[test]
fn no_bad_answer_about_nodes_costs_a_node() {
    check("nodes");
}

#[test]
fn no_bad_answer_about_pools_costs_a_node() {
    check("nodepools");
}

#[test]
fn a_collector_says_that_it_has_stopped() {
    let mut fleet = Fleet::new();
    fleet.faulty.set_rules(trouble("nodeclaims", Fault::NotServed));
    fleet.world.server().cut_watches();
    fleet.world.run_for(MINUTES);
    assert!(fleet.stopped("stale") > 0.5);
    fleet.faulty.set_rules(trouble("nodeclaims", Fault::Empty));
    fleet.world.server().cut_watches();
    fleet.world.run_for(MINUTES);
    assert!(fleet.stopped("limit") > 0.5);
    let events = fleet.parts.events.published();
    let told = events.iter().find(|event| &*event.reason == "GarbageCollectionStopped");
    let told = told.expect("the NodePool is told");
    let start = "Garbage collection stopped: 5 of 5 simulated nodes have no NodeClaim, ";
    assert!(&*told.about.name == "default" && told.message.starts_with(start), "{}", told.message);
}

#[test]
fn an_empty_api_server_in_place_of_the_real_one_costs_no_node() {
    let mut fleet = Fleet::new();
    let before = (fleet.nodes(), fleet.claims());
    let empty = World::new(6);
    for crd in api::crds::documents(Provider::Kwok) {
        empty.apply(&crd.document.to_string());
    }
    fleet.faulty.replace(empty.server().service());
    fleet.world.server().cut_watches();
    fleet.world.run_for(MINUTES);
    fleet.faulty.replace(fleet.world.server().service());
    empty.server().cut_watches();
    fleet.world.run_for(MINUTES);
    assert_eq!((fleet.nodes(), fleet.claims()), before);
}

#[test]
fn a_node_that_really_lost_its_claim_is_still_collected() {
    let mut fleet = Fleet::new();
    let claims = fleet.world.list("/apis/karpenter.sh/v1/nodeclaims");
    let path =
        format!("/apis/karpenter.sh/v1/nodeclaims/{}", claims[0]["metadata"]["name"].as_str().unwrap());
    let node = claims[0]["status"]["nodeName"].to_string();
    fleet.world.patch(&path, &json!({"metadata": {"finalizers": null}}));
    fleet.world.delete(&path);
    fleet.world.run_for(MINUTES);
    assert!(
        !fleet.nodes().contains(&node) && fleet.nodes().len() == NODES,
        "another one has taken its place"
    );
}
