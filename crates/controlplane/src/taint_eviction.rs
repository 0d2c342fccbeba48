//! Pods leave nodes with a NoExecute taint that they do not tolerate, or only for a while.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodCondition, Taint};
use serde_json::json;

use crate::action::Outcome;
use crate::cache::{Cache, node_of};
use crate::object::{Key, Kind};
use crate::pod::{Pod, is_finished};
use crate::selector::tolerates;
use crate::time::{after_seconds, time};

const COMPONENT: &str = "taint-eviction-controller";

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(pod) = cache.pods.get(key) else { return outcome };
    if pod.metadata.deletion_timestamp.is_some() || is_finished(pod) {
        return outcome;
    }
    let Some(node) = node_of(pod).and_then(|node| cache.nodes.get(&Key::cluster(node))) else {
        return outcome;
    };
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<&Taint> = taints.filter(|taint| taint.effect == "NoExecute").collect();
    let Some(due) = due(pod, &taints, now) else { return outcome };
    if due > now {
        outcome.look_again(due);
        return outcome;
    }
    announce(pod, now, &mut outcome);
    outcome.delete(Kind::Pod, &pod.metadata, None);
    let message = format!("Marking for deletion Pod {}/{}", key.namespace, key.name);
    outcome.note((Kind::Pod, &pod.metadata), COMPONENT, "TaintManagerEviction", message);
    outcome
}

/// When the pod has to go; never if it tolerates everything for ever.
fn due(pod: &Pod, taints: &[&Taint], now: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let mut due: Option<Timestamp> = None;
    for taint in taints {
        let mut covering = tolerations.iter().filter(|toleration| tolerates(toleration, taint)).peekable();
        if covering.peek().is_none() {
            return Some(now);
        }
        let since = taint.time_added.as_ref().map_or(now, |time| time.0);
        // One that tolerates for ever does not prolong one with a limit.
        if let Some(seconds) = covering.filter_map(|toleration| toleration.toleration_seconds).min() {
            let end = after_seconds(since, seconds.max(0));
            due = Some(due.map_or(end, |due| due.min(end)));
        }
    }
    due
}

/// The pod says why it goes before it goes.
fn announce(pod: &Pod, now: Timestamp, outcome: &mut Outcome) {
    let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    if conditions.iter().any(|condition| condition.type_ == "DisruptionTarget") {
        return;
    }
    conditions.push(PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByTaintManager".to_owned()),
        message: Some("Taint manager: deleting due to NoExecute taint".to_owned()),
        last_transition_time: Some(time(now)),
        ..PodCondition::default()
    });
    outcome.patch_status(Kind::Pod, &pod.metadata, json!({"status": {"conditions": conditions}}));
}

#[cfg(test)]
mod tests;
