//! The images of a NodeClass: the latest ones, or outside of the maintenance window those that it has already.

use std::collections::BTreeMap;
use std::time::Duration;

use api::azure::{AKSNodeClass, NodeImage};
use api::conditions::{Conditions, HasConditions as _};
use api::names::conditions::azure as conditions;
use api::names::reasons::azure as reasons;
use api::shared::ConditionStatus;
use jiff::Timestamp;
use runtime::Again;

use super::{Looked, is_fips};

/// When it is looked again.
const AGAIN: Again = Again::After(Duration::from_mins(5));

/// The data of the ConfigMap with the maintenance window.
pub type WindowData = BTreeMap<String, String>;

const START: &str = "aksManagedNodeOSUpgradeSchedule-start";
const END: &str = "aksManagedNodeOSUpgradeSchedule-end";

/// Why nobody knows whether the maintenance window is open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    /// Only one end of it is known.
    #[error("the maintenance window has {0} and no {1}, expected both or none")]
    Half(&'static str, &'static str),
    /// An end of it is no time.
    #[error("the maintenance window has {0} {1:?}, expected a time such as 2026-01-02T03:04:05Z")]
    NoTime(&'static str, String),
}

/// Whether images may change now. Without a window they always may.
pub fn is_window_open(data: Option<&WindowData>, now: Timestamp) -> Result<bool, BadWindow> {
    let part =
        |key: &str| data.and_then(|data| data.get(key)).map(String::as_str).filter(|text| !text.is_empty());
    let (start, end) = match (part(START), part(END)) {
        (None, None) => return Ok(true),
        (Some(start), Some(end)) => (start, end),
        (Some(_), None) => return Err(BadWindow::Half(START, END)),
        (None, Some(_)) => return Err(BadWindow::Half(END, START)),
    };
    let time =
        |key, text: &str| text.parse::<Timestamp>().map_err(|_| BadWindow::NoTime(key, text.to_owned()));
    let (start, end) = (time(START, start)?, time(END, end)?);
    Ok(start < now && now < end)
}

/// What came of asking for images.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The latest images of all definitions that the class can use, the preferred one first.
    pub latest: Vec<NodeImage>,
    /// Whether they may be taken over now.
    pub is_window_open: Result<bool, BadWindow>,
}

/// Whether a NodeClass asks for images that its cluster cannot have: then none are asked for.
pub fn is_fips_impossible(class: &AKSNodeClass, use_sig: bool) -> bool {
    is_fips(class) && !use_sig
}

/// Takes over images, or says why there are none.
pub fn apply(
    class: &mut AKSNodeClass,
    found: Result<Found, String>,
    use_sig: bool,
    now: Timestamp,
) -> Looked {
    if is_fips_impossible(class, use_sig) {
        let message = "spec.fipsMode is \"FIPS\", and such images are only in the shared image gallery: \
                       set USE_SIG, or spec.fipsMode to \"Disabled\"";
        return clear(class, reasons::SIG_REQUIRED_FOR_FIPS, message, Again::No, now);
    }
    let Found { mut latest, is_window_open } = match found {
        Ok(found) => found,
        Err(error) => return Looked::failed(format!("getting nodeimages, {error}")),
    };
    for image in &mut latest {
        image.requirements.sort_by(|a, b| (a.key.len(), &a.key).cmp(&(b.key.len(), &b.key)));
    }
    let images = if class.is_true(conditions::IMAGES_READY) {
        let known = class.status.as_ref().map_or(&[][..], |status| &status.images);
        match is_window_open {
            Ok(true) => latest,
            Ok(false) => kept(known, latest),
            Err(error) => return Looked::failed(error.to_string()),
        }
    } else {
        latest
    };
    if images.is_empty() {
        let message =
            "there are no images for spec.imageFamily, spec.fipsMode and spec.security of this class";
        return clear(class, reasons::IMAGES_NOT_FOUND, message, AGAIN, now);
    }
    class.status.get_or_insert_default().images = images;
    Conditions::of(class, now).set_true(conditions::IMAGES_READY);
    Looked::again(AGAIN)
}

fn clear(
    class: &mut AKSNodeClass,
    reason: &'static str,
    message: &str,
    again: Again,
    now: Timestamp,
) -> Looked {
    class.status.get_or_insert_default().images.clear();
    Conditions::of(class, now).set(conditions::IMAGES_READY, ConditionStatus::False, reason, message);
    Looked::again(again)
}

/// The latest images, each in the version that is known already, if one is.
fn kept(known: &[NodeImage], latest: Vec<NodeImage>) -> Vec<NodeImage> {
    let versions: BTreeMap<&str, &NodeImage> = known.iter().map(|image| (base(&image.id), image)).collect();
    latest
        .into_iter()
        .map(|image| versions.get(base(&image.id)).map_or_else(|| image.clone(), |&known| known.clone()))
        .collect()
}

/// The ID of an image without its version: without the last two parts.
fn base(id: &str) -> &str {
    let without_version = id.rsplitn(3, '/').nth(2);
    without_version.unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::node_class::tests::{NOW, class, condition, said};

    fn image(definition: &str, version: &str) -> NodeImage {
        serde_json::from_value(json!({
            "id": format!("/CommunityGalleries/AKSUbuntu-1/images/{definition}/versions/{version}"),
            "requirements": [
                {"key": "karpenter.azure.com/sku-hyperv-generation", "operator": "In", "values": ["2"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            ],
        }))
        .unwrap()
    }

    fn ids(class: &AKSNodeClass) -> Vec<&str> {
        let images = &class.status.as_ref().unwrap().images;
        images.iter().map(|image| image.id.rsplit("images/").next().unwrap()).collect()
    }

    fn of(
        ready: &str,
        known: &[NodeImage],
        latest: Vec<NodeImage>,
        open: Result<bool, BadWindow>,
    ) -> (AKSNodeClass, Looked) {
        let status = json!({"images": known, "conditions": [condition("ImagesReady", ready, 2)]});
        let mut class = class(&json!({}), &status);
        let looked = apply(&mut class, Ok(Found { latest, is_window_open: open }), false, NOW);
        (class, looked)
    }

    // azure.md 25.7: initialized; 1.7: requirements sorted by key length, then key
    #[test]
    fn the_first_images_are_the_latest_and_their_requirements_are_in_order() {
        let (class, looked) = of("Unknown", &[], vec![image("a", "2"), image("b", "3")], Ok(false));
        assert_eq!(ids(&class), ["a/versions/2", "b/versions/3"]);
        assert_eq!(said(&class, "ImagesReady").0, ConditionStatus::True);
        assert_eq!(looked, Looked::again(Again::After(Duration::from_mins(5))));
        let first = &class.status.as_ref().unwrap().images[0];
        let keys: Vec<&str> = first.requirements.iter().map(|each| each.key.as_str()).collect();
        assert_eq!(keys, ["kubernetes.io/arch", "karpenter.azure.com/sku-hyperv-generation"]);
    }

    // azure.md 15.1 step 2, 25.7: window closed keeps versions
    #[test]
    fn outside_of_the_window_versions_stay_and_definitions_come_and_go() {
        let known = [image("a", "1"), image("gone", "1")];
        let latest = || vec![image("new", "2"), image("a", "2")];
        let (class, _) = of("True", &known, latest(), Ok(false));
        assert_eq!(ids(&class), ["new/versions/2", "a/versions/1"]);
        let (class, _) = of("True", &known, latest(), Ok(true));
        assert_eq!(ids(&class), ["new/versions/2", "a/versions/2"]);
    }

    // azure.md 15.1 step 1: an upgrade does not wait for the window
    #[test]
    fn after_an_upgrade_the_latest_images_are_taken_though_the_window_is_closed() {
        let (class, _) = of("False", &[image("a", "1")], vec![image("a", "2")], Ok(false));
        assert_eq!(ids(&class), ["a/versions/2"]);
    }

    // azure.md 25.7: half window or bad timestamp → error
    #[test]
    fn a_window_that_nobody_understands_changes_nothing() {
        let (class, looked) =
            of("True", &[image("a", "1")], vec![image("a", "2")], Err(BadWindow::Half(START, END)));
        assert_eq!(ids(&class), ["a/versions/1"]);
        assert!(looked.error.is_some_and(|error| error.contains("expected both or none")));
    }

    #[test]
    fn no_images_are_said_so_and_looked_for_again() {
        let (class, looked) = of("True", &[image("a", "1")], vec![], Ok(true));
        assert_eq!(said(&class, "ImagesReady"), (ConditionStatus::False, "ImagesNotFound"));
        assert!(ids(&class).is_empty());
        assert_eq!(looked.again, Again::After(Duration::from_mins(5)));
    }

    // azure.md 25.7: FIPS without SIG → not ready
    #[test]
    fn certified_images_need_the_shared_gallery() {
        let status =
            json!({"images": [image("a", "1")], "conditions": [condition("ImagesReady", "True", 2)]});
        let mut fips = class(&json!({"fipsMode": "FIPS"}), &status);
        let looked = apply(&mut fips, Err("nobody asked".to_owned()), false, NOW);
        assert_eq!(looked, Looked::again(Again::No));
        assert_eq!(said(&fips, "ImagesReady"), (ConditionStatus::False, "SIGRequiredForFIPS"));
        assert!(ids(&fips).is_empty());
        let looked = apply(&mut fips, Err("no answer".to_owned()), true, NOW);
        assert_eq!(looked.error.as_deref(), Some("getting nodeimages, no answer"));
    }

    // azure.md 15.1 step 2, 25.7
    #[test]
    fn the_window_is_open_between_its_ends_and_without_any() {
        let open = |data: &Value| {
            let data: WindowData = serde_json::from_value(data.clone()).unwrap();
            is_window_open(Some(&data), NOW)
        };
        let (before, after) = ("2027-01-15T07:00:00Z", "2027-01-15T09:00:00+00:00");
        assert_eq!(is_window_open(None, NOW), Ok(true));
        assert_eq!(open(&json!({})), Ok(true));
        assert_eq!(open(&json!({START: "", END: ""})), Ok(true));
        assert_eq!(open(&json!({START: before, END: after})), Ok(true));
        assert_eq!(open(&json!({START: after, END: after})), Ok(false));
        assert_eq!(open(&json!({START: before, END: before})), Ok(false));
        assert_eq!(open(&json!({START: before})), Err(BadWindow::Half(START, END)));
        assert_eq!(open(&json!({END: before, START: ""})), Err(BadWindow::Half(END, START)));
        assert_eq!(
            open(&json!({START: "soon", END: after})),
            Err(BadWindow::NoTime(START, "soon".to_owned()))
        );
    }
}
