//! What is not launched again.

use api::provider::Provider;
use cluster::state::Key;
use serde_json::{Value, json};

use super::*;
use crate::provisioner::outcome::Decided;
use crate::testing::{merge, node_objects, pod_object, pool, pool_object, state};

const TYPE: &str = "c-4x-amd64-linux";
const TAINTED: &str = r#"{"spec": {"taints": [{"key": "spoiled", "effect": "NoSchedule"}]}}"#;

/// A cluster in which pods of one owner wait.
#[derive(Clone)]
struct Cluster {
    objects: Vec<Value>,
    now: Timestamp,
}

/// A pod that asks for a processor and belongs to `web`, with changes.
fn pod(name: &str, node: &str, change: &Value) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true}]);
    let mut pod = pod_object(
        name,
        node,
        &json!({
            "metadata": {"ownerReferences": owner},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        }),
    );
    merge(&mut pod, change);
    pod
}

impl Cluster {
    fn new() -> Self {
        let objects =
            vec![pool_object("p", &json!({})), pod("a", "", &json!({"status": {"phase": "Pending"}}))];
        Self { objects, now: "2026-01-01T00:00:00Z".parse().unwrap() }
    }

    /// With a node that was launched for the pods, with changes.
    fn node(mut self, name: &str, change: &str) -> Self {
        let change: Value = serde_json::from_str(change).unwrap();
        self.objects.extend(node_objects(name, "p", &change, &json!({})));
        self
    }

    fn with(mut self, object: Value) -> Self {
        self.objects.retain(|it| {
            it["kind"] != object["kind"] || it["metadata"]["name"] != object["metadata"]["name"]
        });
        self.objects.push(object);
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.objects.retain(|it| it["metadata"]["name"] != name);
        self
    }

    fn after(mut self, seconds: i64) -> Self {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    fn state(&self) -> State {
        state(&self.objects)
    }
}

/// A plan for a claim that may become some types, for these pods.
fn claim_for(pods: &[&str], types: &[&str]) -> NewClaim {
    let requirements = json!([{"key": labels::INSTANCE_TYPE, "operator": "In", "values": types}]);
    let decided =
        |name: &&str| Decided { key: Key::new("default", name), uid: format!("uid-of-{name}").into() };
    NewClaim {
        claim: crate::testing::claim("", &json!({"spec": {"requirements": requirements}})),
        pool: Arc::new(pool("p", &json!({}))),
        types: types.iter().map(ToString::to_string).collect(),
        min_values_relaxed: false,
        pods: pods.iter().map(decided).collect(),
        for_buffers: false,
        full: false,
    }
}

/// Notes that a node was launched for a pod.
fn launched(tried: &mut Tried, cluster: &Cluster, node: &str) {
    let claim = crate::testing::claim(&format!("claim-{node}"), &json!({}));
    tried.launched(&cluster.state(), &claim, &claim_for(&["a"], &[TYPE]));
}

/// What is left of a plan: the types of each claim, and why pods wait.
fn plan(tried: &mut Tried, cluster: &Cluster, claims: Vec<NewClaim>) -> (Vec<Vec<String>>, Vec<String>) {
    let mut outcome = Outcome { claims, ..Outcome::default() };
    let sets = LabelSets::for_provider(Provider::Kwok);
    tried.hold_back(&cluster.state(), &mut outcome, &sets, cluster.now);
    let types = outcome.claims.iter().map(|claim| {
        let of_types = claim.claim.spec.requirements.iter().find(|it| it.key == labels::INSTANCE_TYPE);
        assert_eq!(of_types.unwrap().values, claim.types);
        claim.types.clone()
    });
    (types.collect(), outcome.pending.iter().map(|it| it.why.to_string()).collect())
}

/// Whether another node like the one that was launched may come for the pod.
fn goes(tried: &mut Tried, cluster: &Cluster) -> bool {
    plan(tried, cluster, vec![claim_for(&["a"], &[TYPE])]).1.is_empty()
}

/// A cluster with a node that somebody has spoiled.
fn spoiled() -> (Tried, Cluster) {
    let (mut tried, cluster) = (Tried::default(), Cluster::new());
    launched(&mut tried, &cluster, "n1");
    (tried, cluster.node("n1", TAINTED))
}

#[test]
fn what_did_not_take_its_pods_is_not_launched_again_at_once_and_the_pods_are_told() {
    let (mut tried, cluster) = spoiled();
    let (claims, told) = plan(&mut tried, &cluster, vec![claim_for(&["a"], &[TYPE])]);
    assert!(claims.is_empty());
    let why = "node \"n1\" of NodePool \"p\" was launched for it and does not take it: it has taints that it was \
               not launched with (spoiled); nothing of that kind is launched for it before 2026-01-01T00:00:30Z";
    assert_eq!(told, [why]);
    assert!(!goes(&mut tried, &cluster.clone().after(29)) && goes(&mut tried, &cluster.after(30)));
}

#[test]
fn the_wait_doubles_with_every_node_in_vain_up_to_half_an_hour() {
    let (mut tried, mut cluster) = spoiled();
    for (number, seconds) in [30, 60, 120, 240, 480, 960, 1800, 1800].into_iter().enumerate() {
        assert!(!goes(&mut tried, &cluster), "{number}");
        cluster = cluster.after(seconds - 1);
        assert!(!goes(&mut tried, &cluster), "{number}");
        cluster = cluster.after(1);
        assert!(goes(&mut tried, &cluster), "{number}");
        let old = format!("n{}", number + 1);
        cluster = cluster.without(&old).without(&format!("claim-{old}"));
        let new = format!("n{}", number + 2);
        launched(&mut tried, &cluster, &new);
        cluster = cluster.node(&new, TAINTED);
    }
    // After a while without another one it is as if nothing had happened.
    assert!(!goes(&mut tried, &cluster));
    cluster = cluster.without("n9").without("claim-n9").after(2 * 1800);
    assert!(goes(&mut tried, &cluster) && tried.refusals.is_empty());
}

#[test]
fn a_node_that_may_still_take_its_pods_or_has_taken_any_is_not_in_vain() {
    let fresh = || {
        let (mut tried, cluster) = (Tried::default(), Cluster::new());
        launched(&mut tried, &cluster, "n1");
        (tried, cluster)
    };
    let starting = r#"{"metadata": {"labels": {"karpenter.sh/registered": "false"}}}"#;
    let leaving = r#"{"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}"#;
    for change in [starting, leaving] {
        let (mut tried, cluster) = fresh();
        assert!(goes(&mut tried, &cluster.node("n1", change)), "{change}");
    }
    // Somebody else was faster, or is done already.
    for phase in ["Running", "Succeeded"] {
        let (mut tried, cluster) = fresh();
        let other = pod("b", "n1", &json!({"status": {"phase": phase}}));
        assert!(goes(&mut tried, &cluster.node("n1", TAINTED).with(other)), "{phase}");
    }
    // It is gone.
    let (mut tried, cluster) = fresh();
    assert!(goes(&mut tried, &cluster) && tried.launches.is_empty());
}

#[test]
fn a_node_that_the_plan_has_a_use_for_is_not_in_vain() {
    let (mut tried, cluster) = spoiled();
    let state = cluster.state();
    let mut outcome = Outcome { claims: vec![claim_for(&["a"], &[TYPE])], ..Outcome::default() };
    let built = cluster::snapshot::NodeOrigin { claim: Some("claim-n1".into()), ..Default::default() };
    outcome.nominated.push(crate::provisioner::outcome::Nominated {
        origin: built,
        pool: Some("p".into()),
        initialized: true,
        pods: Vec::new(),
    });
    tried.hold_back(&state, &mut outcome, &LabelSets::for_provider(Provider::Kwok), cluster.now);
    assert_eq!((outcome.claims.len(), outcome.pending.len()), (1, 0));
}

#[test]
fn pods_that_come_for_others_wait_like_them_and_whoever_asks_for_something_else_does_not() {
    let (mut tried, cluster) = spoiled();
    assert!(!goes(&mut tried, &cluster));
    let pending = json!({"status": {"phase": "Pending"}});
    let next = cluster.clone().without("a").with(pod("a", "", &pending));
    assert!(!goes(&mut tried, &next));
    let mut other = pending.clone();
    other["spec"] = json!({"tolerations": [{"key": "spoiled", "operator": "Exists"}]});
    assert!(goes(&mut tried, &cluster.clone().with(pod("a", "", &other))));
    other["metadata"] = json!({"ownerReferences": []});
    assert!(goes(&mut tried, &cluster.with(pod("a", "", &other))));
}

#[test]
fn who_is_not_concerned_has_its_node_and_takes_the_others_along() {
    let (mut tried, cluster) = spoiled();
    let alone = json!({"metadata": {"ownerReferences": []}, "status": {"phase": "Pending"}});
    let cluster = cluster.with(pod("b", "", &alone));
    let claims =
        vec![claim_for(&["a"], &[TYPE]), claim_for(&["b"], &[TYPE]), claim_for(&["a", "b"], &[TYPE])];
    let (left, told) = plan(&mut tried, &cluster, claims);
    assert_eq!((left.len(), told.len()), (2, 1));
    let mut shared = claim_for(&["a"], &[TYPE]);
    shared.for_buffers = true;
    assert_eq!(plan(&mut tried, &cluster, vec![shared]).0.len(), 1);
}

#[test]
fn what_is_of_another_kind_may_come() {
    let (mut tried, cluster) = spoiled();
    assert!(!goes(&mut tried, &cluster));
    let elsewhere = |zone: &str| {
        let mut new = claim_for(&["a"], &[TYPE]);
        let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]});
        new.claim.spec.requirements.push(serde_json::from_value(zone).unwrap());
        new
    };
    assert_eq!(plan(&mut tried, &cluster, vec![elsewhere("test-zone-a")]).0.len(), 0);
    assert_eq!(plan(&mut tried, &cluster, vec![elsewhere("test-zone-b")]).0.len(), 1);
    assert_eq!(plan(&mut tried, &cluster, vec![claim_for(&["a"], &["c-8x-amd64-linux"])]).0.len(), 1);
    let mut of_other_pool = claim_for(&["a"], &[TYPE]);
    of_other_pool.pool = Arc::new(pool("q", &json!({})));
    assert_eq!(plan(&mut tried, &cluster, vec![of_other_pool]).0.len(), 1);
}

#[test]
fn where_the_node_is_too_small_other_types_are_tried_at_once() {
    let (mut tried, cluster) = (Tried::default(), Cluster::new());
    launched(&mut tried, &cluster, "n1");
    let small = r#"{"status": {"allocatable": {"cpu": "900m"}}}"#;
    let cluster = cluster.node("n1", small);
    let new = claim_for(&["a"], &[TYPE, "c-8x-amd64-linux"]);
    assert_eq!(plan(&mut tried, &cluster, vec![new.clone()]).0, [["c-8x-amd64-linux"]]);
    // Where some choice must be left, none is taken away.
    let mut choosy = new;
    choosy.claim.spec.requirements[0].min_values = Some(2);
    let (claims, told) = plan(&mut tried, &cluster, vec![choosy]);
    assert!(claims.is_empty());
    assert!(told[0].contains(&format!("instance type \"{TYPE}\" has less room than expected")), "{told:?}");
    assert!(!goes(&mut tried, &cluster));
}

#[test]
fn where_several_types_are_too_small_it_is_not_the_type() {
    let (mut tried, mut cluster) = (Tried::default(), Cluster::new());
    let types: Vec<String> = (1..10).map(|number| format!("t{number}")).collect();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    for (number, type_) in types.iter().take(TYPES + 1).enumerate() {
        let name = format!("n{number}");
        launched(&mut tried, &cluster, &name);
        let kind = json!({"metadata": {"labels": {labels::INSTANCE_TYPE: type_}}});
        let small = json!({"status": {"allocatable": {"cpu": "900m"}}});
        cluster.objects.extend(node_objects(&name, "p", &small, &kind));
        let (claims, _) = plan(&mut tried, &cluster, vec![claim_for(&["a"], &types)]);
        assert_eq!(claims.len(), usize::from(number < TYPES), "{number}: {claims:?}");
    }
}

#[test]
fn it_is_forgotten_when_the_pool_changes_and_when_pods_have_run_in_it_for_a_minute() {
    let (mut tried, cluster) = spoiled();
    assert!(!goes(&mut tried, &cluster));
    let started = |at: &str| pod("b", "n2", &json!({"status": {"startTime": at}}));
    let running = cluster.clone().node("n2", "{}").with(started("2026-01-01T00:00:00Z"));
    assert!(!goes(&mut tried, &running), "it might be thrown out at once");
    let later = Cluster { now: cluster.now + SETTLED, ..running };
    assert!(goes(&mut tried, &later) && tried.refusals.is_empty());
    let (mut tried, cluster) = spoiled();
    assert!(!goes(&mut tried, &cluster));
    let changed = pool_object("p", &json!({"metadata": {"generation": 2}}));
    assert!(goes(&mut tried, &cluster.with(changed)) && tried.refusals.is_empty());
}

#[test]
fn pods_that_ran_in_the_pool_before_prove_nothing() {
    let (mut tried, cluster) = spoiled();
    let old = pod("b", "n2", &json!({"status": {"startTime": "2025-12-31T00:00:00Z"}}));
    let cluster = cluster.node("n2", "{}").with(old);
    assert!(!goes(&mut tried, &cluster));
    assert!(!goes(&mut tried, &cluster.after(29)));
}

/// Why no node is replaced by one that could become some type, for a pod.
fn refused(tried: &Tried, cluster: &Cluster, pod: &str, of: &str) -> Option<String> {
    let mut new = claim_for(&[pod], &[of]);
    new.pool = Arc::clone(cluster.state().node_pools.named("p").unwrap());
    tried.refusals().refuses(&cluster.state(), &new, &LabelSets::for_provider(Provider::Kwok), cluster.now)
}

#[test]
fn nobody_is_moved_to_nodes_that_are_spoiled_for_all() {
    let (mut tried, cluster) = spoiled();
    let alone = json!({"metadata": {"ownerReferences": []}});
    let cluster = cluster.node("n2", "{}").with(pod("b", "n2", &alone));
    assert_eq!(refused(&tried, &cluster, "b", TYPE), None, "nobody knows yet");
    assert!(!goes(&mut tried, &cluster));
    let why = "node \"n1\" of NodePool \"p\" was launched for pods and does not take them: it has taints that it \
               was not launched with (spoiled); no other is replaced by one of that kind until one has taken pods";
    assert_eq!(refused(&tried, &cluster, "b", TYPE).as_deref(), Some(why));
    assert_eq!(refused(&tried, &cluster, "b", "c-8x-amd64-linux"), None);
    assert!(refused(&tried, &cluster.clone().after(30 + 1799), "b", TYPE).is_some());
    assert_eq!(refused(&tried, &cluster.clone().after(30 + 1800), "b", TYPE), None);
    let changed = pool_object("p", &json!({"metadata": {"generation": 2}}));
    assert_eq!(refused(&tried, &cluster.with(changed), "b", TYPE), None);
}

#[test]
fn a_pool_is_not_spoiled_for_all_once_others_run_on_newer_nodes_or_on_that_one() {
    let other = |node: &str, started: &str| {
        pod("b", node, &json!({"metadata": {"ownerReferences": []}, "status": {"startTime": started}}))
    };
    let (after, old) = ("2026-01-01T00:00:10Z", "2025-12-31T00:00:00Z");
    let newer = r#"{"metadata": {"creationTimestamp": "2026-01-01T00:00:05Z"}}"#;
    for (node, change, started, seconds, usable) in [
        ("n2", newer, after, 70, true),
        ("n1", "{}", after, 70, true),
        // It has not run for long, was there before, or is on a node that was.
        ("n2", newer, after, 69, false),
        ("n1", "{}", old, 70, false),
        ("n2", "{}", after, 70, false),
    ] {
        let (mut tried, cluster) = spoiled();
        assert!(!goes(&mut tried, &cluster));
        let cluster = if node == "n1" { cluster.without("n1").without("claim-n1") } else { cluster };
        let cluster = cluster.node(node, change).with(other(node, started)).after(seconds);
        tried.forget(&cluster.state(), cluster.now);
        let found = refused(&tried, &cluster, "b", TYPE).is_none();
        assert_eq!(found, usable, "{node} {started} {seconds}");
        // What the pods themselves did not like is another matter.
        assert_eq!(tried.refusals.len(), 1);
    }
}

#[test]
fn where_a_node_does_not_suit_some_pods_their_like_stay_where_they_are() {
    let (mut tried, cluster) = (Tried::default(), Cluster::new());
    launched(&mut tried, &cluster, "n1");
    let alone = json!({"metadata": {"ownerReferences": []}});
    let cluster = cluster.node("n1", "{}").node("n2", "{}").with(pod("b", "n2", &alone));
    let cluster = cluster.with(pod("c", "n2", &json!({})));
    assert!(!goes(&mut tried, &cluster));
    let found = ["b", "c"].map(|name| refused(&tried, &cluster, name, TYPE).is_some());
    assert_eq!(found, [false, true]);
}

#[test]
fn no_more_is_remembered_than_a_thousand_kinds() {
    let (mut tried, mut cluster) = (Tried::default(), Cluster::new());
    let names: Vec<String> = (0..MOST + 10).map(|number| format!("a{number}")).collect();
    for name in &names {
        let alone = json!({"metadata": {"ownerReferences": []}, "status": {"phase": "Pending"}});
        cluster.objects.push(pod(name, "", &alone));
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let claim = crate::testing::claim("claim-n1", &json!({}));
    tried.launched(&cluster.state(), &claim, &claim_for(&all, &[TYPE]));
    let cluster = cluster.node("n1", TAINTED);
    plan(&mut tried, &cluster, vec![claim_for(&all, &[TYPE])]);
    assert_eq!(tried.refusals.len(), MOST);
}
