//! What consolidation decides, without a cluster.

mod balancing;
mod budgets;
mod deleting;
mod merging;
mod moving;
mod paying;
mod picking;
mod replacing;
mod told;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::events::UNCONSOLIDATABLE;
use api::provider::Provider;
use cluster::costs::Costs;
use cluster::instance_types::{InstanceType, kwok};
use cluster::state::State;
use jiff::Timestamp;
use runtime::Settings;
use serde_json::{Value, json};
use units::Resources;

use super::Consolidation;
use crate::catalogue::Types;
use crate::disruption::Method;
use crate::disruption::candidate::Candidate;
use crate::disruption::command::Command;
use crate::disruption::decision::{Decision, Invalid};
use crate::disruption::glance::{Look, View, glance};
use crate::disruption::scene::Scene;
use crate::testing::{merge, node_objects, pod_object, pool_object, state_of};

const NOW: &str = "2026-01-01T01:00:00Z";
const OD: &str = "on-demand";
const SPOT: &str = "spot";
const TYPE: &str = "node.kubernetes.io/instance-type";

/// A cluster to decide about.
#[derive(Clone)]
struct World {
    objects: Vec<Value>,
    types: Types,
    settings: Settings,
    provider: Provider,
    /// Instances on which pods are expected.
    nominated: Vec<&'static str>,
    /// Instances that are on their way out.
    leaving: Vec<&'static str>,
    now: Timestamp,
}

/// A type of so many processors with offerings: how, where and for how much.
fn kind(name: &str, cpu: u32, offers: &[(&str, &str, f64)]) -> InstanceType {
    let offers: Vec<Value> = offers
        .iter()
        .map(|(kind, zone, price)| json!({"capacityType": kind, "zone": zone, "price": price}))
        .collect();
    let amounts = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "200"});
    let file = json!([{"name": name, "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": amounts, "offerings": offers}]);
    let mut kind = kwok::parse("types", file.to_string().as_bytes()).unwrap().remove(0);
    kind.overhead = Resources::default();
    kind
}

/// A type in two zones, for half of its price if it is a spot node.
fn usual(name: &str, cpu: u32, price: f64) -> InstanceType {
    let half = price / 2.0;
    let (a, b) = ("test-zone-a", "test-zone-b");
    kind(name, cpu, &[(OD, a, price), (OD, b, price), (SPOT, a, half), (SPOT, b, half)])
}

/// Types of 1, 2, 4 and 8 processors, which cost as much.
fn sizes() -> Vec<InstanceType> {
    [1, 2, 4, 8].map(|cpu| usual(&format!("s-{cpu}"), cpu, f64::from(cpu))).to_vec()
}

/// So many types of four processors, the first of which costs 1, the second 2 and so on; the dearest first.
fn flat(count: u32) -> Vec<InstanceType> {
    (1..=count).rev().map(|number| usual(&format!("t-{number:02}"), 4, f64::from(number))).collect()
}

/// A change of a pool: nothing but on-demand nodes.
fn on_demand() -> Value {
    requiring(&json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [OD]}]))
}

/// A change of a pool: these requirements.
fn requiring(requirements: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"requirements": requirements}}}})
}

fn protected(value: &str) -> Value {
    json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}})
}

/// A pod on a node that asks for some processor, with changes.
fn pod(name: &str, node: &str, cpu: &str, change: &Value) -> Value {
    let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
    let mut pod = pod_object(
        name,
        node,
        &json!({"metadata": {"labels": {"on": node}}, "spec": {"containers": containers}}),
    );
    merge(&mut pod, change);
    pod
}

/// A pod that waits for a place.
fn waiting_pod(name: &str, cpu: &str) -> Value {
    let conditions = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    pod(name, "", cpu, &json!({"status": {"phase": "Pending", "conditions": conditions}}))
}

/// A budget of the pods of a node that lets so many go.
fn pod_budget(node: &str, allowed: i32, change: &Value) -> Value {
    let mut budget = json!({
        "kind": "PodDisruptionBudget", "metadata": {"name": format!("of-{node}"), "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"on": node}}}, "status": {"disruptionsAllowed": allowed},
    });
    merge(&mut budget, change);
    budget
}

impl World {
    /// A cluster with types and a pool `p`.
    fn new(types: Vec<InstanceType>, of_pool: &Value) -> Self {
        let world = Self {
            objects: Vec::new(),
            types: [("p".into(), types.into())].into(),
            settings: Settings::default(),
            provider: Provider::Kwok,
            nominated: Vec::new(),
            leaving: Vec::new(),
            now: NOW.parse().unwrap(),
        };
        world.pool("p", of_pool)
    }

    /// One of on-demand nodes.
    fn on_demand(types: Vec<InstanceType>) -> Self {
        Self::new(types, &on_demand())
    }

    /// One more pool, all of whose nodes may go, with the types of the first.
    fn pool(mut self, name: &str, change: &Value) -> Self {
        let mut pool = pool_object(name, &json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}));
        merge(&mut pool, change);
        let types = Arc::clone(&self.types["p"]);
        self.types.insert(name.into(), types);
        self.with(pool)
    }

    /// Another object, or another version of one.
    fn with(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// A node of pool `p` with pods that ask for some processor.
    fn node(self, name: &str, type_: &str, kind: &str, pods: &[&str]) -> Self {
        self.node_of("p", name, (type_, kind), pods, &json!({}), &json!({}))
    }

    /// As [`World::node`], of another pool and with changes of node and claim.
    fn node_of(
        mut self,
        pool: &str,
        name: &str,
        (type_, kind): (&str, &str),
        pods: &[&str],
        of_node: &Value,
        of_claim: &Value,
    ) -> Self {
        let known = self.types["p"].iter().find(|known| known.name == type_);
        let cpu =
            known.and_then(|known| known.capacity.get("cpu")).map_or("4".to_owned(), |cpu| cpu.to_string());
        let labels = json!({"metadata": {"labels": {TYPE: type_, "karpenter.sh/capacity-type": kind}}});
        let amounts = json!({"cpu": cpu, "memory": "64Gi", "pods": "200"});
        let mut node = labels.clone();
        merge(&mut node, &json!({"status": {"capacity": amounts, "allocatable": amounts}}));
        merge(&mut node, of_node);
        let mut claim = labels;
        merge(&mut claim, of_claim);
        self.objects.extend(node_objects(name, pool, &node, &claim));
        for (number, cpu) in pods.iter().enumerate() {
            self.objects.push(pod(&format!("{name}-{number}"), name, cpu, &json!({})));
        }
        self
    }

    /// A node that is none of ours, with so many processors.
    fn foreign(self, name: &str, cpu: &str) -> Self {
        let amounts = json!({"cpu": cpu, "memory": "64Gi", "pods": "200"});
        self.with(json!({
            "kind": "Node", "metadata": {"name": name, "uid": format!("uid-of-{name}")},
            "spec": {"providerID": format!("other://{name}")},
            "status": {"capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}]},
        }))
    }

    fn spot_to_spot(mut self) -> Self {
        self.settings.gates.spot_to_spot_consolidation = true;
        self
    }

    fn at(mut self, now: &str) -> Self {
        self.now = now.parse().unwrap();
        self
    }

    fn state(&self) -> State {
        let mut state = state_of(self.provider, &self.objects);
        for id in &self.nominated {
            state.nominate(id, self.now + jiff::SignedDuration::from_secs(20));
        }
        state.mark_for_deletion(self.leaving.iter().copied());
        state
    }

    fn scene(&self) -> Scene {
        let none = BTreeSet::new();
        Scene::new(&self.state(), &self.types, &Arc::new(self.settings.clone()), &none, self.now)
    }

    fn view(&self, method: Consolidation) -> View {
        let none = BTreeSet::new();
        let look = Look {
            types: &self.types,
            taken: &none,
            relied_on: &none,
            leaving: &none,
            costs: Costs::default(),
            now: self.now,
        };
        glance(&self.state(), [&method as &dyn Method], look).views.remove(0)
    }

    fn decide(&self, method: Consolidation) -> Decision {
        let mut view = self.view(method);
        method.decide(&self.scene(), view.candidates, &mut view.budgets)
    }

    /// What is done about one node at a time, in words.
    fn single(&self) -> Vec<String> {
        done(&self.decide(Consolidation::Single))
    }

    /// What is done about several nodes at once, in words.
    fn multi(&self) -> Vec<String> {
        done(&self.decide(Consolidation::Multi))
    }

    /// What users are told that keeps nodes.
    fn kept(&self) -> Vec<String> {
        told(&self.decide(Consolidation::Single))
    }

    /// What holds of a command when the cluster is like this.
    fn validate(&self, method: Consolidation, command: &Command) -> Result<Command, Invalid> {
        let mut view = self.view(method);
        method.validate(&self.scene(), command.clone(), view.candidates, &mut view.budgets)
    }
}

/// Commands in words: what is done, to which nodes, and what they can become.
fn done(decision: &Decision) -> Vec<String> {
    let shown = |command: &Command| {
        let names: Vec<&str> = command.candidates.iter().map(Candidate::name).collect();
        let mut text = format!("{} {}", command.decision(), names.join(" "));
        for launch in &command.replacements {
            text = format!("{text} -> {} {}", launch.capacity_type(), launch.new.types.join(" "));
        }
        text
    };
    decision.commands.iter().map(shown).collect()
}

/// What users are told that keeps nodes, each as `object: message`.
fn told(decision: &Decision) -> Vec<String> {
    let notices = decision.notices.iter().filter(|it| it.event.reason == UNCONSOLIDATABLE.reason);
    notices.map(|it| format!("{}: {}", it.about.name, it.message)).collect()
}

/// Both users of a message: the node and its claim.
fn twice(node: &str, message: &str) -> [String; 2] {
    [format!("{node}: {message}"), format!("claim-{node}: {message}")]
}
