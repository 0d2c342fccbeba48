//! How long disruption looks at a large cluster in which nothing has changed:
//! `cargo run --release -p karpenter-operator --example idle_pass [FILE]`.

#![expect(clippy::print_stdout, reason = "this is its result")]
#![expect(clippy::disallowed_methods, reason = "the time it takes is what is asked for")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use api::provider::Provider;
use cluster::instance_types::{InstanceType, kwok};
use cluster::state::State;
use jiff::Timestamp;
use operator::Types;
use operator::disruption::preview::{eligible, settled};
use runtime::Settings;

const TIMES: u32 = 50;

fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/data");
    let file = std::env::args().nth(1).map_or_else(|| data.join("existing-1000.json.gz"), PathBuf::from);
    let contents = cluster::file::read(&file).expect("a cluster file");
    let catalogue = kwok::read(&data.join("aws-us-east-1.json.gz")).expect("a file of the repository");
    let catalogue: Arc<[InstanceType]> = catalogue.into();
    let now = Timestamp::now();
    let state = settled(&State::of_files(contents.objects, Provider::Kwok), now);
    let pools = state.node_pools.values().filter_map(|pool| pool.metadata.name.clone());
    let types: Types = pools.map(|name| (name.into(), Arc::clone(&catalogue))).collect();
    let settings = Settings::default();
    let (mut least, start, busy) = (f64::INFINITY, Instant::now(), processor_time());
    let mut found = 0;
    for _ in 0..TIMES {
        let start = Instant::now();
        found = eligible(&state, &types, &settings, now);
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
    }
    let mean = start.elapsed().as_secs_f64() * 1e3 / f64::from(TIMES);
    let busy = (processor_time() - busy) / f64::from(TIMES);
    println!(
        "{} nodes, {} pods, {found} candidates: {mean:.1} ms on average, {least:.1} ms at best, {busy:.1} ms of processor time",
        state.nodes.len(),
        state.pods.len()
    );
}

/// For how many milliseconds this thread has had a processor: what else the machine does matters less to it.
fn processor_time() -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    counted.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or_default() / 1e6
}
