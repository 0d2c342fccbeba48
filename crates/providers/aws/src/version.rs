//! The version of the cluster.

use std::fmt;
use std::str::FromStr;

/// The versions that were tried.
pub(crate) const SUPPORTED: std::ops::RangeInclusive<KubernetesVersion> =
    KubernetesVersion { major: 1, minor: 26 }..=KubernetesVersion { major: 1, minor: 36 };

/// A version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// A text is no version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid Kubernetes version {0:?}, expected two numbers such as 1.34")]
pub struct NoVersion(String);

impl KubernetesVersion {
    /// Whether it was tried.
    pub fn is_supported(self) -> bool {
        SUPPORTED.contains(&self)
    }
}

impl FromStr for KubernetesVersion {
    type Err = NoVersion;

    /// Some services append a plus to the second number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('.').and_then(|(major, minor)| {
            Some(Self { major: major.parse().ok()?, minor: minor.trim_end_matches('+').parse().ok()? })
        });
        numbers.ok_or_else(|| NoVersion(text.to_owned()))
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_does_not_matter_and_anything_else_does() {
        let version: KubernetesVersion = "1.34+".parse().unwrap();
        assert_eq!(version.to_string(), "1.34");
        for wrong in ["", "1", "1.x", "v1.34", "1.34.1"] {
            assert!(wrong.parse::<KubernetesVersion>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn versions_outside_of_the_range_are_not_supported() {
        let is_supported = |text: &str| text.parse::<KubernetesVersion>().unwrap().is_supported();
        assert!(is_supported("1.26") && is_supported("1.36"));
        assert!(!is_supported("1.25") && !is_supported("1.37") && !is_supported("2.30"));
    }
}
