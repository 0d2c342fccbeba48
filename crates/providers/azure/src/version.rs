//! The version of Kubernetes that a node gets.

use std::fmt;
use std::str::FromStr;

/// The first two numbers of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl KubernetesVersion {
    /// Version 1 with a second number.
    pub const fn minor(minor: u32) -> Self {
        Self { major: 1, minor }
    }
}

/// A text is no version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid Kubernetes version {0:?}, expected numbers such as 1.34.2")]
pub struct NoVersion(String);

impl FromStr for KubernetesVersion {
    type Err = NoVersion;

    /// A leading `v` and everything after the second number do not matter.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        match (number(), number()) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(NoVersion(text.to_owned())),
        }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Whether a version is at least 1 with a second number; what is no version is not.
pub(crate) fn is_at_least(version: &str, minor: u32) -> bool {
    version.parse().is_ok_and(|version: KubernetesVersion| version >= KubernetesVersion::minor(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_numbers_count() {
        for text in ["1.34.2", "v1.34.2", "1.34", "1.34.0-alpha.1"] {
            assert_eq!(text.parse::<KubernetesVersion>().unwrap().to_string(), "1.34", "{text}");
            assert!(is_at_least(text, 34) && !is_at_least(text, 35), "{text}");
        }
        for wrong in ["", "1", "x.y", "1.x.2"] {
            assert!(wrong.parse::<KubernetesVersion>().is_err() && !is_at_least(wrong, 0), "{wrong}");
        }
        assert!(is_at_least("1.100.0", 34));
    }
}
