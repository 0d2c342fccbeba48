//! Our own program, as tests run it.
//!
//! `E2E_KARPENTER=built` says that it was built together with the tests, as `cargo xtask ci` and `cargo xtask test` do
//! with the whole workspace. Otherwise it is built here.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, ensure};

/// Our own program, built like this one.
pub(crate) fn ours() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

fn build() -> Result<PathBuf> {
    // This program is in the folder `deps` beside it.
    let this = std::env::current_exe()?;
    let folder = this.ancestors().nth(2).context("finding the folder of programs")?;
    let program = folder.join("karpenter");
    if std::env::var("E2E_KARPENTER").is_ok_and(|value| value == "built") && program.exists() {
        return Ok(program);
    }
    let target = folder.parent().context("finding the folder of builds")?;
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "karpenter", "--bin", "karpenter", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .context("running cargo")?;
    ensure!(built.status.success(), "cargo build failed:\n{}", String::from_utf8_lossy(&built.stderr));
    Ok(program)
}
