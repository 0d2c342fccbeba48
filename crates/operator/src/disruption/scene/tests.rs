//! What would happen if nodes went.

use std::collections::BTreeSet;
use std::sync::Arc;

use cluster::costs::Costs;
use cluster::instance_types::kwok;
use cluster::state::State;
use runtime::Settings;
use serde_json::{Value, json};

use super::*;
use crate::disruption::Class;
use crate::disruption::candidate::{Search, find};
use crate::testing::{merge, node_objects, pod_object, pool_object, state};

const NOW: &str = "2026-01-01T01:00:00Z";

/// A pool `p` of on-demand nodes, nodes of it with their pods and how much processor those ask for, and more.
fn cluster(nodes: &[(&str, &[&str])], more: &[Value]) -> State {
    let mut objects = vec![pool_object("p", &json!({}))];
    for (node, pods) in nodes {
        objects.extend(node_objects(node, "p", &json!({}), &json!({})));
        for (number, cpu) in pods.iter().enumerate() {
            objects.push(pod(&format!("{node}-{number}"), node, cpu));
        }
    }
    objects.extend_from_slice(more);
    state(&objects)
}

fn pod(name: &str, node: &str, cpu: &str) -> Value {
    let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
    pod_object(name, node, &json!({"spec": {"containers": containers}}))
}

fn waiting(name: &str, cpu: &str) -> Value {
    let conditions = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    let mut pod = pod(name, "", cpu);
    merge(&mut pod, &json!({"status": {"phase": "Pending", "conditions": conditions}}));
    pod
}

fn scene(state: &State, leaving: &[&str]) -> Scene {
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    let leaving: BTreeSet<Box<str>> = leaving.iter().map(|id| (*id).into()).collect();
    Scene::new(state, &types, &Arc::new(Settings::default()), &leaving, NOW.parse().unwrap())
}

fn candidates(scene: &Scene) -> Vec<Candidate> {
    let none = BTreeSet::new();
    let (types, class) = (scene.types(), Class::Eventual);
    find(
        scene.state(),
        Search { types, queued: &none, relied_on: &none, class, costs: Costs::default(), now: scene.now },
    )
    .candidates
}

/// What happens without some nodes.
fn without(state: &State, names: &[&str], ask: &Ask) -> Simulated {
    let scene = scene(state, &[]);
    let all = candidates(&scene);
    let gone: Vec<&Candidate> = all.iter().filter(|it| names.contains(&it.name())).collect();
    assert_eq!(gone.len(), names.len());
    scene.without(&gone, ask)
}

/// New nodes, and pods by the nodes that take them.
fn places(simulated: &Simulated) -> (usize, Vec<String>) {
    let nodes = simulated.destinations.iter().map(|node| {
        let pods: Vec<String> = node.pods.iter().map(|pod| pod.key.name.to_string()).collect();
        format!("{}: {}", node.origin.node.as_deref().unwrap_or_default(), pods.join(" "))
    });
    (simulated.launches.len(), nodes.collect())
}

#[test]
fn pods_move_to_nodes_that_have_room() {
    let state = cluster(&[("n1", &["1"]), ("n2", &["2"])], &[]);
    let simulated = without(&state, &["n1"], &Ask::default());
    assert!(simulated.is_complete());
    assert_eq!(places(&simulated), (0, vec!["n2: n1-0".to_owned()]));
    assert_eq!(simulated.summary(), "No Pod Scheduling Errors");
}

#[test]
fn what_does_not_fit_is_launched_for() {
    let state = cluster(&[("n1", &["3"]), ("n2", &["3"])], &[]);
    let simulated = without(&state, &["n1"], &Ask::default());
    assert!(simulated.is_complete());
    assert_eq!(places(&simulated), (1, Vec::new()));
    let launch = &simulated.launches[0];
    assert_eq!((launch.pool(), launch.is_static()), ("p", false));
    assert!(launch.price() > 0.0 && launch.types().next().is_some());
    assert_eq!(launch.new.pods.len(), 1);
    // Two nodes that go together share a new one.
    let simulated = without(&state, &["n1", "n2"], &Ask::default());
    assert_eq!(places(&simulated), (1, Vec::new()));
}

#[test]
fn what_fits_nowhere_is_told() {
    let state = cluster(&[("n1", &["3"]), ("n2", &["3"])], &[]);
    let nowhere = json!({"spec": {"nodeSelector": {"no-such-label": "x"}}});
    let mut objects = pod("a", "n1", "1");
    merge(&mut objects, &nowhere);
    let mut state = state;
    state.observe(cluster::state::Seen::Applied(
        cluster::state::Kind::Pod.decode(&objects.to_string()).unwrap(),
    ));
    let simulated = without(&state, &["n1"], &Ask::default());
    assert_eq!(simulated.unplaced.len(), 1);
    let text = simulated.summary();
    assert!(
        text.starts_with("not all pods would schedule, default/a => incompatible requirements"),
        "{text}"
    );
    assert!(text.ends_with(' '), "{text}");
}

#[test]
fn five_pods_are_named_and_the_others_are_counted() {
    let unplaced = |count: usize| {
        let pod = |number| Unplaced { pod: format!("d/{number}").into(), why: "no".to_owned() };
        Simulated { unplaced: (0..count).map(pod).collect(), ..Simulated::default() }.summary()
    };
    assert_eq!(unplaced(2), "not all pods would schedule, d/0 => no d/1 => no ");
    let five = "not all pods would schedule, d/0 => no d/1 => no d/2 => no d/3 => no d/4 => no ";
    assert_eq!(unplaced(5), format!("{five} and 0 other(s)"));
    assert_eq!(unplaced(7), format!("{five} and 2 other(s)"));
}

#[test]
fn pods_that_wait_neither_block_nor_count() {
    for cpu in ["3500m", "100000"] {
        let state = cluster(&[("n1", &["1"]), ("n2", &["2"])], &[waiting("w", cpu)]);
        let simulated = without(&state, &["n1"], &Ask::default());
        assert!(simulated.is_complete(), "{cpu}: {}", simulated.summary());
        assert_eq!(places(&simulated), (0, vec!["n2: n1-0".to_owned()]), "{cpu}");
    }
}

#[test]
fn pods_that_wait_have_their_place_first() {
    let state = cluster(&[("n1", &["2", "1"]), ("n2", &["2"])], &[waiting("w", "2")]);
    let simulated = without(&state, &["n1"], &Ask::default());
    // n2 has room for one of them, and that is the one that waits.
    assert_eq!(places(&simulated), (1, Vec::new()));
    assert_eq!(simulated.launches[0].new.pods.len(), 2);
}

#[test]
fn a_pod_whose_place_would_go_moves_as_well() {
    // It fits only where the other pod is about to leave.
    let state = cluster(&[("n1", &["1"]), ("n2", &["4"])], &[waiting("w", "3")]);
    let simulated = without(&state, &["n1"], &Ask::default());
    assert_eq!(places(&simulated), (1, Vec::new()));
    assert_eq!(simulated.launches[0].new.pods.len(), 2);
}

#[test]
fn pods_of_nodes_that_go_anyway_neither_block_nor_count_but_take_their_room() {
    let nowhere = |name: &str| {
        let mut pod = pod(name, "n3", "1");
        merge(&mut pod, &json!({"spec": {"nodeSelector": {"no-such-label": "x"}}}));
        pod
    };
    let mut stuck = cluster(&[("n1", &["1"]), ("n2", &["2"]), ("n3", &[])], &[nowhere("stuck")]);
    stuck.mark_for_deletion(["kwok://n3"]);
    let simulated = without(&stuck, &["n1"], &Ask::default());
    assert_eq!((simulated.is_complete(), places(&simulated)), (true, (0, vec!["n2: n1-0".to_owned()])));
    let mut full = cluster(&[("n1", &["2", "2"]), ("n2", &["1"]), ("n3", &["2"])], &[]);
    full.mark_for_deletion(["kwok://n3"]);
    let simulated = without(&full, &["n1"], &Ask::default());
    assert_eq!(places(&simulated), (1, Vec::new()));
    assert_eq!(simulated.launches[0].new.pods.len(), 2);
}

#[test]
fn nodes_that_are_as_good_as_gone_take_nothing_and_their_pods_come_first() {
    let state = cluster(&[("n1", &["2"]), ("n2", &["2"]), ("n3", &["2"])], &[]);
    let scene = scene(&state, &["kwok://n3"]);
    let all = candidates(&scene);
    assert_eq!(all.iter().map(Candidate::name).collect::<Vec<_>>(), ["n1", "n2"]);
    // n1 or n2 must take what is on n3; then there is no room for what is on the other one.
    let simulated = scene.without(&[&all[1]], &Ask::default());
    assert_eq!(places(&simulated), (1, Vec::new()));
}

#[test]
fn running_pods_do_not_move_to_nodes_that_are_not_up() {
    let starting = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    let [node, claim] = node_objects("n2", "p", &starting, &json!({}));
    let state = cluster(&[("n1", &["1"])], &[node, claim]);
    let simulated = without(&state, &["n1"], &Ask::default());
    let why = "default/n1-0 => would schedule against uninitialized nodeclaim/claim-n2, node/n2 ";
    assert_eq!(simulated.summary(), format!("not all pods would schedule, {why}"));
    // Nor to one that is about to be booted again.
    let condition = json!({"type": "Rebooting", "status": "True", "reason": "RebootRequested", "message": "",
        "lastTransitionTime": NOW});
    let [node, claim] = node_objects("n2", "p", &json!({}), &json!({"status": {"conditions": [condition]}}));
    let state = cluster(&[("n1", &["1"])], &[node, claim]);
    let simulated = without(&state, &["n1"], &Ask::default());
    assert_eq!(simulated.summary(), format!("not all pods would schedule, {why}"));
}

#[test]
fn pods_of_nodes_that_go_anyway_may_move_to_nodes_that_are_not_up() {
    let starting = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    let [node, claim] = node_objects("n2", "p", &starting, &json!({}));
    let mut state = cluster(&[("n1", &["1"]), ("n3", &["2"])], &[node, claim]);
    state.mark_for_deletion(["kwok://n3"]);
    // n1 would take it; without n1 it goes to n2, and n1's own pod must not.
    let simulated = without(&state, &["n1"], &Ask::default());
    let unplaced: Vec<&str> = simulated.unplaced.iter().map(|it| &*it.pod).collect();
    assert_eq!(unplaced, ["default/n1-0"]);
}

#[test]
fn consolidation_leaves_nodes_alone_that_were_not_quiet_for_long_enough() {
    let pool = pool_object("p", &json!({"spec": {"disruption": {"consolidateAfter": "10m"}}}));
    let busy = json!({"status": {"lastPodEventTime": "2026-01-01T00:55:00Z"}});
    let [node, claim] = node_objects("n2", "p", &json!({}), &busy);
    let state = cluster(&[("n1", &["1"])], &[pool, node, claim]);
    let consolidation = Ask { consolidation: true, ..Ask::default() };
    assert_eq!(places(&without(&state, &["n1"], &Ask::default())).0, 0);
    assert_eq!(places(&without(&state, &["n1"], &consolidation)), (1, Vec::new()));
    // A pool that never consolidates lets its nodes fill up.
    let pool = pool_object("p", &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    let [node, claim] = node_objects("n2", "p", &json!({}), &busy);
    let state = cluster(&[("n1", &["1"])], &[pool, node, claim]);
    assert_eq!(places(&without(&state, &["n1"], &consolidation)).0, 0);
}

#[test]
fn pods_that_cannot_be_evicted_need_a_place_only_if_asked_for() {
    let mut kept = pod("kept", "n1", "2");
    merge(&mut kept, &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    let with = |kept: Value, more: &[Value]| {
        let [node, claim] =
            node_objects("n1", "p", &json!({}), &json!({"spec": {"terminationGracePeriod": "1m"}}));
        cluster(&[("n2", &["3"])], &[&[node, claim, kept], more].concat())
    };
    let state = with(kept.clone(), &[]);
    assert_eq!(places(&without(&state, &["n1"], &Ask::default())).0, 0);
    let ask = Ask { blocked_pods: true, ..Ask::default() };
    assert_eq!(places(&without(&state, &["n1"], &ask)).0, 1);
    // So do those of which nobody knows where they could be: the volume of this one is lost.
    let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": "lost"}});
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    merge(&mut kept, &json!({"spec": {"volumes": volumes}}));
    let state = with(kept, &[claim]);
    assert!(without(&state, &["n1"], &Ask::default()).is_complete());
    let simulated = without(&state, &["n1"], &ask);
    assert_eq!(simulated.unplaced.iter().map(|it| &*it.pod).collect::<Vec<_>>(), ["default/kept"]);
}

#[test]
fn another_node_of_the_same_instance_does_not_stand_for_the_first() {
    let other = json!({"kind": "Node", "metadata": {"name": "n1-old", "uid": "uid-of-n1-old"},
        "spec": {"providerID": "kwok://n1"}, "status": {"allocatable": {"cpu": "4", "pods": "100"}}});
    let state = cluster(&[("n1", &["3"]), ("n2", &["3"])], &[other]);
    assert_eq!(places(&without(&state, &["n1"], &Ask::default())), (1, Vec::new()));
}

#[test]
fn pods_of_a_node_that_cannot_be_understood_have_no_place() {
    let many: serde_json::Map<String, Value> =
        (0..300).map(|number| (format!("example.com/r{number}"), json!("1"))).collect();
    let strange = node_objects("n1", "p", &json!({"status": {"allocatable": many}}), &json!({}));
    let used = [&strange[..], &[pod("n1-0", "n1", "1")]].concat();
    let simulated = without(&cluster(&[("n2", &[])], &used), &["n1"], &Ask::default());
    let text = "not all pods would schedule, default/n1-0 => node cannot be understood ";
    assert_eq!(simulated.summary(), text);
    // Where nothing needs a place, there is nothing to understand.
    assert!(without(&cluster(&[], &strange), &["n1"], &Ask::default()).is_complete());
}

/// A volume of one host, and the claim of a pod for it.
fn disk_of_host(kind: &str, host: &str) -> [Value; 2] {
    let hosts = json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]);
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
        "spec": {
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": hosts}]}},
        },
    });
    volume["spec"][kind] = json!({"path": "/data", "driver": "example.com/disk", "volumeHandle": "disk"});
    let bound = json!({"pv.kubernetes.io/bind-completed": "yes"});
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "annotations": bound},
        "spec": {"volumeName": "disk"}, "status": {"phase": "Bound"},
    });
    [volume, claim]
}

#[test]
fn the_host_of_a_local_disk_does_not_keep_its_node_from_being_replaced() {
    for (kind, is_movable) in [("local", true), ("hostPath", true), ("csi", false)] {
        let mut user = pod("user", "n1", "1");
        let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
        merge(&mut user, &json!({"spec": {"volumes": volumes}}));
        let mut more = disk_of_host(kind, "n1").to_vec();
        more.push(user);
        let simulated = without(&cluster(&[("n1", &[]), ("n2", &[])], &more), &["n1"], &Ask::default());
        assert_eq!(simulated.is_complete(), is_movable, "{kind}: {simulated:?}");
        if is_movable {
            assert_eq!(places(&simulated), (0, vec!["n2: user".to_owned()]), "{kind}");
        }
    }
}
