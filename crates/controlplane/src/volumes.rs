//! Claims get volumes: those that exist, or new ones from a simulated provisioner.

pub(crate) mod claim;
pub(crate) mod volume;

/// The provisioner that makes nothing: its volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
