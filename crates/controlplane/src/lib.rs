//! What lives in a cluster besides its API server: scheduler, workload controllers, simulated kubelets.

pub mod scheduler;
