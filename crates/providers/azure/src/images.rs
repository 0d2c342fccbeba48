//! Images that machines are started from.
//!
//! ```text
//!   NodeClass ─► Family ─► definitions, preferred first ─► newest version of each ─► status.images
//!                                                                   size + status.images ─► the one to start
//! ```

mod choice;
mod definitions;
mod newest;

use api::azure::ImageFamily;

pub use choice::{ImageId, NoImage, NotShared, choose, node_image_version};
pub use definitions::Definition;
pub use newest::{community_image, shared_images};

use crate::class::Class;
use crate::version;

/// A release of an operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Ubuntu 20.04, with validated cryptography only.
    Ubuntu2004,
    /// Ubuntu 22.04.
    Ubuntu2204,
    /// Ubuntu 24.04.
    Ubuntu2404,
    /// Azure Linux 2.
    AzureLinux2,
    /// Azure Linux 3.
    AzureLinux3,
}

/// A gallery of AKS that images are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gallery {
    /// Its name for everybody.
    pub community: &'static str,
    /// Its name within AKS.
    pub shared: &'static str,
    /// The resource group that it is in within AKS.
    pub resource_group: &'static str,
}

const UBUNTU: Gallery = Gallery {
    community: "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2",
    shared: "AKSUbuntu",
    resource_group: "AKS-Ubuntu",
};

const AZURE_LINUX: Gallery = Gallery {
    community: "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b",
    shared: "AKSAzureLinux",
    resource_group: "AKS-AzureLinux",
};

impl Family {
    /// What machines of a NodeClass run.
    pub fn of(class: &Class<'_>) -> Self {
        let version = class.kubernetes_version;
        match class.spec.image_family.unwrap_or(ImageFamily::Ubuntu) {
            ImageFamily::Ubuntu2404 => Self::Ubuntu2404,
            ImageFamily::AzureLinux if version::is_at_least(version, 32) => Self::AzureLinux3,
            ImageFamily::AzureLinux => Self::AzureLinux2,
            ImageFamily::Ubuntu if class.is_trusted_launch() => Self::Ubuntu2204,
            ImageFamily::Ubuntu if class.is_fips() => Self::Ubuntu2004,
            ImageFamily::Ubuntu if version::is_at_least(version, 34) => Self::Ubuntu2404,
            ImageFamily::Ubuntu | ImageFamily::Ubuntu2204 => Self::Ubuntu2204,
        }
    }

    /// The value of the label `kubernetes.azure.com/os-sku-effective`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ubuntu2004 => "Ubuntu",
            Self::Ubuntu2204 => "Ubuntu2204",
            Self::Ubuntu2404 => "Ubuntu2404",
            Self::AzureLinux2 => "AzureLinux2",
            Self::AzureLinux3 => "AzureLinux3",
        }
    }

    /// Whether it is a release of Azure Linux.
    pub const fn is_azure_linux(self) -> bool {
        matches!(self, Self::AzureLinux2 | Self::AzureLinux3)
    }

    /// The gallery that its images are in.
    pub const fn gallery(self) -> Gallery {
        if self.is_azure_linux() { AZURE_LINUX } else { UBUNTU }
    }
}

/// The definitions of images that machines of a NodeClass can start, the preferred one first. There are none where
/// the NodeClass asks for what the gallery does not have.
pub fn definitions(class: &Class<'_>, use_sig: bool) -> &'static [Definition] {
    // The community gallery has no images with validated cryptography.
    if class.is_fips() && !use_sig {
        return &[];
    }
    definitions::of(Family::of(class), class.is_fips(), class.is_trusted_launch())
}

#[cfg(test)]
mod tests {
    use api::azure::AKSNodeClass;
    use serde_json::json;

    use super::*;

    pub(crate) fn class(family: Option<&str>, fips: bool, trusted: bool, version: &str) -> AKSNodeClass {
        let mut spec = json!({"imageFamily": family});
        if fips {
            spec["fipsMode"] = json!("FIPS");
        }
        if trusted {
            spec["security"] = json!({"trustedLaunch": {"vtpm": true}});
        }
        serde_json::from_value(json!({
            "metadata": {"name": "default"}, "spec": spec, "status": {"kubernetesVersion": version},
        }))
        .unwrap()
    }

    // azure.md 12.2, 25.6: os-sku-effective matrix for all families and versions
    #[test]
    fn a_family_becomes_the_release_that_fits_the_version_and_what_is_asked_for() {
        use Family::{AzureLinux2, AzureLinux3, Ubuntu2004, Ubuntu2204, Ubuntu2404};
        for (family, fips, trusted, version, expected) in [
            (Some("Ubuntu2204"), false, false, "1.36.0", Ubuntu2204),
            (Some("Ubuntu2404"), false, false, "1.29.0", Ubuntu2404),
            (Some("Ubuntu2204"), true, true, "1.34.0", Ubuntu2204),
            (Some("AzureLinux"), false, false, "1.31.9", AzureLinux2),
            (Some("AzureLinux"), false, false, "1.32.0", AzureLinux3),
            (Some("AzureLinux"), true, false, "1.32.0", AzureLinux3),
            (Some("AzureLinux"), false, false, "nonsense", AzureLinux2),
            (Some("Ubuntu"), false, false, "1.33.9", Ubuntu2204),
            (Some("Ubuntu"), false, false, "1.34.0", Ubuntu2404),
            (Some("Ubuntu"), false, false, "nonsense", Ubuntu2204),
            (Some("Ubuntu"), false, true, "1.34.0", Ubuntu2204),
            (Some("Ubuntu"), true, false, "1.34.0", Ubuntu2004),
            (Some("Ubuntu"), true, true, "1.34.0", Ubuntu2204),
            (None, false, false, "1.33.0", Ubuntu2204),
            (None, false, false, "1.34.0", Ubuntu2404),
            (None, true, false, "1.34.0", Ubuntu2004),
            (None, true, true, "1.33.0", Ubuntu2204),
        ] {
            let class = class(family, fips, trusted, version);
            assert_eq!(Family::of(&Class::from(&class)), expected, "{family:?} {fips} {trusted} {version}");
        }
    }

    // azure.md 2.3, 28.18
    #[test]
    fn the_label_names_the_release() {
        let all = [
            Family::Ubuntu2004,
            Family::Ubuntu2204,
            Family::Ubuntu2404,
            Family::AzureLinux2,
            Family::AzureLinux3,
        ];
        assert_eq!(
            all.map(Family::label),
            ["Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux2", "AzureLinux3"]
        );
    }

    // azure.md 12.4: FIPS without SIG → empty list
    #[test]
    fn validated_cryptography_is_only_in_the_shared_gallery() {
        let class = class(Some("AzureLinux"), true, false, "1.34.0");
        assert!(definitions(&Class::from(&class), false).is_empty());
        assert_eq!(definitions(&Class::from(&class), true).len(), 3);
    }
}
