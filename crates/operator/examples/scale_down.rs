//! What consolidation makes of a cluster that has lost a third of its pods, in virtual time:
//! `cargo run --release -p karpenter-operator --example scale_down [PODS]`.

#![expect(clippy::print_stdout, reason = "this is its result")]

use std::sync::Arc;
use std::time::Duration;

use api::names::metrics::PODS_EVICTION_REQUESTS;
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
/// Nodes stay the same for so long.
const STILL: Duration = Duration::from_mins(3);

fn main() {
    let pods = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut world = World::new(1);
    for definition in api::crds::documents(Provider::Kwok) {
        world.apply(&definition.document.to_string());
    }
    let pool = include_str!("../../../examples/kwok/nodepool.yaml").replace("cpu: 1000", "cpu: 100000");
    world.apply(&pool.replace("consolidateAfter: 30s", "consolidateAfter: Never"));
    let clock = world.clock();
    let parts = Parts::new(world.client(), Provider::Kwok, clock, Settings::default());
    let metrics = parts.metrics.clone();
    world.spawn(async move {
        let kwok = Kwok::new(
            parts.api.clone(),
            parts.cluster.clone(),
            clock,
            1,
            cluster::instance_types::kwok::built_in(),
        );
        let of_cloud = kwok.controllers(&parts.events, &parts.metrics);
        let (_leads, leading) = watch::channel(true);
        operator::run(parts.context(Arc::new(kwok)), of_cloud, leading).await;
    });
    world.run_for(Duration::from_secs(10));
    let all = workload(pods, DEPLOYMENTS);
    for deployment in all["items"].as_array().into_iter().flatten() {
        world.apply(&deployment.to_string());
        // As fast as a real cluster makes pods.
        world.run_for(Duration::from_millis(1500));
    }
    world.run_until("all pods run", Duration::from_mins(30), |world| world.running() == pods);
    let before = price(&nodes(&world));
    println!("{pods} pods run on {} nodes for {before:.2} $/h", nodes(&world).len());
    world.apply(&pool.replace("consolidateAfter: 30s", "consolidateAfter: 0s"));
    for number in 0..DEPLOYMENTS {
        let replicas = pods / DEPLOYMENTS + usize::from(number < pods % DEPLOYMENTS);
        let path = format!("/apis/apps/v1/namespaces/default/deployments/d{number}");
        world.patch(&path, &json!({"spec": {"replicas": replicas * 70 / 100}}));
    }
    let start = world.now();
    let (mut known, mut changed) = (String::new(), start);
    while world.now().duration_since(changed).unsigned_abs() < STILL {
        world.run_for(Duration::from_secs(2));
        let names = nodes(&world).iter().map(|node| node["metadata"]["name"].to_string()).collect::<Vec<_>>();
        let found = format!("{names:?} {}", world.list("/apis/karpenter.sh/v1/nodeclaims").len());
        if found != known {
            (known, changed) = (found, world.now());
            let evictions = metrics.value(&PODS_EVICTION_REQUESTS, &["200"]).unwrap_or_default();
            println!(
                "  {:3} s: {} nodes for {:.2} $/h, {evictions} evictions",
                changed.duration_since(start).as_secs(),
                nodes(&world).len(),
                price(&nodes(&world))
            );
        }
    }
    let after = price(&nodes(&world));
    let evictions = metrics.value(&PODS_EVICTION_REQUESTS, &["200"]).unwrap_or_default();
    println!(
        "after {} s: {} nodes for {after:.2} $/h, {evictions} evictions, {:.1} for each $/h saved",
        changed.duration_since(start).as_secs(),
        nodes(&world).len(),
        evictions / (before - after)
    );
}

fn nodes(world: &World) -> Vec<Value> {
    world.list("/api/v1/nodes")
}

/// What nodes cost per hour.
fn price(nodes: &[Value]) -> f64 {
    let types = types::built_in();
    let price = |node: &Value| {
        price_by_labels(|key| node["metadata"]["labels"][key].as_str().unwrap_or_default(), &types)
    };
    nodes.iter().map(price).sum()
}
