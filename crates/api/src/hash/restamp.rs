//! Comparing drift hashes, and carrying claims over to a new hash version without drifting them.
//!
//! A hash is only comparable with one of the same version. When a version changes, or when a cluster is taken
//! over from a release that wrote an older one, the claims are stamped with the owner's new hash first.

/// A hash and the version of the algorithm it was made with, as two annotations hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The hash.
    pub hash: &'a str,
    /// The version of the algorithm.
    pub version: &'a str,
}

/// Whether a claim was made from something else than what its owner now asks for.
pub fn is_drifted(owner: Option<Stamp<'_>>, claim: Option<Stamp<'_>>) -> bool {
    match (owner, claim) {
        (Some(owner), Some(claim)) => owner.version == claim.version && owner.hash != claim.hash,
        _ => false,
    }
}

/// What to write on a claim whose stamp is of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restamp<'a> {
    /// The claim is of the current version already.
    Nothing,
    /// The claim was up to date: it gets the owner's new hash and version.
    Both(Stamp<'a>),
    /// The claim had drifted and shall stay so: it keeps its hash, which differs from the new one.
    VersionOnly(&'a str),
}

/// Carries a claim over to the owner's new stamp.
///
/// `old_owner` is what the owner's annotations said before. Upstream keeps a claim drifted only where the
/// condition was already set; a claim whose hash differed from its owner's had drifted just as well, only
/// nobody had looked yet, so its drift is not forgotten either.
pub fn restamp<'a>(
    old_owner: Option<Stamp<'_>>,
    new_owner: Stamp<'a>,
    claim: Option<Stamp<'_>>,
    has_drifted_condition: bool,
) -> Restamp<'a> {
    if claim.is_some_and(|claim| claim.version == new_owner.version) {
        Restamp::Nothing
    } else if has_drifted_condition || is_drifted(old_owner, claim) {
        Restamp::VersionOnly(new_owner.version)
    } else {
        Restamp::Both(new_owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What released AWS versions wrote for the node class of the vectors, and what we write.
    const V5: Stamp<'_> = Stamp { hash: "2608468723537941485", version: "v5" };
    const V6: Stamp<'_> = Stamp { hash: "11148166120438674859", version: "v6" };

    #[test]
    fn hashes_of_different_versions_are_not_compared() {
        assert!(!is_drifted(Some(V6), Some(V5)));
        assert!(!is_drifted(None, Some(V5)));
        assert!(!is_drifted(Some(V6), None));
        assert!(!is_drifted(Some(V6), Some(V6)));
        assert!(is_drifted(Some(V6), Some(Stamp { hash: "1", ..V6 })));
    }

    #[test]
    fn a_claim_of_an_older_version_is_stamped_and_does_not_drift() {
        assert_eq!(restamp(Some(V5), V6, Some(V5), false), Restamp::Both(V6));
        assert!(!is_drifted(Some(V6), Some(V6)));
        // Claims from before the annotations existed are taken as up to date too.
        assert_eq!(restamp(Some(V5), V6, None, false), Restamp::Both(V6));
        assert_eq!(restamp(None, V6, Some(V5), false), Restamp::Both(V6));
    }

    #[test]
    fn a_claim_that_had_drifted_stays_drifted() {
        let stale = Stamp { hash: "1", ..V5 };
        for (claim, condition) in [(V5, true), (stale, true), (stale, false)] {
            assert_eq!(restamp(Some(V5), V6, Some(claim), condition), Restamp::VersionOnly("v6"));
            assert!(is_drifted(Some(V6), Some(Stamp { version: "v6", ..claim })));
        }
    }

    #[test]
    fn a_claim_of_the_current_version_is_left_alone() {
        let other = Stamp { hash: "1", ..V6 };
        assert_eq!(restamp(Some(V5), V6, Some(other), false), Restamp::Nothing);
    }
}
