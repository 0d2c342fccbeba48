//! Versions of images, as the community galleries and AKS list them.

use serde::{Deserialize, Serialize};

/// A version of an image in a community gallery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommunityGalleryImageVersion {
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is known about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<CommunityGalleryImageVersionProperties>,
}

/// What is known about a version of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommunityGalleryImageVersionProperties {
    /// When it was published, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_date: Option<String>,
}

/// The newest version of an image for nodes, as AKS lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeImageVersion {
    /// The gallery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// The image's definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// All three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
}
