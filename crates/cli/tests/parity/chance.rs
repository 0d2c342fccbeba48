//! Random clusters: NodePools of all kinds, and pods with every rule that decides where they can run.

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use serde_json::{Map, Value, json};
use testkit::scenarios::manifests::{pool, with};

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
const APPS: [&str; 4] = ["web", "api", "batch", "db"];
/// A NodeClass that nobody has made.
const MISSING_CLASS: &str = "missing";

/// Chances of one cluster.
pub(crate) struct Chance(pub(crate) Pcg64Mcg);

impl Chance {
    pub(crate) fn maybe(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    pub(crate) fn number(&mut self, range: std::ops::Range<usize>) -> usize {
        self.0.random_range(range)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.0.random_range(0..choices.len())].clone()
    }

    /// Some of the choices, in their order, at least one.
    fn some_of<T: Clone>(&mut self, choices: &[T]) -> Vec<T> {
        let kept: Vec<T> = choices.iter().filter(|_| self.0.random_bool(0.5)).cloned().collect();
        if kept.is_empty() { vec![self.one_of(choices)] } else { kept }
    }

    /// The limits of a pool.
    fn limits(&mut self) -> Value {
        let mut limits = Map::new();
        if self.maybe(0.6) {
            limits.insert("cpu".to_owned(), json!(self.one_of(&["1", "2", "4", "7500m", "12", "20", "64"])));
        }
        if self.maybe(0.3) {
            limits.insert("memory".to_owned(), json!(self.one_of(&["2Gi", "8Gi", "17Gi", "64Gi"])));
        }
        if self.maybe(0.3) || limits.is_empty() {
            limits.insert("nodes".to_owned(), json!(self.one_of(&["0", "1", "2", "4"])));
        }
        limits.into()
    }

    /// What nodes of a pool must be like.
    fn requirements(&mut self) -> Vec<Value> {
        let within = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
        let mut all = Vec::new();
        if self.maybe(0.9) {
            all.push(within("kubernetes.io/os", &["linux"]));
        }
        if self.maybe(0.6) {
            let bought = self.some_of(&["spot", "on-demand"]);
            all.push(within("karpenter.sh/capacity-type", &bought));
        }
        if self.maybe(0.3) {
            let zones = self.some_of(&ZONES);
            all.push(within(ZONE, &zones));
        }
        if self.maybe(0.3) {
            let architectures = self.some_of(&["amd64", "arm64"]);
            all.push(within("kubernetes.io/arch", &architectures));
        }
        match self.number(0..5) {
            0 => {
                let sizes = self.some_of(&["1", "2", "4", "8", "16"]);
                all.push(within("karpenter.kwok.sh/instance-cpu", &sizes));
            }
            1 => {
                let bound = self.one_of(&["3", "9", "33"]);
                let operator = self.one_of(&["Lt", "Gt"]);
                all.push(
                    json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": operator, "values": [bound]}),
                );
            }
            _ => {}
        }
        if self.maybe(0.2) {
            let count = self.one_of(&[2, 5, 10, 50]);
            all.push(
                json!({"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": count}),
            );
        } else if self.maybe(0.15) {
            let count = self.one_of(&[2, 3]);
            all.push(
                json!({"key": "karpenter.kwok.sh/instance-family", "operator": "Exists", "minValues": count}),
            );
        }
        all
    }

    /// A pool whose size follows its pods. `was_seen` says whether its status will be there when it is planned for.
    pub(crate) fn pool(&mut self, number: usize, was_seen: bool) -> Value {
        let mut name = format!("pool-{number}");
        if self.maybe(0.03) {
            name.push_str(&"-too-long".repeat(8));
        }
        let mut spec =
            json!({"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}});
        if self.maybe(0.5) {
            spec["weight"] = json!(self.number(1..101));
        }
        if self.maybe(0.5) {
            spec["limits"] = self.limits();
        }
        let mut requirements = self.requirements();
        if self.maybe(0.08) {
            // The definition admits it, and validation does not.
            let wrong =
                json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["borrowed"]});
            requirements.retain(|it| it["key"] != wrong["key"]);
            requirements.push(wrong);
        }
        let mut template = json!({"spec": {"requirements": requirements}});
        if was_seen && self.maybe(0.1) {
            template["spec"]["nodeClassRef"] = json!({"name": MISSING_CLASS});
        }
        if self.maybe(0.25) {
            template["spec"]["taints"] = json!([{"key": "team", "value": self.one_of(&["a", "b"]),
                "effect": self.one_of(&["NoSchedule", "NoExecute", "PreferNoSchedule"])}]);
        }
        if self.maybe(0.4) {
            template["metadata"] = json!({"labels": {"example.com/team": self.one_of(&["a", "b"])}});
        }
        spec["template"] = template;
        with(pool(&name), &json!({"spec": spec}))
    }

    /// A pool of a fixed size.
    pub(crate) fn static_pool(&mut self) -> Value {
        let mut spec = json!({"replicas": self.number(0..3), "disruption": {"consolidateAfter": "Never"}});
        if self.maybe(0.5) {
            spec["limits"] = json!({"nodes": self.one_of(&["1", "3"])});
        }
        let size = json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["2"]});
        spec["template"] = json!({"spec": {"requirements": [size]}});
        with(pool("static"), &json!({"spec": spec}))
    }

    /// Somebody knows better what some types cost or have.
    pub(crate) fn overlay(&mut self, number: usize) -> Value {
        let family = self.one_of(&["c", "s", "m"]);
        let mut spec = json!({"requirements": [
            {"key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": [family]}]});
        match self.number(0..3) {
            0 => spec["priceAdjustment"] = json!(self.one_of(&["-50%", "+30%", "+0.01"])),
            1 => spec["price"] = json!(self.one_of(&["0.02", "0.2"])),
            _ => spec["capacity"] = json!({"example.com/fuse": "4"}),
        }
        json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
            "metadata": {"name": format!("overlay-{number}")}, "spec": spec})
    }

    /// A node that nobody's pool has.
    pub(crate) fn foreign_node(&mut self, number: usize) -> Value {
        let name = format!("foreign-{number}");
        let room = json!({"cpu": self.one_of(&["1", "2"]), "memory": "4Gi", "pods": "20"});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            HOST: name, ZONE: self.one_of(&ZONES), "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        }}, "status": {"capacity": room, "allocatable": room}})
    }

    /// What runs on every node.
    pub(crate) fn daemon_set(&mut self) -> Value {
        let labels = json!({"app": "agent"});
        let mut spec = json!({"containers": [{"name": "main", "image": "i",
            "resources": {"requests": {"cpu": self.one_of(&["50m", "300m"]), "memory": "100Mi"}}}]});
        if self.maybe(0.5) {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec}}})
    }

    /// A pod with some rules.
    pub(crate) fn pod(&mut self, number: usize) -> Value {
        let app = self.one_of(&APPS);
        let name = format!("{app}-{number}");
        let mut requests = json!({
            "cpu": self.one_of(&["50m", "250m", "500m", "1", "1500m", "3", "6"]),
            "memory": self.one_of(&["64Mi", "512Mi", "3Gi"]),
        });
        if self.maybe(0.04) {
            requests["cpu"] = json!(self.one_of(&["101", "9999"]));
        }
        if self.maybe(0.05) {
            requests["example.com/fuse"] = json!("1");
        }
        let mut container = json!({"name": "main", "image": "i", "resources": {"requests": requests}});
        if !requests["example.com/fuse"].is_null() {
            container["resources"]["limits"] = json!({"example.com/fuse": "1"});
        }
        if self.maybe(0.08) {
            container["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
        }
        let mut spec = json!({"containers": [container], "terminationGracePeriodSeconds": 0});
        let mut affinity = Map::new();
        // Rules of several kinds together leave most pods without a place.
        if self.maybe(0.5) {
            self.add_node_rules(&mut spec, &mut affinity);
        }
        self.add_pod_rules(app, &mut spec, &mut affinity);
        if !affinity.is_empty() {
            spec["affinity"] = affinity.into();
        }
        if self.maybe(0.35) {
            spec["tolerations"] = self.one_of(&[
                json!([{"key": "team", "operator": "Exists"}]),
                json!([{"key": "team", "value": "a"}]),
                json!([{"operator": "Exists"}]),
            ]);
        }
        if self.maybe(0.15) {
            spec["priorityClassName"] = json!(self.one_of(&["high", "low"]));
        }
        if self.maybe(0.05) {
            spec["schedulerName"] = json!("other");
        }
        if self.maybe(0.05) {
            spec["schedulingGates"] = json!([{"name": "example.com/wait"}]);
        }
        if self.maybe(0.12) {
            let claim = self.one_of(&["disk-a", "disk-b", "to-come", "of-nobody", "missing"]);
            spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
        }
        let namespace = self.one_of(&["default", "default", "other"]);
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}, "spec": spec})
    }

    /// Rules about the labels of nodes.
    fn add_node_rules(&mut self, spec: &mut Value, affinity: &mut Map<String, Value>) {
        if self.maybe(0.3) {
            spec["nodeSelector"] = self.one_of(&[
                json!({ZONE: "test-zone-b"}),
                json!({"kubernetes.io/arch": "arm64"}),
                json!({"karpenter.sh/capacity-type": "on-demand"}),
                json!({"karpenter.sh/capacity-type": "spot", ZONE: "test-zone-c"}),
                json!({"example.com/team": "a"}),
                json!({"example.com/unknown": "x"}),
                json!({"karpenter.sh/nodepool": "pool-1"}),
                json!({"karpenter.kwok.sh/instance-family": "m"}),
                json!({"kubernetes.io/os": "windows"}),
                json!({ZONE: "nowhere"}),
            ]);
        }
        if self.maybe(0.25) {
            let term = |key: &str, operator: &str, values: &[&str]| {
                let expression = json!({"key": key, "operator": operator, "values": values});
                json!({"matchExpressions": [expression]})
            };
            let terms = [
                term(ZONE, "In", &["test-zone-a", "test-zone-d"]),
                term(ZONE, "NotIn", &["test-zone-a"]),
                term("karpenter.kwok.sh/instance-cpu", "Gt", &["3"]),
                term("example.com/team", "Exists", &[]),
                term("example.com/team", "DoesNotExist", &[]),
                term("karpenter.sh/nodepool", "DoesNotExist", &[]),
                term("karpenter.sh/nodepool", "In", &["pool-0", "pool-2"]),
                term("karpenter.kwok.sh/instance-family", "NotIn", &["c", "s"]),
            ];
            let (first, second) = (self.one_of(&terms), self.one_of(&terms));
            let mut rules = Map::new();
            if self.maybe(0.6) {
                let terms = if self.maybe(0.3) { vec![first, second.clone()] } else { vec![first] };
                rules.insert(
                    "requiredDuringSchedulingIgnoredDuringExecution".to_owned(),
                    json!({"nodeSelectorTerms": terms}),
                );
            }
            if rules.is_empty() || self.maybe(0.5) {
                rules.insert(
                    "preferredDuringSchedulingIgnoredDuringExecution".to_owned(),
                    json!([{"weight": 10, "preference": second}]),
                );
            }
            affinity.insert("nodeAffinity".to_owned(), rules.into());
        }
    }

    /// Rules about other pods.
    fn add_pod_rules(&mut self, app: &str, spec: &mut Value, affinity: &mut Map<String, Value>) {
        let key = self.one_of(&[HOST, HOST, ZONE, "example.com/rack"]);
        let other = if self.maybe(0.6) { app } else { self.one_of(&[APPS[0], APPS[1], "nobody"]) };
        let selector = json!({"matchLabels": {"app": other}});
        let term = json!({"topologyKey": key, "labelSelector": selector});
        let kind = match self.number(0..12) {
            0 => "podAffinity",
            1 | 2 => "podAntiAffinity",
            3 => {
                spec["topologySpreadConstraints"] = json!([{
                    "maxSkew": self.number(1..3), "topologyKey": key, "labelSelector": selector,
                    "whenUnsatisfiable": self.one_of(&["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
                }]);
                return;
            }
            _ => return,
        };
        let rules = if self.maybe(0.75) {
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
        } else {
            json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]})
        };
        affinity.insert(kind.to_owned(), rules);
    }
}

/// What there is in every cluster: namespaces, priorities and volumes.
pub(crate) fn common() -> Vec<Value> {
    let priority = |name: &str, value: i32| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value})
    };
    let class = |name: &str, provisioner: &str, topologies: Value| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": topologies})
    };
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"kind": "other"}}}),
        priority("high", 1000),
        priority("low", -10),
        class("by-hand", "kubernetes.io/no-provisioner", Value::Null),
        class(
            "zonal",
            "example.com/disks",
            json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["test-zone-b"]}]}]),
        ),
    ];
    for namespace in ["default", "other"] {
        let claim = |name: &str, class: &str, volume: Option<String>| {
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"storageClassName": class, "volumeName": volume, "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}})
        };
        for (name, zone) in [("disk-a", "test-zone-a"), ("disk-b", "test-zone-b")] {
            let volume = format!("{namespace}-{name}");
            all.push(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                "spec": {"storageClassName": "by-hand", "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"}, "csi": {"driver": "disks.example.com", "volumeHandle": volume},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                        {"key": ZONE, "operator": "In", "values": [zone]}]}]}}}}));
            all.push(claim(name, "by-hand", Some(volume)));
        }
        // Nobody makes volumes here, so that pods with this one wait for ever on a node that they could use.
        all.push(claim("to-come", "zonal", None));
        all.push(claim("of-nobody", "no-such-class", None));
    }
    all
}
