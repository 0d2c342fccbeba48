//! Lists in pages.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;

/// One page of a list, with the link to the next one.
pub(crate) fn page(call: &Call, all: Vec<Value>, size: usize) -> Answer {
    let size = size.max(1);
    let from = call.query("$skiptoken").and_then(|token| token.parse().ok()).unwrap_or(0_usize);
    let until = from.saturating_add(size);
    let has_more = all.len() > until;
    let page: Vec<Value> = all.into_iter().skip(from).take(size).collect();
    let mut body = json!({"value": page});
    if has_more {
        body["nextLink"] = json!(call.next_link("$skiptoken", until));
    }
    Answer::json(200, body)
}
