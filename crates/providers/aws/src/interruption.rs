//! What AWS says about instances that it takes away, stops or finds broken.

mod message;
mod status;

pub use message::{Kind, NotUnderstood, Notice, parse};
pub use status::{Category, FILTERS, Problem, problems};
