//! The kubeconfig of the cluster: written when it starts, removed when it ends.
//!
//! A process that is killed leaves its file behind. The next one with the same path replaces it if it is, byte by
//! byte, what such a process writes, and nobody answers at its address any more; any other file is left alone.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use super::tls::Identity;

/// How long a server on this machine may take to answer a call.
const ANSWER: Duration = Duration::from_secs(1);

/// A kubeconfig that goes away with the cluster.
pub(crate) struct Kubeconfig {
    path: PathBuf,
    /// Removed when dropped; nothing when the user chose the place.
    _dir: Option<TempDir>,
}

/// Removes what a cluster that was killed left at the wanted path, and says whether there was something.
///
/// To be called before this process opens a port, which could be the one of the cluster that is gone.
pub(crate) fn clear(path: &Path) -> Result<bool> {
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    let shown = path.display();
    let found = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
    let Some(address) = written_for(&found) else {
        bail!(
            "{shown} exists and is not the kubeconfig of a cluster like this; \
             give --kubeconfig another path or remove it"
        )
    };
    if TcpStream::connect_timeout(&address, ANSWER).is_ok() {
        bail!("{shown} belongs to a cluster that runs at {address}; end it or give --kubeconfig another path")
    }
    fs::remove_file(path).with_context(|| format!("removing {shown}, which is left of a cluster"))?;
    Ok(true)
}

/// The address in a file that this module wrote and nobody has changed since.
fn written_for(found: &str) -> Option<SocketAddr> {
    let value: Value = serde_saphyr::from_str(found).ok()?;
    let cluster = &value["clusters"][0]["cluster"];
    let address = cluster["server"].as_str()?.strip_prefix("https://")?.parse().ok()?;
    let authority = cluster["certificate-authority-data"].as_str()?;
    let token = value["users"][0]["user"]["token"].as_str()?;
    (text(address, authority, token) == found).then_some(address)
}

impl Kubeconfig {
    /// Writes the file; there is none at the wanted path.
    pub(crate) fn write(wanted: Option<&Path>, address: SocketAddr, identity: &Identity) -> Result<Self> {
        let (path, dir) = if let Some(path) = wanted {
            (path.to_owned(), None)
        } else {
            let dir = tempfile::Builder::new()
                .prefix("karpenter-")
                .tempdir()
                .context("making a temporary directory")?;
            (dir.path().join("kubeconfig"), Some(dir))
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
        let written = Self { path, _dir: dir };
        let authority = BASE64_STANDARD.encode(&identity.authority);
        file.write_all(text(address, &authority, &identity.token).as_bytes())
            .with_context(|| format!("writing {}", written.path.display()))?;
        Ok(written)
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

fn text(address: SocketAddr, authority: &str, token: &str) -> String {
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
    token: {token}
contexts:
- name: karpenter
  context:
    cluster: karpenter
    user: karpenter
    namespace: default
"
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// An address at which nobody answers: it was free a moment ago.
    fn silent() -> SocketAddr {
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a free port")
    }

    fn file_with(text: &str) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("config");
        fs::write(&path, text).expect("it can be written");
        (dir, path)
    }

    #[test]
    fn the_file_of_a_cluster_that_is_gone_is_removed() {
        let (_dir, path) = file_with(&text(silent(), "Q0E=", "secret"));
        assert!(clear(&path).expect("it is left of a cluster"));
        assert!(!path.exists());
        assert!(!clear(&path).expect("nothing is there any more"));
    }

    #[test]
    fn the_file_of_a_cluster_that_runs_stays() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (_dir, path) = file_with(&text(address, "Q0E=", "secret"));
        let error = clear(&path).expect_err("the cluster runs").to_string();
        assert!(error.contains(&format!("runs at {address}")), "{error}");
        assert!(path.exists());
    }

    #[test]
    fn a_file_that_somebody_else_wrote_or_changed_stays() {
        let ours = text(silent(), "Q0E=", "secret");
        for other in [
            String::new(),
            "certificates: [".to_owned(),
            ours.replace("namespace: default", "namespace: mine"),
            format!("{ours}- name: work\n  context: {{cluster: work, user: me}}\n"),
            ours.replace("https://127.0.0.1", "https://cluster.example"),
        ] {
            let (_dir, path) = file_with(&other);
            let error = clear(&path).expect_err("it is not ours").to_string();
            assert!(error.contains("is not the kubeconfig of a cluster like this"), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), other);
        }
    }
}
