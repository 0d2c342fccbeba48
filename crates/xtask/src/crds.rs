//! `cargo xtask crds`: keeps the CRDs in the chart equal to the Rust types.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root};

const PROVIDERS: [&str; 3] = ["kwok", "aws", "azure"];

/// Writes the CRDs of every provider into the chart.
pub(crate) fn write() -> Result<()> {
    for provider in PROVIDERS {
        let directory = committed(provider);
        if directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| format!("clearing {}", directory.display()))?;
        }
        generate(provider, &directory)?;
    }
    Ok(())
}

/// Fails if the CRDs in the chart are not what the types say.
pub(crate) fn check() -> Result<()> {
    for provider in PROVIDERS {
        let fresh = tempfile::tempdir().context("creating a temporary directory")?;
        generate(provider, fresh.path())?;
        let (committed, fresh) = (read(&committed(provider))?, read(fresh.path())?);
        let names = committed.keys().chain(fresh.keys());
        if let Some(name) = names.into_iter().find(|name| committed.get(*name) != fresh.get(*name)) {
            bail!("charts/karpenter-crd/files/{provider}/{name} is out of date: run `cargo xtask crds`");
        }
    }
    Ok(())
}

fn committed(provider: &str) -> PathBuf {
    root().join("charts/karpenter-crd/files").join(provider)
}

fn generate(provider: &str, directory: &Path) -> Result<()> {
    let directory = directory.to_str().context("the path of the chart is not valid UTF-8")?;
    let crds = ["crds", "--provider", provider, "--directory", directory];
    // Definitions need no cloud: without them, the largest crate of all is not built once more.
    let run = ["run", "--quiet", "--package", "karpenter", "--no-default-features", "--"];
    cargo(&[run.as_slice(), &crds].concat())
}

fn read(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let Ok(entries) = fs::read_dir(directory) else { return Ok(files) };
    for entry in entries {
        let path = entry.with_context(|| format!("listing {}", directory.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        files.insert(name, text);
    }
    Ok(files)
}
