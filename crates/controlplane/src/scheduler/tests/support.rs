//! Small clusters in JSON.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::scheduler::{Decision, Key, Scheduler};

/// Joins two JSON objects, the second winning.
pub(super) fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, patch) => *base = patch.clone(),
    }
}

pub(super) fn key(name: &str) -> Key {
    ("default".to_owned(), name.to_owned())
}

/// A scheduler with short words for what happens around it.
#[derive(Default)]
pub(super) struct World {
    pub(super) scheduler: Scheduler,
}

impl World {
    /// A node with 4 CPUs, 8 Gi and room for 10 pods, changed by `patch`.
    pub(super) fn node(&mut self, name: &str, patch: Value) -> &mut Self {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        });
        merge(&mut node, &patch);
        self.scheduler.observe_node(name, Some(parse(node)));
        self
    }

    /// A pod with one container, changed by `patch`.
    pub(super) fn pod(&mut self, name: &str, patch: Value) -> &mut Self {
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
            "spec": {"containers": [{"name": "main", "image": "main"}]},
        });
        merge(&mut pod, &patch);
        self.scheduler.observe_pod(&key(name), Some(parse(pod)));
        self
    }

    /// A pod that asks for CPU.
    pub(super) fn cpu(&mut self, name: &str, cpu: &str, patch: Value) -> &mut Self {
        let mut whole =
            json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}});
        merge(&mut whole, &patch);
        self.pod(name, whole)
    }

    /// A pod that is on a node.
    pub(super) fn placed(&mut self, name: &str, node: &str, patch: Value) -> &mut Self {
        let mut whole = json!({"spec": {"nodeName": node}});
        merge(&mut whole, &patch);
        self.pod(name, whole)
    }

    /// Where a pod could go.
    pub(super) fn feasible(&mut self, name: &str) -> Vec<String> {
        self.scheduler.feasible(&key(name))
    }

    /// The message about the only pod, without what is said of preemption.
    pub(super) fn refusal(&mut self) -> String {
        let decisions = self.all();
        let [Decision::Unschedulable { message, .. }] = &decisions[..] else {
            panic!("no refusal: {decisions:?}")
        };
        let end = [" no new claims", " not found"].iter().filter_map(|mark| message.rfind(mark)).min();
        message[..end.unwrap_or(message.len())].to_owned()
    }

    pub(super) fn delete(&mut self, name: &str) -> &mut Self {
        self.scheduler.observe_pod(&key(name), None);
        self
    }

    pub(super) fn all(&mut self) -> Vec<Decision> {
        std::iter::from_fn(|| self.scheduler.next()).collect()
    }

    /// All decisions, one line each.
    pub(super) fn decisions(&mut self) -> Vec<String> {
        let line = |decision| match decision {
            Decision::Bind { pod, node, .. } => format!("{} -> {node}", pod.1),
            Decision::BindVolumes { pod, node, plan, .. } => format!("{} => {node} {plan:?}", pod.1),
            Decision::Unschedulable { pod, message, nominated, victims, .. } => {
                let victims: Vec<_> = victims.into_iter().map(|victim| victim.1).collect();
                let nominated =
                    nominated.map(|node| format!(" for {node}: {}", victims.join(" "))).unwrap_or_default();
                format!("{}: {message}{nominated}", pod.1)
            }
        };
        self.all().into_iter().map(line).collect()
    }
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).expect("a valid object"))
}
