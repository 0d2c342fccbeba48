//! Patches of all four kinds, and who owns which field.

pub mod apply;
mod fields;
pub mod managed_fields;
mod simple;
mod strategic;
mod typed;

pub use self::apply::{Manager, apply};
pub use self::managed_fields::track_update;
pub use self::simple::{json_patch, merge_patch};
pub use self::strategic::strategic_merge_patch;
