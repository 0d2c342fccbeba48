//! `karpenter plan` and the controller decide the same: random clusters, planned from what `kubectl get` prints and then
//! left to the operator.
//!
//! ```text
//! (a) what is launched, for which pods, and what pods are told that stay pending is what the plan says
//! (b) later rounds launch nothing that the plan does not say
//! (c) a plan of what came of it launches nothing, and the same pods stay pending
//! ```
//!
//! There is no scheduler, so that nobody else's choices matter. `PARITY=2000 cargo test -p karpenter-operator --test
//! parity` looks at more clusters; `PARITY_FROM=70` begins with another seed.

#[path = "../support/compared.rs"]
mod compared;
mod made;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Provider;
use testkit::World;
use testkit::scenarios::manifests::manifest;

use compared::{CLAIMS, Operator, planned, printed};
use made::Made;

/// How many clusters are looked at if nobody asks for more.
const CLUSTERS: u64 = 200;
/// How long the first round takes, launches included.
const ROUND: Duration = Duration::from_secs(8);
/// How long it is watched what later rounds do.
const LATER: Duration = Duration::from_mins(2);

/// What was seen of a cluster, so that something can be concluded.
#[derive(Default)]
struct Seen {
    nodes: usize,
    pending: usize,
    limited: usize,
}

fn compare(seed: u64) -> Seen {
    let made = Made::new(seed);
    let mut world = World::builder(seed).without_scheduler().start();
    for definition in api::crds::documents(Provider::Kwok) {
        world.apply(&definition.document.to_string());
    }
    world.apply(&manifest(&made.objects));
    let planned_first = planned(&printed(&world), &made.settings, world.now());
    let fail = |world: &World, what: &str, difference: &str| -> ! {
        let objects = made.objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        panic!("seed {seed}: {what}\n{difference}\n{objects}\n{}", world.describe());
    };
    let operator = Operator::start(&world, world.client(), &made.settings, seed, |kwok| Arc::new(kwok));
    world.run_for(ROUND);
    let done = operator.decided(&world, &[]);
    if done != planned_first {
        fail(&world, "(a) the controller does not do what is planned", &planned_first.difference(&done));
    }
    world.run_for(LATER);
    let count = world.list(CLAIMS).len();
    if count != done.nodes.len() {
        fail(&world, "(b) later rounds launch more", &format!("{} became {count}", done.nodes.len()));
    }
    let after = planned(&printed(&world), &made.settings, world.now());
    let pods = |pending: &compared::Decided| pending.pending.keys().cloned().collect::<BTreeSet<_>>();
    if !after.nodes.is_empty() || pods(&after) != pods(&done) {
        fail(&world, "(c) a plan of what came of it differs", &after.difference(&done));
    }
    operator.kill();
    let limited = done.pending.values().filter(|why| why.contains("limits")).count();
    Seen { nodes: done.nodes.len(), pending: done.pending.len(), limited }
}

/// Every other cluster, so that two are looked at at the same time.
fn compare_half(half: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (asked, first) = (number("PARITY"), number("PARITY_FROM").unwrap_or(0));
    let mut all = Seen::default();
    for seed in (first..first + asked.unwrap_or(CLUSTERS)).filter(|seed| seed % 2 == half) {
        let seen = compare(seed);
        all.nodes += seen.nodes;
        all.pending += seen.pending;
        all.limited += seen.limited;
    }
    let enough = all.nodes > 100 && all.pending > 100 && all.limited > 30;
    // A few clusters that somebody asked for need not have seen all of it.
    assert!(
        asked.is_some() || enough,
        "{} nodes, {} pending, {} for limits",
        all.nodes,
        all.pending,
        all.limited
    );
}

#[test]
fn the_controller_does_what_is_planned_in_clusters_of_even_seed() {
    compare_half(0);
}

#[test]
fn the_controller_does_what_is_planned_in_clusters_of_odd_seed() {
    compare_half(1);
}
