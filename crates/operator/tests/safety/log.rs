//! What happens in a cluster, in order: every change of every object, and what the operator asks the server for.

use std::sync::Arc;
use std::task::{Context, Poll};

use clock::Clock;
use embedded::Server;
use embedded::faults::Faulty;
use futures::StreamExt as _;
use http::{Method, Request};
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::Service;

/// The kinds that are watched: group, version, plural and kind.
pub(crate) const KINDS: [Named; 6] = [
    ("", "v1", "pods", "Pod"),
    ("", "v1", "nodes", "Node"),
    ("", "v1", "events", "Event"),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    ("karpenter.sh", "v1", "nodeclaims", "NodeClaim"),
    ("karpenter.sh", "v1", "nodepools", "NodePool"),
];

/// The group, version, plural and kind of objects.
pub(crate) type Named = (&'static str, &'static str, &'static str, &'static str);

/// How a client asks for objects.
pub(crate) fn resource((group, version, plural, kind): Named) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When.
    pub(crate) at: Timestamp,
    /// After which change of the cluster, or as which.
    pub(crate) revision: u64,
    /// What.
    pub(crate) what: What,
}

/// What can happen.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An object is there, as it is now.
    Applied(Value),
    /// An object is gone.
    Gone(Value),
    /// The operator has sent a request that is no read.
    Asked(Method, String),
}

/// What has happened and was not looked at yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Entry>>>);

impl Log {
    /// What has happened since the last time, in order.
    pub(crate) fn take(&self) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut *self.0.lock());
        // Watches of several kinds know nothing of each other; what was asked for came after what there was.
        entries.sort_by_key(|entry| (entry.revision, matches!(entry.what, What::Asked(..))));
        entries
    }

    fn add(&self, at: Timestamp, revision: u64, what: What) {
        self.0.lock().push(Entry { at, revision, what });
    }

    /// Notes every change of a kind until the world ends.
    pub(crate) async fn watch(self, client: kube::Client, clock: Clock, named: Named) {
        let (.., kind) = named;
        let api: Api<DynamicObject> = Api::all_with(client, &resource(named));
        let mut since = "0".to_owned();
        loop {
            let Ok(stream) = api.watch(&WatchParams::default().timeout(290), &since).await else { continue };
            let mut stream = Box::pin(stream);
            while let Some(Ok(event)) = stream.next().await {
                let (object, is_gone) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                };
                let mut object = serde_json::to_value(object).expect("it was JSON before");
                object["kind"] = kind.into();
                object["metadata"]["resourceVersion"].as_str().unwrap_or("0").clone_into(&mut since);
                let revision = since.parse().unwrap_or(0);
                let what = if is_gone { What::Gone(object) } else { What::Applied(object) };
                self.add(clock.now(), revision, what);
            }
        }
    }
}

/// The way from the operator to the server, with faults; what passes is noted.
#[derive(Clone)]
pub(crate) struct Noted {
    pub(crate) inner: Faulty,
    pub(crate) server: Server,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
}

impl Service<Request<Body>> for Noted {
    type Response = <Faulty as Service<Request<Body>>>::Response;
    type Error = <Faulty as Service<Request<Body>>>::Error;
    type Future = <Faulty as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.method() != Method::GET {
            let what = What::Asked(request.method().clone(), request.uri().path().to_owned());
            self.log.add(self.clock.now(), self.server.revision(), what);
        }
        self.inner.call(request)
    }
}
