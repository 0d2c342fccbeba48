//! What happens to clusters whose pools have limits.

use embedded::faults::{Fault, Rule};
use rand::RngExt as _;
use serde_json::{Value, json};
use testkit::scenarios::manifests::{deployment_with, node_class, pool, with};

use crate::Played;
use crate::cloud::Weather;

pub(crate) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// How many workloads there are at most.
const WORKLOADS: usize = 6;

fn name(value: &Value) -> &str {
    value["metadata"]["name"].as_str().unwrap_or_default()
}

impl Played {
    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())].clone()
    }

    fn limits(&mut self) -> Value {
        let mut limits = json!({});
        if self.random.random_bool(0.7) {
            limits["cpu"] = json!(self.one_of(&["2", "4", "7500m", "12", "20"]));
        }
        if self.random.random_bool(0.3) {
            limits["memory"] = json!(self.one_of(&["8Gi", "33Gi", "64Gi"]));
        }
        if limits.as_object().is_some_and(serde_json::Map::is_empty) || self.random.random_bool(0.3) {
            limits["nodes"] = json!(self.one_of(&["1", "3", "6"]));
        }
        limits
    }

    fn sizes(&mut self) -> Value {
        let sizes = self.one_of(&[&["1", "2"][..], &["1", "2", "4"], &["2", "4", "8"], &["1", "4"]]);
        json!([
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": sizes},
        ])
    }

    /// Makes the pools: some with limits, and one of a fixed size.
    pub(crate) fn add_pools(&mut self) {
        self.world.apply(&node_class().to_string());
        for number in 0..self.random.random_range(1..4) {
            let policy = self.one_of(&["WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"]);
            let budgets = self.one_of(&[json!([{"nodes": "1"}]), json!([{"nodes": "100%"}])]);
            let mut spec = json!({
                "disruption": {"consolidationPolicy": policy, "consolidateAfter": self.one_of(&["0s", "20s"]),
                    "budgets": budgets},
                "template": {"spec": {"requirements": self.sizes()}},
                "weight": self.random.random_range(1..101),
            });
            if number == 0 || self.random.random_bool(0.7) {
                spec["limits"] = self.limits();
            }
            if self.random.random_bool(0.2) {
                let wish =
                    json!({"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2});
                if let Some(requirements) = spec["template"]["spec"]["requirements"].as_array_mut() {
                    requirements.push(wish);
                }
            }
            self.world.apply(&with(pool(&format!("p{number}")), &json!({"spec": spec})).to_string());
        }
        if self.random.random_bool(0.4) {
            let size = json!([{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["1"]}]);
            let spec = json!({"replicas": 1, "limits": {"nodes": "3"}, "template": {"spec": {"requirements": size}}});
            self.world.apply(&with(pool("static"), &json!({"spec": spec})).to_string());
        }
    }

    /// A workload, new or another one under the same name.
    pub(crate) fn add_workload(&mut self, name: &str) {
        let cpu = self.one_of(&["200m", "500m", "900m", "1500m", "3"]);
        let mut spec = json!({"terminationGracePeriodSeconds": self.one_of(&[0, 5])});
        match self.random.random_range(0..4) {
            0 | 1 => {
                let apart = json!({"topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": name}}});
                spec["affinity"] =
                    json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}});
            }
            2 => {
                spec["nodeSelector"] =
                    json!({"topology.kubernetes.io/zone": self.one_of(&["test-zone-a", "test-zone-b"])});
            }
            _ => {}
        }
        let replicas = self.random.random_range(1..6);
        self.world.apply(&deployment_with(name, replicas, cpu, &spec).to_string());
    }

    fn some(&mut self, path: &str) -> Option<Value> {
        let all = self.world.list(path);
        (!all.is_empty()).then(|| self.one_of(&all))
    }

    fn change_workload(&mut self) {
        let number = self.random.random_range(0..WORKLOADS);
        let (name, path) = (format!("d{number}"), format!("{DEPLOYMENTS}/d{number}"));
        match (self.world.get(&path).is_some(), self.random.random_range(0..4)) {
            (false, _) => self.add_workload(&name),
            (true, 0) => self.world.delete(&path),
            (true, _) => {
                let replicas = self.random.random_range(0..8);
                self.world.patch(&path, &json!({"spec": {"replicas": replicas}}));
            }
        }
    }

    fn change_pool(&mut self, change: &Value, is_for_static: bool) {
        let mut pools = self.world.list(POOLS);
        pools.retain(|pool| is_for_static || pool["spec"]["replicas"].is_null());
        let pool = self.one_of(&pools);
        self.world.patch(&format!("{POOLS}/{}", name(&pool)), change);
    }

    fn change_limits(&mut self) {
        let mut limits = if self.random.random_bool(0.15) { Value::Null } else { self.limits() };
        // A patch keeps what it does not name.
        if let Some(named) = limits.as_object_mut() {
            for resource in ["cpu", "memory", "nodes"] {
                named.entry(resource).or_insert(Value::Null);
            }
        }
        self.change_pool(&json!({"spec": {"limits": limits}}), false);
    }

    fn change_static(&mut self) {
        let replicas = self.random.random_range(0..4);
        let limit = self.one_of(&["1", "2", "4"]);
        if self.world.get(&format!("{POOLS}/static")).is_some() {
            let change = json!({"spec": {"replicas": replicas, "limits": {"nodes": limit}}});
            self.world.patch(&format!("{POOLS}/static"), &change);
        }
    }

    /// Requests fail, or do not any more. None is late: what is decided before a limit is lowered and heard of
    /// afterwards is nobody's fault.
    fn fail(&mut self) {
        let verb = self.one_of(&["create", "patch", "delete"]);
        let fault = self.one_of(&[Fault::InternalError, Fault::Conflict, Fault::LostReply, Fault::Cut]);
        let is_fine = self.random.random_bool(0.4);
        self.faults.set_rules(if is_fine { Vec::new() } else { vec![Rule::on(verb, "", 0.2, fault)] });
    }

    /// Something happens.
    pub(crate) fn step(&mut self) {
        let what = self.random.random_range(0..20);
        self.ledger.tell(format!("step {what}"));
        match what {
            0..6 => self.change_workload(),
            6..9 => self.change_limits(),
            9 => {
                let weight = self.random.random_range(1..101);
                self.change_pool(&json!({"spec": {"weight": weight}}), false);
            }
            10 | 11 => {
                let value = self.random.random::<u16>().to_string();
                let labels = json!({"example.com/version": value});
                self.change_pool(&json!({"spec": {"template": {"metadata": {"labels": labels}}}}), true);
            }
            12 => {
                let requirements = self.sizes();
                self.change_pool(
                    &json!({"spec": {"template": {"spec": {"requirements": requirements}}}}),
                    false,
                );
            }
            13 => {
                let path = self.one_of(&[NODES, CLAIMS]);
                if let Some(object) = self.some(path) {
                    self.world.delete(&format!("{path}/{}", name(&object)));
                }
            }
            14 | 15 => {
                self.kill_operator();
                let seconds = self.random.random_range(0..10);
                self.run(seconds * 1000);
                self.start_operator();
            }
            16 => {
                let weather = self.one_of(&[Weather::Fine, Weather::Fine, Weather::Scarce, Weather::Refuses]);
                self.sky.set(weather);
            }
            17 => self.fail(),
            18 => self.change_static(),
            _ => self.run(30_000),
        }
    }

    /// Everything works again.
    pub(crate) fn cure(&mut self) {
        self.faults.set_rules(Vec::new());
        self.sky.set(Weather::Fine);
    }
}
