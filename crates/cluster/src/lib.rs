//! What is known of a cluster, and the engine's snapshot of it: from files that `kubectl get` writes, and from
//! watches.

pub mod buffers;
pub mod consolidate_after;
pub mod costs;
pub mod do_not_disrupt;
pub mod eligibility;
pub mod file;
pub mod instance_types;
pub mod load;
pub mod objects;
pub mod overlays;
pub mod payload;
pub mod pod_disruption_budgets;
pub mod reason;
pub mod requests;
pub mod scheduler_config;
mod shapes;
pub mod snapshot;
pub mod state;
pub mod state_node;
pub mod volumes;
