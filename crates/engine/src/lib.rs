//! Decides which nodes to launch for which pods. Pure: a snapshot goes in, a plan with reasons comes out.

pub mod compiled;
pub mod consolidate;
pub mod explain;
pub mod intern;
pub mod mask;
pub mod model;
pub mod options;
pub mod requirement;
pub mod resources;
pub mod scheduling_error;
pub mod solve;
pub mod text;
pub mod tolerate;
pub mod topology;
pub mod universe;
mod world;
pub mod written;
pub mod zones;
