//! What an administrator can choose about decisions.

/// Settings of one solve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether wishes of pods count.
    pub preferences: Preferences,
    /// What happens where a pool asks for more choice than there is.
    pub min_values: MinValues,
    /// What happens when reserved capacity is taken.
    pub reserved: Reserved,
}

/// Whether wishes of pods count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preferences {
    /// They are kept as long as they can be.
    #[default]
    Respect,
    /// They are not read.
    Ignore,
}

/// What happens where a pool asks for more choice than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinValues {
    /// No node is launched.
    #[default]
    Strict,
    /// The demand is lowered to what there is.
    BestEffort,
}

/// What happens when reserved capacity is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserved {
    /// Reserved offerings are not looked at.
    Off,
    /// The pod waits for the next round, in which the reservation is known to be used up.
    #[default]
    Strict,
    /// The pod takes something else.
    Fallback,
}
