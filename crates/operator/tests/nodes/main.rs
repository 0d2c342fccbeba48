//! Nodes and their claims in a cluster in virtual time. The comments name the sections of the test plan.

mod launch;
mod liveness;
mod registration;
#[path = "../support/mod.rs"]
mod support;
