//! What a control plane knew when it ended, so that others can begin with it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// What a control plane knew when it ended; see [`crate::ControlPlane::save`].
#[derive(Debug)]
pub struct Saved(TempDir);

impl Saved {
    /// Takes the data of etcd, which must have ended.
    pub(crate) fn take(data: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("karpenter-saved-").tempdir()?;
        copy(data, &dir.path().join("etcd"))?;
        Ok(Self(dir))
    }

    /// Puts the data where an etcd will look for it.
    pub(crate) fn put(&self, data: &Path) -> Result<()> {
        copy(&self.0.path().join("etcd"), data)
    }
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    // etcd wants its directory for itself.
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(())
}
