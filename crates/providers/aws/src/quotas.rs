//! The quotas of an account that launches can use up: EC2 counts virtual processors, by kinds of machines and how they
//! are paid, and fleets.

use std::fmt;

use crate::port::error::{FLEET_QUOTA, SPOT_QUOTA, VCPU_QUOTA};

/// The quotas of running instances: their code, the machines that count, and whether those are spot machines.
pub(crate) const CODES: [(&str, Kind, bool); 19] = [
    ("L-1216C47A", Kind::Standard, false),
    ("L-34B43A08", Kind::Standard, true),
    ("L-DB2E81BA", Kind::G, false),
    ("L-3819A6DF", Kind::G, true),
    ("L-417A185B", Kind::P, false),
    ("L-417A185B", Kind::P5, false),
    ("L-7212CCBC", Kind::P, true),
    ("L-C4BD4855", Kind::P5, true),
    ("L-1945791B", Kind::Inf, false),
    ("L-B5D1601B", Kind::Inf, true),
    ("L-2C3B7624", Kind::Trn, false),
    ("L-6B0D517C", Kind::Trn, true),
    ("L-6E869C2A", Kind::Dl, false),
    ("L-85EED4F7", Kind::Dl, true),
    ("L-74FC7D96", Kind::F, false),
    ("L-88CF9481", Kind::F, true),
    ("L-7295265B", Kind::X, false),
    ("L-E3A00192", Kind::X, true),
    ("L-F7808C92", Kind::Hpc, false),
];

/// What machines count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Standard,
    G,
    P,
    P5,
    Inf,
    Trn,
    Dl,
    F,
    X,
    Hpc,
}

impl Kind {
    /// The machines, in the words of Service Quotas.
    const fn machines(self) -> &'static str {
        match self {
            Self::Standard => "Standard (A, C, D, H, I, M, R, T, Z)",
            Self::G => "G and VT",
            Self::P => "P4, P3 and P2",
            Self::P5 => "P5",
            Self::Inf => "Inf",
            Self::Trn => "Trn",
            Self::Dl => "DL",
            Self::F => "F",
            Self::X => "X",
            Self::Hpc => "HPC",
        }
    }
}

/// What an instance type counts as; nothing for those that have no quota of this sort.
pub(crate) fn kind(instance_type: &str) -> Option<Kind> {
    let family = instance_type.split('.').next().unwrap_or_default();
    let letters: String = family.chars().take_while(char::is_ascii_alphabetic).collect();
    let generation = family[letters.len()..].chars().next().and_then(|digit| digit.to_digit(10));
    Some(match letters.as_str() {
        "g" | "gr" | "vt" => Kind::G,
        "p" if generation.is_some_and(|generation| generation >= 5) => Kind::P5,
        "p" => Kind::P,
        "inf" => Kind::Inf,
        "trn" => Kind::Trn,
        "dl" => Kind::Dl,
        "f" => Kind::F,
        "x" => Kind::X,
        "hpc" => Kind::Hpc,
        // Whole hosts, and machines with more memory than others have disk.
        "mac" | "u" => return None,
        other if other.starts_with(['a', 'c', 'd', 'h', 'i', 'm', 'r', 't', 'z']) => Kind::Standard,
        _ => return None,
    })
}

/// The code of the quota that machines of a kind count for.
pub(crate) fn code(kind: Kind, is_spot: bool) -> Option<&'static str> {
    CODES.iter().find(|(_, of, spot)| *of == kind && *spot == is_spot).map(|(code, ..)| *code)
}

/// A quota that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UsedUp {
    /// Virtual processors of one kind of machines, paid in one way; of an unknown kind if EC2 did not say what it was
    /// about.
    Processors(Option<Kind>, bool),
    /// Fleets.
    Fleets,
}

impl UsedUp {
    /// The quota that an error of a launch is about, if it is about one.
    pub(crate) fn of(error_code: &str, instance_type: Option<&str>) -> Option<Self> {
        match error_code {
            VCPU_QUOTA => Some(Self::Processors(instance_type.and_then(kind), false)),
            SPOT_QUOTA => Some(Self::Processors(instance_type.and_then(kind), true)),
            FLEET_QUOTA => Some(Self::Fleets),
            _ => None,
        }
    }
}

impl fmt::Display for UsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paid = |is_spot: bool| if is_spot { "spot" } else { "on-demand" };
        match *self {
            Self::Fleets => write!(f, "the account's quota of EC2 fleets"),
            Self::Processors(None, is_spot) => write!(f, "the account's quota of {} vCPUs", paid(is_spot)),
            Self::Processors(Some(kind), is_spot) => {
                let (paid, machines) = (paid(is_spot), kind.machines());
                write!(f, "the account's quota of {paid} vCPUs of {machines} instances")?;
                code(kind, is_spot).map_or(Ok(()), |code| write!(f, " ({code})"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_is_used_up_is_named_with_the_code_that_more_is_asked_for_with() {
        let of = |code: &str, name: Option<&str>| UsedUp::of(code, name).map(|quota| quota.to_string());
        assert_eq!(
            of("VcpuLimitExceeded", Some("m5.large")).as_deref(),
            Some(
                "the account's quota of on-demand vCPUs of Standard (A, C, D, H, I, M, R, T, Z) instances (L-1216C47A)"
            )
        );
        assert_eq!(
            of("MaxSpotInstanceCountExceeded", Some("g4dn.xlarge")).as_deref(),
            Some("the account's quota of spot vCPUs of G and VT instances (L-3819A6DF)")
        );
        assert_eq!(of("VcpuLimitExceeded", None).as_deref(), Some("the account's quota of on-demand vCPUs"));
        assert_eq!(of("MaxFleetCountExceeded", None).as_deref(), Some("the account's quota of EC2 fleets"));
        assert_eq!(of("InsufficientInstanceCapacity", Some("m5.large")), None);
    }
}
