//! A cluster for tests: real behaviour, virtual time, and verbs that read like the test's sentence.
//!
//! ```
//! use std::time::Duration;
//! use testkit::World;
//!
//! let mut world = World::new(1);
//! world.apply("{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 9}}}");
//! world.apply("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}");
//! world.run_for(Duration::from_mins(1));
//! world.expect_running("p");
//! ```
//!
//! Everything runs on one thread under a paused clock: an hour passes as soon as nobody has anything to do,
//! and the same seed gives the same history.

pub mod scenarios;
pub mod stage;
mod trouble;
pub mod workload;
mod world;

pub use trouble::{TROUBLES, trouble};
pub use world::{Builder, World};
