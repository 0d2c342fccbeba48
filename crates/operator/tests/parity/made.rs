//! Random clusters: pools of all kinds with limits and weights, nodes that exist, DaemonSets, and pods that wait.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use runtime::settings::{MinValuesPolicy, PreferencePolicy};
use serde_json::{Value, json};
use testkit::scenarios::manifests::{node_class, pod_spec, pool, with};

const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const PROCESSORS: &str = "karpenter.kwok.sh/instance-cpu";

/// A cluster before anybody has looked at its pods.
pub(crate) struct Made {
    random: Pcg64Mcg,
    pub(crate) settings: Settings,
    pub(crate) objects: Vec<Value>,
}

impl Made {
    pub(crate) fn new(seed: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        let mut made = Self { random, settings: Settings::default(), objects: vec![node_class()] };
        if made.maybe(0.1) {
            made.settings.min_values_policy = MinValuesPolicy::BestEffort;
        }
        if made.maybe(0.1) {
            made.settings.preference_policy = PreferencePolicy::Ignore;
        }
        for number in 0..made.random.random_range(1..4) {
            made.add_pool(&format!("pool-{number}"));
        }
        if made.maybe(0.05) {
            made.add_pool(&"long-".repeat(13));
        }
        for number in 0..made.one_of(&[0, 0, 1, 2]) {
            made.add_daemon_set(&format!("daemon-{number}"));
        }
        for number in 0..made.one_of(&[0, 0, 1, 3]) {
            made.add_node(&format!("node-{number}"));
        }
        for number in 0..made.random.random_range(1..6) {
            made.add_pods(&format!("app-{number}"));
        }
        made
    }

    fn maybe(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())].clone()
    }

    fn add_pool(&mut self, name: &str) {
        // Nothing is disrupted: what was decided is to be seen.
        let mut pool = with(pool(name), &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
        let mut requirements =
            vec![json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]})];
        let mut add = |key: &str, values: Value| {
            requirements.push(json!({"key": key, "operator": "In", "values": values}));
        };
        add("karpenter.sh/capacity-type", self.one_of(&[json!(["on-demand"]), json!(["spot", "on-demand"])]));
        if self.maybe(0.4) {
            let few = [json!(["1", "2", "4"]), json!(["4"]), json!(["2", "8", "32"]), json!(["16", "256"])];
            add(PROCESSORS, self.one_of(&few));
        }
        if self.maybe(0.3) {
            add(ZONE, self.one_of(&[json!(ZONES[..1]), json!(ZONES[..2]), json!(ZONES[2..])]));
        }
        if self.maybe(0.15) {
            let least = self.random.random_range(2..30);
            requirements.push(
                json!({"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": least}),
            );
        }
        pool["spec"]["template"]["spec"]["requirements"] = requirements.into();
        if self.maybe(0.6) {
            pool["spec"]["weight"] = self.random.random_range(1..4).into();
        }
        if self.maybe(0.2) {
            pool["spec"]["template"]["spec"]["taints"] =
                json!([{"key": "team", "value": "a", "effect": "NoSchedule"}]);
        }
        if self.maybe(0.2) {
            pool["spec"]["template"]["metadata"]["labels"] = json!({"example.com/tier": "gold"});
        }
        for (key, probability, values) in [
            ("cpu", 0.6, ["0", "1", "6", "7500m", "24", "64", "100", "1000"]),
            ("memory", 0.2, ["0", "3Gi", "16Gi", "50Gi", "64Gi", "100Gi", "500Gi", "4Ti"]),
            ("nodes", 0.2, ["0", "1", "2", "3", "4", "5", "10", "100"]),
        ] {
            if self.maybe(probability) {
                pool["spec"]["limits"][key] = self.one_of(&values).into();
            }
        }
        self.objects.push(pool);
    }

    fn add_daemon_set(&mut self, name: &str) {
        let mut spec = pod_spec(self.one_of(&["50m", "300m"]));
        if self.maybe(0.5) {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        if self.maybe(0.3) {
            spec["nodeSelector"] = json!({"kubernetes.io/arch": "arm64"});
        }
        self.objects.push(json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
            },
        }));
    }

    /// A node that somebody else manages, with something on it.
    fn add_node(&mut self, name: &str) {
        let zone = self.one_of(&ZONES);
        let amounts = json!({"cpu": self.one_of(&["2", "8"]), "memory": "16Gi", "pods": "20"});
        self.objects.push(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {ZONE: zone, HOSTNAME: name, "kubernetes.io/arch": "amd64"}},
            "spec": {"providerID": format!("other://{name}")},
            "status": {
                "capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
            },
        }));
        let mut spec = pod_spec("1");
        spec["nodeName"] = name.into();
        self.objects.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("on-{name}"), "namespace": "default", "labels": {"app": "app-0"}},
            "spec": spec, "status": {"phase": "Running"},
        }));
    }

    fn add_pods(&mut self, app: &str) {
        let cpu = self.one_of(&["100m", "500m", "900m", "2", "3500m", "15", "70", "300"]);
        let mut spec = pod_spec(cpu);
        spec["containers"][0]["resources"]["requests"]["memory"] =
            self.one_of(&["64Mi", "64Mi", "1Gi", "7Gi", "30Gi"]).into();
        let selector = json!({"matchLabels": {"app": app}});
        let key = self.one_of(&[HOSTNAME, ZONE]);
        match self.random.random_range(0..8) {
            0 | 1 => {
                spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{"labelSelector": selector, "topologyKey": HOSTNAME}]);
            }
            2 => {
                spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{"labelSelector": selector, "topologyKey": key}]);
            }
            3 | 4 => {
                let whether = self.one_of(&["DoNotSchedule", "ScheduleAnyway"]);
                spec["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": whether, "labelSelector": selector,
                }]);
            }
            5 => {
                let term = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [self.one_of(&ZONES)]}]});
                spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{"weight": 1, "preference": term}]);
            }
            _ => {}
        }
        match self.random.random_range(0..12) {
            0 => spec["nodeSelector"] = json!({ZONE: self.one_of(&ZONES)}),
            1 => spec["nodeSelector"] = json!({"kubernetes.io/arch": "arm64"}),
            2 => spec["nodeSelector"] = json!({"example.com/tier": "gold"}),
            3 => spec["nodeSelector"] = json!({"karpenter.sh/nodepool": "pool-0"}),
            4 => spec["nodeSelector"] = json!({"kubernetes.io/hostname": "nowhere"}),
            _ => {}
        }
        if self.maybe(0.3) {
            spec["tolerations"] = json!([{"key": "team", "operator": "Exists"}]);
        }
        let is_seen = !self.maybe(0.1);
        if !is_seen {
            // Whoever is to look at them does not.
            if self.maybe(0.5) {
                spec["schedulerName"] = "volcano".into();
            } else {
                spec["schedulingGates"] = json!([{"name": "example.com/gate"}]);
            }
        }
        for number in 0..self.random.random_range(1..9) {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{app}-{number}"), "namespace": "default", "labels": {"app": app}},
                "spec": spec,
            });
            if is_seen {
                pod["status"] = json!({"phase": "Pending", "conditions": [{
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "",
                }]});
            }
            self.objects.push(pod);
        }
    }
}
