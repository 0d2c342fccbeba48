//! Records what real clients send to the embedded API server, for the conformance tests.
//!
//! `cargo run -p karpenter-e2e --example record -- kubectl` writes
//! `tests/conformance/recordings/kubectl.jsonl.gz`; the other clients are `kube-rs`, `kube-scheduler`, and with the
//! path of their program `kwok=PATH` and `kwok-controller=PATH`.

#[path = "record/kube_rs.rs"]
mod kube_rs;
#[path = "record/kubectl.rs"]
mod kubectl;
#[path = "record/programs.rs"]
mod programs;
#[path = "record/recorder.rs"]
mod recorder;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::recorder::{Recorder, Stage};

fn main() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    for client in std::env::args().skip(1) {
        let (name, program) = client.split_once('=').unwrap_or((&client, ""));
        runtime.block_on(record(name, program))?;
    }
    Ok(())
}

async fn record(client: &str, program: &str) -> Result<()> {
    let stage = Stage::new(client).await?;
    match client {
        "kubectl" => kubectl::record(&stage).await?,
        "kube-rs" => kube_rs::record(&stage).await?,
        "kube-scheduler" => programs::scheduler(&stage).await?,
        "kwok" => programs::kwok(&stage, program).await?,
        "kwok-controller" => programs::kwok_controller(&stage, program).await?,
        other => bail!("{other} is no client that can be recorded"),
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/recordings");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{client}.jsonl.gz"));
    write(&file, &stage.recorder)
}

fn write(file: &Path, recorder: &Recorder) -> Result<()> {
    let sequences = recorder.sequences();
    let mut encoder = GzEncoder::new(std::fs::File::create(file)?, Compression::best());
    for sequence in &sequences {
        writeln!(encoder, "{sequence}")?;
    }
    encoder.finish()?;
    let requests: usize =
        sequences.iter().map(|one: &Value| one["steps"].as_array().map_or(0, Vec::len)).sum();
    let mut out = std::io::stdout();
    writeln!(out, "{}: {} sequences, {requests} requests", file.display(), sequences.len())
        .context("the terminal is gone")
}
