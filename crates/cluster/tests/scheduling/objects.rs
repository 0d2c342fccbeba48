//! Kubernetes objects in few words.
//!
//! Labels have short names ([`key`]); requirements are written as `zone In z1 z2`, amounts as `cpu=1 memory=1Gi`,
//! taints as `key=value:NoSchedule`.

use api::names::labels;
use serde_json::{Map, Value, json};

/// The label behind a short name; anything else stands for itself.
pub(crate) fn key(name: &str) -> &str {
    match name {
        "zone" => labels::ZONE,
        "arch" => labels::ARCH,
        "os" => labels::OS,
        "type" => labels::INSTANCE_TYPE,
        "capacity" => labels::CAPACITY_TYPE,
        "pool" => labels::NODEPOOL,
        "hostname" => labels::HOSTNAME,
        "cpus" => "karpenter.kwok.sh/instance-cpu",
        "size" => "karpenter.kwok.sh/instance-size",
        "exotic" => "karpenter.kwok.sh/instance-family",
        other => other,
    }
}

/// Lays `from` over `into`; lists are joined.
pub(crate) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

/// `cpu=1 memory=1Gi` as a map.
pub(crate) fn map(text: &str) -> Value {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("name=value");
        (key(name).to_owned(), Value::from(value))
    };
    text.split_whitespace().map(pair).collect::<Map<_, _>>().into()
}

/// `zone In z1 z2` as a requirement.
pub(crate) fn requirement(text: &str) -> Value {
    let mut words = text.split_whitespace();
    let name = words.next().expect("a key");
    let operator = words.next().expect("an operator");
    json!({"key": key(name), "operator": operator, "values": words.collect::<Vec<_>>()})
}

/// `key=value:Effect` or `key:Effect` as a taint.
fn taint(text: &str) -> Value {
    let (name, effect) = text.split_once(':').expect("key:Effect");
    match name.split_once('=') {
        Some((name, value)) => json!({"key": name, "value": value, "effect": effect}),
        None => json!({"key": name, "effect": effect}),
    }
}

macro_rules! kubernetes_object {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name(pub(crate) Value);

        impl $name {
            /// Lays any fields over the object.
            pub(crate) fn with(mut self, fields: Value) -> Self {
                merge(&mut self.0, fields);
                self
            }
        }

        impl From<$name> for Value {
            fn from(object: $name) -> Self {
                object.0
            }
        }
    };
}

kubernetes_object! {
    /// A pod, which waits unless told otherwise.
    Pod
}
kubernetes_object! {
    /// A NodePool.
    Pool
}
kubernetes_object! {
    /// A DaemonSet.
    Daemon
}
kubernetes_object! {
    /// A Node.
    Node
}

/// A pod that the scheduler has found no node for.
pub(crate) fn pod(name: &str) -> Pod {
    Pod(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {}}}]},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    }))
}

/// What pods and the templates of DaemonSets have in common.
macro_rules! pod_fields {
    ($name:ident, $($path:literal)*) => {
        impl $name {
            fn spec_mut(&mut self) -> &mut Value {
                &mut self.0$([$path])*
            }

            /// Lays fields over the pod's spec.
            pub(crate) fn spec(mut self, fields: Value) -> Self {
                merge(self.spec_mut(), fields);
                self
            }

            /// What the main container asks for.
            pub(crate) fn asks(mut self, amounts: &str) -> Self {
                merge(&mut self.spec_mut()["containers"][0]["resources"]["requests"], map(amounts));
                self
            }

            /// What the main container may use.
            pub(crate) fn limited_to(mut self, amounts: &str) -> Self {
                merge(&mut self.spec_mut()["containers"][0]["resources"]["limits"], map(amounts));
                self
            }

            /// A node selector: `zone=z1 arch=amd64`.
            pub(crate) fn selects(self, labels: &str) -> Self {
                self.spec(json!({"nodeSelector": map(labels)}))
            }

            /// Adds a condition to the last required term.
            pub(crate) fn requires(mut self, condition: &str) -> Self {
                let path = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
                let terms = self.spec_mut().pointer_mut(path).and_then(Value::as_array_mut);
                match terms.and_then(|terms| terms.last_mut()) {
                    Some(term) => {
                        merge(term, json!({"matchExpressions": [requirement(condition)]}));
                        self
                    }
                    None => self.or_requires(condition),
                }
            }

            /// Adds a required term.
            pub(crate) fn or_requires(self, condition: &str) -> Self {
                let terms = json!([{"matchExpressions": [requirement(condition)]}]);
                let required = json!({"nodeSelectorTerms": terms});
                let name = "requiredDuringSchedulingIgnoredDuringExecution";
                self.spec(json!({"affinity": {"nodeAffinity": {name: required}}}))
            }

            /// Adds a wish for the node; several conditions are separated by commas.
            pub(crate) fn prefers(self, weight: i32, conditions: &str) -> Self {
                let conditions: Vec<Value> = conditions.split(',').map(requirement).collect();
                let wishes = json!([{"weight": weight, "preference": {"matchExpressions": conditions}}]);
                let name = "preferredDuringSchedulingIgnoredDuringExecution";
                self.spec(json!({"affinity": {"nodeAffinity": {name: wishes}}}))
            }

            /// Adds a toleration.
            pub(crate) fn tolerates(self, toleration: Value) -> Self {
                self.spec(json!({"tolerations": [toleration]}))
            }

            /// Uses a port of its host.
            pub(crate) fn port(mut self, port: u16) -> Self {
                let ports = json!({"ports": [{"containerPort": port, "hostPort": port}]});
                merge(&mut self.spec_mut()["containers"][0], ports);
                self
            }
        }
    };
}

pod_fields!(Pod, "spec");
pod_fields!(Daemon, "spec" "template" "spec");

impl Pod {
    pub(crate) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().expect("a name")
    }

    pub(crate) fn label(self, name: &str, value: &str) -> Self {
        self.with(json!({"metadata": {"labels": {name: value}}}))
    }

    fn selector(&self) -> Value {
        json!({"matchLabels": self.0["metadata"]["labels"]})
    }

    /// Spreads pods with the labels it has so far evenly.
    pub(crate) fn spreads(self, topology: &str, when_unsatisfiable: &str) -> Self {
        let rule = json!({
            "topologyKey": key(topology), "maxSkew": 1, "whenUnsatisfiable": when_unsatisfiable,
            "labelSelector": self.selector(),
        });
        self.spec(json!({"topologySpreadConstraints": [rule]}))
    }

    /// Stays near (`podAffinity`) or away from (`podAntiAffinity`) pods with the labels it has so far.
    pub(crate) fn pods(self, rule: &str, topology: &str) -> Self {
        let term = json!([{"topologyKey": key(topology), "labelSelector": self.selector()}]);
        self.spec(json!({"affinity": {rule: {"requiredDuringSchedulingIgnoredDuringExecution": term}}}))
    }

    /// The same as a wish.
    pub(crate) fn prefers_pods(self, rule: &str, topology: &str) -> Self {
        let term = json!({"topologyKey": key(topology), "labelSelector": self.selector()});
        let wishes = json!([{"weight": 1, "podAffinityTerm": term}]);
        self.spec(json!({"affinity": {rule: {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}))
    }

    /// Runs on a node.
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.0["status"] = json!({"phase": "Running"});
        self.spec(json!({"nodeName": node}))
    }

    /// Belongs to a DaemonSet.
    pub(crate) fn of_daemon(self, daemon: &str) -> Self {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon, "uid": daemon, "controller": true,
        });
        self.with(json!({"metadata": {"ownerReferences": [owner]}}))
    }
}

/// A DaemonSet.
pub(crate) fn daemon(name: &str) -> Daemon {
    Daemon(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {
            "selector": {"matchLabels": {"daemon": name}},
            "template": {
                "metadata": {"labels": {"daemon": name}},
                "spec": {"containers": [{"name": "main", "resources": {"requests": {}}}]},
            },
        },
    }))
}

/// A NodePool that takes whatever there is. The NodeClass is filled in when it is used.
pub(crate) fn pool(name: &str) -> Pool {
    Pool(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": name},
        "spec": {"template": {"metadata": {"labels": {}}, "spec": {"requirements": []}}},
    }))
}

impl Pool {
    pub(crate) fn label(self, name: &str, value: &str) -> Self {
        self.with(json!({"spec": {"template": {"metadata": {"labels": {key(name): value}}}}}))
    }

    pub(crate) fn requires(self, condition: &str) -> Self {
        self.template(&json!({"requirements": [requirement(condition)]}))
    }

    pub(crate) fn taint(self, text: &str) -> Self {
        self.template(&json!({"taints": [taint(text)]}))
    }

    pub(crate) fn startup_taint(self, text: &str) -> Self {
        self.template(&json!({"startupTaints": [taint(text)]}))
    }

    pub(crate) fn weight(self, weight: u32) -> Self {
        self.with(json!({"spec": {"weight": weight}}))
    }

    pub(crate) fn limits(self, amounts: &str) -> Self {
        self.with(json!({"spec": {"limits": map(amounts)}}))
    }

    /// Lays fields over the spec of its nodes.
    pub(crate) fn template(self, fields: &Value) -> Self {
        self.with(json!({"spec": {"template": {"spec": fields}}}))
    }
}

/// A node that belongs to nobody.
pub(crate) fn node(name: &str, has: &str) -> Node {
    Node(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"capacity": map(has), "allocatable": map(has)},
    }))
}

impl Node {
    pub(crate) fn label(self, name: &str, value: &str) -> Self {
        self.with(json!({"metadata": {"labels": {key(name): value}}}))
    }

    pub(crate) fn taint(self, text: &str) -> Self {
        self.with(json!({"spec": {"taints": [taint(text)]}}))
    }
}
