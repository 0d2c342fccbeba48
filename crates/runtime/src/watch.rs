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
use tokio::time::Instant;

use crate::api::{Error, PAGE, Page, answered};
use crate::cluster::Cluster;

/// How long the server keeps a watch open.
const TIMEOUT: Duration = Duration::from_secs(290);
/// The longest silence before a watch is taken up again; bookmarks come every minute or so.
const SILENCE: Duration = Duration::from_mins(2);
/// A watch that ends sooner, and without a word, has failed.
const TOO_SHORT: Duration = Duration::from_secs(5);
/// The first wait after a failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(800);
/// The longest wait after failures.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// After how many failures in a row the objects are listed again: the server may not know our version any more.
const LIST_AGAIN: u32 = 3;

/// Keeps the objects of a kind in the state up to date, for ever.
///
/// What was listed once is never forgotten because of an error, not even if the server denies that the kind exists:
/// the kind is stale until the server answers again.
pub async fn watch(client: Client, cluster: Cluster, kind: Kind) {
    let path = kind.path(cluster.read().provider(), "");
    let mut watch = Watch {
        client,
        cluster,
        kind,
        path,
        version: None,
        streams: true,
        was_listed: false,
        is_stale: false,
        failures: 0,
    };
    loop {
        // The server ends watches now and then; the next one goes on where this one ended.
        if let Err(error) = watch.run().await {
            watch.failed(&error).await;
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
    /// Whether the objects have ever been listed.
    was_listed: bool,
    /// Whether the state has been told that the kind is stale.
    is_stale: bool,
    /// How often it has failed in a row.
    failures: u32,
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
    async fn run(&mut self) -> Result<(), Error> {
        if self.version.is_none() {
            if self.streams {
                match self.stream().await {
                    Err(error) if refuses_to_stream(&error) => {
                        tracing::debug!(kind = self.kind.name(), "the server does not stream lists");
                        self.streams = false;
                    }
                    other => return other,
                }
            }
            // What was refused may have been more than streaming.
            self.list().await.inspect_err(|_| self.streams = true)?;
        }
        let version = self.version.clone().unwrap_or_default();
        let query = format!("resourceVersion={version}");
        self.follow(&query, false).await
    }

    /// Notes a failure, and waits until the next try.
    async fn failed(&mut self, error: &Error) {
        let kind = self.kind.name();
        self.failures = self.failures.saturating_add(1);
        if error.code() == 410 {
            // The server has forgotten the version. It lists everything again.
            self.version = None;
            if self.failures == 1 {
                return;
            }
        }
        if self.failures >= LIST_AGAIN {
            self.version = None;
        }
        let wait = FIRST_WAIT.saturating_mul(1 << (self.failures - 1).min(10)).min(LAST_WAIT);
        if !self.was_listed && error.is_not_found() && self.kind.is_optional() {
            if self.failures == 1 {
                tracing::info!(kind, "the server does not know this kind");
            }
            // There are no objects of it, then.
            self.cluster.observe(Seen::Listing(self.kind));
            self.cluster.observe(Seen::Synced(self.kind, 0));
            tokio::time::sleep(LAST_WAIT).await;
            return;
        }
        if self.is_stale {
            tracing::debug!(kind, error = %error, "watch failed");
        } else if self.was_listed {
            tracing::warn!(kind, error = %error, "watch failed, going on with what is known");
        } else {
            // Nothing is decided before this is mended.
            tracing::error!(kind, error = %error, "this kind cannot be watched");
        }
        self.is_stale = true;
        self.cluster.set_stale(self.kind, error.to_string());
        tokio::time::sleep(wait).await;
    }

    /// Notes that the server has answered.
    fn works(&mut self) {
        self.failures = 0;
        if std::mem::take(&mut self.is_stale)
            && let Some(stale) = self.cluster.set_fresh(self.kind)
        {
            tracing::info!(kind = self.kind.name(), "stale-seconds" = stale.as_secs(), "watch works again");
        }
    }

    /// Notes that all objects have been listed.
    fn synced(&mut self, version: Option<String>) {
        let number = version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default();
        self.works();
        self.cluster.observe(Seen::Synced(self.kind, number));
        self.was_listed = true;
        self.version = version;
    }

    /// Notes how far the watch has come. It never goes back, unless the server has lost history, as after a restore.
    fn advance(&mut self, version: u64) -> Result<(), Error> {
        let reached = self.version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0);
        if version < reached {
            let message = format!("the server went back from version {reached} to {version}");
            return Err(Error::Refused { code: 410, reason: "Expired".to_owned(), message });
        }
        self.version = Some(version.to_string());
        Ok(())
    }

    /// Lets the server stream the objects that exist, and then what changes.
    async fn stream(&mut self) -> Result<(), Error> {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=";
        self.follow(query, true).await
    }

    async fn follow(&mut self, query: &str, mut initial: bool) -> Result<(), Error> {
        let timeout = TIMEOUT.as_secs();
        let uri =
            format!("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={timeout}&{query}", self.path);
        let request = Request::get(uri)
            // Some servers compress each event by itself, which decoders do not expect.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Vec::new())
            .map_err(|error| Error::Other(error.to_string()))?;
        let start = Instant::now();
        let mut reader = answered(self.client.request_stream(request)).await?;
        if initial {
            self.cluster.observe(Seen::Listing(self.kind));
        } else {
            // The server goes on from our version: what is known is what there is.
            self.works();
        }
        let mut line = Vec::new();
        let mut is_first = true;
        loop {
            line.clear();
            let read = tokio::time::timeout(SILENCE, reader.read_until(b'\n', &mut line)).await;
            match read {
                Err(_) => return Err(Error::NoAnswer("the watch is silent".to_owned())),
                Ok(Err(error)) => return Err(Error::NoAnswer(error.to_string())),
                Ok(Ok(0)) if initial => return Err(Error::NoAnswer("the list is incomplete".to_owned())),
                Ok(Ok(0)) if is_first && start.elapsed() < TOO_SHORT => {
                    return Err(Error::NoAnswer("the server ended the watch at once".to_owned()));
                }
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => is_first = false,
            }
            let text = std::str::from_utf8(&line).map_err(|error| Error::Unreadable(error.to_string()))?;
            let Line { kind, object } =
                serde_json::from_str(text).map_err(|error| Error::Unreadable(error.to_string()))?;
            match kind {
                "BOOKMARK" => {
                    let Named { metadata } = serde_json::from_str(object.get())
                        .map_err(|error| Error::Unreadable(error.to_string()))?;
                    let ends =
                        metadata.annotations.as_ref().and_then(|all| all.get("k8s.io/initial-events-end"));
                    if initial && ends.is_some_and(|ends| ends == "true") {
                        self.synced(metadata.resource_version);
                        initial = false;
                    } else if !initial {
                        self.advance(metadata.version())?;
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
                        self.advance(object.meta().version())?;
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
            let text = answered(self.client.request_text(request)).await?;
            let page: Page<&RawValue> =
                serde_json::from_str(&text).map_err(|error| Error::Unreadable(error.to_string()))?;
            for item in page.items.unwrap_or_default() {
                if let Some(object) = self.decode(item) {
                    self.cluster.observe(Seen::Listed(object));
                }
            }
            next = page.metadata.next.filter(|next| !next.is_empty());
            if next.is_none() {
                self.synced(Some(page.metadata.resource_version));
                return Ok(());
            }
        }
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
