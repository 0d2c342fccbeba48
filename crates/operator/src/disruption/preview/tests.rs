//! What would be disrupted now.

use cluster::instance_types::kwok;
use serde_json::{Value, json};

use super::*;
use crate::testing::{node_objects, pod_object, pool_object, state};

const NOW: &str = "2026-01-01T01:00:00Z";

/// A pool `p` whose nodes may all go, and nodes of it with the processor that their pods ask for.
fn cluster(nodes: &[(&str, &[&str])], more: &[Value]) -> State {
    let disruption = json!({"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]});
    let mut objects = vec![pool_object("p", &json!({"spec": {"disruption": disruption}}))];
    for (node, pods) in nodes {
        objects.extend(node_objects(node, "p", &json!({}), &json!({})));
        for (number, cpu) in pods.iter().enumerate() {
            let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
            let spec = json!({"spec": {"containers": containers}});
            objects.push(pod_object(&format!("{node}-{number}"), node, &spec));
        }
    }
    objects.extend_from_slice(more);
    state(&objects)
}

/// What keeps a node.
fn kept(found: &Preview, node: &str) -> String {
    found.kept.get(node).map(ToString::to_string).unwrap_or_default()
}

fn look(state: &State) -> Preview {
    look_with(state, Settings::default())
}

fn look_with(state: &State, settings: Settings) -> Preview {
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    preview(state, &types, &Arc::new(settings), None, NOW.parse().unwrap())
}

#[test]
fn nodes_that_can_go_are_named_with_what_is_saved() {
    let found = look(&cluster(&[("n1", &[]), ("n2", &["1"]), ("n3", &["1"])], &[]));
    let moves: Vec<_> = found.moves.iter().map(|it| (it.reason, it.decision, it.nodes.clone())).collect();
    assert_eq!(moves[0], ("Empty", "delete", vec!["n1".to_owned()]));
    assert_eq!(moves[1].0, "Underutilized");
    assert!(found.moves.iter().all(|it| it.savings > 0.0));
    let saved: f64 = found.moves.iter().map(|it| it.savings).sum();
    assert!(saved < found.price);
}

#[test]
fn what_keeps_a_node_is_told() {
    let mut protected = pod_object("kept", "n1", &json!({}));
    protected["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    let found = look(&cluster(&[("n1", &[])], &[protected]));
    assert!(found.moves.is_empty());
    assert_eq!(kept(&found, "n1"), "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/kept)");
}

#[test]
fn it_is_told_what_happens_without_a_node() {
    let state = cluster(&[("n1", &["1"]), ("n2", &["1"])], &[]);
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    let (settings, now) = (Arc::new(Settings::default()), NOW.parse().unwrap());
    let found = without_nodes(&state, &types, &settings, &["n1".to_owned()], now).unwrap();
    assert_eq!(found.moved, [("n2".to_owned(), vec!["default/n1-0".to_owned()])].into());
    assert!(found.launches.is_empty() && found.unplaced.is_empty());
    assert_eq!(found.evictions, 1);
    assert!(found.savings > 0.0 && (found.price - 2.0 * found.savings).abs() < 1e-9);
}

#[test]
fn it_is_told_why_nothing_can_be_said_of_a_node() {
    let node = |name: &str, of_node: &Value, of_claim: &Value| node_objects(name, "p", of_node, of_claim);
    let unchanged = json!({});
    let leaving = json!({"metadata": {"deletionTimestamp": NOW, "finalizers": ["karpenter.sh/termination"]}});
    let foreign = json!({"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}}});
    let unregistered = json!({"metadata": {"labels":
        {"karpenter.sh/registered": "", "karpenter.sh/initialized": ""}}});
    let [own, _] = node("own", &json!({"metadata": {"labels": {"karpenter.sh/nodepool": ""}}}), &unchanged);
    let more = [
        node("leaving", &unchanged, &leaving).to_vec(),
        node("foreign", &unchanged, &foreign).to_vec(),
        node("new", &unregistered, &unchanged).to_vec(),
        vec![own],
    ];
    let state = cluster(&[], &more.concat());
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    let (settings, now) = (Arc::new(Settings::default()), NOW.parse().unwrap());
    for (name, expected) in [
        ("nothing", "there is none of this name; give names as `kubectl get nodes` shows them"),
        ("leaving", "Node is deleting or marked for deletion"),
        ("new", "Node isn't initialized nor registered"),
        ("own", "it has no NodeClaim, so that no NodePool manages it"),
        (
            "foreign",
            "NodeClaim claim-foreign: nodeClassRef: karpenter.k8s.aws/EC2NodeClass; expected \
             karpenter.kwok.sh/KWOKNodeClass",
        ),
    ] {
        let unknown = without_nodes(&state, &types, &settings, &[name.to_owned()], now).unwrap_err();
        assert_eq!(unknown, [Unknown { node: name.to_owned(), why: expected.to_owned() }]);
    }
}

/// The state of nodes of a pool `p` with changes, of which each is given as name, processor of its pod, and change
/// of its claim.
fn pool_of(change: &Value, nodes: &[(&str, &str, Value)]) -> State {
    let mut objects = vec![pool_object("p", change)];
    for (node, cpu, of_claim) in nodes {
        objects.extend(node_objects(node, "p", &json!({}), of_claim));
        if !cpu.is_empty() {
            let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
            objects.push(pod_object(
                &format!("{node}-0"),
                node,
                &json!({"spec": {"containers": containers}}),
            ));
        }
    }
    state(&objects)
}

fn drifted(reason: &str) -> Value {
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let kinds = ["Launched", "Registered", "Initialized", "Consolidatable"];
    let mut all: Vec<Value> = kinds.iter().map(|kind| condition(kind, kind)).collect();
    all.push(condition("Drifted", reason));
    json!({"status": {"conditions": all}})
}

fn busy(last_event: &str) -> Value {
    let initialized = json!({"type": "Initialized", "status": "True", "reason": "Initialized", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({"status": {"conditions": [initialized], "lastPodEventTime": last_event}})
}

#[test]
fn every_node_of_a_claim_goes_or_is_kept_for_a_reason_that_is_told() {
    let none = json!({});
    let all = json!({"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]});
    let with = |more: Value| {
        let mut all = all.clone();
        crate::testing::merge(&mut all, &more);
        json!({"spec": {"disruption": all}})
    };
    let budget = |nodes: &str| with(json!({"budgets": [{"nodes": nodes}]}));
    let two = || [("n1", "1", none.clone()), ("n2", "1", none.clone())];
    let cases = [
        (
            budget("0"),
            vec![("n1", "", none.clone())],
            "n1",
            "Budgets of NodePool \"p\" let no node go for Empty now (spec.disruption.budgets[0]: 0 of 1 node)",
        ),
        (
            budget("1"),
            vec![("n1", "", none.clone()), ("n2", "", none.clone())],
            "n2",
            "Budgets of NodePool \"p\" let no more nodes go for Empty at the same time \
             (spec.disruption.budgets[0]: 1 of 2 nodes, 1 disrupted)",
        ),
        (
            with(
                json!({"budgets": [{"nodes": "5"}, {"nodes": "1", "schedule": "@dailyX", "duration": "1h"}]}),
            ),
            vec![("n1", "", none.clone())],
            "n1",
            "Budgets of NodePool \"p\" let no node go for Empty now (spec.disruption.budgets[1] cannot be read)",
        ),
        (
            with(json!({"consolidateAfter": "10m"})),
            vec![("n1", "", busy("2026-01-01T00:55:00Z"))],
            "n1",
            "Node has not been quiet for 10m, the consolidateAfter of NodePool \"p\" (until 2026-01-01T01:05:00Z)",
        ),
        (
            with(json!({"consolidateAfter": "10m"})),
            vec![("n1", "1", json!({"status": {"conditions": []}}))],
            "n1",
            "Node has not been quiet for 10m, the consolidateAfter of NodePool \"p\" (NodeClaim is not initialized)",
        ),
        (
            with(json!({"consolidateAfter": "Never"})),
            two().to_vec(),
            "n1",
            "NodePool \"p\" has consolidation disabled",
        ),
        (
            with(json!({"consolidationPolicy": "WhenEmpty"})),
            two().to_vec(),
            "n1",
            "NodePool \"p\" has consolidation policy WhenEmpty, but node is not empty",
        ),
        (
            json!({"spec": {"replicas": 2}}),
            two().to_vec(),
            "n1",
            "NodePool \"p\" has a fixed number of nodes (spec.replicas)",
        ),
        (with(json!({})), two().to_vec(), "n2", "Node takes pods of nodes that go"),
        (with(json!({})), vec![("n1", "3500m", none.clone())], "n1", "SpotToSpotConsolidation is disabled"),
        (
            budget("0"),
            vec![("n1", "1", drifted("NodePoolDrifted"))],
            "n1",
            "Drifted: Budgets of NodePool \"p\" let no node go for Drifted now (spec.disruption.budgets[0]: 0 of 1 \
             node); Underutilized: ",
        ),
    ];
    for (pool, nodes, node, expected) in cases {
        let state = pool_of(&pool, &nodes);
        let found = look(&state);
        let going: Vec<&String> = found.moves.iter().flat_map(|it| &it.nodes).collect();
        for (name, ..) in &nodes {
            let is_kept = found.kept.contains_key(*name);
            assert_ne!(is_kept, going.iter().any(|it| it == name), "{name} of {pool}: {found:?}");
            assert!(!kept(&found, name).contains("Nothing was found"), "{found:?}");
        }
        assert!(kept(&found, node).starts_with(expected), "{:?} is not {expected:?}", kept(&found, node));
    }
}

#[test]
fn a_node_that_is_not_worth_the_disruption_is_told_its_score() {
    let disruption = json!({"consolidationPolicy": "Balanced", "budgets": [{"nodes": "0"}]});
    let mut objects = vec![pool_object("p", &json!({"spec": {"disruption": disruption}}))];
    for (node, pods) in [("n1", 12), ("n2", 1), ("n3", 1)] {
        objects.extend(node_objects(node, "p", &json!({}), &json!({})));
        objects.extend((0..pods).map(|number| pod_object(&format!("{node}-{number}"), node, &json!({}))));
    }
    let found = look(&state(&objects));
    assert_eq!(
        kept(&found, "n1"),
        "Too little would be saved for NodePool \"p\", whose consolidation policy is Balanced (score 0.44 < threshold \
         0.50, savings 33.3%, disruption 76.5%)"
    );
    assert!(kept(&found, "n2").starts_with("Budgets of NodePool \"p\" let no node go"), "{found:?}");
}

#[test]
fn a_node_that_others_rely_on_is_told_so_only_if_nothing_else_keeps_it() {
    let mut protected = pod_object("kept", "n2", &json!({}));
    protected["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    let found = look(&cluster(&[("n1", &["1"]), ("n2", &[])], &[protected]));
    assert_eq!(found.moves.len(), 1);
    assert!(kept(&found, "n2").starts_with("Pod has"), "{found:?}");
}

#[test]
fn a_claim_without_a_node_is_kept_under_its_own_name() {
    let [_, claim] = node_objects("n1", "p", &json!({}), &json!({}));
    let found = look(&cluster(&[], &[claim]));
    assert_eq!(kept(&found, "claim-n1"), "Nodeclaim does not have an associated node");
}

#[test]
fn budgets_of_every_pool_with_nodes_are_told_for_every_reason() {
    let pool = json!({"spec": {"disruption": {"budgets": [
        {"nodes": "50%"}, {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 1 * * *", "duration": "8h"}]}}});
    let nodes = [("n1", "1", json!({})), ("n2", "1", json!({}))];
    let found = look(&pool_of(&pool, &nodes));
    let told: Vec<_> = found.budgets.iter().map(|it| (it.reason, it.allowed, &*it.by)).collect();
    let half = "spec.disruption.budgets[0]: 50% of 2 nodes";
    let never = "spec.disruption.budgets[1]: 0 of 2 nodes, from \"0 1 * * *\" for 8h";
    assert_eq!(
        told,
        [("Empty", Some(1), half), ("Drifted", Some(0), never), ("Underutilized", Some(1), half)]
    );
    assert!(look(&pool_of(&pool, &[])).budgets.is_empty());
    let wrong = json!({"spec": {"disruption": {"budgets": [{"nodes": "1", "schedule": "@dailyX", "duration": "1h"}]}}});
    let found = look(&pool_of(&wrong, &nodes));
    let expected = "spec.disruption.budgets[0] cannot be read and therefore allows nothing: schedule: \
         invalid schedule \"@dailyX\"";
    assert!(found.budgets.iter().all(|it| it.allowed == Some(0) && it.by.starts_with(expected)), "{found:?}");
}

#[test]
fn it_is_told_what_has_made_a_node_drift_and_what_is_broken() {
    let pool = json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}});
    let found = look(&pool_of(&pool, &[("n1", "1", drifted("AMIDrift"))]));
    let told: Vec<_> = found.moves.iter().map(|it| (it.reason, it.causes.clone())).collect();
    assert_eq!(told, [("Drifted", ["AMIDrift".to_owned()].into())]);

    let broken = json!({"status": {"conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let mut objects = vec![pool_object("p", &pool)];
    objects.extend(node_objects("n0", "p", &broken, &json!({})));
    for number in 1..6 {
        let name = format!("n{number}");
        objects.extend(node_objects(&name, "p", &json!({}), &json!({})));
        let containers = json!([{"name": "c", "resources": {"requests": {"cpu": "3"}}}]);
        objects.push(pod_object(&format!("{name}-0"), &name, &json!({"spec": {"containers": containers}})));
    }
    let policy = cloud::RepairPolicy {
        condition: "Ready",
        status: "False",
        reason_pattern: "",
        toleration: std::time::Duration::from_mins(10),
        termination_grace_period: None,
        priority: 0,
        action: cloud::RepairAction::Replace,
    };
    let policies = Some(Arc::new(Policies::compile(vec![policy]).unwrap()));
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    let settings = Arc::new(Settings::default());
    let found = preview(&state(&objects), &types, &settings, policies, NOW.parse().unwrap());
    let first = &found.moves[0];
    assert_eq!((first.reason, &first.nodes), ("Unhealthy", &vec!["n0".to_owned()]));
    assert_eq!(first.causes, ["Ready=False".to_owned()].into());
}

#[test]
fn static_pools_get_no_more_replacements_than_their_limit_has_room_for() {
    let pool = json!({"spec": {"replicas": 3, "limits": {"nodes": "4"},
        "disruption": {"budgets": [{"nodes": "100%"}]}}});
    let nodes = ["n1", "n2", "n3"].map(|name| (name, "1", drifted("NodePoolDrifted")));
    let mut settings = Settings::default();
    settings.gates.static_capacity = true;
    let found = look_with(&pool_of(&pool, &nodes), settings);
    assert_eq!(found.moves.len(), 1, "{found:?}");
    // What comes is like what goes.
    assert!(found.moves[0].savings.abs() < 1e-9);
    let expected = "Empty, Underutilized: NodePool \"p\" has a fixed number of nodes (spec.replicas); Drifted: Static \
         NodePool is at its node limit and cannot stage a replacement";
    assert_eq!(kept(&found, "n2"), expected);
}

#[test]
fn a_node_that_keeps_room_for_a_buffer_stays_if_the_gate_is_on() {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let buffer = [
        json!({"kind": "PodTemplate", "metadata": {"name": "t", "namespace": "default"},
            "template": {"spec": {"containers": [container]}}}),
        json!({"kind": "CapacityBuffer", "metadata": {"name": "b", "namespace": "default", "uid": "uid-of-b"},
            "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3}}),
    ];
    let state = cluster(&[("n1", &[]), ("n2", &[])], &buffer);
    let nodes = |found: &Preview| found.moves.iter().flat_map(|it| it.nodes.clone()).collect::<Vec<_>>();
    let mut settings = Settings::default();
    assert_eq!(nodes(&look_with(&state, settings.clone())), ["n1", "n2"]);
    settings.gates.capacity_buffer = true;
    let found = look_with(&state, settings);
    assert_eq!(nodes(&found), ["n2"]);
    assert_eq!(kept(&found, "n1"), "Node keeps room for CapacityBuffers");
}

#[test]
fn a_node_that_a_pod_waits_for_is_not_empty() {
    let mut waiting = pod_object("w", "", &json!({}));
    waiting["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let found = look(&cluster(&[("n1", &[])], &[waiting]));
    assert!(found.moves.is_empty());
    assert_eq!(kept(&found, "n1"), "Node is nominated for a pending pod");
}
