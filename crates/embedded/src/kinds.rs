//! Stub.
use crate::field_error::FieldError;
use serde_json::Value;
pub struct Context<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub namespace: &'a str,
    pub now: &'a str,
}
pub fn default(_: &Context<'_>, _: &mut Value) {}
pub fn prepare_create(_: &Context<'_>, _: &mut Value) {}
pub fn prepare_update(_: &Context<'_>, _: &mut Value, _: &Value) {}
pub fn prepare_status_update(_: &Context<'_>, _: &mut Value, _: &Value) {}
pub fn validate_create(_: &Context<'_>, _: &Value) -> Vec<FieldError> {
    vec![]
}
pub fn validate_update(_: &Context<'_>, _: &Value, _: &Value) -> Vec<FieldError> {
    vec![]
}
pub fn validate_status_update(_: &Context<'_>, _: &Value, _: &Value) -> Vec<FieldError> {
    vec![]
}
pub fn validate_metadata(_: &Context<'_>, _: &Value, _: bool, _: bool) -> Vec<FieldError> {
    vec![]
}
pub fn validate_metadata_update(_: &Value, _: &Value) -> Vec<FieldError> {
    vec![]
}
pub fn field_value(_: &str, _: &str, _: &Value, _: &str) -> Option<String> {
    None
}
pub mod crd {
    pub fn established(_: &mut serde_json::Value, _: &str) {}
}
