//! Simulated nodes in a whole cluster: they come, are found, go, and are neither doubled nor forgotten.

use std::sync::Arc;
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cloud::{CloudProvider as _, Error, Instance};
use cluster::state::{Kind, State};
use embedded::faults::{Fault, Faulty, Rule};
use kwok::Kwok;
use runtime::events::Recorder;
use runtime::limit::Limiter;
use runtime::metrics::Registry;
use runtime::{Api, Cluster};
use serde_json::{Value, json};
use testkit::World;
use tokio::sync::watch;

const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

/// What a provider watches.
const WATCHED: [Kind; 3] = [Kind::NodeClass, Kind::NodeClaim, Kind::Node];

struct Play {
    world: World,
    kwok: Kwok,
}

impl Play {
    /// A cluster with a NodeClass whose nodes register after `delay` seconds.
    fn new(delay: u32) -> Self {
        let world = World::new(3);
        for crd in api::crds::documents(Provider::Kwok) {
            world.apply(&crd.document.to_string());
        }
        world.apply(&class(delay).to_string());
        let kwok = provider(&world, world.client(), &WATCHED);
        let mut play = Self { world, kwok };
        play.pass(1);
        play
    }

    fn pass(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// A claim as it is in the cluster.
    fn claim(&mut self, name: &str) -> NodeClaim {
        self.world.apply(&claim(name).to_string());
        self.pass(1);
        self.known(name)
    }

    fn known(&self, name: &str) -> NodeClaim {
        let known = self.world.get(&format!("{CLAIMS}/{name}")).expect("the claim is there");
        serde_json::from_value(known).expect("it is a claim")
    }

    fn create(&self, claim: &NodeClaim) -> Result<Instance, Error> {
        self.world.block_on(self.kwok.create(claim))
    }

    /// Writes down what was launched, as the core does.
    fn note(&mut self, claim: &str, launched: &Instance) {
        let mut status = serde_json::to_value(&launched.status).expect("it can be written");
        status["nodeName"] = Value::Null;
        status["conditions"] = json!([{
            "type": "Launched", "status": "True", "reason": "Launched", "message": "",
            "lastTransitionTime": self.world.now(),
        }]);
        self.world.patch(&format!("{CLAIMS}/{claim}/status"), &json!({"status": status}));
        let labels = json!({"metadata": {"labels": launched.metadata.labels}});
        self.world.patch(&format!("{CLAIMS}/{claim}"), &labels);
        self.pass(1);
    }

    fn collect(&self) {
        let (_, leads) = watch::channel(true);
        for controller in self
            .world
            .block_on(async { self.kwok.controllers(&Recorder::new(Provider::Kwok), &Registry::default()) })
        {
            self.world.spawn(controller.run(leads.clone(), Registry::default()));
        }
    }
}

/// A provider as a new process has it, which writes through `client` and sees `kinds`.
fn provider(world: &World, client: kube::Client, kinds: &[Kind]) -> Kwok {
    let cluster =
        world.block_on(async { Cluster::new(State::awaiting(Provider::Kwok, kinds), world.clock()) });
    for kind in kinds {
        world.spawn(runtime::watch::watch(world.client(), cluster.clone(), *kind));
    }
    let limiter = Arc::new(world.block_on(async { Limiter::new(200.0, 300) }));
    let api = Api::new(client, cluster.clone(), Provider::Kwok, limiter);
    Kwok::new(api, cluster, world.clock(), 5, cluster::instance_types::kwok::built_in())
}

/// A provider that cannot create nodes until the faults are removed.
fn hindered(world: &World) -> (Faulty, Kwok) {
    let faulty = Faulty::new(world.server().service(), 1);
    faulty.set_rules(vec![Rule::on("create", "nodes", 1.0, Fault::Unavailable)]);
    let client = world.block_on(async { kube::Client::new(faulty.clone(), "default") });
    let kwok = provider(world, client, &WATCHED);
    (faulty, kwok)
}

fn class(delay: u32) -> Value {
    json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": format!("{delay}s")},
    })
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "pool"}},
        "spec": {
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-2x-amd64-linux"]},
            ],
            "resources": {"requests": {"cpu": "1", "pods": "1"}},
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    })
}

fn id(instance: &Instance) -> &str {
    &instance.status.as_ref().expect("instances have a status").provider_id
}

#[test]
fn an_instance_is_created_found_listed_and_becomes_a_ready_node() {
    let mut play = Play::new(0);
    let claim = play.claim("one");
    let launched = play.create(&claim).unwrap();
    play.pass(5);
    let name = id(&launched).strip_prefix("kwok://").unwrap();
    assert!(name.starts_with("kwok-one-"), "{name}");
    let node = play.world.get(&format!("/api/v1/nodes/{name}")).unwrap();
    let capacity = json!({"cpu": "2", "memory": "4Gi", "pods": "32", "ephemeral-storage": "20Gi"});
    assert_eq!(node["status"]["capacity"], capacity);
    assert_eq!(node["status"]["allocatable"]["cpu"], "1900m");
    let ready = &node["status"]["conditions"].as_array().unwrap();
    assert!(ready.iter().any(|it| it["type"] == "Ready" && it["status"] == "True"), "{node}");
    let labels = launched.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["karpenter.sh/capacity-type"], "spot");
    let found = play.world.block_on(play.kwok.get(id(&launched))).unwrap();
    assert_eq!(found.metadata.labels, launched.metadata.labels);
    let listed = play.world.block_on(play.kwok.list()).unwrap();
    assert_eq!(listed.iter().map(id).collect::<Vec<_>>(), [id(&launched)]);
    let unknown = play.world.block_on(play.kwok.get("kwok://none")).unwrap_err();
    assert!(unknown.is_not_found());
}

#[test]
fn the_node_appears_after_the_registration_delay() {
    let mut play = Play::new(60);
    let claim = play.claim("one");
    let launched = play.create(&claim).unwrap();
    assert!(play.world.block_on(play.kwok.get(id(&launched))).is_ok());
    play.pass(59);
    play.world.expect_nodes(0);
    assert_eq!(play.world.block_on(play.kwok.list()).unwrap().len(), 1);
    play.pass(2);
    play.world.expect_nodes(1);
    assert_eq!(play.world.block_on(play.kwok.list()).unwrap().len(), 1);
}

#[test]
fn an_instance_that_is_terminated_before_it_registers_never_registers() {
    let mut play = Play::new(60);
    let claim = play.claim("one");
    let launched = play.create(&claim).unwrap();
    play.note("one", &launched);
    let claim = play.known("one");
    let gone = play.world.block_on(play.kwok.delete(&claim)).unwrap_err();
    assert_eq!(gone.to_string(), "nodeclaim not found, instance terminated");
    play.pass(120);
    play.world.expect_nodes(0);
    play.world.expect_gone(&format!("{CLAIMS}/one"));
}

#[test]
fn a_terminated_instance_takes_its_node_along() {
    let mut play = Play::new(0);
    let claim = play.claim("one");
    let launched = play.create(&claim).unwrap();
    play.note("one", &launched);
    let claim = play.known("one");
    assert!(play.world.block_on(play.kwok.delete(&claim)).unwrap_err().is_not_found());
    play.pass(5);
    play.world.expect_nodes(0);
    assert!(play.world.block_on(play.kwok.delete(&claim)).unwrap_err().is_not_found());
    assert!(play.world.block_on(play.kwok.get(id(&launched))).unwrap_err().is_not_found());
}

#[test]
fn a_launch_that_is_tried_again_gives_the_same_instance() {
    for delay in [0, 60] {
        let mut play = Play::new(delay);
        let claim = play.claim("one");
        let first = play.create(&claim).unwrap();
        assert_eq!(id(&play.create(&claim).unwrap()), id(&first));
        play.pass(70);
        assert_eq!(id(&play.create(&claim).unwrap()), id(&first));
        // Another process takes over before the launch was written down, and has not seen the node yet.
        let other = provider(&play.world, play.world.client(), &WATCHED[..2]);
        play.pass(1);
        assert_eq!(id(&play.world.block_on(other.create(&claim)).unwrap()), id(&first));
        play.pass(70);
        play.world.expect_nodes(1);
    }
}

#[test]
fn the_node_of_the_original_provider_is_taken_over() {
    let mut play = Play::new(0);
    let claim = play.claim("one");
    play.world.apply(
        "{apiVersion: v1, kind: Node, metadata: {name: kwok-one-silly-name-1-abc-7, labels: \
         {kubernetes.io/hostname: one}}, spec: {providerID: 'kwok://kwok-one-silly-name-1-abc-7'}}",
    );
    play.pass(1);
    assert_eq!(id(&play.create(&claim).unwrap()), "kwok://kwok-one-silly-name-1-abc-7");
    play.world.expect_nodes(1);
}

#[test]
fn without_a_class_or_with_one_that_is_not_ready_nothing_is_launched() {
    let mut play = Play::new(0);
    let claim = play.claim("one");
    let path = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default";
    let condition = json!([{
        "type": "Ready", "status": "False", "reason": "Why", "message": "not today",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    play.world.patch(&format!("{path}/status"), &json!({"status": {"conditions": condition}}));
    play.pass(1);
    assert_eq!(play.create(&claim), Err(Error::NodeClassNotReady("not today".to_owned())));
    play.world.delete(path);
    play.pass(1);
    let missing = play.create(&claim).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "insufficient capacity, resolving node class, kwoknodeclasses.karpenter.kwok.sh \"default\" not found"
    );
    play.world.expect_nodes(0);
}

#[test]
fn a_node_that_cannot_be_created_is_tried_again() {
    let mut play = Play::new(5);
    let (faulty, hindered) = hindered(&play.world);
    let claim = play.claim("one");
    play.world.block_on(hindered.create(&claim)).unwrap();
    play.pass(10);
    play.world.expect_nodes(0);
    faulty.set_rules(Vec::new());
    play.pass(20);
    play.world.expect_nodes(1);
}

#[test]
fn a_node_that_cannot_be_created_at_once_fails_the_launch() {
    let mut play = Play::new(0);
    let (_, hindered) = hindered(&play.world);
    let claim = play.claim("one");
    let failed = play.world.block_on(hindered.create(&claim)).unwrap_err();
    assert!(matches!(&failed, Error::Other(text) if text.starts_with("creating node, ")), "{failed}");
    assert!(play.world.block_on(hindered.list()).unwrap().is_empty());
}

#[test]
fn a_node_without_a_claim_is_collected_and_others_are_not() {
    let mut play = Play::new(0);
    let claim = play.claim("kept");
    let kept = play.create(&claim).unwrap();
    play.note("kept", &kept);
    let orphan = play.claim("orphan");
    play.create(&orphan).unwrap();
    // Its claim exists and has not been told of the instance.
    let waiting = play.claim("waiting");
    play.create(&waiting).unwrap();
    play.world.delete(&format!("{CLAIMS}/orphan"));
    play.world.apply(
        "{apiVersion: v1, kind: Node, metadata: {name: mine, labels: {kubernetes.io/hostname: mine}}, \
         spec: {providerID: 'kwok://mine'}}",
    );
    play.pass(1);
    play.collect();
    play.pass(20);
    play.world.expect_nodes(4);
    play.pass(150);
    play.world.expect_nodes(3);
    let names: Vec<String> =
        play.world.list("/api/v1/nodes").iter().map(|node| node["metadata"]["name"].to_string()).collect();
    assert!(names.iter().all(|name| !name.contains("orphan")), "{names:?}");
}

#[test]
fn a_launch_that_was_interrupted_before_its_node_registered_is_completed() {
    let mut play = Play::new(60);
    let claim = play.claim("one");
    // This one ends before the node registers.
    let (_, ended) = hindered(&play.world);
    play.pass(1);
    let launched = play.world.block_on(ended.create(&claim)).unwrap();
    play.note("one", &launched);
    play.collect();
    play.pass(85);
    play.world.expect_nodes(0);
    play.pass(10);
    play.world.expect_nodes(1);
    assert!(play.world.block_on(play.kwok.get(id(&launched))).is_ok());
}

#[test]
fn the_policies_of_simulated_nodes_are_valid() {
    let play = Play::new(0);
    let policies = play.kwok.repair_policies();
    let shown: Vec<String> = policies
        .iter()
        .map(|it| {
            let grace = it.termination_grace_period.map_or(0, |grace| grace.as_secs());
            let tolerated = it.toleration.as_secs();
            let (kind, status, pattern) = (it.condition, it.status, it.reason_pattern);
            format!("{kind}={status} {pattern:?} {tolerated} {grace} {} {}", it.priority, it.action.as_str())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "Ready=False \"\" 600 0 0 ReplaceNode",
            "Ready=Unknown \".*\" 600 0 0 ReplaceNode",
            "KWOKUnhealthy=True \".*\" 30 45 0 ReplaceNode",
            "KWOKRebootRequired=True \".*\" 30 60 0 RebootNode",
        ]
    );
    assert!(cloud::repair::Policies::compile(policies).is_ok());
}

#[test]
fn a_reboot_changes_the_boot_once() {
    let mut play = Play::new(0);
    let claim = play.claim("one");
    let unregistered = play.world.block_on(play.kwok.reboot(&claim, "op")).unwrap_err();
    let text = "rebooting nodeclaim, node is not registered (NodeClaim=one)";
    assert_eq!(unregistered.to_string(), text);
    let launched = play.create(&claim).unwrap();
    play.pass(5);
    let node = format!("/api/v1/nodes/{}", launched.status.as_ref().unwrap().node_name);
    let boot = |play: &Play| play.world.get(&node).unwrap()["status"]["nodeInfo"]["bootID"].clone();
    let first = boot(&play);
    for _ in 0..2 {
        play.world.block_on(play.kwok.reboot(&launched, "op")).unwrap();
        play.pass(10);
        assert_eq!(boot(&play), "kwok-op");
    }
    assert_ne!(first, "kwok-op");
    let ready = play.world.get(&node).unwrap()["status"]["conditions"].clone();
    assert!(ready.as_array().unwrap().iter().any(|it| it["type"] == "Ready" && it["status"] == "True"));
    play.world.delete(&node);
    let gone = play.world.block_on(play.kwok.reboot(&launched, "op")).unwrap_err();
    assert!(gone.ends_reboot(), "{gone}");
}

#[test]
fn a_launch_whose_answer_was_lost_is_found_again() {
    let mut play = Play::new(0);
    let (faulty, hindered) = hindered(&play.world);
    faulty.set_rules(vec![Rule::on("create", "nodes", 1.0, Fault::LostReply)]);
    let claim = play.claim("one");
    play.world.block_on(hindered.create(&claim)).unwrap_err();
    faulty.set_rules(Vec::new());
    let launched = play.world.block_on(hindered.create(&claim)).unwrap();
    play.pass(1);
    play.world.expect_nodes(1);
    assert!(play.world.block_on(play.kwok.get(id(&launched))).is_ok());
}
