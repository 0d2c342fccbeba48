//! Quantities, resource vectors, durations, cron and percentages with exactly the semantics Kubernetes and
//! Karpenter give them. Pure: no clock, no I/O, no Kubernetes types.

pub mod cron;
pub mod duration;
pub mod human;
pub mod percent;
pub mod quantity;
pub mod resources;
#[cfg(feature = "serde")]
mod serde_impls;

pub use cron::{CronError, Schedule, Window};
pub use duration::{DurationError, GoDuration, NillableDuration};
pub use percent::{BudgetNodes, BudgetNodesError};
pub use quantity::{Format, Quantity, QuantityError};
pub use resources::{ResourceName, Resources};
