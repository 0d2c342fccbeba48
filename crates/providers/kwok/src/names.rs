//! Names of simulated nodes.
//!
//! The name follows from the claim, so that a launch that is tried again, by this process or by the one that
//! takes over from it, finds what the first try made instead of making a second node.
//!
//! ```text
//! kwok-default-x7k2p-9fq3kz81ab               the claim, and ten characters that follow from its UID
//! kwok-general-purpose-sp-x7k2p-9fq3kz81ab    the ends of a long claim: 40 characters fit beside others in a table
//! ```

use api::nodeclaim::NodeClaim;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// How much of a long claim's name stands at the beginning, and how much at the end: what tells the claims of a pool
/// apart are the last characters.
const HEAD: usize = 17;
const TAIL: usize = 6;
/// The longest name of a claim that is not shortened.
const WHOLE: usize = HEAD + 1 + TAIL;

/// Chance that is the same for the same claim and seed.
pub(crate) fn chance(claim: &NodeClaim, seed: u64) -> Pcg64Mcg {
    let metadata = &claim.metadata;
    let id = [metadata.uid.as_deref(), metadata.name.as_deref()];
    let bytes = id.iter().flatten().flat_map(|text| text.bytes().chain([0]));
    // FNV-1a: the standard library's hashes may differ between two releases that share a cluster.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Pcg64Mcg::seed_from_u64(hash ^ seed)
}

/// The name of the node for a claim.
pub(crate) fn node(claim: &NodeClaim) -> String {
    let mut random = chance(claim, 0);
    let letters: String =
        (0..10).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect();
    let claim = claim.metadata.name.as_deref().unwrap_or_default();
    format!("kwok-{}-{letters}", shortened(claim)).to_lowercase()
}

/// Whether a node of this name can be one for a claim of that name. Older releases and the original provider put whole
/// names of claims into those of nodes.
pub(crate) fn is_of(node: &str, claim: &str) -> bool {
    let rest = node.strip_prefix("kwok-");
    let is_after = |claim: &str| {
        rest.and_then(|rest| rest.strip_prefix(claim)).is_some_and(|rest| rest.starts_with('-'))
    };
    is_after(claim) || is_after(&shortened(claim))
}

/// The name of a claim, or both its ends. What remains is still a name: it has no dots or dashes side by side at the cut.
fn shortened(claim: &str) -> String {
    if claim.chars().count() <= WHOLE {
        return claim.to_owned();
    }
    let is_edge = |letter: char| !letter.is_ascii_alphanumeric();
    let head: String = claim.chars().take(HEAD).collect();
    let tail: String = claim.chars().skip(claim.chars().count() - TAIL).collect();
    format!("{}-{}", head.trim_end_matches(is_edge), tail.trim_start_matches(is_edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(claim: &str, uid: &str) -> String {
        let mut object = NodeClaim::new(claim, api::nodeclaim::NodeClaimSpec::default());
        object.metadata.uid = Some(uid.to_owned());
        node(&object)
    }

    #[test]
    fn names_follow_from_the_claim_and_have_at_most_forty_characters() {
        let long = "a".repeat(63) + "-x7k2p";
        let dotted = "general.purpose-x.-spot-workloads.x7k2p";
        for claim in ["default-x7k2p", "x", "", "general-purpose-spot-workloads-x7k2p", &long, dotted] {
            let name = name(claim, "1");
            assert!(name.len() <= 40, "{name}");
            assert!(is_of(&name, claim), "{name}");
            assert!(!name.contains(".-") && !name.contains("-.") && !name.contains(".."), "{name}");
        }
        assert_eq!(&name("default-x7k2p", "1")[..19], "kwok-default-x7k2p-");
        assert_eq!(&name("general-purpose-spot-workloads-x7k2p", "1")[..29], "kwok-general-purpose-s-x7k2p-");
        assert_eq!(name("default-x7k2p", "1"), name("default-x7k2p", "1"));
        assert_ne!(name("default-x7k2p", "1"), name("default-x7k2p", "2"));
        assert_ne!(name(&("a".repeat(40) + "-x7k2p"), "1"), name(&("a".repeat(41) + "-x7k2p"), "1"));
    }

    #[test]
    fn nodes_of_older_releases_and_of_the_original_are_recognised() {
        let long = "general-purpose-spot-workloads-x7k2p";
        for (node, claim, expected) in [
            ("kwok-default-x7k2p-amber-yak-12-abcdefghij-99", "default-x7k2p", true),
            ("kwok-general-purpose-spot-workloads-x7k2p-amber-yak-12-abcdefghij-99", long, true),
            ("kwok-general-purpose-s-x7k2p-abcdefghij", long, true),
            ("kwok-default-x7k2p-abcdefghij", "default-x7k2", false),
            ("kwok-general-purpose-s-x7k2q-abcdefghij", long, false),
            ("mine", "mine", false),
            ("kwok-mine", "mine", false),
        ] {
            assert_eq!(is_of(node, claim), expected, "{node}");
        }
    }
}
