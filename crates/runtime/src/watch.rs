//! Watches: every object of a kind, then every change, for ever.
//!
//! The server is asked to stream the objects that exist; one that cannot is asked for lists instead.
//! An object that cannot be read is set aside with the reason, and never hides the others.

use std::time::Duration;

use ::cluster::state::{Key, Kind, Meta, Object, Seen, Unreadable};
use futures::AsyncBufReadExt;
use http::{Request, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::Error;
use crate::cluster::Cluster;

/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How long the server keeps a watch open.
const TIMEOUT: Duration = Duration::from_secs(290);
/// The longest silence before a watch is given up; bookmarks come every minute or so.
const SILENCE: Duration = Duration::from_secs(295);
/// The first wait after a failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(800);
/// The longest wait after failures.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// How often a kind is looked for that the server does not know.
const UNKNOWN_WAIT: Duration = Duration::from_secs(30);

/// Keeps the objects of a kind in the state up to date, for ever.
pub async fn watch(client: Client, cluster: Cluster, kind: Kind) {
    let path = kind.path(cluster.read().provider(), "");
    let mut watch = Watch { client, cluster, kind, path, version: None, streams: true };
    let mut failures = 0_u32;
    loop {
        match watch.run(&mut failures).await {
            // The server ends watches now and then; the next one goes on where this one ended.
            Ok(()) => {}
            Err(error) if error.code() == 410 => watch.version = None,
            Err(error) if error.is_not_found() => {
                if watch.version.is_none() && failures == 0 {
                    tracing::info!(kind = kind.name(), "the server does not know this kind");
                }
                watch.nothing();
                failures = failures.max(1);
                tokio::time::sleep(UNKNOWN_WAIT).await;
            }
            Err(error) => {
                if error.code() == 403 && failures == 0 {
                    // Nothing is decided before this is mended, and only people can mend it.
                    tracing::error!(kind = kind.name(), error = %error, "this kind may not be watched");
                } else {
                    tracing::debug!(kind = kind.name(), error = %error, "watch failed");
                }
                tokio::time::sleep(FIRST_WAIT.saturating_mul(1 << failures.min(10)).min(LAST_WAIT)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

struct Watch {
    client: Client,
    cluster: Cluster,
    kind: Kind,
    path: String,
    /// Where to go on; nothing before the objects were listed.
    version: Option<String>,
    /// Whether the server can stream the objects that exist.
    streams: bool,
}

/// One line of a watch.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    metadata: ObjectMeta,
}

/// What the server says instead of an object when a watch fails.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl Watch {
    async fn run(&mut self, failures: &mut u32) -> Result<(), Error> {
        if self.version.is_none() {
            if self.streams {
                match self.stream(failures).await {
                    Err(error) if refuses_to_stream(&error) => {
                        tracing::debug!(kind = self.kind.name(), "the server does not stream lists");
                        self.streams = false;
                    }
                    other => return other,
                }
            }
            self.list().await?;
            *failures = 0;
        }
        let version = self.version.clone().unwrap_or_default();
        let query = format!("resourceVersion={version}");
        self.follow(&query, false, failures).await
    }

    /// Lets the server stream the objects that exist, and then what changes.
    async fn stream(&mut self, failures: &mut u32) -> Result<(), Error> {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=";
        self.follow(query, true, failures).await
    }

    async fn follow(&mut self, query: &str, mut initial: bool, failures: &mut u32) -> Result<(), Error> {
        let timeout = TIMEOUT.as_secs();
        let uri =
            format!("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={timeout}&{query}", self.path);
        let request = Request::get(uri)
            // Some servers compress each event by itself, which decoders do not expect.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Vec::new())
            .map_err(|error| Error::Other(error.to_string()))?;
        let mut reader = self.client.request_stream(request).await.map_err(Error::from)?;
        if initial {
            self.cluster.observe(Seen::Listing(self.kind));
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = tokio::time::timeout(SILENCE, reader.read_until(b'\n', &mut line)).await;
            match read {
                Err(_) => return Err(Error::NoAnswer("the watch is silent".to_owned())),
                Ok(Err(error)) => return Err(Error::NoAnswer(error.to_string())),
                Ok(Ok(0)) if initial => return Err(Error::NoAnswer("the list is incomplete".to_owned())),
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => {}
            }
            let text = std::str::from_utf8(&line).map_err(|error| Error::Unreadable(error.to_string()))?;
            let Line { kind, object } =
                serde_json::from_str(text).map_err(|error| Error::Unreadable(error.to_string()))?;
            *failures = 0;
            match kind {
                "BOOKMARK" => {
                    let Named { metadata } = serde_json::from_str(object.get())
                        .map_err(|error| Error::Unreadable(error.to_string()))?;
                    let ends =
                        metadata.annotations.as_ref().and_then(|all| all.get("k8s.io/initial-events-end"));
                    if initial && ends.is_some_and(|ends| ends == "true") {
                        self.cluster.observe(Seen::Synced(self.kind));
                        initial = false;
                    }
                    if !initial {
                        self.version = metadata.resource_version;
                    }
                }
                "ERROR" => {
                    let status: Status = serde_json::from_str(object.get())
                        .map_err(|error| Error::Unreadable(error.to_string()))?;
                    let Status { code, reason, message } = status;
                    return Err(Error::Refused { code, reason, message });
                }
                _ => {
                    let Some(object) = self.decode(object) else {
                        if kind == "DELETED" {
                            self.cluster.gone(self.kind, &name_of(object).0, None);
                        }
                        continue;
                    };
                    if !initial {
                        self.version = Some(object.meta().version().to_string());
                    }
                    self.cluster.observe(match kind {
                        "DELETED" => Seen::Deleted(object),
                        _ if initial => Seen::Listed(object),
                        _ => Seen::Applied(object),
                    });
                }
            }
        }
    }

    async fn list(&mut self) -> Result<(), Error> {
        let mut next: Option<String> = None;
        self.cluster.observe(Seen::Listing(self.kind));
        loop {
            let mut uri = format!("{}?limit={PAGE}", self.path);
            if let Some(next) = &next {
                uri.push_str("&continue=");
                uri.push_str(next);
            }
            let request =
                Request::get(uri).body(Vec::new()).map_err(|error| Error::Other(error.to_string()))?;
            let text = self.client.request_text(request).await?;
            let page: Page<'_> =
                serde_json::from_str(&text).map_err(|error| Error::Unreadable(error.to_string()))?;
            for item in page.items.unwrap_or_default() {
                if let Some(object) = self.decode(item) {
                    self.cluster.observe(Seen::Listed(object));
                }
            }
            next = page.metadata.next.filter(|next| !next.is_empty());
            if next.is_none() {
                self.version = Some(page.metadata.resource_version);
                self.cluster.observe(Seen::Synced(self.kind));
                return Ok(());
            }
        }
    }

    /// The server does not know the kind, so there are no objects of it.
    fn nothing(&mut self) {
        self.version = None;
        self.cluster.observe(Seen::Listing(self.kind));
        self.cluster.observe(Seen::Synced(self.kind));
    }

    /// An object that cannot be read is set aside.
    fn decode(&self, json: &RawValue) -> Option<Object> {
        match self.kind.decode(json.get()) {
            Ok(object) => Some(object),
            Err(error) => {
                let (key, uid) = name_of(json);
                // Slower, but it knows the field.
                let why = self.kind.why_not(json.get()).unwrap_or_else(|| error.to_string());
                tracing::error!(kind = self.kind.name(), name = %key, error = %why, "ignoring an object that cannot be read");
                let unreadable = Unreadable { uid, why };
                self.cluster.observe(Seen::Unreadable(self.kind, key, unreadable));
                None
            }
        }
    }
}

/// Where an object is that cannot be read otherwise, and its UID.
fn name_of(json: &RawValue) -> (Key, Box<str>) {
    let named: Result<Named, _> = serde_json::from_str(json.get());
    named.map(|named| (named.metadata.key(), named.metadata.uid().into())).unwrap_or_default()
}

/// Whether the server does not know the parameters of streaming, rather than anything else.
fn refuses_to_stream(error: &Error) -> bool {
    matches!(error.code(), 400 | 403 | 422)
}
