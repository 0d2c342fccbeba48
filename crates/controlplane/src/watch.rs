//! One watch for each kind, all joined into one stream of what was seen.
//!
//! Watches do not know the types of what they watch: each type is read in one place, [`Kind::parse`], and the code
//! that reads Kubernetes' types is large.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{self, BoxStream, SelectAll, StreamExt};
use futures::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::Seen;
use crate::names;
use crate::object::Kind;

/// Waits between attempts of a watch that fails: doubling from the first to the last.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How many seconds the server keeps a watch open.
const TIMEOUT: u32 = 290;

/// Watches every one of `kinds`.
pub(crate) fn all(client: &Client, kinds: &[Kind]) -> SelectAll<BoxStream<'static, Seen>> {
    stream::select_all(kinds.iter().map(|kind| one(client, *kind)))
}

/// Watches a kind for ever, waiting longer and longer while it fails.
fn one(client: &Client, kind: Kind) -> BoxStream<'static, Seen> {
    let namespace = if kind == Kind::Lease { names::LEASE_NAMESPACE } else { "" };
    let selector = match kind {
        Kind::ServiceAccount => "&fieldSelector=metadata.name%3Ddefault".to_owned(),
        Kind::ConfigMap => format!("&fieldSelector=metadata.name%3D{}", names::ROOT_CA),
        _ => String::new(),
    };
    let watch = Watch {
        client: client.clone(),
        kind,
        url: kind.url(namespace),
        selector,
        next: Next::Start,
        version: String::new(),
        seen: VecDeque::new(),
        failures: 0,
    };
    stream::unfold(watch, |mut watch| async move {
        let seen = watch.seen().await;
        Some((seen, watch))
    })
    .boxed()
}

struct Watch {
    client: Client,
    kind: Kind,
    url: String,
    /// Which of the objects, as the end of a query.
    selector: String,
    next: Next,
    /// What is known already, once all was listed.
    version: String,
    /// What was seen and not told yet.
    seen: VecDeque<Seen>,
    /// How often in a row it has failed.
    failures: u32,
}

/// What is to be done next.
enum Next {
    /// Say that all objects are going to be listed: what is created from now on may be missing in the list.
    Start,
    /// Ask for a page of the list, the first one or one that continues another.
    List(Option<String>),
    /// Ask for what changes from now on.
    Watch,
    Follow(Lines),
}

/// The lines of a running watch.
struct Lines {
    reader: Pin<Box<dyn AsyncBufRead + Send>>,
    line: Vec<u8>,
    /// Whether there was a line at all.
    any: bool,
}

/// Why a step was in vain.
enum Failure {
    /// The server has forgotten the version.
    Expired,
    Other,
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 410 => Self::Expired,
            _ => Self::Other,
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(_: serde_json::Error) -> Self {
        Self::Other
    }
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

/// One line of a watch.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The object of a bookmark.
#[derive(Deserialize)]
struct Bookmark {
    metadata: PageMeta,
}

/// What the server says instead of an object when a watch fails.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

impl Watch {
    /// Waits for what is seen next.
    async fn seen(&mut self) -> Seen {
        loop {
            if let Some(seen) = self.seen.pop_front() {
                return seen;
            }
            let next = std::mem::replace(&mut self.next, Next::Start);
            let again = match &next {
                // A list is begun anew.
                Next::Start | Next::List(_) => Next::Start,
                Next::Watch | Next::Follow(_) => Next::Watch,
            };
            match self.step(next).await {
                Ok(next) => self.next = next,
                Err(failure) => {
                    self.next = if matches!(failure, Failure::Expired) { Next::Start } else { again };
                    let (first, last) = BACKOFF;
                    tokio::time::sleep(first.saturating_mul(1 << self.failures.min(10)).min(last)).await;
                    self.failures = self.failures.saturating_add(1);
                }
            }
        }
    }

    async fn step(&mut self, next: Next) -> Result<Next, Failure> {
        match next {
            Next::Start => {
                self.seen.push_back(Seen::Listing(self.kind));
                Ok(Next::List(None))
            }
            Next::List(page) => self.list(page).await,
            Next::Watch => {
                let since = &self.version;
                let query = format!(
                    "watch=true&allowWatchBookmarks=true&timeoutSeconds={TIMEOUT}&resourceVersion={since}"
                );
                let reader = self.client.request_stream(self.request(&query)?).await?;
                Ok(Next::Follow(Lines { reader: Box::pin(reader), line: Vec::new(), any: false }))
            }
            Next::Follow(lines) => self.follow(lines).await,
        }
    }

    fn request(&self, query: &str) -> Result<Request<Vec<u8>>, Failure> {
        let uri = format!("{}?{query}{}", self.url, self.selector);
        Request::get(uri).body(Vec::new()).map_err(|_| Failure::Other)
    }

    async fn list(&mut self, page: Option<String>) -> Result<Next, Failure> {
        let from = page.map(|page| format!("&continue={page}")).unwrap_or_default();
        let text = self.client.request_text(self.request(&format!("limit={PAGE}{from}"))?).await?;
        let page: Page<'_> = serde_json::from_str(&text)?;
        self.failures = 0;
        let objects = page.items.iter().flatten().filter_map(|item| self.kind.parse(item.get()).ok());
        self.seen.extend(objects.map(Seen::Listed));
        if page.metadata.next.as_ref().is_some_and(|next| !next.is_empty()) {
            return Ok(Next::List(page.metadata.next));
        }
        self.seen.push_back(Seen::Synced(self.kind));
        self.version = page.metadata.resource_version;
        Ok(Next::Watch)
    }

    async fn follow(&mut self, mut lines: Lines) -> Result<Next, Failure> {
        lines.line.clear();
        let read = lines.reader.read_until(b'\n', &mut lines.line).await.map_err(|_| Failure::Other)?;
        if read == 0 {
            // The server ends watches now and then; one that never says anything is not asked again at once.
            return if lines.any { Ok(Next::Watch) } else { Err(Failure::Other) };
        }
        let text = std::str::from_utf8(&lines.line).map_err(|_| Failure::Other)?;
        let Line { kind, object } = serde_json::from_str(text)?;
        match kind {
            "BOOKMARK" => {
                let Bookmark { metadata } = serde_json::from_str(object.get())?;
                self.version = metadata.resource_version;
            }
            "ERROR" => {
                let Status { code } = serde_json::from_str(object.get())?;
                return Err(if code == 410 { Failure::Expired } else { Failure::Other });
            }
            _ => {
                // One that cannot be read never hides the others.
                if let Ok(object) = self.kind.parse(object.get()) {
                    if let Some(version) = &object.meta().resource_version {
                        self.version.clone_from(version);
                    }
                    let is_gone = kind == "DELETED";
                    self.seen.push_back(if is_gone { Seen::Deleted(object) } else { Seen::Applied(object) });
                }
            }
        }
        self.failures = 0;
        lines.any = true;
        Ok(Next::Follow(lines))
    }
}
