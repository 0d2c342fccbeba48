//! Running other programs from the root of the repository.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("xtask lives in crates/xtask").to_owned()
}

/// Runs cargo and fails if it does.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    println!("+ cargo {}", arguments.join(" "));
    let status = command(arguments).status().context("starting cargo")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}

/// Runs cargo, passing on every line it prints and handing it to `look`.
pub(crate) fn cargo_watched(arguments: &[&str], mut look: impl FnMut(&str)) -> Result<()> {
    println!("+ cargo {}", arguments.join(" "));
    let mut child = command(arguments).stdout(Stdio::piped()).spawn().context("starting cargo")?;
    let stdout = child.stdout.take().expect("standard output was piped");
    for line in BufReader::new(stdout).lines() {
        let line = line.context("reading what cargo prints")?;
        println!("{line}");
        look(&line);
    }
    if !child.wait().context("waiting for cargo")?.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}

/// What cargo prints.
pub(crate) fn cargo_output(arguments: &[&str]) -> Result<String> {
    let output = command(arguments).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("cargo {} failed:\n{}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("reading what cargo prints")
}

fn command(arguments: &[&str]) -> Command {
    // Cargo tells its children which cargo they belong to.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Fails with one sentence if a program is not installed.
pub(crate) fn require(program: &str, argument: &str, advice: &str) -> Result<()> {
    match Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("`{program}` is not installed: {advice}"),
    }
}
