//! The provider on an Azure in the process and a cluster in virtual time. Each test names the place of `azure.md` that
//! it is about; `docs/behaviours-azure.md` lists them.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests, with values made in place"
)]

mod burst;
mod controllers;
mod ends;
mod fleet;
mod interfaces;
mod launches;
mod machines;
mod official;
mod play;
mod start;
mod table;
mod takeover;
mod updates;
mod walk;
