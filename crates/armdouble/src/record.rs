//! What was asked, for tests to look at.

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::route::Kind;

/// Headers that say something about the request.
const HEADERS: [&str; 13] = [
    "accept",
    "authorization",
    "allowspotvmsystemnode",
    "batchputmachine",
    "content-type",
    "if-match",
    "if-none-match",
    "metadata",
    "user-agent",
    "x-ms-authorization-auxiliary",
    "x-ms-client-request-id",
    "x-ms-correlation-request-id",
    "x-ms-return-client-request-id",
];

/// A request and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// When it came.
    pub at: Timestamp,
    /// What it was about.
    pub kind: Kind,
    /// Its method.
    pub method: Method,
    /// Scheme and host that it was sent to.
    pub base: String,
    /// Its path, as it was sent.
    pub path: String,
    /// The name of the resource; empty for lists.
    pub name: String,
    /// Its parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// Those of its headers that say something, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body: JSON, or a string if it is none, or null without one.
    pub body: Value,
    /// The status of the answer; none if no answer arrived.
    pub status: Option<u16>,
    /// The headers of the answer.
    pub answer_headers: BTreeMap<String, String>,
    /// The body of the answer.
    pub answer: Value,
}

impl Recorded {
    pub(crate) fn of(call: &Call) -> Self {
        let headers =
            HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), call.header(name)?.to_owned())));
        let body = if call.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&call.body)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&call.body).into_owned()))
        };
        Self {
            at: call.now,
            kind: call.route.kind,
            method: call.method.clone(),
            base: call.base.clone(),
            path: call.path.clone(),
            name: if call.route.is_collection { String::new() } else { call.route.name().to_owned() },
            query: call.query.iter().cloned().collect(),
            headers: headers.collect(),
            body,
            status: None,
            answer_headers: BTreeMap::new(),
            answer: Value::Null,
        }
    }

    /// The exchange as JSON, for other programs.
    pub fn to_json(&self) -> Value {
        json!({
            "at": self.at.to_string(), "kind": format!("{:?}", self.kind), "method": self.method.as_str(),
            "base": self.base, "path": self.path, "name": self.name, "query": self.query, "headers": self.headers, "body": self.body,
            "status": self.status, "answerHeaders": self.answer_headers, "answer": self.answer,
        })
    }
}
