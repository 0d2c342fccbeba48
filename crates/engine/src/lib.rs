//! Decides which nodes to launch for which pods. Pure: a snapshot goes in, a plan with reasons comes out.

pub mod intern;
pub mod mask;
pub mod model;
pub mod requirement;
pub mod resources;
pub mod universe;
