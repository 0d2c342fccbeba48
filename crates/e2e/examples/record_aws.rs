//! Records what the original controller for AWS asks of AWS, for the tests of `providers/aws`.
//!
//! `cargo run -p karpenter-e2e --example record_aws` writes `crates/providers/aws/tests/data/golden/*.json`.
//! With `-- ours PROGRAM FOLDER` it records our own program instead and writes to another folder, so that what is really
//! sent can be laid side by side.
//! The original listens on all interfaces, so everything runs in a network of its own: this needs `unshare`, `ip` and
//! the right to use them.

#[path = "record_aws/normal.rs"]
mod normal;
#[path = "record_aws/play.rs"]
mod play;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use e2e::tools::{self, Tool};
use serde_json::Value;

/// Set for the process that has a network of its own.
const INSIDE: &str = "RECORD_AWS_INSIDE";

fn main() -> Result<()> {
    if std::env::var_os(INSIDE).is_none() {
        // What is missing is fetched while there is a network.
        for tool in [Tool::Etcd, Tool::KubeApiserver, Tool::KubeScheduler, Tool::Kubectl, Tool::UpstreamAws] {
            tools::path(tool)?;
        }
        tools::moto()?;
        let script = "ip link set lo up && exec \"$@\"";
        let this = std::env::current_exe()?;
        let error = Command::new("unshare")
            .args(["--net", "--map-root-user", "--", "sh", "-c", script, "sh"])
            .arg(this)
            .args(std::env::args_os().skip(1))
            .env(INSIDE, "1")
            .exec();
        return Err(error).context("cannot run unshare");
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (ours, folder) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (None, folder()),
        ["ours", program, folder] => (Some(Path::new(program)), PathBuf::from(folder)),
        _ => bail!("expected nothing, or: ours PROGRAM FOLDER"),
    };
    let played = play::play(&self::folder(), ours)?;
    let golden = normal::golden(&played)?;
    for (name, value) in
        [("world", &golden.world), ("launches", &golden.launches), ("requests", &golden.requests)]
    {
        write(&folder.join(format!("{name}.json")), value)?;
    }
    Ok(())
}

/// Where the manifests are and the recordings go.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/aws/tests/data/golden")
}

fn write(file: &Path, value: &Value) -> Result<()> {
    std::fs::write(file, format!("{value:#}\n"))
        .with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(std::io::stdout(), "{}", file.display()).context("the terminal is gone")
}
