//! Reading objects of Kubernetes' own types as its decoder does.

use serde_json::Value;

use super::Schema;
use crate::refusal::Refusal;

/// Checks the types of all fields, drops nulls, and returns the paths of unknown fields, which are removed.
pub fn decode_built_in(schema: &Schema, object: &mut Value) -> Result<Vec<String>, Refusal> {
    Ok(schema.prune(object))
}
