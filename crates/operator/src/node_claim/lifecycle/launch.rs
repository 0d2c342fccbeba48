//! Launch: the cloud creates an instance, once.

use std::collections::BTreeMap;
use std::time::Duration;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::LAUNCHED;
use api::names::{reasons, values};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cloud::Instance;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::text::truncated;

/// For how long it is remembered what was launched for a claim, should its status not be written.
const REMEMBERED: Duration = Duration::from_hours(1);

/// What was launched for which claim. Without it, a failed write would launch a second instance.
#[derive(Debug, Default)]
pub(super) struct Launches(Mutex<BTreeMap<Box<str>, (Timestamp, Instance)>>);

impl Launches {
    /// What was launched for a claim.
    pub(super) fn get(&self, uid: &str, now: Timestamp) -> Option<Instance> {
        let mut launches = self.0.lock();
        launches.retain(|_, (when, _)| age(*when, now) < REMEMBERED);
        launches.get(uid).map(|(_, instance)| instance.clone())
    }

    /// Remembers what was launched.
    pub(super) fn put(&self, uid: &str, instance: Instance, now: Timestamp) {
        self.0.lock().insert(uid.into(), (now, instance));
    }

    /// Forgets a claim: its status says it all, or it is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

/// How long ago something was.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// Whether nothing is known yet about the launch of a claim.
pub(super) fn is_open(claim: &NodeClaim) -> bool {
    claim.condition(LAUNCHED).is_none_or(|condition| condition.status == ConditionStatus::Unknown)
}

/// Takes over what was launched. Labels of the claim win, annotations of the instance win.
pub(super) fn adopt(claim: &mut NodeClaim, instance: &Instance, now: Timestamp) {
    let labels = claim.metadata.labels.get_or_insert_default();
    for (key, value) in instance.metadata.labels.iter().flatten() {
        labels.entry(key.clone()).or_insert_with(|| value.clone());
    }
    if let Some(annotations) = &instance.metadata.annotations {
        let own = claim.metadata.annotations.get_or_insert_default();
        own.extend(annotations.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let launched = instance.status.clone().unwrap_or_default();
    let status = claim.status.get_or_insert_default();
    status.provider_id = launched.provider_id;
    status.image_id = launched.image_id;
    status.capacity = launched.capacity;
    status.allocatable = launched.allocatable;
    Conditions::of(claim, now).set_true(LAUNCHED);
}

/// What a failed launch leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The claim goes, and whoever needs a node tries again.
    Delete {
        /// Why, as metrics name it.
        reason: &'static str,
        /// Whether users are told by an event.
        publish: bool,
    },
    /// The launch is tried again; meanwhile the condition says why.
    Retry {
        /// Why, as one word.
        reason: String,
        /// Why, for people.
        message: String,
    },
}

/// What a failed launch leads to.
pub(super) fn failure(error: &cloud::Error) -> Failure {
    match error {
        cloud::Error::InsufficientCapacity(_) => {
            Failure::Delete { reason: values::INSUFFICIENT_CAPACITY, publish: true }
        }
        cloud::Error::NodeClassNotReady(_) => {
            Failure::Delete { reason: values::NODE_CLASS_NOT_READY, publish: false }
        }
        cloud::Error::Create { reason, message } => {
            Failure::Retry { reason: reason.clone(), message: truncated(message) }
        }
        other => Failure::Retry {
            reason: reasons::node_claim::LAUNCH_FAILED.to_owned(),
            message: truncated(&other.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn claim(value: serde_json::Value) -> NodeClaim {
        serde_json::from_value(value).unwrap()
    }

    const SPEC: &str = r#"{"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}"#;

    fn spec() -> serde_json::Value {
        serde_json::from_str(SPEC).unwrap()
    }

    #[test]
    fn labels_of_the_claim_and_annotations_of_the_instance_win() {
        let mut own = claim(json!({
            "metadata": {"labels": {"a": "claim"}, "annotations": {"a": "claim", "b": "claim"}},
            "spec": spec(),
        }));
        let instance = claim(json!({
            "metadata": {"labels": {"a": "cloud", "zone": "z"}, "annotations": {"a": "cloud"}},
            "spec": spec(),
            "status": {
                "providerID": "p", "imageID": "i", "nodeName": "no",
                "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"},
            },
        }));
        adopt(&mut own, &instance, at(0));
        let labels = own.metadata.labels.clone().unwrap();
        assert_eq!((labels["a"].as_str(), labels["zone"].as_str()), ("claim", "z"));
        let annotations = own.metadata.annotations.clone().unwrap();
        assert_eq!((annotations["a"].as_str(), annotations["b"].as_str()), ("cloud", "claim"));
        let status = own.status.as_ref().unwrap();
        assert_eq!((status.provider_id.as_str(), status.image_id.as_str()), ("p", "i"));
        assert_eq!((status.capacity.len(), status.allocatable.len()), (1, 1));
        assert!(status.node_name.is_empty() && own.is_true(LAUNCHED) && !is_open(&own));
    }

    #[test]
    fn some_failures_end_a_claim_and_others_are_tried_again() {
        let retry = |reason: &str, message: &str| Failure::Retry {
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        for (error, expected) in [
            (
                cloud::Error::InsufficientCapacity("none".to_owned()),
                Failure::Delete { reason: "insufficient_capacity", publish: true },
            ),
            (
                cloud::Error::NodeClassNotReady("no".to_owned()),
                Failure::Delete { reason: "nodeclass_not_ready", publish: false },
            ),
            (
                cloud::Error::Create { reason: "Why".to_owned(), message: "because".to_owned() },
                retry("Why", "because"),
            ),
            (cloud::Error::Other("x".to_owned()), retry("LaunchFailed", "x")),
            (cloud::Error::Timeout("slow".to_owned()), retry("LaunchFailed", "slow")),
        ] {
            assert_eq!(failure(&error), expected);
        }
    }

    #[test]
    fn a_launch_is_remembered_for_an_hour() {
        let launches = Launches::default();
        launches.put("u", claim(json!({"metadata": {}, "spec": spec()})), at(0));
        assert!(launches.get("u", at(3599)).is_some());
        assert!(launches.get("u", at(3600)).is_none());
        launches.put("u", claim(json!({"metadata": {}, "spec": spec()})), at(0));
        launches.forget("u");
        assert!(launches.get("u", at(0)).is_none());
    }
}
