//! Every name that something outside the process can see: the contract of a drop-in replacement.
//!
//! One constant per name, grouped by what it names; providers have their own groups. Each group is one
//! `define!` block, which also builds the list `ALL`, so a constant cannot be missing from the snapshot in
//! `tests/names.txt`: any change of the contract shows in review. Metrics, events, flags and gates are
//! structures that the registry, the event sink and the command line use as they are.

use std::fmt;

pub mod annotations;
pub mod conditions;
pub mod controllers;
pub mod events;
pub mod finalizers;
pub mod flags;
pub mod gates;
pub mod labels;
pub mod messages;
pub mod metrics;
pub mod process;
pub mod reasons;
pub mod resources;
pub mod tags;
pub mod taints;
pub mod values;

/// Defines documented constants and the list of them all.
macro_rules! define {
    (
        $(#[$list_doc:meta])* $list:ident: $type:ty;
        $($(#[$doc:meta])* $name:ident = $value:expr;)*
    ) => {
        $($(#[$doc])* pub const $name: $type = $value;)*
        $(#[$list_doc])* pub const $list: &[$type] = &[$($name),*];
    };
}
use define;

/// How settled a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// May change or vanish with any release.
    Alpha,
    /// Changes only with notice.
    Beta,
    /// Does not change.
    Stable,
    /// Kept for those who still use it.
    Deprecated,
    /// Upstream does not say.
    Undeclared,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Stable => "stable",
            Self::Deprecated => "deprecated",
            Self::Undeclared => "undeclared",
        })
    }
}
