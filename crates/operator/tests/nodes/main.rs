//! Nodes and their claims in a cluster in virtual time. The comments name the sections of the test plan.

mod deadline;
mod drain;
mod eviction;
mod finalize;
mod health;
mod launch;
mod liveness;
#[path = "../../src/testing/log.rs"]
mod log;
mod others;
mod reboot;
mod registration;
mod safety;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/whole.rs"]
mod whole;
