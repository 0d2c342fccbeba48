//! Queries of the resource graph.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question to the resource graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphQuery {
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Where to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<Vec<String>>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<GraphOptions>,
}

/// How a question to the resource graph is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphOptions {
    /// `objectArray`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_format: Option<String>,
    /// Where the previous page ended.
    #[serde(rename = "$skipToken", skip_serializing_if = "Option::is_none")]
    pub skip_token: Option<String>,
}

/// Rows of an answer of the resource graph; a row is a [`VirtualMachine`](super::vm::VirtualMachine) or a
/// [`NetworkInterface`](super::nic::NetworkInterface).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphPage {
    /// The rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<Value>>,
    /// Where this page ends, if there is another.
    #[serde(rename = "$skipToken", skip_serializing_if = "Option::is_none")]
    pub skip_token: Option<String>,
}
