//! What can be said about a NodeClass besides images and subnets: whether nodes of this cluster can be created at
//! all, and whether their disks can be encrypted.

use std::time::Duration;

use api::azure::AKSNodeClass;
use api::conditions::Conditions;
use api::names::conditions::azure as conditions;
use api::names::reasons::azure as reasons;
use api::shared::ConditionStatus;
use jiff::Timestamp;
use runtime::Again;

use super::Looked;
use super::limits::Refusal;

/// When it is looked again after all was well.
const WELL: Again = Again::After(Duration::from_hours(1));
/// When it is looked again after a permission was missing.
const MISSING: Again = Again::After(Duration::from_mins(1));

/// What Azure says about the set of keys that encrypts disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// None is used, or it can be read.
    Usable,
    /// It may not be read.
    Forbidden {
        /// Which one.
        id: String,
    },
    /// Nobody knows.
    Unknown(String),
}

/// Writes down whether a NodeClass can be used.
pub fn apply(class: &mut AKSNodeClass, refusal: Option<&Refusal>, keys: Keys, now: Timestamp) -> Looked {
    let mut all = Conditions::of(class, now);
    let mut refuse = |reason: &str, message: &str| {
        all.set(conditions::VALIDATION_SUCCEEDED, ConditionStatus::False, reason, message);
    };
    if let Some(Refusal { reason, message }) = refusal {
        refuse(reason, message);
        return Looked::again(WELL);
    }
    match keys {
        Keys::Usable => {
            all.set_true(conditions::VALIDATION_SUCCEEDED);
            Looked::again(WELL)
        }
        Keys::Forbidden { id } => {
            let message = format!(
                "the controller may not read disk encryption set {id}: grant its identity the role Reader on it"
            );
            refuse(reasons::DISK_ENCRYPTION_SET_RBAC_MISSING, &message);
            Looked::again(MISSING)
        }
        Keys::Unknown(error) => Looked::failed(format!("reading the disk encryption set, {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_class::tests::{NOW, class, said};

    // azure.md 15.1 step 4, 25.7
    #[test]
    fn a_missing_permission_is_said_and_looked_at_each_minute_until_it_is_there() {
        let mut class = class(&json!({}), &json!({}));
        let id =
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d".to_owned();
        let looked = apply(&mut class, None, Keys::Forbidden { id }, NOW);
        assert_eq!(looked, Looked::again(Again::After(Duration::from_mins(1))));
        let expected = (ConditionStatus::False, "DiskEncryptionSetRBACMissing");
        assert_eq!(said(&class, "ValidationSucceeded"), expected);
        let looked = apply(&mut class, None, Keys::Unknown("no answer".to_owned()), NOW);
        assert_eq!(looked.error.as_deref(), Some("reading the disk encryption set, no answer"));
        assert_eq!(said(&class, "ValidationSucceeded"), expected);
        let looked = apply(&mut class, None, Keys::Usable, NOW);
        assert_eq!(looked, Looked::again(Again::After(Duration::from_hours(1))));
        assert_eq!(said(&class, "ValidationSucceeded").0, ConditionStatus::True);
    }

    #[test]
    fn a_cluster_without_support_comes_before_everything() {
        let mut class = class(&json!({}), &json!({}));
        let refusal = Refusal { reason: "NetworkPluginUnsupported", message: "why".to_owned() };
        apply(&mut class, Some(&refusal), Keys::Usable, NOW);
        assert_eq!(said(&class, "ValidationSucceeded"), (ConditionStatus::False, "NetworkPluginUnsupported"));
        assert_eq!(said(&class, "Ready").0, ConditionStatus::False);
    }
}
