//! How long it takes to build a snapshot of a large cluster from the state:
//! `cargo run --release -p karpenter-cluster --example snapshot`.

use std::time::{Duration, Instant};

use api::provider::Provider;
use cluster::instance_types::{InstanceType, kwok};
use cluster::snapshot::{Options, build};
use cluster::state::{Kind, Seen, State};
use jiff::Timestamp;
use serde_json::{Value, json};

const NODES: usize = 1000;
const PODS_PER_NODE: usize = 15;
const WORKLOADS: usize = 200;

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let mut state = State::awaiting(Provider::Kwok, &[]);
    let types = kwok::built_in();
    for (kind, value) in objects() {
        match kind.decode(&value.to_string()) {
            Ok(object) => drop(state.observe(Seen::Applied(object))),
            Err(error) => println!("{kind:?}: {error}"),
        }
    }
    let mut times: Vec<Duration> = (0..50).map(|_| time(&state, &types)).collect();
    times.sort_unstable();
    println!(
        "{} nodes, {} pods: {:?} at best, {:?} in the middle, {:?} at worst",
        state.nodes.len(),
        state.pods.len(),
        times[0],
        times[times.len() / 2],
        times[times.len() - 1]
    );
}

#[expect(clippy::disallowed_methods, reason = "the time it takes is what is asked for")]
fn time(state: &State, types: &[InstanceType]) -> Duration {
    let start = Instant::now();
    let built = build(state, &Options::new(Provider::Kwok, types), Timestamp::UNIX_EPOCH);
    let taken = start.elapsed();
    assert_eq!((built.snapshot.nodes.len(), built.snapshot.pods.len(), built.ignored.len()), (NODES, 1, 0));
    taken
}

fn objects() -> Vec<(Kind, Value)> {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut all = vec![(
        Kind::NodePool,
        json!({
            "metadata": {"name": "p"},
            "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}, "limits": {"cpu": "100k"}},
        }),
    )];
    for index in 0..NODES {
        let (name, id) = (format!("node-{index}"), format!("kwok://node-{index}"));
        let labels = json!({
            "karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
            "karpenter.sh/capacity-type": "spot", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "s-16x-amd64-linux",
            "topology.kubernetes.io/zone": format!("test-zone-{}", index % 3),
            "karpenter.kwok.sh/kwoknodeclass": "default", "team": format!("team-{}", index % 7),
        });
        let amounts = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "20Gi"});
        all.push((
            Kind::NodeClaim,
            json!({
                "metadata": {"name": name, "labels": labels},
                "spec": {"requirements": [], "nodeClassRef": class},
                "status": {"providerID": id, "capacity": amounts, "allocatable": amounts},
            }),
        ));
        all.push((
            Kind::Node,
            json!({
                "metadata": {"name": name, "labels": labels}, "spec": {"providerID": id},
                "status": {"capacity": amounts, "allocatable": amounts},
            }),
        ));
        for pod in 0..PODS_PER_NODE {
            all.push((Kind::Pod, bound(index * PODS_PER_NODE + pod, &name)));
        }
    }
    let mut pending = bound(NODES * PODS_PER_NODE, "");
    pending["status"] = json!({"conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]});
    all.push((Kind::Pod, pending));
    all
}

/// A pod of one of many workloads, each spread over zones and a fifth of them kept apart from each other.
fn bound(index: usize, node: &str) -> Value {
    let workload = index % WORKLOADS;
    let app = json!({"app": format!("app-{workload}"), "pod-template-hash": format!("{workload:x}")});
    let selector = json!({"matchLabels": {"app": app["app"]}});
    let mut spec = json!({
        "nodeName": node,
        "containers": [{
            "name": "main",
            "resources": {"requests": {"cpu": format!("{}m", 100 + workload), "memory": "256Mi"}},
        }],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }],
    });
    if workload.is_multiple_of(5) {
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
        spec["affinity"] =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    }
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": true});
    let metadata = json!({
        "name": format!("pod-{index}"), "namespace": format!("ns-{}", workload % 10), "uid": format!("uid-{index}"),
        "labels": app, "ownerReferences": [owner],
    });
    json!({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
}
