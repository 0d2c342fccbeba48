//! The cluster and what can be said about it.

use std::fmt::Write as _;
use std::future::Future;
use std::time::Duration;

use clock::Clock;
use controlplane::{KubeletOptions, NodeSelection, Options};
use embedded::Server;
use embedded::faults::{Faulty, Rule};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// When worlds begin: a Monday morning, long after the epoch so that ages and schedules look real.
const BEGINNING: &str = "2026-01-05T09:00:00Z";
/// How often a condition is looked at while the world runs until it holds.
const LOOK: Duration = Duration::from_secs(1);

/// Says how a world is made.
#[derive(Clone, Debug)]
pub struct Builder {
    seed: u64,
    faults: Vec<Rule>,
    options: Options,
}

impl Builder {
    /// Makes the cluster's own controllers and kubelets suffer these faults.
    #[must_use]
    pub fn faults(mut self, rules: Vec<Rule>) -> Self {
        self.faults = rules;
        self
    }

    /// How the simulated kubelets behave.
    #[must_use]
    pub fn kubelet(mut self, options: KubeletOptions) -> Self {
        self.options.kubelet = Some(options);
        self
    }

    /// Leaves the scheduler out: pods stay where they are.
    #[must_use]
    pub fn without_scheduler(mut self) -> Self {
        self.options.scheduler = false;
        self
    }

    /// Starts the cluster.
    pub fn start(self) -> World {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime on this thread needs nothing that could be missing");
        let entered = runtime.enter();
        let beginning = BEGINNING.parse().expect("the beginning is a time");
        let clock = Clock::starting_at(beginning);
        let options = embedded::Options {
            seed: self.seed,
            taint_new_nodes: self.options.node_lifecycle,
            keep_quotas: true,
            ..embedded::Options::default()
        };
        let server = Server::new(clock, &options);
        let faulty = Faulty::new(server.service(), self.seed);
        faulty.set_rules(self.faults);
        let client = kube::Client::new(faulty.clone(), "default");
        let mut options = self.options;
        options.seed = self.seed;
        let controllers = runtime.spawn(async move {
            // It runs until the world ends; what could stop it is a defect that the test sees as silence.
            let _ = controlplane::run(client, clock, options).await;
        });
        drop(entered);
        World { controllers, server, faulty, clock, runtime }
    }
}

/// A cluster in virtual time.
pub struct World {
    // Dropped first: the tasks end before what they use.
    controllers: JoinHandle<()>,
    server: Server,
    faulty: Faulty,
    clock: Clock,
    runtime: Runtime,
}

impl World {
    /// A cluster with scheduler, workload controllers and simulated kubelets on every node.
    pub fn new(seed: u64) -> Self {
        Self::builder(seed).start()
    }

    /// A cluster to be described.
    pub fn builder(seed: u64) -> Builder {
        let kubelet = KubeletOptions { nodes: NodeSelection::All, ..KubeletOptions::default() };
        let options = Options { kubelet: Some(kubelet), ..Options::default() };
        Builder { seed, faults: Vec::new(), options }
    }

    /// A client of the cluster; it suffers no faults.
    pub fn client(&self) -> kube::Client {
        let _entered = self.runtime.enter();
        kube::Client::new(self.server.service(), "default")
    }

    /// The cluster's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The API server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Replaces the faults that the cluster's own controllers suffer.
    pub fn set_faults(&self, rules: Vec<Rule>) {
        self.faulty.set_rules(rules);
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        // Outside the runtime the clock would show real time.
        let _entered = self.runtime.enter();
        self.clock.now()
    }

    /// Runs something asynchronous in the world's time.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Lets something run beside the cluster until the world ends.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime.spawn(future)
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// Lets time pass until `holds`, at most for `limit`.
    #[track_caller]
    pub fn run_until(&mut self, what: &str, limit: Duration, mut holds: impl FnMut(&Self) -> bool) {
        let end = self.now() + limit;
        while !holds(self) {
            assert!(self.now() < end, "after {limit:?}, still not: {what}\n{}", self.describe());
            self.run_for(LOOK);
        }
    }

    /// Applies manifests.
    #[track_caller]
    pub fn apply(&self, yaml: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).expect("the manifest is YAML");
        for document in documents.iter().filter(|document| !document.is_null()) {
            let applied = {
                let _entered = self.runtime.enter();
                self.server.apply(document, "test")
            };
            if let Err(refusal) = applied {
                panic!("{}: {}", document["metadata"]["name"], refusal.message);
            }
            self.apply_status(document);
        }
    }

    /// Nodes and the like are described by their status, which an ordinary write ignores.
    #[track_caller]
    fn apply_status(&self, document: &Value) {
        if document["status"].is_null() {
            return;
        }
        if let Some(path) = self.server.path_of(document) {
            let body = serde_json::json!({ "status": document["status"] });
            let target = format!("{path}/status");
            let (code, answer) = self.send(Method::PATCH, &target, "application/merge-patch+json", &body);
            assert!(code.is_success(), "{}", answer["message"]);
        }
    }

    /// Sends one request to the API server.
    pub fn send(
        &self,
        method: Method,
        target: &str,
        content_type: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let _entered = self.runtime.enter();
        self.server.send(method, target, content_type, body)
    }

    /// Deletes an object, such as `/api/v1/namespaces/default/pods/a`.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        let (code, answer) = self.send(Method::DELETE, path, "", &Value::Null);
        assert!(code.is_success(), "{path}: {}", answer["message"]);
    }

    /// Changes an object by a merge patch.
    #[track_caller]
    pub fn patch(&self, path: &str, change: &Value) -> Value {
        let (code, answer) = self.send(Method::PATCH, path, "application/merge-patch+json", change);
        assert!(code.is_success(), "{path}: {}", answer["message"]);
        answer
    }

    /// An object, or nothing.
    #[track_caller]
    pub fn get(&self, path: &str) -> Option<Value> {
        let (code, answer) = self.send(Method::GET, path, "", &Value::Null);
        if code == StatusCode::NOT_FOUND {
            return None;
        }
        assert!(code.is_success(), "{path}: {}", answer["message"]);
        Some(answer)
    }

    /// All objects of a collection, such as `/api/v1/pods`.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// All pods.
    pub fn pods(&self) -> Vec<Value> {
        self.list("/api/v1/pods")
    }

    /// How many pods run.
    pub fn running(&self) -> usize {
        self.pods().iter().filter(|pod| pod["status"]["phase"] == "Running").count()
    }

    /// There are so many nodes.
    #[track_caller]
    pub fn expect_nodes(&self, count: usize) {
        let nodes = self.list("/api/v1/nodes").len();
        assert!(nodes == count, "there are {nodes} nodes, not {count}\n{}", self.describe());
    }

    /// The pod of namespace `default` runs.
    #[track_caller]
    pub fn expect_running(&self, name: &str) {
        let pod = self.get(&format!("/api/v1/namespaces/default/pods/{name}"));
        let phase = pod.map(|pod| pod["status"]["phase"].clone()).unwrap_or_default();
        assert!(phase == "Running", "pod {name} is {phase}, not running\n{}", self.describe());
    }

    /// The pod of namespace `default` waits for a node, and says why.
    #[track_caller]
    pub fn expect_pending(&self, name: &str, why: &str) {
        let pod = self.get(&format!("/api/v1/namespaces/default/pods/{name}")).unwrap_or_default();
        let message = pod["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
            .map(|condition| condition["message"].as_str().unwrap_or_default().to_owned());
        let said = message.clone().unwrap_or_default();
        assert!(
            message.is_some() && said.contains(why),
            "pod {name} does not wait because of {why:?} but: {said:?}\n{}",
            self.describe()
        );
    }

    /// Nothing is at this path.
    #[track_caller]
    pub fn expect_gone(&self, path: &str) {
        assert!(self.get(path).is_none(), "{path} is still there\n{}", self.describe());
    }

    /// The cluster in a few lines, for failures.
    pub fn describe(&self) -> String {
        let mut text = format!("the cluster at {}:\n", self.now());
        for (path, what) in [("/api/v1/nodes", "node"), ("/api/v1/pods", "pod")] {
            for object in self.list(path).iter().take(30) {
                let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
                let _ = writeln!(
                    text,
                    "  {what} {}: phase {}, on {}",
                    word(&object["metadata"]["name"]),
                    word(&object["status"]["phase"]),
                    word(&object["spec"]["nodeName"]),
                );
            }
        }
        text
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}
