//! A cluster's API server: how it is made and what it starts with.

use std::sync::{Arc, Mutex};

use clock::Clock;
use serde_json::{Value, json};

use crate::request::{ObjectPath, Request, Route};
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
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, history: HISTORY }
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
        let state = State::new(clock, options.seed, options.history);
        let server = Self { service: Service { state: Arc::new(Mutex::new(state)) } };
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.bootstrap("", "namespaces", object);
        }
        for (name, value) in [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)] {
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

    /// Ends all watches, as a restart of the server would.
    pub fn cut_watches(&self) {
        self.service.lock().store.cut_watches(None);
    }

    /// Forgets the history, so that watches from before are refused with 410.
    pub fn compact(&self) {
        self.service.lock().store.compact();
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
