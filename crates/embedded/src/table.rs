//! Stub.
use serde_json::Value;
pub struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i32,
}
pub fn columns(_: &str, _: &str) -> Vec<Column> {
    vec![]
}
pub fn cells(_: &str, _: &str, _: &Value, _: jiff::Timestamp) -> Vec<Value> {
    vec![]
}
pub fn custom_columns(_: &Value) -> Vec<Column> {
    vec![]
}
pub fn custom_cells(_: &Value, _: &Value, _: jiff::Timestamp) -> Vec<Value> {
    vec![]
}
