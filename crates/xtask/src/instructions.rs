//! `cargo xtask instructions`: counts what the solver executes, which a busy machine does not disturb.
//!
//! The counts are kept in `bench/instructions.txt`. A change that needs more than a tenth more fails; one that
//! needs much less should be recorded with `--update`, so that the gain is not lost again.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{cargo, cargo_output, require, root};

/// What is counted: a name, and the arguments of the example `diverse`.
const CASES: &[(&str, &[&str])] =
    &[("solve 1000 diverse pods", &["1000"]), ("solve 1000 pods with preferences", &["1000", "preferences"])];

/// How much more a change may need, in percent. Compilers differ by a few.
const TOLERANCE: u64 = 10;

/// Fails if a count grew.
pub(crate) fn check() -> Result<()> {
    let recorded = fs::read_to_string(file()).context("reading bench/instructions.txt")?;
    for (name, count) in counts()? {
        let line = recorded.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let before: u64 = line.and_then(|count| count.parse().ok()).with_context(|| {
            format!("bench/instructions.txt has no count for {name:?}: run with --update")
        })?;
        println!("{name}: {count} instructions, {before} recorded");
        if count > before + before / 100 * TOLERANCE {
            bail!("{name} needs {count} instructions, more than {TOLERANCE} % above the recorded {before}");
        }
    }
    Ok(())
}

/// Records the counts as they are.
pub(crate) fn update() -> Result<()> {
    let mut text = String::new();
    for (name, count) in counts()? {
        writeln!(text, "{name}: {count}").context("writing to a string")?;
    }
    print!("{text}");
    fs::write(file(), text).context("writing bench/instructions.txt")
}

fn file() -> PathBuf {
    root().join("bench/instructions.txt")
}

fn counts() -> Result<Vec<(&'static str, u64)>> {
    require("valgrind", "--version", "install it, for example with `apt-get install valgrind`")?;
    cargo(&["build", "--quiet", "--release", "--package", "karpenter-engine", "--example", "diverse"])?;
    let metadata: Value =
        serde_json::from_str(&cargo_output(&["metadata", "--no-deps", "--format-version", "1"])?)
            .context("reading cargo's metadata")?;
    let target = metadata["target_directory"].as_str().context("cargo names its target directory")?;
    let example = Path::new(target).join("release/examples/diverse");
    CASES.iter().map(|(name, arguments)| Ok((*name, count(&example, arguments)?))).collect()
}

fn count(program: &Path, arguments: &[&str]) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .output()
        .context("starting valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let total = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    total
        .and_then(|total| total.trim().parse().ok())
        .with_context(|| format!("valgrind printed no count:\n{text}"))
}
