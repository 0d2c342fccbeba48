//! Sizes, instance types, offerings and what a launch chooses, on sizes as Azure lists them. Each test is in
//! `docs/behaviours-azure.md`.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests, with values made in place"
)]

mod instance_types;
mod offerings;
mod plan;
mod ranking;
mod refusals;
mod scheduling;
mod sizes;
mod support;
mod table;
