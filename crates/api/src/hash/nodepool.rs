//! The hash of a NodePool: its template without the requirements, which are compared with labels instead.

use super::{Struct, int64, map, set, string, time};
use crate::nodepool::{NodeClaimTemplateSpec, NodePool, TemplateMetadata};
use crate::shared::{NodeClassReference, Taint};

/// Stored next to the hash; changes whenever the algorithm or the hashed fields do.
pub const NODE_POOL_HASH_VERSION: &str = "v3";

/// The drift hash of a NodePool, as it stands in the annotation `karpenter.sh/nodepool-hash`.
pub fn node_pool_hash(pool: &NodePool) -> String {
    let template = &pool.spec.template;
    Struct::new("NodeClaimTemplate")
        .field("ObjectMeta", metadata(&template.metadata))
        .field("Spec", Some(spec(&template.spec)))
        .hash()
        .to_string()
}

fn metadata(metadata: &TemplateMetadata) -> Option<u64> {
    let TemplateMetadata { labels, annotations } = metadata;
    let set = labels.is_some() || annotations.is_some();
    set.then(|| {
        Struct::new("ObjectMeta")
            .field("Labels", labels.as_ref().map(map))
            .field("Annotations", annotations.as_ref().map(map))
            .hash()
    })
}

fn spec(spec: &NodeClaimTemplateSpec) -> u64 {
    let taints = |taints: &Vec<Taint>| set(taints.iter().map(taint));
    Struct::new("NodeClaimTemplateSpec")
        .field("Taints", spec.taints.as_ref().map(taints))
        .field("StartupTaints", spec.startup_taints.as_ref().map(taints))
        .field("NodeClassRef", Some(node_class_reference(&spec.node_class_ref)))
        .field(
            "TerminationGracePeriod",
            spec.termination_grace_period.map(|period| {
                let nanos = period.as_nanos();
                Struct::new("Duration").field("Duration", (nanos != 0).then(|| int64(nanos))).hash()
            }),
        )
        .field(
            "ExpireAfter",
            spec.expire_after.duration().map(|after| {
                Struct::new("NillableDuration").field("Duration", Some(int64(after.as_nanos()))).hash()
            }),
        )
        .hash()
}

fn taint(taint: &Taint) -> u64 {
    Struct::new("Taint")
        .text("Key", &taint.key)
        .text("Value", &taint.value)
        .text("Effect", &taint.effect)
        .field("TimeAdded", taint.time_added.as_ref().map(time))
        .hash()
}

fn node_class_reference(reference: &NodeClassReference) -> u64 {
    Struct::new("NodeClassReference")
        .field("Kind", Some(string(&reference.kind)))
        .field("Name", Some(string(&reference.name)))
        .field("Group", Some(string(&reference.group)))
        .hash()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of a pool whose template holds the vectors' reference, changed by `metadata` and `spec`.
    #[expect(clippy::needless_pass_by_value, reason = "json! at the call sites makes values")]
    fn hash(metadata: serde_json::Value, spec: serde_json::Value) -> String {
        let mut template = serde_json::json!({
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [],
            "expireAfter": "720h",
        });
        template.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let pool = serde_json::json!({
            "metadata": {"name": "default"},
            "spec": {"template": {"metadata": metadata, "spec": template}},
        });
        node_pool_hash(&serde_json::from_value(pool).unwrap())
    }

    #[track_caller]
    fn check(metadata: serde_json::Value, spec: serde_json::Value, expected: &str) {
        assert_eq!(hash(metadata, spec), expected);
    }

    #[test]
    fn hashes_equal_upstreams() {
        use serde_json::json;
        let none = || json!({});
        check(none(), none(), "12745407319442031341");
        check(none(), json!({"expireAfter": "Never"}), "7428780003907761376");
        check(json!({"labels": {"a": "1", "b": "2"}}), none(), "10157433392244700245");
        check(json!({"labels": {}}), none(), "5327702334917744615");
        check(json!({"annotations": {"x": "y"}}), none(), "14887539423823369657");
        let taint = json!({"key": "k", "value": "v", "effect": "NoSchedule"});
        let other = json!({"key": "k2", "effect": "NoExecute"});
        check(none(), json!({"taints": [taint]}), "1590387094015583165");
        check(none(), json!({"taints": []}), "845502862369909111");
        check(none(), json!({"taints": [taint, other]}), "12599259529599738509");
        check(none(), json!({"taints": [other, taint]}), "12599259529599738509");
        let startup = json!({"key": "k", "effect": "NoExecute"});
        check(none(), json!({"startupTaints": [startup]}), "14926721026532495651");
        check(none(), json!({"terminationGracePeriod": "5m"}), "5371745328772648187");
        check(none(), json!({"terminationGracePeriod": "0s"}), "16848824146983765585");
        check(
            json!({"labels": {"team": "infra"}, "annotations": {"example.com/owner": "me"}}),
            json!({
                "taints": [{"key": "example.com/special", "value": "true", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "cni.example.com/not-ready", "effect": "NoExecute"}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "terminationGracePeriod": "48h",
            }),
            "10167962915656066570",
        );
    }

    #[test]
    fn a_taint_with_a_time_hashes_as_in_a_utc_process() {
        // Produced with hashstructure v2.0.2 over the same struct, with TZ=UTC.
        let value = serde_json::json!({
            "key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z",
        });
        assert_eq!(taint(&serde_json::from_value(value).unwrap()), 6_343_277_107_563_955_158);
    }

    #[test]
    fn requirements_and_everything_outside_the_template_leave_the_hash_alone() {
        let requirement = serde_json::json!({"key": "a", "operator": "In", "values": ["b"]});
        check(
            serde_json::json!({}),
            serde_json::json!({"requirements": [requirement]}),
            "12745407319442031341",
        );
        let pool = serde_json::json!({
            "metadata": {"name": "default"},
            "spec": {
                "weight": 10,
                "limits": {"cpu": "10"},
                "disruption": {"consolidateAfter": "Never"},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [],
                }},
            },
        });
        assert_eq!(node_pool_hash(&serde_json::from_value(pool).unwrap()), "12745407319442031341");
    }
}
