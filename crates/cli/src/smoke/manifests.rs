//! The NodePool and the pods of a smoke test.

use api::provider::Provider;
use serde_json::{Value, json};

/// The label, taint and name prefix by which everything of a smoke test is found.
pub(super) const LABEL: &str = "karpenter-smoke";
/// The capacity types that get a node each.
pub(super) const CAPACITY_TYPES: [&str; 2] = ["spot", "on-demand"];
/// Nodes end after this time even if nobody is left to delete them.
const LIFETIME_MINUTES: u32 = 60;

/// What is launched, and where.
#[derive(Clone, Debug)]
pub(super) struct Smoke {
    pub(super) provider: Provider,
    /// The name of the NodePool, by which the cloud tags the instances, too.
    pub(super) name: String,
    pub(super) node_class: String,
    pub(super) namespace: String,
    pub(super) image: String,
    /// The processors that the nodes may have together.
    pub(super) max_cpu: u32,
}

impl Smoke {
    /// The NodePool: no pod but ours is scheduled to its nodes, and they go by themselves once they are empty.
    pub(super) fn node_pool(&self) -> Value {
        let class = self.provider.node_class();
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": self.name, "labels": {LABEL: self.name}},
            "spec": {
                "template": {
                    "metadata": {"labels": {LABEL: self.name}},
                    "spec": {
                        "nodeClassRef": {"group": class.group, "kind": class.kind, "name": self.node_class},
                        "requirements": [
                            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": CAPACITY_TYPES},
                            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                        ],
                        "taints": [{"key": LABEL, "value": self.name, "effect": "NoSchedule"}],
                        "expireAfter": format!("{LIFETIME_MINUTES}m"),
                        "terminationGracePeriod": "5m",
                    },
                },
                "limits": {"cpu": self.max_cpu.to_string()},
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"},
            },
        })
    }

    /// A pod that needs a node of a capacity type. It ends by itself, so that its node becomes empty.
    pub(super) fn pod(&self, capacity_type: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": self.pod_name(capacity_type), "namespace": self.namespace,
                "labels": {LABEL: self.name},
            },
            "spec": {
                "nodeSelector": {LABEL: self.name, "karpenter.sh/capacity-type": capacity_type},
                "tolerations": [{"key": LABEL, "operator": "Equal", "value": self.name, "effect": "NoSchedule"}],
                "restartPolicy": "Never",
                "activeDeadlineSeconds": LIFETIME_MINUTES * 60,
                "terminationGracePeriodSeconds": 5,
                "automountServiceAccountToken": false,
                "containers": [{
                    "name": "pause", "image": self.image,
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }],
            },
        })
    }

    pub(super) fn pod_name(&self, capacity_type: &str) -> String {
        format!("{}-{capacity_type}", self.name)
    }

    /// Everything that is about to be done, for somebody who has to agree to it.
    pub(super) fn announcement(&self) -> String {
        let Self { name, node_class, namespace, image, max_cpu, .. } = self;
        let kind = self.provider.node_class().kind;
        format!(
            "This smoke test launches two real nodes, which cost money, and removes them again:\n\
             \n\
             1. create NodePool {name} with {kind} {node_class}: Linux nodes, spot and on-demand, {max_cpu} CPU \
             together at most, tainted {LABEL}={name}:NoSchedule so that no other pod is scheduled there\n\
             2. create pods {namespace}/{} and {namespace}/{} ({image}), and wait until both run\n\
             3. delete the two NodeClaims, so that their nodes are drained and their instances terminated\n\
             4. delete NodePool {name}, and check that no NodeClaim, Node, pod or instance is left\n\
             \n\
             If it is cut off, the pods end after {LIFETIME_MINUTES} minutes and their empty nodes are removed by \
             Karpenter a minute later; `kubectl delete nodepool {name}` removes everything at once.\n",
            self.pod_name(CAPACITY_TYPES[0]),
            self.pod_name(CAPACITY_TYPES[1]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smoke() -> Smoke {
        Smoke {
            provider: Provider::Aws,
            name: "karpenter-smoke-1a2b".into(),
            node_class: "default".into(),
            namespace: "kube-system".into(),
            image: "pause".into(),
            max_cpu: 8,
        }
    }

    #[test]
    fn pods_of_a_smoke_test_fit_its_nodes_and_no_others() {
        let smoke = smoke();
        let pool = smoke.node_pool();
        let template = &pool["spec"]["template"];
        for capacity_type in CAPACITY_TYPES {
            let pod = smoke.pod(capacity_type);
            let selector = pod["spec"]["nodeSelector"].as_object().expect("it chooses its node");
            assert_eq!(template["metadata"]["labels"][LABEL], selector[LABEL]);
            let allowed = template["spec"]["requirements"][0]["values"].as_array().expect("a list");
            assert!(allowed.contains(&selector["karpenter.sh/capacity-type"]));
            let (taint, toleration) = (&template["spec"]["taints"][0], &pod["spec"]["tolerations"][0]);
            for field in ["key", "value", "effect"] {
                assert_eq!(taint[field], toleration[field]);
            }
        }
        let parsed: Result<api::nodepool::NodePool, _> = serde_json::from_value(pool);
        assert!(parsed.is_ok(), "{parsed:?}");
    }

    #[test]
    fn everything_that_is_created_is_announced() {
        let (smoke, text) = (smoke(), smoke().announcement());
        for word in [
            &*smoke.name,
            "EC2NodeClass default",
            "8 CPU",
            "kube-system/karpenter-smoke-1a2b-spot",
            "60 minutes",
        ] {
            assert!(text.contains(word), "{word} is missing in {text}");
        }
    }
}
