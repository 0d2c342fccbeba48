//! JSON schemas as they are written, without what only people read.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One node of a written schema.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools)] // Schemas are made of switches.
pub(super) struct Raw {
    #[serde(rename = "type")]
    pub(super) type_name: String,
    pub(super) format: String,
    pub(super) nullable: bool,
    pub(super) properties: BTreeMap<String, Raw>,
    pub(super) additional_properties: Option<RawOrBool>,
    pub(super) items: Option<Box<Raw>>,
    pub(super) required: Vec<String>,
    #[serde(rename = "enum")]
    pub(super) accepted: Vec<Value>,
    pub(super) default: Option<Value>,
    pub(super) pattern: String,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) all_of: Vec<Raw>,
    pub(super) any_of: Vec<Raw>,
    pub(super) one_of: Vec<Raw>,
    pub(super) not: Option<Box<Raw>>,
    #[serde(rename = "$ref")]
    pub(super) reference: String,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(super) preserve: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(super) embedded: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(super) int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(super) list_type: String,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(super) list_map_keys: Vec<Box<str>>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub(super) map_type: String,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    pub(super) merge_key: String,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    pub(super) patch_strategy: String,
    #[serde(rename = "x-kubernetes-validations")]
    pub(super) rules: Vec<RawRule>,
    #[serde(rename = "x-kubernetes-group-version-kind", deserialize_with = "kinds")]
    pub(super) kinds: Vec<GroupVersionKind>,
}

/// `additionalProperties`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawOrBool {
    Bool(bool),
    Raw(Box<Raw>),
}

/// A rule in CEL.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawRule {
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) message_expression: String,
    pub(super) reason: String,
    pub(super) field_path: String,
    pub(super) optional_old_self: Option<bool>,
}

/// A kind that a definition describes.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupVersionKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl Raw {
    /// Reads a schema; the text says what cannot be read.
    pub(super) fn read(schema: &Value) -> Result<Self, String> {
        Self::deserialize(schema).map_err(|error| error.to_string())
    }
}

/// A CRD's schema may not say which kind it is; whatever stands there is of no use.
fn kinds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GroupVersionKind>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(Vec::deserialize(value).unwrap_or_default())
}
