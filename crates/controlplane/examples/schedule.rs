//! How fast pods are scheduled: `cargo run --release -p karpenter-controlplane --example schedule -- 10000 1000`.
#![expect(clippy::print_stdout, reason = "it is a program")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::sync::Arc;
use std::time::Instant;

use controlplane::scheduler::{Decision, Scheduler};
use serde_json::{Value, json};

/// Workloads as clusters have them: plain ones, some spread over zones, some that avoid themselves.
fn pod(index: usize) -> Value {
    let app = format!("app-{}", index % 50);
    let selector = json!({"matchLabels": {"app": app}});
    let mut pod = json!({"metadata": {"name": format!("pod-{index}"), "namespace": "default", "labels": {"app": app},
        "uid": index.to_string()}, "spec": {"containers": [{"name": "main", "resources":
        {"requests": {"cpu": format!("{}m", 100 + index % 7 * 100), "memory": "512Mi"}}}]}});
    match index % 50 {
        0..10 => {
            pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
        }
        10..13 => {
            pod["spec"]["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}}]}});
        }
        13 => {
            pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]}});
        }
        _ => {}
    }
    pod
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let (pods, nodes) = (arguments.next().unwrap_or(10_000), arguments.next().unwrap_or(1_000));
    let mut scheduler = Scheduler::new();
    for index in 0..nodes {
        let name = format!("node-{index}");
        let node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": format!("z{}", index % 3)}},
            "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}}});
        scheduler.observe_node(&name, serde_json::from_value(node).ok().map(Arc::new));
    }
    let objects: Vec<_> =
        (0..pods).map(|index| serde_json::from_value(pod(index)).ok().map(Arc::new)).collect();

    let start = Instant::now();
    for (index, object) in objects.into_iter().enumerate() {
        scheduler.observe_pod(&("default".to_owned(), format!("pod-{index}")), object);
    }
    println!("{pods} pods seen after {:?}", start.elapsed());
    let (mut bound, mut refused) = (0, 0);
    while let Some(decision) = scheduler.next() {
        match decision {
            Decision::Unschedulable { .. } => refused += 1,
            _ => bound += 1,
        }
    }
    println!("{bound} placed on {nodes} nodes, {refused} refused after {:?}", start.elapsed());
}
