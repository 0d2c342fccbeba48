//! Launches where EC2 has little of what is asked for, and where NodeOverlays say what things cost and have.

use std::collections::BTreeSet;
use std::time::Duration;

use api::names::values::capacity_type::{ON_DEMAND, SPOT};
use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use api::provider::Provider;
use aws::prices::Prices;
use cloud::unavailable::Asked;
use cloud::{CloudProvider as _, Overlays};
use cluster::overlays::{PoolTypes, evaluate};
use serde_json::{Value, json};

use crate::play::{Play, instance_type};
use crate::support::{DISCOVERED, REGION, ZONES, claim, requesting};

const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);
/// The zones with subnets.
const USED: [&str; 2] = [ZONES[0], ZONES[1]];

/// The cheapest usual types, in the order of their price.
fn cheapest(count: usize) -> Vec<&'static str> {
    let prices = Prices::of_region(REGION);
    let usual = ["c5.", "c6i.", "m5.", "m6i.", "r5.", "r6i.", "m5a.", "r5a.", "c5a.", "c7i."];
    let mut all: Vec<(f64, &str)> = DISCOVERED
        .types()
        .map(|info| info.name.as_str())
        .filter(|name| usual.iter().any(|family| name.starts_with(family)) && !name.contains("metal"))
        .filter_map(|name| Some((prices.on_demand(name)?, name)))
        .collect();
    all.sort_by(|left, right| left.partial_cmp(right).unwrap());
    all.into_iter().map(|(_, name)| name).take(count).collect()
}

fn price(name: &str) -> f64 {
    Prices::of_region(REGION).on_demand(name).unwrap()
}

fn is_marked(play: &Play, name: &str, zone: &str, kind: &str) -> bool {
    let asked = Asked { instance_type: name, zone, capacity_type: kind, ..Asked::default() };
    play.aws.unavailable().contains_asked(&asked)
}

/// Asserts that nothing was asked for twice, and returns how much was asked for.
#[track_caller]
fn asked_once(play: &Play) -> Vec<String> {
    let asked = play.asked();
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "an offering was asked for twice");
    asked
}

#[test]
fn a157_fifty_offerings_without_capacity_are_followed_by_the_next_within_a_second() {
    // The fifty cheapest on-demand offerings are out: the fifty-first runs.
    let names = cheapest(40);
    let mut play = Play::new(&names);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| {
        world.latency = Duration::from_millis(100);
        for name in &names[..25] {
            for zone in USED {
                world.lacks(name, zone, ON_DEMAND);
            }
        }
    });
    let before = play.world.now();
    let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    let took = play.world.now().duration_since(before).as_secs_f64();
    println!("on-demand: {took} s, {} CreateFleet", play.double.count("ec2:CreateFleet"));
    assert!(took <= 1.0, "{took} s");
    assert!(!names[..25].contains(&instance_type(&launched)));
    assert!((price(instance_type(&launched)) - price(names[25])).abs() < 1e-9, "the cheapest that there is");
    asked_once(&play);
    let marked = names.iter().flat_map(|name| USED.map(|zone| is_marked(&play, name, zone, ON_DEMAND)));
    assert_eq!(marked.filter(|is_marked| *is_marked).count(), 50);

    // All fifty spot offerings of a claim are out: capacity by use is asked for in the same launch.
    let names = cheapest(25);
    let mut play = Play::new(&names);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| {
        world.latency = Duration::from_millis(100);
        for name in &names {
            for zone in USED {
                world.lacks(name, zone, SPOT);
            }
        }
        for name in &names {
            for zone in USED {
                let (instance_type, zone) = ((*name).to_owned(), zone.to_owned());
                let price = price(name) * 0.1;
                world.spot_prices.push(aws::port::SpotPrice { instance_type, zone, price });
            }
        }
    });
    let prices = play.double.change(|world| world.spot_prices.clone());
    play.aws.know(|known| known.change_prices(|all| all.update_spot(prices)));
    let before = play.world.now();
    let launched = play.create(&claim(&[])).unwrap();
    let took = play.world.now().duration_since(before).as_secs_f64();
    println!("spot, then on-demand: {took} s, {} CreateFleet", play.double.count("ec2:CreateFleet"));
    assert!(took <= 1.0, "{took} s");
    assert!((price(instance_type(&launched)) - price(names[0])).abs() < 1e-9);
    let asked = asked_once(&play);
    let spot = asked.iter().take_while(|offer| offer.starts_with("spot ")).count();
    assert_eq!(spot, 50, "all of them, and then something else");
    assert!(asked[50..].iter().all(|offer| offer.starts_with("on-demand ")));
    assert_eq!(play.double.count("ec2:CreateFleet"), 2);
}

fn pool() -> NodePool {
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool-1"},
        "spec": {"template": {"spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
    }))
    .unwrap()
}

/// Puts overlays in force, as the controller of the core does.
fn put_in_force(play: &Play, overlays: &Overlays, specs: &[Value]) {
    let objects: Vec<NodeOverlay> = specs
        .iter()
        .enumerate()
        .map(|(number, spec)| {
            serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
                "metadata": {"name": format!("overlay-{number}")}, "spec": spec,
            }))
            .unwrap()
        })
        .collect();
    let pool = pool();
    let types = play.world.block_on(play.aws.instance_types(&pool)).unwrap();
    let evaluation =
        evaluate(Provider::Aws, &objects.iter().collect::<Vec<_>>(), &[PoolTypes { pool: &pool, types }]);
    assert!(evaluation.rejections.iter().all(Option::is_none), "{:?}", evaluation.rejections);
    overlays.replace(evaluation.in_force);
}

#[test]
fn a158_overlays_decide_what_is_launched() {
    let overlays = Overlays::new(Provider::Aws);
    let mut play = Play::overlaid(&["m5.large", "m5.xlarge", "c5.large"], &overlays);
    play.ready_class("default", &json!({}), &json!({}));
    assert!(
        play.create(&claim(&[ON_DEMAND_ONLY])).is_err(),
        "nobody knows yet what the pool can choose from"
    );
    put_in_force(&play, &overlays, &[]);
    assert_eq!(instance_type(&play.create(&claim(&[ON_DEMAND_ONLY])).unwrap()), "c5.large", "the cheapest");
    let of_type =
        |name: &str| json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]}]);
    put_in_force(
        &play,
        &overlays,
        &[
            json!({"requirements": of_type("m5.xlarge"), "price": "0.001"}),
            json!({"requirements": of_type("m5.large"), "capacity": {"example.com/licence": "3"}}),
        ],
    );
    // The core says on the claim that prices were corrected: EC2 is told our order, and its own prices do not matter.
    let mut corrected = claim(&[ON_DEMAND_ONLY]);
    let annotation = (api::names::annotations::PRICE_OVERLAY_APPLIED.to_owned(), "true".to_owned());
    corrected.metadata.annotations = Some([annotation].into());
    let cheap = play.create(&corrected).unwrap();
    assert_eq!(instance_type(&cheap), "m5.xlarge");
    // What only an overlay knows of can be asked for, and is on the claim.
    let wanted = requesting(claim(&[ON_DEMAND_ONLY]), &[("example.com/licence", "2")]);
    let licensed = play.create(&wanted).unwrap();
    assert_eq!(instance_type(&licensed), "m5.large");
    let capacity = &licensed.status.as_ref().unwrap().capacity;
    assert_eq!(capacity.get("example.com/licence").map(ToString::to_string).as_deref(), Some("3"));
    let too_much = requesting(claim(&[ON_DEMAND_ONLY]), &[("example.com/licence", "4")]);
    assert!(matches!(play.create(&too_much), Err(cloud::Error::InsufficientCapacity(_))));
}
