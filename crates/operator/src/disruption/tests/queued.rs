//! What becomes of commands that are under way.

use std::time::Duration;

use api::names::metrics::{
    DISRUPTION_DECISIONS, DISRUPTION_DECISIONS_BY_NODEPOOL, DISRUPTION_TERMINATE_FIRST,
};
use api::names::values::STATIC_AT_LIMIT;
use embedded::faults::{Fault, Rule};
use parking_lot::Mutex;
use runtime::Settings;
use testkit::World;
use units::GoDuration;

use super::cluster::{CLAIMS, add_node, cluster_by, is_tainted, pod_asking, run};
use super::decided::drifted;
use super::replacing::{bring_up, new_claims};
use super::*;
use crate::disruption::command::Command;
use crate::disruption::drift::Drift;
use crate::disruption::queue::{self, Commands};
use crate::disruption::scene::{Ask, Scene, Simulated};
use crate::disruption::static_drift::{StaticDrift, one_for_one};
use crate::testing::{NODE_CLASS, Operated};

const SINCE: &str = "2026-01-01T00:10:00Z";

/// A cluster with some nodes, each with a pod that asks for three of its four processors, and nobody who decides.
fn queueing(nodes: &[&str]) -> (Operated, Arc<Commands>) {
    let kept = Mutex::new(None);
    let mut cluster = cluster_by("100%", &[], |context| {
        let (commands, queue) = Commands::new(context);
        *kept.lock() = Some(Arc::clone(&commands));
        vec![queue::controller(context, commands, queue)]
    });
    for node in nodes {
        add_node(&cluster, node, &json!({}), &json!({"metadata": {"finalizers": ["test/stays"]}}));
        cluster.apply(&pod_asking(&format!("on-{node}"), node, "3").to_string());
    }
    run(&mut cluster, 2);
    (cluster, kept.into_inner().unwrap())
}

fn scene(cluster: &Operated) -> Scene {
    let types = [("default".into(), Arc::from(kwok::built_in()))].into();
    let (now, none) = (cluster.context.now(), BTreeSet::new());
    Scene::new(&cluster.context.cluster.read(), &types, &cluster.context.settings, &none, now)
}

fn candidates(scene: &Scene, names: &[&str]) -> Vec<Candidate> {
    let queued = BTreeSet::new();
    let (types, class) = (scene.types(), Class::Eventual);
    let search =
        Search { types, queued: &queued, relied_on: &queued, class, costs: Costs::default(), now: scene.now };
    let mut found = find(scene.state(), search).candidates;
    found.retain(|it| names.contains(&it.name()));
    found
}

/// Replaces nodes.
fn replace(cluster: &Operated, commands: &Commands, names: &[&str], drain_bound: Option<GoDuration>) {
    let scene = scene(cluster);
    let mut gone = candidates(&scene, names);
    assert_eq!(gone.len(), names.len());
    let simulated = scene.without(&gone.iter().collect::<Vec<_>>(), &Ask::default());
    for it in &mut gone {
        it.drain_bound = drain_bound;
    }
    let command = Command::after(&Drift, gone, simulated, scene.now);
    assert_eq!(command.decision(), "replace");
    cluster.block_on(commands.start(command)).unwrap();
}

fn is_deleting(cluster: &Operated, node: &str) -> bool {
    !cluster.ours(&format!("nodeclaims/claim-{node}"))["metadata"]["deletionTimestamp"].is_null()
}

#[test]
fn a_node_is_disrupted_once_at_a_time() {
    let (cluster, commands) = queueing(&["n1", "n2"]);
    let before = scene(&cluster);
    let both = Command::delete(&Drift, candidates(&before, &["n1", "n2"]), before.now);
    replace(&cluster, &commands, &["n1"], None);
    let after = scene(&cluster);
    assert_eq!(candidates(&after, &["n1", "n2"]).len(), 1, "what is given up is no candidate");
    let error = cluster.block_on(commands.start(both)).unwrap_err();
    assert_eq!(error.to_string(), "candidate is being disrupted");
    assert_eq!(commands.queued(), BTreeSet::from(["kwok://n1".into()]));
    assert!(!is_tainted(&cluster, "n2"));
}

#[test]
fn limits_hold_although_somebody_else_launches_a_node_at_the_same_moment() {
    // While the node is tainted, or right before; then it may even be there already.
    for (early, launched) in [(false, false), (true, false), (true, true)] {
        let (mut cluster, commands) = queueing(&["n1"]);
        let limits = json!({"spec": {"limits": {"nodes": "2"}}});
        cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &limits);
        run(&mut cluster, 2);
        let scene = scene(&cluster);
        let gone = candidates(&scene, &["n1"]);
        let simulated = scene.without(&gone.iter().collect::<Vec<_>>(), &Ask::default());
        let command = Command::after(&Drift, gone, simulated, scene.now);
        assert_eq!(command.decision(), "replace");
        let launch = |cluster: &Operated| {
            let [_, mut claim] = node_objects("other", "default", &json!({}), &json!({}));
            claim["apiVersion"] = "karpenter.sh/v1".into();
            claim["metadata"].as_object_mut().unwrap().remove("uid");
            if !launched {
                claim.as_object_mut().unwrap().remove("status");
            }
            cluster.apply(&claim.to_string());
        };
        if early {
            launch(&cluster);
            run(&mut cluster, 1);
        }
        let slow = Rule::on("patch", "nodes", 1.0, Fault::Delay(Duration::from_secs(2)));
        cluster.faults.set_rules(vec![slow]);
        let (kept, started) = (Arc::clone(&commands), Arc::new(Mutex::new(None)));
        let result = Arc::clone(&started);
        cluster.spawn(async move { *result.lock() = Some(kept.start(command).await) });
        run(&mut cluster, 1);
        if !early {
            launch(&cluster);
        }
        run(&mut cluster, 10);
        let error = started.lock().take().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("limits must be looked at again"), "{error}");
        assert!(!is_tainted(&cluster, "n1") && commands.queued().is_empty());
        assert_eq!(new_claims(&cluster), [""; 0]);
    }
}

#[test]
fn commands_do_not_wait_for_each_other() {
    let (mut cluster, commands) = queueing(&["n1", "n2"]);
    replace(&cluster, &commands, &["n1"], None);
    let first = new_claims(&cluster);
    replace(&cluster, &commands, &["n2"], None);
    let second: Vec<String> = new_claims(&cluster).into_iter().filter(|it| !first.contains(it)).collect();
    bring_up(&cluster, &second[0]);
    run(&mut cluster, 3);
    assert!(is_deleting(&cluster, "n2") && !is_deleting(&cluster, "n1"));
    assert!(is_tainted(&cluster, "n1"));
    assert_eq!(commands.queued().len(), 1);
    bring_up(&cluster, &first[0]);
    run(&mut cluster, 3);
    assert!(is_deleting(&cluster, "n1") && commands.queued().is_empty());
}

#[test]
fn a_node_that_somebody_else_deletes_does_not_stop_the_others() {
    let (mut cluster, commands) = queueing(&["n1", "n2"]);
    replace(&cluster, &commands, &["n1", "n2"], None);
    let remove = |name: &str| {
        cluster.delete(&format!("{CLAIMS}/claim-{name}"));
        cluster.patch(&format!("{CLAIMS}/claim-{name}"), &json!({"metadata": {"finalizers": null}}));
    };
    remove("n1");
    run(&mut cluster, 5);
    assert!(is_tainted(&cluster, "n2") && !is_deleting(&cluster, "n2"));
    for claim in new_claims(&cluster) {
        bring_up(&cluster, &claim);
    }
    run(&mut cluster, 3);
    assert!(is_deleting(&cluster, "n2") && commands.queued().is_empty());
}

#[test]
fn a_command_ends_with_its_last_node() {
    let (mut cluster, commands) = queueing(&["n1"]);
    replace(&cluster, &commands, &["n1"], None);
    cluster.delete(&format!("{CLAIMS}/claim-n1"));
    run(&mut cluster, 3);
    assert!(commands.queued().is_empty());
    // Its pods need what was launched for them.
    assert_eq!(new_claims(&cluster).len(), 1);
}

#[test]
fn what_succeeds_late_has_succeeded() {
    let (mut cluster, commands) = queueing(&["n1"]);
    replace(&cluster, &commands, &["n1"], None);
    let fault = embedded::faults::Rule::on("", "", 0.0, embedded::faults::Fault::Cut);
    cluster.faults.set_rules(vec![fault]);
    cluster.run_for(Duration::from_secs(10 * 60 - 2));
    bring_up(&cluster, &new_claims(&cluster)[0]);
    let slow = embedded::faults::Fault::DelayedReply(Duration::from_secs(20));
    cluster.faults.set_rules(vec![embedded::faults::Rule::on("delete", "nodeclaims", 1.0, slow)]);
    run(&mut cluster, 40);
    assert!(is_deleting(&cluster, "n1") && commands.queued().is_empty());
    assert!(is_tainted(&cluster, "n1"));
    assert_eq!(new_claims(&cluster).len(), 1);
}

#[test]
fn the_pods_of_a_node_get_the_time_that_was_decided() {
    let (mut cluster, commands) = queueing(&["n1"]);
    replace(&cluster, &commands, &["n1"], Some(GoDuration::from_secs(60)));
    let stamp = |cluster: &Operated| {
        let claim = cluster.ours("nodeclaims/claim-n1");
        claim["metadata"]["annotations"]["karpenter.sh/nodeclaim-termination-timestamp"].clone()
    };
    run(&mut cluster, 30);
    assert!(stamp(&cluster).is_null(), "not before it is deleted");
    bring_up(&cluster, &new_claims(&cluster)[0]);
    run(&mut cluster, 3);
    assert!(is_deleting(&cluster, "n1"));
    let due: Timestamp = stamp(&cluster).as_str().unwrap().parse().unwrap();
    let claim = cluster.ours("nodeclaims/claim-n1");
    let deleted: Timestamp = claim["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap();
    assert!((59..=60).contains(&due.duration_since(deleted).as_secs()), "{due} {deleted}");
}

/// A pool that must have one node and may have two, whose node has drifted.
fn fixed() -> (Operated, Arc<Commands>) {
    fixed_with(&["n1"])
}

/// A pool that must have so many nodes and may have one more, all of which have drifted.
fn fixed_with(nodes: &[&str]) -> (Operated, Arc<Commands>) {
    let kept = Mutex::new(None);
    let mut settings = Settings::default();
    settings.gates.static_capacity = true;
    let mut cluster = Operated::with(World::new(1), settings, |context| {
        let (commands, queue) = Commands::new(context);
        *kept.lock() = Some(Arc::clone(&commands));
        let mut all = crate::node_pool::controllers(context);
        all.push(queue::controller(context, commands, queue));
        all
    });
    let (replicas, limit) = (nodes.len(), nodes.len() + 1);
    let spec = format!("spec:\n  replicas: {replicas}\n  limits: {{nodes: {limit}}}\n  template");
    let pool = crate::testing::NODE_POOL.replace("spec:\n  template", &spec);
    cluster.apply(&format!("{NODE_CLASS}\n---\n{pool}"));
    for node in nodes {
        add_node(&cluster, node, &json!({}), &drifted(SINCE));
    }
    run(&mut cluster, 2);
    (cluster, kept.into_inner().unwrap())
}

fn pool_claims(cluster: &Operated) -> (usize, usize, usize, u64) {
    let state = cluster.context.cluster.read();
    let claims = state.pool_claims("default");
    (claims.active.len(), claims.pending_disruption.len(), claims.deleting.len(), state.reserved("default"))
}

fn start_fixed(cluster: &Operated, commands: &Commands) -> Result<(), runtime::Error> {
    let scene = scene(cluster);
    let candidate = candidates(&scene, &["n1"]).remove(0);
    cluster.block_on(commands.start(one_for_one(&StaticDrift, &scene, candidate).unwrap()))
}

#[test]
fn a_fixed_pool_gets_one_node_for_another_within_its_limit() {
    let (mut cluster, commands) = fixed();
    start_fixed(&cluster, &commands).unwrap();
    let new = new_claims(&cluster);
    let claim = cluster.ours(&format!("nodeclaims/{}", new[0]));
    assert_eq!(claim["metadata"]["labels"]["karpenter.sh/nodepool"], "default");
    assert!(claim["spec"]["requirements"].as_array().unwrap().len() >= 2);
    // What was set aside is given back once the claim counts itself, and the old one goes.
    assert_eq!(pool_claims(&cluster), (1, 0, 1, 0));
    bring_up(&cluster, &new[0]);
    run(&mut cluster, 3);
    assert_eq!(cluster.claims().len(), 1);
}

#[test]
fn a_node_that_goes_first_is_counted_with_why() {
    let (mut cluster, commands) = fixed();
    let scene = scene(&cluster);
    let candidate = candidates(&scene, &["n1"]).remove(0);
    let alone = Simulated::default();
    let command = Command::terminate_first(&StaticDrift, candidate, alone, STATIC_AT_LIMIT, scene.now);
    cluster.block_on(commands.start(command)).unwrap();
    run(&mut cluster, 3);
    assert!(new_claims(&cluster).is_empty() && cluster.claims().is_empty());
    let value = |metric, labels: &[&str]| cluster.context.metrics.value(metric, labels);
    let labels = ["default", "drifted", "static-at-limit"];
    assert_eq!(value(&DISRUPTION_TERMINATE_FIRST, &labels), Some(1.0));
    assert_eq!(value(&DISRUPTION_DECISIONS, &["terminate-first", "drifted", ""]), Some(1.0));
    let labels = ["default", "terminate-first", "drifted", ""];
    assert_eq!(value(&DISRUPTION_DECISIONS_BY_NODEPOOL, &labels), Some(1.0));
}

#[test]
fn a_fixed_pool_that_cannot_have_another_node_is_left_as_it_is() {
    let (cluster, commands) = fixed();
    cluster.context.cluster.update(|state| state.reserve("default", Some(2), 1));
    let error = start_fixed(&cluster, &commands).unwrap_err();
    assert!(error.to_string().contains("node limit reached"), "{error}");
    assert_eq!(pool_claims(&cluster), (1, 0, 0, 1));
    assert!(!is_tainted(&cluster, "n1"));
}

#[test]
fn of_two_that_were_decided_at_once_one_gets_the_room_and_the_other_leaves_no_trace() {
    let (mut cluster, commands) = fixed_with(&["n1", "n2"]);
    let scene = scene(&cluster);
    let both = candidates(&scene, &["n1", "n2"]).into_iter();
    let [first, second] =
        both.map(|it| one_for_one(&StaticDrift, &scene, it).unwrap()).collect::<Vec<_>>().try_into().unwrap();
    cluster.block_on(commands.start(first)).unwrap();
    let error = cluster.block_on(commands.start(Command::clone(&second))).unwrap_err();
    assert!(error.to_string().contains("node limit reached"), "{error}");
    assert_eq!(pool_claims(&cluster), (2, 0, 1, 0));
    assert!(is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    // Nothing is kept from it: it has its turn once the first is done, and what is there by then was counted.
    bring_up(&cluster, &new_claims(&cluster)[0]);
    run(&mut cluster, 3);
    cluster.delete("/api/v1/nodes/n1");
    run(&mut cluster, 1);
    let error = cluster.block_on(commands.start(second)).unwrap_err();
    assert!(error.to_string().starts_with("limits must be looked at again"), "{error}");
    let scene = super::queued::scene(&cluster);
    let second = candidates(&scene, &["n2"]).remove(0);
    cluster.block_on(commands.start(one_for_one(&StaticDrift, &scene, second).unwrap())).unwrap();
    assert_eq!(new_claims(&cluster).len(), 2);
    assert_eq!(cluster.context.cluster.read().reserved("default"), 0);
}

#[test]
fn a_fixed_pool_whose_replacement_fails_has_its_node_back() {
    use embedded::faults::{Fault, Rule};
    let (mut cluster, commands) = fixed();
    cluster.faults.set_rules(vec![Rule::on("create", "nodeclaims", 1.0, Fault::InternalError)]);
    start_fixed(&cluster, &commands).unwrap_err();
    assert_eq!(pool_claims(&cluster), (1, 0, 0, 0));
    // Nor is anything kept if the node cannot even be tainted.
    cluster.faults.set_rules(vec![Rule::on("patch", "nodes", 1.0, Fault::InternalError)]);
    start_fixed(&cluster, &commands).unwrap_err();
    assert_eq!(pool_claims(&cluster), (1, 0, 0, 0));
    cluster.faults.set_rules(Vec::new());
    start_fixed(&cluster, &commands).unwrap();
    cluster.delete(&format!("{CLAIMS}/{}", new_claims(&cluster)[0]));
    run(&mut cluster, 3);
    assert_eq!(pool_claims(&cluster), (1, 0, 0, 0));
    assert!(!is_tainted(&cluster, "n1"));
}
