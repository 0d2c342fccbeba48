//! Changes of an object's status, as merge patches.

use api::conditions::HasConditions;
use cluster::state::Watched;
use serde_json::{Value, json};

/// The patch that makes the conditions of an object what they are in `after`, if that differs. It is refused
/// if somebody else was faster, because lists are replaced as a whole.
pub(crate) fn conditions<K: HasConditions + Watched>(before: &K, after: &K) -> Option<Value> {
    (before.conditions() != after.conditions())
        .then(|| json!({"metadata": lock(before), "status": {"conditions": after.conditions()}}))
}

/// Metadata by which a patch is refused if somebody else was faster.
pub(crate) fn lock<K: Watched>(object: &K) -> Value {
    json!({"resourceVersion": Watched::meta(object).version().to_string()})
}
