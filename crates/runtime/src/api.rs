//! Writes to the API server. What the server answers goes into the state before anybody decides again.

use std::sync::Arc;
use std::time::Duration;

use ::cluster::state::{Key, Kind, Watched};
use api::provider::Provider;
use http::{Method, Request};
use kube::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::limit::Limiter;

/// Who writes, as managed fields name it.
pub const MANAGER: &str = "karpenter";
/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_mins(1);
/// How many objects a page of a list has.
pub(crate) const PAGE: u32 = 500;
/// The reason of a 404 that is not about an object: the server does not serve the kind, or a proxy is lost.
const NOT_SERVED: &str = "NotServed";

/// Why a request did not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The server refused it.
    #[error("{message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The reason, as one word.
        reason: String,
        /// What the server says.
        message: String,
    },
    /// There was no answer.
    #[error("no answer from the API server: {0}")]
    NoAnswer(String),
    /// The answer makes no sense.
    #[error("the API server's answer cannot be read: {0}")]
    Unreadable(String),
    /// Something other than the API server failed.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// The HTTP status code; zero if there was no answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused { code, .. } => *code,
            Self::NoAnswer(_) | Self::Unreadable(_) | Self::Other(_) => 0,
        }
    }

    /// Whether there is no such object.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// Whether the server knows the kind and has no such object. A 404 can also mean that the kind is not served at
    /// present, which says nothing about objects.
    fn is_object_gone(&self) -> bool {
        matches!(self, Self::Refused { code: 404, reason, .. } if reason != NOT_SERVED)
    }

    /// Whether the object has changed meanwhile, or exists already.
    pub fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// Whether somebody else was faster: the object has changed or is gone, so it is looked at again anyway.
    pub fn is_outrun(&self) -> bool {
        self.is_conflict() || self.is_not_found()
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let names_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
                let is_served = status.code != 404 || names_object;
                Self::Refused {
                    code: status.code,
                    reason: if is_served { status.reason.clone() } else { NOT_SERVED.to_owned() },
                    message: status.message.clone(),
                }
            }
            kube::Error::SerdeError(error) => Self::Unreadable(error.to_string()),
            error => Self::NoAnswer(error.to_string()),
        }
    }
}

/// Waits for an answer, but not for ever: a connection can die without a word.
pub(crate) async fn answered<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
    match tokio::time::timeout(ANSWER, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Error::NoAnswer(format!("nothing came for {} s", ANSWER.as_secs()))),
    }
}

/// A page of a list.
#[derive(Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) metadata: PageMeta,
    pub(crate) items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMeta {
    #[serde(default)]
    pub(crate) resource_version: String,
    #[serde(default, rename = "continue")]
    pub(crate) next: Option<String>,
}

/// Writes to the API server. Clones share everything.
#[derive(Clone)]
pub struct Api {
    client: Client,
    cluster: Cluster,
    provider: Provider,
    limiter: Arc<Limiter>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl Api {
    /// Writes through a client, at most as often as the limiter allows.
    pub fn new(client: Client, cluster: Cluster, provider: Provider, limiter: Arc<Limiter>) -> Self {
        Self { client, cluster, provider, limiter }
    }

    /// The client, for requests about what is not in the state.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The path of an object.
    pub fn path(&self, kind: Kind, key: &Key) -> String {
        format!("{}/{}", kind.path(self.provider, &key.namespace), key.name)
    }

    /// Creates an object; its kind and API version are added.
    pub async fn create<K: Watched>(
        &self,
        namespace: &str,
        object: &impl Serialize,
    ) -> Result<Arc<K>, Error> {
        let mut body = serde_json::to_value(object).map_err(|error| Error::Other(error.to_string()))?;
        let kind = if K::KIND == Kind::NodeClass { self.provider.node_class().kind } else { K::KIND.name() };
        body["apiVersion"] = K::KIND.api_version(self.provider).into();
        body["kind"] = kind.into();
        let path = format!("{}?fieldManager={MANAGER}", K::KIND.path(self.provider, namespace));
        let created: K = self.send(Method::POST, &path, "application/json", &body).await?;
        Ok(self.cluster.answer(created))
    }

    /// Changes an object by a merge patch. With `metadata.resourceVersion` in it, only if nobody else was faster.
    pub async fn patch<K: Watched>(&self, key: &Key, change: &Value) -> Result<Arc<K>, Error> {
        self.patch_at(key, "", change).await
    }

    /// Changes the status of an object by a merge patch.
    pub async fn patch_status<K: Watched>(&self, key: &Key, change: &Value) -> Result<Arc<K>, Error> {
        self.patch_at(key, "/status", change).await
    }

    /// Changes an object by a strategic merge patch, which adds to lists. Custom resources have none.
    pub async fn patch_strategic<K: Watched>(&self, key: &Key, change: &Value) -> Result<Arc<K>, Error> {
        self.patch_with(key, "", "application/strategic-merge-patch+json", change).await
    }

    async fn patch_at<K: Watched>(&self, key: &Key, part: &str, change: &Value) -> Result<Arc<K>, Error> {
        self.patch_with(key, part, "application/merge-patch+json", change).await
    }

    async fn patch_with<K: Watched>(
        &self,
        key: &Key,
        part: &str,
        content_type: &str,
        change: &Value,
    ) -> Result<Arc<K>, Error> {
        let path = format!("{}{part}?fieldManager={MANAGER}", self.path(K::KIND, key));
        let patched = self.send(Method::PATCH, &path, content_type, change).await;
        match patched {
            Ok(patched) => Ok(self.cluster.answer::<K>(patched)),
            Err(error) => {
                self.note_absence(K::KIND, key, None, &error);
                Err(error)
            }
        }
    }

    /// Asks for the deletion of an object, of that very one.
    pub async fn delete<K: Watched>(&self, object: &K) -> Result<(), Error> {
        self.delete_within(object, None).await
    }

    /// As [`Api::delete`], unless somebody else has changed the object.
    pub async fn delete_unchanged<K: Watched>(&self, object: &K) -> Result<(), Error> {
        let version = object.meta().version().to_string();
        self.delete_with(object, json!({"preconditions": {"resourceVersion": version}})).await
    }

    /// Asks for the deletion of an object, which gets `grace` seconds to stop.
    pub async fn delete_within<K: Watched>(&self, object: &K, grace: Option<i64>) -> Result<(), Error> {
        let options = grace.map_or_else(|| json!({}), |grace| json!({"gracePeriodSeconds": grace}));
        self.delete_with(object, options).await
    }

    async fn delete_with<K: Watched>(&self, object: &K, mut options: Value) -> Result<(), Error> {
        let (key, uid) = (object.key(), object.meta().uid().to_owned());
        options["apiVersion"] = "v1".into();
        options["kind"] = "DeleteOptions".into();
        options["preconditions"]["uid"] = uid.as_str().into();
        let path = self.path(K::KIND, &key);
        match self.send::<Value>(Method::DELETE, &path, "application/json", &options).await {
            Ok(_) => {
                self.cluster.doom(K::KIND, &key, &uid);
                Ok(())
            }
            Err(error) => {
                self.note_absence(K::KIND, &key, Some(&uid), &error);
                Err(error)
            }
        }
    }

    /// Asks for the eviction of a pod, of that very one.
    pub async fn evict(&self, pod: &Key, uid: &str) -> Result<(), Error> {
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        });
        let path = format!("{}/eviction", self.path(Kind::Pod, pod));
        match self.send::<Value>(Method::POST, &path, "application/json", &body).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.note_absence(Kind::Pod, pod, Some(uid), &error);
                Err(error)
            }
        }
    }

    fn note_absence(&self, kind: Kind, key: &Key, uid: Option<&str>, error: &Error) {
        if error.is_object_gone() {
            self.cluster.gone(kind, key, uid);
        }
    }

    /// The object of a kind at a key as the server has it now, whatever the state says.
    pub async fn read<K: Watched>(&self, key: &Key) -> Result<Option<K>, Error> {
        match self.get(&self.path(K::KIND, key)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_object_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind as the server has them now, whatever the state says. One that cannot be read fails the
    /// list: what is missing in it proves something.
    pub async fn list<K: Watched>(&self) -> Result<Vec<K>, Error> {
        let mut all = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let mut path = format!("{}?limit={PAGE}", K::KIND.path(self.provider, ""));
            if let Some(next) = &next {
                path.push_str("&continue=");
                path.push_str(next);
            }
            let page: Page<K> = self.get(&path).await?;
            all.extend(page.items.unwrap_or_default());
            next = page.metadata.next.filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Asks for anything else.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.send(Method::GET, path, "", &Value::Null).await
    }

    /// Sends a request; the answer does not go into the state.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<T, Error> {
        self.limiter.acquire().await;
        let mut request = Request::builder().method(method).uri(path);
        if !content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(body).map_err(|error| Error::Other(error.to_string()))?;
        let text = answered(self.client.request_text(request)).await?;
        serde_json::from_str(&text).map_err(|error| Error::Unreadable(error.to_string()))
    }
}
