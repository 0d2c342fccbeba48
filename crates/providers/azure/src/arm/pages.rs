//! Answers in several pages.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::Call;
use super::error::Error;
use super::sender::{Sender, read};

/// A page of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
struct Page<T> {
    #[serde(default = "Vec::new")]
    value: Vec<T>,
    next_link: Option<String>,
}

impl Sender {
    /// All pages of a list.
    pub(super) async fn list<T: DeserializeOwned>(&self, call: Call) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        let mut next = Some(call);
        while let Some(call) = next {
            let answer = self.send(&call).await?;
            let page: Page<T> = read(&call, &answer)?;
            all.extend(page.value);
            next = following(&call, page.next_link)?;
        }
        Ok(all)
    }

    /// All pages of a list that is worth something without those of its members that cannot be read.
    pub(super) async fn list_readable<T: DeserializeOwned>(&self, call: Call) -> Result<Vec<T>, Error> {
        let operation = call.operation;
        let all: Vec<Value> = self.list(call).await?;
        Ok(readable(operation, all))
    }
}

/// Those that can be read.
pub(super) fn readable<T: DeserializeOwned>(operation: &str, all: Vec<Value>) -> Vec<T> {
    let mut found = Vec::with_capacity(all.len());
    let mut left_out = 0_usize;
    for value in all {
        let name = value.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
        match serde_json::from_value(value) {
            Ok(read) => found.push(read),
            Err(error) => {
                if left_out == 0 {
                    tracing::warn!(operation, name, error = %error, "leaving out what cannot be read");
                }
                left_out += 1;
            }
        }
    }
    if left_out > 1 {
        tracing::warn!(operation, left_out, "left out what cannot be read");
    }
    found
}

/// The question for the next page, if there is one.
pub(super) fn following(call: &Call, link: Option<String>) -> Result<Option<Call>, Error> {
    match link.filter(|link| !link.is_empty()) {
        Some(link) if link == call.url => {
            Err(Error::new(&call.description(), "", "reading the answer, a page is its own successor"))
        }
        Some(link) => Ok(Some(call.follow(call.operation, link))),
        None => Ok(None),
    }
}
