//! What may be asked for: evictions, and deletions of pods and claims.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::checks::{Object, Seen, UNHEARD};
use crate::objects::{
    condition, duration, is_done, is_leaving, is_protected, is_tainted, is_true, name, pool_of, protection,
    reason_of, text, time,
};

/// How long repair gives pods at least, by the policies of the cloud: none where a node is not ready.
const REPAIR_GRACE: SignedDuration = SignedDuration::from_secs(45);

impl Seen {
    pub(crate) fn check_request(&mut self, method: &Method, path: &str, at: Timestamp) -> Result<(), String> {
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

    /// Pods are evicted only from nodes that go or are booted again, and not if they ask to be left alone.
    fn check_eviction(&mut self, pod: &str, at: Timestamp) -> Result<(), String> {
        self.count("evictions");
        let Some(object) = self.object("Pod", pod) else { return Ok(()) };
        if let Some(node) = self.get("Node", text(&object.value, "/spec/nodeName")) {
            let claim = self.claim_of(node);
            let goes = is_leaving(node) || claim.is_none_or(|it| is_leaving(it) || is_true(it, "Rebooting"));
            if !goes {
                return Err(format!("(g) pod {pod} is evicted from {}, which stays", name(node)));
            }
        }
        let is_old = at.duration_since(object.since) > UNHEARD;
        if is_protected(&object.value, at) && !is_leaving(&object.value) && is_old {
            return Err(format!("(c) pod {pod} is evicted, which asks to be left alone"));
        }
        Ok(())
    }

    /// Pods are deleted, past their budgets, only where their node has only so much time, and not before that is over.
    fn check_deletion(&mut self, pod: &str, at: Timestamp) -> Result<(), String> {
        self.count("deletions");
        let Some(object) = self.get("Pod", pod) else { return Ok(()) };
        let Some(node) = self.get("Node", text(object, "/spec/nodeName")) else { return Ok(()) };
        let claim = self.claim_of(node).cloned().unwrap_or_default();
        let Some(deleted) = time(&claim, "/metadata/deletionTimestamp") else {
            return Err(format!("(b) pod {pod} is deleted from {}, which stays", name(node)));
        };
        let own = duration(text(&claim, "/spec/terminationGracePeriod"));
        let of_repair = (reason_of(&claim) == "Unhealthy").then(|| {
            let is_ready = condition(node, "Ready").is_some_and(|it| it["status"] == "True");
            if is_ready { REPAIR_GRACE } else { SignedDuration::ZERO }
        });
        let Some(grace) = own.into_iter().chain(of_repair).min() else {
            return Err(format!("(b) pod {pod} is deleted, and its node has all the time of the world"));
        };
        let deadline = deleted + grace;
        let to_stop = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        if at + SignedDuration::from_secs(to_stop) < deadline {
            return Err(format!("(b) pod {pod} is deleted at {at}, and has time until {deadline}"));
        }
        Ok(())
    }

    /// Claims are deleted because they are given up, or for one of the reasons that need no leave.
    fn check_claim(&mut self, claim: &str, at: Timestamp) -> Result<(), String> {
        let Some(claim) = self.get("NodeClaim", claim).filter(|it| !is_leaving(it)).cloned() else {
            return Ok(());
        };
        let (node, reason) = (self.node_of(&claim).cloned(), reason_of(&claim).to_owned());
        if self.goes_anyway(&claim, node.as_ref(), at) {
            self.count("claims deleted by force");
            return Ok(());
        }
        let name = name(&claim);
        let node = node.unwrap_or_default();
        if reason.is_empty() || !is_tainted(&node) || !self.given_up.contains_key(&name) {
            return Err(format!("(a) NodeClaim {name} is deleted ({reason:?}), and was not given up before"));
        }
        self.check_objections(&claim, &node, &reason, at)?;
        let pool = self.get("NodePool", pool_of(&claim));
        let is_static = pool.is_some_and(|pool| !pool["spec"]["replicas"].is_null());
        let replacements = self.order.go(&name, is_static)?;
        self.count("nodes deleted");
        if replacements > 0 {
            self.count("nodes replaced");
        }
        Ok(())
    }

    /// Whether a claim may go without leave: it never came up, is too old, its node is gone or not to be relied on, is
    /// too many for its pool, or came for another and is of no use.
    fn goes_anyway(&self, claim: &Value, node: Option<&Value>, at: Timestamp) -> bool {
        let Some(node) = node.filter(|node| !is_leaving(node)) else { return true };
        let is_expired = duration(text(claim, "/spec/expireAfter"))
            .zip(time(claim, "/metadata/creationTimestamp"))
            .is_some_and(|(lifetime, created)| at >= created + lifetime);
        let is_ready = condition(node, "Ready").is_some_and(|it| it["status"] == "True");
        // Who starts anew does not know why a claim says that it is given up, and counts it like any other.
        if reason_of(claim).is_empty() || self.order.is_forgotten(&name(claim)) {
            let pool = pool_of(claim);
            let wanted = self.get("NodePool", pool).map_or(Some(0), |pool| pool["spec"]["replicas"].as_u64());
            let of_pool = |it: &&Object| pool_of(&it.value) == pool && !is_leaving(&it.value);
            let count = self.all("NodeClaim").filter(of_pool).count();
            let is_surplus = wanted.is_some_and(|wanted| count as u64 > wanted);
            let is_useless = self.order.may_replace(&name(claim)) && self.pods_on(node).next().is_none();
            if !is_ready || is_surplus || is_useless {
                return true;
            }
        }
        is_expired || !is_true(claim, "Registered") || is_true(claim, "Rebooting")
    }

    /// Pods that need a place, or will.
    fn pods_on<'s>(&'s self, node: &Value) -> impl Iterator<Item = &'s Object> {
        let node = name(node);
        let stays = |pod: &Value| !is_leaving(pod) && !is_done(pod);
        self.all("Pod").filter(move |pod| text(&pod.value, "/spec/nodeName") == node && stays(&pod.value))
    }

    /// A node whose owner asks to leave it alone is not given up.
    pub(crate) fn check_protection(&self, node: &Value, reason: &str, at: Timestamp) -> Result<(), String> {
        let name = name(node);
        let is_old = self.object("Node", &name).is_some_and(|it| at.duration_since(it.since) > UNHEARD);
        if protection(node) == "true" && is_old && reason != "Unhealthy" {
            return Err(format!("(c) node {name} is given up ({reason}), which asks to be left alone"));
        }
        Ok(())
    }

    /// Nodes are not given up where pods cannot be evicted, unless these have only so much time.
    pub(crate) fn check_objections(
        &self,
        claim: &Value,
        node: &Value,
        reason: &str,
        at: Timestamp,
    ) -> Result<(), String> {
        let is_bounded = !claim["spec"]["terminationGracePeriod"].is_null() && reason == "Drifted";
        if is_bounded || reason == "Unhealthy" {
            return Ok(());
        }
        let node_name = name(node);
        let is_old = |object: &&Object| at.duration_since(object.since) > UNHEARD;
        for pod in self.pods_on(node).filter(is_old).map(|it| &it.value) {
            let pod_name = name(pod);
            if is_protected(pod, at) {
                return Err(format!("(c) node {node_name} goes ({reason}), and {pod_name} is protected"));
            }
            let app = &pod["metadata"]["labels"]["app"];
            let selects = |it: &&Object| it.value["spec"]["selector"]["matchLabels"]["app"] == *app;
            let budgets: Vec<&Value> =
                self.all("PodDisruptionBudget").filter(selects).filter(is_old).map(|it| &it.value).collect();
            // Eviction does not work where several budgets select a pod.
            let is_never = |budget: &&Value| budget["status"]["disruptionsAllowed"].as_i64() == Some(0);
            if budgets.len() > 1 || budgets.iter().any(is_never) {
                return Err(format!("(b) node {node_name} goes ({reason}), and {pod_name} cannot"));
            }
        }
        Ok(())
    }
}
