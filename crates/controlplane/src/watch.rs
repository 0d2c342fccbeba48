//! One watch for each kind, all joined into one stream of what was seen.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::{self, BoxStream, SelectAll, Stream, StreamExt};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::cache::Seen;
use crate::names;
use crate::object::{Kind, Lease, Object};

/// Waits between attempts of a watch that fails: doubling from the first to the last.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// Watches every one of `kinds`.
pub(crate) fn all(client: &Client, kinds: &[Kind]) -> SelectAll<BoxStream<'static, Seen>> {
    stream::select_all(kinds.iter().map(|kind| one(client, *kind)))
}

fn one(client: &Client, kind: Kind) -> BoxStream<'static, Seen> {
    let client = client.clone();
    let any = watcher::Config::default;
    let named = |name: &str| any().fields(&format!("metadata.name={name}"));
    match kind {
        Kind::Namespace => watch::<Namespace>(kind, Api::all(client), any()).boxed(),
        Kind::Node => watch::<Node>(kind, Api::all(client), any()).boxed(),
        Kind::Lease => watch::<Lease>(kind, Api::namespaced(client, names::LEASE_NAMESPACE), any()).boxed(),
        Kind::Pod => watch::<Pod>(kind, Api::all(client), any()).boxed(),
        Kind::Deployment => watch::<Deployment>(kind, Api::all(client), any()).boxed(),
        Kind::ReplicaSet => watch::<ReplicaSet>(kind, Api::all(client), any()).boxed(),
        Kind::StatefulSet => watch::<StatefulSet>(kind, Api::all(client), any()).boxed(),
        Kind::DaemonSet => watch::<DaemonSet>(kind, Api::all(client), any()).boxed(),
        Kind::ControllerRevision => watch::<ControllerRevision>(kind, Api::all(client), any()).boxed(),
        Kind::Job => watch::<Job>(kind, Api::all(client), any()).boxed(),
        Kind::PodDisruptionBudget => watch::<PodDisruptionBudget>(kind, Api::all(client), any()).boxed(),
        Kind::CSINode => watch::<CSINode>(kind, Api::all(client), any()).boxed(),
        Kind::StorageClass => watch::<StorageClass>(kind, Api::all(client), any()).boxed(),
        Kind::PersistentVolume => watch::<PersistentVolume>(kind, Api::all(client), any()).boxed(),
        Kind::PersistentVolumeClaim => watch::<PersistentVolumeClaim>(kind, Api::all(client), any()).boxed(),
        Kind::ServiceAccount => watch::<ServiceAccount>(kind, Api::all(client), named("default")).boxed(),
        Kind::ConfigMap => watch::<ConfigMap>(kind, Api::all(client), named(names::ROOT_CA)).boxed(),
    }
}

/// Watches a kind for ever, waiting longer and longer while it fails.
///
/// Each attempt to list begins with a success, so only what comes after it ends a series of failures.
fn watch<K>(kind: Kind, api: Api<K>, config: watcher::Config) -> impl Stream<Item = Seen> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    Object: From<K>,
{
    let start = move || watcher::watcher(api.clone(), config.clone()).boxed();
    let events = start();
    stream::unfold((events, start, 0_u32), move |(mut events, start, mut failures)| async move {
        loop {
            match events.next().await? {
                Ok(event) => {
                    if !matches!(event, Event::Init) {
                        failures = 0;
                    }
                    let seen = match event {
                        Event::Init => Seen::Listing(kind),
                        Event::InitApply(object) => Seen::Listed(object.into()),
                        Event::InitDone => Seen::Synced(kind),
                        Event::Apply(object) => Seen::Applied(object.into()),
                        Event::Delete(object) => Seen::Deleted(object.into()),
                    };
                    return Some((seen, (events, start, failures)));
                }
                // The watcher would ask for the forgotten version for ever.
                Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410 => {
                    events = start();
                }
                Err(_) => {}
            }
            let (first, last) = BACKOFF;
            tokio::time::sleep(first.saturating_mul(1 << failures.min(10)).min(last)).await;
            failures = failures.saturating_add(1);
        }
    })
}
