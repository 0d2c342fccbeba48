//! Where scenarios are played: a cluster with the operator in it, in virtual time or a real one.

use std::fmt::Write as _;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

/// A cluster with scheduler, workload controllers, simulated nodes, and the operator with the kwok provider.
pub trait Stage {
    /// Sends one request to the API server.
    fn send(&self, method: Method, target: &str, content_type: &str, body: &Value) -> (StatusCode, Value);

    /// Applies manifests.
    fn apply(&self, yaml: &str);

    /// Lets time pass.
    fn pass(&mut self, time: Duration);

    /// Ends the operator at once, in the middle of whatever it does.
    fn kill_operator(&mut self);

    /// Starts the operator.
    fn start_operator(&mut self);

    /// Starts the operator anew with feature gates, which it keeps; without any it has their defaults.
    fn set_gates(&mut self, gates: &str);
}

/// The collection of NodeClaims.
pub const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
/// The collection of NodePools.
pub const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
/// The collection of NodeOverlays.
pub const OVERLAYS: &str = "/apis/karpenter.sh/v1alpha1/nodeoverlays";
/// The collection of Nodes.
pub const NODES: &str = "/api/v1/nodes";
/// The Pods of the default namespace.
pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(500);

impl dyn Stage + '_ {
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

    /// All objects of a collection.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Changes an object by a merge patch.
    #[track_caller]
    pub fn patch(&self, path: &str, change: &Value) -> Value {
        let (code, answer) = self.send(Method::PATCH, path, "application/merge-patch+json", change);
        assert!(code.is_success(), "{path}: {}", answer["message"]);
        answer
    }

    /// Asks for the deletion of an object.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        let (code, answer) = self.send(Method::DELETE, path, "", &Value::Null);
        assert!(code.is_success(), "{path}: {}", answer["message"]);
    }

    /// Sets the replicas of a Deployment of the default namespace.
    #[track_caller]
    pub fn scale(&self, deployment: &str, replicas: usize) {
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{deployment}");
        self.patch(&path, &json!({"spec": {"replicas": replicas}}));
    }

    /// Sets the replicas of a static NodePool, as `kubectl scale` does.
    #[track_caller]
    pub fn scale_pool(&self, pool: &str, replicas: usize) {
        self.patch(&format!("{POOLS}/{pool}/scale"), &json!({"spec": {"replicas": replicas}}));
    }

    /// Lets time pass until something holds, at most for `limit`.
    #[track_caller]
    pub fn until(&mut self, what: &str, limit: Duration, holds: impl Fn(&dyn Stage) -> bool) {
        let mut passed = Duration::ZERO;
        while !holds(&*self) {
            assert!(passed < limit, "after {limit:?}, still not: {what}\n{}", self.describe());
            self.pass(LOOK);
            passed += LOOK;
        }
    }

    /// Lets time pass, and something must hold all the while.
    #[track_caller]
    pub fn always(&mut self, what: &str, time: Duration, holds: impl Fn(&dyn Stage) -> bool) {
        let mut passed = Duration::ZERO;
        while passed < time {
            assert!(holds(&*self), "after {passed:?}, not any more: {what}\n{}", self.describe());
            self.pass(LOOK);
            passed += LOOK;
        }
    }

    /// The nodes that the operator launched.
    pub fn nodes(&self) -> Vec<Value> {
        let mut nodes = self.list(NODES);
        nodes.retain(|node| !node["metadata"]["labels"]["karpenter.sh/nodepool"].is_null());
        nodes
    }

    /// The pods with a label `app`.
    pub fn pods(&self, app: &str) -> Vec<Value> {
        self.list(&format!("{PODS}?labelSelector=app%3D{app}"))
    }

    /// How many pods with a label `app` run.
    pub fn running(&self, app: &str) -> usize {
        self.pods(app).iter().filter(|pod| pod["status"]["phase"] == "Running").count()
    }

    /// Waits until so many pods run, and no others with that label are there.
    #[track_caller]
    pub fn until_running(&mut self, app: &str, count: usize) {
        let what = format!("{count} pods of {app} run");
        self.until(&what, Duration::from_mins(2), |stage| {
            stage.running(app) == count && stage.pods(app).len() == count
        });
    }

    /// Waits until there are exactly so many nodes of the operator's.
    #[track_caller]
    pub fn until_nodes(&mut self, count: usize) {
        let what = format!("there are {count} nodes");
        self.until(&what, Duration::from_mins(3), |stage| stage.nodes().len() == count);
    }

    /// The nodes that pods with a label `app` are on, each once.
    pub fn nodes_of(&self, app: &str) -> Vec<String> {
        let pods = self.pods(app);
        let mut names: Vec<String> =
            pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The label of the node that a pod of `app` is on.
    pub fn label_of_node(&self, app: &str, label: &str) -> String {
        let name = self.nodes_of(app).into_iter().next().unwrap_or_default();
        let node = self.get(&format!("{NODES}/{name}")).unwrap_or_default();
        node["metadata"]["labels"][label].as_str().unwrap_or_default().to_owned()
    }

    /// Whether there is an event with a reason about an object, whose message contains a text.
    pub fn has_event(&self, reason: &str, about: &str, text: &str) -> bool {
        self.list("/api/v1/events").iter().any(|event| {
            event["reason"] == reason
                && event["involvedObject"]["name"] == about
                && event["message"].as_str().is_some_and(|message| message.contains(text))
        })
    }

    /// The cluster in a few lines, for failures.
    pub fn describe(&self) -> String {
        let mut text = String::from("the cluster:\n");
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        for (path, what) in [(POOLS, "pool"), (CLAIMS, "claim"), (NODES, "node"), ("/api/v1/pods", "pod")] {
            for object in self.list(path).iter().take(20) {
                let conditions: Vec<String> = object["status"]["conditions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|condition| {
                        condition["status"] != "True" && !word(&condition["type"]).ends_with("Pressure")
                    })
                    .map(|condition| {
                        format!(
                            "{}={} {}",
                            word(&condition["type"]),
                            word(&condition["status"]),
                            word(&condition["message"])
                        )
                    })
                    .collect();
                let _ = writeln!(
                    text,
                    "  {what} {}: phase {}, on {}, deleting {}, {}",
                    word(&object["metadata"]["name"]),
                    word(&object["status"]["phase"]),
                    word(&object["spec"]["nodeName"]),
                    word(&object["metadata"]["deletionTimestamp"]),
                    conditions.join("; "),
                );
            }
        }
        for event in self.list("/api/v1/events").iter().rev().take(25) {
            let _ = writeln!(
                text,
                "  event {} {}: {}",
                word(&event["reason"]),
                word(&event["involvedObject"]["name"]),
                word(&event["message"])
            );
        }
        text
    }
}

/// The condition of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind)).unwrap_or(&Value::Null)
}

/// Whether a condition of an object is true.
pub fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}
