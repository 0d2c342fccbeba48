//! Pods that arrive one after the other: how long they wait and what their nodes cost, in virtual time:
//! `cargo run --release -p karpenter-operator --example arriving_pods [PODS [PODS-A-SECOND [IDLE MAX]]]`, the batch windows
//! in seconds.
//!
//! As on a real cluster, five ReplicaSets at a time get their pods. Each line of the result is a second in which
//! something was launched.

#![expect(clippy::print_stdout, reason = "this is its result")]

use std::sync::Arc;
use std::time::Duration;

use api::provider::Provider;
use cluster::costs::price_by_labels;
use cluster::instance_types::kwok as types;
use kwok::Kwok;
use operator::Parts;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;
use testkit::workload::workload;
use tokio::sync::watch;

const DEPLOYMENTS: usize = 30;
/// How many ReplicaSets the controller manager looks after at the same time.
const WORKERS: usize = 5;

fn main() {
    let arguments: Vec<f64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let argument = |at: usize, default: f64| arguments.get(at).copied().unwrap_or(default);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let pods = argument(0, 990.0) as usize;
    let every = Duration::from_secs_f64(1.0 / argument(1, 20.0));
    let settings = Settings {
        batch_idle_duration: Duration::from_secs_f64(argument(2, 1.0)),
        batch_max_duration: Duration::from_secs_f64(argument(3, 10.0)),
        ..Settings::default()
    };
    let mut world = World::new(1);
    for definition in api::crds::documents(Provider::Kwok) {
        world.apply(&definition.document.to_string());
    }
    let pool = include_str!("../../../examples/kwok/nodepool.yaml").replace("cpu: 1000", "cpu: 100000");
    world.apply(&pool.replace("consolidateAfter: 30s", "consolidateAfter: Never"));
    let clock = world.clock();
    let parts = Parts::new(world.client(), Provider::Kwok, clock, settings);
    world.spawn(async move {
        let (api, cluster) = (parts.api.clone(), parts.cluster.clone());
        let kwok = Kwok::new(api, cluster, clock, 1, types::built_in());
        let of_cloud = kwok.controllers(&parts.events, &parts.metrics);
        let (_leads, leading) = watch::channel(true);
        operator::run(parts.context(Arc::new(kwok)), of_cloud, leading).await;
    });
    world.run_for(Duration::from_secs(10));
    let start = world.now();
    let mut known = 0;
    let mut told = |world: &World, created: usize| {
        let claims = world.list("/apis/karpenter.sh/v1/nodeclaims").len();
        if claims != known {
            println!(
                "  {:5.1} s: {created} pods exist, {} run, {claims} claims",
                world.now().duration_since(start).as_secs_f64(),
                world.running()
            );
            known = claims;
        }
    };
    for (created, pod) in in_order(pods).iter().enumerate() {
        world.apply(&pod.to_string());
        world.run_for(every);
        told(&world, created + 1);
    }
    let floor = world.now().duration_since(start);
    while world.running() < pods {
        world.run_for(Duration::from_millis(200));
        told(&world, pods);
    }
    let nodes = world.list("/api/v1/nodes");
    println!(
        "last pod after {:.1} s, all run {:.1} s later on {} nodes for {:.2} $/h",
        floor.as_secs_f64(),
        (world.now().duration_since(start) - floor).as_secs_f64(),
        nodes.len(),
        price(&nodes)
    );
}

/// The pods of the workload in the order in which the controller manager creates them.
fn in_order(pods: usize) -> Vec<Value> {
    let all = workload(pods, DEPLOYMENTS);
    let deployments: Vec<&Value> = all["items"].as_array().into_iter().flatten().collect();
    let mut ordered = Vec::new();
    for group in deployments.chunks(WORKERS) {
        let replicas = |deployment: &Value| deployment["spec"]["replicas"].as_u64().unwrap_or_default();
        for number in 0..group.iter().map(|deployment| replicas(deployment)).max().unwrap_or_default() {
            for deployment in group.iter().filter(|deployment| number < replicas(deployment)) {
                let template = &deployment["spec"]["template"];
                let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
                ordered.push(json!({
                    "apiVersion": "v1", "kind": "Pod",
                    "metadata": {
                        "name": format!("{name}-{number}"), "namespace": "default",
                        "labels": template["metadata"]["labels"],
                    },
                    "spec": template["spec"],
                }));
            }
        }
    }
    ordered
}

/// What nodes cost per hour.
fn price(nodes: &[Value]) -> f64 {
    let types = types::built_in();
    let price = |node: &Value| {
        price_by_labels(|key| node["metadata"]["labels"][key].as_str().unwrap_or_default(), &types)
    };
    nodes.iter().map(price).sum()
}
