//! What users see of claims, choice, volumes, leaving nodes, reservations, spreads and affinities.
//!
//! Each test names the behaviours of `docs/behaviours.md` that it shows; `behaviours` checks that none is missing.

#![allow(clippy::needless_pass_by_value, reason = "JSON as an argument reads better without a reference")]

mod behaviours;
mod objects;
mod world;

mod affinity;
mod default_spreads;
mod deleting_nodes;
mod gaps;
mod min_values;
mod payload;
mod random_choice;
mod reserved;
mod spread;
mod spread_counting;
mod spread_policies;
mod volume_limits;
mod volumes;
