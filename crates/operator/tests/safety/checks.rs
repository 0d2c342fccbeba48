//! What must never happen, seen from outside: from what the API shows and what the operator asks it for. Nothing of
//! the code under test is used here.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::log::{Entry, What};

/// For so long the operator may not have heard of something yet.
const UNHEARD: SignedDuration = SignedDuration::from_secs(10);
/// The taint of nodes that are about to go.
const DISRUPTED: &str = "karpenter.sh/disrupted";

/// The cluster as it was shown so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By kind and name.
    objects: BTreeMap<(String, String), Object>,
    /// How often something was looked at, so that tests can tell that they have seen anything.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// Claims with which a pool had too much, those on their way out included.
    exceeding: BTreeMap<String, String>,
    /// Claims that came for other nodes.
    replacements: BTreeSet<String>,
}

#[derive(Debug)]
struct Object {
    value: Value,
    /// Since when a pod is protected, or a budget as it is.
    since: Timestamp,
}

/// By how much some claims are too many, in words.
fn excess(limits: &Value, claims: &[&Value]) -> Option<String> {
    let used: i64 = claims.iter().map(|claim| milli(&claim["status"]["capacity"]["cpu"])).sum();
    if !limits["cpu"].is_null() && used > milli(&limits["cpu"]) {
        return Some(format!("has {used}m processors, and may have {}", limits["cpu"]));
    }
    let most = limits["nodes"].as_str()?.parse::<usize>().ok()?;
    (claims.len() > most).then(|| format!("has {} nodes, and may have {most}", claims.len()))
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn name(value: &Value) -> String {
    match text(value, "/metadata/namespace") {
        "" => text(value, "/metadata/name").to_owned(),
        namespace => format!("{namespace}/{}", text(value, "/metadata/name")),
    }
}

fn is_true(value: &Value, condition: &str) -> bool {
    let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == condition && it["status"] == "True")
}

fn is_leaving(value: &Value) -> bool {
    !value["metadata"]["deletionTimestamp"].is_null()
}

fn is_tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.into_iter().any(|taint| taint["key"] == DISRUPTED)
}

fn is_protected(pod: &Value) -> bool {
    pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
}

fn is_done(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// An amount of processors, in thousandths.
fn milli(value: &Value) -> i64 {
    let written = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    match written.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap_or(0),
        None => written.parse::<i64>().unwrap_or(0) * 1000,
    }
}

impl Seen {
    fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), name.to_owned())).map(|object| &object.value)
    }

    fn all<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s Object> {
        self.objects.iter().filter(move |((of, _), _)| of == kind).map(|(_, object)| object)
    }

    fn claim_of(&self, node: &Value) -> Option<&Value> {
        let id = text(node, "/spec/providerID");
        self.all("NodeClaim").map(|it| &it.value).find(|claim| text(claim, "/status/providerID") == id)
    }

    fn node_of(&self, claim: &Value) -> Option<&Value> {
        let id = text(claim, "/status/providerID");
        self.all("Node").map(|it| &it.value).find(|node| text(node, "/spec/providerID") == id)
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Takes note of something that happened; what is wrong with it, if anything.
    pub(crate) fn note(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            What::Applied(value) => {
                let key = (text(value, "/kind").to_owned(), name(value));
                let before = self.objects.get(&key);
                let is_same = |before: &Object| match text(value, "/kind") {
                    "Pod" => {
                        is_protected(&before.value) == is_protected(value)
                            && before.value["spec"]["nodeName"] == value["spec"]["nodeName"]
                    }
                    _ => before.value["spec"] == value["spec"],
                };
                let since = before.filter(|before| is_same(before)).map_or(entry.at, |before| before.since);
                let before = before.map(|before| before.value.clone()).unwrap_or_default();
                self.objects.insert(key, Object { value: value.clone(), since });
                match text(value, "/kind") {
                    "Node" => self.check_budget(&before, value),
                    "NodeClaim" => self.check_limits(&before, value),
                    "Event" => {
                        if text(value, "/reason") == "DisruptionLaunching" {
                            self.replacements.insert(text(value, "/involvedObject/name").to_owned());
                        }
                        self.check_replacements()
                    }
                    _ => Ok(()),
                }
            }
            What::Gone(value) => {
                self.objects.remove(&(text(value, "/kind").to_owned(), name(value)));
                Ok(())
            }
            What::Asked(method, path) => self.check_request(method, path, entry.at),
        }
    }

    /// Budgets hold whenever one more node is given up.
    fn check_budget(&mut self, before: &Value, node: &Value) -> Result<(), String> {
        // Nodes that somebody else has deleted are tainted, too, so that they drain.
        let goes_anyway = self.claim_of(node).is_none_or(is_leaving);
        if is_tainted(before) || !is_tainted(node) || goes_anyway {
            return Ok(());
        }
        self.count("nodes given up");
        let pool = text(node, "/metadata/labels/karpenter.sh~1nodepool");
        let (mut nodes, mut going) = (0, 0);
        for node in self.all("Node").map(|it| &it.value) {
            let Some(claim) = self.claim_of(node) else { continue };
            let is_of_pool = text(node, "/metadata/labels/karpenter.sh~1nodepool") == pool;
            let is_up = text(node, "/metadata/labels/karpenter.sh~1initialized") == "true";
            if is_of_pool && is_up && !is_true(claim, "InstanceTerminating") {
                nodes += 1;
                going += usize::from(is_tainted(node) || is_leaving(claim));
            }
        }
        let pool = self.get("NodePool", pool).cloned().unwrap_or_default();
        let budgets = pool["spec"]["disruption"]["budgets"].as_array().cloned().unwrap_or_default();
        let allowed = budgets.iter().map(|budget| {
            let written = text(budget, "/nodes");
            match written.strip_suffix('%') {
                Some(percent) => (nodes * percent.parse::<usize>().unwrap_or(0)).div_ceil(100),
                None => written.parse().unwrap_or(0),
            }
        });
        let allowed = allowed.min().unwrap_or(usize::MAX);
        if going > allowed {
            return Err(format!("(a) {going} of {nodes} nodes are given up, of which {allowed} may be"));
        }
        Ok(())
    }

    /// A pool never has more than it may have. Nodes on their way out do not count where pods wait for a node, but
    /// they do where one comes for another.
    fn check_limits(&mut self, before: &Value, claim: &Value) -> Result<(), String> {
        let has_capacity = |claim: &Value| !claim["status"]["capacity"].is_null();
        if !before.is_null() && has_capacity(before) == has_capacity(claim) {
            return Ok(());
        }
        let pool = text(claim, "/metadata/labels/karpenter.sh~1nodepool").to_owned();
        let Some(limits) = self.get("NodePool", &pool).map(|pool| pool["spec"]["limits"].clone()) else {
            return Ok(());
        };
        if limits.is_null() {
            return Ok(());
        }
        self.count("claims of limited pools");
        let of_pool = |it: &&Object| text(&it.value, "/metadata/labels/karpenter.sh~1nodepool") == pool;
        let claims: Vec<&Value> = self.all("NodeClaim").filter(of_pool).map(|it| &it.value).collect();
        let staying: Vec<&Value> = claims.iter().copied().filter(|claim| !is_leaving(claim)).collect();
        let (all, staying) = (excess(&limits, &claims), excess(&limits, &staying));
        if let Some(wrong) = staying {
            return Err(format!("(d) NodePool {pool} {wrong}"));
        }
        if let Some(wrong) = all {
            self.exceeding.insert(name(claim), format!("(d) with {} NodePool {pool} {wrong}", name(claim)));
        }
        self.check_replacements()
    }

    /// What comes for another node never exceeds a limit.
    fn check_replacements(&self) -> Result<(), String> {
        match self.exceeding.iter().find(|(claim, _)| self.replacements.contains(*claim)) {
            Some((_, wrong)) => Err(wrong.clone()),
            None => Ok(()),
        }
    }

    fn check_request(&mut self, method: &Method, path: &str, at: Timestamp) -> Result<(), String> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("POST", ["api", "v1", "namespaces", namespace, "pods", pod, "eviction"]) => {
                self.check_eviction(&format!("{namespace}/{pod}"), at)
            }
            ("DELETE", ["api", "v1", "namespaces", namespace, "pods", pod]) => {
                self.check_deletion(&format!("{namespace}/{pod}"), at)
            }
            ("DELETE", ["apis", "karpenter.sh", "v1", "nodeclaims", claim]) => self.check_claim(claim, at),
            _ => Ok(()),
        }
    }

    /// Pods that ask to be left alone are not evicted.
    fn check_eviction(&mut self, pod: &str, at: Timestamp) -> Result<(), String> {
        self.count("evictions");
        let Some(object) = self.objects.get(&("Pod".to_owned(), pod.to_owned())) else { return Ok(()) };
        if is_protected(&object.value)
            && !is_leaving(&object.value)
            && at.duration_since(object.since) > UNHEARD
        {
            return Err(format!("(c) pod {pod} is evicted, which asks to be left alone"));
        }
        Ok(())
    }

    /// Pods are deleted, past their budgets, only where their node has only so much time, and not before that is over.
    fn check_deletion(&mut self, pod: &str, at: Timestamp) -> Result<(), String> {
        self.count("deletions");
        let Some(object) = self.get("Pod", pod) else { return Ok(()) };
        let node = self.get("Node", text(object, "/spec/nodeName"));
        let claim = node.and_then(|node| self.claim_of(node)).cloned().unwrap_or_default();
        let deadline = text(&claim, "/metadata/annotations/karpenter.sh~1nodeclaim-termination-timestamp");
        let Ok(deadline) = deadline.parse::<Timestamp>() else {
            return Err(format!("(b) pod {pod} is deleted, and its node has all the time of the world"));
        };
        let grace = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        if at + SignedDuration::from_secs(grace) < deadline {
            return Err(format!("(b) pod {pod} is deleted at {at}, and has time until {deadline}"));
        }
        Ok(())
    }

    /// Nodes are not given to be drained where pods cannot be evicted, unless these have only so much time.
    fn check_claim(&mut self, claim: &str, at: Timestamp) -> Result<(), String> {
        let Some(claim) = self.get("NodeClaim", claim).filter(|claim| !is_leaving(claim)) else {
            return Ok(());
        };
        let conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
        let reason = conditions.into_iter().find(|it| it["type"] == "DisruptionReason");
        let reason = reason.map(|it| text(it, "/reason").to_owned()).unwrap_or_default();
        let is_bounded = !claim["spec"]["terminationGracePeriod"].is_null() && reason == "Drifted";
        let node = self.node_of(claim).map(name).unwrap_or_default();
        if reason.is_empty() || node.is_empty() || is_bounded {
            return Ok(());
        }
        let is_old = |object: &Object| at.duration_since(object.since) > UNHEARD;
        let never = |budget: &&Object| is_old(budget) && budget.value["spec"]["maxUnavailable"] == 0;
        let never: Vec<&Object> = self.all("PodDisruptionBudget").filter(never).collect();
        let on_node = self.all("Pod").filter(|pod| text(&pod.value, "/spec/nodeName") == node && is_old(pod));
        for pod in on_node.filter(|pod| !is_leaving(&pod.value) && !is_done(&pod.value)) {
            let app = &pod.value["metadata"]["labels"]["app"];
            if is_protected(&pod.value) {
                return Err(format!(
                    "(c) node {node} goes ({reason}), and {} is protected",
                    name(&pod.value)
                ));
            }
            if never.iter().any(|it| it.value["spec"]["selector"]["matchLabels"]["app"] == *app) {
                return Err(format!(
                    "(b) node {node} goes ({reason}), and {} can never go",
                    name(&pod.value)
                ));
            }
        }
        self.count("nodes deleted");
        Ok(())
    }

    /// Whether a node is on its way out.
    pub(crate) fn is_any_leaving(&self) -> bool {
        self.all("Node").any(|it| is_leaving(&it.value))
    }

    /// Nodes that are given up and do not go.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let nodes = self.all("Node").map(|it| &it.value).filter(|node| is_tainted(node) && !is_leaving(node));
        nodes.map(name).collect()
    }
}
