//! Kubernetes objects for tests, made of few words.

use serde_json::{Value, json};

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub(crate) const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub(crate) const ARCH: &str = "kubernetes.io/arch";
pub(crate) const OS: &str = "kubernetes.io/os";
pub(crate) const CPUS: &str = "karpenter.kwok.sh/instance-cpu";
/// The label of a reservation in the cloud that has them.
pub(crate) const RESERVATION: &str = "karpenter.k8s.aws/capacity-reservation-id";

/// Puts one object over another: maps are merged, everything else is replaced.
pub(crate) fn merge(base: &mut Value, patch: Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, patch) => *base = patch,
    }
}

/// A requirement such as `need("size", "In", &["a"])`.
pub(crate) fn need(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

/// The same, asking for so many different values.
pub(crate) fn need_choice(key: &str, operator: &str, values: &[&str], min_values: u32) -> Value {
    json!({"key": key, "operator": operator, "values": values, "minValues": min_values})
}

/// A selector of the pods of an app.
pub(crate) fn of_app(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

/// A spread that must hold, of the pods of an app.
pub(crate) fn spread(key: &str, max_skew: u32, app: &str) -> Value {
    json!({"topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": of_app(app)})
}

/// The same object with some fields changed.
pub(crate) fn with(mut object: Value, patch: Value) -> Value {
    merge(&mut object, patch);
    object
}

/// A term about the pods of an app.
pub(crate) fn term(key: &str, app: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": of_app(app)})
}

/// A pod that waits for a node.
#[derive(Clone, Debug)]
pub(crate) struct Pod(pub(crate) Value);

impl Pod {
    /// A pod without a name, labels or requests.
    pub(crate) fn new() -> Self {
        Self(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "default"},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {}}}]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
        }))
    }

    /// A pod of an app.
    pub(crate) fn of(app: &str) -> Self {
        Self::new().label("app", app)
    }

    pub(crate) fn with(mut self, patch: Value) -> Self {
        merge(&mut self.0, patch);
        self
    }

    pub(crate) fn name(self, name: &str) -> Self {
        self.with(json!({"metadata": {"name": name}}))
    }

    pub(crate) fn namespace(self, namespace: &str) -> Self {
        self.with(json!({"metadata": {"namespace": namespace}}))
    }

    pub(crate) fn label(self, key: &str, value: &str) -> Self {
        self.with(json!({"metadata": {"labels": {key: value}}}))
    }

    pub(crate) fn annotation(self, key: &str, value: &str) -> Self {
        self.with(json!({"metadata": {"annotations": {key: value}}}))
    }

    pub(crate) fn owned_by(self, api_version: &str, kind: &str, name: &str) -> Self {
        let owner =
            json!([{"apiVersion": api_version, "kind": kind, "name": name, "controller": true, "uid": name}]);
        self.with(json!({"metadata": {"ownerReferences": owner}}))
    }

    pub(crate) fn deleting(self) -> Self {
        self.with(json!({"metadata": {"deletionTimestamp": "2026-01-02T00:00:10Z"}}))
    }

    pub(crate) fn phase(self, phase: &str) -> Self {
        self.with(json!({"status": {"phase": phase}}))
    }

    pub(crate) fn spec(self, patch: Value) -> Self {
        self.with(json!({"spec": patch}))
    }

    pub(crate) fn cpu(self, amount: &str) -> Self {
        self.requests(json!({"cpu": amount}))
    }

    pub(crate) fn requests(mut self, requests: Value) -> Self {
        merge(&mut self.0["spec"]["containers"][0]["resources"]["requests"], requests);
        self
    }

    /// Asks for a node with a label.
    pub(crate) fn on(self, key: &str, value: &str) -> Self {
        self.spec(json!({"nodeSelector": {key: value}}))
    }

    /// Adds an alternative of what the node must be.
    pub(crate) fn require(mut self, expressions: Value) -> Self {
        let path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = path.iter().fold(&mut self.0["spec"], |at, key| &mut at[key]);
        push(&mut terms["nodeSelectorTerms"], json!({"matchExpressions": expressions}));
        self
    }

    /// Adds what the node had better be.
    pub(crate) fn prefer(self, weight: u32, expressions: Value) -> Self {
        let term = json!({"weight": weight, "preference": {"matchExpressions": expressions}});
        self.rule("nodeAffinity", "preferred", term)
    }

    pub(crate) fn spread(mut self, spread: Value) -> Self {
        push(&mut self.0["spec"]["topologySpreadConstraints"], spread);
        self
    }

    pub(crate) fn near(self, term: Value) -> Self {
        self.rule("podAffinity", "required", term)
    }

    pub(crate) fn away_from(self, term: Value) -> Self {
        self.rule("podAntiAffinity", "required", term)
    }

    pub(crate) fn rather_near(self, weight: u32, term: &Value) -> Self {
        self.rule("podAffinity", "preferred", json!({"weight": weight, "podAffinityTerm": term}))
    }

    pub(crate) fn rather_away_from(self, weight: u32, term: &Value) -> Self {
        self.rule("podAntiAffinity", "preferred", json!({"weight": weight, "podAffinityTerm": term}))
    }

    fn rule(mut self, kind: &str, strength: &str, term: Value) -> Self {
        let list = format!("{strength}DuringSchedulingIgnoredDuringExecution");
        push(&mut self.0["spec"]["affinity"][kind][&list], term);
        self
    }

    pub(crate) fn tolerate(mut self, key: &str) -> Self {
        push(&mut self.0["spec"]["tolerations"], json!({"key": key, "operator": "Exists"}));
        self
    }

    /// Uses a claim for a volume.
    pub(crate) fn volume(mut self, claim: &str) -> Self {
        let volume = json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
        push(&mut self.0["spec"]["volumes"], volume);
        self
    }

    /// Uses a volume of its own, whose claim is called after the pod and the volume.
    pub(crate) fn own_volume(mut self, name: &str) -> Self {
        let template = json!({"volumeClaimTemplate": {"spec": {}}});
        push(&mut self.0["spec"]["volumes"], json!({"name": name, "ephemeral": template}));
        self
    }
}

fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list").push(item);
}
