//! Conformance of the embedded API server: the same requests to it and to a real one get the same answers.
//!
//! `conformance/sequences` holds written sequences, `conformance/generated.rs` makes one of each kind for every
//! resource, and `conformance/recordings` is what real clients sent.
//! `conformance/allowed.yaml` lists the known differences; an entry that is not needed fails the test.
//!
//! `CONFORMANCE_ONLY=text` runs the sequences whose name contains the text, `CONFORMANCE_WRITE=1` writes the
//! coverage anew, and `CONFORMANCE_KUBECONFIG` uses a cluster that runs already.

#[path = "conformance/allowed.rs"]
mod allowed;
#[path = "conformance/coverage.rs"]
mod coverage;
#[path = "conformance/generated.rs"]
mod generated;
#[path = "conformance/normalise.rs"]
mod normalise;
#[path = "conformance/replay.rs"]
mod replay;
#[path = "conformance/run.rs"]
mod run;
#[path = "conformance/sequence.rs"]
mod sequence;
#[path = "conformance/target.rs"]
mod target;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::allowed::Allowed;
use crate::coverage::Coverage;
use crate::normalise::differences;
use crate::sequence::Sequence;
use crate::target::Target;

/// Enough to keep both servers busy while others wait for a watch.
const CONCURRENT: usize = 24;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

fn sequences() -> Result<Vec<Sequence>> {
    let mut all = written()?;
    all.extend(generated::sequences(&folder())?);
    all.extend(replay::recordings(&folder().join("recordings"))?);
    if let Ok(only) = std::env::var("CONFORMANCE_ONLY") {
        all.retain(|sequence| sequence.name.contains(&only));
    }
    Ok(all)
}

fn written() -> Result<Vec<Sequence>> {
    let entries = std::fs::read_dir(folder().join("sequences"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut sequences = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let read: Vec<Sequence> =
            serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
        let source = "written".to_owned();
        sequences.extend(read.into_iter().map(|sequence| Sequence { source: source.clone(), ..sequence }));
    }
    Ok(sequences)
}

/// Where the servers differ in one sequence.
struct Outcome {
    sequence: Sequence,
    codes: Vec<u16>,
    /// Step, path, and both values.
    differences: Vec<(usize, String, String)>,
}

async fn compare(real: Target, embedded: Target, sequence: Sequence, id: String) -> Result<Outcome> {
    let both = tokio::join!(run::run(&real, &sequence, &id), run::run(&embedded, &sequence, &id));
    let (real, codes) = match (both.0, both.1) {
        (Ok(real), Ok(embedded)) => ((real.0, embedded.0), real.1),
        (Err(error), _) => return Ok(failed(sequence, format!("the real server: {error:#}"))),
        (_, Err(error)) => return Ok(failed(sequence, format!("the embedded server: {error:#}"))),
    };
    let (real, embedded) = real;
    let mut all = Vec::new();
    for (step, (real, embedded)) in real.iter().zip(&embedded).enumerate() {
        let mut found = Vec::new();
        if real["code"] == embedded["code"] {
            differences(real, embedded, "", &mut found);
        } else {
            // The bodies have nothing in common then.
            found.push(("code".to_owned(), format!("{} / {}", verdict(real), verdict(embedded))));
        }
        all.extend(found.into_iter().map(|(path, values)| (step, path, values)));
    }
    Ok(Outcome { sequence, codes, differences: all })
}

fn verdict(answer: &Value) -> String {
    format!("{} {}", answer["code"], answer["body"]["message"].as_str().unwrap_or_default())
}

fn failed(sequence: Sequence, why: String) -> Outcome {
    Outcome { sequence, codes: Vec::new(), differences: vec![(0, "no answer".to_owned(), why)] }
}

/// Custom resources that all sequences may use.
async fn define(target: &Target) -> Result<()> {
    let mut definitions: Vec<Value> =
        api::crds::documents(api::provider::Provider::Kwok).into_iter().map(|crd| crd.document).collect();
    let text = std::fs::read_to_string(folder().join("definitions.yaml"))?;
    definitions.extend(serde_saphyr::from_str::<Vec<Value>>(&text)?);
    for definition in definitions {
        run::define(target, &definition).await?;
    }
    Ok(())
}

async fn outcomes() -> Result<Vec<Outcome>> {
    let server = embedded::Server::new(clock::Clock::system(), &embedded::Options::default());
    let embedded = Target::embedded(&server);
    let (plane, real) = Target::real().await?;
    define(&real).await?;
    define(&embedded).await?;
    let run = std::process::id();
    let slots = Arc::new(Semaphore::new(CONCURRENT));
    let mut running = JoinSet::new();
    for (number, sequence) in sequences()?.into_iter().enumerate() {
        let (real, embedded, slots) = (real.clone(), embedded.clone(), slots.clone());
        let id = format!("c{run}-{number}");
        running.spawn(async move {
            let _slot = slots.acquire_owned().await?;
            let again = (real.clone(), embedded.clone(), sequence.clone(), format!("{id}-again"));
            let outcome = compare(real, embedded, sequence, id).await?;
            if outcome.differences.is_empty() {
                return Ok::<_, anyhow::Error>(outcome);
            }
            // The real server's own controllers race with its answers: a difference counts when it stays.
            let first = outcome.differences;
            let mut outcome = compare(again.0, again.1, again.2, again.3).await?;
            outcome
                .differences
                .retain(|(step, path, _)| first.iter().any(|(s, p, _)| (s, p) == (step, path)));
            Ok(outcome)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome??);
    }
    drop(plane);
    outcomes.sort_by(|left, right| left.sequence.name.cmp(&right.sequence.name));
    Ok(outcomes)
}

fn report(outcomes: &[Outcome], allowed: &mut Allowed) -> String {
    let mut report = String::new();
    for outcome in outcomes {
        for (step, path, values) in &outcome.differences {
            if !allowed.allows(&outcome.sequence.name, *step, path, values) {
                let what = &outcome.sequence.steps[*step].what;
                let _ = writeln!(report, "{} #{step} {what}\n    {path}: {values}", outcome.sequence.name);
            }
        }
    }
    report
}

#[test]
fn both_servers_answer_alike() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let outcomes = runtime.block_on(outcomes())?;
    let mut allowed = Allowed::read(&folder().join("allowed.yaml"))?;
    let report = report(&outcomes, &mut allowed);
    let mut coverage = Coverage::default();
    let mut sources: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for outcome in &outcomes {
        coverage.add(&outcome.sequence, &outcome.codes);
        let source = sources.entry(&outcome.sequence.source).or_default();
        source.0 += 1;
        source.1 += outcome.sequence.steps.len();
    }
    for (source, (sequences, requests)) in &sources {
        println!("{source}: {sequences} sequences, {requests} requests");
    }
    println!("{}", coverage.summary());
    if let Some(file) = std::env::var_os("CONFORMANCE_REPORT") {
        std::fs::write(file, &report)?;
    }
    ensure!(report.is_empty(), "{} lines of differences:\n{report}", report.lines().count() / 2);
    if std::env::var_os("CONFORMANCE_ONLY").is_none() {
        let unneeded = allowed.unneeded();
        ensure!(unneeded.is_empty(), "these differences are gone:\n{}", unneeded.join("\n"));
        coverage.check(&folder().join("coverage.txt"))?;
    }
    Ok(())
}
