//! Start of the provider: it waits for sizes only, and metrics tell how old everything else is.

use api::names::metrics::azure::DATA_REFRESHED;
use api::nodepool::NodePool;
use armdouble::{Failure, Kind};
use azure::prices::Prices;
use cloud::CloudProvider as _;
use http::Method;
use serde_json::json;

use crate::play::{Play, Stage, pool};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const D2S_V3: (&str, &str, &[&str]) = ("node.kubernetes.io/instance-type", "In", &["Standard_D2s_v3"]);

/// What a D2s_v3 costs now, on demand and as spot.
fn costs(play: &Play) -> (f64, f64) {
    let pool: NodePool = serde_json::from_value(pool("pool", &json!([]))).unwrap();
    let types = play.world.block_on(play.azure.instance_types(&pool)).unwrap();
    let found = types.iter().find(|each| each.name == "Standard_D2s_v3").unwrap();
    let of = |kind: &str| {
        let is_meant = |value: Option<&str>| value == Some(kind);
        let offering =
            found.offerings.iter().find(|each| is_meant(each.value("karpenter.sh/capacity-type"))).unwrap();
        offering.price
    };
    (of("on-demand"), of("spot"))
}

fn refreshed(play: &Play, data: &str) -> Option<f64> {
    play.parts.metrics.value(&DATA_REFRESHED, &[data])
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

// azure.md 6, 20: only the load of the SKUs blocks the start
#[test]
fn a_price_service_that_never_answers_does_not_delay_the_start() {
    let failures = vec![Failure::of(Method::GET, Kind::Price).always().silent()];
    let mut play = Play::with(Stage { failures, ..Stage::default() });
    assert_eq!(play.double.requests_of(&Method::GET, Kind::Price).len(), 1, "it was asked");
    play.ready_class(json!({}));
    let built_in = Prices::of_region("southcentralus").on_demand("Standard_D2s_v3").unwrap();
    let (on_demand, spot) = costs(&play);
    assert!(is_same(on_demand, built_in) && is_same(spot, built_in), "{on_demand} {spot}");
    assert_eq!(refreshed(&play, "prices"), Some(0.0), "users see that there never were any");
    assert!(refreshed(&play, "instance_types").unwrap() > 0.0);
    let claim = play.claim("pool-a", &[ON_DEMAND, D2S_V3]);
    play.create(&claim).unwrap();
    assert_eq!(play.double.names(Kind::VirtualMachine), ["aks-pool-a"]);
}

// azure.md 20: everything but the SKUs
#[test]
fn nothing_but_sizes_delays_the_start() {
    let silent = |kind: Kind| Failure::of(Method::GET, kind).always().silent();
    let failures = [Kind::Price, Kind::Usage, Kind::SecurityGroup, Kind::LoadBalancer].map(silent).to_vec();
    let play = Play::with(Stage { failures, ..Stage::default() });
    assert_eq!(refreshed(&play, "quotas"), Some(0.0));
    play.azure.know(|known| assert!(known.catalogue().skus().next().is_some()));
    // Without quotas nothing is held back, and without an answer nothing is taken for granted.
    let play_without = Play::new();
    assert!(refreshed(&play_without, "quotas").unwrap() > 0.0);
}

// azure.md 6: a fetch error keeps the prices; the next try replaces them
#[test]
fn prices_that_failed_at_the_start_come_later() {
    let refused = Failure::of(Method::GET, Kind::Price).always().at_once(403, "Forbidden", "firewall");
    let mut play = Play::with(Stage { failures: vec![refused], ..Stage::default() });
    play.apply_class("default", &json!({}));
    play.start(|name| name == "pricing");
    play.pass(60);
    let (on_demand, spot) = costs(&play);
    assert!(is_same(on_demand, spot), "{on_demand} {spot}");
    assert_eq!(refreshed(&play, "prices"), Some(0.0));
    assert!(play.double.requests_of(&Method::GET, Kind::Price).len() > 1, "it is asked again");
    play.double.fail_no_more();
    play.pass(1200);
    let (on_demand, spot) = costs(&play);
    assert!(is_same(on_demand * 0.2, spot), "{on_demand} {spot}");
    assert!(refreshed(&play, "prices").unwrap() > 0.0);
}
