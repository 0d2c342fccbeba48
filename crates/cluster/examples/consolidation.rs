//! How long it takes to look at every node of a large cluster for something to save:
//! `cargo run --release -p karpenter-cluster --example consolidation [THREADS]`.

#![expect(clippy::print_stdout, reason = "this is what it is for")]
#![expect(clippy::disallowed_methods, reason = "the time it takes is what is asked for")]

use std::path::Path;
use std::time::Instant;

use api::provider::Provider;
use cluster::costs;
use cluster::instance_types::kwok;
use cluster::snapshot::{Options, ToPlace, build};
use cluster::state_node::join;
use engine::consolidate::{Candidate, Rules, Verdict, examine_all, merge};
use engine::options::{self, Reserved};
use engine::solve::Simulation;
use jiff::Timestamp;

/// One node in ten may go, and anything is worth it.
struct Tenth(usize);

impl Rules for Tenth {
    fn spot_to_spot(&self) -> bool {
        false
    }

    fn may_go(&self, candidates: &[usize]) -> bool {
        candidates.len() <= self.0
    }

    fn may_be_replaced(&self, _: usize) -> bool {
        true
    }

    fn is_worth(&self, _: &[usize], _: f64) -> bool {
        true
    }
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/data");
    let contents =
        cluster::file::read(&data.join("existing-1000.json.gz")).expect("the file is in the repository");
    let catalogue = kwok::read(&data.join("aws-us-east-1.json.gz")).expect("the file is in the repository");
    let objects = &contents.objects;
    let mut options = Options::new(Provider::Kwok, &catalogue);
    options.to_place = ToPlace { in_case: true, ..ToPlace::default() };
    let start = Instant::now();
    let built = build(objects, &options, Timestamp::UNIX_EPOCH);
    println!(
        "snapshot of {} nodes, {} pods: {:?}",
        built.snapshot.nodes.len(),
        built.snapshot.pods.len(),
        start.elapsed()
    );
    let joined = join(objects.nodes.iter(), objects.node_claims.iter(), Provider::Kwok);
    let mut all: Vec<(f64, Candidate)> = Vec::new();
    for (position, origin) in built.nodes.iter().enumerate() {
        let Some(node) = joined.nodes.iter().find(|node| node.provider_id() == &*origin.provider_id) else {
            continue;
        };
        let price = costs::price(node, &catalogue);
        let snapshot = &built.snapshot;
        let type_ = snapshot
            .universe
            .values(snapshot.keys.instance_type)
            .get(node.label(api::names::labels::INSTANCE_TYPE));
        let id = engine::model::NodeId::at(position);
        let pods = snapshot.pods.iter().filter(|pod| pod.runs.is_some_and(|runs| runs.on == id)).count();
        let spot = node.label(api::names::labels::CAPACITY_TYPE) == "spot";
        #[expect(clippy::cast_precision_loss, reason = "few pods")]
        all.push((price / (1.0 + pods as f64), Candidate { node: id, price, spot, type_ }));
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: Vec<Candidate> = all.into_iter().map(|(_, candidate)| candidate).collect();
    let total: f64 = all.iter().map(|candidate| candidate.price).sum();
    let start = Instant::now();
    let settings = options::Options { reserved: Reserved::Fallback, ..options::Options::default() };
    let mut simulation = Simulation::new(&built.snapshot, &settings);
    println!("simulation: {:?}", start.elapsed());
    let rules = Tenth(all.len() / 10);
    let start = Instant::now();
    let verdicts = examine_all(&simulation, &all, &rules, threads, |_, _, verdict| verdict);
    let count = |test: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| test(verdict)).count();
    println!(
        "each of {} nodes by itself: {:?}; delete {}, replace {}",
        all.len(),
        start.elapsed(),
        count(|verdict| matches!(verdict, Verdict::Delete)),
        count(|verdict| matches!(verdict, Verdict::Replace(_)))
    );
    let start = Instant::now();
    let moves = merge(&mut simulation, &all, &rules);
    println!("together: {:?}", start.elapsed());
    for each in &moves {
        println!("  {} nodes, saves {:.2} of {total:.2} $/h", each.candidates.len(), each.savings);
    }
}
