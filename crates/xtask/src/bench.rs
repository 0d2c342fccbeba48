//! `cargo xtask bench`: times `karpenter plan` on large clusters; with `--peer` side by side with upstream.
//!
//! Upstream's time is that of its `Solve` alone. Ours is everything after the objects are read: building the
//! snapshot and solving. Both run one after the other in the same minutes on the same machine, and the ratio is
//! what counts. The wall time of whole processes, reading included, is taken from outside to confirm it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench_data;
use crate::run::{cargo, cargo_output, require, root};

/// One cluster to plan for.
struct Case {
    name: &'static str,
    cluster: Input,
    catalogue: Option<&'static str>,
    /// Whether upstream is asked too; some cases would take it hours.
    peer: bool,
}

enum Input {
    /// A file of the repository.
    File(&'static str),
    /// What the Go generator writes.
    Generated(&'static [&'static str]),
    /// What we write ourselves.
    Made(fn(&Path) -> Result<()>),
}

const AWS: &str = "bench/data/aws-us-east-1.json.gz";

const CASES: &[Case] = &[
    Case {
        name: "1,000 diverse pods, 144 types",
        cluster: Input::Generated(&["-diverse", "1000"]),
        catalogue: None,
        peer: true,
    },
    Case {
        name: "5,000 diverse pods, 144 types",
        cluster: Input::Generated(&["-diverse", "5000"]),
        catalogue: None,
        peer: true,
    },
    Case {
        name: "20,000 diverse pods, 144 types",
        cluster: Input::Generated(&["-diverse", "20000"]),
        catalogue: None,
        peer: true,
    },
    Case {
        name: "openb, 8,152 pods, 1,340 AWS types",
        cluster: Input::File("bench/data/openb-burst.json.gz"),
        catalogue: Some(AWS),
        peer: true,
    },
    Case {
        name: "4,000 pods with preferences, 144 types",
        cluster: Input::Generated(&["-preferences", "4000"]),
        catalogue: None,
        peer: true,
    },
    Case {
        name: "2,170 pods of which 2,000 fit nowhere, 1,060 nodes, 20 pools, 800 types",
        cluster: Input::Made(bench_data::infeasible),
        catalogue: Some(AWS),
        peer: false,
    },
    Case {
        name: "50,000 pods of 1,000 shapes on 5,000 nodes",
        cluster: Input::Made(bench_data::crowded),
        catalogue: None,
        peer: false,
    },
];

/// What one program made of a case.
struct Outcome {
    pods: u64,
    failed: usize,
    nodes: usize,
    price: f64,
    decide_ms: f64,
    wall_ms: f64,
    peak_mb: Option<u64>,
}

pub(crate) fn run(peer: bool) -> Result<()> {
    let cache = cache()?;
    let ours = build_ours()?;
    let upstream = if peer { Some(build_peer(&cache)?) } else { None };
    let mut rows = Vec::new();
    for case in CASES {
        let cluster = input(case, &cache)?;
        println!("{}", case.name);
        let mine = measure(&ours, &plan_arguments(&cluster, case), "snapshotMs")?;
        print_outcome("ours", &mine);
        let theirs = match &upstream {
            Some(upstream) if case.peer => Some(measure(upstream, &peer_arguments(&cluster, case), "")?),
            _ => None,
        };
        if let Some(theirs) = &theirs {
            print_outcome("upstream", theirs);
        }
        rows.push(row(case.name, &mine, theirs.as_ref()));
    }
    let table = format!(
        "| work | upstream | ours | ratio | whole process, upstream / ours | nodes, upstream / ours | price per hour, upstream / ours | memory, ours |\n|---|---|---|---|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    println!("\n{table}");
    if peer { write_table(&table) } else { Ok(()) }
}

fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let directory = base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("karpenter/bench");
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    Ok(directory)
}

fn build_ours() -> Result<PathBuf> {
    cargo(&["build", "--quiet", "--release", "--package", "karpenter"])?;
    let metadata = cargo_output(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading cargo's metadata")?;
    let target = metadata["target_directory"].as_str().context("cargo names its target directory")?;
    Ok(Path::new(target).join("release/karpenter"))
}

pub(crate) fn build_peer(cache: &Path) -> Result<PathBuf> {
    require("go", "version", "install Go 1.26 or newer, for example from go.dev")?;
    println!("building upstream, about 5 minutes the first time");
    for (package, binary) in [(".", "upstream"), ("./cmd/generate", "generate")] {
        go(&["build", "-o", path_text(&cache.join(binary))?, package])?;
    }
    Ok(cache.join("upstream"))
}

fn go(arguments: &[&str]) -> Result<()> {
    let status = Command::new("go")
        .args(arguments)
        .env("GOTOOLCHAIN", "go1.26.9")
        .current_dir(root().join("bench/upstream"))
        .status()
        .context("starting go")?;
    if !status.success() {
        bail!("go {} failed", arguments.join(" "));
    }
    Ok(())
}

fn input(case: &Case, cache: &Path) -> Result<PathBuf> {
    let name: String = case.name.chars().filter(char::is_ascii_alphanumeric).collect();
    let path = match &case.cluster {
        Input::File(file) => return Ok(root().join(file)),
        Input::Generated(_) | Input::Made(_) => cache.join(format!("{name}.json")),
    };
    if path.exists() {
        return Ok(path);
    }
    match &case.cluster {
        Input::Made(make) => make(&path)?,
        Input::Generated(arguments) => {
            let mut all = vec!["run", "./cmd/generate", "-o", path_text(&path)?];
            all.extend(*arguments);
            go(&all)?;
        }
        Input::File(_) => {}
    }
    Ok(path)
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is not valid UTF-8")
}

fn plan_arguments(cluster: &Path, case: &Case) -> Vec<String> {
    let mut arguments = vec!["plan".to_owned(), "-o".to_owned(), "json".to_owned()];
    arguments.extend(["-f".to_owned(), cluster.display().to_string()]);
    if let Some(catalogue) = case.catalogue {
        arguments.extend(["--instance-types".to_owned(), root().join(catalogue).display().to_string()]);
    }
    arguments
}

fn peer_arguments(cluster: &Path, case: &Case) -> Vec<String> {
    let mut arguments = vec!["-timeout".to_owned(), "0".to_owned()];
    arguments.extend(["-f".to_owned(), cluster.display().to_string()]);
    if let Some(catalogue) = case.catalogue {
        arguments.extend(["-instance-types".to_owned(), root().join(catalogue).display().to_string()]);
    }
    arguments
}

/// Runs a program once and reads what it printed. `before_solve` names a timing that counts as deciding.
#[expect(clippy::disallowed_methods, reason = "a stopwatch outside the program that is measured")]
fn measure(program: &Path, arguments: &[String], before_solve: &str) -> Result<Outcome> {
    let start = Instant::now();
    let timed = Path::new("/usr/bin/time").exists();
    let mut command = if timed { Command::new("/usr/bin/time") } else { Command::new(program) };
    if timed {
        command.arg("-v").arg(program);
    }
    let output =
        command.args(arguments).output().with_context(|| format!("running {}", program.display()))?;
    let wall_ms = start.elapsed().as_secs_f64() * 1000.0;
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Two is not a fault: some pods fit nowhere.
    if !matches!(output.status.code(), Some(0 | 2)) {
        bail!("{} failed: {stderr}", program.display());
    }
    let peak =
        stderr.lines().find_map(|line| line.trim().strip_prefix("Maximum resident set size (kbytes): "));
    let json: Value = serde_json::from_slice(&output.stdout).context("reading the plan")?;
    let timing = |name: &str| json["timings"][name].as_f64().unwrap_or(0.0);
    Ok(Outcome {
        pods: json["pods"].as_u64().unwrap_or(0),
        failed: json["errors"].as_object().map_or(0, serde_json::Map::len),
        nodes: json["newNodeClaims"].as_array().map_or(0, Vec::len),
        price: json["totalPrice"].as_f64().unwrap_or(0.0),
        decide_ms: timing("solveMs") + timing(before_solve),
        wall_ms,
        peak_mb: peak.and_then(|kilobytes| kilobytes.parse::<u64>().ok()).map(|kilobytes| kilobytes / 1024),
    })
}

fn print_outcome(who: &str, outcome: &Outcome) {
    println!(
        "  {who}: {} pods, {} failed, {} nodes, {:.2} per hour, {:.1} ms deciding, {:.1} ms in all",
        outcome.pods, outcome.failed, outcome.nodes, outcome.price, outcome.decide_ms, outcome.wall_ms
    );
}

fn row(name: &str, ours: &Outcome, upstream: Option<&Outcome>) -> String {
    let memory = ours.peak_mb.map_or_else(|| "–".to_owned(), |mb| format!("{mb} MB"));
    match upstream {
        Some(theirs) => format!(
            "| {name} | {:.0} ms | {:.1} ms | **{:.0}×** | {:.0} / {:.0} ms = {:.0}× | {} / {} | {:.2} / {:.2} | {memory} |",
            theirs.decide_ms,
            ours.decide_ms,
            theirs.decide_ms / ours.decide_ms,
            theirs.wall_ms,
            ours.wall_ms,
            theirs.wall_ms / ours.wall_ms,
            theirs.nodes,
            ours.nodes,
            theirs.price,
            ours.price,
        ),
        None => format!(
            "| {name} | – | {:.1} ms | – | – / {:.0} ms | – / {} | – / {:.2} | {memory} |",
            ours.decide_ms, ours.wall_ms, ours.nodes, ours.price
        ),
    }
}

/// Puts the table between its marks in docs/benchmarks.md.
fn write_table(table: &str) -> Result<()> {
    const BEGIN: &str = "<!-- bench: begin -->\n";
    const END: &str = "<!-- bench: end -->";
    let path = root().join("docs/benchmarks.md");
    let text = fs::read_to_string(&path).context("reading docs/benchmarks.md")?;
    let (Some(begin), Some(end)) = (text.find(BEGIN), text.find(END)) else {
        bail!("docs/benchmarks.md has no marks for the table");
    };
    let text = format!("{}{table}{}", &text[..begin + BEGIN.len()], &text[end..]);
    fs::write(&path, text).context("writing docs/benchmarks.md")
}
