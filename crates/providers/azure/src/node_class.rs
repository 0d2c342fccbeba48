//! An AKSNodeClass: what it resolves to, and whether machines can be created with it.
//!
//! ```text
//!   version ─► images ─► subnet ─► validation ─► local_dns      each: an answer in, the status and a condition out
//! ```
//!
//! Everything here is pure; the controller that asks is `controllers::node_class`.

pub mod images;
pub mod limits;
pub mod local_dns;
pub mod subnet;
pub mod validation;
pub mod version;

use api::azure::{AKSNodeClass, FipsMode, NodeImage};
use api::conditions::HasConditions as _;
use api::names::conditions::READY;
use api::names::conditions::azure as conditions;
use api::names::reasons::azure as reasons;
use api::shared::ConditionStatus;
use cloud::Error;
use runtime::Again;

/// What came of looking at one part of a NodeClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// When to look again.
    pub again: Again,
    /// What nobody could find out, if so; it is tried again soon.
    pub error: Option<String>,
}

impl Looked {
    /// All is said; look again then.
    pub const fn again(again: Again) -> Self {
        Self { again, error: None }
    }

    /// Somebody must be asked once more.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { again: Again::No, error: Some(error.into()) }
    }
}

/// Why a part of a NodeClass cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody has looked yet.
    #[error("NodeClass condition {0} is uninitialized")]
    Uninitialized(&'static str),
    /// It is not ready.
    #[error("NodeClass condition {condition} is {status}, {message}")]
    NotTrue {
        /// The condition.
        condition: &'static str,
        /// Its status.
        status: &'static str,
        /// What it says.
        message: String,
    },
    /// It is about what the NodeClass asked for before.
    #[error("NodeClass condition {condition} observed generation {observed}, the NodeClass has {generation}")]
    Stale {
        /// The condition.
        condition: &'static str,
        /// The generation that it is about.
        observed: i64,
        /// That of the NodeClass.
        generation: i64,
    },
    /// It is ready, and yet there is nothing.
    #[error("the Kubernetes version of the NodeClass is uninitialized")]
    NoVersion,
}

/// Whether a condition is true at the present generation.
fn settled(class: &AKSNodeClass, condition: &'static str) -> Result<(), Unusable> {
    let found = class.condition(condition).ok_or(Unusable::Uninitialized(condition))?;
    if found.status != ConditionStatus::True {
        let status = if found.status == ConditionStatus::False { "False" } else { "Unknown" };
        return Err(Unusable::NotTrue { condition, status, message: found.message.clone() });
    }
    let generation = class.metadata.generation.unwrap_or_default();
    if found.observed_generation != generation {
        return Err(Unusable::Stale { condition, observed: found.observed_generation, generation });
    }
    Ok(())
}

/// The version of Kubernetes that new nodes get, without a leading `v`.
pub fn kubernetes_version(class: &AKSNodeClass) -> Result<&str, Unusable> {
    settled(class, conditions::KUBERNETES_VERSION_READY)?;
    let version = class.status.as_ref().map_or("", |status| status.kubernetes_version.as_str());
    if version.is_empty() { Err(Unusable::NoVersion) } else { Ok(version) }
}

/// The images that new nodes are started from, the preferred one first. There may be none.
pub fn usable_images(class: &AKSNodeClass) -> Result<&[NodeImage], Unusable> {
    settled(class, conditions::IMAGES_READY)?;
    Ok(class.status.as_ref().map_or(&[], |status| &status.images))
}

/// Whether machines can be created with a NodeClass, and what the claim is told if not.
pub fn readiness(class: &AKSNodeClass) -> Result<(), Error> {
    let unknown =
        |message: String| Error::Create { reason: reasons::NODE_CLASS_READINESS_UNKNOWN.to_owned(), message };
    match class.condition(READY).map(|condition| (condition.status, condition)) {
        Some((ConditionStatus::False, condition)) => Err(Error::NodeClassNotReady(condition.message.clone())),
        Some((ConditionStatus::True, _)) => {
            // The controller of its status is about to look at a new generation: the claim waits for it.
            kubernetes_version(class).map_err(|error| unknown(error.to_string()))?;
            usable_images(class).map_err(|error| unknown(error.to_string()))?;
            Ok(())
        }
        Some((ConditionStatus::Unknown, _)) | None => {
            Err(unknown("whether the AKSNodeClass is ready is not known yet".to_owned()))
        }
    }
}

/// Whether only validated cryptography is asked for.
pub fn is_fips(class: &AKSNodeClass) -> bool {
    class.spec.fips_mode == Some(FipsMode::FIPS)
}

#[cfg(test)]
pub(crate) mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    /// A NodeClass of generation 2 with a spec and a status.
    pub(crate) fn class(spec: &Value, status: &Value) -> AKSNodeClass {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": "default", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    pub(crate) fn condition(kind: &str, status: &str, generation: i64) -> Value {
        json!({
            "type": kind, "status": status, "reason": kind, "message": "what is wrong",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
        })
    }

    /// Status and reason of a condition.
    pub(crate) fn said<'a>(class: &'a AKSNodeClass, kind: &str) -> (ConditionStatus, &'a str) {
        let found = class.condition(kind).unwrap();
        (found.status, &found.reason)
    }

    // azure.md 1.7, 25.2
    #[test]
    fn each_way_in_which_a_version_cannot_be_used_has_its_own_text() {
        let text = |status: &Value| match kubernetes_version(&class(&json!({}), status)) {
            Ok(version) => version.to_owned(),
            Err(error) => error.to_string(),
        };
        let with = |kind: &str, status: &str, generation: i64, version: &str| {
            text(&json!({"kubernetesVersion": version, "conditions": [condition(kind, status, generation)]}))
        };
        let ready = "KubernetesVersionReady";
        assert_eq!(with(ready, "True", 2, "1.34.2"), "1.34.2");
        assert_eq!(text(&json!({})), "NodeClass condition KubernetesVersionReady is uninitialized");
        assert_eq!(
            with(ready, "False", 2, "1.34.2"),
            "NodeClass condition KubernetesVersionReady is False, what is wrong"
        );
        assert_eq!(
            with(ready, "Unknown", 2, "1.34.2"),
            "NodeClass condition KubernetesVersionReady is Unknown, what is wrong"
        );
        assert_eq!(
            with(ready, "True", 1, "1.34.2"),
            "NodeClass condition KubernetesVersionReady observed generation 1, the NodeClass has 2"
        );
        assert_eq!(with(ready, "True", 2, ""), "the Kubernetes version of the NodeClass is uninitialized");
    }

    // azure.md 1.7, 25.2
    #[test]
    fn images_must_be_of_this_generation_and_may_be_none() {
        let of = |status: &str, generation: i64| {
            let status = json!({"conditions": [condition("ImagesReady", status, generation)]});
            usable_images(&class(&json!({}), &status)).map(<[NodeImage]>::len)
        };
        assert_eq!(of("True", 2), Ok(0));
        assert!(matches!(of("True", 1), Err(Unusable::Stale { .. })));
        assert!(matches!(of("False", 2), Err(Unusable::NotTrue { .. })));
        assert!(matches!(of("Unknown", 2), Err(Unusable::NotTrue { .. })));
    }

    // azure.md 9, 25.4
    #[test]
    fn a_class_that_is_not_ready_ends_the_claim_and_one_of_which_nobody_knows_lets_it_wait() {
        let ready = |status: &str, generation: i64| {
            readiness(&class(
                &json!({}),
                &json!({"kubernetesVersion": "1.34.2", "conditions": [
                    condition("Ready", status, 2),
                    condition("KubernetesVersionReady", "True", generation),
                    condition("ImagesReady", "True", generation),
                ]}),
            ))
        };
        assert_eq!(ready("True", 2), Ok(()));
        assert_eq!(ready("False", 2), Err(Error::NodeClassNotReady("what is wrong".to_owned())));
        for (status, generation) in [("Unknown", 2), ("True", 1)] {
            let Err(Error::Create { reason, .. }) = ready(status, generation) else { panic!("no reason") };
            assert_eq!(reason, "NodeClassReadinessUnknown");
        }
    }
}
