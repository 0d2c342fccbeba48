//! A cluster whose workload does not change comes to rest, and stays as it is.
//!
//! `FIXED_POINTS=200 cargo test --release -p karpenter-operator --test fixed_point` looks at more clusters.

#[path = "support/whole.rs"]
mod whole;

use std::time::Duration;

use api::provider::Provider;
use http::Method;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;
use testkit::scenarios::manifests::{deployment_with, manifest, node_class, pool, with};

/// How many clusters are looked at if nobody asks for more.
const CLUSTERS: u64 = 10;
/// How long a cluster may take to come to rest, and how long it is watched then.
const TO_REST: Duration = Duration::from_hours(1);
const AT_REST: Duration = Duration::from_hours(24);

/// A rule that pods of a deployment follow.
fn rule(random: &mut Pcg64Mcg, name: &str) -> Value {
    let selector = json!({"matchLabels": {"app": name}});
    let spread = |key: &str| {
        json!({"topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
        }]})
    };
    match random.random_range(0..5) {
        0 => spread("topology.kubernetes.io/zone"),
        1 => spread("kubernetes.io/hostname"),
        _ => json!({}),
    }
}

/// The claims of a cluster by name.
fn claims(world: &World) -> Vec<String> {
    let (_, list) = world.send(Method::GET, "/apis/karpenter.sh/v1/nodeclaims", "", &Value::Null);
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|claim| claim["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn rests(seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut world = World::new(seed);
    for definition in api::crds::documents(Provider::Kwok) {
        world.apply(&definition.document.to_string());
    }
    world.spawn(whole::operate(world.client(), world.clock(), Settings::default(), seed));
    let budget = ["10%", "1", "100%"][random.random_range(0..3)];
    let disruption = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": budget}],
    });
    world.apply(&manifest(&[
        with(pool("default"), &json!({"spec": {"disruption": disruption}})),
        node_class(),
    ]));
    let count = random.random_range(1..4);
    let replicas: Vec<usize> = (0..count).map(|_| random.random_range(1..5)).collect();
    for (number, replicas) in replicas.iter().enumerate() {
        let name = format!("d{number}");
        let cpu = ["100m", "500m", "1", "3"][random.random_range(0..4)];
        world.apply(&deployment_with(&name, *replicas, cpu, &rule(&mut random, &name)).to_string());
    }
    world.run_for(Duration::from_mins(5));
    for (number, replicas) in replicas.iter().enumerate() {
        let left = random.random_range(0..=*replicas);
        let path = format!("/apis/apps/v1/namespaces/default/deployments/d{number}");
        let change = json!({"spec": {"replicas": left}});
        let (code, answer) = world.send(Method::PATCH, &path, "application/merge-patch+json", &change);
        assert!(code.is_success(), "{answer}");
    }
    world.run_for(TO_REST);
    let before = claims(&world);
    // A node that is replaced has another name.
    world.run_for(AT_REST);
    assert_eq!(claims(&world), before, "seed {seed}");
}

/// Every other cluster, so that two are looked at at the same time.
fn all_rest(half: u64) {
    let clusters = std::env::var("FIXED_POINTS").ok().and_then(|text| text.parse().ok()).unwrap_or(CLUSTERS);
    (0..clusters).filter(|seed| seed % 2 == half).for_each(rests);
}

#[test]
fn clusters_of_even_seed_come_to_rest() {
    all_rest(0);
}

#[test]
fn clusters_of_odd_seed_come_to_rest() {
    all_rest(1);
}
