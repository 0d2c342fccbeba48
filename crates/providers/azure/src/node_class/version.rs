//! The version of Kubernetes that new nodes get: that of the API server, and never an older one than before.

use std::time::Duration;

use api::azure::AKSNodeClass;
use api::conditions::Conditions;
use api::names::conditions::azure as conditions;
use api::names::reasons::azure as reasons;
use api::shared::ConditionStatus;
use jiff::Timestamp;
use runtime::Again;

use super::{Looked, kubernetes_version};

/// How long the answer of the API server counts, and when it is looked again.
pub const KEPT: Duration = Duration::from_mins(15);

/// Major, minor and patch of a version, with or without a leading `v`; what follows is not looked at.
pub fn numbers(text: &str) -> Option<[u32; 3]> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.split(['-', '+']).next()?;
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    let patch = parts.next().unwrap_or(Some(0))?;
    parts.next().is_none().then_some([major, minor, patch])
}

/// A version without its letter and without what vendors add.
pub fn plain(text: &str) -> String {
    match numbers(text) {
        Some([major, minor, patch]) => format!("{major}.{minor}.{patch}"),
        None => text.strip_prefix('v').unwrap_or(text).to_owned(),
    }
}

/// Takes over what the API server says. A newer version asks for images again in the same pass.
pub fn apply(class: &mut AKSNodeClass, server: Result<&str, String>, now: Timestamp) -> Looked {
    let server = match server {
        Ok(server) => server,
        Err(error) => return Looked::failed(format!("asking for the version of Kubernetes, {error}")),
    };
    let Some(found) = numbers(server) else {
        return Looked::failed(format!(
            "the API server has version {server:?}, expected a version such as v1.34.2"
        ));
    };
    let before = class.status.as_ref().and_then(|status| numbers(&status.kubernetes_version));
    let is_usable = kubernetes_version(class).is_ok();
    let is_newer = before.is_some_and(|before| found > before);
    if is_usable && before.is_some_and(|before| found < before) {
        tracing::warn!(version = server, "the API server has an older version than nodes, which keep theirs");
    } else {
        class.status.get_or_insert_default().kubernetes_version = plain(server);
    }
    let mut all = Conditions::of(class, now);
    if is_newer {
        let message = "images are looked up for another version of Kubernetes";
        all.set(conditions::IMAGES_READY, ConditionStatus::False, reasons::KUBERNETES_UPGRADE, message);
    }
    all.set_true(conditions::KUBERNETES_VERSION_READY);
    Looked::again(Again::After(KEPT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_class::tests::{NOW, class, condition, said};

    fn of(known: &str, generation: i64, server: &str) -> (AKSNodeClass, Looked) {
        let mut class = class(
            &json!({}),
            &json!({"kubernetesVersion": known, "conditions": [
                condition("KubernetesVersionReady", "True", generation), condition("ImagesReady", "True", 2),
            ]}),
        );
        let looked = apply(&mut class, Ok(server), NOW);
        (class, looked)
    }

    fn version(class: &AKSNodeClass) -> &str {
        &class.status.as_ref().unwrap().kubernetes_version
    }

    // azure.md 15.1 step 1
    #[test]
    fn the_version_of_the_api_server_is_taken_over_without_its_letter() {
        let (class, looked) = of("", 2, "v1.34.2");
        assert_eq!(version(&class), "1.34.2");
        assert_eq!(said(&class, "KubernetesVersionReady"), (ConditionStatus::True, "KubernetesVersionReady"));
        assert_eq!(said(&class, "ImagesReady").0, ConditionStatus::True);
        assert_eq!(looked, Looked::again(Again::After(Duration::from_mins(15))));
    }

    // azure.md 25.7: K8s upgrade flips ImagesReady within the same reconcile
    #[test]
    fn a_newer_version_asks_for_images_again() {
        for generation in [2, 1] {
            let (class, _) = of("1.33.9", generation, "v1.34.0");
            assert_eq!(version(&class), "1.34.0");
            assert_eq!(said(&class, "ImagesReady"), (ConditionStatus::False, "KubernetesUpgrade"));
        }
    }

    // azure.md 15.1 step 1
    #[test]
    fn an_older_version_is_not_taken_over() {
        let (class, _) = of("1.34.10", 2, "v1.34.9");
        assert_eq!(version(&class), "1.34.10");
        assert_eq!(said(&class, "ImagesReady").0, ConditionStatus::True);
        assert_eq!(said(&class, "KubernetesVersionReady").0, ConditionStatus::True);
    }

    #[test]
    fn what_is_no_version_changes_nothing_and_is_asked_for_again() {
        let (class, looked) = of("1.34.2", 2, "latest");
        assert_eq!(version(&class), "1.34.2");
        assert!(looked.error.is_some_and(|error| error.contains("\"latest\"")));
        let mut class = class;
        let looked = apply(&mut class, Err("no answer".to_owned()), NOW);
        assert_eq!(looked.error.as_deref(), Some("asking for the version of Kubernetes, no answer"));
    }

    #[test]
    fn versions_are_read_up_to_what_vendors_add() {
        assert_eq!(numbers("v1.34.2-eks-1"), Some([1, 34, 2]));
        assert_eq!(numbers("1.34"), Some([1, 34, 0]));
        assert_eq!((plain("v1.34.2+vendor"), plain("v1")), ("1.34.2".to_owned(), "1".to_owned()));
        assert_eq!(numbers("1.34.2+build"), Some([1, 34, 2]));
        for text in ["", "1", "v1.x.2", "1.2.3.4", "one"] {
            assert_eq!(numbers(text), None, "{text}");
        }
    }
}
