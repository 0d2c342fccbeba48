//! Keeps the hash of NodeClasses, by which claims are known to have drifted.
//!
//! Where a class was stamped by another version of the hash, its claims are stamped anew first: a takeover drifts
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::azure::AKSNodeClass;
use api::conditions::HasConditions as _;
use api::hash::{AKS_NODE_CLASS_HASH_VERSION, Restamp, Stamp, aks_node_class_hash, restamp};
use api::names::annotations::azure::{NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION};
use api::names::conditions::node_claim::DRIFTED;
use api::nodeclaim::NodeClaim;
use cluster::objects::NodeClass;
use cluster::state::{Key, Watched as _};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use serde_json::{Value, json};

use crate::provider::Inner;

/// Annotations to be written: on claims, then on the class.
#[derive(Debug, Default, PartialEq)]
struct Stamps {
    claims: Vec<(Key, Value)>,
    class: Option<Value>,
}

fn decide(class: &AKSNodeClass, claims: &[Arc<NodeClaim>]) -> Stamps {
    let hash = aks_node_class_hash(&class.spec);
    let new = Stamp { hash: &hash, version: AKS_NODE_CLASS_HASH_VERSION };
    let old = stamp(class.metadata.annotations.as_ref());
    let mut stamps = Stamps::default();
    if old == Some(new) {
        return stamps;
    }
    let annotations = |all: Value| json!({"metadata": {"annotations": all}});
    let both = json!({NODE_CLASS_HASH: new.hash, NODE_CLASS_HASH_VERSION: new.version});
    if old.is_none_or(|old| old.version != new.version) {
        for claim in claims {
            let known = stamp(claim.metadata.annotations.as_ref());
            let change = match restamp(old, new, known, claim.condition(DRIFTED).is_some()) {
                Restamp::Nothing => continue,
                Restamp::Both(_) => both.clone(),
                Restamp::VersionOnly(version) => json!({NODE_CLASS_HASH_VERSION: version}),
            };
            stamps.claims.push((claim.key(), annotations(change)));
        }
    }
    stamps.class = Some(annotations(both));
    stamps
}

fn stamp(annotations: Option<&BTreeMap<String, String>>) -> Option<Stamp<'_>> {
    let annotation = |key: &str| annotations?.get(key).map(String::as_str).filter(|text| !text.is_empty());
    Some(Stamp { hash: annotation(NODE_CLASS_HASH)?, version: annotation(NODE_CLASS_HASH_VERSION)? })
}

/// Stamps NodeClasses and their claims.
pub(super) struct Hash(pub(super) Arc<Inner>);

impl Hash {
    async fn write(&self, key: &Key) -> Outcome {
        let Self(inner) = self;
        // What cannot be read says so in its own condition.
        let Ok(class) = inner.class(&key.name) else { return Ok(Again::No) };
        let claims = super::claims_of_class(inner, &key.name);
        let stamps = decide(&class, &claims);
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

    fn class(annotations: &Value) -> AKSNodeClass {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": "a", "annotations": annotations}, "spec": {},
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

    // azure.md 15.2, 25.7
    #[test]
    fn claims_of_an_older_version_are_stamped_anew_and_drifted_ones_stay_drifted() {
        // azure.md 1.8: a plain defaulted object
        let hash = "11637731675550486674";
        let drifted = json!([{
            "type": "Drifted", "status": "True", "reason": "r", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        for (of_claim, conditions, expected) in [
            (stamped("1", "v2"), json!([]), Some(stamped(hash, "v3"))),
            (stamped("1", "v2"), drifted, Some(json!({NODE_CLASS_HASH_VERSION: "v3"}))),
            (stamped("other", "v3"), json!([]), None),
        ] {
            let stamps = decide(&class(&stamped("1", "v2")), &[claim(&of_claim, &conditions)]);
            let written: Vec<Value> = stamps
                .claims
                .into_iter()
                .map(|(_, change)| change["metadata"]["annotations"].clone())
                .collect();
            assert_eq!(written, expected.into_iter().collect::<Vec<_>>());
            assert_eq!(stamps.class.unwrap()["metadata"]["annotations"], stamped(hash, "v3"));
        }
    }

    // azure.md 25.7: equal version leaves NodeClaims alone
    #[test]
    fn a_class_of_this_version_changes_no_claims() {
        let old = [claim(&stamped("1", "v2"), &json!([]))];
        let known = class(&stamped("11637731675550486674", "v3"));
        assert_eq!(decide(&known, &old), Stamps::default());
        let changed = decide(&class(&stamped("1", "v3")), &old);
        assert!(changed.claims.is_empty() && changed.class.is_some());
    }
}
