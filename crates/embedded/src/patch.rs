//! Stub.
use crate::refusal::Refusal;
use crate::schema::Schema;
use serde_json::Value;
pub fn json_patch(_: &mut Value, _: &Value) -> Result<(), Refusal> {
    Ok(())
}
pub fn merge_patch(o: &mut Value, p: &Value) {
    json_patch::merge(o, p)
}
pub fn strategic_merge_patch(o: &mut Value, p: &Value, _: &Schema) -> Result<(), Refusal> {
    json_patch::merge(o, p);
    Ok(())
}
pub mod apply {
    use super::*;
    pub struct Manager<'a> {
        pub name: &'a str,
        pub subresource: &'a str,
        pub api_version: &'a str,
        pub now: &'a str,
    }
    pub fn apply(
        _: Option<&Value>,
        a: &Value,
        _: &Manager<'_>,
        _: bool,
        _: &Schema,
    ) -> Result<Value, Refusal> {
        Ok(a.clone())
    }
}
pub mod managed_fields {
    use super::*;
    pub fn track_update(_: Option<&Value>, _: &mut Value, _: &apply::Manager<'_>, _: &Schema) {}
}
