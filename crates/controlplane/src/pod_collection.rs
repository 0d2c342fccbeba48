//! Pods whose node is gone for good are removed, since no kubelet will say that they have stopped.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::object::{Key, Kind};
use crate::pod::is_finished;
use crate::time::after;

/// How long a node has to be gone.
const QUARANTINE: Duration = Duration::from_secs(40);

/// `key` names a node that pods are bound to.
pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(since) = cache.missing_since(&key.name) else { return outcome };
    let until = after(since, QUARANTINE);
    if until > now {
        outcome.look_again(until);
        return outcome;
    }
    for pod in cache.pods_on(&key.name) {
        if !is_finished(pod) {
            let body = json!({"status": {"phase": "Failed", "reason": "NodeLost", "message": "PodGC: node no longer exists"}});
            outcome.patch_status(Kind::Pod, &pod.metadata, body);
        }
        if pod.metadata.deletion_grace_period_seconds != Some(0) || pod.metadata.finalizers.is_none() {
            outcome.delete(Kind::Pod, &pod.metadata, Some(0));
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, at};

    #[test]
    fn pods_of_a_vanished_node_go_after_a_while() {
        let world = World::of(&["
            apiVersion: v1
            kind: Pod
            metadata: {name: a, namespace: x, uid: u}
            spec: {nodeName: gone, containers: []}
        "]);
        let key = Key::cluster("gone");
        assert_eq!(decide(&world.cache, &key, at(10)).again, Some(at(40)));
        let outcome = decide(&world.cache, &key, at(40));
        assert_eq!(world.say(&outcome), ["patch Pod x/a status", "delete Pod x/a in 0s"]);
    }
}
