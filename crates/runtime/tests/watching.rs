//! Watches against the embedded API server: what is there, what changes, and what goes wrong.

use std::sync::Arc;
use std::time::Duration;

use api::provider::Provider;
use cluster::state::{Key, Kind, State};
use embedded::faults::{Fault, Faulty, Rule};
use runtime::limit::Limiter;
use runtime::{Api, Cluster};
use serde_json::json;
use testkit::{TROUBLES, World, trouble};

/// A world, and what a watch of some kinds makes of it.
fn watched(kinds: &[Kind]) -> (World, Cluster, Api) {
    let world = World::builder(7).without_scheduler().start();
    let cluster =
        world.block_on(async { Cluster::new(State::awaiting(Provider::Kwok, kinds), world.clock()) });
    let client = world.client();
    for kind in kinds {
        world.spawn(runtime::watch::watch(client.clone(), cluster.clone(), *kind));
    }
    let limiter = world.block_on(async { Arc::new(Limiter::new(200.0, 300)) });
    let api = Api::new(client, cluster.clone(), Provider::Kwok, limiter);
    (world, cluster, api)
}

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: early}\n";

#[test]
fn a_watch_knows_what_was_there_and_what_came_later() {
    let (mut world, cluster, _) = watched(&[Kind::Namespace]);
    world.apply(NAMESPACE);
    world.run_for(Duration::from_secs(1));
    assert!(cluster.is_listed() && cluster.read().namespaces.named("early").is_some());
    world.apply(&NAMESPACE.replace("early", "late"));
    world.run_for(Duration::from_secs(1));
    assert!(cluster.read().namespaces.named("late").is_some());
}

#[test]
fn a_watch_goes_on_when_it_is_cut_and_when_history_is_gone() {
    let (mut world, cluster, _) = watched(&[Kind::Namespace]);
    world.run_for(Duration::from_secs(1));
    world.server().cut_watches();
    world.apply(NAMESPACE);
    world.run_for(Duration::from_secs(5));
    assert!(cluster.read().namespaces.named("early").is_some());
    world.apply(&NAMESPACE.replace("early", "late"));
    world.server().compact();
    world.server().cut_watches();
    world.run_for(Duration::from_mins(1));
    assert!(cluster.read().namespaces.named("late").is_some());
}

#[test]
fn a_kind_that_nothing_works_without_is_waited_for() {
    let (mut world, cluster, _) = watched(&[Kind::NodePool]);
    world.run_for(Duration::from_mins(5));
    assert!(!cluster.is_listed());
    let doubt = cluster.read().doubt(&[Kind::NodePool]);
    assert_eq!(doubt.as_deref(), Some("NodePool have not been listed"));
    for crd in api::crds::documents(Provider::Kwok) {
        world.apply(&crd.document.to_string());
    }
    world.run_for(Duration::from_secs(31));
    assert!(cluster.is_listed() && cluster.read().stale().len() == 0);
}

#[test]
fn a_kind_that_is_installed_later_is_watched_from_then_on() {
    let (mut world, cluster, _) = watched(&[Kind::CapacityBuffer]);
    world.run_for(Duration::from_secs(1));
    assert!(cluster.is_listed() && cluster.read().capacity_buffers.is_empty());
    for crd in api::crds::documents(Provider::Kwok) {
        world.apply(&crd.document.to_string());
    }
    let buffer = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "t"}, "replicas": 1},
    });
    world.apply(&buffer.to_string());
    world.run_for(Duration::from_secs(40));
    assert!(cluster.read().capacity_buffers.get(&Key::new("default", "b")).is_some());
}

#[test]
fn a_write_is_in_the_state_before_the_watch_tells_of_it() {
    let (mut world, cluster, api) = watched(&[Kind::Namespace]);
    world.apply(NAMESPACE);
    world.run_for(Duration::from_secs(1));
    let key = Key::cluster("early");
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = world.block_on(api.patch::<cluster::objects::Namespace>(&key, &change)).unwrap();
    assert_eq!(patched.metadata.labels.text("a"), "b");
    let known = Arc::clone(cluster.read().namespaces.get(&key).unwrap());
    assert_eq!(known.metadata.labels.text("a"), "b");
    world.block_on(api.delete(&*known)).unwrap();
    assert!(cluster.read().namespaces.get(&key).is_none_or(|known| known.metadata.is_deleting()));
    let refused = world.block_on(api.patch::<cluster::objects::Namespace>(&Key::cluster("none"), &change));
    assert!(refused.unwrap_err().is_not_found());
}

#[test]
fn what_was_listed_once_is_never_lost_to_an_error() {
    // An empty list is no error.
    for (name, fault) in TROUBLES.into_iter().filter(|(_, fault)| *fault != Fault::Empty) {
        let mut world = World::builder(7).without_scheduler().start();
        let (cluster, faulty) = hindered(&world, Kind::Namespace);
        world.apply(NAMESPACE);
        world.run_for(Duration::from_secs(1));
        let before = cluster.read().namespaces.len();
        assert!(before > 0 && cluster.read().stale().len() == 0, "{name}");
        faulty.set_rules(trouble("namespaces", fault));
        world.server().cut_watches();
        world.run_for(Duration::from_mins(5));
        assert_eq!(cluster.read().namespaces.len(), before, "{name}");
        assert!(cluster.is_listed(), "{name}");
        let doubt = cluster.read().doubt(&[Kind::Namespace]);
        assert!(
            doubt.is_some_and(|why| why.starts_with("the watch of Namespace has failed since ")),
            "{name}"
        );
        faulty.set_rules(Vec::new());
        world.apply(&NAMESPACE.replace("early", "late"));
        world.run_for(Duration::from_mins(2));
        assert_eq!(cluster.read().doubt(&[Kind::Namespace]), None, "{name}");
        assert!(cluster.read().namespaces.named("late").is_some(), "{name}");
    }
}

#[test]
fn a_server_that_went_back_in_time_is_believed() {
    let mut world = World::builder(7).without_scheduler().start();
    let (cluster, faulty) = hindered(&world, Kind::Namespace);
    for number in 0..50 {
        world.apply(&NAMESPACE.replace("early", &format!("early-{number}")));
    }
    world.run_for(Duration::from_secs(1));
    let other = World::builder(8).without_scheduler().start();
    faulty.replace(other.server().service());
    world.server().cut_watches();
    world.run_for(Duration::from_secs(1));
    other.apply(&NAMESPACE.replace("early", "restored"));
    world.run_for(Duration::from_mins(4));
    let state = cluster.read();
    assert!(state.namespaces.named("restored").is_some() && state.namespaces.named("early-7").is_none());
    assert_eq!(state.doubt(&[Kind::Namespace]), None);
}

#[test]
fn a_server_that_ends_watches_at_once_is_not_asked_all_the_time() {
    let mut world = World::builder(7).without_scheduler().start();
    let (_cluster, faulty) = hindered(&world, Kind::Namespace);
    world.run_for(Duration::from_secs(1));
    faulty.set_rules(vec![Rule::on("watch", "namespaces", 1.0, Fault::CutWatch { after: 0 })]);
    world.server().cut_watches();
    world.run_for(Duration::from_mins(10));
    assert!(faulty.injected() < 60, "{} requests in ten minutes", faulty.injected());
}

/// What a watch of one kind makes of a world, through a server that can be made to fail.
fn hindered(world: &World, kind: Kind) -> (Cluster, Faulty) {
    let faulty = Faulty::new(world.server().service(), 7);
    let cluster =
        world.block_on(async { Cluster::new(State::awaiting(Provider::Kwok, &[kind]), world.clock()) });
    let client = world.block_on(async { kube::Client::new(faulty.clone(), "default") });
    world.spawn(runtime::watch::watch(client, cluster.clone(), kind));
    (cluster, faulty)
}
