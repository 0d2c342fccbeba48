//! Drift hashes: what a NodePool or NodeClass asked for when a node was made, as one number.
//!
//! The numbers are stored in annotations of running clusters, so they must come out as upstream's do, bit for
//! bit: a different number drifts, and thereby replaces, every node. The algorithm is a structural hash over
//! 64-bit FNV-1 that knows the names of upstream's types and fields:
//!
//! ```text
//! struct   h = hash(type name); for each field that is set: h = fin(h xor pair(hash(field name), hash(value)))
//! map      fin(xor over entries of pair(hash(key), hash(value)))
//! list     xor over elements of hash(element), so that order does not matter
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

mod aks;
mod ec2;
mod nodepool;
mod restamp;

pub use aks::{AKS_NODE_CLASS_HASH_VERSION, aks_node_class_hash};
pub use ec2::{EC2_NODE_CLASS_HASH_VERSION, ec2_node_class_hash, kubelet_text};
pub use nodepool::{NODE_POOL_HASH_VERSION, node_pool_hash};
pub use restamp::{Restamp, Stamp, is_drifted, restamp};

/// FNV-1 with 64 bits: multiply, then xor.
fn fnv1(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

/// Two hashes in order.
fn pair(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    fnv1(&bytes)
}

/// Closes a number that was combined by xor, so that it does not cancel against its surroundings.
fn finish(hash: u64) -> u64 {
    fnv1(&hash.to_le_bytes())
}

fn string(text: &str) -> u64 {
    fnv1(text.as_bytes())
}

fn boolean(value: bool) -> u64 {
    fnv1(&[u8::from(value)])
}

fn int32(value: i32) -> u64 {
    fnv1(&value.to_le_bytes())
}

fn int64(value: i64) -> u64 {
    fnv1(&value.to_le_bytes())
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a String, &'a String)>) -> u64 {
    finish(entries.into_iter().fold(0, |hash, (key, value)| hash ^ pair(string(key), string(value))))
}

/// A list whose order does not matter; equal elements cancel, as upstream's do.
fn set(elements: impl IntoIterator<Item = u64>) -> u64 {
    elements.into_iter().fold(0, |hash, element| hash ^ element)
}

/// A point in time as Go writes it in binary, in a process whose time zone is UTC.
fn time(time: &Time) -> u64 {
    /// Go counts seconds from the year 1.
    const YEAR_ONE_TO_UNIX_EPOCH: i64 = 62_135_596_800;
    const VERSION: u8 = 1;
    let mut bytes = [0; 15];
    bytes[0] = VERSION;
    bytes[1..9].copy_from_slice(&(time.0.as_second() + YEAR_ONE_TO_UNIX_EPOCH).to_be_bytes());
    bytes[9..13].copy_from_slice(&time.0.subsec_nanosecond().to_be_bytes());
    // The last two bytes are the offset from UTC in minutes.
    Struct::new("Time").field("Time", Some(fnv1(&bytes))).hash()
}

/// The hash of a struct, fed field by field in declaration order.
struct Struct(u64);

impl Struct {
    fn new(type_name: &str) -> Self {
        Self(string(type_name))
    }

    /// Adds a field; one that is not set leaves no trace.
    fn field(self, name: &str, value: Option<u64>) -> Self {
        match value {
            Some(value) => Self(finish(self.0 ^ pair(string(name), value))),
            None => self,
        }
    }

    /// Adds a text, which is not set when empty.
    fn text(self, name: &str, value: &str) -> Self {
        self.field(name, (!value.is_empty()).then(|| string(value)))
    }

    fn hash(self) -> u64 {
        self.0
    }
}
