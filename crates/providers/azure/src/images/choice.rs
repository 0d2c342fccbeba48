//! Which image of a NodeClass a size starts, and what its ID says.

use std::sync::LazyLock;

use api::azure::NodeImage;
use api::labels::LabelSets;
use api::provider::Provider;
use api::shared::{Operator, Requirement};
use cluster::instance_types::{InstanceType, Wanted};
use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use regex::Regex;

use super::{Definition, definitions};

static ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^(?:/CommunityGalleries/(?<public>[^/]+)|/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/galleries/(?<shared>[^/]+))/images/(?<definition>[^/]+)/versions/(?<version>[^/]+)$",
    )
    .expect("the pattern is a constant that compiles")
});

/// A size can start none of the images of its NodeClass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no compatible images found for instance type {0}")]
pub struct NoImage(pub String);

/// The first image that a size can start.
pub fn choose<'a>(images: &'a [NodeImage], instance_type: &InstanceType) -> Result<&'a NodeImage, NoImage> {
    let none = || NoImage(instance_type.name.clone());
    let sets = LabelSets::for_provider(Provider::Azure);
    let mut size = Wanted::new(&instance_type.requirements, &sets).map_err(|_| none())?;
    let is_startable = |image: &&NodeImage| {
        let requirements: Option<Vec<Requirement>> = image.requirements.iter().map(requirement).collect();
        requirements.is_some_and(|requirements| size.admits(&requirements))
    };
    images.iter().find(is_startable).ok_or_else(none)
}

fn requirement(written: &NodeSelectorRequirement) -> Option<Requirement> {
    let operator = Operator::ALL.into_iter().find(|operator| operator.as_str() == written.operator)?;
    let values = written.values.clone().unwrap_or_default();
    Some(Requirement { key: written.key.clone(), operator, values, min_values: None })
}

/// The parts of an image's ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageId<'a> {
    /// Whether it is in the community gallery.
    pub is_community: bool,
    /// The gallery.
    pub gallery: &'a str,
    /// The definition.
    pub definition: &'a str,
    /// The version.
    pub version: &'a str,
}

impl<'a> ImageId<'a> {
    /// The parts of an ID, if it is one of an image of a gallery.
    pub fn parse(id: &'a str) -> Option<Self> {
        let parts = ID.captures(id)?;
        let public = parts.name("public");
        Some(Self {
            is_community: public.is_some(),
            gallery: public.or_else(|| parts.name("shared"))?.as_str(),
            definition: parts.name("definition")?.as_str(),
            version: parts.name("version")?.as_str(),
        })
    }

    /// What is known about the definition.
    pub fn known(&self) -> Option<&'static Definition> {
        definitions::named(self.definition)
    }
}

/// An image is not in the shared gallery of AKS, so that the AKS Machine API does not know it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {0:?} is not in the shared image gallery of AKS, which machines of the AKS Machine API need")]
pub struct NotShared(String);

/// An image, as the AKS Machine API names it: gallery, definition and version.
pub fn node_image_version(id: &str) -> Result<String, NotShared> {
    match ImageId::parse(id) {
        Some(ImageId { is_community: false, gallery, definition, version }) => {
            Ok(format!("{gallery}-{definition}-{version}"))
        }
        _ => Err(NotShared(id.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn images() -> Vec<NodeImage> {
        let image = |name: &str, architecture: &str, generation: &str| {
            serde_json::from_value(json!({"id": name, "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": [architecture]},
                {"key": "karpenter.azure.com/sku-hyperv-generation", "operator": "In", "values": [generation]},
            ]}))
            .unwrap()
        };
        vec![image("gen2", "amd64", "2"), image("gen1", "amd64", "1"), image("arm", "arm64", "2")]
    }

    fn size(architecture: &str, generations: &[&str]) -> InstanceType {
        InstanceType {
            name: "Standard_X".to_owned(),
            requirements: serde_json::from_value(json!([
                {"key": "kubernetes.io/arch", "operator": "In", "values": [architecture]},
                {"key": "karpenter.azure.com/sku-hyperv-generation", "operator": "In", "values": generations},
            ]))
            .unwrap(),
            ..InstanceType::default()
        }
    }

    // azure.md 12.4, 25.5: image choice by gen1/gen2/arm
    #[test]
    fn a_size_starts_the_first_image_that_it_can_and_the_second_generation_comes_first() {
        for (architecture, generations, expected) in [
            ("amd64", &["1", "2"][..], "gen2"),
            ("amd64", &["2"], "gen2"),
            ("amd64", &["1"], "gen1"),
            ("arm64", &["2"], "arm"),
        ] {
            assert_eq!(choose(&images(), &size(architecture, generations)).unwrap().id, expected);
        }
    }

    // azure.md 12.3, 12.4: arm64 + trusted launch is never satisfiable
    #[test]
    fn a_size_that_can_start_no_image_is_named() {
        let error = choose(&images()[..1], &size("arm64", &["2"])).unwrap_err();
        assert_eq!(error.to_string(), "no compatible images found for instance type Standard_X");
    }

    #[test]
    fn an_image_with_a_requirement_that_nobody_understands_is_passed_over() {
        let mut all = images();
        all[0].requirements[0].operator = "Like".to_owned();
        assert_eq!(choose(&all, &size("amd64", &["1", "2"])).unwrap().id, "gen1");
    }

    const SHARED: &str = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/202512.6.0";

    // azure.md 11.3: nodeImageVersion
    #[test]
    fn the_machine_api_names_an_image_by_gallery_definition_and_version() {
        assert_eq!(node_image_version(SHARED).unwrap(), "AKSUbuntu-2204gen2containerd-202512.6.0");
        assert_eq!(
            node_image_version(&SHARED.replace("resourceGroups", "RESOURCEGROUPS")).unwrap(),
            "AKSUbuntu-2204gen2containerd-202512.6.0"
        );
    }

    // azure.md 11.3: CIG ids are an error
    #[test]
    fn an_image_of_the_community_is_refused_by_the_machine_api() {
        for id in ["/CommunityGalleries/AKSUbuntu-1/images/2204gen2containerd/versions/1.0.0", "", "/x/y"] {
            assert!(node_image_version(id).unwrap_err().to_string().contains(&format!("{id:?}")));
        }
    }

    #[test]
    fn the_definition_of_an_image_is_found_again_by_its_id() {
        let id = ImageId::parse(SHARED).unwrap();
        assert_eq!(id.known().unwrap().distro, "aks-ubuntu-containerd-22.04-gen2");
        let community = ImageId::parse("/CommunityGalleries/g/images/V3gen2TL/versions/1").unwrap();
        assert!(community.is_community);
        assert_eq!(community.known().unwrap().distro, "aks-azurelinux-v3-gen2-tl");
    }
}
