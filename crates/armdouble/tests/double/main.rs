//! What the double does, a sentence each; all under a clock that does not run by itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod batches;
mod burst;
mod catalogue;
mod graph;
mod interfaces;
mod operations;
mod over_http;
mod quota;
mod refusals;
mod support;
mod table;
mod tokens;
mod virtual_machines;
