//! The decisions of the AWS provider on real instance types. Each test carries the number of its row in
//! `docs/behaviours-aws.md`.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests, with values made in place"
)]

mod account;
mod capacity;
mod classes;
mod controllers;
mod doctor;
mod drift;
mod edges;
mod filters;
mod fleet;
mod golden;
mod instance_types;
mod interruptions;
mod launch_templates;
mod launches;
mod limits;
mod machines;
mod offerings;
mod oracle;
mod play;
mod provider;
mod recorder;
mod support;
mod tables;
mod upkeep;
mod user_data;
mod validation;
mod wire;
