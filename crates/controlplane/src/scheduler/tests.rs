//! One rule each, seen from outside: objects in, decisions out.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values, and tests read better without `&`")]

mod filters;
mod preemption;
mod queueing;
mod resources;
mod scores;
mod support;
mod topology;
mod volumes;
