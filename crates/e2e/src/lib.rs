//! A real Kubernetes control plane on loopback, for tests that only a real API server can decide.
//!
//! The components are the original ones, built from their Go modules on first use and cached outside the
//! source tree (see [`tools`]); afterwards a control plane is ready in a few seconds.
//! Several run side by side, each on its own ports and in its own directory.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! # fn main() -> anyhow::Result<()> {
//! // One complete control plane for all tests of a test binary; each test uses its own namespace.
//! let plane = e2e::ControlPlane::shared()?;
//! plane.kubectl(&["create", "namespace", "my-test"])?;
//! plane.kubectl_with_input(&["apply", "-n", "my-test", "-f", "-"], "apiVersion: v1 ...")?;
//! e2e::poll("the pod to be bound", Duration::from_secs(30), || {
//!     let node = plane.kubectl(&["get", "pod", "p", "-n", "my-test", "-o", "jsonpath={.spec.nodeName}"])?;
//!     Ok((!node.is_empty()).then_some(()))
//! })?;
//!
//! // A test that changes cluster-wide state starts its own, with only what it needs.
//! let own = e2e::ControlPlane::builder().with_scheduler().start()?;
//! let (url, authority, token) = (own.server_url(), own.ca_pem(), own.token());
//! # Ok(())
//! # }
//! ```
//!
//! No client library is included: point yours at [`ControlPlane::kubeconfig_path`], or at the address,
//! authority and token.
//! No kubelet runs, so pods that are bound stay Pending, unless KWOK is added (`with_kwok`), which plays the
//! machines.
//!
//! Processes end with the [`ControlPlane`] that owns them, when a test panics, and also when the test process
//! is killed.
//! A panicking test keeps the directory with the logs and says where it is; set `KARPENTER_E2E_KEEP=1` to
//! always keep it.

mod azure_oav;
mod azure_types;
mod certificates;
mod component;
mod control_plane;
mod moto;
mod poll;
mod process;
mod saved;
pub mod tools;

pub use azure_oav::valid_to_oav;
pub use azure_types::understood_by_azure_types;
pub use component::Component;
pub use control_plane::{Builder, ControlPlane, free_ports};
pub use moto::{Made, MadeSecurityGroup, MadeSubnet, Moto};
pub use poll::poll;
pub use process::Process;
pub use saved::Saved;
