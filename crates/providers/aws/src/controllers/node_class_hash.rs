//! Keeps the hash of NodeClasses, by which claims are known to have drifted.
//!
//! Where a class was stamped by another version of the hash, its claims are stamped anew first: a takeover drifts
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::aws::EC2NodeClass;
use api::conditions::HasConditions as _;
use api::hash::{EC2_NODE_CLASS_HASH_VERSION, Restamp, Stamp, ec2_node_class_hash, restamp};
use api::names::annotations::aws::{NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION};
use api::names::conditions::node_claim::DRIFTED;
use api::nodeclaim::NodeClaim;
use cluster::objects::NodeClass;
use cluster::state::{Key, Watched as _};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use serde_json::{Value, json};

use super::is_ours;
use crate::provider::Inner;

/// Annotations to be written: on claims, then on the class.
#[derive(Debug, Default, PartialEq)]
struct Stamps {
    claims: Vec<(Key, Value)>,
    class: Option<Value>,
}

fn decide(class: &EC2NodeClass, claims: &[Arc<NodeClaim>], ca_bundle: Option<&str>) -> Stamps {
    let hash = ec2_node_class_hash(&class.spec, ca_bundle);
    let new = Stamp { hash: &hash, version: EC2_NODE_CLASS_HASH_VERSION };
    let old = stamp(class.metadata.annotations.as_ref());
    let mut stamps = Stamps::default();
    if old == Some(new) {
        return stamps;
    }
    if old.is_none_or(|old| old.version != new.version) {
        for claim in claims {
            let known = stamp(claim.metadata.annotations.as_ref());
            let change = match restamp(old, new, known, claim.condition(DRIFTED).is_some()) {
                Restamp::Nothing => continue,
                Restamp::Both(new) => {
                    json!({NODE_CLASS_HASH: new.hash, NODE_CLASS_HASH_VERSION: new.version})
                }
                Restamp::VersionOnly(version) => json!({NODE_CLASS_HASH_VERSION: version}),
            };
            stamps.claims.push((claim.key(), json!({"metadata": {"annotations": change}})));
        }
    }
    let both = json!({NODE_CLASS_HASH: new.hash, NODE_CLASS_HASH_VERSION: new.version});
    stamps.class = Some(json!({"metadata": {"annotations": both}}));
    stamps
}

fn stamp(annotations: Option<&BTreeMap<String, String>>) -> Option<Stamp<'_>> {
    let annotation = |key: &str| annotations.and_then(|all| all.get(key)).filter(|text| !text.is_empty());
    Some(Stamp { hash: annotation(NODE_CLASS_HASH)?, version: annotation(NODE_CLASS_HASH_VERSION)? })
}

/// Stamps NodeClasses and their claims.
pub(super) struct Hash(pub(super) Arc<Inner>);

impl Hash {
    async fn write(&self, key: &Key) -> Outcome {
        let Self(inner) = self;
        // What cannot be read says so in its own condition.
        let Ok(class) = inner.class(&key.name) else { return Ok(Again::No) };
        let claims: Vec<Arc<NodeClaim>> = {
            let state = inner.setup.cluster.read();
            let all = state.node_claims.values();
            let of_class =
                |claim: &&Arc<NodeClaim>| is_ours(claim) && claim.spec.node_class_ref.name == *key.name;
            all.filter(of_class).cloned().collect()
        };
        let ca_bundle = inner.known.lock().cluster.ca_bundle.clone();
        let stamps = decide(&class, &claims, ca_bundle.as_deref());
        for (claim, change) in &stamps.claims {
            match inner.setup.api.patch::<NodeClaim>(claim, change).await {
                Err(error) if error.is_not_found() => {}
                patched => drop(patched?),
            }
        }
        if let Some(change) = &stamps.class {
            match inner.setup.api.patch::<NodeClass>(key, change).await {
                Err(error) if error.is_not_found() => {}
                patched => drop(patched?),
            }
        }
        Ok(Again::No)
    }
}

impl Reconcile for Hash {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        self.write(key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(annotations: &Value) -> EC2NodeClass {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {"role": "r", "amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []},
        }))
        .unwrap()
    }

    fn claim(annotations: &Value, conditions: &Value) -> Arc<NodeClaim> {
        Arc::new(
            serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": "c", "annotations": annotations},
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "a"}},
                "status": {"conditions": conditions},
            }))
            .unwrap(),
        )
    }

    fn stamped(hash: &str, version: &str) -> Value {
        json!({NODE_CLASS_HASH: hash, NODE_CLASS_HASH_VERSION: version})
    }

    #[test]
    fn claims_of_an_older_version_are_stamped_anew_and_drifted_ones_stay_drifted() {
        let hash = ec2_node_class_hash(&class(&json!({})).spec, None);
        let drifted = json!([{
            "type": "Drifted", "status": "True", "reason": "r", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        for (of_claim, conditions, expected) in [
            (stamped("1", "v5"), json!([]), Some(stamped(&hash, "v6"))),
            (stamped("1", "v5"), drifted, Some(json!({NODE_CLASS_HASH_VERSION: "v6"}))),
            (stamped("other", "v6"), json!([]), None),
        ] {
            let stamps = decide(&class(&stamped("1", "v5")), &[claim(&of_claim, &conditions)], None);
            let written: Vec<Value> = stamps
                .claims
                .into_iter()
                .map(|(_, change)| change["metadata"]["annotations"].clone())
                .collect();
            assert_eq!(written, expected.into_iter().collect::<Vec<_>>());
            assert!(stamps.class.is_some());
        }
        let known = class(&stamped(&hash, "v6"));
        assert_eq!(decide(&known, &[claim(&stamped("1", "v5"), &json!([]))], None), Stamps::default());
    }
}
