//! Names of simulated nodes.
//!
//! The name follows from the claim, so that a launch that is tried again, by this process or by the one that
//! takes over from it, finds what the first try made instead of making a second node.

use api::nodeclaim::NodeClaim;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const QUALITIES: [&str; 32] = [
    "amber", "bold", "brisk", "calm", "clever", "cosmic", "dapper", "eager", "fancy", "gentle", "glad",
    "hasty", "humble", "jolly", "keen", "lively", "lucky", "mellow", "merry", "nimble", "plucky", "proud",
    "quiet", "rapid", "rusty", "shiny", "sleepy", "snappy", "sunny", "tidy", "witty", "zesty",
];
const CREATURES: [&str; 32] = [
    "badger", "beaver", "bison", "bobcat", "camel", "condor", "crab", "dingo", "falcon", "ferret", "gecko",
    "heron", "ibex", "jackal", "koala", "lemur", "lynx", "magpie", "marmot", "newt", "ocelot", "otter",
    "panda", "puffin", "quokka", "raven", "seal", "stork", "tapir", "urchin", "walrus", "yak",
];
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

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

/// The name of the node for a claim: `kwok-<claim>-<two words>-<number>-<ten characters>-<number>`.
pub(crate) fn node(claim: &NodeClaim) -> String {
    let mut random = chance(claim, 0);
    let mut pick = |words: &[&'static str; 32]| words[random.random_range(0..words.len())];
    let (quality, creature) = (pick(&QUALITIES), pick(&CREATURES));
    let number = random.random_range(1..10_000);
    let letters: String =
        (0..10).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect();
    let last: u32 = random.random();
    let claim = claim.metadata.name.as_deref().unwrap_or_default();
    format!("{}{quality}-{creature}-{number}-{letters}-{last}", prefix(claim)).to_lowercase()
}

/// What the names of nodes for a claim of this name begin with.
pub(crate) fn prefix(claim: &str) -> String {
    format!("kwok-{claim}-")
}
