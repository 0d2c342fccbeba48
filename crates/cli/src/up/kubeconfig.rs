//! The file that points kubectl at the cluster.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tempfile::TempDir;

use super::tls::Identity;

/// A kubeconfig that goes away with the cluster.
pub(crate) struct Kubeconfig {
    path: PathBuf,
    /// Removed when dropped; nothing when the user chose the place.
    _dir: Option<TempDir>,
}

impl Kubeconfig {
    pub(crate) fn write(wanted: Option<&Path>, address: SocketAddr, identity: &Identity) -> Result<Self> {
        let (path, dir) = match wanted {
            Some(path) if path.exists() => {
                bail!("{} exists; give --kubeconfig another path or remove it", path.display())
            }
            Some(path) => (path.to_owned(), None),
            None => {
                let dir = tempfile::Builder::new()
                    .prefix("karpenter-")
                    .tempdir()
                    .context("making a temporary directory")?;
                (dir.path().join("kubeconfig"), Some(dir))
            }
        };
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            // It holds a token.
            options.mode(0o600);
        }
        let mut file = options.open(&path).with_context(|| format!("writing {}", path.display()))?;
        file.write_all(text(address, identity).as_bytes())
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { path, _dir: dir })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Nothing to be done when somebody else removed it.
        let _ = fs::remove_file(&self.path);
    }
}

fn text(address: SocketAddr, identity: &Identity) -> String {
    let authority = BASE64_STANDARD.encode(&identity.authority);
    format!(
        "apiVersion: v1
kind: Config
current-context: karpenter
clusters:
- name: karpenter
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: karpenter
  user:
    token: {}
contexts:
- name: karpenter
  context:
    cluster: karpenter
    user: karpenter
    namespace: default
",
        identity.token
    )
}
