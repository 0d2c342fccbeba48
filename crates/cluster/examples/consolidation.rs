//! How long it takes to look at every node of a large cluster for something to save:
//! `cargo run --release -p karpenter-cluster --example consolidation [THREADS [FILE]]`.
//!
//! `... --example consolidation enlarge TIMES POOLS FILE` writes a cluster that is several times as large, with a third
//! more pods, small ones, on each node.

#![expect(clippy::print_stdout, reason = "this is what it is for")]
#![expect(clippy::disallowed_methods, reason = "the time it takes is what is asked for")]

use std::fs;
use std::path::{Path, PathBuf};
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
use serde_json::{Value, json};

/// One node in ten may go, and anything is worth it.
struct Tenth(usize);

impl Rules for Tenth {
    fn spot_to_spot(&self) -> bool {
        false
    }

    fn may_go(&self, candidates: &[usize]) -> bool {
        candidates.len() <= self.0
    }

    fn is_worth(&self, _: &[usize], _: f64) -> bool {
        true
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/data");
    let existing = data.join("existing-1000.json.gz");
    if let [word, times, pools, file] = &arguments[..]
        && word == "enlarge"
    {
        let number = |text: &str| text.parse().expect("a number");
        let cluster = enlarged(&existing, number(times), number(pools));
        return fs::write(file, cluster.to_string()).expect("a file that can be written");
    }
    let threads = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(2);
    let file = arguments.get(1).map_or(existing, PathBuf::from);
    let contents = cluster::file::read(&file).expect("a cluster file");
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
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
}

/// Several times the cluster of a file, its nodes dealt out to some pools.
fn enlarged(file: &Path, times: usize, pools: usize) -> Value {
    let mut text = String::new();
    let packed = fs::File::open(file).expect("the file is in the repository");
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut text).expect("packed text");
    let cluster: Value = serde_json::from_str(&text).expect("JSON");
    let of_kind = |kind: &'static str| {
        let items = cluster["items"].as_array().into_iter().flatten();
        items.filter(move |item| item["kind"] == kind)
    };
    let mut items: Vec<Value> = of_kind("KWOKNodeClass").cloned().collect();
    let pool_name = |number: usize| format!("pool-{}", number % pools);
    for number in 0..pools {
        let mut pool = of_kind("NodePool").next().expect("a pool").clone();
        pool["metadata"]["name"] = pool_name(number).into();
        pool["metadata"]["uid"] = format!("pool-uid-{number}").into();
        items.push(pool);
    }
    for copy in 0..times {
        let renamed = |text: &Value| Value::from(format!("{}-{copy}", text.as_str().unwrap_or_default()));
        let objects = of_kind("NodeClaim").enumerate().chain(of_kind("Node").enumerate());
        for (number, object) in objects {
            let mut object = object.clone();
            for path in [
                "/metadata/name",
                "/metadata/uid",
                "/spec/providerID",
                "/status/providerID",
                "/status/nodeName",
            ] {
                if let Some(name) = object.pointer_mut(path) {
                    *name = renamed(name);
                }
            }
            let labels = &mut object["metadata"]["labels"];
            labels["karpenter.sh/nodepool"] = pool_name(number).into();
            if !labels["kubernetes.io/hostname"].is_null() {
                labels["kubernetes.io/hostname"] = renamed(&labels["kubernetes.io/hostname"]);
            }
            object["metadata"]["ownerReferences"] = json!([]);
            items.push(object);
        }
        for (number, pod) in of_kind("Pod").enumerate() {
            let mut pod = pod.clone();
            for path in ["/metadata/name", "/metadata/uid", "/spec/nodeName"] {
                if let Some(name) = pod.pointer_mut(path) {
                    *name = renamed(name);
                }
            }
            if number % 3 == 0 {
                let mut small = pod.clone();
                small["metadata"]["name"] = format!("small-{copy}-{number}").into();
                small["metadata"]["uid"] = format!("small-{copy}-{number}").into();
                small["spec"]["containers"][0]["resources"] =
                    json!({"requests": {"cpu": "10m", "memory": "16Mi"}});
                items.push(small);
            }
            items.push(pod);
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
