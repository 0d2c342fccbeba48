//! Images: of community galleries, and those that AKS publishes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::lists;
use crate::world::World;

/// A version of an image and when it was published.
type Version = (String, String);

/// All images.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// By gallery and definition, both in lower case.
    community: BTreeMap<(String, String), Vec<Version>>,
    /// Operating system, definition, version.
    node_images: Vec<(String, String, String)>,
}

impl Images {
    /// Publishes a version in a community gallery; the date is such as `2026-06-01T00:00:00Z`.
    pub fn publish(&mut self, gallery: &str, definition: &str, version: &str, published: &str) {
        let key = (gallery.to_ascii_lowercase(), definition.to_ascii_lowercase());
        self.community.entry(key).or_default().push((version.to_owned(), published.to_owned()));
    }

    /// Publishes a node image of AKS, such as `AKSUbuntu`, `2204gen2containerd`, `202606.01.0`.
    pub fn publish_node_image(&mut self, os: &str, definition: &str, version: &str) {
        self.node_images.push((os.to_owned(), definition.to_owned(), version.to_owned()));
    }

    /// Takes all images back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn has_community(&self, gallery: &str, definition: &str, version: &str) -> bool {
        let key = (gallery.to_ascii_lowercase(), definition.to_ascii_lowercase());
        self.community.get(&key).is_some_and(|all| all.iter().any(|(each, _)| each == version))
    }

    fn has_node_image(&self, os: &str, definition: &str, version: &str) -> bool {
        self.node_images.iter().any(|(each_os, each_definition, each_version)| {
            each_os.eq_ignore_ascii_case(os)
                && each_definition.eq_ignore_ascii_case(definition)
                && each_version == version
        })
    }

    /// Whether AKS has published a node image of this full name.
    pub(crate) fn has_full_name(&self, name: &str) -> bool {
        self.node_images.iter().any(|each| full_name(each) == name)
    }
}

fn full_name((os, definition, version): &(String, String, String)) -> String {
    format!("{os}-{definition}-{version}")
}

/// The definition of the image that a reference names, if it can be used.
pub(crate) fn find(world: &World, reference: &Value, has_auxiliary_token: bool) -> Result<String, Refusal> {
    let community = reference["communityGalleryImageId"].as_str();
    let shared = reference["id"].as_str();
    let Some(id) = community.or(shared) else {
        return Err(Refusal::new(
            400,
            "InvalidParameter",
            "Required parameter 'imageReference' is missing (null).",
        )
        .target("imageReference"));
    };
    let parts: Vec<&str> = id.trim_start_matches('/').split('/').collect();
    let missing = || {
        Refusal::new(
            404,
            "GalleryImageNotFound",
            format!("The gallery image {id} is not available in {} region.", world.settings.location),
        )
        .target("imageReference")
    };
    match (community.is_some(), &parts[..]) {
        (true, [first, gallery, _, definition, _, version])
            if first.eq_ignore_ascii_case("communityGalleries")
                && world.images.has_community(gallery, definition, version) =>
        {
            Ok((*definition).to_owned())
        }
        (false, [_, subscription, _, _, _, _, _, gallery, _, definition, _, version]) => {
            if !subscription.eq_ignore_ascii_case(&world.settings.subscription) && !has_auxiliary_token {
                return Err(Refusal::new(
                    403,
                    "LinkedAuthorizationFailed",
                    format!(
                        "The client has permission to perform action 'Microsoft.Compute/galleries/images/versions/read' on \
                         scope '{id}', however the current tenant '{}' is not authorized to access linked subscription \
                         '{subscription}'.",
                        world.settings.tenant
                    ),
                ));
            }
            if world.images.has_node_image(gallery, definition, version) {
                Ok((*definition).to_owned())
            } else {
                Err(missing())
            }
        }
        _ => Err(missing()),
    }
}

pub(crate) fn community_versions(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let [gallery, definition] = &call.route.names[..] else { return Err(crate::others::unknown(call)) };
    let key = (gallery.to_ascii_lowercase(), definition.to_ascii_lowercase());
    let Some(versions) = world.images.community.get(&key) else {
        return Err(Refusal::new(
            404,
            "GalleryImageNotFound",
            format!("The community gallery image '{definition}' was not found in gallery '{gallery}'."),
        ));
    };
    let all = versions.iter().map(|(version, published)| {
        json!({
            "name": version, "location": world.settings.location, "type": "Microsoft.Compute/Locations/CommunityGalleries/Images/Versions",
            "identifier": {"uniqueId": format!("/CommunityGalleries/{gallery}/Images/{definition}/Versions/{version}")},
            "properties": {"publishedDate": published, "excludeFromLatest": false},
        })
    });
    Ok(lists::page(call, all.collect(), world.settings.page_size))
}

pub(crate) fn node_image_versions(world: &World, call: &Call) -> Answer {
    let all = world.images.node_images.iter().map(|image| {
        let (os, definition, version) = image;
        json!({"os": os, "sku": definition, "version": version, "fullName": full_name(image)})
    });
    lists::page(call, all.collect(), world.settings.page_size)
}
