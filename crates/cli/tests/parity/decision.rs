//! A decision about pods, as `karpenter plan` prints it and as a controller carries it out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use api::names::labels;
use serde_json::Value;

/// What is decided about the pods of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// Nodes to launch, in the order of their pods.
    pub(crate) nodes: Vec<NewNode>,
    /// Pods by the claim of the node that they go to.
    pub(crate) existing: BTreeMap<String, BTreeSet<String>>,
    /// Why pods stay pending.
    pub(crate) pending: BTreeMap<String, String>,
}

/// A node to launch.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) struct NewNode {
    pub(crate) pods: BTreeSet<String>,
    pub(crate) pool: String,
    /// What it may become.
    pub(crate) types: BTreeSet<String>,
    /// What else its claim says.
    pub(crate) requirements: BTreeSet<String>,
    /// What it becomes: type, how it is bought, and the price.
    pub(crate) launched: (String, String, f64),
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// A requirement in a form in which the order of its values does not matter.
fn requirement(value: &Value) -> String {
    let bound = if value["minValues"].is_null() { String::new() } else { format!(" {}", value["minValues"]) };
    format!("{} {} {:?}{bound}", text(&value["key"]), text(&value["operator"]), texts(&value["values"]))
}

/// The types that requirements name, and the others; a demand for choice of types is among them.
pub(crate) fn types_and_others(requirements: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut types, mut others) = (BTreeSet::new(), BTreeSet::new());
    for each in requirements.as_array().into_iter().flatten() {
        if each["key"] == labels::INSTANCE_TYPE && each["operator"] == "In" {
            types = texts(&each["values"]);
            if !each["minValues"].is_null() {
                others.insert(format!("at least {} types", each["minValues"]));
            }
        } else if each["key"] != labels::NODEPOOL {
            others.insert(requirement(each));
        }
    }
    (types, others)
}

impl Decision {
    /// What `plan -o json` says. `claims` are those of nodes that exist.
    pub(crate) fn of_plan(plan: &Value, claims: &BTreeMap<String, String>) -> Self {
        let new = |it: &Value| {
            let names: Vec<String> = texts_in_order(&it["instanceTypes"]);
            let (_, requirements) = types_and_others(&it["requirements"]);
            let cheapest = names.first().cloned().unwrap_or_default();
            let price = it["price"].as_f64().unwrap_or_default();
            NewNode {
                pods: texts(&it["pods"]),
                pool: text(&it["nodePool"]),
                types: names.into_iter().collect(),
                requirements,
                launched: (cheapest, text(&it["capacityType"]), price),
            }
        };
        let mut nodes: Vec<NewNode> =
            plan["newNodeClaims"].as_array().into_iter().flatten().map(new).collect();
        nodes.sort_by(|a, b| a.partial_cmp(b).expect("prices are numbers"));
        let claim = |node: &String| claims.get(node).unwrap_or(node).clone();
        let existing = plan["existing"].as_object().into_iter().flatten();
        let pending = plan["errors"].as_object().into_iter().flatten();
        Self {
            nodes,
            existing: existing.map(|(node, pods)| (claim(node), texts(pods))).collect(),
            pending: pending.map(|(pod, why)| (pod.clone(), text(why))).collect(),
        }
    }

    /// The first thing in which two decisions differ, in words.
    pub(crate) fn difference(&self, other: &Self, [ours, theirs]: [&str; 2]) -> Option<String> {
        if self == other {
            return None;
        }
        let mut told = String::new();
        let mut tell = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
            let _ = writeln!(told, "  {what}\n    {ours}: {a:?}\n    {theirs}: {b:?}");
        };
        let pools =
            |of: &Self| of.nodes.iter().map(|it| (it.pool.clone(), it.pods.clone())).collect::<Vec<_>>();
        let (of_self, of_other) = (pools(self), pools(other));
        if of_self == of_other {
            for (a, b) in self.nodes.iter().zip(&other.nodes) {
                if a.launched != b.launched {
                    tell("what is launched", &a.launched, &b.launched);
                }
                if a.types != b.types {
                    let lacks =
                        |a: &NewNode, b: &NewNode| a.types.difference(&b.types).cloned().collect::<Vec<_>>();
                    tell("types alone", &lacks(a, b), &lacks(b, a));
                }
                if a.requirements != b.requirements {
                    tell("requirements", &a.requirements, &b.requirements);
                }
            }
        } else {
            tell("new nodes", &of_self, &of_other);
        }
        if self.existing != other.existing {
            tell("existing nodes", &self.existing, &other.existing);
        }
        let pods: BTreeSet<&String> = self.pending.keys().chain(other.pending.keys()).collect();
        for pod in pods {
            let (a, b) = (self.pending.get(pod), other.pending.get(pod));
            if a != b {
                tell(&format!("why {pod} is pending"), &a, &b);
            }
        }
        Some(told)
    }
}

fn texts_in_order(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}
