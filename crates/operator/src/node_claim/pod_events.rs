//! Pod events: a claim remembers when a pod last came to its node or left it, so that busy nodes are left alone.

use std::sync::Arc;
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use cluster::eligibility::{is_daemon, is_terminal, is_terminating};
use cluster::objects::Pod;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::controller::Reconcile;
use runtime::{Again, Outcome};
use serde_json::json;

use super::lifecycle::text;
use crate::Context;
use crate::managed::is_claim_managed;
use crate::watching::Watching;

/// How often a claim is written at most.
const OFTEN: Duration = Duration::from_secs(10);

/// The node that a change of a pod makes busy: the pod came to it, is done, or goes.
fn busy<'a>(old: Option<&'a Pod>, new: Option<&'a Pod>) -> Option<&'a str> {
    let pod = new.or(old)?;
    if is_daemon(pod) || pod.spec.node_name.is_empty() {
        return None;
    }
    let is_leaving = |pod: &Pod| is_terminal(pod) || is_terminating(pod);
    let is_event = match (old, new) {
        (Some(old), Some(new)) => {
            old.spec.node_name != new.spec.node_name
                || is_terminal(old) != is_terminal(new)
                || is_terminating(old) != is_terminating(new)
        }
        (None, Some(_)) => true,
        // One that was seen to leave has been counted.
        (Some(old), None) => !is_leaving(old),
        (None, None) => false,
    };
    is_event.then_some(&pod.spec.node_name)
}

/// The node that a change makes busy.
fn touched(change: &Change, state: &State) -> Option<Key> {
    let pod = |object: &'_ Option<Object>| match object {
        Some(Object::Pod(pod)) => Some(Arc::clone(pod)),
        _ => None,
    };
    // Pods that are only listed have been there before: after a restart, nodes are not busy again.
    if !matches!(change.object(), Object::Pod(_)) || !state.is_listed() {
        return None;
    }
    let (old, new) = (pod(&change.old), pod(&change.new));
    busy(old.as_deref(), new.as_deref()).map(Key::cluster)
}

/// Whether a claim is to note that something happened now.
fn is_due(claim: &NodeClaim, now: Timestamp) -> bool {
    let last = claim.status.as_ref().and_then(|status| status.last_pod_event_time.as_ref());
    last.is_none_or(|last| now.duration_since(last.0).unsigned_abs() >= OFTEN)
}

/// Notes when pods come and go. Its keys are nodes.
pub(super) struct PodEvents(Context);

impl PodEvents {
    pub(super) fn new(context: &Context) -> Self {
        Self(context.clone())
    }
}

impl Reconcile for PodEvents {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let now = context.now();
            let claim = {
                let state = context.cluster.read();
                let node = state.nodes.get(key);
                let claim = node.and_then(|node| state.claim_of_node(node));
                claim
                    .filter(|claim| is_claim_managed(claim, context.provider()) && is_due(claim, now))
                    .cloned()
            };
            let Some(claim) = claim else { return Ok(Again::No) };
            let change = json!({"status": {"lastPodEventTime": text(now)}});
            match context.api.patch_status::<NodeClaim>(&claim.key(), &change).await {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(Again::No),
            }
        }
        .boxed()
    }
}

impl Watching for PodEvents {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        touched(change, state).into_iter().collect()
    }

    fn existing(&self, _: &State) -> Vec<Key> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;
    use cluster::state::{Kind, Seen};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::Value;

    use super::*;
    use crate::testing::claim;

    fn pod(change: &Value) -> Pod {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}});
        crate::testing::merge(&mut pod, change);
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn pods_that_come_end_or_go_make_a_node_busy() {
        let running = pod(&json!({}));
        let waiting = pod(&json!({"spec": {"nodeName": ""}}));
        let done = pod(&json!({"status": {"phase": "Succeeded"}}));
        let going = pod(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}]);
        let daemon = pod(&json!({"metadata": {"ownerReferences": owner}}));
        for (old, new, expected) in [
            (None, Some(&running), true),
            (None, Some(&waiting), false),
            (None, Some(&daemon), false),
            (Some(&waiting), Some(&running), true),
            (Some(&running), Some(&running), false),
            (Some(&running), Some(&done), true),
            (Some(&running), Some(&going), true),
            (Some(&going), None, false),
            (Some(&running), None, true),
            (Some(&waiting), None, false),
        ] {
            assert_eq!(busy(old, new), expected.then_some("n"), "{old:?} {new:?}");
        }
    }

    #[test]
    fn pods_that_were_there_before_a_restart_make_no_node_busy() {
        let decoded =
            || Kind::Pod.decode(&json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}).to_string());
        let mut state = State::awaiting(Provider::Kwok, &[Kind::Pod]);
        state.observe(Seen::Listing(Kind::Pod));
        let listed = state.observe(Seen::Listed(decoded().unwrap()));
        assert_eq!(listed.iter().filter_map(|change| touched(change, &state)).count(), 0);
        state.observe(Seen::Synced(Kind::Pod, 0));
        let other = json!({"metadata": {"name": "q"}, "spec": {"nodeName": "n"}}).to_string();
        let applied = state.observe(Seen::Applied(Kind::Pod.decode(&other).unwrap()));
        let busy: Vec<Key> = applied.iter().filter_map(|change| touched(change, &state)).collect();
        assert_eq!(busy, [Key::cluster("n")]);
    }

    #[test]
    fn a_claim_is_written_every_ten_seconds_at_most() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert!(is_due(&claim("c", &json!({})), at(0)));
        let noted = claim("c", &json!({"status": {"lastPodEventTime": Time(at(100))}}));
        assert!(!is_due(&noted, at(109)) && is_due(&noted, at(110)));
    }
}
