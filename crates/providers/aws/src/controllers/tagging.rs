//! Tags instances with the names of their Node and claim, once those are known.

use std::sync::Arc;
use std::time::Duration;

use api::names::annotations::aws::{CLUSTER_NAME_TAGGED, TAGGED};
use api::nodeclaim::NodeClaim;
use cluster::state::{Change, Key, Meta as _, Object, Watched as _};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use serde_json::json;

use super::{failed, is_ours};
use crate::instance::provider_id;
use crate::provider::Inner;
use crate::tags;

/// EC2 accepts few requests for tags, and nobody waits for these.
const PACE: Duration = Duration::from_secs(1);

/// Whether the instance of a claim may lack tags.
pub(super) fn is_taggable(claim: &NodeClaim) -> bool {
    let is_done = |key: &str| {
        let all = claim.metadata.annotations.as_ref();
        all.and_then(|all| all.get(key)).is_some_and(|value| value == "true")
    };
    let has_node = claim.status.as_ref().is_some_and(|status| !status.node_name.is_empty());
    is_ours(claim)
        && has_node
        && !claim.metadata.is_deleting()
        && !(is_done(TAGGED) && is_done(CLUSTER_NAME_TAGGED))
}

/// The claim to look at after a change.
pub(super) fn touched(change: &Change) -> Option<Key> {
    match &change.new {
        Some(Object::NodeClaim(claim)) => is_taggable(claim).then(|| claim.key()),
        _ => None,
    }
}

/// Tags instances.
pub(super) struct Tagging(pub(super) Arc<Inner>);

impl Tagging {
    async fn tag(&self, key: &Key) -> Outcome {
        let Self(inner) = self;
        let claim = inner.setup.cluster.read().node_claims.get(key).cloned();
        let Some(claim) = claim.filter(|claim| is_taggable(claim)) else { return Ok(Again::No) };
        let Some(status) = &claim.status else { return Ok(Again::No) };
        let Some(id) = provider_id::instance_id(&status.provider_id) else {
            // What cannot be read now cannot be read later.
            tracing::error!(
                NodeClaim = &*key.name,
                "provider-id" = status.provider_id,
                "failed to parse the provider ID, the instance is not tagged"
            );
            return Ok(Again::No);
        };
        let machine = match inner.shifted_or_fresh(id).await {
            Err(error) if error.is_not_found() => return Ok(Again::No),
            machine => machine.map_err(failed)?,
        };
        let cluster = &inner.setup.settings.cluster_name;
        let missing = tags::missing(&machine.tags, &key.name, &status.node_name, cluster);
        if !missing.is_empty() {
            match inner.tag(&machine, &missing).await {
                Err(error) if error.is_not_found() => return Ok(Again::No),
                tagged => tagged.map_err(failed)?,
            }
            tokio::time::sleep(PACE).await;
        }
        let change = json!({"metadata": {"annotations": {TAGGED: "true", CLUSTER_NAME_TAGGED: "true"}}});
        match inner.setup.api.patch::<NodeClaim>(key, &change).await {
            Err(error) if error.is_not_found() => {}
            patched => drop(patched?),
        }
        Ok(Again::No)
    }
}

impl Reconcile for Tagging {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        self.tag(key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn claims_with_a_node_are_tagged_until_both_notes_say_so() {
        let is_taggable = |metadata: &Value, node: &str| {
            let mut claim = json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
                "spec": {"requirements": [], "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a",
                }},
                "status": {"nodeName": node},
            });
            claim["metadata"].as_object_mut().unwrap().extend(metadata.as_object().cloned().unwrap());
            is_taggable(&serde_json::from_value(claim).unwrap())
        };
        assert!(is_taggable(&json!({}), "n") && !is_taggable(&json!({}), ""));
        assert!(is_taggable(&json!({"annotations": {TAGGED: "true"}}), "n"));
        assert!(is_taggable(&json!({"annotations": {TAGGED: "true", CLUSTER_NAME_TAGGED: "no"}}), "n"));
        assert!(!is_taggable(&json!({"annotations": {TAGGED: "true", CLUSTER_NAME_TAGGED: "true"}}), "n"));
        assert!(!is_taggable(&json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), "n"));
    }
}
