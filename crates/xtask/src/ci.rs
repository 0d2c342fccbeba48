//! `cargo xtask ci`: every check there is, cheapest first.

use anyhow::{Result, bail};

use crate::run::{cargo, cargo_watched, require};
use crate::{cloudformation, crds, instructions, layers, tidy};

/// All tests on a real control plane; by these variables they know that there is time for more.
pub(crate) const E2E: [&str; 6] =
    ["--package", "karpenter-e2e", "--config", "env.E2E='long'", "--config", "env.SCENARIOS='all'"];

/// Everything, with our program built on the way: tests that run it need not build it again.
pub(crate) const WORKSPACE: [&str; 3] = ["--workspace", "--config", "env.E2E_KARPENTER='built'"];

pub(crate) fn all() -> Result<()> {
    require_tools()?;
    cargo(&["fmt", "--all", "--check"])?;
    tidy::check()?;
    layers::check()?;
    cloudformation::check()?;
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--quiet",
        "--",
        "--deny",
        "warnings",
    ])?;
    each_crate_alone()?;
    crds::check()?;
    instructions::check()?;
    test(&WORKSPACE)
}

/// A crate must not live on features that another one happens to switch on.
fn each_crate_alone() -> Result<()> {
    for package in layers::crates() {
        cargo(&["check", "--quiet", "--package", package, "--all-targets"])?;
    }
    Ok(())
}

/// Runs tests and closes with their total, which cargo only gives per test binary.
pub(crate) fn test(packages: &[&str]) -> Result<()> {
    require_tools()?;
    tools(&[])?;
    let mut total = Total::default();
    let arguments = [&["test"], packages, &["--all-features", "--no-fail-fast"]].concat();
    let result = cargo_watched(&arguments, |line| total.add(line));
    println!("\ntotal: {} passed, {} failed", total.passed, total.failed);
    result?;
    if total.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// Builds the Go programs that tests run, so that nobody waits for a silent test.
pub(crate) fn tools(config: &[&str]) -> Result<()> {
    cargo(&[config, &["run", "--quiet", "--package", "karpenter-e2e", "--bin", "build-tools"]].concat())
}

fn require_tools() -> Result<()> {
    require("go", "version", "install Go 1.26 or newer from go.dev or your package manager")?;
    let python = "install Python 3 with venv, for example with `apt-get install python3-venv`";
    require("python3", "--version", python)?;
    require("npm", "--version", "install Node.js 20 or newer with npm, for Azure's validator")?;
    require("cc", "--version", "install a C compiler, for example with `apt-get install build-essential`")
}

#[derive(Default)]
struct Total {
    passed: u32,
    failed: u32,
}

impl Total {
    /// Adds up lines such as `test result: ok. 16 passed; 0 failed; 0 ignored; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let count = |what: &str| {
            let words: Vec<&str> = result.split_whitespace().collect();
            words
                .windows(2)
                .find(|pair| pair[1].trim_end_matches(';') == what)
                .and_then(|p| p[0].parse().ok())
        };
        self.passed += count("passed").unwrap_or(0);
        self.failed += count("failed").unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_add_up() {
        let mut total = Total::default();
        for line in [
            "running 3 tests",
            "test result: ok. 16 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 22 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s",
        ] {
            total.add(line);
        }
        assert_eq!((total.passed, total.failed), (38, 3));
    }
}
