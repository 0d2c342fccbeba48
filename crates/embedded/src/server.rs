//! A cluster's API server: how it is made and what it starts with.

use std::sync::{Arc, Mutex};

use clock::Clock;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::refusal::Refusal;
use crate::request::{ObjectPath, Query, Request, Route};
use crate::resources::Resource;
use crate::service::Service;
use crate::state::State;
use crate::write::Write;

/// How many changes of each resource are remembered for watches that reconnect.
const HISTORY: usize = 4096;

/// What a server is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where random names and UIDs come from; the same seed gives the same cluster.
    pub seed: u64,
    /// How many changes of each resource are remembered.
    pub history: usize,
    /// Whether new nodes are tainted as not ready, as the admission plugin TaintNodesByCondition does; for clusters
    /// with a controller that takes the taint away.
    pub taint_new_nodes: bool,
    /// Whether the server keeps the status of ResourceQuotas itself, which a controller does elsewhere.
    pub keep_quotas: bool,
}

impl Options {
    /// What suits a cluster with a scheduler and controllers, in which the server does what is left.
    pub fn of_cluster() -> Self {
        Self { taint_new_nodes: true, keep_quotas: true, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, history: HISTORY, taint_new_nodes: false, keep_quotas: false }
    }
}

/// An API server with its cluster.
#[derive(Clone, Debug)]
pub struct Server {
    service: Service,
}

impl Server {
    /// A new cluster with the namespaces and priority classes that every cluster has.
    pub fn new(clock: Clock, options: &Options) -> Self {
        let state = State::new(clock, options);
        let server = Self { service: Service { state: Arc::new(Mutex::new(state)) } };
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.bootstrap("", "namespaces", object);
        }
        for (name, value) in
            [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
        {
            let object = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                "value": value,
            });
            server.bootstrap("scheduling.k8s.io", "priorityclasses", object);
        }
        server
    }

    /// The server as a service that clients are made of.
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// How many objects there are.
    pub fn object_count(&self) -> usize {
        self.service.lock().store.len()
    }

    /// The revision of the latest change.
    pub fn revision(&self) -> u64 {
        self.service.lock().store.revision()
    }

    /// Keeps a fingerprint of every change from now on.
    pub fn keep_digest(&self) {
        self.service.lock().store.keep_digest();
    }

    /// The fingerprint of all changes since [`Server::keep_digest`]: equal for equal histories.
    pub fn digest(&self) -> Option<u64> {
        self.service.lock().store.digest()
    }

    /// Ends all watches, as a restart of the server would.
    pub fn cut_watches(&self) {
        self.service.lock().store.cut_watches();
    }

    /// Forgets the history, so that watches from before are refused with 410.
    pub fn compact(&self) {
        self.service.lock().store.compact();
    }

    /// Sends one request and waits for the whole answer; not for watches, whose answer has no end.
    ///
    /// `target` is a path with its query.
    pub fn send(
        &self,
        method: Method,
        target: &str,
        content_type: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        match self.ask(method, target, content_type, "karpenter", body) {
            Ok(answer) => (answer.code, answer.value()),
            Err(refusal) => (refusal.code, refusal.status()),
        }
    }

    fn ask(
        &self,
        method: Method,
        target: &str,
        content_type: &str,
        agent: &str,
        body: &Value,
    ) -> Result<Answer, Refusal> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request::internal(Route::of(path), agent);
        request.method = method;
        request.query = Query::of(query);
        content_type.clone_into(&mut request.content_type);
        if !body.is_null() {
            request.body = body.to_string().into();
        }
        self.service.answer(&request)
    }

    /// Creates or changes an object by server-side apply.
    pub fn apply(&self, object: &Value, manager: &str) -> Result<Value, Refusal> {
        let path = self.path_of(object).ok_or_else(Refusal::no_such_path)?;
        let target = format!("{path}?fieldManager={manager}&force=true");
        let mut object = object.clone();
        if let Some(namespace) = self.namespace_of(&object) {
            object["metadata"]["namespace"] = Value::from(namespace);
        }
        let answer = self.ask(Method::PATCH, &target, "application/apply-patch+yaml", manager, &object)?;
        Ok(answer.value())
    }

    /// Where an object lives; nothing when its kind is not served.
    ///
    /// Objects without a namespace are in `default`.
    pub fn path_of(&self, object: &Value) -> Option<String> {
        let resource = self.resource_of(object)?;
        let name = object["metadata"]["name"].as_str()?;
        let prefix = if resource.group.is_empty() { "/api" } else { "/apis" };
        let api_version = resource.api_version();
        let plural = &resource.plural;
        Some(match self.namespace_of(object) {
            Some(namespace) => format!("{prefix}/{api_version}/namespaces/{namespace}/{plural}/{name}"),
            None => format!("{prefix}/{api_version}/{plural}/{name}"),
        })
    }

    fn namespace_of(&self, object: &Value) -> Option<String> {
        let resource = self.resource_of(object)?;
        let stated = object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        resource.namespaced.then(|| stated.unwrap_or("default").to_owned())
    }

    fn resource_of(&self, object: &Value) -> Option<Arc<Resource>> {
        let api_version = object["apiVersion"].as_str()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.service.lock().registry.by_kind(group, version, object["kind"].as_str()?)
    }

    fn bootstrap(&self, group: &str, plural: &str, object: Value) {
        let mut state = self.service.lock();
        let Some(resource) = state.registry.get(group, "v1", plural) else { return };
        let path = ObjectPath { plural: plural.to_owned(), ..ObjectPath::default() };
        let request = Request::internal(Route::Objects(path.clone()), "kube-apiserver");
        // What the server itself needs is valid.
        let _ = Write::new(&request, &resource, &path).create(&mut state, object);
    }
}
