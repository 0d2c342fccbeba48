//! What happens to clusters.

use std::time::Duration;

use embedded::faults::{Fault, Rule};
use http::Method;
use rand::RngExt as _;
use serde_json::{Value, json};
use testkit::scenarios::manifests::{deployment_with, node_class, with};

use crate::cloud::{FAIL, Weather};
use crate::{PODS, Played};

const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";
pub(crate) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const PROTECTION: &str = "karpenter.sh/do-not-disrupt";
/// Faults come and go; the operator has so many chances to notice each.
const RATE: f64 = 0.15;

fn name(value: &Value) -> &str {
    value["metadata"]["name"].as_str().unwrap_or_default()
}

impl Played {
    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())].clone()
    }

    pub(crate) fn add_pools(&mut self) {
        let mut names = self.character.pools();
        names.extend(self.character.has_fixed.then_some("fixed"));
        for name in names {
            self.world.apply(&self.character.pool(name, &mut self.random).to_string());
        }
        self.world.apply(&node_class().to_string());
    }

    pub(crate) fn add_deployment(&mut self, number: usize) {
        let name = format!("d{number}");
        let replicas = self.random.random_range(2..8);
        let cpu = self.one_of(&["200m", "500m", "1", "1500m"]);
        let mut spec = json!({"terminationGracePeriodSeconds": self.one_of(&[0, 5, 20])});
        if self.random.random_bool(0.4) {
            let selector = json!({"matchLabels": {"app": name}});
            let key = self.one_of(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
            }]);
        }
        let mut deployment = deployment_with(&name, replicas, cpu, &spec);
        if self.random.random_bool(0.15) {
            let protection = self.one_of(&["true", "3m", "20m"]);
            deployment["spec"]["template"]["metadata"]["annotations"] = json!({PROTECTION: protection});
        }
        self.world.apply(&deployment.to_string());
        self.wanted.insert(name, replicas);
    }

    fn some_deployment(&mut self) -> String {
        let names: Vec<String> = self.wanted.keys().cloned().collect();
        self.one_of(&names)
    }

    fn some(&mut self, path: &str) -> Option<Value> {
        let all = self.world.list(path);
        (!all.is_empty()).then(|| self.one_of(&all))
    }

    fn scale(&mut self) {
        let name = self.some_deployment();
        // Where not all pods have a place, more of some would take it from others.
        let is_fixed = self.character.is_limited && !self.character.is_contested;
        let most = if is_fixed { self.wanted[&name] } else { 8 };
        let replicas = self.random.random_range(0..=most);
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}");
        self.world.patch(&path, &json!({"spec": {"replicas": replicas}}));
        self.wanted.insert(name, replicas);
    }

    /// There is less to do everywhere, so that several nodes are too many at the same time.
    fn shrink(&mut self) {
        for (name, replicas) in self.wanted.clone() {
            let replicas = replicas.div_ceil(2);
            let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}");
            self.world.patch(&path, &json!({"spec": {"replicas": replicas}}));
            self.wanted.insert(name, replicas);
        }
        self.run(60);
    }

    /// Nodes are no longer what their pool asks for.
    fn drift(&mut self) {
        let pools = self.world.list(POOLS);
        let pool = self.one_of(&pools);
        let value = self.random.random::<u32>().to_string();
        let change = json!({"spec": {"template": {"metadata": {"labels": {"example.com/version": value}}}}});
        self.world.patch(&format!("{POOLS}/{}", name(&pool)), &change);
    }

    /// A pod or a node asks to be left alone, or not any more.
    fn protect(&mut self) {
        let is_pod = self.random.random_bool(0.7);
        let Some(object) = self.some(if is_pod { PODS } else { NODES }) else { return };
        let known = &object["metadata"]["annotations"][PROTECTION];
        let value = if known.is_null() {
            self.one_of(&[json!("true"), json!("true"), json!("90s")])
        } else {
            Value::Null
        };
        let collection = if is_pod { "/api/v1/namespaces/default/pods" } else { NODES };
        let path = format!("{collection}/{}", name(&object));
        self.world.patch(&path, &json!({"metadata": {"annotations": {PROTECTION: value}}}));
    }

    /// A deployment gets another budget, several, or none.
    fn budget(&mut self) {
        let app = self.some_deployment();
        let of_app: Vec<Value> = self.world.list(BUDGETS);
        let of_app: Vec<&Value> =
            of_app.iter().filter(|it| it["spec"]["selector"]["matchLabels"]["app"] == app.as_str()).collect();
        let is_second = of_app.len() == 1 && self.random.random_bool(0.2);
        if !of_app.is_empty() && !is_second {
            for it in of_app {
                self.world.delete(&format!("{BUDGETS}/{}", name(it)));
            }
            return;
        }
        let all = self.wanted[&app];
        let mut spec = self.one_of(&[
            json!({"maxUnavailable": 0}),
            json!({"maxUnavailable": 1}),
            json!({"minAvailable": 1}),
            json!({"minAvailable": all}),
            json!({"minAvailable": "50%"}),
        ]);
        spec["selector"] = json!({"matchLabels": {"app": app}});
        let name = if is_second { format!("{app}-again") } else { app };
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.world.apply(&budget.to_string());
    }

    /// The API server fails in some way, or not any more.
    fn fail(&mut self) {
        let second = Duration::from_secs(1);
        let write = self.one_of(&["create", "patch", "delete"]);
        let (verb, fault) = self.one_of(&[
            (write, Fault::InternalError),
            (write, Fault::Unavailable),
            (write, Fault::Conflict),
            (write, Fault::TooManyRequests),
            (write, Fault::Cut),
            (write, Fault::LostReply),
            (write, Fault::Delay(2 * second)),
            (write, Fault::DelayedReply(2 * second)),
            ("", Fault::StaleRead { behind: 12 }),
            ("", Fault::Expired),
            ("", Fault::CutWatch { after: 3 }),
            ("watch", Fault::Delay(2 * second)),
            ("list", Fault::Unavailable),
        ]);
        let rules = match self.random.random_range(0..4) {
            0 => Vec::new(),
            // Reads are rare.
            _ if verb != write => vec![Rule::on(verb, "", 3.0 * RATE, fault)],
            _ => vec![Rule::on(verb, "", RATE, fault)],
        };
        self.faults.set_rules(rules);
    }

    /// Machines do not come up, or do again.
    fn weather(&mut self) {
        let weather = self.one_of(&[Weather::Fine, Weather::Scarce, Weather::Refuses, Weather::Stillborn]);
        self.sky.set(weather);
        let is_lost = weather == Weather::Fine && self.random.random_bool(0.4);
        let delay = if is_lost { "24h" } else { "0s" };
        self.world.apply(&with(node_class(), &json!({"spec": {"nodeRegistrationDelay": delay}})).to_string());
        // So that some are asked for.
        self.drift();
    }

    /// A node breaks, or several do.
    fn break_nodes(&mut self) {
        for _ in 0..self.one_of(&[1, 1, 2, 6]) {
            self.break_node();
        }
    }

    fn break_node(&mut self) {
        let Some(node) = self.some(NODES) else { return };
        let path = format!("{NODES}/{}", name(&node));
        let conditions = ["not-ready", "KWOKUnhealthy", "KWOKUnhealthy", "KWOKRebootRequired"];
        // Without repair, nobody cares about other conditions.
        let broken = if self.character.is_repaired { self.one_of(&conditions) } else { "not-ready" };
        if broken == "not-ready" {
            self.world.patch(&path, &json!({"metadata": {"annotations": {FAIL: broken}}}));
            return;
        }
        let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let since = self.world.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        conditions.retain(|it| it["type"] != broken);
        conditions
            .push(json!({"type": broken, "status": "True", "reason": "Simulated", "message": "it is broken",
            "lastTransitionTime": since, "lastHeartbeatTime": since}));
        self.world.patch(&format!("{path}/status"), &json!({"status": {"conditions": conditions}}));
    }

    /// Somebody deletes a node, or its claim.
    fn delete(&mut self) {
        let collection = self.one_of(&[NODES, CLAIMS]);
        if let Some(object) = self.some(collection) {
            self.world.delete(&format!("{collection}/{}", name(&object)));
        }
    }

    fn resize(&mut self) {
        let replicas = self.random.random_range(0..4);
        self.world.patch(&format!("{POOLS}/fixed/scale"), &json!({"spec": {"replicas": replicas}}));
    }

    /// Lets time pass until the operator is in the middle of something, or has nothing to do.
    fn wait_for_a_command(&mut self) {
        for _ in 0..30 {
            if !self.seen.left_over().is_empty() {
                return;
            }
            self.run(1);
        }
    }

    /// Something happens.
    pub(crate) fn change(&mut self) {
        match self.random.random_range(0..16) {
            2..4 => self.shrink(),
            4..6 => self.drift(),
            6..8 => (0..3).for_each(|_| self.protect()),
            8 => self.budget(),
            9..11 => self.fail(),
            11 => {
                self.wait_for_a_command();
                self.kill_operator();
                let seconds = self.random.random_range(0..20);
                self.run(seconds);
                self.start_operator();
            }
            12..14 if self.character.has_weather => self.weather(),
            // What is lost by force may find no place within a limit.
            12..14 if self.character.is_repaired => self.break_nodes(),
            14 if !self.character.is_limited => self.break_nodes(),
            15 if self.character.has_fixed && !self.character.is_limited => self.resize(),
            15 if !self.character.is_limited => self.delete(),
            _ => self.scale(),
        }
    }

    /// Everything works again.
    pub(crate) fn cure(&mut self) {
        self.faults.set_rules(Vec::new());
        self.start_operator();
        self.sky.set(Weather::Fine);
        self.world.apply(&with(node_class(), &json!({"spec": {"nodeRegistrationDelay": "0s"}})).to_string());
        for node in self.world.list(NODES) {
            let path = format!("{NODES}/{}", name(&node));
            let sound: Vec<&Value> = node["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|it| !it["type"].as_str().unwrap_or_default().starts_with("KWOK"))
                .collect();
            let change = json!({"metadata": {"annotations": {FAIL: null}}});
            self.world.patch(&path, &change);
            let merge = "application/merge-patch+json";
            let status = json!({"status": {"conditions": sound}});
            let _ = self.world.send(Method::PATCH, &format!("{path}/status"), merge, &status);
        }
    }

    /// The pools get the smallest nodes only from now on; the others are no longer what they ask for.
    pub(crate) fn narrow(&mut self) {
        let requirements = self.character.requirements(&["1"]);
        let change = json!({"spec": {"template": {"spec": {"requirements": requirements}}}});
        for pool in self.character.pools() {
            self.world.patch(&format!("{POOLS}/{pool}"), &change);
        }
        self.character.is_limited = true;
    }
}
