//! `cargo xtask differential`: random clusters, and what upstream makes of them.
//!
//! `record FROM..TO` draws a cluster for each seed, asks upstream 25 times (300 times if they differ) and
//! writes clusters and outcomes to `crates/cluster/tests/vectors/differential`, where a test replays them. `show SEED` writes one cluster as files
//! for `karpenter plan` and for upstream.

mod catalogue;
mod constraints;
mod daemons;
mod features;
mod nodes;
mod pools;
mod random;
mod storage;
mod workloads;
mod world;

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench;
use crate::run::root;
use features::Feature;
use world::World;

/// How often upstream is asked: it leaves some choices to chance.
const REPEAT: &str = "25";

/// How often it is asked again where it did not always decide alike.
const REPEAT_DIVERSE: &str = "300";

/// Seeds in one file, so that files stay small enough to look at.
const SEEDS_PER_FILE: u64 = 100;

const VECTORS: &str = "crates/cluster/tests/vectors/differential";

const DEFAULT_SPREAD: &str = r#"{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"},{"maxSkew":2,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule"}]}}"#;

/// A cluster and how it is to be solved.
struct Case {
    features: String,
    options: Value,
    types: Value,
    cluster: Value,
}

fn case(seed: u64) -> Case {
    let mut world = World::new(seed);
    catalogue::generate(&mut world);
    pools::generate(&mut world);
    nodes::generate(&mut world);
    storage::generate(&mut world);
    workloads::generate(&mut world);
    daemons::generate(&mut world);
    let mut options = json!({});
    if world.has(Feature::IgnorePreferences) {
        options["preference-policy"] = json!("Ignore");
    }
    if world.has(Feature::BestEffortMinValues) {
        options["min-values-policy"] = json!("BestEffort");
    }
    if world.has(Feature::DefaultSpread) {
        options["scheduler-config"] = json!(DEFAULT_SPREAD);
    }
    Case {
        features: world.features.to_string(),
        options,
        types: world.types.iter().map(catalogue::Type::written).collect(),
        cluster: json!({"apiVersion": "v1", "kind": "List", "items": world.items}),
    }
}

/// Records the seeds of a range such as `0..300`.
pub(crate) fn record(seeds: &str) -> Result<()> {
    let seeds = range(seeds)?;
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    // A binary of our own cannot be replaced by another build while we use it.
    let upstream = bench::build_peer(folder.path())?;
    let mut first = seeds.start;
    while first < seeds.end {
        let end = seeds.end.min((first / SEEDS_PER_FILE + 1) * SEEDS_PER_FILE);
        let mut lines = String::new();
        for seed in first..end {
            let Case { features, options, types, cluster } = case(seed);
            write_json(&folder.path().join("cluster.json"), &cluster)?;
            write_json(&folder.path().join("types.json"), &types)?;
            let ask = |repeat| {
                outcomes(&upstream, folder.path(), &options, repeat).with_context(|| format!("seed {seed}"))
            };
            let mut outcomes = ask(REPEAT)?;
            if outcomes.len() > 1 {
                outcomes = ask(REPEAT_DIVERSE)?;
            }
            println!("seed {seed}: {} outcome(s)", outcomes.len());
            let line = json!({"seed": seed, "features": features, "options": options, "outcomes": outcomes,
                "types": types, "cluster": cluster});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        write_packed(&root().join(VECTORS).join(format!("{first:04}.jsonl.gz")), lines.as_bytes())?;
        first = end;
    }
    Ok(())
}

/// Writes the cluster of a seed and its instance types, readable, and says how upstream is asked.
pub(crate) fn show(seed: &str) -> Result<()> {
    let Case { features, options, types, cluster } = case(seed.parse().context("reading the seed")?);
    let folder = std::env::temp_dir().join(format!("differential-{seed}"));
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    write_json(&folder.join("cluster.json"), &cluster)?;
    write_json(&folder.join("types.json"), &types)?;
    println!("{features}\n{options}\n{}", folder.display());
    Ok(())
}

fn range(text: &str) -> Result<Range<u64>> {
    let (first, end) = text.split_once("..").context("seeds are given as FIRST..END")?;
    let range =
        first.parse().context("reading the first seed")?..end.parse().context("reading the last seed")?;
    if range.is_empty() {
        bail!("{text} contains no seed");
    }
    Ok(range)
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("printing JSON")?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Writes a file through `gzip`, without name and time, so that equal content makes equal files.
fn write_packed(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let file = fs::File::create(path).with_context(|| format!("making {}", path.display()))?;
    let mut gzip = Command::new("gzip")
        .args(["-9", "-n"])
        .stdin(Stdio::piped())
        .stdout(file)
        .spawn()
        .context("starting gzip")?;
    let mut input = gzip.stdin.take().expect("standard input was piped");
    input.write_all(content).context("writing to gzip")?;
    drop(input);
    if !gzip.wait().context("waiting for gzip")?.success() {
        bail!("gzip failed");
    }
    Ok(())
}

/// The different decisions of upstream, each with how often it was made.
fn outcomes(upstream: &Path, folder: &Path, options: &Value, repeat: &str) -> Result<Vec<Value>> {
    let mut command = Command::new(upstream);
    command.args(["-f", "cluster.json", "-instance-types", "types.json", "-repeat", repeat, "-timeout", "0"]);
    command.current_dir(folder);
    for (name, value) in options.as_object().into_iter().flatten() {
        command.arg(format!("-{name}")).arg(value.as_str().unwrap_or_default());
    }
    let output = command.output().context("starting upstream")?;
    if !output.status.success() {
        bail!("upstream failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout).context("reading what upstream prints")?;
    let mut distinct: Vec<(Value, usize)> = Vec::new();
    for line in text.lines() {
        let document: Value = serde_json::from_str(line).context("reading what upstream prints")?;
        let outcome = outcome(&document);
        if let Some((_, times)) = distinct.iter_mut().find(|(known, _)| *known == outcome) {
            *times += 1;
        } else {
            distinct.push((outcome, 1));
        }
    }
    distinct.sort_by_key(|(outcome, _)| outcome.to_string());
    let with_times = |(mut outcome, times): (Value, usize)| {
        outcome["times"] = json!(times);
        outcome
    };
    Ok(distinct.into_iter().map(with_times).collect())
}

/// What is compared of a decision.
fn outcome(document: &Value) -> Value {
    let errors: Vec<&String> =
        document["errors"].as_object().into_iter().flat_map(|errors| errors.keys()).collect();
    let price = document["totalPrice"].as_f64().unwrap_or_default();
    let existing: usize = document["existing"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, pods)| pods.as_array().map_or(0, Vec::len))
        .sum();
    json!({"errors": errors, "nodes": document["newNodeClaims"].as_array().map_or(0, Vec::len),
        "price": (price * 1e6).round() / 1e6, "existing": existing})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_cluster() {
        for seed in 0..20 {
            let (one, other) = (case(seed), case(seed));
            assert_eq!(one.cluster, other.cluster);
            assert_eq!(one.types, other.types);
        }
    }

    #[test]
    fn every_feature_occurs_and_no_cluster_is_without_pods() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let Case { features, cluster, .. } = case(seed);
            seen.extend(features.split(' ').map(str::to_owned).filter(|name| !name.is_empty()));
            let items = cluster["items"].as_array().map_or(&[][..], Vec::as_slice);
            assert!(items.iter().any(|item| item["kind"] == "Pod"), "seed {seed}");
        }
        assert_eq!(seen.len(), features::COUNT);
    }
}
