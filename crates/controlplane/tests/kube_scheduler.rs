//! The embedded scheduler against the real kube-scheduler, on random clusters.
//!
//! What kube-scheduler said about many clusters is kept in `kube_scheduler/recorded.json.gz` and replayed; a few
//! clusters are run live.
//! `KARPENTER_SCHEDULER_CLUSTERS=200 cargo test -p karpenter-controlplane --test kube_scheduler` records anew, and
//! with `KARPENTER_SCHEDULER_FIRST=91` beside it runs clusters from that one on without recording.

#[path = "kube_scheduler/generate.rs"]
mod generate;
#[path = "kube_scheduler/live.rs"]
mod live;
#[path = "kube_scheduler/replay.rs"]
mod replay;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::live::Live;
use crate::replay::{Recording, Verdict, replay};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kube_scheduler/recorded.json.gz");
const CLUSTERS_VARIABLE: &str = "KARPENTER_SCHEDULER_CLUSTERS";
const FIRST_VARIABLE: &str = "KARPENTER_SCHEDULER_FIRST";
/// Enough for a live sample; the recording has the breadth.
const LIVE_CLUSTERS: u64 = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Random identifiers do not compress, so they are numbered.
fn with_short_uids(text: &str) -> String {
    let mut numbers = BTreeMap::new();
    let mut parts = text.split('"').map(|part| {
        let is_uid = part.len() == 36 && part.bytes().filter(|byte| *byte == b'-').count() == 4;
        let next = numbers.len();
        if is_uid { format!("u{}", numbers.entry(part).or_insert(next)) } else { part.to_owned() }
    });
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |text, part| text + "\"" + &part)
}

fn record(recordings: &[Recording]) {
    let file = std::fs::File::create(RECORDED).expect("the file can be written");
    let mut file = GzEncoder::new(file, Compression::best());
    let text = serde_json::to_string(recordings).expect("JSON");
    file.write_all(with_short_uids(&text).as_bytes()).expect("it is written");
    file.finish().expect("it is written");
}

#[tokio::test]
async fn the_real_scheduler_agrees_on_random_clusters() {
    let asked = number(CLUSTERS_VARIABLE);
    let first = number(FIRST_VARIABLE).unwrap_or(0);
    let live = Live::start().await;
    let (mut recordings, mut disagreements) = (vec![], vec![]);
    for seed in first..first + asked.unwrap_or(LIVE_CLUSTERS) {
        let (mut recording, mut different) = live.run(seed, Duration::from_millis(30)).await;
        if !different.is_empty() {
            // Its informers may have been behind; with time to catch up only true differences remain.
            (recording, different) = live.run(seed, Duration::from_secs(1)).await;
        }
        println!("cluster {seed}: {} pods, {} differ", recording.steps.len(), different.len());
        for one in &different {
            println!("{one}");
        }
        disagreements.append(&mut different);
        recordings.push(recording);
        // Some clusters out of the middle are for looking into a difference.
        if asked.is_some() && first == 0 {
            record(&recordings);
        }
    }
    assert!(
        disagreements.is_empty(),
        "{} disagreements:\n{}",
        disagreements.len(),
        disagreements.join("\n\n")
    );
}

#[test]
fn everything_the_real_scheduler_was_seen_to_do_is_done_here() {
    let mut text = String::new();
    let file = std::fs::File::open(RECORDED).expect("the recording is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("it is compressed text");
    let recordings: Vec<Recording> = serde_json::from_str(&text).expect("recordings");
    let steps = || recordings.iter().flat_map(|recording| &recording.steps);
    let disagreements: Vec<String> = recordings.iter().flat_map(replay).collect();
    assert!(
        disagreements.is_empty(),
        "{} disagreements:\n{}",
        disagreements.len(),
        disagreements.join("\n\n")
    );

    // A recording in which little happens would prove little.
    let bound = steps().filter(|step| matches!(step.verdict, Verdict::Bound(_))).count();
    let preempting = steps()
        .filter(|step| matches!(&step.verdict, Verdict::Refused { victims, .. } if !victims.is_empty()))
        .count();
    println!(
        "{} clusters, {} pods, {bound} bound, {preempting} preempting",
        recordings.len(),
        steps().count()
    );
    assert!(recordings.len() >= 100 && bound >= 500 && preempting >= 50);
}
