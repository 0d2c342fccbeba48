//! Writes events to the API server, one after the other.

use std::time::Duration;

use ::cluster::state::Kind;
use api::names::process::COMPONENT;
use api::provider::Provider;
use clock::Clock;
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::series::{Series, Verdict};
use super::{About, Published};
use crate::api::{Error, MANAGER, answered};

/// Where events about cluster-wide objects are.
const CLUSTER_NAMESPACE: &str = "default";
/// The API server takes no longer messages.
const LONGEST_MESSAGE: usize = 1024;
/// The API server takes no longer names.
const LONGEST_NAME: usize = 253;
/// How often an event is sent when there is no answer.
const TRIES: u32 = 12;
/// How long to wait in between.
const WAIT: Duration = Duration::from_secs(10);

/// Writes events until nobody can publish any more.
pub(super) async fn run(
    mut events: mpsc::Receiver<Published>,
    client: Client,
    clock: Clock,
    provider: Provider,
) {
    let mut writer = Writer { client, provider, series: Series::default(), last: 0 };
    while let Some(mut event) = events.recv().await {
        truncate(&mut event.message);
        writer.put(&event, clock.now()).await;
    }
}

struct Writer {
    client: Client,
    provider: Provider,
    series: Series,
    /// The number in the last name.
    last: i128,
}

impl Writer {
    async fn put(&mut self, event: &Published, now: Timestamp) {
        let namespace = namespace(&event.about);
        let (message, series) = match self.series.judge(event, now) {
            Verdict::Drop => return,
            Verdict::Create { message, series } => (message, series),
            Verdict::Count { name, count, mut message, series } => {
                truncate(&mut message);
                let change = json!({"count": count, "lastTimestamp": seconds(now), "message": message});
                let path = format!("/api/v1/namespaces/{namespace}/events/{name}?fieldManager={MANAGER}");
                match self.send(Method::PATCH, &path, &change).await {
                    Err(error) if error.is_not_found() => {
                        self.series.forget(&series);
                        (message, series)
                    }
                    Err(error) => return complain(event, &error),
                    Ok(()) => return,
                }
            }
        };
        let name = self.name(&event.about, now);
        let object = self.object(event, &name, message, now);
        let path = format!("/api/v1/namespaces/{namespace}/events?fieldManager={MANAGER}");
        match self.send(Method::POST, &path, &object).await {
            Ok(()) => self.series.wrote(series, name, now),
            Err(error) => complain(event, &error),
        }
    }

    /// A name that no other event of this process has.
    fn name(&mut self, about: &About, now: Timestamp) -> String {
        self.last = now.as_nanosecond().max(self.last + 1);
        let suffix = format!(".{:x}", self.last);
        let mut name = about.name.to_string();
        name.truncate(LONGEST_NAME - suffix.len());
        name + &suffix
    }

    fn object(&self, event: &Published, name: &str, mut message: String, now: Timestamp) -> Value {
        truncate(&mut message);
        let About { kind, namespace: own, name: object, uid } = &event.about;
        let kind_name = if *kind == Kind::NodeClass { self.provider.node_class().kind } else { kind.name() };
        let mut involved = json!({
            "apiVersion": kind.api_version(self.provider), "kind": kind_name, "name": object, "uid": uid,
        });
        if !own.is_empty() {
            involved["namespace"] = (**own).into();
        }
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": namespace(&event.about)},
            "involvedObject": involved,
            "type": event.kind.to_string(), "reason": event.reason, "message": message,
            "count": 1, "firstTimestamp": seconds(now), "lastTimestamp": seconds(now),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT, "reportingInstance": "",
        })
    }

    /// Sends a request, again and again if there is no answer.
    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<(), Error> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.to_string().into_bytes();
        let mut tries = 1;
        loop {
            let request = Request::builder()
                .method(method.clone())
                .uri(path)
                .header(http::header::CONTENT_TYPE, content)
                .body(body.clone())
                .map_err(|error| Error::Other(error.to_string()))?;
            match answered(self.client.request_text(request)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.code() != 0 || tries == TRIES => return Err(error),
                Err(_) => {}
            }
            tries += 1;
            tokio::time::sleep(WAIT).await;
        }
    }
}

fn namespace(about: &About) -> &str {
    if about.namespace.is_empty() { CLUSTER_NAMESPACE } else { &about.namespace }
}

/// The time in the API's format, which has no fractions.
fn seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Cuts a message to the length that is possible, between characters.
fn truncate(message: &mut String) {
    message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
}

/// Events are not worth more than this.
fn complain(event: &Published, error: &Error) {
    tracing::debug!(reason = &*event.reason, name = &*event.about.name, error = %error, "failed to write an event");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_between_characters() {
        let mut message = format!("{}ü", "x".repeat(1023));
        truncate(&mut message);
        assert_eq!(message.len(), 1023);
        let mut message = "short".to_owned();
        truncate(&mut message);
        assert_eq!(message, "short");
    }
}
