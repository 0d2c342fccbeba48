//! Random clusters that upstream has solved at least 25 times each, solved again here.
//!
//! Our outcome (the pods that stay pending, the number of new nodes, their price) is one of upstream's, or the seed is
//! in `exceptions.txt` with the number of the quirk that explains it. `vectors/differential/README.md` says how the
//! clusters were made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use api::provider::Provider;
use cluster::file;
use cluster::instance_types::kwok;
use cluster::scheduler_config::SchedulerConfig;
use cluster::snapshot;
use engine::intern::ResourceId;
use engine::model::Limit;
use engine::options::{MinValues, Options, Preferences, Reserved};
use engine::solve::{Place, Plan, PlannedClaim};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A cluster and what upstream made of it.
#[derive(Deserialize)]
struct Vector {
    seed: u64,
    features: String,
    options: SolveOptions,
    outcomes: Vec<Outcome>,
    types: Box<RawValue>,
    cluster: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SolveOptions {
    preference_policy: Option<String>,
    min_values_policy: Option<String>,
    scheduler_config: Option<String>,
}

/// What is compared of a decision.
#[derive(Deserialize)]
struct Outcome {
    /// Pods that stay pending.
    errors: BTreeSet<String>,
    /// New nodes.
    nodes: usize,
    /// Price of all new nodes per hour.
    price: f64,
    /// Pods that go to nodes that exist. It is shown and not compared.
    existing: usize,
}

impl Outcome {
    fn equals(&self, other: &Self) -> bool {
        self.errors == other.errors && self.nodes == other.nodes && self.costs(other).is_eq()
    }

    /// Compares prices as far as they were recorded.
    fn costs(&self, other: &Self) -> std::cmp::Ordering {
        let difference = self.price - other.price;
        if difference.abs() < 2e-6 { std::cmp::Ordering::Equal } else { difference.total_cmp(&0.0) }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errors, nodes, price, existing } = self;
        write!(f, "{nodes} new for {price:.6}, {existing} pods on existing nodes, pending {errors:?}")
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/differential")
}

fn vectors() -> Vec<Vector> {
    let entries = fs::read_dir(folder()).expect("the folder of the vectors can be listed");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    paths.sort();
    let mut vectors = Vec::new();
    for path in paths {
        let packed = File::open(&path).expect("a listed file can be opened");
        for line in BufReader::new(GzDecoder::new(packed)).lines() {
            let line = line.expect("a vector is text");
            vectors.push(serde_json::from_str(&line).expect("a line is a vector"));
        }
    }
    vectors
}

/// What we decide about a cluster.
fn decide(vector: &Vector) -> (snapshot::Built, Plan) {
    let types = kwok::parse("types", vector.types.get().as_bytes()).expect("the instance types are right");
    let contents = file::parse("cluster", vector.cluster.get().as_bytes()).expect("the cluster is JSON");
    assert!(contents.errors.is_empty(), "seed {}: {:?}", vector.seed, contents.errors);
    let mut options = snapshot::Options::new(Provider::Kwok, &types);
    if let Some(config) = &vector.options.scheduler_config {
        options.scheduler_config =
            SchedulerConfig::parse(config).expect("the scheduler's configuration is right");
    }
    let now = "2026-01-02T00:00:00Z".parse().expect("a point in time");
    let built = snapshot::build(&contents.objects, &options, now);
    let plan = engine::solve::solve(&built.snapshot, &solve_options(&vector.options));
    (built, plan)
}

/// Our outcome for a cluster.
fn solve(vector: &Vector) -> Outcome {
    let (built, plan) = decide(vector);
    let rejected =
        built.ignored.iter().filter(|ignored| ignored.kind == "Pod" && ignored.reason.is_rejection());
    let mut errors: BTreeSet<String> = rejected
        .map(|ignored| format!("{}/{}", ignored.namespace.as_deref().unwrap_or_default(), ignored.name))
        .collect();
    for (pod, failure) in built.snapshot.pods.iter().zip(&plan.failures) {
        if failure.is_some() {
            errors.insert(pod.name.to_string());
        }
    }
    Outcome {
        errors,
        nodes: plan.claims.len(),
        price: plan.claims.iter().map(|claim| claim.price).sum(),
        existing: plan.places.iter().filter(|place| matches!(place, Some(Place::Node(_)))).count(),
    }
}

fn solve_options(options: &SolveOptions) -> Options {
    Options {
        preferences: match options.preference_policy.as_deref() {
            None => Preferences::Respect,
            Some("Ignore") => Preferences::Ignore,
            Some(other) => panic!("unknown policy {other}"),
        },
        min_values: match options.min_values_policy.as_deref() {
            None => MinValues::Strict,
            Some("BestEffort") => MinValues::BestEffort,
            Some(other) => panic!("unknown policy {other}"),
        },
        reserved: Reserved::Strict,
    }
}

/// Why a seed may differ: the number of a row in `docs/differences.md`, by seed.
fn exceptions() -> BTreeMap<u64, String> {
    let text = include_str!("vectors/differential/exceptions.txt");
    let differences = include_str!("../../../docs/differences.md");
    let mut exceptions = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (Some(seed), Some(quirk), Some(_)) = (words.next(), words.next(), words.next()) else {
            panic!("expected a seed, a quirk and a sentence: {line}");
        };
        // A seed may differ by two of them.
        for quirk in quirk.split('Q').skip(1) {
            let mut numbers = differences.split(|c: char| !c.is_alphanumeric());
            let is_named = numbers.any(|number| number.strip_prefix('Q') == Some(quirk));
            assert!(is_named, "docs/differences.md does not name Q{quirk}");
        }
        let seed = seed.parse().expect("a line begins with a seed");
        assert!(exceptions.insert(seed, quirk.to_owned()).is_none(), "seed {seed} is there twice");
    }
    exceptions
}

/// Whether our outcome is no worse than one of upstream's in the sense of a quirk.
fn is_no_worse(quirk: &str, ours: &Outcome, theirs: &Outcome) -> bool {
    let same_pods = ours.errors == theirs.errors;
    let cheaper = same_pods && ours.costs(theirs).is_lt();
    match quirk {
        // A rule or a limit is kept that upstream breaks, so pods may have to wait.
        "Q13" | "Q17" => cheaper || (ours.errors.is_superset(&theirs.errors) && ours.nodes <= theirs.nodes),
        // More claims share a limit: no pod has to wait longer, and pools of greater weight, whatever they cost, take more.
        "Q32" => ours.errors.is_subset(&theirs.errors),
        // Some pods have to wait and others have not: nothing can be said but what it costs.
        "Q13Q32" => ours.price <= theirs.price,
        // Ties are broken by chance or by the order of creation; neither is cheaper as such.
        "Q27" => same_pods && ours.nodes == theirs.nodes && ours.price <= theirs.price * 1.05,
        _ => cheaper || (ours.errors.len() < theirs.errors.len() && ours.errors.is_subset(&theirs.errors)),
    }
}

#[test]
fn our_outcome_is_one_of_upstreams_or_explained() {
    let mut problems = Vec::new();
    let (vectors, mut exceptions) = (vectors(), exceptions());
    for vector in &vectors {
        let ours = solve(vector);
        let equal = vector.outcomes.iter().any(|theirs| theirs.equals(&ours));
        let problem = match exceptions.remove(&vector.seed) {
            None if equal => continue,
            None => "differs".to_owned(),
            Some(quirk) if equal => format!("no longer differs by {quirk}"),
            Some(quirk) if vector.outcomes.iter().any(|theirs| is_no_worse(&quirk, &ours, theirs)) => {
                continue;
            }
            Some(quirk) => format!("is worse, which {quirk} does not explain"),
        };
        let theirs: Vec<String> =
            vector.outcomes.iter().map(|outcome| format!("\n  upstream: {outcome}")).collect();
        let Vector { seed, features, .. } = vector;
        problems.push(format!("seed {seed} {problem} ({features})\n  ours:     {ours}{}", theirs.concat()));
    }
    assert!(exceptions.is_empty(), "exceptions for unknown seeds: {exceptions:?}");
    assert!(problems.is_empty(), "{} of {} seeds:\n{}", problems.len(), vectors.len(), problems.join("\n"));
}

#[test]
fn threads_that_decide_at_the_same_time_decide_the_same() {
    let vectors = vectors();
    for vector in vectors.iter().step_by(12) {
        let text = || {
            let (built, plan) = decide(vector);
            format!("{:?} {plan:?}", built.ignored)
        };
        let alone = text();
        let together = std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(text));
            threads.map(|thread| thread.join().expect("the thread decides"))
        });
        let seed = vector.seed;
        assert!(together.iter().all(|text| *text == alone), "seed {seed} depends on threads");
    }
}

#[test]
fn limits_hold_whatever_the_cloud_chooses() {
    let mut limited = 0;
    for vector in vectors() {
        let (built, plan) = decide(&vector);
        for (number, pool) in built.snapshot.pools.iter().enumerate() {
            let Some(catalogue) = pool.catalogue else { continue };
            let types = &built.snapshot.catalogues[catalogue.index()].types;
            let claims = plan.claims.iter().filter(|claim| claim.pool.index() == number);
            for Limit { resource, remaining, .. } in &pool.limits {
                let most = |claim: &PlannedClaim| {
                    let amounts = claim.types.iter().map(|type_| types[*type_].capacity.get(*resource));
                    if *resource == ResourceId::NODES {
                        1000
                    } else {
                        amounts.max().expect("a claim has types")
                    }
                };
                let most: i64 = claims.clone().map(most).sum();
                let (seed, name) = (vector.seed, built.snapshot.resources.name(*resource));
                assert!(
                    most <= (*remaining).max(0),
                    "seed {seed}, {}: {most} of {remaining} {name}",
                    pool.name
                );
                limited += usize::from(most > 0);
            }
        }
    }
    assert!(limited > 80, "only {limited} limits of pools with new nodes were looked at");
}
