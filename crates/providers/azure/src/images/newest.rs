//! The newest version of each definition, as the galleries list them.

use api::azure::NodeImage;
use api::names::labels::{ARCH, azure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeSelectorRequirement;

use super::Definition;
use crate::arm::types::gallery::{CommunityGalleryImageVersion, NodeImageVersion};

/// The newest image of a definition in the community gallery: the one that was published last.
pub fn community_image(
    definition: &Definition,
    versions: &[CommunityGalleryImageVersion],
) -> Option<NodeImage> {
    let published = |version: &CommunityGalleryImageVersion| -> Option<Timestamp> {
        version.properties.as_ref()?.published_date.as_ref()?.parse().ok()
    };
    // Of several that were published at once, the first counts.
    let newest =
        versions.iter().filter(|version| version.name.is_some()).rev().max_by_key(|each| published(each))?;
    let Definition { name, gallery, .. } = definition;
    let version = newest.name.as_deref()?;
    Some(image(
        definition,
        format!("/CommunityGalleries/{}/images/{name}/versions/{version}", gallery.community),
    ))
}

/// The newest images of definitions in the shared gallery of AKS. What is not listed is left out.
pub fn shared_images(
    definitions: &[Definition],
    subscription: &str,
    listed: &[NodeImageVersion],
) -> Vec<NodeImage> {
    let newest = |definition: &Definition| -> Option<NodeImage> {
        let Definition { name, gallery, .. } = definition;
        let versions = listed
            .iter()
            .filter(|each| each.sku.as_deref() == Some(*name) && each.os.as_deref() == Some(gallery.shared));
        let versions = versions.filter_map(|each| each.version.as_deref());
        let version = versions.reduce(|newest, each| if is_newer(each, newest) { each } else { newest })?;
        let id = format!(
            "/subscriptions/{subscription}/resourceGroups/{}/providers/Microsoft.Compute/galleries/{}/images/{name}/versions/{version}",
            gallery.resource_group, gallery.shared
        );
        Some(image(definition, id))
    };
    definitions.iter().filter_map(newest).collect()
}

/// Whether a version is newer than another: by its numbers, then by having more of them. What has no numbers is not.
fn is_newer(version: &str, than: &str) -> bool {
    let numbers =
        |text: &str| text.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version > than,
        _ => false,
    }
}

fn image(definition: &Definition, id: String) -> NodeImage {
    let within = |key: &str, value: &str| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![value.to_owned()]),
    };
    // The order in which the status has them: short keys first.
    let requirements = vec![
        within(ARCH, definition.architecture),
        within(azure::SKU_HYPERV_GENERATION, definition.generation),
    ];
    NodeImage { id, requirements }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Family, definitions};
    use super::*;

    fn definition(name: &str) -> Definition {
        *definitions::named(name).unwrap()
    }

    fn versions(all: &[(&str, Option<&str>)]) -> Vec<CommunityGalleryImageVersion> {
        all.iter()
            .map(|(name, date)| {
                serde_json::from_value(json!({"name": name, "properties": {"publishedDate": date}})).unwrap()
            })
            .collect()
    }

    // azure.md 12.1, 12.4: CIG: newest publishedDate wins
    #[test]
    fn the_community_image_is_the_one_that_was_published_last() {
        let all = versions(&[
            ("202505.27.0", Some("2026-05-27T10:00:00Z")),
            ("202601.01.0", Some("2026-06-01T10:00:00.5Z")),
            ("202612.01.0", Some("2026-06-01T10:00:00Z")),
        ]);
        let image = community_image(&definition("2204gen2containerd"), &all).unwrap();
        assert_eq!(
            image.id,
            "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202601.01.0"
        );
        assert_eq!(
            serde_json::to_value(&image.requirements).unwrap(),
            json!([
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "karpenter.azure.com/sku-hyperv-generation", "operator": "In", "values": ["2"]},
            ])
        );
    }

    #[test]
    fn dates_that_are_missing_or_wrong_lose_and_no_versions_are_no_image() {
        let definition = definition("V3");
        let all = versions(&[("1", None), ("2", Some("yesterday")), ("3", Some("2020-01-01T00:00:00Z"))]);
        assert!(community_image(&definition, &all).unwrap().id.ends_with("/versions/3"));
        assert!(community_image(&definition, &all[..2]).unwrap().id.ends_with("/versions/1"));
        assert_eq!(community_image(&definition, &[]), None);
    }

    fn listed(all: &[(&str, &str, &str)]) -> Vec<NodeImageVersion> {
        let owned = |text: &&str| Some((*text).to_owned());
        all.iter()
            .map(|(os, sku, version)| NodeImageVersion {
                os: owned(os),
                sku: owned(sku),
                version: owned(version),
                full_name: Some(format!("{os}-{sku}-{version}")),
            })
            .collect()
    }

    // azure.md 12.1, 12.4: SIG
    #[test]
    fn the_shared_images_are_the_newest_that_aks_lists_in_the_order_of_the_definitions() {
        let all = listed(&[
            ("AKSUbuntu", "2204containerd", "202512.6.0"),
            ("AKSUbuntu", "2204gen2containerd", "202512.6.0"),
            ("AKSUbuntu", "2204gen2containerd", "202512.18.0"),
            ("AKSUbuntu", "2204gen2containerd", "202512.18"),
            ("AKSUbuntu", "2204gen2containerd", "newest"),
            ("AKSWindows", "2204gen2arm64containerd", "202512.6.0"),
            ("AKSUbuntu", "unknown", "1.0.0"),
        ]);
        let definitions = definitions::of(Family::Ubuntu2204, false, false);
        let ids: Vec<String> =
            shared_images(definitions, "sub", &all).into_iter().map(|image| image.id).collect();
        let prefix = "/subscriptions/sub/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images";
        assert_eq!(
            ids,
            [
                format!("{prefix}/2204gen2containerd/versions/202512.18.0"),
                format!("{prefix}/2204containerd/versions/202512.6.0"),
            ]
        );
    }

    // azure.md 12.4: dot segments as integers; longer wins on tie; non-numeric ⇒ not newer
    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, than, expected) in [
            ("202512.18.0", "202512.6.0", true),
            ("202512.6.0", "202512.18.0", false),
            ("202601.1.0", "202512.18.0", true),
            ("1.0.0", "1.0", true),
            ("1.0", "1.0.0", false),
            ("1.0", "1.0", false),
            ("x", "1.0", false),
            ("2.0", "x", false),
        ] {
            assert_eq!(is_newer(version, than), expected, "{version} {than}");
        }
    }
}
