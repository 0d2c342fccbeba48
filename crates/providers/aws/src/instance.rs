//! Launching instances and understanding those that there are: everything that is decided about it.
//!
//! ```text
//!   types ─► filters ─► truncated ─► how to buy ─► subnets ─► templates ─► fleet request
//!                                                                              │ (EC2)
//!   NodeClaim ◄── Machine ◄── instances          what is not to be had ◄── errors of the fleet
//! ```

mod batch;
pub mod drift;
mod failures;
mod filters;
mod fleet;
mod machine;
mod node_claim;
mod orphans;
mod plan;
pub mod provider_id;
pub mod relabel;
mod subnets;

pub use batch::share;
pub use failures::{Effect, Failed, classify, effects, failure, is_pointless, metric_labels, of_call};
pub use filters::filter;
pub use fleet::{NoOverrides, batch_key, request};
pub use machine::{Machine, Reservation};
pub use node_claim::{launch_annotations, node_claim};
pub use orphans::{Claims, orphans};
pub use plan::{LaunchPlan, TooFewTypes, lacks_flexibility, plan, truncate};
pub(crate) use subnets::fewest_pods;
pub use subnets::{ChosenSubnet, SubnetAddresses};
